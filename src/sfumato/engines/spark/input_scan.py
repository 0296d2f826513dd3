"""The input, read once: stored in chunks that all later jobs read, and counted on the way.

A frame of Spark may give other rows each time it is computed, and moving rows to Python is slow, so both happen once.
Tasks count the values of columns, and the pairs of values of two columns, in the rows that they store. Spark adds up
the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    unpacked,
    written_chunks,
)
from sfumato.engines.spark.session import Frame, Session, as_a_task, in_our_words
from sfumato.engines.spark.spark_tables import SparkTable, columns, one_array, written
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.row_hash import Hashes, hashes_of_array, row_hashes

COLUMN, GIVEN, COUNT = "column", "given", "count"  # the columns of the tally: two counted columns, and the count
ALONE = -1  # stands for no second column
TALLY, FEWER = "tally", "fewer"
FEWER_BITS = 5  # records whose hashes end in as many zero bits are also stored separately, for samples
DENSE = 1 << 22  # the largest number of pairs that are counted in a table instead of sorted
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

    chunks: Frame
    kinds: Sequence[Any]

    def tally(self, session: Session, path: str) -> Frame:
        """Return how often values occur in the whole table. COLUMN and GIVEN say which columns a row counts."""
        from pyspark.sql import functions as sql
        from pyspark.sql.types import IntegerType, LongType, StructField, StructType

        numbers = {COLUMN: IntegerType(), GIVEN: IntegerType(), COUNT: LongType()}
        fields = [StructField(name, kind, nullable=False) for name, kind in numbers.items()]

        def tallied_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                if batch.num_rows:
                    yield from plain(unpacked(batch.column(TALLY))).combine_chunks().to_batches()

        names = [COLUMN, GIVEN, *(field.name for field in self.kinds)]
        with in_our_words("count the values of the columns"):
            counted = self.chunks.where(f"{TALLY} is not null").select(TALLY)
            counted = counted.mapInArrow(tallied_rows, StructType([*fields, *self.kinds]))
            return written(session, counted.groupBy(*names).agg(sql.sum(COUNT).alias(COUNT)), path)

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
            chunks = self.chunks.select(source).where(f"{source} is not null")
            return chunks.mapInArrow(sampled, schema).toArrow()


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
    from pyspark import TaskContext
    from pyspark.sql.types import BinaryType, StructField, StructType

    schema = StructType([StructField(name, BinaryType()) for name in (CHUNK, TALLY, FEWER)])
    hashed, alone, pairs, tables = list(hashed), list(alone), list(pairs), rows.tables

    def store(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        context = TaskContext.get()
        if context is None:
            raise AssertionError("rows are numbered by task, and this code does not run in a task")
        first = context.partitionId() * TASK_ROWS
        for table in tables(batches):
            encoded = _in_dictionaries(table)
            numbers = from_numpy(np.arange(first, first + table.num_rows))
            first += table.num_rows
            ties = from_numpy(tie_numbers(_hashes(encoded, hashed)))
            stored = encoded.append_column(TIE, ties).append_column(ROW, numbers)
            fewer = stored.take(from_numpy(_sampled_rows(encoded, FEWER_BITS)))
            beside = {TALLY: packed(_tallied(encoded, alone, pairs)), FEWER: packed(fewer)}
            for start in range(0, stored.num_rows, CHUNK_ROWS):
                chunk = packed(stored.slice(start, CHUNK_ROWS))
                yield pa.RecordBatch.from_pylist([{CHUNK: chunk, **beside}], _ROW)
                beside = {}  # the first chunk has them for all

    with in_our_words("read the input"):
        return InputChunks(written_chunks(session, rows.frame.mapInArrow(store, schema), path), rows.kinds)


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


def _tallied(table: pa.Table, alone: Sequence[int], pairs: Sequence[tuple[int, int]]) -> pa.Table:
    """Count how often values occur in rows whose columns are all dictionaries."""
    columns = {*alone, *(column for pair in pairs for column in pair)}
    codes = {column: _codes(one_array(table.column(column))) for column in columns}
    tallies = []
    for column in alone:
        code, values = codes[column]
        counts = np.bincount(code, minlength=len(values))
        occurring = np.flatnonzero(counts)  # a dictionary may have values that no row has
        values = values.take(from_numpy(occurring))
        tallies.append(_counted(table, (column, ALONE), counts[occurring], {column: values}))
    for column, given in pairs:
        (code, values), (other, others) = codes[column], codes[given]
        number = other.astype(np.int64) * len(values) + code
        if len(values) * len(others) <= DENSE:
            counts = np.bincount(number)
            occurring = np.flatnonzero(counts)
            counts = counts[occurring]
        else:
            occurring, counts = np.unique(number, return_counts=True)
        both = {
            column: values.take(from_numpy(occurring % len(values))),
            given: others.take(from_numpy(occurring // len(values))),
        }
        tallies.append(_counted(table, (column, given), counts, both))
    return pa.concat_tables(tallies)


def _codes(column: pa.DictionaryArray) -> tuple[NDArray[Any], pa.Array]:
    """Return the number of each row's value, and the values. Null is one of them."""
    if not column.null_count:
        return to_numpy(column.indices), column.dictionary
    values = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
    return to_numpy(column.indices, len(column.dictionary)), values


def _counted(
    table: pa.Table, columns: tuple[int, int], counts: NDArray[np.int64], values: Mapping[int, pa.Array]
) -> pa.Table:
    """Return rows of the tally. values: of the counted columns, by number; other columns are null."""
    numbers: list[NDArray[Any]] = [np.full(len(counts), column, np.int32) for column in columns]
    numbers.append(counts.astype(np.int64))
    kinds = (kind.value_type for kind in table.schema.types)
    arrays = [values[column] if column in values else pa.nulls(len(counts), kind) for column, kind in enumerate(kinds)]
    names = [COLUMN, GIVEN, COUNT, *table.column_names]
    return pa.Table.from_arrays([*(from_numpy(array) for array in numbers), *arrays], names)
