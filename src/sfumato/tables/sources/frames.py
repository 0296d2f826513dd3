"""Read data frames, and return a release as the same kind of frame.

The module of its type identifies a frame, so pandas, Polars and DuckDB are loaded only if the user passes one of their
objects.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from numbers import Real
from typing import Any

import pyarrow as pa
from pyarrow import types

from sfumato.errors import InputError, UsageError
from sfumato.tables.sources.in_memory_source import CollectedSource, RepeatableQuery, nan_as_null
from sfumato.tables.sources.kept_types import restored_arrow, restored_duckdb, restored_pandas, restored_polars
from sfumato.tables.sources.source import Source
from sfumato.tables.sources.source_batches import checked_names

_streams_read: dict[int, pa.Table] = {}  # by the id of a stream that is alive


def open_frame(data: object) -> Source:
    """Open the table in a frame. The frame is never modified."""
    if isinstance(data, pa.Table):
        return CollectedSource.of_table(data, kind="pyarrow", where="the PyArrow table")
    if isinstance(data, pa.RecordBatch):
        return CollectedSource.of_table(pa.Table.from_batches([data]), kind="pyarrow", where="the record batch")
    for base in type(data).__mro__:
        opener = _OPENERS.get((base.__module__.partition(".")[0], base.__name__))
        if opener is not None:
            return opener(data)
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, type):
        return _open_stream(data)
    raise _not_a_table(data)


def to_frame(table: pa.Table, kind: str, original: object, kept: Collection[str] = ()) -> object:
    """Return the table as the same kind of frame as the input.

    For an input from a file, or with ``__arrow_c_stream__`` alone, that is a PyArrow table. Only names, types and values
    are carried over. ``kept`` names the columns that get the types of the original again; all other text is plain.
    """
    plain = _plain(table)
    if kind == "pandas":
        return restored_pandas(plain.to_pandas(), plain, original, kept)
    if kind in ("polars", "polars-lazy"):
        return _to_polars(plain, kind, original, kept)
    if kind == "duckdb":
        return _to_duckdb(plain, original, kept)
    plain = restored_arrow(plain, _arrow_table(original), kept)
    if isinstance(original, pa.RecordBatch):
        return pa.RecordBatch.from_struct_array(plain.to_struct_array().combine_chunks())
    return plain


def _open_stream(data: object) -> Source:
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError):
        # Single columns have the same interface.
        raise _not_a_table(data) from None
    where = f"the {type(data).__name__}"
    with _failing_as(where, pa.ArrowException):
        table = reader.read_all()
    # Some streams can be read only once, and tables are opened more than once: what was read first is kept.
    if not table.num_rows:
        table = _streams_read.get(id(data), table)
    else:
        _remember(data, table)
    return CollectedSource.of_table(table, kind="pyarrow", where=where)


def _remember(stream: object, table: pa.Table) -> None:
    """Keep the table of a stream as long as the stream lives."""
    try:
        weakref.finalize(stream, _streams_read.pop, id(stream), None)
    except TypeError:
        return  # such an object cannot be watched, and its id may be given to another
    _streams_read[id(stream)] = table


def _arrow_table(original: object) -> pa.Table | None:
    if isinstance(original, pa.Table):
        return original
    return (
        pa.Table.from_batches([original]) if isinstance(original, pa.RecordBatch) else _streams_read.get(id(original))
    )


def _open_pandas(frame: Any) -> Source:
    where = "the pandas frame"
    if frame.columns.nlevels > 1:
        raise InputError(
            f"{where} names its columns in {frame.columns.nlevels} levels. Give each column one name, for example with "
            "frame.columns = frame.columns.map('_'.join)."
        )
    for position, name in enumerate(frame.columns, start=1):
        if not isinstance(name, str):
            raise InputError(
                f"column {position} of {where} is named by a value of type {type(name).__name__}. Name it with text, "
                "for example with frame.columns = frame.columns.map(str)."
            )
    names = checked_names(list(frame.columns), where)
    table = pa.table({name: _pandas_column(frame[name], name, where) for name in names})
    return CollectedSource.of_table(table, kind="pandas", where=where)


def _pandas_column(series: Any, name: str, where: str) -> pa.Array | pa.ChunkedArray:
    if series.dtype == object and len({_family(kind) for kind in set(map(type, series.dropna()))}) > 1:
        raise InputError(
            f"column {name!r} of {where} holds values of different types. Give it one type, or drop the column."
        )
    try:
        column = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _unsupported_type(name, series.dtype, where) from None
    # Extension types may hold both NaN and null.
    return nan_as_null(column) if types.is_float32(column.type) or types.is_float64(column.type) else column


def _family(kind: type) -> type:
    """Return the type under which values of a column of Python objects count as equal in type."""
    for family in (bool, Real, str, bytes, datetime, date):
        if issubclass(kind, family):
            return family
    return kind


def _open_polars(frame: Any) -> Source:
    where = "the Polars frame"
    return CollectedSource(
        kind="polars",
        schema=_polars_schema(frame.clear(), where),
        rows=frame.height,
        collect=lambda columns: frame[columns].to_arrow(),
        where=where,
    )


def _open_polars_lazy(frame: Any) -> Source:
    from polars import selectors
    from polars.exceptions import PolarsError

    where = "the Polars lazy frame"

    def run(columns: list[str]) -> pa.Table:
        with _failing_as(where, PolarsError, OSError):
            # Selected by name: in an expression, Polars would read a name that looks like a pattern as one.
            return frame.select(selectors.by_name(*columns)).collect().to_arrow()

    with _failing_as(where, PolarsError, OSError):
        empty = frame.clear().collect()
    return CollectedSource(
        kind="polars-lazy",
        schema=_polars_schema(empty, where),
        rows=None,
        collect=RepeatableQuery(run, where),
        where=where,
    )


def _polars_schema(empty: Any, where: str) -> pa.Schema:
    fields = []
    for name, stored in empty.schema.items():
        # Python objects would be exported as their addresses in memory.
        if str(stored) == "Object":
            raise _unsupported_type(name, stored, where)
        try:
            fields.append(empty[[name]].to_arrow().schema.field(0))
        except pa.ArrowException:
            raise _unsupported_type(name, stored, where) from None
    return pa.schema(fields)


def _open_duckdb(relation: Any) -> Source:
    import duckdb

    where = "the DuckDB relation"

    def run(columns: list[str]) -> pa.Table:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        with _failing_as(where, duckdb.Error):
            return relation.project(quoted).to_arrow_table()

    with _failing_as(where, duckdb.Error):
        names = list(relation.columns)
        schema = relation.limit(0).to_arrow_table().schema
    # SQL ignores case in names.
    checked_names([name.lower() for name in names], where)
    return CollectedSource(kind="duckdb", schema=schema, rows=None, collect=RepeatableQuery(run, where), where=where)


_OPENERS = {
    ("pandas", "DataFrame"): _open_pandas,
    ("polars", "DataFrame"): _open_polars,
    ("polars", "LazyFrame"): _open_polars_lazy,
    ("duckdb", "DuckDBPyRelation"): _open_duckdb,
    ("_duckdb", "DuckDBPyRelation"): _open_duckdb,
}


def _plain(table: pa.Table) -> pa.Table:
    columns = [
        column.cast(column.type.value_type) if types.is_dictionary(column.type) else column for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _to_polars(table: pa.Table, kind: str, original: Any, kept: Collection[str]) -> object:
    import polars

    frame = polars.DataFrame(table)
    if kept:
        frame = restored_polars(frame, original.collect_schema(), kept)
    return frame.lazy() if kind == "polars-lazy" else frame


def _to_duckdb(table: pa.Table, original: object, kept: Collection[str]) -> object:
    import duckdb

    # A relation can be joined only with relations of its own connection, which has no public name. Deriving the result
    # from the relation instead would leave the original query in the text of the released relation.
    connection = getattr(original, "_con", None)
    if not isinstance(connection, duckdb.DuckDBPyConnection):
        connection = duckdb.default_connection()
    released = duckdb.from_arrow(table, connection=connection)
    return restored_duckdb(released, original, kept) if kept else released


@contextmanager
def _failing_as(where: str, *errors: type[BaseException]) -> Iterator[None]:
    """Report errors of a library by their type alone: their messages may hold cells."""
    try:
        yield
    except errors as error:
        raise InputError(
            f"{where} could not be read ({type(error).__name__}). Collect it outside Sfumato to see why."
        ) from None


def _unsupported_type(name: str, stored: object, where: str) -> InputError:
    return InputError(
        f"column {name!r} of {where} has the type {stored}, which is not supported. Convert it to numbers, dates or "
        "text, or drop the column."
    )


def _not_a_table(data: object) -> UsageError:
    return UsageError(
        f"an object of type {type(data).__module__}.{type(data).__qualname__} is not a table. Pass the path of a file, "
        "a pandas DataFrame, a Polars DataFrame or LazyFrame, a PyArrow Table or RecordBatch, a DuckDB relation, or an "
        "object with __arrow_c_stream__ that is a table."
    )
