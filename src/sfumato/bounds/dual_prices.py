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

The candidates for prices come from the boxes that were found to be too tight (``box_pool``). ``TRUST`` keeps them near
the proven prices, since the pool holds only the boxes seen so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.box_pool import BoxPool, climb
from sfumato.bounds.cheapest_boxes import CheapestBoxes
from sfumato.bounds.problem import ROUND, BoundProblem
from sfumato.kernels.threads import slices
from sfumato.tables.coding.domains import Codes

TRUST = 1.15  # the largest ratio of the prices tried to the proven ones
FIRST_STRIDE, LAST_STRIDE = 0.1, 0.008


@dataclass(frozen=True)
class ProvenPrices:
    """Prices that hold for every allowed box, and the boxes that were too tight for the prices tried."""

    prices: NDArray[np.int64]
    low: Codes
    high: Codes


def raised_prices(
    problem: BoundProblem,
    cheapest: CheapestBoxes,
    *,
    max_parts: int,
    steps: int,
    highest: int,
    advance: Callable[[int], None],
    out_of_time: Callable[[], bool],
) -> Iterator[NDArray[np.int64]]:
    """Yield better and better proven prices, without end, beginning from the costs of the cheapest boxes.

    ``max_parts``: parts of one search. ``steps``: steps against the pool in each round. ``highest``: the largest price
    allowed. ``advance`` receives the number of distinct records proven in the present round; when ``out_of_time``
    holds, that round ends with short searches.
    """
    free, best = (cheapest.least > 0) | problem.limits_shares, cheapest.least
    pool = BoxPool.of(problem, cheapest.low[free], cheapest.high[free])
    candidates = best.astype(np.float64)
    number = 0
    while True:
        stride = max(FIRST_STRIDE / 2**number, LAST_STRIDE)
        trust = TRUST * problem.sum(best)
        candidates = climb(
            problem,
            pool,
            candidates,
            free,
            stride=stride,
            steps=steps,
            highest=highest,
            trust=trust,
            out_of_time=out_of_time,
        )
        proven = prove(problem, np.floor(candidates).astype(np.int64), max_parts, advance, out_of_time)
        if problem.sum(proven.prices) > problem.sum(best):
            best = proven.prices
        yield best
        pool = pool.with_boxes(problem, proven.low, proven.high)
        number += 1


def prove(
    problem: BoundProblem,
    candidates: NDArray[np.int64],
    max_parts: int,
    advance: Callable[[int], None],
    out_of_time: Callable[[], bool],
) -> ProvenPrices:
    """Lower the candidate prices until they hold for every allowed box. candidates: int64[m], at least 0."""
    rank = np.empty(problem.count, np.int64)
    in_order = np.argsort(candidates, kind="stable")
    rank[in_order] = np.arange(problem.count)
    prices, base = candidates.copy(), min(int(candidates.min(initial=0)), 0)
    positive = in_order[candidates[in_order] > 0]
    advance(problem.count - len(positive))
    tight: list[tuple[Codes, Codes]] = []
    for begin, end in slices(len(positive), ROUND):
        targets = positive[begin:end]
        copies = problem.copies[targets]
        goals = copies * (candidates[targets] - base)
        result = problem.least_slacks(targets, prices, rank, goals, 0 if out_of_time() else max_parts, base)
        # Records of the same round count each other at the candidate price, which is no lower than the proven one.
        prices[targets] = np.maximum(result.slack // copies, 0) + base
        below = result.box_slack < goals
        tight.append((result.low[below], result.high[below]))
        advance(end - begin)
    none = problem.tree.codes[:0]
    return ProvenPrices(
        prices,
        np.concatenate([none, *(low for low, _ in tight)]),
        np.concatenate([none, *(high for _, high in tight)]),
    )
