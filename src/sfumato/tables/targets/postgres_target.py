"""A release as a table of a PostgreSQL server, its certificate in a table beside, both in one transaction.

Whose a staged table is, an advisory lock of the server says, which ends with the connection of its run.
"""

from __future__ import annotations

import hashlib
import io
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.csv
from pyarrow import types

from sfumato.errors import InputError, OutputError, UsageError
from sfumato.tables.databases import (
    CERTIFICATES,
    STAGE,
    Relation,
    check_column_names,
    check_table_name,
    find_relation,
    quoted,
)
from sfumato.tables.locations import ServerLocation
from sfumato.tables.sources.postgres_source import PostgresSource, list_relations, open_postgres
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.database_types import as_stored, refuse_nul, stored_schema, unsupported_type
from sfumato.tables.targets.digests import table_digest
from sfumato.tables.targets.file_writers import Batches, row_groups
from sfumato.tables.targets.sqlite_target import now
from sfumato.tables.targets.target import Certified

FORM = "PostgreSQL"
ROWS = 1 << 16
MOST_BYTES = 63  # of a name, which would be cut off without a word
MOST_COLUMNS = 1600
PATIENCE = "60s"  # for those who read the table that is to be replaced
_TYPES = [
    (types.is_boolean, "boolean"),
    (types.is_int8, "smallint"),
    (types.is_uint8, "smallint"),
    (types.is_int16, "smallint"),
    (types.is_uint16, "integer"),
    (types.is_int32, "integer"),
    (types.is_uint32, "bigint"),
    (types.is_int64, "bigint"),
    (types.is_uint64, "numeric(20, 0)"),
    (types.is_float32, "real"),
    (types.is_float64, "double precision"),
    (types.is_string, "text"),
    (types.is_binary, "bytea"),
    (types.is_date, "date"),
    (types.is_time, "time"),
]


class PostgresTarget:
    """A table of a server. Two connections: one that writes, and one that reads back what was written."""

    def __init__(self, place: ServerLocation) -> None:
        self._place = place
        self._token = secrets.token_hex(8)
        self._tables: list[tuple[Relation, Relation, PostgresSource]] = []
        self._staged: list[Relation] = []
        self._connection: Any = None

    def __enter__(self) -> Self:
        check_table_name(self._place.table)
        self._connection = open_postgres(self._place, OutputError)
        with self._writing():
            self._connection.execute("SELECT pg_advisory_lock(%s)", (_key(self._token),))
            self._connection.commit()
            self._drop_abandoned()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import psycopg

        if self._connection is None:
            return
        self._close_sources()
        with suppress(psycopg.Error):  # what went wrong before is the error to tell
            self._connection.rollback()
            for staged in self._staged:
                self._connection.execute(f"DROP TABLE IF EXISTS {staged.sql}")
            self._connection.commit()
        self._connection.close()

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        place = self._place.sensitive if self._tables else self._place
        check_column_names(schema.names, most_bytes=MOST_BYTES)
        stored = stored_schema(schema, FORM)
        if len(stored) > MOST_COLUMNS:
            raise OutputError(f"the release has more than the {MOST_COLUMNS:,} columns of a table in {FORM}.")
        columns = ", ".join(f"{quoted(field.name)} {_declared(field)}" for field in stored)
        with self._writing():
            relation = _relation(self._connection, place)
            staged = Relation(relation.schema, f"{STAGE}{self._token}_{len(self._tables)}")
            self._staged.append(staged)
            self._connection.execute(f"CREATE TABLE {staged.sql} ({columns})")
            with self._connection.cursor().copy(f"COPY {staged.sql} FROM STDIN (FORMAT csv)") as copy:
                for group in row_groups(schema, batches, ROWS):
                    copy.write(_text(as_stored(group, stored, FORM)))
            self._connection.commit()
        source = PostgresSource(self._place, staged)
        self._tables.append((relation, staged, source))
        return source

    def certified(self) -> list[Certified]:
        found: list[Certified] = []
        for relation, _, source in self._tables:
            size, digest = table_digest(source)
            found.append({"name": relation.name, "bytes": size, "sha256": digest})
        return found

    def publish(self, certificate: str) -> None:
        self._close_sources()  # who reads a table keeps it from being renamed
        first = self._tables[0][0]
        table = Relation(first.schema, CERTIFICATES).sql
        with self._writing():
            self._connection.execute(f"SET LOCAL lock_timeout = '{PATIENCE}'")
            for relation, staged, _ in self._tables:
                self._connection.execute(f"DROP TABLE IF EXISTS {relation.sql}")
                self._connection.execute(f"ALTER TABLE {staged.sql} RENAME TO {quoted(relation.name)}")
            self._connection.execute(
                f"CREATE TABLE IF NOT EXISTS {table}"
                " (table_name text PRIMARY KEY, certificate text NOT NULL, written_at text NOT NULL)"
            )
            for relation, *_ in self._tables:
                self._connection.execute(f"DELETE FROM {table} WHERE table_name = %s", (relation.name,))  # noqa: S608
            self._connection.execute(f"INSERT INTO {table} VALUES (%s, %s, %s)", (first.name, certificate, now()))  # noqa: S608
            self._connection.commit()
        self._staged = []

    def _close_sources(self) -> None:
        for *_, source in self._tables:
            source.close()

    def _drop_abandoned(self) -> None:
        """Drop the tables of runs that were killed: their locks can be had."""
        known, _ = list_relations(self._connection)
        for one in known:
            if not one.name.startswith(STAGE):
                continue
            key = _key(one.name.removeprefix(STAGE).partition("_")[0])
            if self._connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (key,)).fetchone()[0]:
                owned = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = %s::regclass"
                if self._connection.execute(owned, (one.sql,)).fetchone()[0]:
                    self._connection.execute(f"DROP TABLE IF EXISTS {one.sql}")
        self._connection.commit()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The messages of server and library may hold cells or a password."""
        import psycopg

        shown = self._place.shown
        try:
            yield
        except psycopg.errors.InsufficientPrivilege:
            raise OutputError(f"no permission to write {shown}. Ask for the right to CREATE in its schema.") from None
        except psycopg.errors.DependentObjectsStillExist:
            raise OutputError(
                f"cannot replace {shown}: views or other tables depend on it. Drop them first, or choose another name."
            ) from None
        except psycopg.errors.LockNotAvailable:
            raise OutputError(f"{shown} is in use by others. Run again when they are done.") from None
        except (psycopg.errors.DiskFull, psycopg.errors.ConfigurationLimitExceeded):
            raise OutputError(f"no space left for {shown}; nothing was written. Free some space there.") from None
        except psycopg.Error as error:
            reason = error.sqlstate or type(error).__name__
            raise OutputError(
                f"cannot write {shown} (SQLSTATE {reason}). Check the connection, and run again."
            ) from None


def check_server(place: ServerLocation) -> None:
    """Refuse what can be seen to be no place for a release before any work is done."""
    check_table_name(place.table)
    with closing(open_postgres(place, OutputError)) as connection:
        _relation(connection, place)


def certificate_on_server(place: ServerLocation) -> str | None:
    import psycopg

    try:
        with closing(open_postgres(place, InputError)) as connection:
            known, usual = list_relations(connection)
            relation = find_relation(place.table, known, usual, "the database")
            table = Relation(relation.schema, CERTIFICATES)
            if table not in known:
                return None
            query = f"SELECT certificate FROM {table.sql} WHERE table_name = %s"  # noqa: S608
            row = connection.execute(query, (relation.name,)).fetchone()
    except (psycopg.Error, InputError):
        return None  # what is wrong with the database is told when it is opened
    return None if row is None else str(row[0])


def _relation(connection: Any, place: ServerLocation) -> Relation:
    """The table that a release goes to, if it may be made there."""
    table = check_table_name(place.table)
    schema, point, name = table.partition(".")
    if not point:
        schema, name = connection.execute("SELECT current_schema()").fetchone()[0] or "public", table
    check_table_name(name)
    if len(name.encode()) > MOST_BYTES:
        raise UsageError(f"the name of the table is longer than {MOST_BYTES} bytes. Choose a shorter one.")
    found = connection.execute(
        "SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = %s", (schema,)
    ).fetchone()
    if found is None:
        raise OutputError(
            f"there is no schema {schema!r} in {ServerLocation(place.address, None).shown}. Create it first."
        )
    if not found[0]:
        raise OutputError(f"no permission to write {place.shown}. Ask for the right to CREATE in its schema.")
    there = connection.execute(
        "SELECT c.relkind, pg_has_role(c.relowner, 'USAGE')"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s",
        (schema, name),
    ).fetchone()
    if there is not None and there[0] not in ("r", "p"):
        raise UsageError(f"the output {place.shown} is no table. Name one: views and others are never replaced.")
    if there is not None and not there[1]:
        raise OutputError(
            f"no permission to replace {place.shown}, which belongs to another user. Choose another name."
        )
    return Relation(schema, name)


def _key(token: str) -> int:
    digest = hashlib.sha256(f"{STAGE}{token}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _declared(field: pa.Field) -> str:
    for holds, name in _TYPES:
        if holds(field.type):
            return name
    if types.is_timestamp(field.type):
        return "timestamp" if field.type.tz is None else "timestamp with time zone"
    if types.is_decimal(field.type) and field.type.scale >= 0:
        return f"numeric({field.type.precision}, {field.type.scale})"
    raise unsupported_type(field, FORM)


def _text(table: pa.Table) -> bytes:
    """The rows as COPY reads them: text in quotes, null as nothing."""
    refuse_nul(table, FORM)
    for place, column in enumerate(table.columns):
        if types.is_binary(column.type):
            values = [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
            table = table.set_column(place, table.column_names[place], pa.array(values, pa.string()))
    sink = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    pyarrow.csv.write_csv(table, sink, options)
    return sink.getvalue()
