"""Read data frames, and return a release as the same kind of frame.

The module of its type identifies a frame, so pandas, Polars and DuckDB are loaded only if the user passes one of their
objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from numbers import Real
from typing import Any

import pyarrow as pa
from pyarrow import types

from sfumato.errors import InputError, UsageError
from sfumato.tables.coding.dictionaries import dictionary_array, sorted_codes
from sfumato.tables.sources.in_memory_source import CollectedSource, RepeatableQuery, nan_as_null
from sfumato.tables.sources.source import Source
from sfumato.tables.sources.source_batches import checked_names, normalized_types


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


def to_frame(table: pa.Table, kind: str, original: object, categories: Collection[str] = ()) -> object:
    """Return the table as the same kind of frame as the input; for an input from a file, as a PyArrow table.

    Only names, types and values are carried over. ``categories`` names the columns that become categories again, made
    of the values that occur, in ascending order; all other text is plain.
    """
    plain = _plain(table, () if kind == "duckdb" else categories)
    if kind == "pandas":
        return _to_pandas(plain, original)
    if kind in ("polars", "polars-lazy"):
        import polars

        frame = polars.DataFrame(plain)
        return frame.lazy() if kind == "polars-lazy" else frame
    if kind == "duckdb":
        return _to_duckdb(plain, original)
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
        # A stream can be read only once, so the table is kept.
        table = reader.read_all()
    return CollectedSource.of_table(table, kind="pyarrow", where=where)


def _open_pandas(frame: Any) -> Source:
    where = "the pandas frame"
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


def _plain(table: pa.Table, categories: Collection[str]) -> pa.Table:
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in categories:
            values, codes = sorted_codes(column)
            columns.append(dictionary_array(codes, values))
        else:
            columns.append(column.cast(column.type.value_type) if types.is_dictionary(column.type) else column)
    return pa.Table.from_arrays(columns, names=table.column_names)


def _to_pandas(table: pa.Table, original: Any) -> object:
    frame = table.to_pandas()
    for name in table.column_names:
        stored = original.dtypes.get(name)
        # NumPy's types come back by themselves; pandas' own types, such as Int64, have a constructor from Arrow.
        if hasattr(stored, "__from_arrow__"):
            arrow_type = pa.array(original[name].iloc[:0], from_pandas=True).type
            delivered = normalized_types(pa.schema({name: arrow_type}))[name]
            if not types.is_dictionary(arrow_type) and delivered == table[name].type:
                frame[name] = stored.__from_arrow__(table[name])
    return frame


def _to_duckdb(table: pa.Table, original: object) -> object:
    import duckdb

    # A relation can be joined only with relations of its own connection, which has no public name. Deriving the result
    # from the relation instead would leave the original query in the text of the released relation.
    connection = getattr(original, "_con", None)
    if not isinstance(connection, duckdb.DuckDBPyConnection):
        connection = duckdb.default_connection()
    return duckdb.from_arrow(table, connection=connection)


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
