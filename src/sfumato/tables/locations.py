"""Where a table is, told by its name: a file, a directory of Parquet, a table in a database.

    patients.csv, patients.parquet ...              a file, whose kind its suffix tells
    patients/                                       a directory of Parquet files
    hospital.duckdb#patients, hospital.sqlite#patients
    postgresql://user@host:port/database#schema.table

A name may hold a password. It is used to connect and nowhere else: ``shown`` is the name that messages, records and
pages have.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from sfumato.errors import UsageError

CERTIFICATE = ".sfumato.json"
DATABASE_SUFFIXES = {".duckdb": "duckdb", ".ddb": "duckdb", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": None}
_IN_DATABASE = re.compile(r"(?P<file>.+?\.(?:duckdb|ddb|sqlite3?|db))#(?P<table>.*)", re.IGNORECASE | re.DOTALL)
_SERVER = re.compile(r"postgres(?:ql)?:/", re.IGNORECASE)
_HEADER_BYTES = 16
_SQLITE = b"SQLite format 3\0"
_DUCKDB = b"DUCK"
_DUCKDB_AT = 8


@dataclass(frozen=True)
class FileLocation:
    """A file that is a table."""

    path: Path

    @property
    def shown(self) -> str:
        return str(self.path)

    @property
    def recorded(self) -> str:
        return str(self.path.absolute())

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def home(self) -> Path:
        """Where other files of this release would be, such as taxonomies."""
        return self.path.absolute().parent

    @property
    def sensitive(self) -> FileLocation:
        """Where the second table of a release is that has two."""
        return FileLocation(sensitive_path(self.path))

    def beside(self, suffix: str) -> Path:
        """A file about this table."""
        return self.path.with_name(self.path.name + suffix)


@dataclass(frozen=True)
class DirectoryLocation:
    """A directory whose Parquet files are one table."""

    path: Path

    @property
    def shown(self) -> str:
        return f"{self.path}{os.sep}"

    @property
    def recorded(self) -> str:
        return f"{self.path.absolute()}{os.sep}"

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def home(self) -> Path:
        return self.path.absolute().parent

    @property
    def sensitive(self) -> DirectoryLocation:
        # Readers of directories pass over what begins with an underscore; so the two tables are one directory, which
        # appears as a whole, and are still told apart.
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
    """A table of a PostgreSQL server."""

    address: str = field(repr=False)  # as given; it may hold a password
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


Location: TypeAlias = FileLocation | DirectoryLocation | DatabaseLocation | ServerLocation


def location_of(name: str | os.PathLike[str]) -> Location:
    """What a name means. Whether there is such a table is for the reader to see."""
    text = os.fspath(name)
    if _SERVER.match(text):
        return _server(text, plain=isinstance(name, str))
    path = Path(text)
    try:
        if path.is_dir():
            return DirectoryLocation(path)
        literal = path.exists()
    except (OSError, ValueError):  # told by whoever opens it
        return FileLocation(path)
    found = None if literal else _IN_DATABASE.fullmatch(text)
    if found is not None:
        return _in_file(Path(found["file"]), found["table"])
    if text.endswith(("/", os.sep)):
        return DirectoryLocation(path)
    if path.suffix.lower() in DATABASE_SUFFIXES:
        return _in_file(path, None)
    return FileLocation(path)


def shown_name(data: object) -> str:
    """The name of a table as people may see it, also where it is no name."""
    return location_of(data).shown if isinstance(data, str | os.PathLike) else str(data)


def sensitive_path(target: Path) -> Path:
    """Where the second table goes: ``release.csv.gz`` has ``release.sensitive.csv.gz`` beside it."""
    suffixes = "".join(target.suffixes[-2:]) if target.suffix.lower() in {".gz", ".zst"} else target.suffix
    stem = target.name[: len(target.name) - len(suffixes)]
    return target.with_name(f"{stem}.sensitive{suffixes}")


def certificate_path(release: Path) -> Path:
    return release.with_name(release.name + CERTIFICATE)


def release_files(place: Location, *, separated: bool = False) -> list[str]:
    """What a release is made of, as people may see it, the certificate last where it is a file of its own."""
    tables = [place.shown, *([place.sensitive.shown] if separated else [])]
    return [*tables, str(certificate_path(place.path))] if isinstance(place, FileLocation) else tables


def without_password(address: str) -> str:
    """An address with its user, host and database alone: further settings may hold secrets too."""
    scheme, _, rest = address.partition("://")
    rest, _, settings = rest.partition("?")
    if "@" in settings:  # a password that should have been escaped, or a setting: nobody can tell
        return f"{scheme}://..."
    # Up to the last @, since such a password may hold one as well.
    login, at, server = rest.rpartition("@")
    return f"{scheme}://{login.partition(':')[0]}{at}{server}"


def _server(text: str, *, plain: bool) -> ServerLocation:
    if not plain or "://" not in text:
        raise UsageError(
            "the address of a database was given as a path, which loses a slash. Give it as text, such as "
            "'postgresql://user@host/database#table'."
        )
    # The last #, for the same reason: what follows is shown.
    address, hash_sign, table = text.rpartition("#")
    if not hash_sign or "@" in table:
        return ServerLocation(text if not hash_sign else address, None)
    return ServerLocation(address, table or None)


def _in_file(path: Path, table: str | None) -> DatabaseLocation:
    kind = DATABASE_SUFFIXES[path.suffix.lower()]
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except (OSError, ValueError):
        header = b""
    # What a file is, its first bytes tell better than its name.
    if header == _SQLITE:
        kind = "sqlite"
    elif header[_DUCKDB_AT:].startswith(_DUCKDB):
        kind = "duckdb"
    return DatabaseLocation(kind or "", path, table or None)


def _as_file_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)
