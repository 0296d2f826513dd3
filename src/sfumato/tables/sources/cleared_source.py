"""A source in which the null tokens of single columns are null.

A policy may name tokens for a column, such as -999 for a weight. They are cleared where the table is read, so that
everything after it sees null: classes, requirements and the release itself, whatever the role of the column.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.sources.source import Source


class ClearedSource:
    """Another source whose columns ``tokens`` are null where a cell is one of the column's tokens.

    Text must be equal to the token. A number, date, moment or truth value must be the value that the token writes.
    """

    def __init__(self, source: Source, tokens: Mapping[str, Sequence[str]]) -> None:
        self._source = source
        self.names, self.types, self.kind, self.text = source.names, source.types, source.kind, source.text
        self.rows = source.rows
        self.line_of = getattr(source, "line_of", None)
        self.descriptions: dict[str, str] = getattr(source, "descriptions", {})
        self.read_by_labels: tuple[str, ...] | None = getattr(source, "read_by_labels", None)
        self._cleared = {
            name: values
            for name, kind in source.types.items()
            if name in tokens and len(values := _values(tokens[name], kind))
        }

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        batches = self._source.batches(columns)
        return map(self._clear, batches) if self._cleared.keys() & set(columns) else batches

    def _clear(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            _cleared(column, self._cleared[name]) if name in self._cleared else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _cleared(column: pa.Array, values: pa.Array) -> pa.Array:
    """Return a column with null where it is one of the values."""
    if not types.is_dictionary(column.type):
        return pc.if_else(pc.is_in(column, value_set=values), pa.scalar(None, column.type), column)
    dictionary = column.dictionary
    cleared = to_numpy(pc.is_in(dictionary, value_set=values))
    if not cleared.any():
        return column
    position = from_numpy((np.cumsum(~cleared) - 1).astype(np.int32), cleared)  # null for a cleared text
    return pa.DictionaryArray.from_arrays(position.take(column.indices), dictionary.filter(from_numpy(~cleared)))


def _values(tokens: Sequence[str], kind: pa.DataType) -> pa.Array:
    """Return the values of a type that the tokens write. A token that writes none of them occurs in no cell."""
    values = [value for token in tokens if (value := _value(token, kind)) is not None]
    return pa.array(values, kind)


def _value(token: str, kind: pa.DataType) -> Any:
    if types.is_string(kind):
        return token
    if types.is_boolean(kind):
        return {"true": True, "false": False}.get(token)
    try:
        if types.is_integer(kind) or types.is_decimal(kind):
            number = Decimal(token)
            value: Any = int(number) if types.is_integer(kind) and number == int(number) else number
        elif types.is_floating(kind):
            value = float(token)
        elif types.is_date(kind):
            value = datetime.date.fromisoformat(token)
        elif types.is_time(kind):
            value = datetime.time.fromisoformat(token)
        elif types.is_timestamp(kind):
            value = pa.scalar(datetime.datetime.fromisoformat(token)).cast(pa.timestamp(kind.unit, kind.tz)).as_py()
        else:
            return None
        return pa.scalar(value, kind).as_py()
    except (ValueError, InvalidOperation, OverflowError, pa.ArrowException):
        return None
