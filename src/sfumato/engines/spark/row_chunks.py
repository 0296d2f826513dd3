"""Chunks: many rows packed into one row of Spark, which is how jobs hand rows to each other.

Spark moves, sorts and groups row by row, while kernels work on whole columns. Coded rows therefore travel in chunks,
which are Arrow tables as bytes. A shuffle moves a few large rows, and kernels work on the rows inside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.tables.coding.arrow_arrays import from_numpy

CHUNK = "chunk"
CHUNK_ROWS = 1 << 16
HELD_ROWS, HELD_BYTES = 1 << 19, 1 << 27  # what a task gathers before it starts to work


def packed(table: pa.Table) -> bytes:
    """Return a table as bytes. A dictionary column stays one if its dictionary is short for the number of rows."""
    long = [
        number
        for number, column in enumerate(table.columns)
        if pa.types.is_dictionary(column.type)
        and 4 * sum(len(chunk.dictionary) for chunk in column.chunks) > len(column)
    ]
    table = _without_dictionaries(table, long)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked(chunks: Iterable[pa.BinaryScalar]) -> pa.Table:
    """Return the rows of one or more chunks. Text columns that all chunks have as dictionaries stay so."""
    return joined([opened(chunk) for chunk in chunks])


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of tables with the same columns. A text column that is a dictionary in all of them has one."""
    coded = {
        number
        for number, kind in enumerate(tables[0].schema.types)
        if pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)
        if all(table.schema.types[number] == kind for table in tables)
    }
    decoded = [_without_dictionaries(table, _dictionaries(table) - coded) for table in tables]
    return pa.concat_tables(decoded).unify_dictionaries()


def opened(chunk: pa.BinaryScalar) -> pa.Table:
    """Return the rows of a chunk as they were packed."""
    return pa.ipc.open_stream(chunk.as_buffer()).read_all()


def plain(table: pa.Table) -> pa.Table:
    """Return a table without dictionaries."""
    return _without_dictionaries(table, _dictionaries(table))


def _dictionaries(table: pa.Table) -> set[int]:
    """Return the numbers of the columns that are dictionaries."""
    return {number for number, kind in enumerate(table.schema.types) if pa.types.is_dictionary(kind)}


def _without_dictionaries(table: pa.Table, columns: Iterable[int]) -> pa.Table:
    for column in columns:
        kind = table.schema.types[column].value_type
        decoded = pa.chunked_array([chunk.dictionary_decode() for chunk in table.column(column).chunks], kind)
        table = table.set_column(column, table.field(column).with_type(kind), decoded)
    return table


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Gather the short batches that Spark sends into fewer, longer tables."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= HELD_ROWS or size >= HELD_BYTES:
            yield pa.Table.from_batches(held).combine_chunks()
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def by_number(table: pa.Table, numbers: NDArray[np.int64]) -> Iterator[tuple[int, pa.Table]]:
    """Yield each number with its rows, in pieces of at most CHUNK_ROWS. numbers: int64[rows]."""
    order = np.argsort(numbers, kind="stable")
    table, numbers = table.take(from_numpy(order)), numbers[order]
    begins = np.append(np.flatnonzero(np.append(True, np.diff(numbers) != 0)), len(numbers))
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        for first in range(begin, end, CHUNK_ROWS):
            yield int(numbers[begin]), table.slice(first, min(CHUNK_ROWS, end - first))
