"""Write a release as a table of a DuckDB file, with its certificate in another table, in one transaction."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from sfumato.errors import InputError, OutputError, UsageError
from sfumato.tables.databases import (
    CERTIFICATES,
    STAGE,
    Relation,
    check_column_names,
    check_table_name,
    find_relation,
)
from sfumato.tables.locations import DatabaseLocation
from sfumato.tables.sources.duckdb_source import SCHEMA, DuckdbSource, check_package, list_relations, open_duckdb
from sfumato.tables.sources.source import Source
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

FORMAT = "DuckDB"
MOST_DIGITS = 38
ROWS = 122_880  # of a row group in the file
CERTIFICATE_COLUMNS = "table_name VARCHAR, certificate VARCHAR NOT NULL, written_at VARCHAR NOT NULL"


class DuckdbTarget:
    """A table of a DuckDB file. The file is open from the start: DuckDB allows only one program to write to it."""

    def __init__(self, location: DatabaseLocation) -> None:
        self._location = location
        self._stage = Stage()
        self._tables: list[StagedTable] = []
        self._created = False
        self._token = ""
        self._opened: AbstractContextManager[Any] | None = None

    def __enter__(self) -> Self:
        path = self._location.path
        check_target(path)
        self._token = owner_token(self._stage, path)
        created = not path.exists()
        mask = os.umask(0o077) if created else None  # the file is private until it is published
        try:
            opened = open_duckdb(path, OutputError, read_only=False)
            self._connection = opened.__enter__()
            self._opened, self._created = opened, created
        finally:
            if mask is not None:
                os.umask(mask)
        with self._writing():
            drop_abandoned(list_relations(self._connection), path, self._connection.execute)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import duckdb

        if self._opened is not None:
            with suppress(duckdb.Error):  # the earlier error is the one to report
                for table in self._tables:
                    self._connection.execute(f"DROP TABLE IF EXISTS {table.staged.sql}")
                if self._tables:
                    self._connection.execute("CHECKPOINT")
            self._opened.__exit__(None, None, None)
        if self._created:
            remove_database(self._location.path, ".wal")
        self._stage.__exit__(kind, error, trace)

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        location = self._location.sensitive if self._tables else self._location
        check_column_names(schema.names)
        stored = stored_columns(schema)
        with self._writing():
            relation = _relation(location, list_relations(self._connection), _schemas(self._connection))
            staged = Relation(relation.schema, f"{STAGE}{self._token}_{len(self._tables)}")
            self._insert(f"CREATE TABLE {staged.sql} AS", stored.empty_table())
            source = DuckdbSource.staged(self._cursor, staged, f"the table {relation.shown!r} of {location.path}")
            self._tables.append(StagedTable(relation, staged, source))
            for group in row_groups(schema, batches, ROWS):
                self._insert(f"INSERT INTO {staged.sql}", as_stored(group, stored, FORMAT))
        return source

    def _insert(self, statement: str, rows: pa.Table) -> None:
        self._connection.register("sfumato_rows", rows)
        try:
            self._connection.execute(f"{statement} SELECT * FROM sfumato_rows")  # noqa: S608
        finally:
            self._connection.unregister("sfumato_rows")

    def _cursor(self) -> AbstractContextManager[Any]:
        return closing(self._connection.cursor())

    def certified(self) -> list[CertifiedTable]:
        return certified_tables(self._tables)

    def publish(self, certificate: str) -> None:
        import duckdb

        if self._created:
            self._location.path.chmod(0o666 & ~current_mask())
        with self._writing():
            self._connection.execute("BEGIN")
            try:
                put_in_place(
                    self._connection.execute,
                    self._tables,
                    certificate,
                    certificates=Relation(self._tables[0].relation.schema, CERTIFICATES).sql,
                    columns=CERTIFICATE_COLUMNS,
                    parameter="?",
                )
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(duckdb.Error):
                    self._connection.execute("ROLLBACK")
                raise
            self._tables, self._created = [], False
            self._connection.execute("CHECKPOINT")  # moves the log into the file that is passed on

    @contextmanager
    def _writing(self) -> Iterator[None]:
        import duckdb

        path = self._location.path
        try:
            yield
        except duckdb.Error as error:
            if "space" in str(error):
                message = f"no space left for {path}; nothing was written. Free some space or choose another disk."
            elif isinstance(error, duckdb.DependencyException | duckdb.CatalogException):
                message = (
                    f"cannot write {self._location.shown}: another table depends on the existing one. Choose another "
                    "output."
                )
            else:
                message = f"cannot write {path} ({type(error).__name__}). Choose another output."
            raise OutputError(message) from None
        except OSError as error:
            raise cannot_write(path, error) from None


def stored_columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns as they are stored. Refuses a type that would not read back."""
    stored = stored_schema(schema, FORMAT)
    for field in stored:
        if pa.types.is_decimal(field.type) and field.type.precision > MOST_DIGITS:
            raise unsupported_type(field, FORMAT)
    return stored


def check_duckdb(location: DatabaseLocation, tables: int) -> None:
    """Refuse, before any work is done, an output that cannot take a release of that many tables."""
    wanted = [table for table in (location, location.sensitive)[:tables] if check_table_name(table.table)]
    check_target(location.path)
    if not location.path.exists():
        check_package(location.path, OutputError)
        known: list[Relation] = []
        schemas = [SCHEMA]
    else:
        with open_duckdb(location.path, OutputError, read_only=False) as connection:
            known, schemas = list_relations(connection), _schemas(connection)
    for table in wanted:
        _relation(table, known, schemas)


def certificate_in_duckdb(location: DatabaseLocation) -> str | None:
    """Return the certificate of a table, or None if there is none or it cannot be read."""
    try:
        with open_duckdb(location.path, InputError, read_only=True) as connection:
            known = list_relations(connection)
            relation = find_relation(location.table, known, [SCHEMA], "the database")
            table = Relation(relation.schema, CERTIFICATES)
            if table not in known:
                return None
            query = f"SELECT certificate FROM {table.sql} WHERE table_name = ?"  # noqa: S608
            row = connection.execute(query, [relation.name]).fetchone()
    except InputError:
        return None  # opening the release reports what is wrong with the database
    return None if row is None else str(row[0])


def _schemas(connection: Any) -> list[str]:
    rows = connection.execute(
        "SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database() AND NOT internal"
    ).fetchall()
    return [SCHEMA, *(name for (name,) in rows)]


def _relation(location: DatabaseLocation, known: list[Relation], schemas: list[str]) -> Relation:
    """Return the table that the release goes to, in an existing schema, by default the usual one."""
    table = check_table_name(location.table)
    schema, point, name = table.partition(".")
    wanted = Relation(schema, check_table_name(name)) if point else Relation(SCHEMA, table)
    if wanted.schema not in schemas:
        raise OutputError(f"there is no schema {wanted.schema!r} in {location.path}. Create it first.")
    for relation in known:
        same_name = relation.schema == wanted.schema and relation.name.casefold() == wanted.name.casefold()
        if same_name and relation.view:
            raise UsageError(f"the output {location.shown} is a view. Name a table: a view is never replaced.")
    return wanted
