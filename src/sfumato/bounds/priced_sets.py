"""Candidate prices with a large sum, found against sets of records that were seen to be tight.

For any prices y, changing the price of each record by the least of (SSE(C) - the sum of y over C) / |C| over the sets C
that hold it makes the prices feasible for these sets. The sum of the resulting prices is concave in y, and its maximum
is that of the linear programme with these sets alone. We climb it along its subgradients: each record demands its
tightest set, whose records pay for it in equal shares, and a price rises where a record pays for less than one and
falls where it pays for more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel

PATIENCE = 10  # steps without a gain before they are shortened
SHORTER = 0.7
GAIN = 1e-5  # the least relative increase that counts as a gain
MEMORY = 0.7  # the share of the previous direction that a step keeps


@dataclass(frozen=True)
class PricedSets:
    """Distinct sets of records, and their SSE. members: int64[p, w], ascending, filled up with NONE."""

    members: NDArray[np.int64]
    cost: NDArray[np.float64]

    @classmethod
    def of(cls, points: NDArray[np.int64], members: NDArray[np.int64]) -> PricedSets:
        # NONE is last once it counts as more than any record.
        in_order = np.sort(np.where(members == NONE, len(points), members), axis=1)
        distinct = np.unique(in_order, axis=0)
        distinct[distinct == len(points)] = NONE
        cost = np.zeros(len(distinct))
        sums_of_squares(points, distinct, cost)
        return cls(distinct, cost)

    def with_sets(self, points: NDArray[np.int64], members: NDArray[np.int64]) -> PricedSets:
        return PricedSets.of(points, np.concatenate([self.members, members]))


def climb_prices(
    sets: PricedSets, start: NDArray[np.float64], stride: float, steps: int, out_of_time: Callable[[], bool]
) -> NDArray[np.float64]:
    """Return prices that are feasible for the sets, with a sum at least that of ``start`` made feasible.

    Every record is in a set. ``stride`` is the gain that a step aims at, as a share of the sum; it shrinks when there
    is none.
    """
    count = len(start)
    rise, tightest, slope, direction = np.empty(count), np.empty(count, np.int64), np.empty(count), np.zeros(count)
    prices, best, value, without_gain = start, start, -np.inf, 0
    for _ in range(steps):
        slopes(prices, sets.members, sets.cost, rise, tightest, slope)
        feasible = prices + rise
        reached = float(feasible.sum())
        if reached - value > abs(reached) * GAIN:
            best, value, without_gain = feasible, reached, 0
            if out_of_time():
                break
        else:
            without_gain += 1
            if without_gain == PATIENCE:
                stride, without_gain, prices = stride * SHORTER, 0, best
                direction[:] = 0.0
                continue
        direction = MEMORY * direction + (1 - MEMORY) * slope if direction.any() else slope.copy()
        scaled = direction * (np.abs(prices) + float(np.abs(prices).mean()) / 4)  # high prices have farther to go
        square = float((direction * scaled).sum())
        if square == 0.0:
            break
        prices = prices + stride * abs(reached) / square * scaled
    return best


@kernel
def slopes(prices, members, cost, rise, tightest, slope):
    """Write how far each price can rise for the sets, the set that limits it, and the slope of the sum. All [n]."""
    for i in range(len(prices)):
        rise[i], tightest[i], slope[i] = np.inf, NONE, 1.0
    for p in range(len(members)):
        room, size = cost[p], 0
        while size < members.shape[1] and members[p, size] != NONE:
            room -= prices[members[p, size]]
            size += 1
        share = room / size
        for j in range(size):
            if share < rise[members[p, j]]:
                rise[members[p, j]], tightest[members[p, j]] = share, p
    for i in range(len(prices)):
        p, size = tightest[i], 0
        while size < members.shape[1] and members[p, size] != NONE:
            size += 1
        for j in range(size):
            slope[members[p, j]] -= 1.0 / size


@kernel
def sums_of_squares(points, members, cost):
    """Write the SSE of each set: float64[p]. points: int64[n, d]; members: int64[p, w]."""
    for p in range(len(members)):
        size = 0
        while size < members.shape[1] and members[p, size] != NONE:
            size += 1
        total = 0.0
        for i in range(size):
            for j in range(i):
                for q in range(points.shape[1]):
                    apart = float(points[members[p, i], q] - points[members[p, j], q])
                    total += apart * apart
        cost[p] = total / size
