"""The tally: how often values occur in the whole table, and how often pairs of values do.

The tasks that read the table count their own rows. One job adds these counts up, in parts that have all counts of their
values. The driver gets what it needs and no more: the values of the counted columns, and totals of the columns that
could undo the release.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.engines.spark.row_chunks import CHUNK, by_number, joined, opened, packed
from sfumato.engines.spark.session import as_a_task, in_our_words
from sfumato.engines.spark.spark_tables import one_array
from sfumato.engines.spark.stored_chunks import StoredChunks
from sfumato.evaluation.linkability.column_facts import MOST_IN_SAMPLE
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.row_hash import value_hashes

TALLY = "tally"
Pair = tuple[int, int]
ALONE = -1  # stands for no second column
VALUE, GIVEN, COUNT = "value", "given", "count"  # the columns of counts
COLUMN, PART, FOUND = "column", "part", "found"
PARTS = 1 << 10  # into which values are divided, so that many tasks can add up many of them
DENSE = 1 << 22  # the largest number of pairs that are counted in a table instead of sorted
HELD = 1 << 16  # counts that are held before they are added up


def tallied(table: pa.Table, alone: Sequence[int], pairs: Sequence[Pair]) -> bytes:
    """Count how often values of columns, and pairs of them, occur in rows whose columns are all dictionaries."""
    columns = {column: one_array(table.column(column)) for column in {*alone, *(one for pair in pairs for one in pair)}}
    counts = {(column, ALONE): counted({VALUE: columns[column]}) for column in alone}
    for column, given in pairs:
        counts[column, given] = counted({VALUE: columns[column], GIVEN: columns[given]})
    return pickle.dumps({pair: packed(table) for pair, table in counts.items()})


def counted(columns: Mapping[str, pa.DictionaryArray], times: NDArray[np.int64] | None = None) -> pa.Table:
    """Count equal rows. times: int64[rows], how often each occurs; None is once."""
    coded = {name: _codes(column) for name, column in columns.items()}
    number: Any = np.int64(0)
    for codes, values in coded.values():
        number = number * len(values) + codes
    if prod(len(values) for _, values in coded.values()) <= DENSE:
        counts = np.bincount(number, times)
        occurring = np.flatnonzero(counts)  # a dictionary may have values that no row has
        counts = counts[occurring]
    else:
        occurring, place = np.unique(number, return_inverse=True)
        counts = np.bincount(place, times)
    found = {}
    for name, (_, values) in reversed(coded.items()):
        occurring, code = np.divmod(occurring, len(values))
        found[name] = values.take(from_numpy(code))
    return pa.table({**{name: found[name] for name in columns}, COUNT: from_numpy(counts.astype(np.int64))})


def _codes(column: pa.DictionaryArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the number of each row's value, and the values. Null is one of them."""
    if not column.null_count:
        return to_numpy(column.indices).astype(np.int64), column.dictionary
    values = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
    return to_numpy(column.indices, len(column.dictionary)).astype(np.int64), values


class _Sum:
    """Adds up counts of one column or pair. It ends with None if there are more than ``most`` of them."""

    def __init__(self, most: float = np.inf) -> None:
        self._most, self._rows = most, 0
        self._held: list[pa.Table] | None = []

    def add(self, counts: pa.Table) -> None:
        if self._held is None:
            return
        self._held.append(counts)
        self._rows += counts.num_rows
        if self._rows > HELD + 2 * self._held[0].num_rows:
            self.total()

    def total(self) -> pa.Table | None:
        if self._held is None:
            return None
        held = joined(self._held)
        columns = {name: _one_form(one_array(held.column(name))) for name in held.column_names if name != COUNT}
        encoded = {name: column.dictionary_encode() for name, column in columns.items()}
        total = counted(encoded, to_numpy(one_array(held.column(COUNT))))
        self._rows, self._held = total.num_rows, [total] if total.num_rows <= self._most else None
        return total if self._held else None


def _one_form(values: pa.Array) -> pa.Array:
    """Return values with one form of every number: there is one NaN, and -0.0 is 0.0."""
    if not pa.types.is_floating(values.type):
        return values
    values = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(values), pa.scalar(np.nan, values.type), values)


@dataclass
class TableTally:
    """What the tally of the whole table, or of some parts of it, says.

    counts: the counts of counted columns; None if there are too many. The others are about columns that could undo a
    release. known, alone, distinct: how many records have a value, how many are alone with it, and how many values
    there are. samples: some of the values. right: by attribute and column, the number of records whose attribute is
    guessed right if the guess is the most frequent one among records with the same value of the column.
    """

    counts: dict[int, pa.Table | None] = field(default_factory=dict)
    known: dict[int, int] = field(default_factory=dict)
    alone: dict[int, int] = field(default_factory=dict)
    distinct: dict[int, int] = field(default_factory=dict)
    samples: dict[int, pa.Array] = field(default_factory=dict)
    right: dict[Pair, int] = field(default_factory=dict)

    @classmethod
    def of_counts(cls, column: int, given: int, counts: pa.Table) -> TableTally:
        """Return what the counts of all records with some values say."""
        times, values = to_numpy(one_array(counts.column(COUNT))), one_array(counts.column(VALUE))
        if given != ALONE:
            codes, others = _codes(one_array(counts.column(GIVEN)).dictionary_encode())
            most = np.zeros(len(others), np.int64)
            np.maximum.at(most, codes, times)
            return cls(right={(column, given): int(most.sum())})
        valid = to_numpy(pc.invert(values.is_null(nan_is_null=True)))
        times, values = times[valid], values.filter(from_numpy(valid))
        return cls(
            known={column: int(times.sum())},
            alone={column: int((times == 1).sum())},
            distinct={column: len(times)},
            samples={column: _sample(values)},
        )

    def joined(self, other: TableTally) -> TableTally:
        """Return what two parts of a tally say together."""
        samples = {**self.samples, **other.samples}
        for column in self.samples.keys() & other.samples.keys():
            samples[column] = _sample(pa.concat_arrays([self.samples[column], other.samples[column]]))
        return TableTally(
            {**self.counts, **other.counts},  # every counted column is in one part
            _summed(self.known, other.known),
            _summed(self.alone, other.alone),
            _summed(self.distinct, other.distinct),
            samples,
            _summed(self.right, other.right),
        )


def _summed(some: Mapping[Any, int], more: Mapping[Any, int]) -> dict[Any, int]:
    return {key: some.get(key, 0) + more.get(key, 0) for key in (*some, *(key for key in more if key not in some))}


def _sample(values: pa.Array) -> pa.Array:
    """Choose values by their hashes, so that a sample depends on the rows alone."""
    chosen = np.argsort(value_hashes(values), kind="stable")[:MOST_IN_SAMPLE]
    return values.take(from_numpy(chosen))


def tally_of(chunks: StoredChunks, most: Mapping[int, int], linkable: Collection[int]) -> TableTally:
    """Add up the counts of all tasks. most: how many values each of the counted columns may have, by number.

    linkable: the columns that could undo a release.
    """
    from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

    most, linkable = dict(most), set(linkable)
    numbers = [StructField(name, IntegerType(), nullable=False) for name in (PART, COLUMN, GIVEN)]

    def divided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sums: dict[Pair, _Sum] = {}
        for batch in batches:
            for tally in batch.column(TALLY):
                for pair, counts in pickle.loads(tally.as_buffer()).items():  # noqa: S301 - our own executors wrote it
                    sums.setdefault(pair, _Sum()).add(opened(pa.scalar(counts, pa.binary())))
        for (column, given), sums_of_pair in sums.items():
            counts = sums_of_pair.total()
            assert counts is not None
            if given == ALONE and column in most:
                yield _row(PARTS + column, column, given, counts)
            if given != ALONE or column in linkable:
                by = one_array(counts.column(VALUE if given == ALONE else GIVEN))
                for part, some in by_number(counts, (value_hashes(by) % np.uint64(PARTS)).astype(np.int64)):
                    yield _row(part, column, given, some)

    def added(batches: Iterator[pa.RecordBatch]) -> TableTally:
        sums: dict[tuple[int, int, int], _Sum] = {}
        for batch in batches:
            keys = zip(*(batch.column(name).to_pylist() for name in (PART, COLUMN, GIVEN)), strict=True)
            for key, chunk in zip(keys, batch.column(CHUNK), strict=True):
                if key not in sums:
                    sums[key] = _Sum(most[key[1]]) if key[0] >= PARTS else _Sum()
                sums[key].add(opened(chunk))
        found = TableTally()
        for (part, column, given), sums_of_part in sums.items():
            counts = sums_of_part.total()
            if part >= PARTS:
                found.counts[column] = counts
            else:
                assert counts is not None
                found = found.joined(TableTally.of_counts(column, given, counts))
        return found

    def added_by_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(added(batches))], pa.binary())], [FOUND])

    with in_our_words("count the values of the columns"):
        few = chunks.few([TALLY])
        if few is not None:
            return added(divided(iter(few)))
        counts = chunks.tasks([TALLY])
        parts = counts.mapped(divided, StructType([*numbers, StructField(CHUNK, BinaryType(), nullable=False)]))
        # Without a number of partitions, Spark puts small parts together.
        schema = StructType([StructField(FOUND, BinaryType())])
        found = parts.repartition(PART).mapInArrow(added_by_task, schema).collect()
    return reduce(
        TableTally.joined,
        (pickle.loads(row[FOUND]) for row in found),  # noqa: S301 - our own executors wrote it
        TableTally(),
    )


def _row(part: int, column: int, given: int, counts: pa.Table) -> pa.RecordBatch:
    numbers = [pa.array([number], pa.int32()) for number in (part, column, given)]
    return pa.RecordBatch.from_arrays([*numbers, pa.array([packed(counts)], pa.binary())], [PART, COLUMN, GIVEN, CHUNK])
