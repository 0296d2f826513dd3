"""Prices that add up to much, against a pool of boxes.

Prices are proven by the search over all boxes (``prices``); where to look for them is found here, against those boxes
that earlier searches came upon. For any prices y, feasible or not, raising or lowering each record's by the least of

    cost of the box - mean of the k largest prices in it

over the boxes of the pool that hold it makes them feasible for the pool. The sum of what results is a concave function
of y, whose largest value is that of the linear programme with these boxes alone. It is climbed along its subgradients:
each record asks for its tightest box, the k dearest records of a box pay for those who ask for it, and prices rise
where less is paid than there are copies, and fall where more is. Steps are longer for high prices and keep something of
the direction of earlier ones. No price is below 0, so those that are too high are lowered by a share instead: that of
the cost in the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.problem import BoundProblem
from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.methods.clustering.kd_tree import DEEPEST
from sfumato.tables.coding.domains import Codes

PATIENCE = 10  # steps without a gain before they are shortened
SHORTER = 0.7
GAIN = 1e-5  # a gain is one part in 100,000 at least
MEMORY = 0.7  # what a step keeps of the direction of the one before
LITTLE = 0.3  # so much of the mean price moves those that are 0


@dataclass(frozen=True)
class Pool:
    """Boxes, each once: what they cost, and the places of the records in them, members[starts[b]:starts[b + 1]]."""

    low: Codes
    high: Codes
    cost: NDArray[np.int64]
    starts: NDArray[np.int64]
    members: NDArray[np.int64]

    @classmethod
    def of(cls, ground: BoundProblem, low: Codes, high: Codes) -> Pool:
        d = low.shape[1]
        both = np.unique(np.concatenate([low, high], axis=1), axis=0)
        low, high = np.ascontiguousarray(both[:, :d]), np.ascontiguousarray(both[:, d:])
        counts = np.zeros(len(low) + 1, np.int64)
        find_members(ground.tree, low, high, counts, np.empty(0, np.int64))
        starts = np.cumsum(counts)
        members = np.empty(int(starts[-1]), np.int64)
        find_members(ground.tree, low, high, starts, members)
        return cls(low, high, ground.box_costs(low, high), starts, members)

    def with_boxes(self, ground: BoundProblem, low: Codes, high: Codes) -> Pool:
        return Pool.of(ground, np.concatenate([self.low, low]), np.concatenate([self.high, high]))


def climb(
    ground: BoundProblem,
    pool: Pool,
    start: NDArray[np.float64],
    free: NDArray[np.bool_],
    *,
    stride: float,
    steps: int,
    highest: float,
    trust: float,
    over: Callable[[], bool],
) -> NDArray[np.float64]:
    """Prices that are feasible for the pool and add up to more than ``start`` does after it was made feasible.

    free: bool[m], which records have a price at all; the others are in boxes that cost nothing. ``stride`` is the gain
    that a step hopes for, as a share of the sum; it shrinks where none comes. ``highest`` is the largest price allowed;
    a sum of ``trust`` is enough; ``over`` tells when to take what there is.
    """
    weights, k = ground.tree.weights, ground.k
    count = len(start)
    room, share, slope, direction = np.empty(count), np.empty(count), np.empty(count), np.zeros(count)
    prices, best, value, waited = start, start, -np.inf, 0
    little = LITTLE * float((start * weights).sum()) / max(int(weights[free].sum()), 1)
    for _ in range(steps):
        slopes(prices, pool.starts, pool.members, pool.cost, weights, k, room, share, slope)
        feasible = np.minimum(np.where(room < 0.0, prices * share, prices + room), highest)
        feasible[~free] = 0.0
        reached = float((feasible * weights).sum())
        if reached > value * (1 + GAIN):
            best, value, waited = feasible, reached, 0
            if value >= trust or over():
                break
        else:
            waited += 1
            if waited == PATIENCE:
                stride, waited, prices = stride * SHORTER, 0, best
                direction[:] = 0.0
                continue
        slope[~free] = 0.0
        direction = MEMORY * direction + (1 - MEMORY) * slope if direction.any() else slope.copy()
        scaled = direction * (prices + little)  # high prices have farther to go than low ones
        square = float((direction * scaled).sum())
        if square == 0.0:
            break
        prices = np.clip(prices + stride * value / square * scaled, 0.0, highest)
        prices[~free] = 0.0
    return best


@kernel
def find_members(tree, box_low, box_high, starts, members):
    """Write the places in each box into ``members`` from its start on; without room for them, count them.

    tree: Tree. box_low, box_high: uint[b, d]. starts: int64[b + 1]; the counts go to its entries from 1 on.
    """
    counting = len(members) == 0
    waiting = np.empty(DEEPEST, np.int64)
    for b in range(len(box_low)):
        count, depth = 0, 1
        waiting[0] = 0
        while depth > 0:
            depth -= 1
            node = waiting[depth]
            if not meet(tree.low, tree.high, node, box_low, box_high, b):
                continue
            if tree.spans[node, 2] != NONE:
                waiting[depth], waiting[depth + 1] = tree.spans[node, 2], node + 1
                depth += 2
                continue
            for place in range(tree.spans[node, 0], tree.spans[node, 1]):
                if meet(tree.codes, tree.codes, place, box_low, box_high, b):
                    if not counting:
                        members[starts[b] + count] = place
                    count += 1
        if counting:
            starts[b + 1] = count


@kernel
def meet(low, high, one, other_low, other_high, other):
    """Whether two boxes, rows of arrays, have something in common."""
    for q in range(low.shape[1]):
        if low[one, q] > other_high[other, q] or high[one, q] < other_low[other, q]:
            return False
    return True


@kernel
def slopes(prices, starts, members, cost, weights, k, rise, share, slope):
    """Write how far prices can rise or must fall, what is left of them if they fall by a share, and the sum's slope.

    prices: float64[m]. starts, members, cost: see Pool. rise, share, slope: float64[m].
    """
    boxes = len(cost)
    tightest = np.full(len(prices), -1)
    top, copies, record = np.empty(k + 1), np.empty(k + 1, np.int64), np.empty(k + 1, np.int64)
    for p in range(len(prices)):
        rise[p], share[p] = np.inf, 1.0
    for b in range(boxes):
        size = dearest_in(b, prices, starts, members, weights, k, top, copies, record)
        total = 0.0
        for t in range(size):
            total += copies[t] * top[t]
        room = cost[b] - total / k
        for at in range(starts[b], starts[b + 1]):
            if room < rise[members[at]]:
                rise[members[at]], tightest[members[at]] = room, b
            if room < 0.0:
                share[members[at]] = min(share[members[at]], cost[b] * k / total)
    asking = np.zeros(boxes)
    for p in range(len(prices)):
        slope[p] = weights[p]
        if tightest[p] >= 0:
            asking[tightest[p]] += weights[p]
        else:
            rise[p] = 0.0
    for b in range(boxes):
        if asking[b] > 0:
            size = dearest_in(b, prices, starts, members, weights, k, top, copies, record)
            for t in range(size):
                slope[record[t]] -= asking[b] * copies[t] / k


@kernel
def dearest_in(b, prices, starts, members, weights, k, top, copies, record):
    """The k largest prices in a box, in descending order, with their copies and records: how many differ."""
    size, held = 0, 0
    for at in range(starts[b], starts[b + 1]):
        place = members[at]
        price = prices[place]
        if held >= k and price <= top[size - 1]:
            continue
        t = size
        while t > 0 and top[t - 1] < price:
            top[t], copies[t], record[t] = top[t - 1], copies[t - 1], record[t - 1]
            t -= 1
        top[t], copies[t], record[t] = price, min(weights[place], k), place
        size += 1
        held += copies[t]
        while held > k:
            goes = min(held - k, copies[size - 1])
            held -= goes
            copies[size - 1] -= goes
            if copies[size - 1] == 0:
                size -= 1
    return size
