"""The linear programme of prices: the largest sum of prices that no given set of records can undercut.

A set C limits the mean of the prices of its records, counted with their copies: it is at most the cost of C. The dual
gives every set a number, how often it is chosen, so that every record is held once.

Prices and numbers improve in turns: the primal-dual method of Chambolle and Pock (J. Mathematical Imaging and Vision
2011) with a step of its own for every price and number (Pock and Chambolle, ICCV 2011). Each step is reflected and
drawn back to where the iteration began, which begins anew once it has come much closer (restarted Halpern iteration:
Lu and Yang, arXiv:2407.16144). An iteration is two passes over the records of all sets. Thousands of them take seconds
where a simplex or interior point method takes minutes, and come as close as a bound needs.

Sets can be added at any time; the prices go on from where they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import even_parts, in_threads

STEPS = 50  # iterations between two looks at how close they are
CLOSE, CLOSER = 0.8, 0.2  # begin anew at this share of the first distance if it rises again, and in any case
IDLE = 0.05  # a set that is not chosen is forgotten if its records could pay this share more
LONGEST = 0.36  # of all iterations so far, without beginning anew


@dataclass(frozen=True)
class RecordSets:
    """Sets of records: members[starts[c]:starts[c + 1]] are in set c, each with its share, and have its cost.

    starts: int64[c + 1]. members: int32; shares: float32. cost: float64[c]. The shares of the records of a set add up
    to 1. A penalty is a member with a share below 0: the set may cost so much more.
    """

    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    shares: NDArray[np.float32]
    cost: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def set_of(self) -> NDArray[np.int64]:
        """Return the set of every member."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def chosen(self, which: NDArray[np.bool_]) -> RecordSets:
        sizes = np.diff(self.starts)
        held = np.repeat(which, sizes)
        starts = np.append(0, np.cumsum(sizes[which]))
        return RecordSets(starts, self.members[held], self.shares[held], self.cost[which])

    def with_sets(self, added: RecordSets) -> RecordSets:
        return RecordSets(
            np.concatenate([self.starts, self.starts[-1] + added.starts[1:]]),
            np.concatenate([self.members, added.members]),
            np.concatenate([self.shares, added.shares]),
            np.concatenate([self.cost, added.cost]),
        )


class PriceProgramme:
    """Prices of all records, which rise against the sets added so far.

    weights: int64[n], how many records each of them is; of a penalty, below 0, how often it counts against the sum.
    highest: float64[n], the largest prices; none is below 0. numbers: float64[c], how often each set is chosen, where
    that is known.
    """

    def __init__(
        self,
        weights: NDArray[np.int64],
        start: NDArray[np.float64],
        highest: NDArray[np.float64],
        sets: RecordSets,
        numbers: NDArray[np.float64] | None = None,
    ) -> None:
        self._unit = max(float(sets.cost.mean()), 1.0)
        self._weights, self._highest = weights.astype(np.float64), highest
        self._prices = start / self._unit
        self._numbers = np.zeros(len(sets)) if numbers is None else numbers
        # The prices and the numbers should have about as far to go, by their own measures.
        expected = self._prices if self._prices.any() else np.ones(len(start))
        self._balance = float(np.linalg.norm(expected) / np.linalg.norm(self._weights))
        self._iterations = 0
        self._hold(sets)

    @property
    def sets(self) -> RecordSets:
        return self._sets

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Return how often each set is chosen, counted in records."""
        return self._numbers

    @property
    def prices(self) -> NDArray[np.float64]:
        return self._prices * self._unit

    def add(self, sets: RecordSets) -> None:
        """Add sets, which limit the prices from now on."""
        if len(sets) > 0:
            self._numbers = np.append(self._numbers, np.zeros(len(sets)))
            self._hold(self._sets.with_sets(sets))

    def allow(self, highest: NDArray[np.float64]) -> None:
        """Set the largest price that each record may have."""
        self._highest = highest

    def forget_idle(self) -> None:
        """Forget the sets that limit nothing: they are not chosen, and their records could pay more."""
        sets = self._sets
        paid = np.bincount(sets.set_of, sets.shares * self._prices[sets.members], len(sets)) * self._unit
        kept = (self._numbers > 0) | (paid > (1 - IDLE) * sets.cost)
        self._numbers = self._numbers[kept]
        self._hold(sets.chosen(kept))

    def limit(self, alone: NDArray[np.float64]) -> float:
        """Return a sum that no prices can exceed: what it costs to hold every record once.

        Sets are chosen by their numbers. Where that leaves part of a record, it is added in the set that is cheapest
        for it, or for what it costs ``alone``.
        """
        sets = self._sets
        held = np.bincount(sets.members, sets.shares * self._numbers[sets.set_of], len(self._weights))
        cheapest = alone.copy()
        np.minimum.at(cheapest, sets.members, sets.cost[sets.set_of] / sets.shares)
        lacking = np.maximum(self._weights - held, 0.0)
        return float((sets.cost * self._numbers).sum() + (lacking * cheapest).sum())

    def _hold(self, sets: RecordSets) -> None:
        """Arrange the sets by record too, and find the length of the steps."""
        self._sets = sets
        by_record = np.argsort(sets.members, kind="stable")
        starts = np.searchsorted(sets.members[by_record], np.arange(len(self._weights) + 1))
        self._by_record = (starts, sets.set_of[by_record].astype(np.int32), sets.shares[by_record])
        shares = np.abs(sets.shares)
        held = np.bincount(sets.members, shares, len(self._weights))
        self._price_steps = 1.0 / np.where(held > 0, held, 1.0)
        self._number_steps = 1.0 / np.bincount(sets.set_of, shares, len(sets))
        self._parts_of_prices, self._parts_of_numbers = even_parts(starts), even_parts(sets.starts)

    def optimum(self, steps: int, out_of_time: Callable[[], bool]) -> NDArray[np.float64]:
        """Return prices with as large a sum as so many iterations reach."""
        done = 0
        while done < steps and not out_of_time():
            done += self.raised(steps, out_of_time)[1]
        return self.prices

    def raised(self, most: int, out_of_time: Callable[[], bool]) -> tuple[NDArray[np.float64], int]:
        """Iterate until it is best to begin anew, or often enough; return the prices and the number of iterations."""
        done, first, previous = 0, math.inf, math.inf
        iteration = _Iteration(
            self._prices.copy(),
            self._numbers.copy(),
            self._prices.copy(),
            self._numbers.copy(),
            self._prices,
            self._numbers,
        )
        while True:
            for step in range(done, done + STEPS):
                distance = self._iterate(iteration, step)
            done += STEPS
            self._iterations += STEPS
            first = distance if done == STEPS else first
            is_nearer = distance <= CLOSER * first or (distance <= CLOSE * first and distance > previous)
            if is_nearer or done >= min(most, LONGEST * self._iterations) or out_of_time():
                break
            previous = distance
        moved = float(np.linalg.norm((self._prices - iteration.first_prices) / np.sqrt(self._price_steps)))
        counted = float(np.linalg.norm((self._numbers - iteration.first_numbers) / np.sqrt(self._number_steps)))
        if moved > 0 and counted > 0:
            self._balance = math.sqrt(self._balance * moved / counted)
        return self._prices * self._unit, done

    def _iterate(self, at: _Iteration, step: int) -> float:
        """Iterate once; return how far the prices and the numbers went."""
        balance, unit, sets = self._balance, self._unit, self._sets
        before, after = step / (step + 1.0), (step + 1.0) / (step + 2.0)

        def move_some_prices(part: tuple[int, int]) -> float:
            return float(
                move_prices(
                    *part, *self._by_record, self._weights, self._highest, unit, self._price_steps,
                    balance, before, at.prices, at.first_prices, at.next_prices, at.numbers,
                )
            )  # fmt: skip

        def move_some_numbers(part: tuple[int, int]) -> float:
            return float(
                move_numbers(
                    *part, sets.starts, sets.members, sets.shares, sets.cost, unit, self._number_steps,
                    balance, after, at.numbers, at.first_numbers, at.next_numbers, at.prices, at.next_prices,
                )
            )  # fmt: skip

        apart = in_threads(move_some_prices, self._parts_of_prices)
        apart += in_threads(move_some_numbers, self._parts_of_numbers)
        return math.sqrt(sum(apart))


@dataclass(frozen=True)
class _Iteration:
    """Where the iterations are, where they began, and the results of the last one before it is reflected."""

    prices: NDArray[np.float64]
    numbers: NDArray[np.float64]
    first_prices: NDArray[np.float64]
    first_numbers: NDArray[np.float64]
    next_prices: NDArray[np.float64]
    next_numbers: NDArray[np.float64]


@kernel
def move_prices(
    begin, end, starts, sets, shares, weights, highest, unit, steps, balance, kept, prices, first, moved, chosen
):
    """Reflect the last step of some prices and make the next; return the square of its length.

    moved: where the last step ended, and then this one. kept: how much of the way so far is kept. chosen: the numbers.
    """
    distance = 0.0
    for i in range(begin, end):
        prices[i] = kept * (2.0 * moved[i] - prices[i]) + (1.0 - kept) * first[i]
        slope, step = weights[i], steps[i] * balance
        for at in range(starts[i], starts[i + 1]):
            slope -= shares[at] * chosen[sets[at]]
        moved[i] = min(max(prices[i] + step * slope, 0.0), highest[i] / unit)
        distance += (moved[i] - prices[i]) ** 2 / step
    return distance


@kernel
def move_numbers(
    begin, end, starts, members, shares, cost, unit, steps, balance, kept, numbers, first, moved, prices, moved_prices
):
    """Make the next step of some numbers and reflect it; return the square of its length."""
    distance = 0.0
    for c in range(begin, end):
        excess, step = -cost[c] / unit, steps[c] / balance
        for at in range(starts[c], starts[c + 1]):
            excess += shares[at] * (2.0 * moved_prices[members[at]] - prices[members[at]])
        moved[c] = max(numbers[c] + step * excess, 0.0)
        distance += (moved[c] - numbers[c]) ** 2 / step
        numbers[c] = kept * (2.0 * moved[c] - numbers[c]) + (1.0 - kept) * first[c]
    return distance
