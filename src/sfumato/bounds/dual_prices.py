"""Prices of records that no class can undercut: the bound of the linear programme.

Partition the records into classes S of at least k, at the least sum of |S| times the cost of the box of S. The dual of
its linear relaxation gives every record i a price y_i and asks that

    the sum of y over S <= |S| * cost(B)    for every allowed box B and every S of at least k records in it.

For such prices any release costs at least their sum. If the k largest prices in B add up to at most k * cost(B), then
the smallest of these k is at most cost(B), so no further record can break the condition: k records are enough to look
at.

To prove prices, records are ranked, dearer ones later. A price is lowered to the least room (``search``) that any
allowed box leaves for it beside the prices of records of a lower rank, lowered already. Any k records in any box have
one of highest rank, and for that one exactly this box was looked at; so all conditions hold, in whole numbers. What a
search that was cut short gives instead is less than the room: the prices are then lower than need be, and still hold.

Which prices to prove comes from the boxes that were found to be too tight (``pool``). ``TRUST`` keeps them near to what
was proven, since the pool knows only what was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.box_pool import Pool, climb
from sfumato.bounds.cheapest_boxes import Cheapest
from sfumato.bounds.problem import ROUND, BoundProblem
from sfumato.kernels.threads import slices
from sfumato.tables.coding.domains import Codes

TRUST = 1.15  # how far beyond what is proven prices are tried, as a ratio
FIRST_STRIDE, LAST_STRIDE = 0.1, 0.008


@dataclass(frozen=True)
class Proven:
    """Prices that hold for every allowed box, and boxes that were too tight for those that were tried."""

    prices: NDArray[np.int64]
    low: Codes
    high: Codes


def raised_prices(
    ground: BoundProblem,
    cheapest: Cheapest,
    *,
    most: int,
    steps: int,
    highest: int,
    done: Callable[[int], None],
    over: Callable[[], bool],
) -> Iterator[NDArray[np.int64]]:
    """Better and better proven prices, without end. The first to be bettered are the costs of the cheapest boxes.

    ``most``: parts of a search. ``steps``: those against the pool, in each round. ``highest``: the largest price that
    is allowed. ``done`` is told of how many distinct records are proven in the present round; when it is ``over``, that
    round is finished with short searches.
    """
    free, best = cheapest.least > 0, cheapest.least
    pool = Pool.of(ground, cheapest.low[free], cheapest.high[free])
    hoped = best.astype(np.float64)
    number = 0
    while True:
        stride = max(FIRST_STRIDE / 2**number, LAST_STRIDE)
        trust = TRUST * ground.sum(best)
        hoped = climb(ground, pool, hoped, free, stride=stride, steps=steps, highest=highest, trust=trust, over=over)
        found = prove(ground, np.floor(hoped).astype(np.int64), most, done, over)
        if ground.sum(found.prices) > ground.sum(best):
            best = found.prices
        yield best
        pool = pool.with_boxes(ground, found.low, found.high)
        number += 1


def prove(
    ground: BoundProblem, hoped: NDArray[np.int64], most: int, done: Callable[[int], None], over: Callable[[], bool]
) -> Proven:
    """The prices hoped for, lowered until they hold for every allowed box. hoped: int64[m], at least 0."""
    rank = np.empty(ground.count, np.int64)
    in_order = np.argsort(hoped, kind="stable")
    rank[in_order] = np.arange(ground.count)
    prices = hoped.copy()
    asked = in_order[hoped[in_order] > 0]
    done(ground.count - len(asked))
    tight: list[tuple[Codes, Codes]] = []
    for begin, end in slices(len(asked), ROUND):
        here = asked[begin:end]
        copies = np.minimum(ground.tree.weights[here], ground.k)
        goals = copies * hoped[here]
        found = ground.rooms(here, prices, rank, goals, 0 if over() else most)
        # Those of the same round saw each other at the price hoped for, which is no lower.
        prices[here] = np.maximum(found.room // copies, 0)
        below = found.box_room < goals
        tight.append((found.low[below], found.high[below]))
        done(end - begin)
    none = ground.tree.codes[:0]
    return Proven(
        prices,
        np.concatenate([none, *(low for low, _ in tight)]),
        np.concatenate([none, *(high for _, high in tight)]),
    )
