"""Write a release as a table of a SQLite file, with its certificate in another table, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import pyarrow as pa
from pyarrow import types

from sfumato.errors import InputError, OutputError, UsageError
from sfumato.tables.databases import (
    CERTIFICATES,
    FETCHED,
    Relation,
    check_column_names,
    check_table_name,
    find_relation,
    quoted,
)
from sfumato.tables.locations import DatabaseLocation
from sfumato.tables.sources.source import Source
from sfumato.tables.sources.sqlite_source import Connect, SqliteSource, list_relations, open_sqlite
from sfumato.tables.targets.database_publication import (
    StagedDatabase,
    WrittenTable,
    certified_tables,
    check_copy,
    store_certificate,
)
from sfumato.tables.targets.database_types import as_stored, stored_schema, unsupported_type
from sfumato.tables.targets.file_writers import Batches, row_groups
from sfumato.tables.targets.staging import cannot_write, check_target, no_space_left
from sfumato.tables.targets.target import CertifiedTable, ReleasePage

FORMAT = "SQLite"
STAGED = "sfumato_staged"
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
    """A table of a SQLite file."""

    def __init__(self, location: DatabaseLocation) -> None:
        self._location = location
        self._path = location.path
        self._staged = StagedDatabase(location)
        self._opened = ExitStack()
        self._tables: list[WrittenTable] = []
        self._columns: list[str] = []
        self._certified: list[CertifiedTable] = []
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        check_sqlite(self._location, 1)
        with ExitStack() as opened, self._writing():
            opened.enter_context(self._staged)
            self._connection = opened.enter_context(closing(open_sqlite(self._staged.path, "rwc")))
            # If something fails, the whole file is removed; it is synced when it is complete.
            for setting in ("journal_mode = OFF", "synchronous = OFF"):
                self._connection.execute(f"PRAGMA {setting}")
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        location = self._location.sensitive if self._tables else self._location
        relation = Relation("", check_table_name(location.table))
        check_column_names(schema.names)
        stored, columns = declared_columns(schema)
        if len(stored) > MOST_COLUMNS:
            raise OutputError(
                f"the release has more columns than the {MOST_COLUMNS:,} that a table in SQLite can have. Write "
                "Parquet or CSV."
            )
        parameters = ", ".join("?" * len(stored))
        with self._writing():
            self._connection.execute(f"CREATE TABLE {relation.sql} ({columns})")
            insert = f"INSERT INTO {relation.sql} VALUES ({parameters})"  # noqa: S608
            for group in row_groups(schema, batches, FETCHED):
                cells = [_cells(column) for column in as_stored(group, stored, FORMAT).columns]
                with _transaction(self._connection):
                    self._connection.executemany(insert, zip(*cells, strict=True))
        source = self._source(lambda: closing(open_sqlite(self._staged.path, "ro")), relation)
        self._tables.append(WrittenTable(relation, source))
        self._columns.append(columns)
        return source

    def _source(self, connect: Connect, relation: Relation) -> Source:
        return SqliteSource.staged(connect, relation.name, f"the file {str(self._path)!r}")

    def certified(self) -> list[CertifiedTable]:
        self._certified = certified_tables(self._tables)
        return self._certified

    def publish(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        if self._path.exists():
            self._connection.close()
            self._staged.publish_tables(certificate, pages, partial(self._copy, certificate))
        else:
            with self._writing(), _transaction(self._connection):
                self._store_certificate(self._connection, certificate)
            self._connection.close()
            self._staged.publish_file(pages)

    def _copy(self, certificate: str) -> None:
        """Copy the tables into the existing database, in one transaction."""
        with self._writing(), closing(open_sqlite(self._path, "rw")) as existing:
            # Dropped data is overwritten.
            for setting in ("secure_delete = ON", "foreign_keys = OFF"):
                existing.execute(f"PRAGMA {setting}")
            existing.execute(f"ATTACH ? AS {STAGED}", [f"file:{quote(str(self._staged.path.absolute()))}?mode=ro"])
            with _transaction(existing):
                for (relation, _), columns in zip(self._tables, self._columns, strict=True):
                    existing.execute(f"DROP TABLE IF EXISTS main.{relation.sql}")
                    existing.execute(f"CREATE TABLE main.{relation.sql} ({columns})")
                    rows = f"SELECT * FROM {STAGED}.{relation.sql}"  # noqa: S608
                    existing.execute(f"INSERT INTO main.{relation.sql} {rows}")
                copied = [
                    WrittenTable(relation, self._source(lambda: nullcontext(existing), relation))
                    for relation, _ in self._tables
                ]
                check_copy(copied, self._certified)
                self._store_certificate(existing, certificate)

    def _store_certificate(self, connection: sqlite3.Connection, certificate: str) -> None:
        store_certificate(
            connection.execute,
            [table.relation for table in self._tables],
            certificate,
            certificates=f"main.{CERTIFICATES}",
            columns=CERTIFICATE_COLUMNS,
            parameter="?",
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _cannot_write(self._location.shown, error) from None
        except OSError as error:
            raise cannot_write(self._location.shown, error) from None


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself ends it if the disk is full
            connection.execute("ROLLBACK")
        raise


def undo_transaction(path: Path) -> None:
    """Let SQLite undo what a killed run has left in its journal. Whoever only reads could not do that."""
    with suppress(OSError, sqlite3.Error):  # opening the database reports what is wrong with it
        if path.with_name(f"{path.name}-journal").stat().st_size:
            with closing(open_sqlite(path, "rw")) as connection:
                list_relations(connection)
                if connection.execute("PRAGMA journal_mode").fetchone() == ("delete",):
                    # Of a transaction that had changed nothing yet, a journal is left that SQLite removes this way.
                    for mode in ("TRUNCATE", "DELETE"):
                        connection.execute(f"PRAGMA journal_mode = {mode}")


def check_sqlite(location: DatabaseLocation, tables: int) -> list[DatabaseLocation]:
    """Refuse, before any work is done, an output that cannot take a release of that many tables.

    Return those of the tables that exist.
    """
    wanted = {check_table_name(table.table).casefold(): table for table in (location, location.sensitive)[:tables]}
    check_target(location.path)
    if not location.path.exists():
        return []
    try:
        with closing(open_sqlite(location.path, "rw")) as connection:
            known = {relation.name.casefold(): relation for relation in list_relations(connection)}
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise _cannot_write(location.shown, error) from None
    existing = {name: table for name, table in wanted.items() if name in known}
    for name, table in existing.items():
        if known[name].view:
            raise UsageError(f"the output {table.shown} is a view. Name a table: a view is never replaced.")
    return list(existing.values())


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


def _cannot_write(shown: str, error: sqlite3.Error) -> OutputError:
    code = getattr(error, "sqlite_errorname", "") or type(error).__name__
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return OutputError(
            f"{shown} is in use by another program. Run again when it is done, or choose another output."
        )
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE")):
        return no_space_left(shown)
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return OutputError(f"no permission to write {shown}. Choose another output.")
    if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return OutputError(f"cannot write {shown}: it is not a valid SQLite database. Choose another output.")
    return OutputError(f"cannot write {shown} ({code}). Choose another output.")
