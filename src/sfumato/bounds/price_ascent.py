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

from sfumato.bounds.box_pool import BoxPool
from sfumato.bounds.problem import BoundProblem
from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads

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
    weights, direction = problem.tree.weights, np.zeros(len(start))
    prices, best, value, steps_without_gain = start, start, -np.inf, 0
    mobility = ZERO_PRICE_MOBILITY * float((start * weights).sum()) / max(int(weights[free].sum()), 1)
    lowest = -highest if problem.limits_shares else 0.0
    for _ in range(steps):
        rise, share, slope = _slopes(problem, pool, prices)
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


def _slopes(
    problem: BoundProblem, pool: BoxPool, prices: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return how far each price can rise or must fall, the factor for a fall by a share, and the slope of the sum."""
    dearest, weights = pool.dearest(problem, prices), problem.tree.weights
    parts = range(len(pool.parts))
    rise, share = np.full((len(parts), problem.count), np.inf), np.ones((len(parts), problem.count))
    tightest, paid = np.full((len(parts), problem.count), NONE, np.int32), np.zeros((len(parts), problem.count))

    def find(part: int) -> None:
        find_tightest(
            *pool.parts[part], pool.starts, pool.members, pool.cost, dearest.means, rise[part], share[part],
            tightest[part],
        )  # fmt: skip

    def pay(part: int) -> None:
        pay_for_demand(*pool.parts[part], pool.starts, pool.members, dearest.sizes, dearest.copies, demand, paid[part])

    in_threads(find, parts)
    of_part = rise.argmin(axis=0)[None]  # the first, if several are as tight: the number of parts makes no difference
    box = np.take_along_axis(tightest, of_part, axis=0)[0]
    demand = np.bincount(box[box != NONE], weights[box != NONE], minlength=len(pool)) / problem.k
    in_threads(pay, parts)
    least_rise = np.where(box == NONE, 0.0, np.take_along_axis(rise, of_part, axis=0)[0])
    return least_rise, share.min(axis=0), weights - paid.sum(axis=0)


@kernel
def find_tightest(begin, end, starts, members, cost, means, rise, share, tightest):
    """Write the tightest of some boxes around each record, what it leaves, and the factor for a fall by a share.

    starts, members, cost: see BoxPool. means: see DearestRecords. rise, share: float64[m]; tightest: int32[m].
    """
    for b in range(begin, end):
        slack = cost[b] - means[b]
        for at in range(starts[b], starts[b + 1]):
            if slack < rise[members[at]]:
                rise[members[at]], tightest[members[at]] = slack, b
            if slack < 0.0:
                share[members[at]] = min(share[members[at]], cost[b] / means[b])


@kernel
def pay_for_demand(begin, end, starts, members, sizes, copies, demand, paid):
    """Let the k dearest records of each box pay for those that demand it. demand: float64[b]; paid: float64[m]."""
    for b in range(begin, end):
        if demand[b] > 0:
            for t in range(sizes[b]):
                paid[members[starts[b] + t]] += demand[b] * copies[b, t]
