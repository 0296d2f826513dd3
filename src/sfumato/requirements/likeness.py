"""beta-likeness (Cao and Karras 2012): no sensitive value is much more frequent in a class than in the release.

Basic: (p - q) / q <= beta for every value with p > q. Enhanced: <= min(beta, -ln q), so that frequent values are
guarded too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.requirements.measured import BETA, BETA_ENHANCED, EXACT, MeasuredRequirement, MeasuredTest, by_class
from sfumato.requirements.requirement import ClassCounts, Verdict


@dataclass(frozen=True)
class Likeness(MeasuredRequirement):
    """A relative gain of at most ``beta`` for every value of ``attribute``."""

    attribute: str
    beta: float
    enhanced: bool = False
    kind = "beta-likeness"

    def test(self) -> MeasuredTest:
        return MeasuredTest(BETA_ENHANCED if self.enhanced else BETA, self.beta)

    def check_feasible(self, table: ClassCounts) -> None:
        """The whole table gains nothing."""

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the largest relative gain; for the enhanced form, the largest excess is what decides."""
        histogram = classes.histograms[self.attribute]
        known = np.maximum(by_class(classes, histogram, histogram.count), 1)
        reference = histogram.reference[histogram.value]
        gain = histogram.count / known[histogram.owner] / reference - 1
        limit = np.minimum(self.beta, -np.log(reference)) if self.enhanced else np.full(len(gain), self.beta)
        holds = bool(np.all((gain <= EXACT) | (gain <= limit + EXACT)))
        name = "enhanced beta-likeness" if self.enhanced else "beta-likeness"
        return Verdict(
            f"{name} of {self.attribute!r}, beta = {self.beta:g}", holds, float(max(gain.max(initial=0.0), 0.0))
        )
