"""The counts of buckets that requirements need. Buckets that cannot meet them are joined with a neighbour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.buckets import BUCKET, COUNT, bucket_counts
from sfumato.engines.spark.column_profiles import CountedColumn
from sfumato.engines.spark.row_chunks import CHUNK, unpacked
from sfumato.engines.spark.session import Session, in_our_words, shared
from sfumato.engines.spark.spark_tables import one_array
from sfumato.engines.spark.stored_chunks import StoredChunks
from sfumato.methods.method import SensitiveValues
from sfumato.requirements import ClassCounts, Histogram, Requirements
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy

ATTRIBUTE, CODE = "attribute", "code"


@dataclass(frozen=True)
class ValueCounts:
    """The number of records of each bucket with each value. bucket, code, count: int64[pairs]."""

    bucket: NDArray[np.int64]
    code: NDArray[np.int64]
    count: NDArray[np.int64]
    values: SensitiveValues

    def histogram(self, number: NDArray[np.int64]) -> Histogram:
        """Return the histogram of joined buckets. number: the new number of each bucket."""
        width = max(self.values.distinct, 1)
        known = self.code < self.values.distinct
        pairs, pair = np.unique(number[self.bucket[known]] * width + self.code[known], return_inverse=True)
        count = np.bincount(pair, weights=self.count[known], minlength=len(pairs)).astype(np.int64)
        totals = self.values.totals
        assert totals is not None
        return Histogram(
            pairs // width,
            count,
            pairs % width,
            totals / max(int(totals.sum()), 1),
            self.values.numbers,
            hierarchy=self.values.hierarchy,
        )


@dataclass(frozen=True)
class BucketCounts:
    """The counts of buckets, in the form that requirements take for classes."""

    sizes: NDArray[np.int64]
    values: Mapping[str, ValueCounts]
    requirements: Requirements

    def joined(self, number: NDArray[np.int64], count: int) -> ClassCounts:
        sizes = np.bincount(number, weights=self.sizes, minlength=count).astype(np.int64)
        return ClassCounts(sizes, {name: values.histogram(number) for name, values in self.values.items()})

    def holds(self, number: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
        """Return which of the joined buckets meet the requirements as one class."""
        return self.requirements.holds(self.joined(number, count))


def counted_buckets(
    session: Session,
    coded: StoredChunks,
    buckets: int,
    sensitive: Mapping[str, tuple[str, CountedColumn]],
    requirements: Requirements,
) -> BucketCounts:
    """Count the records of every bucket, and their sensitive values.

    sensitive: by name, the column of the coded table and its values.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import IntegerType, LongType, StructField, StructType

    sizes = bucket_counts(coded, buckets)
    if not sensitive:
        return BucketCounts(sizes, {}, requirements)
    kinds = {BUCKET: IntegerType(), ATTRIBUTE: IntegerType(), CODE: IntegerType(), COUNT: LongType()}
    schema = StructType([StructField(name, kind, nullable=False) for name, kind in kinds.items()])
    known = shared(session, list(sensitive.values()))

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row, bucket in enumerate(batch.column(BUCKET).to_pylist()):
                records = unpacked(batch.column(CHUNK).slice(row, 1))
                for attribute, (column, counted) in enumerate(known.value):
                    counts = np.bincount(counted.of(one_array(records.column(column))).codes)
                    codes = np.flatnonzero(counts)
                    keys = [np.full(len(codes), number, np.int32) for number in (bucket, attribute)]
                    arrays: list[NDArray[Any]] = [*keys, codes.astype(np.int32), counts[codes].astype(np.int64)]
                    yield pa.RecordBatch.from_arrays([from_numpy(array) for array in arrays], schema.names)

    with in_our_words("count sensitive values in buckets"):
        counted = coded.tasks([BUCKET, CHUNK]).mapped(count, schema)
        pairs = counted.groupBy(BUCKET, ATTRIBUTE, CODE).agg(sql.sum(COUNT).alias(COUNT)).toArrow()
    bucket, attribute, code, number = (
        to_numpy(one_array(pairs.column(name))).astype(np.int64) for name in (BUCKET, ATTRIBUTE, CODE, COUNT)
    )
    values = {}
    for position, (name, (_, column)) in enumerate(sensitive.items()):
        own = attribute == position
        values[name] = ValueCounts(bucket[own], code[own], number[own], column.values)
    return BucketCounts(sizes, values, requirements)


def whole_table(records: int, sensitive: Mapping[str, CountedColumn]) -> ClassCounts:
    """Return all records of the table as one class."""
    histograms = {}
    for name, counted in sensitive.items():
        totals = counted.values.totals
        assert totals is not None
        code = np.flatnonzero(totals)
        pairs = ValueCounts(np.zeros(len(code), np.int64), code, totals[code], counted.values)
        histograms[name] = pairs.histogram(np.zeros(1, np.int64))
    return ClassCounts(np.array([records], np.int64), histograms)
