"""The boxes that searches met, and which of their records limit prices most.

Prices are proven by the search over all boxes (``dual_prices``). The candidates are found here, against a pool of
boxes: the k dearest records of each, as a set of the linear programme of prices (``price_programme``). When prices
change, others become the k dearest, and the sets that are too dear then join the programme.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.price_programme import PriceProgramme, RecordSets
from sfumato.bounds.problem import BoundProblem
from sfumato.kernels.constants import NONE, STACK_SIZE
from sfumato.kernels.decorator import inner_kernel, kernel
from sfumato.methods.boxes.largest_prices import LargestPrices, add_price, make_room
from sfumato.methods.clustering.kd_tree import overlap
from sfumato.tables.coding.domains import Codes

BROKEN = 1e-3  # a set joins the programme if its prices exceed its cost by this share


@dataclass(frozen=True)
class BoxPool:
    """Distinct boxes, their costs, and the tree positions of their records: members[starts[b]:starts[b + 1]]."""

    low: Codes
    high: Codes
    cost: NDArray[np.int64]
    starts: NDArray[np.int64]
    members: NDArray[np.int64]

    @classmethod
    def of(cls, problem: BoundProblem, low: Codes, high: Codes) -> BoxPool:
        d = low.shape[1]
        both = np.unique(np.concatenate([low, high], axis=1), axis=0)
        low, high = np.ascontiguousarray(both[:, :d]), np.ascontiguousarray(both[:, d:])
        counts = np.zeros(len(low) + 1, np.int64)
        find_members(problem.tree, low, high, counts, np.empty(0, np.int64))
        starts = np.cumsum(counts)
        members = np.empty(int(starts[-1]), np.int64)
        find_members(problem.tree, low, high, starts, members)
        return cls(low, high, problem.box_costs(low, high), starts, members)

    def with_boxes(self, problem: BoundProblem, low: Codes, high: Codes) -> BoxPool:
        return BoxPool.of(problem, np.concatenate([self.low, low]), np.concatenate([self.high, high]))

    def excess(self, problem: BoundProblem, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how much the mean of the k largest prices in each box exceeds its cost: float64[b]."""
        means = np.empty(len(self.cost))
        weights, most, values = problem.tree.weights, problem.diversity.most, problem.diversity.value
        mean_of_dearest(prices, self.starts, self.members, weights, problem.k, most, values, means)
        return means - self.cost

    def dearest(self, problem: BoundProblem, prices: NDArray[np.float64], boxes: NDArray[np.int64]) -> RecordSets:
        """Return the k dearest records of some boxes as sets."""
        k, sizes = problem.k, np.empty(len(boxes), np.int64)
        members, copies = np.empty((len(boxes), k), np.int32), np.empty((len(boxes), k), np.int32)
        weights, most, values = problem.tree.weights, problem.diversity.most, problem.diversity.value
        write_dearest(prices, boxes, self.starts, self.members, weights, k, most, values, sizes, members, copies)
        held = np.arange(k) < sizes[:, None]
        shares = (copies[held] / k).astype(np.float32)
        return RecordSets(np.append(0, np.cumsum(sizes)), members[held], shares, self.cost[boxes].astype(np.float64))


def programme_of(
    problem: BoundProblem, pool: BoxPool, start: NDArray[np.float64], free: NDArray[np.bool_], highest: float
) -> PriceProgramme:
    """Return the programme of the k dearest records of every box.

    free: bool[m], the records that have a price at all; the others are in boxes that cost nothing. highest: the largest
    price allowed.
    """
    sets = pool.dearest(problem, start, np.arange(len(pool.cost)))
    return PriceProgramme(problem.tree.weights, start, np.where(free, highest, 0.0), sets)


def pool_optimum(
    problem: BoundProblem, pool: BoxPool, programme: PriceProgramme, steps: int, out_of_time: Callable[[], bool]
) -> NDArray[np.float64]:
    """Return prices with as large a sum as some iterations reach; the boxes of the pool can undercut them by little."""
    programme.forget_idle()
    done = 0
    while True:
        prices, count = programme.raised(steps, out_of_time)
        done += count
        excess = pool.excess(problem, prices)
        broken = np.flatnonzero(excess > BROKEN * pool.cost)
        programme.add(pool.dearest(problem, prices, broken))
        if done >= steps or out_of_time():
            return prices


@kernel
def find_members(tree, box_low, box_high, starts, members):
    """Write the tree positions in each box into ``members`` from its start on; if ``members`` is empty, count them.

    tree: KdTree. box_low, box_high: uint[b, d]. starts: int64[b + 1]; the counts go to its entries from 1 on.
    """
    counting = len(members) == 0
    waiting = np.empty(STACK_SIZE, np.int64)
    for b in range(len(box_low)):
        count, depth = 0, 1
        waiting[0] = 0
        while depth > 0:
            depth -= 1
            node = waiting[depth]
            if not overlap(tree.low, tree.high, node, box_low, box_high, b):
                continue
            if tree.spans[node, 2] != NONE:
                waiting[depth], waiting[depth + 1] = tree.spans[node, 2], node + 1
                depth += 2
                continue
            for position in range(tree.spans[node, 0], tree.spans[node, 1]):
                if overlap(tree.codes, tree.codes, position, box_low, box_high, b):
                    if not counting:
                        members[starts[b] + count] = position
                    count += 1
        if counting:
            starts[b + 1] = count


@kernel
def mean_of_dearest(prices, starts, members, weights, k, most, values, means):
    """Write the mean of the k largest prices in each box. prices: float64[m]. starts, members: see BoxPool."""
    largest = room_for_prices(k)
    for b in range(len(means)):
        size = largest_in_box(b, prices, starts, members, weights, k, most, values, largest)
        means[b] = 0.0
        for t in range(size):
            means[b] += largest.copies[t] * largest.price[t] / k


@kernel
def write_dearest(prices, boxes, starts, members, weights, k, most, values, sizes, records, copies):
    """Write the k dearest records of some boxes. sizes: int64[c]; records and copies: int32[c, k]."""
    largest = room_for_prices(k)
    for c in range(len(boxes)):
        sizes[c] = largest_in_box(boxes[c], prices, starts, members, weights, k, most, values, largest)
        for t in range(sizes[c]):
            records[c, t], copies[c, t] = largest.record[t], largest.copies[t]


@inner_kernel
def room_for_prices(k):
    return LargestPrices(
        np.empty(k + 1),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
    )


@inner_kernel
def largest_in_box(b, prices, starts, members, weights, k, most, values, largest):
    """Write the k largest prices in a box into ``largest``, LargestPrices; return the number of entries."""
    size, held, total = 0, np.int64(0), 0.0
    for at in range(starts[b], starts[b + 1]):
        position = members[at]
        price, copies, value = prices[position], weights[position], values[position]
        if value != NONE:
            copies, size, held, total = make_room(price, copies, value, most, k, size, held, total, largest)
        size, held, total = add_price(price, copies, value, position, k, size, held, total, largest)
    return size
