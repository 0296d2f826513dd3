"""The journal of a publication: the one moment at which all files of a release become the release.

A release is several files: tables, a certificate, pages. They are staged beside their targets, and a journal beside the
first target lists them. The journal is written under another name, synced and renamed: that rename is the commit point.
After it, the staged files are renamed, get their permissions, and the journal is removed. A run that is killed before
the commit point changed nothing. After it, whoever finds the journal ends what it began.

Where a table in a database is published by a transaction, the journal is written before and lists only the pages. It
names the certificate that the transaction stores, so that whoever finds the journal can see whether it was committed.

A journal holds no paths of staged files. Their names follow from its token, so it can name nothing but staged files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.tables.locations import DatabaseLocation, DirectoryLocation, ServerLocation, location_of
from sfumato.tables.targets.file_operations import open_without_waiting

MARK = ".sfumato-stage-"
REPLACED = ".sfumato-replaced-"
JOURNAL = ".sfumato-journal"
DRAFT = f"{JOURNAL}-draft"
FORMAT = 1
MOST_BYTES = 1 << 20
TOKEN = re.compile(r"[0-9a-f]{8}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Entry:
    """A staged file or directory, and what it becomes.

    ``number`` is that of the staged file in its file system, by which it is known after it was renamed. A directory is
    known by ``certificate``, the SHA-256 of the certificate in it.
    """

    staged: Path
    target: Path
    mode: int
    number: int
    certificate: str | None = None

    @property
    def replaced(self) -> Path:
        """The name of what was at the target, until the publication is complete."""
        return self.staged.with_name(self.staged.name.replace(MARK, REPLACED, 1))

    @property
    def done(self) -> bool:
        """Whether the staged file is at its target."""
        if self.certificate is not None:
            return certificate_digest(self.target) == self.certificate
        return not os.path.lexists(self.staged)


@dataclass(frozen=True)
class Transaction:
    """A transaction of a database that publishes a table: where the table is, and the SHA-256 of its certificate."""

    location: DatabaseLocation | ServerLocation
    certificate: str

    @property
    def committed(self) -> bool:
        """Whether the table has this certificate now. Raises InputError if the database cannot be opened."""
        from sfumato.tables.targets.target import certificate_text, check_database

        check_database(self.location)
        text = certificate_text(self.location)
        return text is not None and text_digest(text) == self.certificate


@dataclass(frozen=True)
class Journal:
    """What a journal says."""

    token: str
    entries: tuple[Entry, ...]
    transaction: Transaction | None = None


def journal_path(main: Path) -> Path:
    main = main.absolute()
    return main.with_name(f".{main.name}{JOURNAL}")


def certificate_digest(directory: Path) -> str | None:
    """Return the SHA-256 of the certificate in a directory, or None if there is none."""
    try:
        handle = open_without_waiting(DirectoryLocation(directory).certificate)
    except OSError:
        return None
    with open(handle, "rb") as file:
        is_file = stat.S_ISREG(os.fstat(handle).st_mode)
        return hashlib.file_digest(file, "sha256").hexdigest() if is_file else None


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def new_token() -> str:
    return secrets.token_hex(4)


def staged_name(target: Path, token: str) -> Path:
    return target.with_name(f".{token}{MARK}{target.name}")


def draft_path(main: Path) -> Path:
    main = main.absolute()
    return main.with_name(f".{main.name}{DRAFT}")


def main_of(journal: Path) -> Path:
    return journal.with_name(journal.name.removeprefix(".").removesuffix(JOURNAL))


def read_unlocked(journal: Path) -> Journal | None:
    try:
        handle = open_without_waiting(journal)
    except OSError:
        return None
    try:
        return read_journal(journal, handle)
    finally:
        os.close(handle)


def read_journal(journal: Path, handle: int, server: ServerLocation | None = None) -> Journal | None:
    """Return what a journal says, or None if it is damaged or names anything but staged files."""
    folder, owner = journal.parent, os.fstat(handle)
    if not stat.S_ISREG(owner.st_mode) or owner.st_size > MOST_BYTES:
        return None
    try:
        content = json.loads(os.pread(handle, MOST_BYTES, 0))
        token, listed, transaction = content["token"], content["entries"], content["transaction"]
        if content["format"] != FORMAT or not TOKEN.fullmatch(token) or not listed:
            return None
        entries = tuple(_entry(line, token, folder) for line in listed)
        # A journal of somebody else may not make this user rename files in other directories.
        own = os.name != "posix" or owner.st_uid == os.geteuid()
        if not own and any(entry.target.parent != folder for entry in entries):
            return None
        for entry in entries:
            if os.path.lexists(entry.staged) and not _is_staged(entry, owner):
                return None
        published = None if transaction is None else _transaction(transaction, main_of(journal), server)
        return Journal(token, entries, published)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def journal_text(journal: Journal, main: Path) -> str:
    lines = [
        {
            "name": entry.target.name,
            "folder": None if entry.target.parent == main.absolute().parent else str(entry.target.parent),
            "mode": entry.mode,
            "number": entry.number,
            "certificate": entry.certificate,
        }
        for entry in journal.entries
    ]
    transaction = journal.transaction
    published = None
    if transaction is not None:
        in_file = isinstance(transaction.location, DatabaseLocation)
        published = {
            "table": transaction.location.table if in_file else transaction.location.shown,
            "in_file": in_file,
            "certificate": transaction.certificate,
        }
    content = {"format": FORMAT, "token": journal.token, "entries": lines, "transaction": published}
    return json.dumps(content) + "\n"


def _entry(line: Any, token: str, folder: Path) -> Entry:
    name, other, mode, number, digest = (line[key] for key in ("name", "folder", "mode", "number", "certificate"))
    if not isinstance(name, str) or name in ("", ".", "..") or {"/", "\\", "\0"} & set(name):
        raise ValueError
    if other is not None:
        folder = Path(other)
        if "\0" in other or not folder.is_absolute():
            raise ValueError
    numbers = [value for value in (mode, number) if type(value) is int and value >= 0]
    if len(numbers) < 2 or mode > 0o777 or (digest is not None and not _SHA256.fullmatch(digest)):
        raise ValueError
    target = folder / name
    return Entry(staged_name(target, token), target, mode, number, digest)


def _transaction(content: Any, main: Path, server: ServerLocation | None) -> Transaction:
    table, digest = content["table"], content["certificate"]
    if not isinstance(table, str) or not _SHA256.fullmatch(digest):
        raise ValueError
    location = location_of(f"{main}#{table}" if content["in_file"] else table)
    if not isinstance(location, DatabaseLocation | ServerLocation):
        raise ValueError
    return Transaction(server if server is not None and server.shown == location.shown else location, digest)


def _is_staged(entry: Entry, owner: os.stat_result) -> bool:
    """Return whether there is a file, or for a release in a directory a directory, of the owner of the journal."""
    there = os.lstat(entry.staged)
    is_kind = stat.S_ISREG if entry.certificate is None else stat.S_ISDIR
    return is_kind(there.st_mode) and there.st_uid == owner.st_uid
