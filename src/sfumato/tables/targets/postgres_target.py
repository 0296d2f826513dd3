"""Write a release as a table of a PostgreSQL server, with its certificate in another table, in one transaction.

An advisory lock on the server belongs to the run that staged a table. The lock ends with the connection of that run.
Until a table is published, nobody but its owner has privileges on it, whatever the defaults of its schema are.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
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
from sfumato.tables.targets.database_publication import (
    WrittenTable,
    certified_tables,
    rename_staged,
    store_certificate,
)
from sfumato.tables.targets.database_types import as_stored, refuse_nul, stored_schema, unsupported_type
from sfumato.tables.targets.file_writers import Batches, row_groups
from sfumato.tables.targets.journal import Transaction, text_digest
from sfumato.tables.targets.staging import Stage
from sfumato.tables.targets.target import CertifiedTable, ReleasePage, stage_pages

FORMAT = "PostgreSQL"
ROWS = 1 << 16
MOST_BYTES = 63  # of a name; the server would silently cut off a longer one
MOST_COLUMNS = 1600
LOCK_TIMEOUT = "60s"  # how long to wait for others who read the table to be replaced
CERTIFICATE_COLUMNS = "table_name text PRIMARY KEY, certificate text NOT NULL, written_at text NOT NULL"
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
    """A table on a server. One connection writes, and others read back what was written."""

    def __init__(self, location: ServerLocation) -> None:
        self._location = location
        self._token = secrets.token_hex(8)
        self._tables: list[WrittenTable] = []
        self._sources: list[PostgresSource] = []
        self._staged: list[Relation] = []
        self._grants: list[list[tuple[str, str]]] = []  # of each table: to whom, and which privilege
        self._connection: Any = None
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        check_table_name(self._location.table)
        self._connection = open_postgres(self._location, OutputError)
        with self._writing():
            self._connection.execute("SELECT pg_advisory_lock(%s)", (_lock_key(self._token),))
            self._connection.commit()
            _drop_abandoned(self._connection)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import psycopg

        if self._connection is None:
            return
        self._close_sources()
        with suppress(psycopg.Error):  # the earlier error is the one to report
            self._connection.rollback()
            for staged in self._staged:
                self._connection.execute(f"DROP TABLE IF EXISTS {staged.sql}")
            self._connection.commit()
        self._connection.close()

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        location = self._location.sensitive if self._tables else self._location
        check_column_names(schema.names, most_bytes=MOST_BYTES)
        stored, columns = declared_columns(schema)
        if len(stored) > MOST_COLUMNS:
            raise OutputError(
                f"the release has more columns than the {MOST_COLUMNS:,} that a table in {FORMAT} can have. Write "
                "Parquet or CSV."
            )
        with self._writing():
            relation = _relation(self._connection, location)
            staged = Relation(relation.schema, f"{STAGE}{self._token}_{len(self._tables)}")
            self._staged.append(staged)
            self._connection.execute(f"CREATE TABLE {staged.sql} ({columns})")
            self._grants.append(_privileges_of_others(self._connection, staged))
            for grantee in {grantee for grantee, _ in self._grants[-1]}:
                self._connection.execute(f"REVOKE ALL ON {staged.sql} FROM {grantee}")
            with self._connection.cursor().copy(f"COPY {staged.sql} FROM STDIN (FORMAT csv)") as copy:
                for group in row_groups(schema, batches, ROWS):
                    copy.write(_csv_text(as_stored(group, stored, FORMAT)))
            self._connection.commit()
        source = PostgresSource(self._location, staged)
        self._tables.append(WrittenTable(relation, source))
        self._sources.append(source)
        return source

    def certified(self) -> list[CertifiedTable]:
        return certified_tables(self._tables)

    def publish(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        self._close_sources()  # an open reader would prevent the renaming of its table
        transaction = Transaction(self._location, text_digest(certificate))
        with Stage() as stage:
            main = self._journal_base(stage) if pages else None
            stage_pages(stage, pages)
            stage.publish_with(transaction, partial(self._rename, certificate), main)

    def _journal_base(self, stage: Stage) -> Path | None:
        """Stage an empty file, beside which the next command on this table finds what a killed run has left.

        Without the right to write to the working directory, commands on the pages find it.
        """
        base = self._location.journal_base
        if not os.access(base.parent, os.W_OK | os.X_OK):
            return None
        stage.withdraw(stage.path(base))
        return base

    def _rename(self, certificate: str) -> None:
        with self._writing():
            self._connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            for (relation, _), staged, grants in zip(self._tables, self._staged, self._grants, strict=True):
                rename_staged(self._connection.execute, staged, relation)
                for grantee, privilege in grants:
                    self._connection.execute(f"GRANT {privilege} ON {relation.sql} TO {grantee}")
            store_certificate(
                self._connection.execute,
                [table.relation for table in self._tables],
                certificate,
                certificates=Relation(self._tables[0].relation.schema, CERTIFICATES).sql,
                columns=CERTIFICATE_COLUMNS,
                parameter="%s",
            )
            self._connection.commit()
        self._staged = []

    def _close_sources(self) -> None:
        for source in self._sources:
            source.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Replace the messages of server and library, which may hold cells or a password."""
        import psycopg

        shown = self._location.shown
        try:
            yield
        except psycopg.errors.InsufficientPrivilege:
            raise OutputError(f"no permission to write {shown}. Ask for the right to CREATE in its schema.") from None
        except psycopg.errors.DependentObjectsStillExist:
            raise OutputError(
                f"cannot replace {shown}: views or other tables depend on it. Drop them first, or choose another name."
            ) from None
        except psycopg.errors.LockNotAvailable:
            raise OutputError(f"{shown} is in use by other users. Run again when they are done.") from None
        except (psycopg.errors.DiskFull, psycopg.errors.ConfigurationLimitExceeded):
            raise OutputError(f"no space left for {shown}; it was not written. Free some space there.") from None
        except psycopg.Error as error:
            reason = error.sqlstate or type(error).__name__
            raise OutputError(
                f"cannot write {shown} (SQLSTATE {reason}). Check the connection, and run again."
            ) from None


def check_server(location: ServerLocation) -> bool:
    """Refuse, before any work is done, an output that cannot take a table of a release. Return whether it exists."""
    check_table_name(location.table)
    with closing(open_postgres(location, OutputError)) as connection:
        relation = _relation(connection, location)
        known, _ = list_relations(connection)
    return any((relation.schema, relation.name) == (table.schema, table.name) for table in known)


def drop_staged(location: ServerLocation) -> None:
    """Drop the tables that killed runs have staged on a server, as far as this user may."""
    try:
        import psycopg
    except ImportError:
        return  # opening the table says which package is missing

    # Opening the table reports what is wrong with the server.
    with suppress(psycopg.Error, InputError), closing(open_postgres(location, InputError)) as connection:
        _drop_abandoned(connection)


def _drop_abandoned(connection: Any) -> None:
    """Drop the tables of killed runs, whose locks are free."""
    known, _ = list_relations(connection)
    for relation in known:
        if not relation.name.startswith(STAGE):
            continue
        key = _lock_key(relation.name.removeprefix(STAGE).partition("_")[0])
        if connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (key,)).fetchone()[0]:
            owned = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = %s::regclass"
            if connection.execute(owned, (relation.sql,)).fetchone()[0]:
                connection.execute(f"DROP TABLE IF EXISTS {relation.sql}")
    connection.commit()


def certificate_on_server(location: ServerLocation) -> str | None:
    """Return the certificate of a table, or None if there is none or it cannot be read."""
    import psycopg

    try:
        with closing(open_postgres(location, InputError)) as connection:
            known, default_schemas = list_relations(connection)
            relation = find_relation(location.table, known, default_schemas, "the database")
            table = Relation(relation.schema, CERTIFICATES)
            if table not in known:
                return None
            query = f"SELECT certificate FROM {table.sql} WHERE table_name = %s"  # noqa: S608
            row = connection.execute(query, (relation.name,)).fetchone()
    except (psycopg.Error, InputError):
        return None  # opening the release reports what is wrong with the database
    return None if row is None else str(row[0])


def _relation(connection: Any, location: ServerLocation) -> Relation:
    """Return the table that the release goes to, if this user may create or replace it."""
    table = check_table_name(location.table)
    schema, point, name = table.partition(".")
    if not point:
        schema, name = connection.execute("SELECT current_schema()").fetchone()[0] or "public", table
    check_table_name(name)
    if len(name.encode()) > MOST_BYTES:
        raise UsageError(f"the name of the table is longer than {MOST_BYTES} bytes. Choose a shorter one.")
    privilege = connection.execute(
        "SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = %s", (schema,)
    ).fetchone()
    if privilege is None:
        raise OutputError(
            f"there is no schema {schema!r} in {ServerLocation(location.address, None).shown}. Create it first."
        )
    if not privilege[0]:
        raise OutputError(f"no permission to write {location.shown}. Ask for the right to CREATE in its schema.")
    existing = connection.execute(
        "SELECT c.relkind, pg_has_role(c.relowner, 'USAGE')"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s",
        (schema, name),
    ).fetchone()
    if existing is not None and existing[0] not in ("r", "p"):
        raise UsageError(
            f"the output {location.shown} is not a table. Name a table: views and other objects are never replaced."
        )
    if existing is not None and not existing[1]:
        raise OutputError(
            f"no permission to replace {location.shown}, which belongs to another user. Choose another name."
        )
    return Relation(schema, name)


def _privileges_of_others(connection: Any, relation: Relation) -> list[tuple[str, str]]:
    """Return what others than its owner may do with a new table by the default privileges of its schema."""
    rows = connection.execute(
        "SELECT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END,"
        " acl.privilege_type FROM pg_class c, aclexplode(c.relacl) acl"
        " WHERE c.oid = %s::regclass AND acl.grantee <> c.relowner",
        (relation.sql,),
    ).fetchall()
    return [(str(grantee), str(privilege)) for grantee, privilege in rows]


def _lock_key(token: str) -> int:
    digest = hashlib.sha256(f"{STAGE}{token}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def declared_columns(schema: pa.Schema) -> tuple[pa.Schema, str]:
    """Return the columns as they are stored and as SQL declares them. Refuses a type that would not read back."""
    stored = stored_schema(schema, FORMAT)
    return stored, ", ".join(f"{quoted(field.name)} {_declared(field)}" for field in stored)


def _declared(field: pa.Field) -> str:
    for is_type, name in _TYPES:
        if is_type(field.type):
            return name
    if types.is_timestamp(field.type):
        return "timestamp" if field.type.tz is None else "timestamp with time zone"
    if types.is_decimal(field.type) and field.type.scale >= 0:
        return f"numeric({field.type.precision}, {field.type.scale})"
    raise unsupported_type(field, FORMAT)


def _csv_text(table: pa.Table) -> bytes:
    """Write the rows as COPY reads them: text in quotes, null as an empty cell."""
    refuse_nul(table, FORMAT)
    for index, column in enumerate(table.columns):
        if types.is_binary(column.type):
            values = [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
            table = table.set_column(index, table.column_names[index], pa.array(values, pa.string()))
    sink = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    pyarrow.csv.write_csv(table, sink, options)
    return sink.getvalue()
