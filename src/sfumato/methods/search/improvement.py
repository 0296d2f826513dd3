"""Better classes from given ones: rounds of local search and of rebuilding, each in other neighbourhoods.

In every round the classes are brought into a new order by a gain tree of one record of each, with attributes weighted
at random; classes that stand together there are a neighbourhood of some dozens, in which records change
classes (``local_search``) and small groups of classes are formed anew (``rebuilding``). Neighbourhoods share no class,
so that threads work on them side by side, and whichever finishes first, the result is the same.

With requirements on sensitive values every other round looks for ``chains`` instead, in neighbourhoods of thousands of
records: what a record lacks there may be far away.

After every neighbourhood what there is meets the requirements and has at most the loss of before. So it can end at any
moment: with the rounds of its effort, when the seconds are over, or when it is interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads
from sfumato.losses.exact_costs import CLIMB, Costs, total_cost
from sfumato.methods.class_counting import Counting
from sfumato.methods.clustering.near_rows import near_rows
from sfumato.methods.line.optimal_cut import boxes_of
from sfumato.methods.merge_failing import join_failing
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.search.exchange_chains import chain_search
from sfumato.methods.search.mutable_classes import Asked, SearchPart
from sfumato.methods.search.repair import repair
from sfumato.methods.search.ruin_and_recreate import rebuild
from sfumato.methods.search.shortfall import tally_for
from sfumato.methods.trees.gain_tree import gain_order
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import CategoricalDomain

# A neighbourhood has so many classes, but not fewer records, and not more but for a few classes.
CLASSES, FEWEST_CLASSES = 48, 20
FEWEST_RECORDS, MOST_RECORDS = 250, 1500
NEAR = 4  # classes that are rebuilt together
PASSES = 4
CHAINED_RECORDS = 8192  # a neighbourhood in which chains are looked for
TREES = 2  # by which rows near to each other are found
CHAIN_PASSES = 8
LIGHTEST, HEAVIEST = 0.3, 3.0  # weights of attributes
PATIENCE, SETTLED = 5, 20_000  # so many rounds that gain less than one part in so many together are the last
SMALL, MOST_TIMES = 20_000, 16  # records; with fewer a round tries less, so there are up to so many times more of them


@dataclass(frozen=True)
class SearchLimits:
    """When to stop: after so many rounds, or so many seconds."""

    rounds: int
    seconds: float | None = None


def times_more(records: int) -> int:
    """How many times more rounds a small table takes than a large one."""
    return min(max(SMALL // records, 1), MOST_TIMES)


class Improvement:
    """Classes that become better. Rows of a class stand together: class i has rows[starts[i]:starts[i + 1]]."""

    def __init__(self, batch: ClassBatch, records: Records, requirements: Requirements) -> None:
        self._records, self._requirements = records, requirements
        self._rows, self._starts = batch.rows, batch.starts
        record_of_row = np.empty(int(records.rows.max(initial=0)) + 1, np.uint32)
        record_of_row[records.rows] = np.repeat(np.arange(len(records.codes), dtype=np.uint32), np.diff(records.starts))
        self._at = record_of_row[batch.rows]
        self._columns = [records.sensitive[name].codes for name in requirements.attributes]
        self._tests = Counting(records, requirements).conjunction()
        self._asked = Asked(records.costs.layout, records.costs.units, requirements.least_class)
        self._categorical = np.array([isinstance(domain, CategoricalDomain) for domain in records.domains])
        self._random = np.random.PCG64(records.seed or 0)

    @property
    def batch(self) -> ClassBatch:
        """The classes as they are now."""
        low, high = boxes_of(self._records.codes, self._at, self._starts)
        return ClassBatch(self._rows, self._starts, low, high)

    def improve(self, limits: SearchLimits, progress: Progress) -> str:
        """Improve until a limit is reached: why it ended."""
        deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
        patience = PATIENCE * times_more(self._records.count)
        total, gains = self.cost, [0] * patience
        for number in range(limits.rounds):
            gained = self._round(number, lambda: deadline is not None and time.monotonic() > deadline, progress)
            if progress.stopped:
                return f"interrupted in round {number + 1:,}"
            if deadline is not None and time.monotonic() > deadline:
                return f"the time was over in round {number + 1:,}"
            total, gains = total - gained, [*gains[1:], gained]
            if number + 1 >= patience and sum(gains) * SETTLED <= total:
                return f"settled after {number + 1:,} rounds"
        return f"{limits.rounds:,} rounds"

    def _round(self, number: int, over: Callable[[], bool], progress: Progress) -> int:
        self._rearrange()
        average = int(self._starts[-1]) / (len(self._starts) - 1)
        if self._columns and number % 2 == 0:
            return self._in_neighbourhoods(CHAINED_RECORDS, self._chained, over, progress)
        most = max(MOST_RECORDS, int(FEWEST_CLASSES * average))
        size = min(max(int(CLASSES * average), FEWEST_RECORDS), most)
        return self._in_neighbourhoods(size, self._rebuilt, over, progress)

    def _in_neighbourhoods(
        self,
        size: int,
        better: Callable[[int, int, NDArray[np.int64], NDArray[np.uint64]], int],
        over: Callable[[], bool],
        progress: Progress,
    ) -> int:
        """Improve the classes in neighbourhoods of about so many records, side by side."""
        starts = self._starts
        marks = np.searchsorted(starts, np.arange(size, starts[-1] - size // 2, size))
        edges = np.unique(np.concatenate([[0], marks, [len(starts) - 1]]))
        seeds = self._random.random_raw(len(edges)) | np.uint64(1)

        def work(place: int) -> tuple[int, NDArray[np.int64]]:
            first, last = int(edges[place]), int(edges[place + 1])
            owner = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
            if progress.stopped or over():
                return 0, owner
            gained = better(int(starts[first]), int(starts[last]), owner, seeds[place : place + 1].copy())
            progress.advance(len(owner))
            return gained, owner

        found = in_threads(work, range(len(edges) - 1))
        offset = np.repeat(starts[edges[:-1]], np.diff(starts[edges]))
        label = np.concatenate([owner for _, owner in found]) + offset
        order = np.argsort(label, kind="stable")
        self._rows, self._at = self._rows[order], self._at[order]
        in_order = label[order]
        self._starts = np.concatenate([[0], np.flatnonzero(np.diff(in_order)) + 1, [len(order)]])
        return sum(gained for gained, _ in found)

    def _part(self, begin: int, end: int) -> SearchPart:
        values = np.empty((end - begin, len(self._columns)), np.uint32)
        for place, column in enumerate(self._columns):
            values[:, place] = column[self._rows[begin:end]]
        return SearchPart(np.take(self._records.codes, self._at[begin:end], axis=0).astype(np.int64), values)

    def repair(self, progress: Progress) -> None:
        """Begin with classes that do not all meet the requirements: exchange records, join what fails even then."""
        self._rearrange()
        self._in_neighbourhoods(CHAINED_RECORDS, self._repaired, lambda: False, progress)
        self._rearrange()
        batch = join_failing(self.batch, self._records, self._requirements, lambda low, _: np.arange(len(low)))
        self._starts = batch.starts

    def _chained(self, begin: int, end: int, owner: NDArray[np.int64], state: NDArray[np.uint64]) -> int:
        part, near = self._part(begin, end), self._near(begin, end, state)
        tally = tally_for(end - begin, self._tests)
        return int(chain_search(part, owner, near, self._asked, tally, CHAIN_PASSES))

    def _repaired(self, begin: int, end: int, owner: NDArray[np.int64], state: NDArray[np.uint64]) -> int:
        part, near = self._part(begin, end), self._near(begin, end, state)
        return -int(repair(part, owner, near, self._asked, tally_for(end - begin, self._tests)))

    def _near(self, begin: int, end: int, state: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Near rows of some rows, by trees with weights that are drawn anew."""
        codes = np.take(self._records.codes, self._at[begin:end], axis=0)
        random, once = np.random.PCG64(int(state[0])), np.ones(len(codes), np.int64)
        orders = [gain_order(codes, once, self._categorical, self._reweighted(random), 2) for _ in range(TREES)]
        return near_rows(self._part(begin, end), orders, int(self._tests.distinct.max()), self._asked)

    def _rebuilt(self, begin: int, end: int, owner: NDArray[np.int64], state: NDArray[np.uint64]) -> int:
        part = self._part(begin, end)
        count, tally = int(owner[-1]) + 1, tally_for(end - begin, self._tests)
        return int(rebuild(part, owner, count, self._asked, tally, PASSES, count, NEAR, PASSES // 2, state))

    def _rearrange(self) -> None:
        """Bring classes into a new order in which near ones stand together."""
        records, starts = self._records, self._starts
        sizes = np.diff(starts)
        chosen = starts[:-1] + (drawn(self._random, len(sizes)) * sizes).astype(np.int64)
        codes = np.take(records.codes, self._at[chosen], axis=0)
        costs, once = self._reweighted(self._random), np.ones(len(codes), np.int64)
        order = gain_order(codes, once, self._categorical, costs, 2)
        self._starts = np.append(0, np.cumsum(sizes[order]))
        places = np.arange(self._starts[-1]) + np.repeat(starts[:-1][order] - self._starts[:-1], sizes[order])
        self._rows, self._at = self._rows[places], self._at[places]

    def _reweighted(self, random: np.random.PCG64) -> Costs:
        weights = LIGHTEST + (HEAVIEST - LIGHTEST) * drawn(random, len(self._records.domains))
        return reweighted(self._records.costs, weights)

    @property
    def cost(self) -> int:
        """What all records pay."""
        low, high = boxes_of(self._records.codes, self._at, self._starts)
        return total_cost(self._starts, low, high, self._asked.layout, self._asked.units)


def drawn(random: np.random.PCG64, count: int) -> NDArray[np.float64]:
    """Numbers from 0 to below 1, the same in every version of NumPy, as its raw ones are."""
    return (random.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def reweighted(costs: Costs, weights: NDArray[np.float64]) -> Costs:
    """The same costs with other weights of the attributes."""
    layout, units = costs.layout.copy(), costs.units.copy()
    ends: list[Any] = [*layout[1:, 1], len(units)]
    for q, (begin, end, weight) in enumerate(zip(layout[:, 1], ends, weights, strict=True)):
        # Beside the costs of a climb stand the codes up to which they hold.
        some = slice(begin + 1, end, 2) if layout[q, 0] == CLIMB else slice(begin, end)
        units[some] = (units[some] * weight).astype(np.int64)
        layout[q, 3] = int(layout[q, 3] * weight)
    return Costs(layout, units)
