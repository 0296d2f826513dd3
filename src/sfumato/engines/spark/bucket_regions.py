"""Buckets that are regions of the domain: Rothko-S (LeFevre 2008, section 5.2) with the sample on the driver.

The tree is grown on the sample, down to regions of a bucket's size, as far as its tests believe in a split
(``methods.sampled_tree``). Its leaves are then counted on all records, splits that were wrong are undone, and every
executor divides the records of its bucket to the end with the method itself. Nothing is released that was only seen to
hold on the sample.

Differs from the paper: the data are repartitioned once. A leaf that is still large is left to one executor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.spark.bucket_counts import BucketCounts
from sfumato.engines.spark.line_keys import Bytes, Placing
from sfumato.methods.method import Records
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import RegionTree
from sfumato.methods.trees.sampled_tree import grow_on_sample, sums_of_children, undo_splits
from sfumato.requirements import ClassCounts, Histogram, Requirements


@dataclass(frozen=True)
class BucketRegions:
    """A tree whose leaves are buckets. bucket: int64[nodes], that of each leaf, -1 for other nodes."""

    placing: Placing
    tree: RegionTree
    bucket: NDArray[np.int64]

    @property
    def buckets(self) -> int:
        return int(self.bucket.max()) + 1

    def of(self, places: Bytes, ties: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bucket of each record: its place tells its codes."""
        found: NDArray[np.int64] = self.bucket[self.tree.leaves_of(self.placing.codes(places))]
        return found

    def joined(self, counted: BucketCounts) -> NDArray[np.int64]:
        """The number of the joined bucket of each: splits that leave a part which does not meet the requirements are
        undone."""
        leaves = np.flatnonzero(self.bucket >= 0)
        sizes = self._by_node(leaves, counted.sizes[self.bucket[leaves]])
        histograms = {}
        for name, found in counted.values.items():
            values = found.values
            counts = np.zeros((counted.sizes.size, values.distinct + 1), np.int64)
            np.add.at(counts, (found.bucket, found.code), found.count)
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
    sample: Records, requirements: Requirements, method: MondrianMethod, records: int, enough: int, placing: Placing
) -> BucketRegions:
    """The regions that a sample of so many records believes in; one of ``enough`` records is not divided."""
    tree = grow_on_sample(method.start(sample, requirements), records, enough=enough)
    bucket = np.full(len(tree.parent), -1, np.int64)
    leaves = np.flatnonzero(tree.attribute < 0)
    bucket[leaves] = np.arange(len(leaves))
    return BucketRegions(placing, tree, bucket)
