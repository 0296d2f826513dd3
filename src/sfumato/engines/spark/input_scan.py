"""The table read once: kept in chunks that all later jobs read, and counted on the way.

What a frame of Spark computes may differ whenever it is computed, and rows cross to Python dearly: both happen once.
Tasks count the values of columns and the pairs of values of two columns in the rows that they keep; Spark adds that up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.line_keys import ROW, TIE
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
from sfumato.engines.spark.row_hash import ties_of
from sfumato.engines.spark.session import Frame, Session, as_a_task, in_our_words
from sfumato.engines.spark.spark_tables import SparkTable, columns, one_array, written
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy

COLUMN, GIVEN, COUNT = "column", "given", "count"  # of what values were counted, and how often they occur
ALONE = -1  # in place of a second column
TALLY, FEWER = "tally", "fewer"
FEWER_BITS = 5  # zero bits of the ties of records that are kept apart as well, for samples
DENSE = 1 << 22  # pairs that are counted in a table instead of sorted
TASK_ROWS = 1 << 33  # more than a task can have


@dataclass(frozen=True)
class Rows:
    """Where rows come from. tables: makes tables of what a task gets of the frame. kinds: the fields of the columns."""

    frame: Frame
    tables: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.Table]]
    kinds: Sequence[Any]


def rows_of(session: Session, table: SparkTable, names: Sequence[str]) -> Rows:
    """Some columns of a table, each under its place among these."""
    selected = table.selected(names)
    kinds = list(selected.schema.fields)
    parts = None
    if table.files:
        parts = parts_of(session, table.frame, dict(zip(names, columns(len(names)), strict=True)))
    return Rows(selected, gathered, kinds) if parts is None else Rows(*parts, kinds)


@dataclass(frozen=True)
class Intake:
    """The table in chunks, and what was counted in each. kinds: the fields of its columns."""

    chunks: Frame
    kinds: Sequence[Any]

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
        source = CHUNK if bits < FEWER_BITS else FEWER

        def chosen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for chunk in batch.column(source):
                    table = opened(chunk)
                    ties = to_numpy(one_array(table.column(TIE)))
                    rows = np.flatnonzero((ties & ((1 << bits) - 1)) == 0)
                    yield from plain(table.select(schema.names).take(from_numpy(rows))).to_batches()

        with in_our_words("take a sample"):
            some = self.chunks.select(source).where(f"{source} is not null")
            return some.mapInArrow(chosen, schema).toArrow()


def take_in(
    session: Session,
    rows: Rows,
    secret: int,
    alone: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    path: str,
) -> Intake:
    """Keep rows with their ties, and count the values of some columns and pairs, given by place.

    secret: the key of ties.
    """
    from pyspark import TaskContext
    from pyspark.sql.types import BinaryType, StructField, StructType

    schema = StructType([StructField(name, BinaryType()) for name in (CHUNK, TALLY, FEWER)])
    alone, pairs, tables = list(alone), list(pairs), rows.tables

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        context = TaskContext.get()
        if context is None:
            raise AssertionError("rows are numbered by tasks, and this is none")
        first = context.partitionId() * TASK_ROWS
        for table in tables(batches):
            encoded = _in_dictionaries(table)
            numbers = from_numpy(np.arange(first, first + table.num_rows))
            first += table.num_rows
            ties = ties_of(encoded, secret)
            kept = encoded.append_column(TIE, from_numpy(ties)).append_column(ROW, numbers)
            fewer = kept.take(from_numpy(np.flatnonzero((ties & ((1 << FEWER_BITS) - 1)) == 0)))
            beside = {TALLY: packed(_tallied(encoded, alone, pairs)), FEWER: packed(fewer)}
            for start in range(0, kept.num_rows, CHUNK_ROWS):
                yield pa.RecordBatch.from_pylist([{CHUNK: packed(kept.slice(start, CHUNK_ROWS)), **beside}], _ROW)
                beside = {}  # once is enough

    with in_our_words("read the input"):
        return Intake(written_chunks(session, rows.frame.mapInArrow(keep, schema), path), rows.kinds)


_ROW = pa.schema([(CHUNK, pa.binary()), (TALLY, pa.binary()), (FEWER, pa.binary())])


def _in_dictionaries(table: pa.Table) -> pa.Table:
    columns = {name: one_array(table.column(name)) for name in table.column_names}
    return pa.table(
        {
            name: column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            for name, column in columns.items()
        }
    )


def _tallied(table: pa.Table, alone: Sequence[int], pairs: Sequence[tuple[int, int]]) -> pa.Table:
    """How often values occur in some rows, whose columns are all in dictionaries."""
    places = {*alone, *(place for pair in pairs for place in pair)}
    codes = {place: _codes(one_array(table.column(place))) for place in places}
    found = []
    for place in alone:
        code, values = codes[place]
        counts = np.bincount(code, minlength=len(values))
        occurring = np.flatnonzero(counts)  # a dictionary may have values that no row has
        found.append(_counted(table, (place, ALONE), counts[occurring], {place: values.take(from_numpy(occurring))}))
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
