"""Write a release as a table of a DuckDB file, with its certificate in another table, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from sfumato.errors import InputError, OutputError, UsageError
from sfumato.tables.databases import (
    CERTIFICATES,
    Relation,
    check_column_names,
    check_table_name,
    find_relation,
    quoted,
)
from sfumato.tables.locations import DatabaseLocation
from sfumato.tables.sources.duckdb_source import (
    SCHEMA,
    Connect,
    DuckdbSource,
    check_package,
    is_full,
    list_relations,
    open_duckdb,
)
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.database_publication import (
    StagedDatabase,
    WrittenTable,
    certified_tables,
    check_copy,
    store_certificate,
)
from sfumato.tables.targets.database_types import as_stored, stored_schema, unsupported_type
from sfumato.tables.targets.file_operations import private_files
from sfumato.tables.targets.file_writers import Batches, row_groups
from sfumato.tables.targets.staging import cannot_write, check_target, no_space_left
from sfumato.tables.targets.target import CertifiedTable, ReleasePage

FORMAT = "DuckDB"
STAGED = "sfumato staged"
MOST_DIGITS = 38
ROWS = 122_880  # of a row group in the file
CERTIFICATE_COLUMNS = "table_name VARCHAR, certificate VARCHAR NOT NULL, written_at VARCHAR NOT NULL"


class DuckdbTarget:
    """A table of a DuckDB file.

    An existing file is open from the start: DuckDB allows only one program to write to it.
    """

    def __init__(self, location: DatabaseLocation) -> None:
        self._location = location
        self._staged = StagedDatabase(location)
        self._opened = ExitStack()
        self._existing: Any = None
        self._tables: list[WrittenTable] = []
        self._certified: list[CertifiedTable] = []
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        path = self._location.path
        check_target(path)
        with ExitStack() as opened:
            opened.enter_context(self._staged)
            if path.exists():
                self._existing = opened.enter_context(open_duckdb(path, OutputError, read_only=False))
            staged = open_duckdb(self._staged.path, OutputError, read_only=False, shown=path)
            self._connection = opened.enter_context(staged)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        location = self._location.sensitive if self._tables else self._location
        check_column_names(schema.names)
        stored = stored_columns(schema)
        with self._writing():
            relation = self._relation(location)
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(relation.schema)}")
            self._insert(f"CREATE TABLE {relation.sql} AS", stored.empty_table())
            for group in row_groups(schema, batches, ROWS):
                self._insert(f"INSERT INTO {relation.sql}", as_stored(group, stored, FORMAT))
            self._tables.append(WrittenTable(relation, self._source(self._cursor, relation)))
        return self._tables[-1].source

    def _relation(self, location: DatabaseLocation) -> Relation:
        if self._existing is None:
            return _relation(location, [], [SCHEMA])
        return _relation(location, list_relations(self._existing), _schemas(self._existing))

    def _source(self, connect: Connect, relation: Relation) -> Source:
        return DuckdbSource.staged(connect, relation, f"the table {relation.shown!r} of {self._location.path}")

    def _insert(self, statement: str, rows: pa.Table) -> None:
        self._connection.register("sfumato_rows", rows)
        try:
            self._connection.execute(f"{statement} SELECT * FROM sfumato_rows")  # noqa: S608
        finally:
            self._connection.unregister("sfumato_rows")

    def _cursor(self) -> AbstractContextManager[Any]:
        return closing(self._connection.cursor())

    def certified(self) -> list[CertifiedTable]:
        self._certified = certified_tables(self._tables)
        return self._certified

    def publish(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        if self._existing is None:
            with self._writing():
                self._store_certificate(self._connection, certificate)
                self._connection.execute("CHECKPOINT")
                self._connection.close()  # the log is now part of the file
            self._staged.publish_file(pages)
        else:
            with self._writing():
                self._connection.close()
            self._staged.publish_tables(certificate, pages, partial(self._copy, certificate))

    def _copy(self, certificate: str) -> None:
        """Copy the tables into the existing database, in one transaction."""
        import duckdb

        existing, where = self._existing, str(self._staged.path).replace("'", "''")
        with self._writing(), private_files():
            existing.execute(f"ATTACH '{where}' AS {quoted(STAGED)} (READ_ONLY)")
            existing.execute("BEGIN")
            try:
                for relation, _ in self._tables:
                    existing.execute(f"DROP TABLE IF EXISTS {relation.sql}")
                    query = f"SELECT * FROM {quoted(STAGED)}.{relation.sql}"  # noqa: S608
                    existing.execute(f"CREATE TABLE {relation.sql} AS {query}")
                copied = [
                    WrittenTable(relation, self._source(lambda: nullcontext(existing), relation))
                    for relation, _ in self._tables
                ]
                check_copy(copied, self._certified)
                self._store_certificate(existing, certificate)
                existing.execute("COMMIT")
            except BaseException:
                with suppress(duckdb.Error):
                    existing.execute("ROLLBACK")
                raise
            with suppress(duckdb.Error):
                existing.execute(f"DETACH {quoted(STAGED)}")
            try:
                existing.execute("CHECKPOINT")  # moves the log into the file that is passed on
            except duckdb.Error:
                # The release is in place, and DuckDB reads it from both files.
                self.warnings.append(
                    f"a part of the release is still in {self._location.path}.wal, since DuckDB could not move it into "
                    "the file (the disk may be full): pass both files on, or free some space and open the file with "
                    "DuckDB"
                )

    def _store_certificate(self, connection: Any, certificate: str) -> None:
        store_certificate(
            connection.execute,
            [table.relation for table in self._tables],
            certificate,
            certificates=Relation(self._tables[0].relation.schema, CERTIFICATES).sql,
            columns=CERTIFICATE_COLUMNS,
            parameter="?",
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            if is_full(error):
                raise no_space_left(self._location.shown) from None
            if isinstance(error, duckdb.DependencyException | duckdb.CatalogException):
                message = (
                    f"cannot write {self._location.shown}: another table depends on the existing one. Choose another "
                    "output."
                )
            else:
                message = f"cannot write {self._location.shown} ({type(error).__name__}). Choose another output."
            raise OutputError(message) from None
        except OSError as error:
            raise cannot_write(self._location.shown, error) from None


def stored_columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns as they are stored. Refuses a type that would not read back."""
    stored = stored_schema(schema, FORMAT)
    for field in stored:
        if pa.types.is_decimal(field.type) and field.type.precision > MOST_DIGITS:
            raise unsupported_type(field, FORMAT)
    return stored


def check_duckdb(location: DatabaseLocation, tables: int) -> list[DatabaseLocation]:
    """Refuse, before any work is done, an output that cannot take a release of that many tables.

    Return those of the tables that exist.
    """
    wanted = [table for table in (location, location.sensitive)[:tables] if check_table_name(table.table)]
    check_target(location.path)
    if not location.path.exists():
        check_package(location.path, OutputError)
        known: list[Relation] = []
        schemas = [SCHEMA]
    else:
        with open_duckdb(location.path, OutputError, read_only=False) as connection:
            known, schemas = list_relations(connection), _schemas(connection)
    relations = {(relation.schema, relation.name.casefold()) for relation in known}
    found = {table: _relation(table, known, schemas) for table in wanted}
    return [table for table, relation in found.items() if (relation.schema, relation.name.casefold()) in relations]


def take_up_log(path: Path) -> None:
    """Move a log that a killed run has left beside a database into it. Others may not read this log."""
    log = path.with_name(f"{path.name}.wal")
    with suppress(OSError, InputError):  # opening the database reports what is wrong with it
        if log.stat().st_mode & 0o077 == 0 and path.stat().st_mode & 0o077:
            with private_files(), open_duckdb(path, InputError, read_only=False) as connection:
                connection.execute("CHECKPOINT")


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
