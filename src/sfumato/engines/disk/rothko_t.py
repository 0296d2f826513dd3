"""Rothko-T (LeFevre 2008, section 5.1): Mondrian on tables larger than memory, with the classes of Mondrian in memory.

The frequency sets of a region decide where it is divided. One reading of the data counts the sets of all regions of a
level, as long as they fit into memory together. Then the data are divided into a file for each region. The method
itself finishes a region that fits into memory; a region without an allowable split is a class.

The kernels of the method choose the splits (``split_from_counts``), so the classes are those of the method on the whole
table: the same attributes, split points and ties, and the same tests. This needs strict splits, a rule that counts
decide (median, information gain, regression) and requirements that the kernel of ``conjunction`` can test. A person key
is refused, since the records of a person may be in several parts.

Differs from the paper: a set is a table from the first to the last code of the region, so sets shrink with their
region, and as many regions are counted at once as fit. F_CACHE, the number of regions, is a further limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import ClassFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.frequency_sets import NOBODY, CombinationColumns, FrequencySets
from sfumato.engines.disk.rothko_io_cost import IoCounters
from sfumato.engines.disk.rothko_parts import DivisionIntoClasses, OpenRegion, RegionLookup, TableDivision, TablePart
from sfumato.errors import UsageError
from sfumato.kernels.constants import NONE
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.split_from_counts import Split, choose_split
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.scratch import Scratch


def rothko_t(
    table: CodedTable,
    method: MondrianMethod,
    requirements: Requirements,
    budget: MemoryBudget,
    scratch: Scratch,
    progress: Progress,
    *,
    cache: int | None = None,
    counters: IoCounters | None = None,
) -> ClassFile:
    """Form the classes of ``method``.

    cache: the number of frequency groups that are counted at once, by default as many as fit. counters: filled in.
    """
    class_file = ClassFile.empty(scratch, table.file.kind)
    counted = IoCounters() if counters is None else counters
    division = DivisionIntoClasses(table, method, requirements, budget, scratch, progress, counted, class_file)
    divide_by_counts(division, division.all(), cache)
    return class_file


def can_count(division: TableDivision) -> bool:
    """Return whether frequency sets decide every split, and whether those of the whole table fit into memory."""
    if division.method.rule == "selection" or not division.requirements.decided_by_kernel:
        return False
    columns = CombinationColumns.of(division.scaled, division.requirements, division.start)
    return columns.bytes(sum(division.start.sizes), division.table.count) <= division.room


def divide_by_counts(division: TableDivision, whole: TablePart, cache: int | None = None) -> None:
    """Divide a part of a table to the end."""
    columns = _columns(division, whole)
    waiting = [whole]
    while waiting:
        part = waiting.pop()
        if part.count <= division.fits:
            division.finish(part)
        elif part.settled:
            division.keep(part)
        else:
            tree = _Tree(division, part, columns, cache)
            tree.grow()
            waiting += reversed(tree.parts())


def _columns(division: TableDivision, whole: TablePart) -> CombinationColumns:
    method, requirements = division.method, division.requirements
    if method.rule == "selection":
        raise UsageError(
            "frequency sets cannot decide the splits of mondrian:selection. Allow more memory, or add --sampled."
        )
    if not requirements.decided_by_kernel:
        raise UsageError(
            f"{method.name} cannot decide all of the requirements from counts. Allow more memory, or add --sampled."
        )
    columns = CombinationColumns.of(division.scaled, requirements, division.start)
    needed = columns.bytes(sum(division.start.sizes), whole.count)
    if whole.count > division.fits and needed > division.room:
        raise UsageError(
            f"the frequency sets of this table take {needed / 1e6:,.0f} MB, and the memory limit leaves "
            f"{division.room / 1e6:,.0f} MB for them. Allow more memory, or round or group columns of many values."
        )
    return columns


@dataclass(eq=False)
class _Node:
    """A region of the tree.

    low, high: a box around its records. last: its last code on the attribute of its parent. first_child, parts: its
    children are ``parts`` consecutive nodes. region: its node in the tree of regions, if regions are kept.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    count: int
    rule: int
    region: OpenRegion | None
    last: int = 0
    attribute: int = NONE
    first_child: int = NONE
    parts: int = 0
    settled: bool = False


@dataclass
class _Tree:
    """The tree of regions of one part, grown level by level."""

    division: TableDivision
    part: TablePart
    columns: CombinationColumns
    cache: int | None
    nodes: list[_Node] = field(default_factory=list)

    def grow(self) -> None:
        """Divide regions larger than memory until their frequency sets do not fit, or they have no split."""
        sizes = self.division.start.sizes
        low, high = np.zeros(len(sizes), np.int64), np.array(sizes) - 1
        root = _Node(low, high, self.part.count, self.part.rule, self.part.region)
        self.nodes = [root]
        level = [root]
        while level and (level[0] is root or self._fit(level)):
            counts = self._counted(level)
            following = []
            for region, node in enumerate(level):
                node.low, node.high = counts.box(region)
                split = choose_split(node.rule, partial(counts.set, region), node.low, node.high, self.division.start)
                node.settled = split is None
                if split is not None:
                    following += self._add_children(node, split)
            level = [
                node
                for node in following
                if node.count > self.division.fits and node.count >= self.division.start.ground.divisible
            ]

    def _fit(self, level: list[_Node]) -> bool:
        if self.cache is not None and len(level) > self.cache:
            return False
        codes = sum(int((node.high - node.low + 1).sum()) for node in level)
        return self.columns.bytes(codes, self.part.count) <= self.division.room

    def _counted(self, level: list[_Node]) -> FrequencySets:
        """Count the frequency sets of the regions of a level in one reading of the part."""
        self.division.counters.groups += len(level)
        low, high = np.stack([node.low for node in level]), np.stack([node.high for node in level])
        counts = FrequencySets.empty(self.columns, low, high, [node.count for node in level])
        region = np.full(len(self.nodes), NOBODY, np.int64)
        region[[self.nodes.index(node) for node in level]] = np.arange(len(level))
        regions = self._regions()
        for rows in self.division.scan(self.part, self.division.scanned):
            counts.add(rows, region[regions.leaves_of(self.division.table.codes_of(rows))])
        return counts

    def _add_children(self, node: _Node, split: Split) -> list[_Node]:
        node.attribute, node.first_child, node.parts = split.attribute, len(self.nodes), len(split.sizes)
        children = []
        regions = self.division.branch(node.region, split)
        of_parts = zip(split.last, split.low, split.high, split.sizes, regions, strict=True)
        for last, low, high, size, region in of_parts:
            child = _Node(node.low.copy(), node.high.copy(), int(size), split.rule, region, last=int(last))
            child.low[split.attribute], child.high[split.attribute] = low, high
            children.append(child)
        self.nodes += children
        return children

    def _regions(self) -> RegionLookup:
        high = np.zeros((len(self.nodes), len(self.division.start.sizes)), np.int64)
        for node in self.nodes:
            for child in range(node.first_child, node.first_child + node.parts):
                high[child, node.attribute] = self.nodes[child].last
        attributes = np.array([node.attribute for node in self.nodes], np.int64)
        return RegionLookup(attributes, np.array([node.first_child for node in self.nodes], np.int64), high)

    def parts(self) -> list[TablePart]:
        """Divide the part into the regions of the leaves, each with a file of its own."""
        root = self.nodes[0]
        if not root.parts:
            return [replace(self.part, settled=True)]
        leaves = [number for number, node in enumerate(self.nodes) if not node.parts]
        files = self.division.divide(self.part, self._regions(), np.array(leaves))
        return [
            TablePart([file], self.nodes[leaf].rule, settled=self.nodes[leaf].settled, region=self.nodes[leaf].region)
            for file, leaf in zip(files, leaves, strict=True)
        ]
