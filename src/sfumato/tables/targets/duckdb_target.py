"""A release as a table of a DuckDB file, its certificate in a table beside, both in one transaction."""

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
    quoted,
)
from sfumato.tables.locations import DatabaseLocation
from sfumato.tables.sources.duckdb_source import SCHEMA, DuckdbSource, check_package, list_relations, open_duckdb
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.database_types import as_stored, stored_schema, unsupported_type
from sfumato.tables.targets.digests import table_digest
from sfumato.tables.targets.file_writers import Batches, row_groups
from sfumato.tables.targets.sqlite_target import drop_abandoned, now, owner_token, remove_database
from sfumato.tables.targets.staging import Stage, cannot_write, check_target, current_mask
from sfumato.tables.targets.target import Certified

FORM = "DuckDB"
MOST_DIGITS = 38
ROWS = 122_880  # those of a row group in the file


class DuckdbTarget:
    """A table of a DuckDB file. The file is held from the first moment: DuckDB lets only one program write to it."""

    def __init__(self, place: DatabaseLocation) -> None:
        self._place = place
        self._stage = Stage()
        self._tables: list[tuple[Relation, Relation, DuckdbSource]] = []
        self._made = False
        self._token = ""
        self._held: AbstractContextManager[Any] | None = None

    def __enter__(self) -> Self:
        path = self._place.path
        check_target(path)
        self._token = owner_token(self._stage, path)
        made = not path.exists()
        mask = os.umask(0o077) if made else None  # it is its owner's alone until it is published
        try:
            held = open_duckdb(path, OutputError, read_only=False)
            self._connection = held.__enter__()
            self._held, self._made = held, made
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

        if self._held is not None:
            with suppress(duckdb.Error):  # what went wrong before is the error to tell
                for _, staged, _ in self._tables:
                    self._connection.execute(f"DROP TABLE IF EXISTS {staged.sql}")
                if self._tables:
                    self._connection.execute("CHECKPOINT")
            self._held.__exit__(None, None, None)
        if self._made:
            remove_database(self._place.path, ".wal")
        self._stage.__exit__(kind, error, trace)

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        place = self._place.sensitive if self._tables else self._place
        check_column_names(schema.names)
        stored = stored_schema(schema, FORM)
        for field in stored:
            if pa.types.is_decimal(field.type) and field.type.precision > MOST_DIGITS:
                raise unsupported_type(field, FORM)
        with self._writing():
            relation = _relation(place, list_relations(self._connection), _schemas(self._connection))
            staged = Relation(relation.schema, f"{STAGE}{self._token}_{len(self._tables)}")
            self._insert(f"CREATE TABLE {staged.sql} AS", stored.empty_table())
            source = DuckdbSource.staged(self._cursor, staged, f"the table {relation.shown!r} of {place.path}")
            self._tables.append((relation, staged, source))
            for group in row_groups(schema, batches, ROWS):
                self._insert(f"INSERT INTO {staged.sql}", as_stored(group, stored, FORM))
        return source

    def _insert(self, statement: str, rows: pa.Table) -> None:
        self._connection.register("sfumato_rows", rows)
        try:
            self._connection.execute(f"{statement} SELECT * FROM sfumato_rows")  # noqa: S608
        finally:
            self._connection.unregister("sfumato_rows")

    def _cursor(self) -> AbstractContextManager[Any]:
        return closing(self._connection.cursor())

    def certified(self) -> list[Certified]:
        found: list[Certified] = []
        for relation, _, source in self._tables:
            size, digest = table_digest(source)
            found.append({"name": relation.name, "bytes": size, "sha256": digest})
        return found

    def publish(self, certificate: str) -> None:
        import duckdb

        first = self._tables[0][0]
        table = Relation(first.schema, CERTIFICATES).sql
        if self._made:
            self._place.path.chmod(0o666 & ~current_mask())
        with self._writing():
            self._connection.execute("BEGIN")
            try:
                for relation, staged, _ in self._tables:
                    self._connection.execute(f"DROP TABLE IF EXISTS {relation.sql}")
                    self._connection.execute(f"ALTER TABLE {staged.sql} RENAME TO {quoted(relation.name)}")
                self._connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {table}"
                    " (table_name VARCHAR, certificate VARCHAR NOT NULL, written_at VARCHAR NOT NULL)"
                )
                for relation, *_ in self._tables:
                    self._connection.execute(f"DELETE FROM {table} WHERE table_name = ?", [relation.name])  # noqa: S608
                self._connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", [first.name, certificate, now()])  # noqa: S608
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(duckdb.Error):
                    self._connection.execute("ROLLBACK")
                raise
            self._tables, self._made = [], False
            self._connection.execute("CHECKPOINT")  # all of it in the one file that is handed on

    @contextmanager
    def _writing(self) -> Iterator[None]:
        import duckdb

        path = self._place.path
        try:
            yield
        except duckdb.Error as error:
            if "space" in str(error):
                said = f"no space left for {path}; nothing was written. Free some space or choose another disk."
            elif isinstance(error, duckdb.DependencyException | duckdb.CatalogException):
                said = (
                    f"cannot write {self._place.shown}: another table depends on the one that is there. Choose another."
                )
            else:
                said = f"cannot write {path} ({type(error).__name__}). Choose another output."
            raise OutputError(said) from None
        except OSError as error:
            raise cannot_write(path, error) from None


def check_duckdb(place: DatabaseLocation, tables: int) -> None:
    """Refuse what can be seen to be no place for a release before any work is done."""
    wanted = [one for one in (place, place.sensitive)[:tables] if check_table_name(one.table)]
    check_target(place.path)
    if not place.path.exists():
        check_package(place.path, OutputError)
        known: list[Relation] = []
        schemas = [SCHEMA]
    else:
        with open_duckdb(place.path, OutputError, read_only=False) as connection:
            known, schemas = list_relations(connection), _schemas(connection)
    for one in wanted:
        _relation(one, known, schemas)


def certificate_in_duckdb(place: DatabaseLocation) -> str | None:
    try:
        with open_duckdb(place.path, InputError, read_only=True) as connection:
            known = list_relations(connection)
            relation = find_relation(place.table, known, [SCHEMA], "the database")
            table = Relation(relation.schema, CERTIFICATES)
            if table not in known:
                return None
            query = f"SELECT certificate FROM {table.sql} WHERE table_name = ?"  # noqa: S608
            row = connection.execute(query, [relation.name]).fetchone()
    except InputError:
        return None  # what is wrong with the database is told when it is opened
    return None if row is None else str(row[0])


def _schemas(connection: Any) -> list[str]:
    rows = connection.execute(
        "SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database() AND NOT internal"
    ).fetchall()
    return [SCHEMA, *(name for (name,) in rows)]


def _relation(place: DatabaseLocation, known: list[Relation], schemas: list[str]) -> Relation:
    """The table that a release goes to: in a schema that is there, or in the usual one."""
    table = check_table_name(place.table)
    schema, point, name = table.partition(".")
    wanted = Relation(schema, check_table_name(name)) if point else Relation(SCHEMA, table)
    if wanted.schema not in schemas:
        raise OutputError(f"there is no schema {wanted.schema!r} in {place.path}. Create it first.")
    for one in known:
        if one.schema == wanted.schema and one.name.casefold() == wanted.name.casefold() and one.view:
            raise UsageError(f"the output {place.shown} is a view. Name a table: a view is never replaced.")
    return wanted
