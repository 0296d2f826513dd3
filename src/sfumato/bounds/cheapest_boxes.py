"""The cheapest allowed box around every record: the simple bound.

In any release a record is in some class, whose box holds the record and at least k records. So no record costs less
than the cheapest such box, and no release costs less than the sum of these.

The k - 1 nearest neighbours give bounds from both sides: no box costs less than the distance of the farthest of them,
and the box of all of them is allowed. The range between is searched (``box_search``), a few records first: the box of
one record is a good start for those beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.problem import ROUND, BoundProblem
from sfumato.kernels.threads import slices
from sfumato.methods.clustering.kd_tree import nearest_neighbours
from sfumato.tables.coding.domains import Codes

STRIDES = (64, 8, 1)


@dataclass(frozen=True)
class CheapestBoxes:
    """For each position in the tree, a lower bound on the cost of allowed boxes, an allowed box, and its cost.

    The box is the cheapest one where ``cost`` equals ``least``.
    """

    least: NDArray[np.int64]
    low: Codes
    high: Codes
    cost: NDArray[np.int64]

    @property
    def exact(self) -> NDArray[np.bool_]:
        result: NDArray[np.bool_] = self.least == self.cost
        return result

    def offer(self, positions: NDArray[np.int64], low: Codes, high: Codes, cost: NDArray[np.int64]) -> None:
        """Replace the known boxes of these positions where the offered ones cost less."""
        better = cost < self.cost[positions]
        replaced = positions[better]
        self.low[replaced], self.high[replaced], self.cost[replaced] = low[better], high[better], cost[better]


def nearest_boxes(problem: BoundProblem, advance: Callable[[int], None]) -> CheapestBoxes:
    """Return the bounds from the nearest neighbours alone. ``advance`` receives the number of records finished."""
    neighbours = nearest_neighbours(problem.tree, problem.k, problem.costs, advance)
    low, high = neighbours.low, neighbours.high
    if len(problem.diversity.needed) or problem.limits_shares:  # only the box of all records is certain to suffice
        low[:], high[:] = problem.tree.low[0], problem.tree.high[0]
    return CheapestBoxes(neighbours.reach, low, high, problem.box_costs(low, high))


def search_cheapest(
    problem: BoundProblem,
    known: CheapestBoxes,
    max_parts: int,
    advance: Callable[[int], None],
    out_of_time: Callable[[], bool],
) -> bool:
    """Make the lower bounds exact, or at least higher, and return whether all records were searched.

    known: changed. max_parts: the parts of one search. ``advance`` receives the number of distinct records settled;
    when ``out_of_time`` holds, the remaining ones are left as they are.
    """
    first = _first_with_these_codes(problem)
    searched = _search(problem, known, first == np.arange(problem.count), max_parts, advance, out_of_time)
    for array in (known.least, known.low, known.high, known.cost):
        array[:] = array[first]
    return searched


def _first_with_these_codes(problem: BoundProblem) -> NDArray[np.int64]:
    """Return for each position the first whose quasi-identifiers are equal. The same boxes are allowed around both."""
    if not problem.limits_shares:
        return np.arange(problem.count)
    _, first, group = np.unique(problem.tree.codes, axis=0, return_index=True, return_inverse=True)
    result: NDArray[np.int64] = first[group.ravel()]
    return result


def _search(
    problem: BoundProblem,
    known: CheapestBoxes,
    chosen: NDArray[np.bool_],
    max_parts: int,
    advance: Callable[[int], None],
    out_of_time: Callable[[], bool],
) -> bool:
    """Search the chosen positions; return whether all of them were searched."""
    nothing = np.zeros(problem.count, np.int64)
    settled = known.exact
    advance(int(np.count_nonzero(settled | ~chosen)))
    for stride in STRIDES:
        rest = np.flatnonzero(~settled & chosen & (np.arange(problem.count) % stride == 0))
        beside = np.flatnonzero(settled)
        for shift in (0, -1) if len(beside) else ():
            other = beside[np.clip(np.searchsorted(beside, rest) + shift, 0, len(beside) - 1)]
            codes = problem.tree.codes[rest]
            low, high = np.minimum(known.low[other], codes), np.maximum(known.high[other], codes)
            known.offer(rest, low, high, problem.box_costs(low, high))
        for begin, end in slices(len(rest), ROUND):
            if out_of_time():
                return False
            targets = rest[begin:end]
            result = problem.least_slacks(targets, nothing, nothing, problem.k * known.cost[targets], max_parts)
            known.offer(targets, result.low, result.high, result.box_slack // problem.k)
            known.least[targets] = np.maximum(known.least[targets], result.slack // problem.k)
            advance(end - begin)
        settled[rest] = True
    return True
