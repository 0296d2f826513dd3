"""Give the kept columns of a released frame the types that they had in the original.

Inside Sfumato, text is text, whatever a library calls it, and a column of categories has the type of its values. Here
categories and enumerations are made again. They hold the released values and no others; those of an ordered type keep
their order, and the others ascend.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.tables.coding.dictionaries import sorted_codes
from sfumato.tables.sources.source_batches import normalized_types


def restored_arrow(table: pa.Table, original: pa.Table | None, kept: Collection[str]) -> pa.Table:
    """Give the ``kept`` columns of an Arrow table, which has no dictionaries, the types of the original."""
    if original is None:
        return table
    for index, name in enumerate(table.column_names):
        if name in kept and table.schema.field(index).type != original.schema.field(name).type:
            table = table.set_column(index, name, _restored_column(table.column(index), original.column(name)))
    return table


def _restored_column(column: pa.ChunkedArray, original: pa.ChunkedArray) -> pa.ChunkedArray:
    wanted = original.type
    if isinstance(wanted, pa.BaseExtensionType):
        chunks = column.cast(wanted.storage_type).chunks
        return pa.chunked_array([pa.ExtensionArray.from_storage(wanted, chunk) for chunk in chunks], wanted)
    if types.is_null(wanted):
        return pa.chunked_array([pa.nulls(len(column))])
    if not types.is_dictionary(wanted):
        return column.cast(wanted)
    values = sorted_codes(column)[0]
    if wanted.ordered and original.num_chunks:
        every = original.unify_dictionaries().chunk(0).dictionary.cast(values.type)
        values = every.filter(pc.is_in(every, value_set=values))
    chunks = [
        pa.DictionaryArray.from_arrays(
            pc.index_in(chunk, value_set=values).cast(wanted.index_type),
            values.cast(wanted.value_type),
            ordered=wanted.ordered,
        )
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, wanted)


def restored_pandas(table: pa.Table, original: Any, kept: Collection[str]) -> Any:
    """Convert a table to a pandas frame whose ``kept`` columns have the types of the original."""
    import pandas

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in kept:
            columns[name] = _restored_series(column, original[name])
        else:
            columns[name] = _new_series(column, original.dtypes.get(name.rpartition("_")[0]))
    return pandas.DataFrame(columns)


def _new_series(column: pa.ChunkedArray, base: Any) -> Any:
    """Return a column that the original does not have. base: the type of the column that it is a bound of, or None.

    Whole numbers have a type that can hold null if there are nulls or if ``base`` is such a type: pandas would make
    floats of them.
    """
    import pandas

    if types.is_integer(column.type):
        if isinstance(base, pandas.ArrowDtype):
            return pandas.Series(pandas.ArrowDtype(column.type).__from_arrow__(column))
        if column.null_count or isinstance(base, pandas.api.extensions.ExtensionDtype):
            return pandas.Series(pandas.Int64Dtype().__from_arrow__(column))
    return column.to_pandas()


def _restored_series(column: pa.ChunkedArray, original: Any) -> Any:
    import pandas

    stored = original.dtype
    if isinstance(stored, pandas.ArrowDtype):
        whole = _restored_column(column, pa.chunked_array(pa.array(original, type=stored.pyarrow_dtype)))
        return pandas.Series(stored.__from_arrow__(whole))
    series = column.to_pandas()
    if isinstance(stored, pandas.CategoricalDtype):
        occurring = pandas.Index(series.dropna().unique())
        categories = stored.categories[stored.categories.isin(occurring)]
        if not stored.ordered:
            categories = categories.sort_values()
        return pandas.Series(pandas.Categorical(series, categories=categories, ordered=stored.ordered))
    if stored.kind == "O" and not hasattr(stored, "__from_arrow__"):
        if series.dtype == stored:
            return series
        # As numbers, whole numbers with nulls would become floats.
        return pandas.Series(column.to_pylist(), dtype=object)
    if column.null_count and stored.kind in "iub" and not hasattr(stored, "__from_arrow__"):
        return _new_series(column, stored)  # cells were cleared, and these types of NumPy have no null
    # NumPy's types come back by themselves; pandas' own types, such as Int64, have a constructor from Arrow.
    if hasattr(stored, "__from_arrow__"):
        arrow_type = pa.array(original.iloc[:0], from_pandas=True).type
        if normalized_types(pa.schema({"": arrow_type}))[""] == column.type:
            return pandas.Series(stored.__from_arrow__(column))
    return series if series.dtype == stored else series.astype(stored)


def restored_polars(frame: Any, schema: Any, kept: Collection[str]) -> Any:
    """Give the ``kept`` columns of a Polars frame the types of the original, whose schema is given."""
    import polars

    for name in frame.columns:
        wanted = schema[name] if name in kept else frame.schema[name]
        if isinstance(wanted, polars.Enum):
            occurring = set(frame[name].unique().to_list())
            wanted = polars.Enum([category for category in wanted.categories if category in occurring])
        if frame.schema[name] != wanted:
            frame = frame.with_columns(frame[name].cast(wanted))
    return frame


def restored_duckdb(relation: Any, original: Any, kept: Collection[str]) -> Any:
    """Give the ``kept`` columns of a DuckDB relation the types of the original."""
    stored = dict(zip(original.columns, original.types, strict=True))
    columns = []
    for name, delivered in zip(relation.columns, relation.types, strict=True):
        quoted = '"' + name.replace('"', '""') + '"'
        wanted = stored[name] if name in kept else delivered
        if wanted.id == "enum":
            occurring = {row[0] for row in relation.project(quoted).distinct().fetchall()}
            released = [category for category in _categories(wanted) if category in occurring]
            quoted_names = ", ".join("'" + category.replace("'", "''") + "'" for category in released)
            columns.append(f"CAST({quoted} AS ENUM({quoted_names})) AS {quoted}" if released else quoted)
        else:
            columns.append(quoted if wanted == delivered else f"CAST({quoted} AS {wanted}) AS {quoted}")
    return relation.project(", ".join(columns))


def _categories(enumeration: Any) -> Sequence[str]:
    categories: Sequence[str] = dict(enumeration.children)["values"]
    return categories
