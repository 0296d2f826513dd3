"""Buckets: the line cut at splitters, each bucket for one task. No class crosses a splitter.

Splitters come from one sample that is taken by the hash of the rows: no draw is repeated, and the same table gives the
same splitters whatever its partitions. A splitter is a place, a tie and a row, so that records of equal places are
split too where they are many. Buckets are counted; one that is much too large is looked at again, whole; those that
cannot meet the requirements by themselves are joined with a neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.line_keys import CODES, PLACE, ROW, TIE, Bytes, Placing, from_binary, ranges, to_binary
from sfumato.engines.spark.row_chunks import CHUNK, by_number, packed, unpacked, written_chunks
from sfumato.engines.spark.session import Frame, Session, as_a_task, in_our_words, shared
from sfumato.engines.spark.spark_tables import one_array
from sfumato.tables.coding.arrow_arrays import to_numpy

BUCKET_RECORDS = 1 << 18
SAMPLE_A_BUCKET = 256  # sampled records that splitters are chosen from
LEAST_SAMPLE = 1 << 16  # enough to choose a method on; at least as many, where the table has them
TOO_LARGE = 2  # times the records that a bucket should have
BUCKET, COUNT = "bucket", "records"
LOWEST = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Splitters:
    """places: uint8[s, bytes], ties, rows: int64[s]; ascending. A record at a splitter is behind it."""

    places: Bytes
    ties: NDArray[np.int64]
    rows: NDArray[np.int64]

    @property
    def buckets(self) -> int:
        return len(self.ties) + 1

    def of(self, places: Bytes, ties: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bucket of each record."""
        if not len(self.ties):
            return np.zeros(len(ties), np.int64)
        found: NDArray[np.int64] = ranges(places, ties, rows, self.places, self.ties, self.rows)
        return found

    def only(self, kept: NDArray[np.bool_]) -> Splitters:
        return Splitters(np.ascontiguousarray(self.places[kept]), self.ties[kept], self.rows[kept])

    def merged(self, other: Splitters) -> Splitters:
        """Both, each once."""
        places = np.concatenate([self.places, other.places]) if len(self.ties) else other.places
        ties, rows = np.concatenate([self.ties, other.ties]), np.concatenate([self.rows, other.rows])
        order = np.lexsort([rows, ties, *(places[:, byte] for byte in range(places.shape[1] - 1, -1, -1))])
        places, ties, rows = places[order], ties[order], rows[order]
        new = np.ones(len(ties), np.bool_)
        new[1:] = (places[1:] != places[:-1]).any(axis=1) | (np.diff(ties) != 0) | (np.diff(rows) != 0)
        return Splitters(places, ties, rows).only(new)


NONE = Splitters(np.empty((0, 0), np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class Sample:
    """Some records, ascending: those of equal place and tie together, and how many records of the table they stand for.

    weights: float64[s].
    """

    places: Bytes
    ties: NDArray[np.int64]
    weights: NDArray[np.float64]

    def only(self, kept: NDArray[np.bool_]) -> Sample:
        return Sample(self.places[kept], self.ties[kept], self.weights[kept])


def sampled_bits(records: int, target: int) -> int:
    """How many bits of a tie are zero in records of the sample; target: the records that a bucket should have."""
    share = min(records // LEAST_SAMPLE, target // SAMPLE_A_BUCKET)
    return max(share.bit_length() - 1, 0)


def thinned(frame: Frame, records: int, wanted: int) -> tuple[Frame, float]:
    """About so many of so many rows, chosen by their ties, and how many rows each stands for."""
    from pyspark.sql import functions as sql

    shift = max((records // max(wanted, 1)).bit_length() - 1, 0)
    return frame.where(sql.col(TIE).bitwiseAND(sql.lit((1 << shift) - 1)) == 0), float(1 << shift)


def splitters_of(sample: Sample, buckets: int) -> Splitters:
    """Where the sample is cut into so many parts of equal weight."""
    if buckets < 2 or not len(sample.ties):
        return NONE
    before = np.cumsum(sample.weights) - sample.weights
    marks = np.arange(1, buckets) * (sample.weights.sum() / buckets)
    at = np.unique(np.searchsorted(before, marks))
    at = at[(at > 0) & (at < len(before))]
    return Splitters(np.ascontiguousarray(sample.places[at]), sample.ties[at], np.full(len(at), LOWEST, np.int64))


Assign = Callable[[Bytes, NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]


def coded_schema() -> Any:
    """Of the coded table: chunks of records, the bucket and the number of the records in each."""
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

    kinds = {BUCKET: IntegerType(), COUNT: LongType(), CHUNK: BinaryType()}
    return StructType([StructField(name, kind, nullable=False) for name, kind in kinds.items()])


def in_buckets(records: pa.Table, buckets: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    """Records as rows of the coded table. buckets: int64[records], that of each."""
    for bucket, some in by_number(records, buckets):
        yield one_row(bucket, some.num_rows, packed(some))


def one_row(bucket: int, count: int, chunk: bytes) -> pa.RecordBatch:
    kinds = {BUCKET: pa.int32(), COUNT: pa.int64(), CHUNK: pa.binary()}
    values = (bucket, count, chunk)
    arrays = [pa.array([value], kind) for value, kind in zip(values, kinds.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(kinds))


def bucket_counts(coded: Frame, buckets: int) -> NDArray[np.int64]:
    """How many records each bucket has."""
    from pyspark.sql import functions as sql

    with in_our_words("count the buckets"):
        found = coded.groupBy(BUCKET).agg(sql.sum(COUNT).alias(COUNT)).toArrow()
    counts = np.zeros(buckets, np.int64)
    counts[to_numpy(one_array(found.column(BUCKET)))] = to_numpy(one_array(found.column(COUNT)))
    return counts


def refined(
    session: Session, coded: Frame, placing: Placing, splitters: Splitters, counts: NDArray[np.int64], target: int
) -> Splitters:
    """More splitters where buckets are much too large: a sample was too thin there, or equal rows are too many."""
    from pyspark.sql import functions as sql

    large = np.flatnonzero(counts > TOO_LARGE * target)
    if not len(large):
        return splitters
    with in_our_words("look at large buckets"):
        inside = _opened(session, coded.where(sql.col(BUCKET).isin(large.tolist())), placing)
        # Rows by the million that are equal in every column are split by their numbers.
        shares = [place / 64 for place in range(1, 64)]
        grouped = inside.groupBy(PLACE, TIE).agg(
            sql.count(sql.lit(1)).alias("count"), sql.percentile_approx(ROW, shares, 1000).alias("rows")
        )
        heavy = grouped.where(sql.col("count") >= target // 2).orderBy(PLACE, TIE).toArrow()
        some, weight = thinned(inside, int(counts[large].max()), SAMPLE_A_BUCKET * 16)
        light = some.groupBy(PLACE, TIE).count().orderBy(PLACE, TIE).toArrow()
    if light.num_rows:
        ties, numbers = (to_numpy(one_array(light.column(name))).astype(np.int64) for name in (TIE, "count"))
        sample = Sample(from_binary(one_array(light.column(PLACE))), ties, (numbers * weight).astype(np.float64))
        bucket_of = splitters.of(sample.places, sample.ties, np.zeros(len(ties), np.int64))
        for bucket in large:
            more = splitters_of(sample.only(bucket_of == bucket), -(-int(counts[bucket]) // target))
            splitters = _added(splitters, more)
    if heavy.num_rows:
        splitters = _added(splitters, _inside(heavy, target))
    return splitters


def _opened(session: Session, coded: Frame, placing: Placing) -> Frame:
    """Where every record of some chunks stands."""
    from pyspark.sql.types import BinaryType, LongType, StructField, StructType

    names = [PLACE, TIE, ROW]
    kinds = (BinaryType(), LongType(), LongType())
    schema = StructType([StructField(name, kind, nullable=False) for name, kind in zip(names, kinds, strict=True)])

    known = shared(session, placing)

    def opened(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        for batch in batches:
            if batch.num_rows:
                records = unpacked(batch.column(CHUNK))
                stands = [
                    to_binary(places_of(records, known.value)),
                    *(one_array(records.column(n)) for n in (TIE, ROW)),
                ]
                yield pa.RecordBatch.from_arrays(stands, names)

    return coded.select(CHUNK).mapInArrow(opened, schema)


def places_of(records: pa.Table, placing: Placing) -> Bytes:
    """Where records of chunks stand."""
    return placing.places(placing.codes(from_binary(one_array(records.column(CODES)))))


def divided_anew(
    session: Session, coded: Frame, placing: Placing, before: Splitters, after: Splitters, path: str
) -> Frame:
    """The coded table by more splitters than it was divided by; buckets that stay as they are are not written again."""
    from pyspark.sql import functions as sql

    # The buckets that each old one becomes begin behind its own splitter, which is among the new ones.
    upto = after.of(before.places, before.ties, before.rows)
    first, last = np.append(0, upto), np.append(upto - 1, after.buckets - 1)
    known = shared(session, (placing, after))

    def divided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        placing, after = known.value
        for batch in batches:
            for chunk in batch.column(CHUNK):
                records = unpacked([chunk])
                ties, rows = (to_numpy(one_array(records.column(name))) for name in (TIE, ROW))
                yield from in_buckets(records, after.of(places_of(records, placing), ties, rows))

    split = sql.col(BUCKET).isin(np.flatnonzero(first != last).tolist())
    number = sql.element_at(sql.lit(first.tolist()), sql.col(BUCKET) + 1).cast("int")
    with in_our_words("divide large buckets"):
        anew = written_chunks(session, coded.where(split).mapInArrow(divided, coded.schema), path)
        return coded.where(~split).select(number.alias(BUCKET), COUNT, CHUNK).unionAll(anew)


def _added(splitters: Splitters, more: Splitters) -> Splitters:
    return splitters.merged(more) if len(more.ties) else splitters


def _inside(heavy: pa.Table, target: int) -> Splitters:
    """Splitters before, inside and behind rows that are equal in every column."""
    places = from_binary(one_array(heavy.column(PLACE)))
    found: list[tuple[Bytes, int, int]] = []
    others = (heavy.column(name).to_pylist() for name in (TIE, "count", "rows"))
    for place, tie, count, rows in zip(places, *others, strict=True):
        parts = min(max(round(count / target), 1), len(rows) + 1)
        inner = sorted({rows[len(rows) * part // parts] for part in range(1, parts)})
        found += [(place, tie, row) for row in [LOWEST, *inner]]
        if tie < np.iinfo(np.int64).max:
            found.append((place, tie + 1, LOWEST))
    return Splitters(
        np.array([place for place, _, _ in found], np.uint8),
        np.array([tie for _, tie, _ in found], np.int64),
        np.array([row for _, _, row in found], np.int64),
    )


def joined(holds: Callable[[NDArray[np.int64], int], NDArray[np.bool_]], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the joined bucket of each bucket: neighbours become one until all that are left hold.

    holds: says of buckets, given by the new number of each and how many there are, which of them meet what is asked.
    """
    number = np.arange(len(sizes))
    while number[-1] > 0:
        count = int(number[-1]) + 1
        good = holds(number, count)
        if good.all():
            break
        merged = np.bincount(number, weights=sizes, minlength=count)
        first = np.ones(count, np.bool_)
        for one in np.flatnonzero(~good):
            if not first[one] or (one + 1 < count and not first[one + 1]):
                continue  # it has a neighbour already
            left = merged[one - 1] if one else np.inf
            right = merged[one + 1] if one + 1 < count else np.inf
            if left <= right:
                first[one] = False
            else:
                first[one + 1] = False
        number = (np.cumsum(first) - 1)[number]
    return number


def slots(count: int) -> list[int]:
    """A number for each of so many partitions that Spark puts into just that partition.

    Range partitioning would draw a sample of its own; a hash of the bucket would put several into one partition.
    """
    found = np.full(count, -1, np.int64)
    first, step = 0, 16 * count + 64
    while (found < 0).any():
        numbers = np.arange(first, first + step, dtype=np.uint32)
        partition = partition_of(numbers, count)
        found[partition[::-1]] = np.where(found[partition[::-1]] < 0, numbers[::-1], found[partition[::-1]])
        first += step
    return [int(number) for number in found]


def partition_of(numbers: NDArray[np.uint32], count: int) -> NDArray[np.int64]:
    """Where Spark puts integers when it repartitions by them: their hash by MurmurHash3 (x86, 32 bits, seed 42)."""
    mixed = numbers * np.uint32(0xCC9E2D51)
    mixed = ((mixed << np.uint32(15)) | (mixed >> np.uint32(17))) * np.uint32(0x1B873593)
    mixed = np.uint32(42) ^ mixed
    mixed = ((mixed << np.uint32(13)) | (mixed >> np.uint32(19))) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed ^= np.uint32(4)  # bytes of an integer
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
    return mixed.view(np.int32).astype(np.int64) % count
