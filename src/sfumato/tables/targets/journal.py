"""The journal of a publication: the one moment at which all files of a release become the release.

A release is several files: tables, a certificate, pages. They are staged beside their targets, and a journal beside the
first target lists them. The journal is written under another name, synced and renamed: that rename is the commit point.
After it, the staged files are renamed, get their permissions, and the journal is removed. A run that is killed before
the commit point changed nothing. After it, whoever finds the journal ends what it began.

Where a table in a database is published by a transaction, the journal is written before and lists only the pages. It
names the certificate that the transaction stores, so that whoever finds the journal can see whether it was committed.

A journal holds no paths of staged files. Their names follow from its token, so it can name nothing but staged files. A
locked draft of the journal keeps two runs from publishing to one target at once. The journal is locked as long as its
run is alive.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sfumato.errors import InputError
from sfumato.tables.locations import DatabaseLocation, DirectoryLocation, ServerLocation, location_of

try:
    import fcntl
except ImportError:  # on Windows an open file cannot be removed or renamed, which serves as the lock
    fcntl = None  # type: ignore[assignment]

MARK = ".sfumato-stage-"
REPLACED = ".sfumato-replaced-"
JOURNAL = ".sfumato-journal"
DRAFT = f"{JOURNAL}-draft"
FORMAT = 1
MOST_BYTES = 1 << 20
PATIENCE = 10.0  # seconds to wait for another run that is publishing
_PAUSE = 0.02
TOKEN = re.compile(r"[0-9a-f]{8}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HERE = -100  # AT_FDCWD: paths are relative to the current directory
_EXCHANGE = 2  # RENAME_EXCHANGE


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


class Publication:
    """The right to publish to ``main``, the first target, and what was published so far.

    Inside ``with``, ``commit`` writes the journal and ``put_in_place`` renames what it lists. On an error, what was
    renamed is renamed back.
    """

    def __init__(self, main: Path) -> None:
        self._main = main
        self._journal, self._draft = journal_path(main), _draft_path(main)
        self._lock = -1
        self._entries: Sequence[Entry] = ()
        self._undo = contextlib.ExitStack()
        self._tidy = True
        self.current = main
        """The target that is being worked on, for the message if that fails."""
        self.left_open = False
        """Whether an error left something that only the next command can end."""

    def __enter__(self) -> Self:
        self._lock = _exclusive(self._draft, self._main)
        try:
            settle(self._journal, self._main)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            with contextlib.suppress(OSError):
                self._undo.close()
            # What an interruption left renamed, or what cannot be renamed back, only the next command can end.
            self.left_open = is_still(self._journal, self._lock) and any(entry.done for entry in self._entries)
        if self.left_open:
            os.close(self._lock)
        else:
            self._close()

    def commit(self, journal: Journal) -> None:
        """Write the journal. Everything that it lists must be complete and synced."""
        self._entries = journal.entries
        with open(self._lock, "wb", closefd=False) as file:
            file.write(_text(journal, self._main).encode())
        os.fsync(self._lock)
        for folder in {entry.target.parent for entry in journal.entries}:
            sync_directory(folder)
        _set_mode(self._draft, 0o666 & ~current_mask())  # others may see that they have to wait
        self._draft.replace(self._journal)
        sync_directory(self._journal.parent)

    def put_in_place(self) -> None:
        """Rename what the journal lists, and give it its permissions."""
        for entry in self._entries:
            self.current = entry.target
            _place(entry, self._undo)
            _set_mode(entry.target, entry.mode)
        for folder in {entry.target.parent for entry in self._entries}:
            sync_directory(folder)
        self._undo.pop_all()
        try:
            for entry in self._entries:
                _remove_replaced(entry)
        except OSError:
            self._tidy = False  # the release is there; the next command removes what it replaced

    def _close(self) -> None:
        with contextlib.suppress(OSError):  # a journal of which everything is done harms nobody
            for path in (self._draft, self._journal) if self._tidy else ():
                if is_still(path, self._lock):
                    path.unlink()
            sync_directory(self._journal.parent)
        os.close(self._lock)


def settle(journal: Path, main: Path, server: ServerLocation | None = None) -> None:
    """End or undo the publication of a killed run. Wait for one that is under way.

    ``main`` is the target that the journal belongs to. ``server`` has the password that a journal does not have.
    """
    with _found(journal, main) as handle:
        if handle is None:
            return
        content = _read(journal, handle, server)
        if content is None:
            raise InputError(
                f"the journal {journal} beside {main} is damaged, or names other files than those that Sfumato has "
                "staged. Nothing was changed. Check who wrote it, and remove it."
            )
        if not _may_finish(handle):
            if content.transaction is None and all(entry.done for entry in content.entries):
                return
            raise _unfinished(main)
        try:
            if content.transaction is None or content.transaction.committed:
                for entry in content.entries:
                    _finish(entry)
            else:
                for entry in content.entries:
                    remove(entry.staged)
            for folder in {entry.target.parent for entry in content.entries}:
                sync_directory(folder)
            journal.unlink()
            sync_directory(journal.parent)
        except OSError:
            if content.transaction is None and all(entry.done for entry in content.entries):
                return  # the release is there; only what it replaced, or the journal, cannot be removed
            raise _unfinished(main) from None


def settle_beside(target: Path, server: ServerLocation | None = None) -> None:
    """End or undo every publication whose journal lists ``target``, whatever its first target is."""
    target = target.absolute()
    settle(journal_path(target), target, server)
    for journal in _journals_in(target.parent):
        content = _read_unlocked(journal)
        if content is not None and any(entry.target == target for entry in content.entries):
            settle(journal, _main_of(journal))


def journal_path(main: Path) -> Path:
    main = main.absolute()
    return main.with_name(f".{main.name}{JOURNAL}")


def remove_draft(main: Path) -> None:
    """Remove the draft of a run that was killed before it committed anything."""
    draft = _draft_path(main)
    with contextlib.suppress(OSError), locked(draft):
        draft.unlink()


def lists_directory(path: Path) -> bool:
    """Return whether a journal says that a directory of this name is being published."""
    content = _read_unlocked(journal_path(path))
    return content is not None and content.entries[0].certificate is not None


def certificate_digest(directory: Path) -> str | None:
    """Return the SHA-256 of the certificate in a directory, or None if there is none."""
    try:
        with DirectoryLocation(directory).certificate.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def sync_directory(directory: Path) -> None:
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def current_mask() -> int:
    """Return the umask of the process: the permissions that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Let a library create its files, such as the log of a database, for their owner alone."""
    mask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(mask)


def open_without_waiting(path: Path) -> int:
    """Open a file or directory to lock it. A symbolic link is not followed, and a pipe does not keep us waiting."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags)


def lock(handle: int, *, wait: bool = False) -> None:
    """Lock an open file; without ``wait``, raise BlockingIOError if another run holds it."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def is_still(path: Path, handle: int) -> bool:
    """Return whether a path still leads to the open file: another run may have removed or renamed it."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(handle))


def new_token() -> str:
    return secrets.token_hex(4)


def staged_name(target: Path, token: str) -> Path:
    return target.with_name(f".{token}{MARK}{target.name}")


def _draft_path(main: Path) -> Path:
    main = main.absolute()
    return main.with_name(f".{main.name}{DRAFT}")


def _main_of(journal: Path) -> Path:
    return journal.with_name(journal.name.removeprefix(".").removesuffix(JOURNAL))


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Lock a file that exists. Raises OSError if it does not, or if another run holds it."""
    handle = open_without_waiting(path)
    try:
        lock(handle)
        if not is_still(path, handle):
            raise FileNotFoundError
        yield handle
    finally:
        os.close(handle)


def _exclusive(draft: Path, main: Path) -> int:
    """Create and lock the draft of a journal, and wait for another run that holds it."""
    end = time.monotonic() + PATIENCE
    while True:
        remove_draft(main)
        with contextlib.suppress(FileExistsError):
            handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            lock(handle, wait=True)  # another run may hold it for the moment that it takes to remove it
            if is_still(draft, handle):
                return handle
            os.close(handle)
        _wait(main, end)


@contextlib.contextmanager
def _found(journal: Path, main: Path) -> Iterator[int | None]:
    """Lock a journal, and wait for the run that holds it; None if there is no journal, or none any more."""
    end = time.monotonic() + PATIENCE
    while os.path.lexists(journal):
        with contextlib.ExitStack() as opened:
            try:
                handle = opened.enter_context(locked(journal))
            except FileNotFoundError:
                continue
            except BlockingIOError:
                _wait(main, end)
                continue
            except PermissionError:  # of another user, who may be publishing at this moment
                if time.monotonic() > end:
                    raise _unfinished(main) from None
                time.sleep(_PAUSE)
                continue
            except OSError:  # a symbolic link
                raise InputError(
                    f"{journal} beside {main} is not a journal that Sfumato has written. Nothing was changed. Check "
                    "who wrote it, and remove it."
                ) from None
            yield handle
            return
    yield None


def _wait(main: Path, end: float) -> None:
    if time.monotonic() > end:
        raise InputError(f"another run is putting {main} in place. Run again when it is done.")
    time.sleep(_PAUSE)


def _unfinished(main: Path) -> InputError:
    return InputError(
        f"a run that published {main} was killed before it was done, and this user may not finish it. Ask the owner of "
        f"{main.absolute().parent} to run: sfumato audit {main}"
    )


def _may_finish(handle: int) -> bool:
    return os.name != "posix" or os.geteuid() in (0, os.fstat(handle).st_uid)


def _journals_in(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder) if name.endswith(JOURNAL)]
    except (OSError, ValueError):
        return []  # a directory that may not be listed


def _read_unlocked(journal: Path) -> Journal | None:
    try:
        handle = open_without_waiting(journal)
    except OSError:
        return None
    try:
        return _read(journal, handle)
    finally:
        os.close(handle)


def _read(journal: Path, handle: int, server: ServerLocation | None = None) -> Journal | None:
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
        published = None if transaction is None else _transaction(transaction, _main_of(journal), server)
        return Journal(token, entries, published)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _text(journal: Journal, main: Path) -> str:
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


def _place(entry: Entry, undo: contextlib.ExitStack) -> None:
    """Rename what is staged to its target. Every step that was taken is undone by ``undo``."""
    staged, target, replaced = entry.staged, entry.target, entry.replaced
    if not os.path.lexists(target):
        staged.replace(target)
        undo.callback(target.replace, staged)
    elif entry.certificate is None:
        undo.callback(replaced.unlink, missing_ok=True)
        kept = _second_name(target, replaced)
        staged.replace(target)
        undo.callback(_put_back, entry, kept)
    elif target.is_symlink() or not target.is_dir():
        raise NotADirectoryError
    elif exchange_atomically(staged, target):
        undo.callback(_exchange_back, staged, target)
    else:
        target.rename(replaced)
        undo.callback(replaced.rename, target)
        staged.rename(target)
        undo.callback(target.rename, staged)


def _second_name(target: Path, name: Path) -> bool:
    """Give a file a second name, and return whether the file system can do that and this user may."""
    with contextlib.suppress(OSError, NotImplementedError):
        os.link(target, name, follow_symlinks=False)
        return True
    return False


def _put_back(entry: Entry, kept: bool) -> None:
    if not kept:
        raise FileExistsError  # the old file is gone: the next command ends what the journal began
    entry.target.replace(entry.staged)
    entry.replaced.replace(entry.target)


def _exchange_back(staged: Path, target: Path) -> None:
    if not exchange_atomically(staged, target):
        raise FileExistsError


def exchange_atomically(staged: Path, target: Path) -> bool:
    """Exchange two directories in one step, and return whether the system could do that."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    return rename is not None and rename(_HERE, os.fsencode(staged), _HERE, os.fsencode(target), _EXCHANGE) == 0


def _finish(entry: Entry) -> None:
    """Do what is left to do of an entry of a committed journal."""
    if not entry.done:
        if entry.certificate is not None and certificate_digest(entry.staged) != entry.certificate:
            raise InputError(
                f"the release that was to become {entry.target} is neither there nor staged beside it. Make it again, "
                f"after removing {journal_path(entry.target)}."
            )
        _place(entry, contextlib.ExitStack())  # a step that fails is taken again by the next command
    if os.path.lexists(entry.target) and (
        entry.certificate is not None or os.lstat(entry.target).st_ino == entry.number
    ):
        _set_mode(entry.target, entry.mode)
    _remove_replaced(entry)


def _set_mode(path: Path, mode: int) -> None:
    if os.name != "posix":
        return
    handle = open_without_waiting(path)
    try:
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def _remove_replaced(entry: Entry) -> None:
    """Remove what was at the target before: of a directory that was exchanged, it has the staged name."""
    for left in (entry.replaced, *([entry.staged] if entry.certificate is not None else [])):
        remove(left)


def remove(path: Path) -> None:
    """Remove a file, or a directory with its contents, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
