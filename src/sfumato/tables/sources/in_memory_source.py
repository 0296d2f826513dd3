"""Tables that are in memory, or whose columns are loaded into memory as a whole on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import InputError
from sfumato.tables.sources.source_batches import checked_names, normalize_batches, normalized_types

Collect = Callable[[list[str]], pa.Table]


class CollectedSource:
    """A table whose requested columns are collected as one Arrow table."""

    text = False

    def __init__(self, *, kind: str, schema: pa.Schema, rows: int | None, collect: Collect, where: str) -> None:
        self.kind = kind
        self.names = checked_names(schema.names, where)
        self.types = normalized_types(schema)
        self.rows = rows
        self._collect = collect
        self._where = where

    @classmethod
    def of_table(cls, table: pa.Table, *, kind: str, where: str) -> CollectedSource:
        return cls(kind=kind, schema=table.schema, rows=table.num_rows, collect=table.select, where=where)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return normalize_batches(self._read(list(columns)), columns, self.types, self._where)

    def _read(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self._collect(columns).to_batches()


class RepeatableQuery:
    """Runs a query for the columns requested so far, and refuses a query that returns other rows when it runs again.

    Columns requested later must belong to the same rows as the earlier ones. A query without ORDER BY may return its
    rows in another order each time, so the earlier columns are queried again with the new ones and compared. Columns
    that were collected are kept and not queried again on their own.
    """

    def __init__(self, run: Collect, where: str) -> None:
        self._run = run
        self._where = where
        self._collected: pa.Table | None = None

    def __call__(self, columns: list[str]) -> pa.Table:
        before = self._collected
        known = [] if before is None else before.column_names
        missing = [name for name in columns if name not in known]
        if missing:
            self._collected = self._run([*known, *missing])
            if before is not None and not all(_same(before[name], self._collected[name]) for name in known):
                raise InputError(
                    f"{self._where} returned other rows, or another order of rows, when it was run again. Collect it "
                    "first and pass the result, or sort it by columns that are unique together."
                )
        assert self._collected is not None
        return self._collected.select(columns)


def _same(column: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    return bool(_comparable(column).equals(_comparable(other)))


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decode categories, since equal values may have different codes, and make NaN null, since it is never equal."""
    if types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if types.is_float32(column.type) or types.is_float64(column.type):
        return nan_as_null(column)
    return column


def nan_as_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace NaN by null in a column of floating-point numbers."""
    return pc.if_else(pc.is_nan(column.cast(pa.float64())), pa.nulls(1, column.type)[0], column)
