"""Buckets that are regions of the domain: Rothko-S (LeFevre 2008, section 5.2) with the sample on the driver.

The tree is grown on the sample, down to regions of a bucket's size, as far as hypothesis tests accept its splits
(``methods.trees.sampled_tree``). All records are then counted in its leaves, and wrong splits are undone. Every
executor finishes the records of its bucket with the method itself. No class is released that meets the requirements on
the sample alone.

Differs from the paper: the data are repartitioned once. A leaf that is still large is left to one executor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.spark.bucket_counts import BucketCounts
from sfumato.engines.spark.line_keys import Bytes, LineEncoder
from sfumato.methods.method import Records
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import RegionTree
from sfumato.methods.trees.sampled_tree import grow_on_sample, sums_of_children, undo_splits
from sfumato.requirements import ClassCounts, Histogram, Requirements


@dataclass(frozen=True)
class BucketRegions:
    """A tree whose leaves are buckets. bucket: int64[nodes], the bucket of each leaf, or -1 for other nodes."""

    line_encoder: LineEncoder
    tree: RegionTree
    bucket: NDArray[np.int64]

    @property
    def buckets(self) -> int:
        return int(self.bucket.max()) + 1

    def of(self, places: Bytes, ties: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bucket of each record. Its codes are in its place."""
        buckets: NDArray[np.int64] = self.bucket[self.tree.leaves_of(self.line_encoder.codes(places))]
        return buckets

    def joined(self, counted: BucketCounts) -> NDArray[np.int64]:
        """Undo splits with a part that does not meet the requirements, and return the new number of each bucket."""
        leaves = np.flatnonzero(self.bucket >= 0)
        sizes = self._by_node(leaves, counted.sizes[self.bucket[leaves]])
        histograms = {}
        for name, pairs in counted.values.items():
            values = pairs.values
            counts = np.zeros((counted.sizes.size, values.distinct + 1), np.int64)
            np.add.at(counts, (pairs.bucket, pairs.code), pairs.count)
            by_node = self._by_node(leaves, counts[self.bucket[leaves], : values.distinct])
            owner, value = np.nonzero(by_node)
            assert values.totals is not None
            reference = values.totals / max(int(values.totals.sum()), 1)
            histograms[name] = Histogram(
                owner, by_node[owner, value], value, reference, values.numbers, None, values.hierarchy
            )
        holds = counted.requirements.holds(ClassCounts(sizes, histograms))
        owner = undo_splits(self.tree, holds, sizes)
        number = np.empty(self.buckets, np.int64)
        number[self.bucket[leaves]] = np.unique(owner[leaves], return_inverse=True)[1]
        return number

    def _by_node(self, leaves: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        whole = np.zeros((len(self.bucket), *counts.shape[1:]), np.int64)
        whole[leaves] = counts
        return sums_of_children(self.tree, whole)


def grown_regions(
    sample: Records,
    requirements: Requirements,
    method: MondrianMethod,
    records: int,
    enough: int,
    line_encoder: LineEncoder,
) -> BucketRegions:
    """Grow the regions on a sample of ``records`` records. A region with at most ``enough`` is not divided."""
    tree = grow_on_sample(method.start(sample, requirements), records, enough=enough)
    bucket = np.full(len(tree.parent), -1, np.int64)
    leaves = np.flatnonzero(tree.attribute < 0)
    bucket[leaves] = np.arange(len(leaves))
    return BucketRegions(line_encoder, tree, bucket)
