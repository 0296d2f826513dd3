"""Rothko-S (LeFevre 2008, section 5.2): Mondrian on tables larger than memory, its first splits found on a sample.

A tree is grown on a sample of the part, as far as the tests of ``sampled`` believe in it. Then one reading divides the
records into its leaves and counts them; splits that were wrong are undone, which merges files without reading them.
Parts that fit into memory are divided to the end there by the method itself, others are treated like the whole.
No class is released that does not meet the requirements: parts are counted exactly, and classes within them tested.

The growing of a tree on a sample and the undoing of splits are pure functions in ``methods.sampled_tree``; another
engine (whose driver has the sample, and whose workers have the records) uses the same.

It serves every split rule but relaxed ones, and every requirement that is counted in records. Where no split is
believed in, or all are undone, the paper's method may miss a split that all records allow. Then Rothko-T goes on where
it can, and the classes are minimal; where it cannot, the part is one class and counted as ``nonminimal``.

Differs from the paper: the sample has one record at random from each stretch of the input, which represents it no
worse than one drawn from all of it. The first sample is taken while the table is coded, which saves a reading.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import ClassedFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.rothko_io_cost import Traffic
from sfumato.engines.disk.rothko_parts import Classing, OpenRegions, Parting, TablePart
from sfumato.engines.disk.rothko_t import can_count, divide_by_counts
from sfumato.methods.class_counting import Counting
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import RegionTree
from sfumato.methods.trees.sampled_tests import ALPHA_LEVEL
from sfumato.methods.trees.sampled_tree import grow_on_sample, sums_of_children, undo_splits
from sfumato.progress import Progress
from sfumato.requirements import ClassCounts, Histogram, Requirements
from sfumato.tables.external.memory_budget import Budget
from sfumato.tables.external.packed_records import Rows
from sfumato.tables.external.scratch import Scratch

SAMPLE = 1 << 16
WRITTEN = 1 << 16  # bytes that should be written to a file at once, lest the disk seek all the time
LEAST_LEAVES = 1 << 8  # a tree of the height that the paper stops at


def rothko_s(
    table: CodedTable,
    method: MondrianMethod,
    requirements: Requirements,
    budget: Budget,
    scratch: Scratch,
    progress: Progress,
    *,
    sample: int | None = None,
    tests: bool = True,
    enough: int | None = None,
    height: int | None = None,
    exact: bool = True,
    traffic: Traffic | None = None,
) -> ClassedFile:
    """Classes that meet the requirements, by the split rule of ``method``.

    sample: how many records a tree is grown on. tests: is a split made only where it can be believed in? enough: a part
    of no more records is not divided on a sample, by default what fits into memory. height: of trees at most. exact: is
    what a sample cannot divide left to Rothko-T? traffic: filled in.
    """
    classed = ClassedFile.empty(scratch, table.file.kind)
    counted = Traffic() if traffic is None else traffic
    parting = Classing(table, method, requirements, budget, scratch, progress, counted, classed)
    sampling = _Sampling(parting, sample, ALPHA_LEVEL if tests else None, enough, height, exact and can_count(parting))
    waiting = [parting.all()]
    while waiting:
        part = waiting.pop()
        if part.count <= parting.fits:
            parting.finish(part)
        else:
            waiting += reversed(sampling.divided(part))
    return classed


@dataclass
class _Sampling:
    """How parts are divided on samples of them."""

    parting: Parting
    sample: int | None
    alpha: float | None
    enough: int | None
    height: int | None
    exact: bool
    drawn: int = 0

    def divided(self, part: TablePart) -> list[TablePart]:
        """The parts of a part. There are none where it became classes here."""
        parting, traffic = self.parting, self.parting.traffic
        rows = self._drawn(part)
        tree = grow_on_sample(
            parting.method.start(parting.whole.records(rows), parting.requirements),
            part.count,
            enough=parting.fits if self.enough is None else self.enough,
            alpha=self.alpha,
            height=self.height,
            most_leaves=self._most_leaves(),
        )
        traffic.grown += len(tree.parent) - 1
        if len(tree.parent) == 1:
            return self._undivided(part)
        counts = _LeafCounts(parting, tree)
        leaves = np.flatnonzero(tree.attribute < 0)
        regions = OpenRegions(tree.attribute, tree.first_child, tree.high)
        files = parting.divide(part, regions, leaves, counts.add)
        sizes, holds = counts.by_node(leaves)
        owner = undo_splits(tree, holds, sizes)
        traffic.pruned += int(np.count_nonzero(owner != np.arange(len(owner))))
        merged: dict[int, list[int]] = {}
        for place, leaf in enumerate(leaves.tolist()):
            merged.setdefault(int(owner[leaf]), []).append(place)
        parts = [TablePart([files[place] for place in places], part.rule) for places in merged.values()]
        return parts if len(parts) > 1 else self._undivided(parts[0])

    def _undivided(self, part: TablePart) -> list[TablePart]:
        """A part that no sample could divide."""
        if self.exact:
            self.parting.traffic.fallbacks += 1
            divide_by_counts(self.parting, part)
        else:
            self.parting.traffic.nonminimal += 1
            self.parting.keep(part)
        return []

    def _drawn(self, part: TablePart) -> Rows:
        """A sample of a part, in its order."""
        parting = self.parting
        size = min(self.sample or SAMPLE, parting.fits, part.count)
        self.drawn += 1
        generator = np.random.default_rng([parting.table.policy.release.seed or 0, self.drawn])
        at_hand = parting.table.sample
        if not part.owned and (self.sample is None or size <= len(at_hand)):
            return at_hand[_one_of_each(len(at_hand), min(size, len(at_hand)), generator)]
        places = _one_of_each(part.count, size, generator)
        found, before = [], 0
        for rows in parting.scan(part, parting.scanned):
            first, last = np.searchsorted(places, [before, before + len(rows)])
            found.append(rows[places[first:last] - before])
            before += len(rows)
        return np.concatenate(found)

    def _most_leaves(self) -> int:
        """So many that their counts and what waits to be written fit into memory."""
        parting = self.parting
        counted = 8 * (1 + int(parting.start.tests.distinct.sum()))
        by_counts = parting.room // (4 * counted)
        by_writes = parting.fits * parting.width // WRITTEN
        return max(min(by_counts, max(by_writes, LEAST_LEAVES)), 2)


def _one_of_each(count: int, size: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """A place at random from each of ``size`` stretches of 0..count-1, ascending."""
    bounds = np.arange(size + 1) * count // size
    return bounds[:-1] + generator.integers(0, np.diff(bounds))


@dataclass
class _LeafCounts:
    """How many records each leaf of a tree has, and how many of each sensitive value."""

    parting: Parting
    tree: RegionTree
    sizes: NDArray[np.int64] = field(init=False)
    values: dict[str, NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        leaves = int(np.count_nonzero(self.tree.attribute < 0))
        sensitive = self.parting.table.sensitive
        self.sizes = np.zeros(leaves, np.int64)
        self.values = {
            name: np.zeros((leaves, sensitive[name].values.distinct + 1), np.int64)
            for name in self.parting.requirements.attributes
        }

    def add(self, rows: Rows, places: NDArray[np.int64]) -> None:
        """Some records, and the place of the leaf of each among the leaves."""
        self.sizes += np.bincount(places, minlength=len(self.sizes))
        for name, counts in self.values.items():
            width = counts.shape[1]
            pairs = places * width + self.parting.table.sensitive[name].of(rows).codes
            counts[:] += np.bincount(pairs, minlength=counts.size).reshape(counts.shape)

    def by_node(self, leaves: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The records of each node, and whether it meets the requirements as a class."""
        nodes = len(self.tree.parent)
        sizes = np.zeros(nodes, np.int64)
        sizes[leaves] = self.sizes
        sizes = sums_of_children(self.tree, sizes)
        requirements, table = self.parting.requirements, self.parting.table
        references = Counting(table.records(table.sample[:1]), requirements).references
        histograms = {}
        for name, counted in self.values.items():
            values = table.sensitive[name].values
            counts = np.zeros((nodes, values.distinct), np.int64)
            counts[leaves] = counted[:, : values.distinct]
            counts = sums_of_children(self.tree, counts)
            owner, value = np.nonzero(counts)
            histograms[name] = Histogram(
                owner, counts[owner, value], value, references[name], values.numbers, None, values.hierarchy
            )
        return sizes, requirements.holds(ClassCounts(sizes, histograms))
