"""The node of a lattice whose release costs least, exact where the work allows it.

What all records cost at a node, if none is left out, is known without counting them, and grows from level to level. No
release at the node costs less, unless a record that is left out costs less than one that is released. So nodes are
taken in the order of this bound, the least first, and the search ends when no bound is below the best cost found.

Where a node leaves out more records than are allowed and every more specific node does so too (see ``node_results``),
it covers them. Such a node is looked for on a way up from each node, then made as general as possible. The search goes
on from a covered node only to the nodes that are more general than the covering node in one column. So it visits a
small part of the lattice, and counts mostly general nodes, which have few classes.

The first solution is found on the way up from the most specific node; the column with the most groups is generalized
first. Then single columns are made more specific again where that costs less. A search that ends early has at least
that.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.methods.lattice.level_lattice import Node, with_level
from sfumato.methods.lattice.node_results import NodeResult, NodeResults
from sfumato.methods.method import Effort
from sfumato.progress import Progress

WORK = {"fast": 1 << 26, "normal": 1 << 28, "balanced": 1 << 30, "best": 1 << 34, "exact": 1 << 34}
"""The steps after which a search ends, by effort. A step is an entry of the counts that a node is counted from."""
STEPS_OF_A_NODE = 1 << 10  # that a node takes, whether it is counted or not
MOST_WAITING = 1 << 22  # nodes in the queue, beyond which the search ends too


@dataclass(frozen=True)
class SearchOutcome:
    """The best node found, None if no node is within the limits, and how far the search got.

    bound: no release on the lattice costs less; None if the search proves nothing. complete: whether the best node is
    proven to be the best, or, if there is none, that there is none.
    """

    best: NodeResult | None
    bound: int | None
    complete: bool


class SearchLimit:
    """When a search ends: after some steps, by the clock, or because the user asked for it."""

    def __init__(self, effort: Effort, progress: Progress) -> None:
        self._progress = progress
        self._work = WORK[effort.level]
        self._deadline = None if effort.seconds is None else time.perf_counter() + effort.seconds
        self._visited = 0

    def is_reached(self, work: int) -> bool:
        """Count one more node that is looked at, and return whether it is time to end. work: steps of counting."""
        self._visited += 1
        self._progress.advance(1)
        if self._progress.stopped:
            return True
        if self._deadline is not None:
            return time.perf_counter() > self._deadline
        return work + STEPS_OF_A_NODE * self._visited > self._work


def least_cost_node(results: NodeResults, effort: Effort, progress: Progress) -> SearchOutcome:
    """Search the lattice for the node of least cost; of equal costs, the first in the order of the levels."""
    return _NodeSearch(results, effort, progress).run()


class _NodeSearch:
    """The nodes that wait, in the order of their bounds, and those that cover others."""

    def __init__(self, results: NodeResults, effort: Effort, progress: Progress) -> None:
        self._results, self._lattice = results, results.lattice
        self._best: NodeResult | None = None
        self._covering = FailingNodes(len(self._lattice.columns))
        self._limit = SearchLimit(effort, progress)

    def run(self) -> SearchOutcome:
        self._climb()
        waiting = [(self._results.least(self._lattice.bottom), self._lattice.bottom)]
        seen = {self._lattice.bottom}
        while waiting:
            bound, node = waiting[0]
            if self._best is not None and (bound, node) >= self._best.rank:
                break
            if len(waiting) > MOST_WAITING or self._limit.is_reached(self._results.work):
                return SearchOutcome(self._best, bound, False)
            heapq.heappop(waiting)
            for following in self._following(node):
                if following not in seen:
                    seen.add(following)
                    heapq.heappush(waiting, (self._results.least(following), following))
        return SearchOutcome(self._best, 0 if self._best is None else self._best.cost, True)

    def _following(self, node: Node) -> Iterator[Node]:
        """Test a node unless it is covered, and return nodes from which every other more general node is reached."""
        cover = self._covering.above(node)
        if cover is None:
            covering = self._covering_on_the_way_up(node)
            if covering is None:
                return (with_level(node, q, level + 1) for q, level in self._raisable(node))
            cover = self._most_general_cover(covering)
        return (with_level(node, q, cover[q] + 1) for q, _ in self._raisable(cover))

    def _covering_on_the_way_up(self, node: Node) -> Node | None:
        """Return the most general covering node on a way up from a node; None if not even the node covers.

        The way raises the column that costs least. It is searched from its middle: counts of general nodes are small,
        and if one covers, the node itself need not be counted.
        """
        way = [node]
        while self._results.may_cover and (raisable := self._raisable(way[-1])):
            following = [with_level(way[-1], q, level + 1) for q, level in raisable]
            cheapest = min(following, key=lambda other: (self._results.total(other), other))
            if self._costs_too_much(cheapest):
                break
            way.append(cheapest)
        low, high = -1, len(way)
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (middle, high) if self._tested(way[middle]).covers else (low, middle)
        return None if low < 0 else way[low]

    def _raisable(self, node: Node) -> list[tuple[int, int]]:
        return [(q, level) for q, level in enumerate(node) if level < self._lattice.top[q]]

    def _tested(self, node: Node) -> NodeResult:
        result = self._results.result(node)
        if result.feasible and (self._best is None or result.rank < self._best.rank):
            self._best = result
        return result

    def _most_general_cover(self, node: Node) -> Node:
        """Raise the levels of a covering node, column by column, as far as it covers; remember and return it.

        Where records may be left out, what a node costs is found only by counting it, so more general nodes that cost
        too much anyway are not tested.
        """
        for q, level in self._raisable(node):
            low, high = level, self._lattice.top[q] + 1
            while high > low + 1 and self._costs_too_much(with_level(node, q, high - 1)):
                high -= 1
            while low + 1 < high:
                middle = (low + high) // 2
                covers = self._tested(with_level(node, q, middle)).covers
                low, high = (middle, high) if covers else (low, middle)
            node = with_level(node, q, low)
        self._covering.add(node)
        return node

    def _costs_too_much(self, node: Node) -> bool:
        limits = self._results.limits
        return limits.most > 0 and self._best is not None and self._results.least(node) > self._best.rank[0]

    def _climb(self) -> None:
        """Find a first solution, and make it more specific where that costs less."""
        node = self._lattice.bottom
        while not self._tested(node).feasible:
            raisable = self._raisable(node)
            if not raisable:
                return
            groups = [level.groups for level in self._lattice.levels_of(node)]
            q = max(raisable, key=lambda pair: (groups[pair[0]], -pair[0]))[0]
            node = with_level(node, q, node[q] + 1)
        improved = True
        while improved and self._best is not None:
            node, improved = self._best.node, False
            for q, level in enumerate(node):
                if level > 0 and self._tested(with_level(node, q, level - 1)) is self._best:
                    improved = True
                    break


class FailingNodes:
    """Nodes that fail together with every more specific node; only the most general of them are kept."""

    def __init__(self, columns: int) -> None:
        self._nodes = np.empty((0, columns), np.int16)

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, node: Node) -> None:
        levels = np.array(node, np.int16)
        others = self._nodes[~(self._nodes <= levels).all(axis=1)]
        self._nodes = np.concatenate([others, levels[None, :]])

    def above(self, node: Node) -> Node | None:
        """Return a failing node that is not more specific than a node, or None."""
        found = np.flatnonzero((self._nodes >= np.array(node, np.int16)).all(axis=1))
        return tuple(self._nodes[found[0]].tolist()) if len(found) else None
