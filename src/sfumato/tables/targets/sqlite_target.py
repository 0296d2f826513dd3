"""A release as a table of a SQLite file, its certificate in a table beside.

Rows go into a table under another name, which is renamed in one transaction. Whose that table is, a locked file beside
the database says: a run that was killed has lost its lock, and the next run drops its table.
"""

from __future__ import annotations

import datetime
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
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
from sfumato.tables.targets.database_types import LARGEST_INTEGER, as_stored, stored_schema, unsupported_type
from sfumato.tables.targets.digests import table_digest
from sfumato.tables.targets.file_writers import Batches, row_groups
from sfumato.tables.targets.staging import MARK, Stage, cannot_write, check_target, current_mask
from sfumato.tables.targets.target import Certified

FORM = "SQLite"
MOST_COLUMNS = 2000
MOST_DIGITS = 38


class SqliteTarget:
    """A table of a SQLite file; a file that is not there yet is made, and removed again when nothing is published."""

    def __init__(self, place: DatabaseLocation) -> None:
        self._place = place
        self._path = place.path
        self._stage = Stage()
        self._tables: list[tuple[str, str, SqliteSource]] = []  # the name, the one until then, to read
        self._made = False
        self._token = ""

    def __enter__(self) -> Self:
        check_sqlite(self._place, 1)
        self._token = owner_token(self._stage, self._path)
        with self._writing():
            self._made = make_file(self._path)
            self._connection = open_sqlite(self._path, "rw")
            # What is dropped is also overwritten; and a view on the old table must not keep the new one from its name.
            for setting in ("secure_delete = ON", "legacy_alter_table = ON", "foreign_keys = OFF"):
                self._connection.execute(f"PRAGMA {setting}")
            drop_abandoned(list_relations(self._connection), self._path, self._connection.execute)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            with suppress(sqlite3.Error):  # what went wrong before is the error to tell
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                for _, staged, _ in self._tables:
                    connection.execute(f"DROP TABLE IF EXISTS {quoted(staged)}")
            connection.close()
        if self._made:
            remove_database(self._path, "-journal", "-wal", "-shm")
        self._stage.__exit__(kind, error, trace)

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        place = self._place.sensitive if self._tables else self._place
        name, staged = check_table_name(place.table), f"{STAGE}{self._token}_{len(self._tables)}"
        check_column_names(schema.names)
        stored = stored_schema(schema, FORM)
        columns = ", ".join(f"{quoted(field.name)} {_declared(field)}" for field in stored)
        if len(stored) > MOST_COLUMNS:
            raise OutputError(f"the release has more than the {MOST_COLUMNS:,} columns of a table in SQLite.")
        marks = ", ".join("?" * len(stored))
        with self._writing():
            self._connection.execute(f"CREATE TABLE {quoted(staged)} ({columns})")
            insert = f"INSERT INTO {quoted(staged)} VALUES ({marks})"  # noqa: S608
            for group in row_groups(schema, batches, FETCHED):
                cells = [_cells(column) for column in as_stored(group, stored, FORM).columns]
                with self._transaction():
                    self._connection.executemany(insert, zip(*cells, strict=True))
        source = SqliteSource.staged(self._path, staged)
        self._tables.append((name, staged, source))
        return source

    def certified(self) -> list[Certified]:
        found: list[Certified] = []
        for name, _, source in self._tables:
            size, digest = table_digest(source)
            found.append({"name": name, "bytes": size, "sha256": digest})
        return found

    def publish(self, certificate: str) -> None:
        if self._made:
            self._path.chmod(0o666 & ~current_mask())
        with self._writing(), self._transaction():
            for name, staged, _ in self._tables:
                self._connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
                self._connection.execute(f"ALTER TABLE {quoted(staged)} RENAME TO {quoted(name)}")
            self._connection.execute(
                f"CREATE TABLE IF NOT EXISTS {CERTIFICATES}"
                " (table_name TEXT PRIMARY KEY, certificate TEXT NOT NULL, written_at TEXT NOT NULL)"
            )
            for name, *_ in self._tables:
                self._connection.execute(f"DELETE FROM {CERTIFICATES} WHERE table_name = ?", (name,))  # noqa: S608
            self._connection.execute(
                f"INSERT INTO {CERTIFICATES} VALUES (?, ?, ?)",  # noqa: S608
                (self._tables[0][0], certificate, now()),
            )
        self._tables, self._made = [], False

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


def check_sqlite(place: DatabaseLocation, tables: int) -> None:
    """Refuse what can be seen to be no place for a release before any work is done."""
    names = [check_table_name(one.table) for one in (place, place.sensitive)[:tables]]
    check_target(place.path)
    if not place.path.exists():
        return
    try:
        with closing(open_sqlite(place.path, "rw")) as connection:
            known = {one.name.casefold(): one for one in list_relations(connection)}
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise _cannot_write(place.path, error) from None
    for name in names:
        if name.casefold() in known and known[name.casefold()].view:
            raise UsageError(f"the output {place.shown} is a view. Name a table: a view is never replaced.")


def certificate_in_sqlite(place: DatabaseLocation) -> str | None:
    try:
        with closing(open_sqlite(place.path, "ro")) as connection:
            known = list_relations(connection)
            if all(one.name != CERTIFICATES for one in known):
                return None
            relation = find_relation(place.table, known, [""], "the database")
            row = connection.execute(
                f"SELECT certificate FROM {CERTIFICATES} WHERE table_name = ?",  # noqa: S608
                (relation.name,),
            ).fetchone()
    except (sqlite3.Error, InputError):
        return None  # what is wrong with the database is told when it is opened
    return None if row is None else str(row[0])


def owner_token(stage: Stage, path: Path) -> str:
    """A name that is locked as long as this run lives, in a file beside the database."""
    return stage.path(path).name.removeprefix(".").partition(MARK)[0]


def drop_abandoned(known: Sequence[Relation], path: Path, execute: Callable[[str], object]) -> None:
    """Drop the tables of runs that were killed."""
    for one in known:
        if one.name.startswith(STAGE) and not one.view:
            token = one.name.removeprefix(STAGE).partition("_")[0]
            # The files of runs that are over were removed when this one made its own.
            if not path.with_name(f".{token}{MARK}{path.name}").exists():
                execute(f"DROP TABLE IF EXISTS {one.sql}")


def make_file(path: Path) -> bool:
    """Make an empty file of its owner alone where there is none."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def remove_database(path: Path, *companions: str) -> None:
    for file in (path, *(path.with_name(path.name + suffix) for suffix in companions)):
        with suppress(OSError):
            file.unlink(missing_ok=True)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _declared(field: pa.Field) -> str:
    """The type that says what a column holds when it is read again."""
    kind = field.type
    if types.is_boolean(kind):
        return "BOOLEAN"
    if types.is_integer(kind):
        return "INTEGER"
    if types.is_floating(kind):
        return "REAL"
    if types.is_string(kind):
        return "TEXT"
    if types.is_binary(kind):
        return "BLOB"
    if types.is_date(kind):
        return "DATE"
    if types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz is None else "TIMESTAMPTZ"
    if types.is_decimal(kind) and kind.precision <= MOST_DIGITS and kind.scale >= 0:
        # As text: SQLite would make a floating-point number of it.
        return f"DECIMAL_TEXT({kind.precision},{kind.scale})"
    raise unsupported_type(field, FORM)


def _cells(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if types.is_uint64(kind):
        return [_signed(value) for value in column.to_pylist()]
    if types.is_timestamp(kind):
        moments = column.cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
        mark = "" if kind.tz is None else "Z"
        return [None if moment is None else f"{moment}{mark}" for moment in moments]
    if types.is_date(kind) or types.is_decimal(kind):
        return list(column.cast(pa.string()).to_pylist())
    return list(column.to_pylist())


def _signed(value: int | None) -> int | None:
    if value is not None and value > LARGEST_INTEGER:
        raise OutputError("a number is too large for SQLite. Write Parquet, or turn the column into text.")
    return value


def _cannot_write(path: Path, error: sqlite3.Error) -> OutputError:
    code = getattr(error, "sqlite_errorname", "") or type(error).__name__
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return OutputError(f"{path} is in use by another program. Run again when it is done, or choose another output.")
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE")):
        return OutputError(f"no space left for {path}; nothing was written. Free some space or choose another disk.")
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return OutputError(f"no permission to write {path}. Choose another output.")
    if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return OutputError(f"cannot write {path}: it is not a sound SQLite database. Choose another output.")
    return OutputError(f"cannot write {path} ({code}). Choose another output.")
