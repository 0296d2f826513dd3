"""Rothko-S (LeFevre 2008, section 5.2): Mondrian on tables larger than memory, its first splits found on a sample.

A tree is grown on a sample of the part, as far as the hypothesis tests of ``sampled_tests`` accept its splits. One
reading then divides the records into its leaves and counts them. Wrong splits are undone, which merges files without
reading them. The method itself finishes parts that fit into memory; other parts are treated like the whole table. Every
released class meets the requirements: parts are counted exactly, and the classes within them are tested.

Growing a tree on a sample and undoing splits are pure functions in ``methods.trees.sampled_tree``. The Spark engine,
whose driver has the sample and whose executors have the records, uses the same functions.

All split rules but relaxed ones are supported, and every requirement that counts records. If no split is accepted, or
all are undone, the paper's method may miss a split that all records allow. Rothko-T then goes on if it can, and the
classes are minimal; if it cannot, the part becomes one class and is counted as ``nonminimal``.

Differs from the paper: the sample has one random record from each stretch of the table, which represents the table no
worse than a draw from all of it. The first sample is taken while the table is put in order, which saves a reading.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import ClassFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.rothko_io_cost import IoCounters
from sfumato.engines.disk.rothko_parts import DivisionIntoClasses, RegionLookup, TableDivision, TablePart
from sfumato.engines.disk.rothko_t import can_count, divide_by_counts
from sfumato.methods.class_counting import Counting
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import RegionTree
from sfumato.methods.trees.sampled_tests import ALPHA_LEVEL
from sfumato.methods.trees.sampled_tree import grow_on_sample, sums_of_children, undo_splits
from sfumato.progress import Progress
from sfumato.requirements import ClassCounts, Histogram, Requirements
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.packed_records import Rows
from sfumato.tables.external.scratch import Scratch

SAMPLE = 1 << 16
WRITTEN = 1 << 16  # bytes that are written to a file at once, so that the disk does not seek all the time
LEAST_LEAVES = 1 << 8  # leaves of a tree of the height at which the paper stops


def rothko_s(
    table: CodedTable,
    method: MondrianMethod,
    requirements: Requirements,
    budget: MemoryBudget,
    scratch: Scratch,
    progress: Progress,
    *,
    sample: int | None = None,
    alpha: float = ALPHA_LEVEL,
    tests: bool = True,
    enough: int | None = None,
    height: int | None = None,
    exact: bool = True,
    cache: int | None = None,
    counters: IoCounters | None = None,
) -> ClassFile:
    """Form classes that meet the requirements by the split rule of ``method``.

    sample: the number of records that a tree is grown on. alpha: the level of the hypothesis tests. tests: whether a
    split needs to pass them. enough: parts with at most this many records are not divided on a sample; by default what
    fits into memory. height: the largest height of a tree. exact: whether Rothko-T divides what a sample cannot. cache:
    see ``rothko_t``. counters: filled in.
    """
    class_file = ClassFile.empty(scratch, table.file.kind)
    counted = IoCounters() if counters is None else counters
    division = DivisionIntoClasses(table, method, requirements, budget, scratch, progress, counted, class_file)
    sampling = _Sampling(
        division, sample, alpha if tests else None, enough, height, exact and can_count(division), cache
    )
    waiting = [division.all()]
    while waiting:
        part = waiting.pop()
        if part.count <= division.fits:
            division.finish(part)
        else:
            waiting += reversed(sampling.divided(part))
    return class_file


@dataclass
class _Sampling:
    """Divides parts by trees that are grown on samples of them. drawn: the number of samples so far."""

    division: TableDivision
    sample: int | None
    alpha: float | None
    enough: int | None
    height: int | None
    exact: bool
    cache: int | None
    drawn: int = 0

    def divided(self, part: TablePart) -> list[TablePart]:
        """Divide a part, and return its parts. There are none if the part has become classes."""
        division, counters = self.division, self.division.counters
        rows = self._drawn(part)
        tree = grow_on_sample(
            division.method.start(division.scaled.records(rows), division.requirements),
            part.count,
            enough=division.fits if self.enough is None else self.enough,
            alpha=self.alpha,
            height=self.height,
            most_leaves=self._most_leaves(),
        )
        counters.grown += len(tree.parent) - 1
        if len(tree.parent) == 1:
            return self._undivided(part)
        counts = _LeafCounts(division, tree)
        leaves = np.flatnonzero(tree.attribute < 0)
        regions = RegionLookup(tree.attribute, tree.first_child, tree.high)
        files = division.divide(part, regions, leaves, counts.add)
        sizes, holds = counts.by_node(leaves)
        owner = undo_splits(tree, holds, sizes)
        counters.pruned += int(np.count_nonzero(owner != np.arange(len(owner))))
        merged: dict[int, list[int]] = {}
        for position, leaf in enumerate(leaves.tolist()):
            merged.setdefault(int(owner[leaf]), []).append(position)
        parts = [TablePart([files[position] for position in positions], part.rule) for positions in merged.values()]
        return parts if len(parts) > 1 else self._undivided(parts[0])

    def _undivided(self, part: TablePart) -> list[TablePart]:
        """Add a part that no sample could divide: by Rothko-T, or as one class."""
        if self.exact:
            self.division.counters.fallbacks += 1
            divide_by_counts(self.division, part, self.cache)
        else:
            self.division.counters.nonminimal += 1
            self.division.keep(part)
        return []

    def _drawn(self, part: TablePart) -> Rows:
        """Draw a sample of a part, in the order of the part."""
        division = self.division
        size = min(self.sample or SAMPLE, division.fits, part.count)
        self.drawn += 1
        generator = np.random.default_rng([division.table.policy.release.seed or 0, self.drawn])
        ready = division.table.sample
        if not part.owned and (self.sample is None or size <= len(ready)):
            return ready[_one_of_each(len(ready), min(size, len(ready)), generator)]
        positions = _one_of_each(part.count, size, generator)
        drawn, before = [], 0
        for rows in division.scan(part, division.scanned):
            first, last = np.searchsorted(positions, [before, before + len(rows)])
            drawn.append(rows[positions[first:last] - before])
            before += len(rows)
        return np.concatenate(drawn)

    def _most_leaves(self) -> int:
        """Return the largest number of leaves whose counts and unwritten records fit into memory."""
        division = self.division
        counted = 8 * (1 + int(division.start.tests.distinct.sum()))
        by_counts = division.room // (4 * counted)
        by_writes = division.fits * division.width // WRITTEN
        return max(min(by_counts, max(by_writes, LEAST_LEAVES)), 2)


def _one_of_each(count: int, size: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw a random position from each of ``size`` stretches of 0..count-1, ascending."""
    bounds = np.arange(size + 1) * count // size
    return bounds[:-1] + generator.integers(0, np.diff(bounds))


@dataclass
class _LeafCounts:
    """The number of records in each leaf of a tree, and of each sensitive value in each leaf."""

    division: TableDivision
    tree: RegionTree
    sizes: NDArray[np.int64] = field(init=False)
    values: dict[str, NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        leaves = int(np.count_nonzero(self.tree.attribute < 0))
        sensitive = self.division.table.sensitive
        self.sizes = np.zeros(leaves, np.int64)
        self.values = {
            name: np.zeros((leaves, sensitive[name].values.distinct + 1), np.int64)
            for name in self.division.requirements.attributes
        }

    def add(self, rows: Rows, leaf_of_row: NDArray[np.int64]) -> None:
        """Count records. leaf_of_row: the position of each record's leaf among the leaves."""
        self.sizes += np.bincount(leaf_of_row, minlength=len(self.sizes))
        for name, counts in self.values.items():
            width = counts.shape[1]
            pairs = leaf_of_row * width + self.division.table.sensitive[name].of(rows).codes
            counts[:] += np.bincount(pairs, minlength=counts.size).reshape(counts.shape)

    def by_node(self, leaves: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the number of records of each node, and whether the node meets the requirements as a class."""
        nodes = len(self.tree.parent)
        sizes = np.zeros(nodes, np.int64)
        sizes[leaves] = self.sizes
        sizes = sums_of_children(self.tree, sizes)
        requirements, table = self.division.requirements, self.division.table
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
