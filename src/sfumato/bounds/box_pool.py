"""Candidate prices with a large sum, found against a pool of boxes.

Prices are proven by the search over all boxes (``dual_prices``). The candidates are found here, against the boxes that
earlier searches met. For any prices y, feasible or not, changing the price of each record by the least of

    cost of the box - mean of the k largest prices in it

over the boxes of the pool that hold it makes the prices feasible for the pool. The sum of the resulting prices is a
concave function of y, whose maximum is that of the linear programme with these boxes alone. We climb it along its
subgradients: each record demands its tightest box, the k dearest records of a box pay for those that demand it, and a
price rises where its records pay for fewer than their own number, and falls where they pay for more. Steps are longer
for high prices and keep part of the direction of earlier steps. No price is below 0, so prices that are too high are
scaled down instead, by the ratio of the cost to the mean. Only where equal sensitive values are limited may prices be
below 0: records whose values are scarce then pay others to do without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.problem import BoundProblem
from sfumato.kernels.constants import NONE, STACK_SIZE
from sfumato.kernels.decorator import inner_kernel, kernel
from sfumato.methods.boxes.largest_prices import LargestPrices, add_price, make_room
from sfumato.methods.clustering.kd_tree import overlap
from sfumato.tables.coding.domains import Codes

PATIENCE = 10  # steps without a gain before they are shortened
SHORTER = 0.7
GAIN = 1e-5  # the least relative increase that counts as a gain
MEMORY = 0.7  # the share of the previous direction that a step keeps
ZERO_PRICE_MOBILITY = 0.3  # a price of 0 moves like one of this share of the mean price


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


def climb(
    problem: BoundProblem,
    pool: BoxPool,
    start: NDArray[np.float64],
    free: NDArray[np.bool_],
    *,
    stride: float,
    steps: int,
    highest: float,
    trust: float,
    out_of_time: Callable[[], bool],
) -> NDArray[np.float64]:
    """Return prices that are feasible for the pool, with a larger sum than ``start`` made feasible.

    free: bool[m], the records that have a price at all; the others are in boxes that cost nothing. ``stride`` is the
    gain that a step aims at, as a share of the sum; it shrinks when there is none. ``highest`` is the largest price
    allowed. The climb ends at a sum of ``trust``, or when ``out_of_time`` holds.
    """
    weights, k = problem.tree.weights, problem.k
    most, values = problem.diversity.most, problem.diversity.value
    count = len(start)
    rise, share, slope, direction = np.empty(count), np.empty(count), np.empty(count), np.zeros(count)
    prices, best, value, steps_without_gain = start, start, -np.inf, 0
    mobility = ZERO_PRICE_MOBILITY * float((start * weights).sum()) / max(int(weights[free].sum()), 1)
    lowest = -highest if problem.limits_shares else 0.0
    for _ in range(steps):
        slopes(prices, pool.starts, pool.members, pool.cost, weights, k, most, values, rise, share, slope)
        lowered = prices + rise if problem.limits_shares else prices * share
        feasible = np.minimum(np.where(rise < 0.0, lowered, prices + rise), highest)
        feasible[~free] = 0.0
        reached = float((feasible * weights).sum())
        if reached > value * (1 + GAIN):
            best, value, steps_without_gain = feasible, reached, 0
            if value >= trust or out_of_time():
                break
        else:
            steps_without_gain += 1
            if steps_without_gain == PATIENCE:
                stride, steps_without_gain, prices = stride * SHORTER, 0, best
                direction[:] = 0.0
                continue
        slope[~free] = 0.0
        direction = MEMORY * direction + (1 - MEMORY) * slope if direction.any() else slope.copy()
        scaled = direction * (np.abs(prices) + mobility)  # high prices have farther to go than low ones
        square = float((direction * scaled).sum())
        if square == 0.0:
            break
        prices = np.clip(prices + stride * value / square * scaled, lowest, highest)
        prices[~free] = 0.0
    return best


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
def slopes(prices, starts, members, cost, weights, k, most, values, rise, share, slope):
    """Write how far each price can rise or must fall, the factor for a fall by a share, and the slope of the sum.

    prices: float64[m]. starts, members, cost: see BoxPool. rise, share, slope: float64[m].
    """
    boxes = len(cost)
    tightest = np.full(len(prices), -1)
    largest = LargestPrices(
        np.empty(k + 1),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
    )
    for p in range(len(prices)):
        rise[p], share[p] = np.inf, 1.0
    for b in range(boxes):
        size = largest_in_box(b, prices, starts, members, weights, k, most, values, largest)
        total = 0.0
        for t in range(size):
            total += largest.copies[t] * largest.price[t]
        slack = cost[b] - total / k
        for at in range(starts[b], starts[b + 1]):
            if slack < rise[members[at]]:
                rise[members[at]], tightest[members[at]] = slack, b
            if slack < 0.0:
                share[members[at]] = min(share[members[at]], cost[b] * k / total)
    demand = np.zeros(boxes)
    for p in range(len(prices)):
        slope[p] = weights[p]
        if tightest[p] >= 0:
            demand[tightest[p]] += weights[p]
        else:
            rise[p] = 0.0
    for b in range(boxes):
        if demand[b] > 0:
            size = largest_in_box(b, prices, starts, members, weights, k, most, values, largest)
            for t in range(size):
                slope[largest.record[t]] -= demand[b] * largest.copies[t] / k


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
