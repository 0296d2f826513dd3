"""The location of a table, parsed from its name: a file, a directory of Parquet files, or a table in a database.

    patients.csv, patients.parquet ...              a file; the suffix gives its format
    patients/                                       a directory of Parquet files
    hospital.duckdb#patients, hospital.sqlite#patients
    postgresql://user@host:port/database#schema.table

A name may hold a password, which serves to connect and nothing else. Messages, records and pages use ``shown``, the
name without it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from sfumato.errors import UsageError
from sfumato.files.regular_file import open_regular

CERTIFICATE = ".sfumato.json"
CODEBOOK = ".codebook.html"
DATABASE_SUFFIXES = {".duckdb": "duckdb", ".ddb": "duckdb", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": None}
_IN_DATABASE = re.compile(r"(?P<file>.+?\.(?:duckdb|ddb|sqlite3?|db))#(?P<table>.*)", re.IGNORECASE | re.DOTALL)
_SERVER = re.compile(r"postgres(?:ql)?:/", re.IGNORECASE)
_HEADER_BYTES = 16
_SQLITE = b"SQLite format 3\0"
_DUCKDB = b"DUCK"
_DUCKDB_AT = 8


@dataclass(frozen=True)
class _PathLocation:
    """A table that is a file or a directory of its own."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def home(self) -> Path:
        """The directory for other files of this release, such as taxonomies."""
        return self.path.absolute().parent


@dataclass(frozen=True)
class FileLocation(_PathLocation):
    """A file that is a table."""

    @property
    def shown(self) -> str:
        """The name that messages and pages use."""
        return str(self.path)

    @property
    def recorded(self) -> str:
        """The absolute name that the run record uses."""
        return str(self.path.absolute())

    @property
    def sensitive(self) -> FileLocation:
        """The location of the second table, in a release that has two."""
        return FileLocation(sensitive_path(self.path))

    def beside(self, suffix: str) -> Path:
        """Return the path of a file about this table, beside it."""
        return self.path.with_name(self.path.name + suffix)


@dataclass(frozen=True)
class DirectoryLocation(_PathLocation):
    """A directory whose Parquet files are one table."""

    @property
    def shown(self) -> str:
        return f"{self.path}{os.sep}"

    @property
    def recorded(self) -> str:
        return f"{self.path.absolute()}{os.sep}"

    @property
    def sensitive(self) -> DirectoryLocation:
        # Readers of directories skip names that begin with an underscore. Both tables can therefore share one
        # directory, which appears as a whole.
        return DirectoryLocation(self.path / "_sensitive")

    @property
    def certificate(self) -> Path:
        return self.path / f"_certificate{CERTIFICATE}"

    def beside(self, suffix: str) -> Path:
        return self.path.absolute().with_name(self.path.absolute().name + suffix)


@dataclass(frozen=True)
class DatabaseLocation:
    """A table in the file of an embedded database."""

    kind: str  # duckdb or sqlite
    path: Path
    table: str | None

    @property
    def shown(self) -> str:
        return str(self.path) if self.table is None else f"{self.path}#{self.table}"

    @property
    def recorded(self) -> str:
        return replace(self, path=self.path.absolute()).shown

    @property
    def name(self) -> str:
        return self.path.name if self.table is None else self.table

    @property
    def home(self) -> Path:
        return self.path.absolute().parent

    @property
    def sensitive(self) -> DatabaseLocation:
        return replace(self, table=f"{self.table}_sensitive")

    def beside(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{_as_file_name(self.name)}{suffix}")


@dataclass(frozen=True)
class ServerLocation:
    """A table on a PostgreSQL server."""

    address: str = field(repr=False)  # as the user gave it; it may hold a password
    table: str | None

    @property
    def shown(self) -> str:
        return without_password(self.address) + ("" if self.table is None else f"#{self.table}")

    @property
    def recorded(self) -> str:
        return self.shown

    @property
    def name(self) -> str:
        return "the database" if self.table is None else self.table

    @property
    def home(self) -> Path:
        return Path.cwd()

    @property
    def sensitive(self) -> ServerLocation:
        return replace(self, table=f"{self.table}_sensitive")

    def beside(self, suffix: str) -> Path:
        return Path(f"{_as_file_name(self.name)}{suffix}")

    @property
    def journal_base(self) -> Path:
        """The name in the working directory beside which pages about this table are published."""
        return self.home / f"{_as_file_name(self.name)}-{hashlib.sha256(self.shown.encode()).hexdigest()[:8]}"


Location: TypeAlias = FileLocation | DirectoryLocation | DatabaseLocation | ServerLocation


def location_of(name: str | os.PathLike[str]) -> Location:
    """Parse the name of a table. The table need not exist; readers check that."""
    text = os.fspath(name)
    if _SERVER.match(text):
        return _server(text, is_text=isinstance(name, str))
    path = Path(text)
    try:
        if path.is_dir():
            return DirectoryLocation(path)
        exists = path.exists()
        if not exists and _is_unfinished_directory(path):
            return DirectoryLocation(path)
    except (OSError, ValueError):  # whoever opens the file reports the error
        return FileLocation(path)
    match = None if exists else _IN_DATABASE.fullmatch(text)
    if match is not None:
        return _in_file(Path(match["file"]), match["table"])
    if text.endswith(("/", os.sep)):
        return DirectoryLocation(path)
    if path.suffix.lower() in DATABASE_SUFFIXES:
        return _in_file(path, None)
    return FileLocation(path)


def shown_name(data: object) -> str:
    """Return the name of a table without secrets. Anything but a name is returned as text."""
    return location_of(data).shown if isinstance(data, str | os.PathLike) else str(data)


def sensitive_path(target: Path) -> Path:
    """Return the path of the second table: ``release.sensitive.csv.gz`` beside ``release.csv.gz``."""
    suffixes = "".join(target.suffixes[-2:]) if target.suffix.lower() in {".gz", ".zst"} else target.suffix
    stem = target.name[: len(target.name) - len(suffixes)]
    return target.with_name(f"{stem}.sensitive{suffixes}")


def certificate_path(release: Path) -> Path:
    return release.with_name(release.name + CERTIFICATE)


def codebook_path(release: str | os.PathLike[str]) -> Path:
    """Return the path of the codebook: beside the release, or in the working directory for a table on a server."""
    return location_of(release).beside(CODEBOOK)


def release_files(location: Location, *, separated: bool = False, pages: Iterable[Path] = ()) -> list[str]:
    """List what belongs to a release and is published with it, without secrets.

    These are its tables, the certificate if it is a file of its own, and the pages that were asked for.
    """
    tables = [location.shown, *([location.sensitive.shown] if separated else [])]
    certificate = [str(certificate_path(location.path))] if isinstance(location, FileLocation) else []
    return [*tables, *certificate, *map(str, pages)]


def without_password(address: str) -> str:
    """Reduce an address to user, host and database: other settings may hold secrets too."""
    scheme, _, rest = address.partition("://")
    rest, _, settings = rest.partition("?")
    if "@" in settings:  # either a password that was not escaped or a setting; there is no way to know
        return f"{scheme}://..."
    # The login ends at the last @, since a password that was not escaped may hold one as well.
    login, at, server = rest.rpartition("@")
    return f"{scheme}://{login.partition(':')[0]}{at}{server}"


def _server(text: str, *, is_text: bool) -> ServerLocation:
    if not is_text or "://" not in text:
        raise UsageError(
            "the address of a database was given as a path, which loses a slash. Give it as text, such as "
            "'postgresql://user@host/database#table'."
        )
    # The table follows the last #, since a password may hold one: everything after it is shown.
    address, hash_sign, table = text.rpartition("#")
    if not hash_sign or "@" in table:
        return ServerLocation(text if not hash_sign else address, None)
    return ServerLocation(address, table or None)


def _in_file(path: Path, table: str | None) -> DatabaseLocation:
    kind = DATABASE_SUFFIXES[path.suffix.lower()]
    try:
        with open_regular(path) as file:
            header = file.read(_HEADER_BYTES)
    except (OSError, ValueError):
        header = b""
    # The first bytes of a file are a better sign of its format than its name.
    if header == _SQLITE:
        kind = "sqlite"
    elif header[_DUCKDB_AT:].startswith(_DUCKDB):
        kind = "duckdb"
    return DatabaseLocation(kind or "", path, table or None)


def _is_unfinished_directory(path: Path) -> bool:
    """Return whether a run was killed between the two renames that replace a directory."""
    from sfumato.tables.targets.file_publication import lists_directory
    from sfumato.tables.targets.journal import journal_path

    return os.path.lexists(journal_path(path)) and lists_directory(path)


def _as_file_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)
