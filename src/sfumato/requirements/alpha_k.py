"""(alpha, k)-anonymity (Wong et al. 2006): no sensitive value has more than the share alpha of a class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InfeasibleError
from sfumato.requirements.measured import ALPHA, EXACT, MeasuredRequirement, MeasuredTest, by_class, largest_by_class
from sfumato.requirements.requirement import ClassCounts, Verdict


@dataclass(frozen=True)
class AlphaAnonymity(MeasuredRequirement):
    """At most the share ``alpha`` of the values of ``attribute`` in a class are the same."""

    attribute: str
    alpha: float
    kind = "alpha-k"

    def test(self) -> MeasuredTest:
        return MeasuredTest(ALPHA, self.alpha)

    def check_feasible(self, table: ClassCounts) -> None:
        reached = self.verdict(table)
        if not reached.holds:
            enough = math.ceil(reached.value * 1e4) / 1e4
            raise InfeasibleError(
                f"(alpha, k)-anonymity of {self.attribute!r} with alpha = {self.alpha:g} cannot be reached: the most "
                f"frequent value has {reached.value:.1%} of the table. Choose an alpha of at least {enough:.4f}."
            )

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the largest share of a value in a class."""
        histogram = classes.histograms[self.attribute]
        known = by_class(classes, histogram, histogram.count)
        share = largest_by_class(classes, histogram, histogram.count) / np.maximum(known, 1)
        worst = float(share.max()) if share.size else 0.0
        return Verdict(
            f"(alpha, k)-anonymity of {self.attribute!r}, alpha = {self.alpha:g}", worst <= self.alpha + EXACT, worst
        )
