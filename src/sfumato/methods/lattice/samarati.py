"""Samarati's search: Protecting respondents' identities in microdata release, TKDE 2001, section 4 (Fig. 9).

The height of a node is the sum of its levels. If a node needs no more than the allowed number of records to be left
out, so do all nodes above it. So a binary search finds the lowest height at which there is such a node: a k-minimal
generalization with suppression.

Differs from the paper: she leaves open which of several solutions of the lowest height is preferred (section 4.1 lists
policies); we test all nodes of that height and take the one that costs least, then the first in the order of the
levels. She compares distance vectors of outliers; we count the classes of each node, and do not test nodes below one
that is known to fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sfumato.errors import UsageError
from sfumato.methods.lattice.lattice_method import LatticeMethod, check_only_k
from sfumato.methods.lattice.least_cost_node import FailingNodes, SearchLimit, SearchOutcome
from sfumato.methods.lattice.level_lattice import Node
from sfumato.methods.lattice.node_results import NodeResult, NodeResults
from sfumato.methods.method import Effort
from sfumato.progress import Progress
from sfumato.requirements import Requirements

MOST_NODES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Samarati(LatticeMethod):
    """Search for the lowest height that has a solution."""

    name = "samarati"
    paper = "Samarati: Protecting respondents' identities in microdata release, TKDE 2001"
    summary = "one level for each column everywhere; binary search for the lowest sum of levels"
    use = "for comparison with the literature; global loses less"

    def check(self, requirements: Requirements) -> None:
        check_only_k(self, requirements)

    def search(self, results: NodeResults, effort: Effort, progress: Progress) -> SearchOutcome:
        top = results.lattice.top
        if results.lattice.size > MOST_NODES:
            raise too_many_nodes(self.name)
        if not results.result(top).feasible:
            return SearchOutcome(None, None, True)
        limit = SearchLimit(effort, progress)
        failing = FailingNodes(len(top))
        low, high = 0, sum(top)
        while low < high:
            middle = (low + high) // 2
            if next(_solutions(results, middle, failing, limit), None) is not None:
                high = middle
            else:
                low = middle + 1
        best = min(_solutions(results, low, failing, limit), key=lambda result: result.rank)
        return SearchOutcome(best, None, False)


def too_many_nodes(method: str) -> UsageError:
    """Return the refusal of a lattice that a method would have to go through node by node."""
    return UsageError(
        f"{method} goes through the lattice node by node, and this one has too many nodes. Choose global, more effort, "
        "or columns with fewer levels."
    )


def _solutions(results: NodeResults, height: int, failing: FailingNodes, limit: SearchLimit) -> Iterator[NodeResult]:
    """Yield the nodes of a height that leave out few enough. failing: nodes known to fail, to which more are added."""
    for node in nodes_of_height(results.lattice.top, height):
        if limit.is_reached(results.work):
            raise too_many_nodes("samarati")
        if failing.above(node) is not None:
            continue
        result = results.result(node)
        if result.feasible:
            yield result
        else:
            failing.add(node)


def nodes_of_height(top: Node, height: int) -> Iterator[Node]:
    """Yield the nodes whose levels sum to a height, in ascending order."""
    if len(top) == 1:
        if height <= top[0]:
            yield (height,)
        return
    rest = sum(top[1:])
    for level in range(max(height - rest, 0), min(top[0], height) + 1):
        for others in nodes_of_height(top[1:], height - level):
            yield (level, *others)
