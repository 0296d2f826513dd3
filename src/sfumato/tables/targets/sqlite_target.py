"""Write a release as a table of a SQLite file, with its certificate in another table.

Rows go into a table under another name, which is renamed in one transaction.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from pyarrow import types

from sfumato.errors import InputError, OutputError, UsageError
from sfumato.tables.databases import (
    CERTIFICATES,
    FETCHED,
    STAGE,
    Relation,
    check_column_names,
    check_table_name,
    find_relation,
    quoted,
)
from sfumato.tables.locations import DatabaseLocation
from sfumato.tables.sources.source import Source
from sfumato.tables.sources.sqlite_source import SqliteSource, list_relations, open_sqlite
from sfumato.tables.targets.database_publication import (
    StagedTable,
    certified_tables,
    drop_abandoned,
    owner_token,
    put_in_place,
    remove_database,
)
from sfumato.tables.targets.database_types import as_stored, stored_schema, unsupported_type
from sfumato.tables.targets.file_writers import Batches, row_groups
from sfumato.tables.targets.staging import Stage, cannot_write, check_target, current_mask
from sfumato.tables.targets.target import CertifiedTable

FORMAT = "SQLite"
MOST_COLUMNS = 2000
MOST_DIGITS = 38
CERTIFICATE_COLUMNS = "table_name TEXT PRIMARY KEY, certificate TEXT NOT NULL, written_at TEXT NOT NULL"
# The declared type of a column, from which a reader learns what it holds.
_TYPES = [
    (types.is_boolean, "BOOLEAN"),
    (types.is_integer, "INTEGER"),
    (types.is_floating, "REAL"),
    (types.is_string, "TEXT"),
    (types.is_binary, "BLOB"),
    (types.is_date, "DATE"),
]


class SqliteTarget:
    """A table of a SQLite file. A missing file is created, and removed again if nothing is published."""

    def __init__(self, location: DatabaseLocation) -> None:
        self._location = location
        self._path = location.path
        self._stage = Stage()
        self._tables: list[StagedTable] = []
        self._created = False
        self._token = ""

    def __enter__(self) -> Self:
        check_sqlite(self._location, 1)
        self._token = owner_token(self._stage, self._path)
        with self._writing():
            self._created = _create_file(self._path)
            self._connection = open_sqlite(self._path, "rw")
            # Dropped data is overwritten, and a view on the old table does not prevent the renaming of the new one.
            for setting in ("secure_delete = ON", "legacy_alter_table = ON", "foreign_keys = OFF"):
                self._connection.execute(f"PRAGMA {setting}")
            drop_abandoned(list_relations(self._connection), self._path, self._connection.execute)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            with suppress(sqlite3.Error):  # the earlier error is the one to report
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                for table in self._tables:
                    connection.execute(f"DROP TABLE IF EXISTS {table.staged.sql}")
            connection.close()
        if self._created:
            remove_database(self._path, "-journal", "-wal", "-shm")
        self._stage.__exit__(kind, error, trace)

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        location = self._location.sensitive if self._tables else self._location
        relation = Relation("", check_table_name(location.table))
        staged = Relation("", f"{STAGE}{self._token}_{len(self._tables)}")
        check_column_names(schema.names)
        stored, columns = declared_columns(schema)
        if len(stored) > MOST_COLUMNS:
            raise OutputError(
                f"the release has more columns than the {MOST_COLUMNS:,} that a table in SQLite can have. Write "
                "Parquet or CSV."
            )
        parameters = ", ".join("?" * len(stored))
        with self._writing():
            self._connection.execute(f"CREATE TABLE {staged.sql} ({columns})")
            insert = f"INSERT INTO {staged.sql} VALUES ({parameters})"  # noqa: S608
            for group in row_groups(schema, batches, FETCHED):
                cells = [_cells(column) for column in as_stored(group, stored, FORMAT).columns]
                with self._transaction():
                    self._connection.executemany(insert, zip(*cells, strict=True))
        source = SqliteSource.staged(self._path, staged.name)
        self._tables.append(StagedTable(relation, staged, source))
        return source

    def certified(self) -> list[CertifiedTable]:
        return certified_tables(self._tables)

    def publish(self, certificate: str) -> None:
        if self._created:
            self._path.chmod(0o666 & ~current_mask())
        with self._writing(), self._transaction():
            put_in_place(
                self._connection.execute,
                self._tables,
                certificate,
                certificates=CERTIFICATES,
                columns=CERTIFICATE_COLUMNS,
                parameter="?",
            )
        self._tables, self._created = [], False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _cannot_write(self._path, error) from None
        except OSError as error:
            raise cannot_write(self._path, error) from None


def check_sqlite(location: DatabaseLocation, tables: int) -> None:
    """Refuse, before any work is done, an output that cannot take a release of that many tables."""
    names = [check_table_name(table.table) for table in (location, location.sensitive)[:tables]]
    check_target(location.path)
    if not location.path.exists():
        return
    try:
        with closing(open_sqlite(location.path, "rw")) as connection:
            known = {relation.name.casefold(): relation for relation in list_relations(connection)}
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise _cannot_write(location.path, error) from None
    for name in names:
        if name.casefold() in known and known[name.casefold()].view:
            raise UsageError(f"the output {location.shown} is a view. Name a table: a view is never replaced.")


def certificate_in_sqlite(location: DatabaseLocation) -> str | None:
    """Return the certificate of a table, or None if there is none or it cannot be read."""
    try:
        with closing(open_sqlite(location.path, "ro")) as connection:
            known = list_relations(connection)
            if all(relation.name != CERTIFICATES for relation in known):
                return None
            relation = find_relation(location.table, known, [""], "the database")
            row = connection.execute(
                f"SELECT certificate FROM {CERTIFICATES} WHERE table_name = ?",  # noqa: S608
                (relation.name,),
            ).fetchone()
    except (sqlite3.Error, InputError):
        return None  # opening the release reports what is wrong with the database
    return None if row is None else str(row[0])


def _create_file(path: Path) -> bool:
    """Create an empty private file, and return whether there was none."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def declared_columns(schema: pa.Schema) -> tuple[pa.Schema, str]:
    """Return the columns as they are stored and as SQL declares them. Refuses a type that would not read back."""
    stored = stored_schema(schema, FORMAT)
    return stored, ", ".join(f"{quoted(field.name)} {_declared(field)}" for field in stored)


def _declared(field: pa.Field) -> str:
    kind = field.type
    for is_type, name in _TYPES:
        if is_type(kind):
            return name
    if types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz is None else "TIMESTAMPTZ"
    if types.is_decimal(kind) and kind.precision <= MOST_DIGITS and kind.scale >= 0:
        # Stored as text: SQLite would turn it into a floating-point number.
        return f"DECIMAL_TEXT({kind.precision},{kind.scale})"
    raise unsupported_type(field, FORMAT)


def _cells(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if types.is_timestamp(kind):
        moments = column.cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
        zone = "" if kind.tz is None else "Z"
        return [None if moment is None else f"{moment}{zone}" for moment in moments]
    if types.is_date(kind) or types.is_decimal(kind):
        return list(column.cast(pa.string()).to_pylist())
    return list(column.to_pylist())


def _cannot_write(path: Path, error: sqlite3.Error) -> OutputError:
    code = getattr(error, "sqlite_errorname", "") or type(error).__name__
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return OutputError(f"{path} is in use by another program. Run again when it is done, or choose another output.")
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE")):
        return OutputError(f"no space left for {path}; nothing was written. Free some space or choose another disk.")
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return OutputError(f"no permission to write {path}. Choose another output.")
    if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return OutputError(f"cannot write {path}: it is not a valid SQLite database. Choose another output.")
    return OutputError(f"cannot write {path} ({code}). Choose another output.")
