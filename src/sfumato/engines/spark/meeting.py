"""What requirements count in buckets, so that those which cannot meet them are joined with a neighbour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.spark.division import BUCKET, Assign, bucket_counts, with_bucket
from sfumato.engines.spark.profiling import CountedColumn
from sfumato.engines.spark.reading import one_array
from sfumato.engines.spark.session import Frame, Session, in_our_words
from sfumato.methods.method import SensitiveValues
from sfumato.requirements import ClassCounts, Histogram, Requirements
from sfumato.tables.arrays import to_numpy


@dataclass(frozen=True)
class ValueCounts:
    """How many records of each bucket have each value: three int64[pairs]; and what is known of the values."""

    bucket: NDArray[np.int64]
    code: NDArray[np.int64]
    count: NDArray[np.int64]
    values: SensitiveValues

    def histogram(self, number: NDArray[np.int64]) -> Histogram:
        """Of buckets that were joined; ``number`` is the new number of each."""
        width = max(self.values.distinct, 1)
        known = self.code < self.values.distinct
        pairs, place = np.unique(number[self.bucket[known]] * width + self.code[known], return_inverse=True)
        count = np.bincount(place, weights=self.count[known], minlength=len(pairs)).astype(np.int64)
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
    """The buckets as requirements see classes."""

    sizes: NDArray[np.int64]
    values: Mapping[str, ValueCounts]
    requirements: Requirements

    def joined(self, number: NDArray[np.int64], count: int) -> ClassCounts:
        sizes = np.bincount(number, weights=self.sizes, minlength=count).astype(np.int64)
        return ClassCounts(sizes, {name: values.histogram(number) for name, values in self.values.items()})

    def holds(self, number: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
        """Which of the joined buckets could be a class."""
        return self.requirements.holds(self.joined(number, count))


def counted_buckets(
    session: Session,
    coded: Frame,
    assign: Assign,
    buckets: int,
    sensitive: Mapping[str, tuple[str, CountedColumn]],
    requirements: Requirements,
) -> BucketCounts:
    """Count the records of every bucket, and their sensitive values. sensitive: column of the coded table, by name."""
    sizes = bucket_counts(session, coded, assign, buckets)
    values = {}
    for name, (column, counted) in sensitive.items():
        with in_our_words(f"count the values of {name!r} in buckets"):
            pairs = with_bucket(session, coded, assign, [column]).groupBy(BUCKET, column).count().toArrow()
        values[name] = ValueCounts(
            to_numpy(one_array(pairs.column(BUCKET))).astype(np.int64),
            counted.of(one_array(pairs.column(column))).codes.astype(np.int64),
            to_numpy(one_array(pairs.column("count"))).astype(np.int64),
            counted.values,
        )
    return BucketCounts(sizes, values, requirements)


def whole_table(records: int, sensitive: Mapping[str, CountedColumn]) -> ClassCounts:
    """All records as one class."""
    histograms = {}
    for name, counted in sensitive.items():
        totals = counted.values.totals
        assert totals is not None
        code = np.flatnonzero(totals)
        pairs = ValueCounts(np.zeros(len(code), np.int64), code, totals[code], counted.values)
        histograms[name] = pairs.histogram(np.zeros(1, np.int64))
    return ClassCounts(np.array([records], np.int64), histograms)
