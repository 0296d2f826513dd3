"""A proven lower bound on GCP: from the nearest neighbours, from the cheapest boxes, from prices, each above the last.

Costs are whole numbers, rounded once from weight times NCP (``losses.costs``). On each attribute the cost of a box
differs by less than ``ROUNDING`` units from the exact one, so that much is taken off for every record: the bound holds
for the loss as it is measured.

A record that is left out counts as a loss of 1. The cheapest box around it costs no more, so the simple bound holds
however many are left out. Prices can be higher; those that leaving out would undercut are capped at ``full``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.cheapest_boxes import nearest_boxes, search_cheapest
from sfumato.bounds.dual_prices import raised_prices
from sfumato.bounds.problem import BoundProblem
from sfumato.errors import UsageError
from sfumato.losses.exact_costs import UNIT
from sfumato.methods.method import Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements

ROUNDING = 2  # units by attribute: at most 1/2 each for the whole and for either end, and what floats lose
LARGEST = 250_000  # distinct records up to which boxes are searched; beyond, the nearest neighbours have to do
SETTLING = 5  # rounds in which prices still leap
ENOUGH = 2  # rounds in a row, after these, without a gain that is worth another
PRICE_LIMIT = 1 << 60


@dataclass(frozen=True)
class BoundEffort:
    """How much is searched: parts for each record, steps between two proofs, rounds, and the gain worth another.

    A few rounds in a row with less than that gain, as a share, end it.
    """

    parts: int
    steps: int
    rounds: int
    gain: float


EFFORTS = {
    "fast": BoundEffort(parts=1000, steps=0, rounds=0, gain=1.0),
    "balanced": BoundEffort(parts=200, steps=200, rounds=12, gain=0.005),
    "best": BoundEffort(parts=500, steps=300, rounds=40, gain=0.0005),
}


@dataclass(frozen=True)
class MeasuredRelease:
    """The loss of a finished release, and whether it meets the policy: no bound holds for one that does not."""

    gcp: float
    holds: bool


@dataclass(frozen=True)
class Bound:
    """What no release of a table can do better than, whatever the method.

    ``gcp`` is the bound, ``simple`` what the cheapest boxes alone prove; ``kind`` is neighbours, simple or prices, by
    what it was proven. ``exact`` says whether every cheapest box is known for sure, ``complete`` whether the search
    came to its end. ``release`` is one that was given to be compared.
    """

    gcp: float
    simple: float
    kind: str
    exact: bool
    complete: bool
    records: int
    distinct: int
    k: int
    rounds: int = 0
    release: MeasuredRelease | None = None

    def ratio(self, gcp: float) -> float:
        """How many times the best possible loss a loss is at most."""
        if gcp <= self.gcp:
            return 1.0
        return gcp / self.gcp if self.gcp > 0 else math.inf

    @property
    def release_ratio(self) -> float | None:
        """How many times the best possible loss that of the release is at most, where it meets the policy."""
        return self.ratio(self.release.gcp) if self.release is not None and self.release.holds else None

    @property
    def method(self) -> str:
        """How it was proven, in words."""
        if self.kind == "neighbours":
            return f"the distance of every record to its {self.k - 1:,} nearest neighbours"
        boxes = f"the cheapest box with at least {self.k:,} records around every record"
        if self.kind == "simple":
            return boxes if self.exact else f"{boxes}, some of them bounded from below"
        rounds = f"{self.rounds:,} round{'' if self.rounds == 1 else 's'}"
        return f"prices of records that no class of at least {self.k:,} can undercut, raised in {rounds}"


def effort_named(name: str) -> BoundEffort:
    if name not in EFFORTS:
        raise UsageError.unknown_choice("effort", name, EFFORTS)
    return EFFORTS[name]


def lower_bounds(
    records: Records,
    requirements: Requirements,
    *,
    most_suppressed: int,
    effort: BoundEffort,
    seconds: float | None,
    progress: Progress,
) -> Iterator[Bound]:
    """Bounds as they are proven, each at least as high as the one before."""
    until = math.inf if seconds is None else time.monotonic() + seconds

    def over() -> bool:
        return time.monotonic() > until

    with progress.phase("neighbours", records.count):
        ground = BoundProblem.of(records, requirements)
        cheapest = nearest_boxes(ground, progress.advance)

    def bound_of(prices: NDArray[np.int64], kind: str, *, complete: bool, rounds: int = 0) -> Bound:
        simple = _gcp(ground, cheapest.least, records.count)
        gcp = _gcp(ground, prices, records.count)
        exact = bool(cheapest.exact.all())
        return Bound(gcp, simple, kind, exact, complete, records.count, ground.count, ground.k, rounds)

    small = ground.count <= LARGEST
    yield bound_of(cheapest.least, "neighbours", complete=not small)
    if not small:
        return
    with progress.phase("boxes", ground.count):
        searched = search_cheapest(ground, cheapest, effort.parts, progress.advance, over)
    last = effort.rounds == 0 or not cheapest.least.any()
    bound = bound_of(cheapest.least, "simple", complete=searched and last)
    yield bound
    if last:
        return
    highest = PRICE_LIMIT // ground.k
    if most_suppressed > 0:
        highest = min(highest, records.costs.full)
    raised = raised_prices(
        ground,
        cheapest,
        most=effort.parts,
        steps=effort.steps,
        highest=highest,
        done=progress.advance,
        over=over,
    )
    poor = 0  # rounds in a row that gained too little
    for number in range(1, effort.rounds + 1):
        if over():
            return
        with progress.phase("prices", ground.count):
            prices = next(raised)
        before, bound = bound, bound_of(prices, "prices", complete=False, rounds=number)
        poor = poor + 1 if number > SETTLING and bound.gcp < before.gcp * (1 + effort.gain) else 0
        last = number == effort.rounds or poor == ENOUGH
        bound = replace(bound, complete=last and not over())
        yield bound
        if last:
            return


def _gcp(ground: BoundProblem, prices: NDArray[np.int64], records: int) -> float:
    """What prices prove, as the loss is measured."""
    return max(ground.sum(prices) - ROUNDING * ground.attributes * records, 0) / (records * UNIT)
