"""A proven lower bound on the loss: from neighbours, cheapest boxes, prices, and triples, each no lower.

Costs are integers, rounded once from weight times NCP (``losses.exact_costs``). On each attribute the cost of a box
differs by less than ``ROUNDING`` units from the exact one, so that much is subtracted for every record: the bound holds
for the loss as it is measured.

Where records may be suppressed, each of them pays what a suppressed record counts instead of its price: 1 in GCP, the
``suppression_cost`` of the policy in ``cost``. A release chooses which, so the bound gives it those of the dearest, as
many as the policy allows, that gain by this. Prices above what a suppressed record counts are of use only for records
that the limit forces to stay; they are capped there unless the cheapest boxes alone show that there are such records.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.cheapest_boxes import nearest_boxes, search_cheapest
from sfumato.bounds.dual_prices import PriceSearch
from sfumato.bounds.problem import BoundProblem
from sfumato.bounds.triple_prices import takes_triples
from sfumato.errors import UsageError
from sfumato.losses.exact_costs import UNIT
from sfumato.methods.method import Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements

ROUNDING = 2  # units per attribute: at most 1/2 each for the whole and for either end, and the rounding of floats
LARGEST = 250_000  # boxes are searched up to this many distinct records; above, only nearest neighbours are used
SETTLING = 7  # first rounds, in which prices still jump
PRICE_LIMIT = 1 << 60


@dataclass(frozen=True)
class BoundEffort:
    """How long to search: parts for each record, steps between two proofs, rounds, and the least gain of a round.

    The gain is relative; ``patience`` rounds in a row with less end the search. ``triples``: whether prices are given
    penalties for triples then, on small tables.
    """

    parts: int
    steps: int
    rounds: int
    gain: float
    patience: int = 3
    triples: bool = False


SIMPLE = BoundEffort(parts=1000, steps=0, rounds=0, gain=1.0)
EFFORTS = {
    "fast": SIMPLE,
    "normal": SIMPLE,
    "balanced": BoundEffort(parts=200, steps=200, rounds=24, gain=0.005),
    "best": BoundEffort(parts=500, steps=300, rounds=200, gain=0.0005, patience=4, triples=True),
}


@dataclass(frozen=True)
class MeasuredRelease:
    """The losses of a finished release, and whether it meets the policy; the bound holds only for one that does.

    ``holds`` is None if the release does not show whether it does. ``il`` is None where it is not known.
    """

    gcp: float
    cost: float
    holds: bool | None
    il: float | None = None


@dataclass(frozen=True)
class Suppression:
    """How many rows may be left out, and what each of them counts in ``cost``, as a share of all its information."""

    most: int = 0
    cost: float = 1.0


@dataclass(frozen=True)
class Bound:
    """A lower bound on the loss of any release of a table, whatever the method.

    ``gcp`` is the bound on GCP, ``cost`` that on the loss in which a record that is left out counts
    ``suppression_cost``; they are equal where none may be left out or it counts 1. ``simple`` is the bound on ``cost``
    that the cheapest boxes alone prove. ``kind`` says what proved it: neighbours, simple, prices or triples. ``exact``:
    every cheapest box is known exactly. ``complete``: the search came to its end. ``relaxation`` is what prices without
    penalties for triples can prove at most, None where that is not known. ``release`` is a release to compare with the
    bound.
    """

    gcp: float
    cost: float
    simple: float
    kind: str
    exact: bool
    complete: bool
    records: int
    distinct: int
    k: int
    rounds: int = 0
    suppression_cost: float = 1.0
    relaxation: float | None = None
    release: MeasuredRelease | None = None

    def ratio(self, cost: float) -> float:
        """Return an upper limit on how many times the best possible cost the cost of a release is."""
        if cost <= self.cost:
            return 1.0
        return cost / self.cost if self.cost > 0 else math.inf

    @property
    def release_ratio(self) -> float | None:
        """Return the ratio of the release, or None where there is none or it does not meet the policy."""
        if self.release is None or self.release.holds is False:
            return None
        return self.ratio(self.release.cost)

    @property
    def method(self) -> str:
        """Return how the bound was proven, in words."""
        if self.kind == "neighbours":
            return f"the distance of every record to its {self.k - 1:,} nearest neighbours"
        boxes = f"the cheapest box with at least {self.k:,} records around every record"
        if self.kind == "simple":
            return boxes if self.exact else f"{boxes}, some of them bounded from below"
        rounds = f"raised in {self.rounds:,} round{'' if self.rounds == 1 else 's'}"
        prices = f"prices of records that no class of at least {self.k:,} can undercut"
        if self.kind == "triples":
            return f"{prices}, with penalties for classes that hold two records of a triple, {rounds}"
        return f"{prices}, {rounds}"


def effort_named(name: str) -> BoundEffort:
    """Return the effort of this name; raise UsageError where there is none."""
    if name not in EFFORTS:
        raise UsageError.unknown_choice("effort", name, EFFORTS)
    return EFFORTS[name]


def lower_bounds(
    records: Records,
    requirements: Requirements,
    *,
    suppression: Suppression,
    effort: BoundEffort,
    seconds: float | None,
    progress: Progress,
) -> Iterator[Bound]:
    """Yield bounds as they are proven, each at least as high as the one before."""
    until = math.inf if seconds is None else time.monotonic() + seconds

    price = math.floor(suppression.cost * records.costs.full)

    def seconds_left() -> float:
        return until - time.monotonic()

    def out_of_time() -> bool:
        return seconds_left() < 0

    with progress.phase("neighbours", records.count):
        problem = BoundProblem.of(records, requirements)
        cheapest = nearest_boxes(problem, progress.advance)

    def bound_of(
        prices: NDArray[np.int64], kind: str, *, complete: bool, rounds: int = 0, given_back: int = 0
    ) -> Bound:
        most, full = suppression.most, records.costs.full
        simple = _proven(problem, cheapest.least, most, price)
        # The best prices by their sum need not be the best with a limit on the records that are left out.
        cost = max(simple, _proven(problem, prices, most, price, given_back))
        gcp = max(_proven(problem, cheapest.least, most, full), _proven(problem, prices, most, full, given_back))
        exact = bool(cheapest.exact.all())
        return Bound(
            gcp=gcp,
            cost=cost,
            simple=simple,
            kind=kind,
            exact=exact,
            complete=complete,
            records=records.count,
            distinct=len(records.codes),
            k=problem.k,
            rounds=rounds,
            suppression_cost=suppression.cost,
        )

    small = problem.count <= LARGEST
    yield bound_of(cheapest.least, "neighbours", complete=not small)
    if not small:
        return
    with progress.phase("boxes", problem.count):
        searched = search_cheapest(problem, cheapest, effort.parts, progress.advance, out_of_time)
    last = effort.rounds == 0 or not cheapest.least.any()
    bound = bound_of(cheapest.least, "simple", complete=searched and last)
    yield bound
    if last:
        return
    highest = PRICE_LIMIT // problem.k
    if suppression.most > 0:
        forced = problem.count_above(cheapest.least, price) > suppression.most
        highest = min(highest, records.costs.full if forced else price)
    triples = effort.triples and suppression.most == 0 and takes_triples(problem)
    search = PriceSearch(
        problem, effort.parts, effort.steps, highest, triples, effort.gain, effort.patience, progress.advance,
        seconds_left,
    )  # fmt: skip
    rounds = search.raised(cheapest)
    limit, poor_rounds = math.inf, 0  # what prices can prove at most; rounds in a row with too little gain
    for number in range(1, effort.rounds + 1):
        if out_of_time():
            return
        with progress.phase("prices"):
            raised = next(rounds)
        limit = min(limit, raised.limit)
        kind, given_back = ("prices", 0) if raised.given_back is None else ("triples", raised.given_back)
        before, bound = bound, bound_of(raised.prices, kind, complete=False, rounds=number, given_back=given_back)
        bound = replace(
            bound,
            gcp=max(bound.gcp, before.gcp),
            cost=max(bound.cost, before.cost),
            relaxation=limit / (records.count * UNIT) if math.isfinite(limit) and suppression.most == 0 else None,
        )
        if not triples or kind == "triples":  # prices alone are followed by triples
            poor_rounds = poor_rounds + 1 if number > SETTLING and bound.cost < before.cost * (1 + effort.gain) else 0
        is_solved = not triples and bound.relaxation is not None and bound.relaxation < bound.cost * (1 + effort.gain)
        last = number == effort.rounds or poor_rounds == effort.patience or is_solved
        bound = replace(bound, complete=last and not out_of_time())
        yield bound
        if last:
            return


def _proven(problem: BoundProblem, prices: NDArray[np.int64], most: int, suppressed: int, given_back: int = 0) -> float:
    """Return the mean loss that the prices prove if ``most`` rows may be left out, each for ``suppressed`` units.

    given_back: what the penalties for triples take from the sum of the prices.
    """
    records = int(problem.tree.weights.sum())
    total = problem.sum(prices) - given_back - problem.largest_excess(prices, suppressed, most)
    return max(total - ROUNDING * problem.attributes * records, 0) / (records * UNIT)
