"""The table read once: kept in chunks that all later jobs read, and counted on the way.

What a frame of Spark computes may differ whenever it is computed, and rows cross to Python dearly: both happen once.
Tasks count the values of columns and the pairs of values of two columns in the rows that they keep; Spark adds that up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.chunks import CHUNK, CHUNK_ROWS, gathered, opened, packed, plain, unpacked, written_chunks
from sfumato.engines.spark.places import ROW, TIE
from sfumato.engines.spark.reading import one_array, written
from sfumato.engines.spark.session import Frame, Session, as_a_task, in_our_words
from sfumato.tables.arrays import from_numpy, to_numpy

COLUMN, GIVEN, COUNT = "column", "given", "count"  # of what values were counted, and how often they occur
ALONE = -1  # in place of a second column
TALLY, RECORDS = "tally", "records"
DENSE = 1 << 22  # pairs that are counted in a table instead of sorted
TASK_ROWS = 1 << 33  # more than a task can have


@dataclass(frozen=True)
class Intake:
    """The table in chunks, and what was counted in each. kinds: the fields of its columns."""

    chunks: Frame
    kinds: Sequence[Any]

    @property
    def records(self) -> int:
        from pyspark.sql import functions as sql

        with in_our_words("count the records"):
            return int(self.chunks.agg(sql.sum(RECORDS)).collect()[0][0] or 0)

    def tally(self, session: Session, path: str) -> Frame:
        """How often values occur in the whole table: rows are told apart by COLUMN and GIVEN."""
        from pyspark.sql import functions as sql
        from pyspark.sql.types import IntegerType, LongType, StructField, StructType

        numbers = {COLUMN: IntegerType(), GIVEN: IntegerType(), COUNT: LongType()}
        fields = [StructField(name, kind, nullable=False) for name, kind in numbers.items()]

        def told_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                if batch.num_rows:
                    yield from unpacked(batch.column(TALLY)).combine_chunks().to_batches()

        names = [COLUMN, GIVEN, *(field.name for field in self.kinds)]
        with in_our_words("count the values of the columns"):
            counted = self.chunks.where(f"{TALLY} is not null").select(TALLY)
            counted = counted.mapInArrow(told_rows, StructType([*fields, *self.kinds]))
            return written(session, counted.groupBy(*names).agg(sql.sum(COUNT).alias(COUNT)), path)

    def sample(self, bits: int) -> pa.Table:
        """The records whose ties end in so many zero bits, in no order."""
        from pyspark.sql.types import LongType, StructField, StructType

        schema = StructType([*self.kinds, StructField(TIE, LongType(), nullable=False)])

        def chosen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for chunk in batch.column(CHUNK):
                    table = opened(chunk)
                    ties = to_numpy(one_array(table.column(TIE)))
                    rows = np.flatnonzero((ties & ((1 << bits) - 1)) == 0)
                    yield from plain(table.select(schema.names).take(from_numpy(rows))).to_batches()

        with in_our_words("take a sample"):
            return self.chunks.select(CHUNK).mapInArrow(chosen, schema).toArrow()


def take_in(
    session: Session, frame: Frame, columns: Sequence[int], pairs: Sequence[tuple[int, int]], path: str
) -> Intake:
    """Keep the rows of a frame with their ties, and count the values of some columns and pairs, given by place."""
    from pyspark import TaskContext
    from pyspark.sql.types import BinaryType, LongType, StructField, StructType

    kinds = [field for field in frame.schema.fields if field.name != TIE]
    schema = StructType(
        [StructField(RECORDS, LongType()), StructField(CHUNK, BinaryType()), StructField(TALLY, BinaryType())]
    )
    columns, pairs, names = list(columns), list(pairs), [kind.name for kind in kinds]

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        context = TaskContext.get()
        if context is None:
            raise AssertionError("rows are numbered by tasks, and this is none")
        first = context.partitionId() * TASK_ROWS
        for table in gathered(batches):
            encoded = pa.table({name: one_array(table.column(name)).dictionary_encode() for name in names})
            tally: bytes | None = packed(_tallied(encoded, columns, pairs))
            numbers = from_numpy(np.arange(first, first + table.num_rows))
            first += table.num_rows
            kept = encoded.append_column(TIE, table.column(TIE)).append_column(ROW, numbers)
            for start in range(0, kept.num_rows, CHUNK_ROWS):
                piece = kept.slice(start, CHUNK_ROWS)
                values = {RECORDS: piece.num_rows, CHUNK: packed(piece), TALLY: tally}
                yield pa.RecordBatch.from_pylist([values], _ROW)
                tally = None

    with in_our_words("read the input"):
        return Intake(written_chunks(session, frame.select(*names, TIE).mapInArrow(keep, schema), path), kinds)


_ROW = pa.schema([(RECORDS, pa.int64()), (CHUNK, pa.binary()), (TALLY, pa.binary())])


def _tallied(table: pa.Table, columns: Sequence[int], pairs: Sequence[tuple[int, int]]) -> pa.Table:
    """How often values occur in some rows, whose columns are all in dictionaries."""
    places = {*columns, *(place for pair in pairs for place in pair)}
    codes = {place: _codes(one_array(table.column(place))) for place in places}
    found = []
    for place in columns:
        code, values = codes[place]
        found.append(_counted(table, (place, ALONE), np.bincount(code, minlength=len(values)), {place: values}))
    for place, given in pairs:
        (code, values), (other, others) = codes[place], codes[given]
        number = other.astype(np.int64) * len(values) + code
        if len(values) * len(others) <= DENSE:
            counts = np.bincount(number)
            occurring = np.flatnonzero(counts)
            counts = counts[occurring]
        else:
            occurring, counts = np.unique(number, return_counts=True)
        both = {
            place: values.take(from_numpy(occurring % len(values))),
            given: others.take(from_numpy(occurring // len(values))),
        }
        found.append(_counted(table, (place, given), counts, both))
    return pa.concat_tables(found)


def _codes(column: pa.DictionaryArray) -> tuple[NDArray[Any], pa.Array]:
    """The value of each row by its number, and the values; null is one."""
    if not column.null_count:
        return to_numpy(column.indices), column.dictionary
    values = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
    return to_numpy(column.indices, len(column.dictionary)), values


def _counted(
    table: pa.Table, told: tuple[int, int], counts: NDArray[np.int64], values: Mapping[int, pa.Array]
) -> pa.Table:
    numbers: list[NDArray[Any]] = [np.full(len(counts), number, np.int32) for number in told]
    numbers.append(counts.astype(np.int64))
    kinds = (kind.value_type for kind in table.schema.types)
    arrays = [values[place] if place in values else pa.nulls(len(counts), kind) for place, kind in enumerate(kinds)]
    names = [COLUMN, GIVEN, COUNT, *table.column_names]
    return pa.Table.from_arrays([*(from_numpy(one) for one in numbers), *arrays], names)
