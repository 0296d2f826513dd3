"""Buckets: the line, cut at splitters into one bucket for each task. No class crosses a splitter.

Splitters come from one sample, which is taken by the hash of the rows. The same table therefore gives the same
splitters, whatever its partitions. A splitter is a place, a tie and a row, so that records of equal places can be split
too if there are many. Buckets are counted. One that is much too large is divided again, and one that cannot meet the
requirements by itself is joined with a neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.line_keys import CODES, PLACE, ROW, TIE, Bytes, LineEncoder, from_binary, ranges, to_binary
from sfumato.engines.spark.row_chunks import CHUNK, by_number, packed, unpacked
from sfumato.engines.spark.session import Frame, Session, in_our_words, shared
from sfumato.engines.spark.spark_tables import one_array
from sfumato.engines.spark.stored_chunks import StoredChunks, stored_chunks
from sfumato.tables.coding.arrow_arrays import to_numpy

BUCKET_RECORDS = 1 << 18
SAMPLE_A_BUCKET = 256  # sampled records for each bucket, from which splitters are chosen
LEAST_SAMPLE = 1 << 16  # the smallest sample, which is enough to choose a method on
TOO_LARGE = 2  # a bucket is divided again if it has this many times the records that it should have
BUCKET, COUNT = "bucket", "records"
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True)
class Splitters:
    """The splitters of the line, ascending. A record at a splitter is behind it.

    places: uint8[s, bytes]. ties, rows: int64[s].
    """

    places: Bytes
    ties: NDArray[np.int64]
    rows: NDArray[np.int64]

    @property
    def buckets(self) -> int:
        return len(self.ties) + 1

    def of(self, places: Bytes, ties: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bucket of each record."""
        if not len(self.ties):
            return np.zeros(len(ties), np.int64)
        buckets: NDArray[np.int64] = ranges(places, ties, rows, self.places, self.ties, self.rows)
        return buckets

    def only(self, kept: NDArray[np.bool_]) -> Splitters:
        return Splitters(np.ascontiguousarray(self.places[kept]), self.ties[kept], self.rows[kept])

    def merged(self, other: Splitters) -> Splitters:
        """Return the splitters of both, each once."""
        places = np.concatenate([self.places, other.places]) if len(self.ties) else other.places
        ties, rows = np.concatenate([self.ties, other.ties]), np.concatenate([self.rows, other.rows])
        order = np.lexsort([rows, ties, *(places[:, byte] for byte in range(places.shape[1] - 1, -1, -1))])
        places, ties, rows = places[order], ties[order], rows[order]
        new = np.ones(len(ties), np.bool_)
        new[1:] = (places[1:] != places[:-1]).any(axis=1) | (np.diff(ties) != 0) | (np.diff(rows) != 0)
        return Splitters(places, ties, rows).only(new)


NO_SPLITTERS = Splitters(np.empty((0, 0), np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class LineSample:
    """A sample in the order of the line. Records of equal place and tie are one entry.

    weights: float64[s], the number of records of the table that each entry stands for.
    """

    places: Bytes
    ties: NDArray[np.int64]
    weights: NDArray[np.float64]

    def only(self, kept: NDArray[np.bool_]) -> LineSample:
        return LineSample(self.places[kept], self.ties[kept], self.weights[kept])


def sampled_bits(records: int, target: int) -> int:
    """Return how many bits of a tie are zero in records of the sample. target: the wanted records of a bucket."""
    share = min(records // LEAST_SAMPLE, target // SAMPLE_A_BUCKET)
    return max(share.bit_length() - 1, 0)


def thinned(frame: Frame, records: int, wanted: int) -> tuple[Frame, float]:
    """Choose about ``wanted`` of ``records`` rows by place and tie; also return how many rows each stands for."""
    from pyspark.sql import functions as sql

    shift = max((records // max(wanted, 1)).bit_length() - 1, 0)
    chosen = sql.xxhash64(PLACE, TIE).bitwiseAND(sql.lit((1 << shift) - 1)) == 0
    return frame.where(chosen), float(1 << shift)


def splitters_of(sample: LineSample, buckets: int) -> Splitters:
    """Return the splitters that cut the sample into ``buckets`` parts of about equal weight."""
    if buckets < 2 or not len(sample.ties):
        return NO_SPLITTERS
    before = np.cumsum(sample.weights) - sample.weights
    marks = np.arange(1, buckets) * (sample.weights.sum() / buckets)
    at = np.unique(np.searchsorted(before, marks))
    at = at[(at > 0) & (at < len(before))]
    return Splitters(np.ascontiguousarray(sample.places[at]), sample.ties[at], np.full(len(at), LOWEST, np.int64))


AssignBucket = Callable[[Bytes, NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]


def coded_schema() -> Any:
    """Return the schema of the coded table: the bucket of a chunk, its number of records, and the chunk."""
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

    kinds = {BUCKET: IntegerType(), COUNT: LongType(), CHUNK: BinaryType()}
    return StructType([StructField(name, kind, nullable=False) for name, kind in kinds.items()])


def in_buckets(records: pa.Table, buckets: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    """Yield records as rows of the coded table. buckets: int64[records], the bucket of each."""
    for bucket, piece in by_number(records, buckets):
        yield one_row(bucket, piece.num_rows, packed(piece))


def one_row(bucket: int, count: int, chunk: bytes) -> pa.RecordBatch:
    kinds = {BUCKET: pa.int32(), COUNT: pa.int64(), CHUNK: pa.binary()}
    values = (bucket, count, chunk)
    arrays = [pa.array([value], kind) for value, kind in zip(values, kinds.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(kinds))


def bucket_counts(coded: StoredChunks, buckets: int) -> NDArray[np.int64]:
    """Return the number of records in each bucket."""
    with in_our_words("count the buckets"):
        counted = coded.collected([BUCKET, COUNT])
    counts = np.zeros(buckets, np.int64)
    np.add.at(counts, *(to_numpy(one_array(counted.column(name))) for name in (BUCKET, COUNT)))
    return counts


def refined(
    session: Session,
    coded: StoredChunks,
    line_encoder: LineEncoder,
    splitters: Splitters,
    counts: NDArray[np.int64],
    target: int,
) -> Splitters:
    """Add splitters inside buckets that are much too large: the sample was too thin there, or many rows are equal."""
    large = np.flatnonzero(counts > TOO_LARGE * target)
    if not len(large):
        return splitters
    with in_our_words("examine large buckets"):
        inside = _opened(session, coded.only(BUCKET, large), line_encoder)
        heavy = _first_rows(inside, target).orderBy(PLACE, TIE, ROW).toArrow()
        thin, weight = thinned(inside, int(counts[large].max()), SAMPLE_A_BUCKET * 16)
        light = thin.groupBy(PLACE, TIE).count().orderBy(PLACE, TIE).toArrow()
    if light.num_rows:
        ties, numbers = (to_numpy(one_array(light.column(name))).astype(np.int64) for name in (TIE, "count"))
        sample = LineSample(from_binary(one_array(light.column(PLACE))), ties, (numbers * weight).astype(np.float64))
        bucket_of = splitters.of(sample.places, sample.ties, np.zeros(len(ties), np.int64))
        for bucket in large:
            more = splitters_of(sample.only(bucket_of == bucket), -(-int(counts[bucket]) // target))
            splitters = _added(splitters, more)
    if heavy.num_rows:
        splitters = _added(splitters, _inside(heavy))
    return splitters


def _first_rows(inside: Frame, target: int) -> Frame:
    """Return where to divide rows that are equal in every column, if there are many: the first row of each part.

    The parts have equal sizes. Their sizes alone matter, since nobody can tell the rows apart; so they are counted and
    not estimated, and do not depend on the numbers of the rows.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    equal = Window.partitionBy(PLACE, TIE)
    heavy = inside.groupBy(PLACE, TIE).agg(sql.count(sql.lit(1)).alias(COUNT)).where(f"{COUNT} >= {target // 2}")
    numbered = inside.join(heavy, [PLACE, TIE]).withColumn("number", sql.row_number().over(equal.orderBy(ROW)) - 1)
    parts = f"greatest(cast(round({COUNT} / {target}) as bigint), 1)"
    begins = f"number = 0 or (number * {parts}) div {COUNT} > ((number - 1) * {parts}) div {COUNT}"
    return numbered.where(begins).select(PLACE, TIE, ROW)


def _opened(session: Session, coded: StoredChunks, line_encoder: LineEncoder) -> Frame:
    """Return the place, tie and row number of every record."""
    from pyspark.sql.types import BinaryType, LongType, StructField, StructType

    names = [PLACE, TIE, ROW]
    kinds = (BinaryType(), LongType(), LongType())
    schema = StructType([StructField(name, kind, nullable=False) for name, kind in zip(names, kinds, strict=True)])

    known = shared(session, line_encoder)

    def opened(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                records = unpacked(batch.column(CHUNK))
                places = to_binary(places_of(records, known.value))
                others = (one_array(records.column(name)) for name in (TIE, ROW))
                yield pa.RecordBatch.from_arrays([places, *others], names)

    return coded.tasks([CHUNK]).mapped(opened, schema)


def places_of(records: pa.Table, line_encoder: LineEncoder) -> Bytes:
    """Return the places of unpacked records."""
    return line_encoder.places(line_encoder.codes(from_binary(one_array(records.column(CODES)))))


def divided_anew(
    session: Session, coded: StoredChunks, line_encoder: LineEncoder, before: Splitters, after: Splitters, path: str
) -> StoredChunks:
    """Divide the coded table at more splitters. Buckets that stay as they are are not written again."""
    # The new buckets of an old one begin behind its own splitter, which is among the new splitters.
    begins = after.of(before.places, before.ties, before.rows)
    first, last = np.append(0, begins), np.append(begins - 1, after.buckets - 1)
    known = shared(session, (line_encoder, after))

    def divided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        line_encoder, after = known.value
        for batch in batches:
            for chunk in batch.column(CHUNK):
                records = unpacked([chunk])
                ties, rows = (to_numpy(one_array(records.column(name))) for name in (TIE, ROW))
                yield from in_buckets(records, after.of(places_of(records, line_encoder), ties, rows))

    with in_our_words("divide large buckets"):
        split = coded.only(BUCKET, np.flatnonzero(first != last)).tasks([CHUNK])
        anew = stored_chunks(session, split, divided, coded_schema(), path)
        return coded.only(BUCKET, np.flatnonzero(first == last)).renumbered(BUCKET, first).joined(anew)


def _added(splitters: Splitters, more: Splitters) -> Splitters:
    return splitters.merged(more) if len(more.ties) else splitters


def _inside(heavy: pa.Table) -> Splitters:
    """Return splitters before, inside and behind rows that are equal in every column. heavy: see ``_first_rows``."""
    places = from_binary(one_array(heavy.column(PLACE)))
    ties, rows = (to_numpy(one_array(heavy.column(name))).astype(np.int64) for name in (TIE, ROW))
    first = np.ones(len(ties), np.bool_)
    first[1:] = (places[1:] != places[:-1]).any(axis=1) | (np.diff(ties) != 0)
    before = np.where(first, LOWEST, rows)
    behind = first & (ties < HIGHEST)
    return Splitters(
        np.concatenate([places, places[behind]]),
        np.concatenate([ties, ties[behind] + 1]),
        np.concatenate([before, np.full(int(behind.sum()), LOWEST)]),
    )


def joined(holds: Callable[[NDArray[np.int64], int], NDArray[np.bool_]], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Join neighbours until every bucket holds, and return the new number of each bucket: int64[buckets].

    holds: takes the new number of each bucket and the number of new buckets, and says which of these meet the
    requirements.
    """
    number = np.arange(len(sizes))
    while number[-1] > 0:
        count = int(number[-1]) + 1
        good = holds(number, count)
        if good.all():
            break
        merged = np.bincount(number, weights=sizes, minlength=count)
        first = np.ones(count, np.bool_)
        for bucket in np.flatnonzero(~good):
            if not first[bucket] or (bucket + 1 < count and not first[bucket + 1]):
                continue  # it is joined already
            left = merged[bucket - 1] if bucket else np.inf
            right = merged[bucket + 1] if bucket + 1 < count else np.inf
            if left <= right:
                first[bucket] = False
            else:
                first[bucket + 1] = False
        number = (np.cumsum(first) - 1)[number]
    return number
