"""The input, read once: stored in chunks that all later jobs read, and counted on the way.

A frame of Spark may give other rows each time it is computed, and moving rows to Python is slow, so both happen once.
Tasks count the values of columns, and the pairs of values of two columns, in the rows that they store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.line_keys import ROW, TIE, tie_numbers
from sfumato.engines.spark.mounted_parquet import parts_of
from sfumato.engines.spark.row_chunks import (
    CHUNK,
    CHUNK_ROWS,
    gathered,
    opened,
    packed,
    plain,
)
from sfumato.engines.spark.session import Frame, Session, in_our_words, number_of_task
from sfumato.engines.spark.spark_tables import SparkTable, columns, one_array
from sfumato.engines.spark.stored_chunks import StoredChunks, Tasks, as_they_are, stored_chunks
from sfumato.engines.spark.tally import TALLY, tallied
from sfumato.tables.coding.arrow_arrays import from_numpy
from sfumato.tables.coding.row_hash import Hashes, hashes_of_array, row_hashes

FEWER = "fewer"
FEWER_BITS = 5  # records whose hashes end in as many zero bits are also stored separately, for samples
TASK_ROWS = 1 << 33  # more than a task can have


@dataclass(frozen=True)
class RowSource:
    """A source of rows. tables: turns what a task gets from the frame into tables. kinds: the fields of the columns."""

    frame: Frame
    tables: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.Table]]
    kinds: Sequence[Any]


def row_source(session: Session, table: SparkTable, names: Sequence[str]) -> RowSource:
    """Return the named columns of a table, numbered in this order."""
    selected = table.selected(names)
    kinds = list(selected.schema.fields)
    parts = None
    if table.files:
        parts = parts_of(session, table.frame, dict(zip(names, columns(len(names)), strict=True)))
    return RowSource(selected, gathered, kinds) if parts is None else RowSource(*parts, kinds)


@dataclass(frozen=True)
class InputChunks:
    """The input in chunks, with the counts of each chunk. kinds: the fields of its columns."""

    chunks: StoredChunks
    kinds: Sequence[Any]

    def sample(self, bits: int) -> pa.Table:
        """Return the records whose hashes end in ``bits`` zero bits, in no particular order."""
        from pyspark.sql.types import LongType, StructField, StructType

        schema = StructType([*self.kinds, StructField(TIE, LongType(), nullable=False)])
        names = [field.name for field in self.kinds]
        source = CHUNK if bits < FEWER_BITS else FEWER

        def sampled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for chunk in batch.column(source):
                    table = opened(chunk)
                    rows = from_numpy(_sampled_rows(table.select(names), bits))
                    yield from plain(table.select([*names, TIE]).take(rows)).to_batches()

        with in_our_words("take a sample"):
            few = self.chunks.few([source])
            if few is not None and (batches := list(sampled(iter(few)))):
                return pa.Table.from_batches(batches)
            return self.chunks.tasks([source]).mapped(sampled, schema).toArrow()


def store_input(
    session: Session,
    rows: RowSource,
    hashed: Sequence[int],
    alone: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    path: str,
) -> InputChunks:
    """Store rows with their ties, and count the values of columns and pairs of columns, given by number.

    hashed: the columns whose hash is the tie of a row, in order.
    """
    from pyspark.sql.types import BinaryType, StructField, StructType

    schema = StructType([StructField(name, BinaryType()) for name in (CHUNK, TALLY, FEWER)])
    hashed, alone, pairs, tables = list(hashed), list(alone), list(pairs), rows.tables

    def store(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = number_of_task() * TASK_ROWS
        for table in tables(batches):
            encoded = _in_dictionaries(table)
            numbers = from_numpy(np.arange(first, first + table.num_rows))
            first += table.num_rows
            ties = from_numpy(tie_numbers(_hashes(encoded, hashed)))
            stored = encoded.append_column(TIE, ties).append_column(ROW, numbers)
            fewer = stored.take(from_numpy(_sampled_rows(encoded, FEWER_BITS)))
            beside = {TALLY: tallied(encoded, alone, pairs), FEWER: packed(fewer)}
            for start in range(0, stored.num_rows, CHUNK_ROWS):
                chunk = packed(stored.slice(start, CHUNK_ROWS))
                yield pa.RecordBatch.from_pylist([{CHUNK: chunk, **beside}], _ROW)
                beside = {}  # the first chunk has them for all

    with in_our_words("read the input"):
        chunks = stored_chunks(session, Tasks(rows.frame, as_they_are), store, schema, path)
        return InputChunks(chunks, rows.kinds)


_ROW = pa.schema([(CHUNK, pa.binary()), (TALLY, pa.binary()), (FEWER, pa.binary())])


def _hashes(table: pa.Table, columns: Iterable[int]) -> Hashes:
    return row_hashes([hashes_of_array(one_array(table.column(column))) for column in columns], table.num_rows)


def _sampled_rows(table: pa.Table, bits: int) -> NDArray[np.int64]:
    """Return the rows of a sample. The hash of a whole row decides, so a sample depends on the rows alone."""
    mask = np.uint64((1 << bits) - 1)
    return np.flatnonzero((_hashes(table, range(table.num_columns)) & mask) == 0)


def _in_dictionaries(table: pa.Table) -> pa.Table:
    columns = {name: one_array(table.column(name)) for name in table.column_names}
    return pa.table(
        {
            name: column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            for name, column in columns.items()
        }
    )
