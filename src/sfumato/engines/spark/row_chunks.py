"""Many rows as one: how jobs hand rows to each other.

Spark moves, sorts and groups row by row, kernels work on whole columns. What is in codes therefore travels in chunks,
Arrow tables as bytes: a shuffle moves a few large rows, and whatever is done with the rows in them is done by kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.session import Frame, Session
from sfumato.tables.coding.arrow_arrays import from_numpy

CHUNK = "chunk"
CHUNK_ROWS = 1 << 16
HELD_ROWS, HELD_BYTES = 1 << 19, 1 << 27  # what a task gathers before it works on it
# A file is read back some thousand rows at a time, or a row group: with such long rows it must be a small one.
OPTIONS = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    "parquet.block.size": str(1 << 24),
    "parquet.block.size.row.check.min": "1",
    "parquet.page.size.row.check.min": "1",
}


def packed(table: pa.Table) -> bytes:
    """A table as bytes. Columns in dictionaries stay so where these are short for the rows."""
    long = [
        place
        for place, column in enumerate(table.columns)
        if pa.types.is_dictionary(column.type)
        and 4 * sum(len(chunk.dictionary) for chunk in column.chunks) > len(column)
    ]
    table = _without_dictionaries(table, long)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked(chunks: Iterable[pa.BinaryScalar]) -> pa.Table:
    """The rows of some chunks, of which there is at least one, no column in a dictionary."""
    return pa.concat_tables([plain(opened(chunk)) for chunk in chunks])


def opened(chunk: pa.BinaryScalar) -> pa.Table:
    """The rows of a chunk as they were packed."""
    return pa.ipc.open_stream(chunk.as_buffer()).read_all()


def plain(table: pa.Table) -> pa.Table:
    """The same without dictionaries."""
    return _without_dictionaries(
        table, [place for place, kind in enumerate(table.schema.types) if pa.types.is_dictionary(kind)]
    )


def _without_dictionaries(table: pa.Table, places: Iterable[int]) -> pa.Table:
    for place in places:
        kind = table.schema.types[place].value_type
        decoded = pa.chunked_array([chunk.dictionary_decode() for chunk in table.column(place).chunks], kind)
        table = table.set_column(place, table.field(place).with_type(kind), decoded)
    return table


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in few tables: what Spark sends is short."""
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
    """The rows of each number in pieces that are not too long. numbers: int64[rows]."""
    order = np.argsort(numbers, kind="stable")
    table, numbers = table.take(from_numpy(order)), numbers[order]
    begins = np.append(np.flatnonzero(np.append(True, np.diff(numbers) != 0)), len(numbers))
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        for first in range(begin, end, CHUNK_ROWS):
            yield int(numbers[begin]), table.slice(first, min(CHUNK_ROWS, end - first))


def written_chunks(session: Session, frame: Frame, path: str) -> Frame:
    """Chunks in files, and a frame that reads them."""
    frame.write.options(**OPTIONS).parquet(path)
    return session.read.schema(frame.schema).parquet(path)
