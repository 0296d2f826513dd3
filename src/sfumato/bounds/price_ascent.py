"""Candidate prices with a large sum, by a climb along subgradients: the first rounds, in which the pool grows.

For any prices y, feasible for a pool of boxes or not, changing the price of each record by the least of

    cost of the box - mean of the k largest prices in it

over the boxes of the pool that hold it makes the prices feasible for the pool. The sum of the resulting prices is a
concave function of y, whose maximum is that of the linear programme with these boxes alone. We climb it along its
subgradients: each record demands its tightest box, the k dearest records of a box pay for those that demand it, and a
price rises where its records pay for fewer than their own number, and falls where they pay for more. Steps are longer
for high prices and keep part of the direction of earlier steps. No price is below 0, so prices that are too high are
scaled down instead, by the ratio of the cost to the mean. Only where equal sensitive values are limited may prices be
below 0: records whose values are scarce then pay others to do without them.

The climb stalls below the maximum, but its prices are moderate: all rise together, so that few boxes outside the pool
are too tight for them. The maximum itself (``price_programme``) is of use once the pool holds most of those that count.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.box_pool import BoxPool, largest_in_box, room_for_prices
from sfumato.bounds.problem import BoundProblem
from sfumato.kernels.decorator import kernel

PATIENCE = 10  # steps without a gain before they are shortened
SHORTER = 0.7
GAIN = 1e-5  # the least relative increase that counts as a gain
MEMORY = 0.7  # the share of the previous direction that a step keeps
ZERO_PRICE_MOBILITY = 0.3  # a price of 0 moves like one of this share of the mean price


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
def slopes(prices, starts, members, cost, weights, k, most, values, rise, share, slope):
    """Write how far each price can rise or must fall, the factor for a fall by a share, and the slope of the sum.

    prices: float64[m]. starts, members, cost: see BoxPool. rise, share, slope: float64[m].
    """
    boxes = len(cost)
    tightest = np.full(len(prices), -1)
    largest = room_for_prices(k)
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
