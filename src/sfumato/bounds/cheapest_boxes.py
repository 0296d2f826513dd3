"""The cheapest allowed box around every record: the simple bound.

Whatever the classes of a release are, a record is in one of them, whose box holds the record and k records at least. So
no record costs less than the cheapest such box, and no release less than their sum.

The k - 1 nearest neighbours give both sides of a start: no box costs less than the farthest of them is away, and the
box of all of them is one. What lies between is searched (``search``), a few records first: the box of one is a good
start for those beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.problem import ROUND, BoundProblem
from sfumato.kernels.threads import slices
from sfumato.methods.clustering.kd_tree import nearest
from sfumato.tables.coding.domains import Codes

STRIDES = (64, 8, 1)


@dataclass(frozen=True)
class Cheapest:
    """By place in the tree: what no allowed box around the record costs less than, an allowed box, and what that costs.

    The box is the cheapest where both are the same.
    """

    least: NDArray[np.int64]
    low: Codes
    high: Codes
    cost: NDArray[np.int64]

    @property
    def exact(self) -> NDArray[np.bool_]:
        result: NDArray[np.bool_] = self.least == self.cost
        return result

    def offer(self, asked: NDArray[np.int64], low: Codes, high: Codes, cost: NDArray[np.int64]) -> None:
        """Take the boxes that cost less than those known."""
        better = cost < self.cost[asked]
        here = asked[better]
        self.low[here], self.high[here], self.cost[here] = low[better], high[better], cost[better]


def nearest_boxes(ground: BoundProblem, done: Callable[[int], None]) -> Cheapest:
    """What the nearest neighbours alone tell. ``done`` is told of how many records they are known."""
    found = nearest(ground.tree, ground.k, ground.costs, done)
    low, high = found.low, found.high
    if len(ground.diversity.needed):  # of all boxes, only that of everything surely has enough values
        low[:], high[:] = ground.tree.low[0], ground.tree.high[0]
    return Cheapest(found.reach, low, high, ground.box_costs(low, high))


def search_cheapest(
    ground: BoundProblem, known: Cheapest, most: int, done: Callable[[int], None], over: Callable[[], bool]
) -> bool:
    """Make the least costs exact, or at least higher: ``most`` are the parts of a search. Changes what is known.

    ``done`` is told of how many distinct records are settled; ``over`` tells when to leave the others as they are.
    Whether all were searched.
    """
    nothing = np.zeros(ground.count, np.int64)
    settled = known.exact
    done(int(np.count_nonzero(settled)))
    for stride in STRIDES:
        rest = np.flatnonzero(~settled & (np.arange(ground.count) % stride == 0))
        beside = np.flatnonzero(settled)
        for shift in (0, -1) if len(beside) else ():
            other = beside[np.clip(np.searchsorted(beside, rest) + shift, 0, len(beside) - 1)]
            codes = ground.tree.codes[rest]
            low, high = np.minimum(known.low[other], codes), np.maximum(known.high[other], codes)
            known.offer(rest, low, high, ground.box_costs(low, high))
        for begin, end in slices(len(rest), ROUND):
            if over():
                return False
            asked = rest[begin:end]
            found = ground.rooms(asked, nothing, nothing, ground.k * known.cost[asked], most)
            known.offer(asked, found.low, found.high, found.box_room // ground.k)
            known.least[asked] = np.maximum(known.least[asked], found.room // ground.k)
            done(end - begin)
        settled[rest] = True
    return True
