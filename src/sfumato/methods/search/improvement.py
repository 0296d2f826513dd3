"""Improvement of given classes: rounds of local search and of rebuilding, in changing neighbourhoods.

In every round the classes are ordered by a gain tree of one record of each, with random weights of the attributes.
Classes that are close in this order form a neighbourhood of some dozens, in which records change classes
(``local_search``) and small groups of classes are rebuilt (``ruin_and_recreate``). Neighbourhoods share no class, so
threads work on them side by side, and the result does not depend on which finishes first.

With requirements on sensitive values every other round searches for exchange chains instead (``exchange_chains``), in
neighbourhoods of thousands of records: the record that a class needs may be far away.

After every neighbourhood the classes meet the requirements and have at most the previous loss. So the search can end at
any moment: after the rounds of its effort, when its time is up, or when it is interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads
from sfumato.losses.exact_costs import CLIMB, Costs, total_cost
from sfumato.methods.class_counting import Counting
from sfumato.methods.clustering.agglomeration import cluster_space
from sfumato.methods.clustering.near_rows import near_rows
from sfumato.methods.line.optimal_cut import boxes_of
from sfumato.methods.merge_failing import join_failing
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.search.exchange_chains import chain_search
from sfumato.methods.search.mutable_classes import SearchPart, SearchRules
from sfumato.methods.search.repair import repair
from sfumato.methods.search.ruin_and_recreate import rebuild
from sfumato.methods.search.shortfall import ShortfallTests, part_tests
from sfumato.methods.trees.gain_tree import gain_order
from sfumato.progress import Progress
from sfumato.requirements import Requirements

# A neighbourhood has CLASSES classes, within the limits of records; FEWEST_CLASSES takes precedence over MOST_RECORDS.
CLASSES, FEWEST_CLASSES = 48, 20
FEWEST_RECORDS, MOST_RECORDS = 250, 1500
NEAR = 4  # classes that are rebuilt together
# A class is large where one column is * whatever the class. Nothing is to be gained there, and the work grows with the
# square of its records: no more are rebuilt at once than MOST_REBUILT, or LARGE times the least that the classes need.
MOST_REBUILT, LARGE = 1000, 8
PASSES = 4
CHAINED_RECORDS = 8192  # records of a neighbourhood that is searched for chains
TREES = 2  # that near rows are found by
CHAIN_PASSES = 8
LIGHTEST, HEAVIEST = 0.3, 3.0  # weights of attributes
PATIENCE, SETTLED = 5, 20_000  # the search ends after PATIENCE rounds that gain less than 1 / SETTLED together
SMALL, MOST_TIMES = 20_000, 16  # below SMALL records a round tries less, so there are up to MOST_TIMES times as many


@dataclass(frozen=True)
class SearchLimits:
    """When to stop: after a number of rounds or of seconds, and in a round for chains after a number of passes."""

    rounds: int
    seconds: float | None = None
    chain_passes: int = CHAIN_PASSES


def times_more(records: int) -> int:
    """Return how many times as many rounds a small table takes as a large one."""
    return min(max(SMALL // records, 1), MOST_TIMES)


class Improvement:
    """Classes that are improved step by step. Class i has rows[starts[i]:starts[i + 1]]."""

    def __init__(self, batch: ClassBatch, records: Records, requirements: Requirements) -> None:
        self._records, self._requirements = records, requirements
        self._rows, self._starts = batch.rows, batch.starts
        record_of_row = np.empty(int(records.rows.max(initial=0)) + 1, np.uint32)
        record_of_row[records.rows] = np.repeat(np.arange(len(records.codes), dtype=np.uint32), np.diff(records.starts))
        self._record_of = record_of_row[batch.rows]
        self._columns = [records.sensitive[name].codes for name in requirements.attributes]
        self._tests = Counting(records, requirements).conjunction()
        self._rules = SearchRules(records.costs.layout, records.costs.units, requirements.least_class)
        self._categorical = np.array([domain.tree is not None for domain in records.domains])
        self._random = np.random.PCG64(records.seed or 0)
        self._chain_passes = CHAIN_PASSES

    @property
    def batch(self) -> ClassBatch:
        """Return the present classes."""
        low, high = boxes_of(self._records.codes, self._record_of, self._starts)
        return ClassBatch(self._rows, self._starts, low, high)

    def improve(self, limits: SearchLimits, progress: Progress) -> str:
        """Improve the classes until a limit is reached; return why the search ended."""
        self._chain_passes = limits.chain_passes
        deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
        total, gains = self.cost, list[int]()
        for number in range(limits.rounds):
            gained = self._round(number, lambda: deadline is not None and time.monotonic() > deadline, progress)
            if progress.stopped:
                return f"interrupted in round {number + 1:,}"
            if deadline is not None and time.monotonic() > deadline:
                return f"the time was over in round {number + 1:,}"
            total, gains = total - gained, [*gains, gained]
            if self._has_settled(gains, total):
                return f"settled after {number + 1:,} rounds"
        return f"{limits.rounds:,} rounds"

    def _has_settled(self, gains: Sequence[int], total: int) -> bool:
        """Return whether the search has come to its end. gains: those of the rounds so far; total: what is left."""
        patience = PATIENCE * times_more(self._records.count)
        return len(gains) >= patience and sum(gains[-patience:]) * SETTLED <= total

    def _round(self, number: int, out_of_time: Callable[[], bool], progress: Progress) -> int:
        self._rearrange()
        if self._columns and number % 2 == 0:
            return self._in_neighbourhoods(CHAINED_RECORDS, self._chained, out_of_time, progress)
        return self._in_neighbourhoods(self._usual_records, self._rebuilt, out_of_time, progress)

    @property
    def _usual_records(self) -> int:
        """Return how many records a neighbourhood of some dozens of classes has."""
        average = int(self._starts[-1]) / (len(self._starts) - 1)
        most = max(MOST_RECORDS, int(FEWEST_CLASSES * average))
        return min(max(int(CLASSES * average), FEWEST_RECORDS), most)

    def _in_neighbourhoods(
        self,
        size: int,
        improve_part: Callable[[int, int, NDArray[np.int64], NDArray[np.uint64]], int],
        out_of_time: Callable[[], bool],
        progress: Progress,
    ) -> int:
        """Improve the classes in neighbourhoods of about ``size`` records, side by side; return the gain."""
        starts = self._starts
        marks = np.searchsorted(starts, np.arange(size, starts[-1] - size // 2, size))
        edges = np.unique(np.concatenate([[0], marks, [len(starts) - 1]]))
        seeds = self._random.random_raw(len(edges)) | np.uint64(1)

        def work(number: int) -> tuple[int, NDArray[np.int64]]:
            first, last = int(edges[number]), int(edges[number + 1])
            owner = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
            if progress.stopped or out_of_time():
                return 0, owner
            gained = improve_part(int(starts[first]), int(starts[last]), owner, seeds[number : number + 1].copy())
            progress.advance(len(owner))
            return gained, owner

        results = in_threads(work, range(len(edges) - 1))
        offset = np.repeat(starts[edges[:-1]], np.diff(starts[edges]))
        class_of_row = np.concatenate([owner for _, owner in results]) + offset
        order = np.argsort(class_of_row, kind="stable")
        self._rows, self._record_of = self._rows[order], self._record_of[order]
        in_order = class_of_row[order]
        self._starts = np.concatenate([[0], np.flatnonzero(np.diff(in_order)) + 1, [len(order)]])
        return sum(gained for gained, _ in results)

    def _part(self, begin: int, end: int) -> tuple[SearchPart, ShortfallTests]:
        values = np.empty((end - begin, len(self._columns)), np.uint32)
        for i, column in enumerate(self._columns):
            values[:, i] = column[self._rows[begin:end]]
        values, tests = part_tests(values, self._tests)
        codes = np.take(self._records.codes, self._record_of[begin:end], axis=0).astype(np.int64)
        return SearchPart(codes, values), tests

    def repair(self, progress: Progress) -> None:
        """Repair classes that fail the requirements: exchange records, then merge the classes that still fail."""
        self._rearrange()
        self._in_neighbourhoods(CHAINED_RECORDS, self._repaired, lambda: False, progress)
        self._rearrange()
        batch = join_failing(self.batch, self._records, self._requirements, lambda low, _: np.arange(len(low)))
        self._starts = batch.starts

    def _chained(self, begin: int, end: int, owner: NDArray[np.int64], state: NDArray[np.uint64]) -> int:
        part, tests = self._part(begin, end)
        near, count = self._near(part, begin, end, state), int(owner[-1]) + 1
        return int(chain_search(part, owner, count, self._rules, tests, near, self._chain_passes))

    def _repaired(self, begin: int, end: int, owner: NDArray[np.int64], state: NDArray[np.uint64]) -> int:
        part, tests = self._part(begin, end)
        near, count = self._near(part, begin, end, state), int(owner[-1]) + 1
        return -int(repair(part, owner, count, self._rules, tests, near))

    def _near(self, part: SearchPart, begin: int, end: int, state: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the near rows of some rows, found by trees with newly drawn weights."""
        codes = np.take(self._records.codes, self._record_of[begin:end], axis=0)
        random, once = np.random.PCG64(int(state[0])), np.ones(len(codes), np.int64)
        orders = [gain_order(codes, once, self._categorical, self._reweighted(random), 2) for _ in range(TREES)]
        return near_rows(part, orders, int(self._tests.distinct.max()), self._rules)

    def _rebuilt(self, begin: int, end: int, owner: NDArray[np.int64], state: NDArray[np.uint64]) -> int:
        part, tests = self._part(begin, end)
        count = int(owner[-1]) + 1
        most = max(MOST_REBUILT, LARGE * NEAR * self._rules.least)
        clusters = cluster_space(min(len(owner), most), part.codes.shape[1])
        limits = PASSES, count, NEAR, most, PASSES // 2
        return int(rebuild(part, owner, count, self._rules, tests, clusters, *limits, state))

    def _rearrange(self) -> None:
        """Order the classes anew, so that near classes are together."""
        records, starts = self._records, self._starts
        sizes = np.diff(starts)
        chosen = starts[:-1] + (uniform_draws(self._random, len(sizes)) * sizes).astype(np.int64)
        codes = np.take(records.codes, self._record_of[chosen], axis=0)
        costs, once = self._reweighted(self._random), np.ones(len(codes), np.int64)
        order = gain_order(codes, once, self._categorical, costs, 2)
        self._starts = np.append(0, np.cumsum(sizes[order]))
        positions = np.arange(self._starts[-1]) + np.repeat(starts[:-1][order] - self._starts[:-1], sizes[order])
        self._rows, self._record_of = self._rows[positions], self._record_of[positions]

    def _reweighted(self, random: np.random.PCG64) -> Costs:
        weights = LIGHTEST + (HEAVIEST - LIGHTEST) * uniform_draws(random, len(self._records.domains))
        return reweighted(self._records.costs, weights)

    @property
    def cost(self) -> int:
        """Return the cost of all records."""
        low, high = boxes_of(self._records.codes, self._record_of, self._starts)
        return total_cost(self._starts, low, high, self._rules.layout, self._rules.units)


def uniform_draws(random: np.random.PCG64, count: int) -> NDArray[np.float64]:
    """Draw numbers in [0, 1), which like raw numbers are the same in every version of NumPy."""
    return (random.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def reweighted(costs: Costs, weights: NDArray[np.float64]) -> Costs:
    """Return the costs with the weights of the attributes multiplied by ``weights``."""
    layout, units = costs.layout.copy(), costs.units.copy()
    ends: list[Any] = [*layout[1:, 1], len(units)]
    for q, (begin, end, weight) in enumerate(zip(layout[:, 1], ends, weights, strict=True)):
        # In the form CLIMB, costs alternate with the codes up to which they hold.
        entries = slice(begin + 1, end, 2) if layout[q, 0] == CLIMB else slice(begin, end)
        units[entries] = (units[entries] * weight).astype(np.int64)
        layout[q, 3] = int(layout[q, 3] * weight)
    return Costs(layout, units, costs.shares * weights)
