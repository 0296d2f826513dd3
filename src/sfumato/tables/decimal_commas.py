"""Numbers with a decimal comma in a CSV release: ``3,5``, and ``[3,5..4,25]`` for a range.

A release shows its numbers with a point everywhere but in a CSV file whose policy asks for a comma. There, the marks of
numbers are exchanged when they are written, and exchanged again when they are read, so that all else in the house sees
points. The exchange maps no two labels to one: 3.5 becomes 3,5, and 3,5, which is no number, becomes 3.5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

_NUMBER = r"[+-]?[0-9]+({mark}[0-9]+)?([eE][+-]?[0-9]+)?[+-]?"  # the last sign stands for all below or above


def _labels(mark: str) -> str:
    """Return a pattern of all that a release shows for numbers with this mark."""
    number = _NUMBER.format(mark=mark)
    return rf"^(\[{number}\.\.{number}\]|{number})$"


_WITH_POINTS, _WITH_COMMAS = _labels(r"\."), _labels(",")
_POINT = r"([0-9])\.([0-9])"


def has_places(kind: pa.DataType) -> bool:
    """Return whether numbers of a type may have decimal places."""
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_floating(kind) or types.is_decimal(kind))


def with_exchanged_marks(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return a table in which the labels of these columns have the other mark."""
    for index, name in enumerate(table.column_names):
        if name in names:
            column = table.column(index)
            chunks = [_with_values(chunk, _exchanged) for chunk in column.chunks]
            table = table.set_column(index, name, pa.chunked_array(chunks, column.type))
    return table


def numbers_with_commas(table: pa.Table) -> pa.Table:
    """Return a table in which numbers that may have decimal places are text with a comma."""
    for index, field in enumerate(table.schema):
        if has_places(field.type):
            text = table.column(index).cast(pa.string())
            chunks = [_exchanged(chunk) for chunk in text.chunks]
            table = table.set_column(index, field.name, pa.chunked_array(chunks, pa.string()))
    return table


def read_with_points(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """Give the numbers of a batch of a release with commas their points back. names: the columns that have them."""
    columns = [
        _with_values(column, _exchanged) if name in names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def texts_with_exchanged_marks(texts: Sequence[str | None]) -> list[str | None]:
    """Return labels as a release with commas shows them."""
    exchanged: list[str | None] = _exchanged(pa.array(texts, pa.string())).to_pylist()
    return exchanged


def shows_commas(column: pa.Array) -> bool:
    """Return whether a text column shows numbers with commas, and none with points."""
    values = column.dictionary if types.is_dictionary(column.type) else column
    return bool(pc.any(_has_commas(values)).as_py()) and not pc.any(_has_points(values)).as_py()


def _with_values(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    if types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(array.indices, change(array.dictionary), ordered=array.type.ordered)
    return change(array)


def _exchanged(values: pa.Array) -> pa.Array:
    commas = pc.replace_substring_regex(values, _POINT, r"\1,\2")
    points = pc.replace_substring(values, ",", ".")
    return pc.if_else(_has_points(values), commas, pc.if_else(_has_commas(values), points, values))


def _has_points(values: pa.Array) -> pa.Array:
    return pc.and_(pc.match_substring_regex(values, _WITH_POINTS), pc.match_substring_regex(values, _POINT))


def _has_commas(values: pa.Array) -> pa.Array:
    return pc.and_(pc.match_substring_regex(values, _WITH_COMMAS), pc.match_substring(values, ","))
