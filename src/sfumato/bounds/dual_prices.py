"""Prices of records that no class can undercut: the bound of the linear programme, by its dual.

The problem is to partition the records into classes S of at least k, at the least sum of |S| times the cost of the box
of S. The dual of its linear relaxation gives every record i a price y_i, subject to

    the sum of y over S <= |S| * cost(B)    for every allowed box B and every S of at least k records in it.

Given such prices, any release costs at least their sum. If the k largest prices in B add up to at most k * cost(B),
then the smallest of these k is at most cost(B), so no further record can break the condition: it is enough to test k
records. If at most a share of S may have the same sensitive value, it is enough to test k records of which as many, at
most, have the same value; each price then belongs to a record with its value, and may be below 0 (docs/bound.md).

To prove prices, records are ranked, the dearer ones later. A price is lowered to the least slack (``box_search``) that
any allowed box leaves for it beside the prices of records of a lower rank, which were lowered before. Any k records in
any box have one of highest rank, and for that record this very box was considered, with any number of its copies; so
all conditions hold, in exact integers. Prices of 0 or less are not lowered: k of them cost nothing. A search that was
cut short returns less than the slack: the prices are then lower than necessary, but valid.

The candidates for prices come from the boxes that were found to be too tight (``box_pool``). At first they climb
(``price_ascent``), and ``TRUST`` keeps them near the proven prices, since the pool holds only the boxes seen so far. A
proof of prices that do not hold takes long and keeps little. So prices that climb are tried out on a part of the
records, another part each time: that finds boxes for the pool, and says what a proof would keep. They climb on while
that is worth more than a proof. Once proofs of climbs gain little, prices go from the proven ones towards the best for
the pool (``price_programme``): about as far as the proofs can keep what is gained.

No prices prove more than the relaxation. Once it is solved, prices are given penalties for triples of records
(``triple_prices``).

Where shares of sensitive values are limited, prices may be far below 0. Then going towards the best for the pool gained
nothing, and prices that were tried out and not proven went astray, so they climb from proof to proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.box_pool import BoxPool, pool_optimum, programme_of
from sfumato.bounds.cheapest_boxes import CheapestBoxes
from sfumato.bounds.price_ascent import climb
from sfumato.bounds.problem import ROUND, BoundProblem
from sfumato.bounds.triple_prices import TripleSearch
from sfumato.kernels.threads import slices
from sfumato.tables.coding.domains import Codes

TRUST = 1.15  # the largest ratio of the prices tried to the proven ones, while they are climbing
FIRST_STRIDE, LAST_STRIDE = 0.1, 0.008
PART = 8  # prices are tried out on one in so many records
# A climb and a trial take about TRIAL of the time of a proof. Prices climb on while the FEW last trials gained more for
# their time than all trials since the last proof, and the next proof, together.
TRIAL, FEW, MOST_TRIALS = 0.2, 3, 40
CLIMBING = 0.02  # prices climb, and do not yet go towards the best for the pool, while proofs gain this share
PROGRAMME_STEPS = 1000  # iterations between two proofs
# Where distinct records times k are at least CROWDED, so many are around a dear record that a first search without the
# cheap ones takes less time. It looks at these as far as the cheapest box costs, and one part in BEYOND farther.
CROWDED, BEYOND = 1 << 21, 4
# How far to go from the proven prices towards those of the pool; not as far if the proof keeps LITTLE of the gain.
FIRST_REACH, FARTHEST, NEARER = 0.4, 0.9, 0.7
LITTLE, MUCH = 0.3, 0.6


@dataclass(frozen=True)
class ProvenPrices:
    """Prices that hold for every allowed box, and the boxes that were too tight for the prices tried."""

    prices: NDArray[np.int64]
    low: Codes
    high: Codes


@dataclass(frozen=True)
class TriedPrices:
    """About what prices would lose in a proof, and boxes that are too tight for them. Nothing is proven."""

    loss: int
    low: Codes
    high: Codes


@dataclass(frozen=True)
class RaisedPrices:
    """The best proven prices so far, and what the sum of any prices that can be proven is at most, as far as known.

    ``given_back``: what they prove less than their sum, if they have penalties (``triple_prices``), else None.
    """

    prices: NDArray[np.int64]
    limit: float = np.inf
    given_back: int | None = None


@dataclass(frozen=True)
class PriceSearch:
    """How prices are raised and proven.

    ``max_parts``: parts of one search. ``steps``: steps of a climb. ``highest``: the largest price allowed.
    ``triples``: penalties for triples follow when no prices can prove more by a share of ``gain``, or ``patience``
    rounds in a row gained less. ``advance`` receives the number of distinct records that were looked at.
    ``seconds_left`` is infinite where no limit is set; when it is below 0, the present round ends with short searches.
    """

    problem: BoundProblem
    max_parts: int
    steps: int
    highest: int
    triples: bool
    gain: float
    patience: int
    advance: Callable[[int], None]
    seconds_left: Callable[[], float]

    def raised(self, cheapest: CheapestBoxes) -> Iterator[RaisedPrices]:
        """Yield better and better proven prices, without end, beginning from the costs of the cheapest boxes."""
        problem = self.problem
        free = (cheapest.least > 0) | problem.limits_shares
        pool = BoxPool.of(problem, cheapest.low[free], cheapest.high[free])
        is_crowded = problem.count * problem.k >= CROWDED
        nearby = cheapest.least + cheapest.least // BEYOND if is_crowded else None
        best, pool = yield from self._climbed(cheapest.least, pool, free, nearby)
        programme = programme_of(problem, pool, best.astype(np.float64), free, self.highest)
        # The cheapest box around a record is a set that has it at least once among k.
        reach, poor_rounds, alone = FIRST_REACH, 0, problem.k * cheapest.cost.astype(np.float64)
        while True:
            programme.allow(np.where(free, np.minimum(problem.stretched(best), self.highest), 0.0))
            optimum = pool_optimum(problem, pool, programme, PROGRAMME_STEPS, self._out_of_time)
            tried = np.floor(best + reach * (optimum - best)).astype(np.int64)
            proven = self._proven(tried, nearby)
            hoped, gained = problem.sum(tried) - problem.sum(best), problem.sum(proven.prices) - problem.sum(best)
            if gained < LITTLE * hoped:
                reach = reach * NEARER
            elif gained > MUCH * hoped:
                reach = min(reach / NEARER, FARTHEST)
            best = proven.prices if gained > 0 else best
            limit, worth_it = programme.limit(alone), self.gain * problem.sum(best)
            yield RaisedPrices(best, limit)
            poor_rounds = poor_rounds + 1 if gained < worth_it else 0
            if self.triples and (limit < problem.sum(best) + worth_it or poor_rounds == self.patience):
                break
            pool = pool.with_boxes(problem, proven.low, proven.high)
        search = TripleSearch(problem, self.highest, free, self.advance, self._out_of_time)
        for raised in search.raised(best, programme):
            yield RaisedPrices(raised.prices, given_back=raised.given_back)

    def _climbed(
        self, best: NDArray[np.int64], pool: BoxPool, free: NDArray[np.bool_], nearby: NDArray[np.int64] | None
    ) -> Generator[RaisedPrices, None, tuple[NDArray[np.int64], BoxPool]]:
        """Yield proven prices: those of one climb, then those that seem to hold; return the last ones and the pool."""
        problem, candidates, climbs, proofs, is_climbing = self.problem, best.astype(np.float64), 0, 0, True
        while is_climbing or problem.limits_shares:
            before = problem.sum(best)
            if not problem.limits_shares:
                candidates = best.astype(np.float64)
            kept = [before]  # the sum that a proof would keep, by the best trial so far
            for trial in range(MOST_TRIALS):
                candidates = climb(
                    problem, pool, candidates, free,
                    stride=max(FIRST_STRIDE / 2**climbs, LAST_STRIDE), steps=self.steps, highest=self.highest,
                    trust=TRUST * kept[-1], out_of_time=self._out_of_time,
                )  # fmt: skip
                tried = np.floor(candidates).astype(np.int64)
                climbs += 1
                if proofs == 0 or problem.limits_shares or trial == MOST_TRIALS - 1:
                    break
                began = time.monotonic()
                found = self._tried_out(tried, nearby, climbs % PART)
                seconds_of_proof = PART * (time.monotonic() - began)
                kept.append(max(kept[-1], problem.sum(tried) - found.loss))
                pool = pool.with_boxes(problem, found.low, found.high)
                if _is_ripe(kept) or self.seconds_left() < seconds_of_proof:
                    break
            proven, proofs = self._proven(tried, nearby), proofs + 1
            gained = problem.sum(proven.prices) - before
            best = proven.prices if gained > 0 else best
            is_climbing = gained > CLIMBING * before
            yield RaisedPrices(best)
            pool = pool.with_boxes(problem, proven.low, proven.high)
        return best, pool

    def _proven(self, candidates: NDArray[np.int64], nearby: NDArray[np.int64] | None) -> ProvenPrices:
        return prove(self.problem, candidates, self.max_parts, self.advance, self._out_of_time, nearby)

    def _tried_out(self, candidates: NDArray[np.int64], nearby: NDArray[np.int64] | None, first: int) -> TriedPrices:
        return try_out(self.problem, candidates, self.max_parts, self.advance, self._out_of_time, nearby, first)

    def _out_of_time(self) -> bool:
        return self.seconds_left() < 0


def _is_ripe(kept: Sequence[int]) -> bool:
    """Return whether it is time for a proof. kept: the sum that was proven last, and what it is after each trial."""
    trials = len(kept) - 1
    if trials < FEW:
        return False
    return (kept[-1] - kept[-1 - FEW]) / (FEW * TRIAL) <= (kept[-1] - kept[0]) / (1 + trials * TRIAL)


def prove(
    problem: BoundProblem,
    candidates: NDArray[np.int64],
    max_parts: int,
    advance: Callable[[int], None],
    out_of_time: Callable[[], bool],
    nearby: NDArray[np.int64] | None = None,
) -> ProvenPrices:
    """Lower the candidate prices until they hold for every allowed box.

    candidates: int64[m], at least 0. nearby: see ``BoundProblem.least_slacks``; the prices are the same.
    """
    return ProvenPrices(*_lowered(problem, candidates, max_parts, advance, out_of_time, nearby, slice(None)))


def try_out(
    problem: BoundProblem,
    candidates: NDArray[np.int64],
    max_parts: int,
    advance: Callable[[int], None],
    out_of_time: Callable[[], bool],
    nearby: NDArray[np.int64] | None,
    first: int,
) -> TriedPrices:
    """Lower the prices of one in ``PART`` records, from the ``first`` on by rank, beside the candidates of the rest."""
    part = slice(first, None, PART)
    prices, low, high = _lowered(problem, candidates, max_parts, advance, out_of_time, nearby, part)
    return TriedPrices(PART * (problem.sum(candidates) - problem.sum(prices)), low, high)


def _lowered(
    problem: BoundProblem,
    candidates: NDArray[np.int64],
    max_parts: int,
    advance: Callable[[int], None],
    out_of_time: Callable[[], bool],
    nearby: NDArray[np.int64] | None,
    part: slice,
) -> tuple[NDArray[np.int64], Codes, Codes]:
    """Lower the prices of a part of the records, by rank; return all prices, and the boxes that were too tight."""
    rank = np.empty(problem.count, np.int64)
    in_order = np.argsort(candidates, kind="stable")
    rank[in_order] = np.arange(problem.count)
    prices, base = candidates.copy(), min(int(candidates.min(initial=0)), 0)
    positive = in_order[candidates[in_order] > 0]
    advance(problem.count - len(positive))
    looked_at = positive[part]
    tight: list[tuple[Codes, Codes]] = []
    for begin, end in slices(len(looked_at), ROUND):
        targets = looked_at[begin:end]
        copies = problem.copies[targets]
        goals = copies * (candidates[targets] - base)
        result = problem.least_slacks(targets, prices, rank, goals, 0 if out_of_time() else max_parts, base, nearby)
        # Records of the same round count each other at the candidate price, which is no lower than the proven one.
        prices[targets] = np.maximum(result.slack // copies, 0) + base
        below = result.box_slack < goals
        tight.append((result.low[below], result.high[below]))
        advance(end - begin)
    none = problem.tree.codes[:0]
    low = np.concatenate([none, *(low for low, _ in tight)])
    high = np.concatenate([none, *(high for _, high in tight)])
    return prices, low, high
