"""A proven lower bound on the sum of squares of every partition into classes of at least k records.

A class C of s records has SSE(C) = (the sum of the squared distances of all its pairs) / s. A class of 2k or more
divides into two that cost no more together, so only s from k to 2k - 1 matter. Prices y of the records whose sum in
every such C is at most SSE(C) sum to a bound: each record is in one class. In whole numbers,

    s * (the sum of y over C)  <=  the sum of the squared distances of all pairs in C        (1)

*Neighbours.* Each record of C has at least half of the squared distances to its k - 1 nearest others in it, so half of
their sum, divided by k, is a price. It is the least over all s: one more neighbour is farther than the mean of the
others.

*Prices.* Rank the records, dearer ones later, and lower the price of each to the least slack that any C leaves it among
records of a lower rank. Any C has a record of highest rank. When that one was lowered, C was considered, and the other
prices have not changed since. So (1) holds. The slack is found by branch and bound (``pair_sum_search``). A search
that takes too long returns the bound of what is left, which is at most the slack, and the price is still proven.

Which prices are tried does not matter for the proof. They climb along subgradients (``priced_sets``) against sets of
records that were found to be tight.

Points are rounded to units of 1 / scale, at most half a unit on each column. The root of SSE is a distance, so it
changes by at most half the root of (records times columns); that much is subtracted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.bound import BoundEffort
from sfumato.bounds.pair_sum_search import lower_prices, neighbour_distances, pair_distances
from sfumato.bounds.priced_sets import PricedSets, climb_prices
from sfumato.kernels.constants import NONE
from sfumato.kernels.threads import in_threads, slices
from sfumato.losses.squared_errors import StandardPoints, standard_points
from sfumato.methods.method import FAST, Records
from sfumato.methods.search.squared_error_moves import nearest_rows
from sfumato.methods.search.squared_error_search import SquaredErrorSearch
from sfumato.progress import Progress
from sfumato.requirements import KAnonymity, Requirements

LARGEST = 3000  # records that have prices; a larger table has the bound of neighbours alone
ROUNDING = 0.51  # units of a point on each column: one half, and the rounding of floats
PARTS_AT_ONCE = 20  # times the parts of one search, for each record: what all searches of a round may take
STRIDE = 0.02  # the gain that the first step of a climb aims at, as a share of the sum
CHUNK = 256  # records whose prices are lowered, or whose neighbours are found, before progress is reported


@dataclass(frozen=True)
class SquaredErrorBound:
    """A lower bound on IL = 100 SSE / SST of any release of a table.

    ``il`` is the bound, ``simple`` that of neighbours alone. ``kind``: neighbours or prices. ``complete``: the search
    came to its end. ``release_il`` is the IL of a release to compare with, ``release_holds`` whether it meets the
    policy: None if it does not show that.
    """

    il: float
    simple: float
    kind: str
    complete: bool
    records: int
    k: int
    rounds: int = 0
    release_il: float | None = None
    release_holds: bool | None = None

    @property
    def release_ratio(self) -> float | None:
        """Return how many times the best possible IL that of the release is at most; None if nothing can be said."""
        if self.release_il is None or self.release_holds is False:
            return None
        if self.release_il <= self.il:
            return 1.0
        return self.release_il / self.il if self.il > 0 else math.inf

    @property
    def method(self) -> str:
        """Return how the bound was proven, in words."""
        if self.kind == "neighbours":
            return f"the squared distances of every record to its {self.k - 1:,} nearest neighbours"
        rounds = f"{self.rounds:,} round{'' if self.rounds == 1 else 's'}"
        sizes = f"{self.k:,} to {2 * self.k - 1:,}"
        return f"prices of records that no class of {sizes} records can undercut, raised in {rounds}"


def squared_error_bounds(
    records: Records, requirements: Requirements, *, effort: BoundEffort, seconds: float | None, progress: Progress
) -> Iterator[SquaredErrorBound]:
    """Yield bounds as they are proven, each at least as high as the one before."""
    until = math.inf if seconds is None else time.monotonic() + seconds
    k, copies = requirements.least_class, np.diff(records.starts)
    standard = standard_points(records.codes, copies, records.domains, records.costs.shares, 2 * k)
    points = np.repeat(standard.points, copies, axis=0)
    count, widest = len(points), min(2 * k - 1, len(points))
    with progress.phase("neighbours", count):
        half = _half_sums(points, widest, progress)
    prices = half[:, min(k, widest) - 1] // k
    simple = _proven(standard, prices)
    searched = count <= LARGEST and count >= 2 * k > 2 and effort.rounds > 0 and bool(prices.any())
    bound = SquaredErrorBound(simple, simple, "neighbours", not searched, count, k)
    yield bound
    if not searched:
        return
    distances = np.empty((count, count), np.int64)
    pair_distances(points, distances)
    sets = PricedSets.of(points, _first_sets(records, points, k, progress))
    candidate, stride, poor_rounds = prices.astype(np.float64), STRIDE, 0
    for number in range(1, effort.rounds + 1):
        with progress.phase("prices", count):
            candidate = climb_prices(sets, candidate, stride, effort.steps, lambda: time.monotonic() > until)
            prices = np.floor(candidate).astype(np.int64)
            order = np.argsort(prices, kind="stable")
            tight = np.empty((count * k, 2 * k - 1), np.int64)
            state = np.array([0, PARTS_AT_ONCE * effort.parts * count // k**2], np.int64)
            for first, last in slices(count, CHUNK):
                if time.monotonic() > until:
                    return
                lower_prices(first, last, order, k, distances, half, prices, effort.parts, tight, state)
                progress.advance(last - first)
        il = max(bound.il, _proven(standard, prices))
        poor_rounds = poor_rounds + 1 if il < bound.il * (1 + effort.gain) else 0
        last_round = number == effort.rounds or poor_rounds == effort.patience or state[0] == 0
        kind = "prices" if il > simple else "neighbours"
        bound = SquaredErrorBound(il, simple, kind, bool(last_round and state[1] > 0), count, k, number)
        yield bound
        if last_round:
            return
        sets = sets.with_sets(points, tight[: int(state[0])])


def _half_sums(points: NDArray[np.int64], widest: int, progress: Progress) -> NDArray[np.int64]:
    """Return half of the sum of the m shortest squared distances of each point, for m = 0, 1, ...: int64[n, widest]."""
    nearest = np.zeros((len(points), widest - 1), np.int64)

    def find(part: tuple[int, int]) -> None:
        neighbour_distances(points, part[0], nearest[slice(*part)])
        progress.advance(part[1] - part[0])

    if widest > 1:
        in_threads(find, slices(len(points), CHUNK))
    return np.concatenate([np.zeros((len(points), 1), np.int64), np.cumsum(nearest, axis=1) // 2], axis=1)


def _first_sets(records: Records, points: NDArray[np.int64], k: int, progress: Progress) -> NDArray[np.int64]:
    """Return sets that are likely to be tight: each record with its nearest, and the classes of a short search."""
    count, widest = len(points), 2 * k - 1
    near = np.empty((count, min(widest - 1, count - 1)), np.int64)
    nearest_rows(points, near)
    around = np.concatenate([np.arange(count)[:, None], near], axis=1)
    sets = []
    for size in range(k, around.shape[1] + 1):
        members = np.full((count, widest), NONE, np.int64)
        members[:, :size] = around[:, :size]
        sets.append(members)
    alone = Requirements((KAnonymity(k),))
    position = np.empty(int(records.rows.max()) + 1, np.int64)
    position[records.rows] = np.arange(count)
    for batch in SquaredErrorSearch().classes(replace(records, effort=FAST), alone, progress):
        sizes = np.diff(batch.starts)
        members = np.full((len(sizes), widest), NONE, np.int64)
        places = np.arange(len(batch.rows)) - np.repeat(batch.starts[:-1], sizes)
        members[np.repeat(np.arange(len(sizes)), sizes), places] = position[batch.rows]
        sets.append(members)
    return np.concatenate(sets)


def _proven(standard: StandardPoints, prices: NDArray[np.int64]) -> float:
    """Return the IL that prices prove, with what the rounding of the points could change subtracted."""
    root = math.sqrt(max(int(prices.sum()), 0))
    rounded = ROUNDING * math.sqrt(standard.points.shape[1] * standard.count)
    return 100 * standard.information_loss(max(root - rounded, 0.0) ** 2) * (1 - 1e-12)
