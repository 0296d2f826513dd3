"""The check of a recoding on disk: which of its regions do not meet the requirements.

Regions that a release shows alike are one class. One reading of the coded file counts the records of every class. If
requirements count sensitive values, further readings count those, for as many classes at once as memory allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.rothko_parts import LEAST_ROOM, SCANNED
from sfumato.methods.trees.region_tree import Tiling
from sfumato.releases.local_recoding import shown_classes
from sfumato.releases.recoding import Recoding
from sfumato.requirements import ClassCounts, Histogram, Requirements
from sfumato.tables.external.memory_budget import SHARE, MemoryBudget
from sfumato.tables.external.packed_records import Rows

PAIR = 80  # bytes that a pair of class and value takes while it is counted


def failing_leaves(
    table: CodedTable, requirements: Requirements, recoding: Recoding, tree: Tiling, budget: MemoryBudget
) -> NDArray[np.int64]:
    """Return the leaves of ``tree``, from which the recoding was made, with records in a class that fails."""
    own = recoding.regions
    shown = shown_classes(recoding.domains, own.region_low, own.region_high, numbered=table.policy.numbered)
    scanned = min(budget.rows(table.file.kind.itemsize), SCANNED)

    def batches() -> Iterator[tuple[Rows, NDArray[np.int64]]]:
        for rows in table.file.batches(scanned):
            yield rows, shown[own.regions_of(table.codes_of(rows), table.domains)].astype(np.int64)

    sizes = np.zeros(int(shown.max()) + 1, np.int64)
    for _, classes in batches():
        sizes += np.bincount(classes, minlength=len(sizes))
    holds = np.ones(len(sizes), np.bool_)
    for first, last in _ranges(sizes, table, requirements, max(budget.work // SHARE, LEAST_ROOM) // PAIR):
        values = {name: _ClassValueCounts(table, name, first, last) for name in requirements.attributes}
        if values:
            for rows, classes in batches():
                for pairs in values.values():
                    pairs.add(rows, classes)
        histograms = {name: pairs.histogram() for name, pairs in values.items()}
        holds[first:last] = requirements.holds(ClassCounts(sizes[first:last], histograms))
    holds |= sizes == 0
    if holds.all():
        return np.empty(0, np.int64)
    failing = [np.unique(tree.leaves_of(table.codes_of(rows[~holds[classes]]))) for rows, classes in batches()]
    return np.unique(np.concatenate(failing))


def _ranges(
    sizes: NDArray[np.int64], table: CodedTable, requirements: Requirements, most: int
) -> Iterator[tuple[int, int]]:
    """Yield ranges first..last - 1 of classes that have at most ``most`` values together, or a single class."""
    pairs = np.zeros(len(sizes), np.int64)
    for name in requirements.attributes:
        pairs += np.minimum(sizes, table.sensitive[name].values.distinct)
    upto, first = np.cumsum(pairs), 0
    while first < len(sizes):
        before = int(upto[first - 1]) if first else 0
        last = max(int(np.searchsorted(upto, before + most, side="right")), first + 1)
        yield first, last
        first = last


@dataclass
class _ClassValueCounts:
    """The number of times that each value of a sensitive attribute occurs in the classes first..last - 1.

    A key is class * values + value. New keys wait until they are as many as the counted ones, so that sorting them
    costs little.
    """

    table: CodedTable
    name: str
    first: int
    last: int
    keys: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    waiting: list[NDArray[np.int64]] = field(default_factory=list)

    def add(self, rows: Rows, classes: NDArray[np.int64]) -> None:
        counted = self.table.sensitive[self.name]
        codes, distinct = counted.of(rows).codes, counted.values.distinct
        in_range = (classes >= self.first) & (classes < self.last) & (codes < distinct)
        self.waiting.append((classes[in_range] - self.first) * distinct + codes[in_range])
        if sum(map(len, self.waiting)) > len(self.keys) + SCANNED:
            self._count()

    def _count(self) -> None:
        waiting, ones = np.unique(np.concatenate(self.waiting), return_counts=True)
        keys, key_number = np.unique(np.append(self.keys, waiting), return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, key_number, np.append(self.counts, ones))
        self.keys, self.counts, self.waiting = keys, counts, []

    def histogram(self) -> Histogram:
        if self.waiting:
            self._count()
        values = self.table.sensitive[self.name].values
        totals = values.totals
        assert totals is not None
        owner, value = np.divmod(self.keys, max(values.distinct, 1))
        reference = totals / max(int(totals.sum()), 1)
        return Histogram(owner, self.counts, value, reference, values.numbers, None, values.hierarchy)
