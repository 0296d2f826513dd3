"""Improvement by annealing: what the search leaves is heated, and cools ever more slowly.

After some rounds of search, every round also anneals the classes of new neighbourhoods (``annealing``). A neighbourhood
whose classes would cost more afterwards stays as it was, so that the loss only falls, as in the search without heat.
If a round gains little, the next one begins somewhat hotter and makes twice as many tries, so that it cools more
slowly. The search settles when even the slowest gains little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.search.annealing import ONE, EqualRows, anneal
from sfumato.methods.search.improvement import FEWEST_CLASSES, LARGE, MOST_RECORDS, Improvement, SearchLimits
from sfumato.progress import Progress
from sfumato.requirements import Requirements

COLD_ROUNDS = 4  # of search, before the first annealing
NEAR = 16  # kinds of rows that a row may go beside
HEAT = 1.6  # what a change may cost at most, times what a record of the two classes costs
HOTTER = 1.12  # times as hot with twice as many tries
FEWEST_TRIES, MOST_TRIES = 50, 1600  # for each record in a round
MOST_TRIES_IN_TIME = 16 * MOST_TRIES  # if the user gives the time
LITTLE = 2500  # a round that gains less than one part in so many gains little


class AnnealedImprovement(Improvement):
    """Classes that are improved by search and annealing."""

    def __init__(self, batch: ClassBatch, records: Records, requirements: Requirements) -> None:
        super().__init__(batch, records, requirements)
        self._tries, self._most_tries = FEWEST_TRIES, MOST_TRIES
        self._heat, self._usual_cost = HEAT, 1

    def improve(self, limits: SearchLimits, progress: Progress) -> str:
        self._most_tries = MOST_TRIES if limits.seconds is None else MOST_TRIES_IN_TIME
        return super().improve(limits, progress)

    def _round(self, number: int, out_of_time: Callable[[], bool], progress: Progress) -> int:
        gained = super()._round(number, out_of_time, progress)
        if number < COLD_ROUNDS:
            return gained
        self._rearrange()
        self._usual_cost = max(self.cost // len(self._rows), 1)
        annealed = self._in_neighbourhoods(self._usual_records, self._annealed, out_of_time, progress)
        if (gained + annealed) * LITTLE < self.cost:
            self._tries, self._heat = self._tries * 2, self._heat * HOTTER
        return gained + annealed

    def _has_settled(self, gains: Sequence[int], total: int) -> bool:
        return self._tries > self._most_tries or total == 0

    def _annealed(self, begin: int, end: int, owner: NDArray[np.int64], state: NDArray[np.uint64]) -> int:
        part, tests = self._part(begin, end)
        kinds, count = EqualRows.of(self._record_of[begin:end]), int(owner[-1]) + 1
        others = len(kinds.starts) - 2
        most = max(2 * MOST_RECORDS, LARGE * FEWEST_CLASSES * self._rules.least)
        if min(count - 1, others) == 0 or len(owner) > most:
            return 0  # one class, equal rows, or large classes: see LARGE
        near, heat = np.empty((others + 1, min(NEAR, others)), np.int64), int(self._heat * ONE)
        return int(
            anneal(part, owner, count, self._rules, tests, kinds, near, self._tries, self._usual_cost, heat, state)
        )
