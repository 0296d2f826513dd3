"""Rothko-T (LeFevre 2008, section 5.1): Mondrian on tables larger than memory, with the classes of Mondrian in memory.

A region is divided where its frequency sets say, and one reading of the data counts those of all regions of a level,
as long as they fit into memory together. Then the data are divided into a file for each region. A region that fits
into memory is finished there by the method itself; one that has no allowable split is a class.

The choice is made by the kernels of the method (``choosing``), so the classes are those of the method on the whole
table: the same attributes, split points and ties, and the same tests. That takes strict splits, a rule that counts
decide (median, information gain, regression) and requirements that the kernel of ``conjunction`` knows. A person key is
refused: a person's records may be in several parts.

Differs from the paper: a set is counted in a table from the first to the last code of the region, so its sets become
smaller with it, and so many regions are counted at once as fit; F_CACHE, the number of them, is a limit beside that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import ClassedFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.frequency_sets import NOBODY, Columns, FrequencySets
from sfumato.engines.disk.rothko_io_cost import Traffic
from sfumato.engines.disk.rothko_parts import Classing, OpenRegion, OpenRegions, Parting, TablePart
from sfumato.errors import UsageError
from sfumato.kernels.constants import NONE
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.split_from_counts import Split, choose_split
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.external.memory_budget import Budget
from sfumato.tables.external.scratch import Scratch


def rothko_t(
    table: CodedTable,
    method: MondrianMethod,
    requirements: Requirements,
    budget: Budget,
    scratch: Scratch,
    progress: Progress,
    *,
    cache: int | None = None,
    traffic: Traffic | None = None,
) -> ClassedFile:
    """The classes of ``method``. cache: how many frequency groups are counted at once, by default as many as fit.

    traffic: filled in.
    """
    classed = ClassedFile.empty(scratch, table.file.kind)
    counted = Traffic() if traffic is None else traffic
    parting = Classing(table, method, requirements, budget, scratch, progress, counted, classed)
    divide_by_counts(parting, parting.all(), cache)
    return classed


def can_count(parting: Parting) -> bool:
    """Can the frequency sets of the whole table be counted, and do they decide?"""
    if parting.method.rule == "selection" or not parting.requirements.tested:
        return False
    columns = Columns.of(parting.whole, parting.requirements, parting.start)
    return columns.bytes(sum(parting.start.sizes), parting.table.count) <= parting.room


def divide_by_counts(parting: Parting, whole: TablePart, cache: int | None = None) -> None:
    """All classes of a part of a table."""
    columns = _columns(parting, whole)
    waiting = [whole]
    while waiting:
        part = waiting.pop()
        if part.count <= parting.fits:
            parting.finish(part)
        elif part.settled:
            parting.keep(part)
        else:
            tree = _Tree(parting, part, columns, cache)
            tree.grow()
            waiting += reversed(tree.parts())


def _columns(parting: Parting, whole: TablePart) -> Columns:
    method, requirements = parting.method, parting.requirements
    if method.rule == "selection":
        raise UsageError("mondrian:selection is not decided by frequency sets. Allow more memory, or add --sampled.")
    if not requirements.tested:
        raise UsageError(
            f"{method.name} cannot decide all of the requirements from counts. Allow more memory, or add --sampled."
        )
    columns = Columns.of(parting.whole, requirements, parting.start)
    needed = columns.bytes(sum(parting.start.sizes), whole.count)
    if whole.count > parting.fits and needed > parting.room:
        raise UsageError(
            f"the frequency sets of this table take {needed / 1e6:,.0f} MB, and the memory limit leaves "
            f"{parting.room / 1e6:,.0f} MB for them. Allow more memory, or round or group columns of many values."
        )
    return columns


@dataclass(eq=False)
class _Node:
    """A region. low, high: the codes between which its records are, or a wider box. last: its last code on the
    attribute of its parent. first_child, parts: its children are nodes beside each other. region: where it is kept.
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
    """The regions of one part, grown level by level."""

    parting: Parting
    part: TablePart
    columns: Columns
    cache: int | None
    nodes: list[_Node] = field(default_factory=list)

    def grow(self) -> None:
        """Divide regions until those that are larger than memory have no frequency sets that fit, or no split."""
        sizes = self.parting.start.sizes
        low, high = np.zeros(len(sizes), np.int64), np.array(sizes) - 1
        root = _Node(low, high, self.part.count, self.part.rule, self.part.region)
        self.nodes = [root]
        level = [root]
        while level and (level[0] is root or self._fit(level)):
            counts = self._counted(level)
            following = []
            for place, node in enumerate(level):
                node.low, node.high = counts.box(place)
                split = choose_split(node.rule, partial(counts.set, place), node.low, node.high, self.parting.start)
                node.settled = split is None
                if split is not None:
                    following += self._add_children(node, split)
            level = [
                node
                for node in following
                if node.count > self.parting.fits and node.count >= self.parting.start.ground.divisible
            ]

    def _fit(self, level: list[_Node]) -> bool:
        if self.cache is not None and len(level) > self.cache:
            return False
        codes = sum(int((node.high - node.low + 1).sum()) for node in level)
        return self.columns.bytes(codes, self.part.count) <= self.parting.room

    def _counted(self, level: list[_Node]) -> FrequencySets:
        """The frequency sets of some regions, from one reading of the part."""
        self.parting.traffic.groups += len(level)
        low, high = np.stack([node.low for node in level]), np.stack([node.high for node in level])
        counts = FrequencySets.empty(self.columns, low, high, [node.count for node in level])
        region = np.full(len(self.nodes), NOBODY, np.int64)
        region[[self.nodes.index(node) for node in level]] = np.arange(len(level))
        regions = self._regions()
        for rows in self.parting.scan(self.part, self.parting.scanned):
            counts.add(rows, region[regions.leaves_of(self.parting.table.codes_of(rows))])
        return counts

    def _add_children(self, node: _Node, split: Split) -> list[_Node]:
        node.attribute, node.first_child, node.parts = split.attribute, len(self.nodes), len(split.sizes)
        made = []
        regions = self.parting.branch(node.region, split)
        of_parts = zip(split.last, split.low, split.high, split.sizes, regions, strict=True)
        for last, low, high, size, region in of_parts:
            child = _Node(node.low.copy(), node.high.copy(), int(size), split.rule, region, last=int(last))
            child.low[split.attribute], child.high[split.attribute] = low, high
            made.append(child)
        self.nodes += made
        return made

    def _regions(self) -> OpenRegions:
        high = np.zeros((len(self.nodes), len(self.parting.start.sizes)), np.int64)
        for node in self.nodes:
            for child in range(node.first_child, node.first_child + node.parts):
                high[child, node.attribute] = self.nodes[child].last
        attributes = np.array([node.attribute for node in self.nodes], np.int64)
        return OpenRegions(attributes, np.array([node.first_child for node in self.nodes], np.int64), high)

    def parts(self) -> list[TablePart]:
        """The part divided into its regions, each with its own file."""
        root = self.nodes[0]
        if not root.parts:
            return [replace(self.part, settled=True)]
        leaves = [number for number, node in enumerate(self.nodes) if not node.parts]
        files = self.parting.divide(self.part, self._regions(), np.array(leaves))
        return [
            TablePart([file], self.nodes[leaf].rule, settled=self.nodes[leaf].settled, region=self.nodes[leaf].region)
            for file, leaf in zip(files, leaves, strict=True)
        ]
