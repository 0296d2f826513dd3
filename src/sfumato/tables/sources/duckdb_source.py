"""Read tables in a DuckDB file, in the order of their row numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import NO_SPACE, InputError, OutputError
from sfumato.tables.coding.arrow_arrays import to_numpy
from sfumato.tables.databases import FETCHED, Relation, find_relation, missing_package, quoted
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.sources.source_batches import checked_names, normalize_batches, normalized_types
from sfumato.tables.sources.unchanged_files import UnchangedFiles

# With one thread and little memory, rows come in order and DuckDB keeps no copy of the table.
SETTINGS: dict[str, Any] = {
    "threads": 1,
    "memory_limit": "512MB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",
}
SCHEMA = "main"
ROW = "sfumato row"
Connect = Callable[[], AbstractContextManager[Any]]


class DuckdbSource:
    """A table or view in a DuckDB file.

    The file is opened for each pass and closed after it, so that other programs can use it in between.
    """

    kind = "duckdb-table"
    text = False

    def __init__(self, path: Path, table: str | None) -> None:
        where = f"the file {str(path)!r}"
        unchanged = UnchangedFiles.of(path, path.with_name(f"{path.name}.wal"))

        def connect() -> AbstractContextManager[Any]:
            return open_duckdb(path, InputError, read_only=True)

        with connect() as connection:
            relation = find_relation(table, list_relations(connection), [SCHEMA], where)
        self._open(connect, relation, f"the table {relation.shown!r} of {where}", unchanged)
        unchanged.check()

    @classmethod
    def staged(cls, connect: Connect, relation: Relation, where: str) -> DuckdbSource:
        """Open a table that is not published yet, on the connection that writes it."""
        source = cls.__new__(cls)
        source._open(connect, relation, where, None)
        return source

    def _open(self, connect: Connect, relation: Relation, where: str, unchanged: UnchangedFiles | None) -> None:
        self._connect, self._relation, self._where, self._unchanged = connect, relation, where, unchanged
        with self._reading() as connection:
            schema = connection.sql(f"SELECT * FROM {relation.sql} LIMIT 0").to_arrow_table().schema  # noqa: S608
            count = f"SELECT count(*) FROM {relation.sql}"  # noqa: S608
            self.rows: int | None = None if relation.view else connection.sql(count).fetchall()[0][0]
        self.names = checked_names(schema.names, where)
        self.types = normalized_types(schema)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        stored = self._read(columns)
        stored = stored if self._unchanged is None else self._unchanged.during(stored)
        return normalize_batches(stored, columns, self.types, self._where)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._reading() as connection:
            yield from (
                self._read_view(connection, columns) if self._relation.view else self._read_table(connection, columns)
            )

    def _read_table(self, connection: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read rows in the order of their numbers. DuckDB returns them in that order, which is checked."""
        listed = ", ".join(map(quoted, columns))
        number = next(name for name in (ROW, f"{ROW} number", f"{ROW} count") if name not in columns)
        query = f"SELECT {listed}, rowid AS {quoted(number)} FROM {self._relation.sql}"  # noqa: S608
        last = -1
        for batch in connection.sql(query).to_arrow_reader(FETCHED):
            numbers = to_numpy(batch.column(len(columns)))
            if not len(numbers):
                continue
            if int(numbers[0]) <= last or not (numbers[1:] > numbers[:-1]).all():
                raise InputError(
                    f"{self._where} returned its rows in another order. Copy it to a new table and use that."
                )
            last = int(numbers[-1])
            yield batch.select(list(columns))

    def _read_view(self, connection: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read rows sorted by all columns: rows of a view have no number. Only equal rows may change places."""
        listed, order = (", ".join(map(quoted, names)) for names in (columns, self.names))
        with Scratch() as scratch:
            connection.execute(f"SET temp_directory = '{str(scratch.directory).replace(chr(39), chr(39) * 2)}'")
            query = f"SELECT {listed} FROM {self._relation.sql} ORDER BY {order}"  # noqa: S608
            yield from connection.sql(query).to_arrow_reader(FETCHED)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        import duckdb

        try:
            with self._connect() as connection:
                yield connection
        except (duckdb.Error, pa.ArrowException) as error:
            raise InputError(
                f"{self._where} could not be read ({type(error).__name__}). Open it with DuckDB to see why."
            ) from None


@contextmanager
def open_duckdb(
    path: Path, error: type[InputError | OutputError], *, read_only: bool, shown: Path | None = None
) -> Iterator[Any]:
    """Open a connection to the file; if that fails, raise ``error``. shown: the name of the file in errors."""
    shown = shown or path
    check_package(shown, error)
    import duckdb

    try:
        connection = duckdb.connect(str(path), read_only=read_only, config=SETTINGS)
    except duckdb.ConnectionException:
        raise error(f"the file {str(shown)!r} is already open in this program. Close that connection first.") from None
    except duckdb.Error as problem:
        if is_full(problem):
            raise error(
                f"no space left for {shown}; it was not written. Free some space or choose another disk."
            ) from None
        raise error(f"the file {str(shown)!r} {_reason(problem)}") from None
    with connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def check_package(path: Path, error: type[InputError | OutputError]) -> None:
    try:
        import duckdb  # noqa: F401
    except ImportError:
        raise missing_package(f"the DuckDB file {str(path)!r}", "duckdb", error) from None


def list_relations(connection: Any) -> list[Relation]:
    """List the tables and views of the file."""
    rows = connection.execute(
        "SELECT schema_name, table_name, false FROM duckdb_tables() WHERE NOT internal AND NOT temporary"
        " AND database_name = current_database() UNION ALL"
        " SELECT schema_name, view_name, true FROM duckdb_views() WHERE NOT internal AND NOT temporary"
        " AND database_name = current_database() ORDER BY 1, 2"
    ).fetchall()
    return [Relation(*row) for row in rows]


def is_full(error: Exception) -> bool:
    """Return whether the disk is full, by DuckDB's message: its error has no code of the system."""
    return any(os.strerror(number) in str(error) for number in NO_SPACE)


def _reason(error: Exception) -> str:
    """Derive the reason from words in DuckDB's message. The message itself holds names of programs and users."""
    text = str(error)
    if "lock" in text:
        return "is open in another program that writes to it. Close it there first."
    if "Permission denied" in text or "read-only" in text:
        return "cannot be opened. Check that it exists, and its permissions."
    return (
        "cannot be opened as DuckDB: it is damaged, is not what its name says, or was written by a newer version. Open "
        "it with DuckDB to see why."
    )
