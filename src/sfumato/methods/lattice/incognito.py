"""Incognito: LeFevre, DeWitt and Ramakrishnan, SIGMOD 2005, section 3.1 (basic Incognito) with section 2.1 (threshold).

Three properties hold if classes of fewer than k records may be left out up to a threshold. Generalization: if a node is
a solution, so are the nodes above it. Rollup: the counts of a node follow from those of any node below it. Subset: if
a node is a solution for some columns, its levels are a solution for every part of these columns. So the lattice of
every subset of the columns is searched from below, the small subsets first. A node is looked at only if it is a
solution for all smaller subsets, and tested only if no node below it is a solution. The result are all solutions of the
whole lattice.

Differs from the paper: it leaves open which of the solutions is released; we take the one that costs least, then the
first in the order of the levels. Candidates are found by going through the nodes of a subset in the order of their
height instead of by joining graphs; the same nodes are tested. The number of subsets grows exponentially, so a search
that would take too long is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import prod

from sfumato.methods.lattice.lattice_method import LatticeMethod, check_only_k
from sfumato.methods.lattice.least_cost_node import SearchLimit, SearchOutcome
from sfumato.methods.lattice.level_lattice import Node, with_level
from sfumato.methods.lattice.node_results import NodeResults
from sfumato.methods.lattice.samarati import MOST_NODES, nodes_of_height, too_many_nodes
from sfumato.methods.method import Effort
from sfumato.progress import Progress
from sfumato.requirements import Requirements

Subset = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Incognito(LatticeMethod):
    """Find all solutions, subset by subset."""

    name = "incognito"
    paper = "LeFevre, DeWitt, Ramakrishnan: Incognito: efficient full-domain k-anonymity, SIGMOD 2005"
    summary = "one level for each column everywhere; all solutions from those of subsets of the columns"
    use = "for comparison with the literature; global finds the same optimum faster"

    def check(self, requirements: Requirements) -> None:
        check_only_k(self, requirements)

    def search(self, results: NodeResults, effort: Effort, progress: Progress) -> SearchOutcome:
        columns = range(len(results.lattice.columns))
        if prod(len(levels) + 1 for levels in results.lattice.columns) > MOST_NODES:
            raise too_many_nodes(self.name)
        limit = SearchLimit(effort, progress)
        solutions: dict[Subset, set[Node]] = {}
        work = 0
        for size in range(1, len(columns) + 1):
            smaller, solutions = solutions, {}
            for subset in combinations(columns, size):
                part = results if size == len(columns) else results.of_columns(subset)
                solutions[subset] = set(_solutions(part, subset, smaller, limit, work))
                work += part.work
        found = solutions[tuple(columns)]
        if not found:
            return SearchOutcome(None, None, True)
        # What a solution costs if nothing is left out is a bound, by which most of them need not be counted.
        best = None
        for node in sorted(found, key=lambda each: (results.total(each), each)):
            if best is not None and results.least(node) > best.rank[0]:
                continue
            result = results.result(node)
            if best is None or result.rank < best.rank:
                best = result
        assert best is not None
        return SearchOutcome(best, best.cost, True)


def _solutions(
    part: NodeResults, subset: Subset, smaller: Mapping[Subset, set[Node]], limit: SearchLimit, work: int
) -> Iterator[Node]:
    """Yield the nodes of a subset that leave out few enough.

    smaller: those of the subsets with one column less. work: the steps of counting until now.
    """
    found: set[Node] = set()
    top = part.lattice.top
    for height in range(sum(top) + 1):
        for node in nodes_of_height(top, height):
            if limit.is_reached(work + part.work):
                raise too_many_nodes("incognito")
            below = (with_level(node, q, level - 1) for q, level in enumerate(node) if level > 0)
            if any(other in found for other in below) or (
                _is_candidate(node, subset, smaller) and part.result(node).feasible
            ):
                found.add(node)
                yield node


def _is_candidate(node: Node, subset: Subset, smaller: Mapping[Subset, set[Node]]) -> bool:
    """Return whether the levels of a node are a solution for all subsets with one column less."""
    if not smaller:
        return True
    return all(
        node[:left_out] + node[left_out + 1 :] in smaller[subset[:left_out] + subset[left_out + 1 :]]
        for left_out in range(len(subset))
    )
