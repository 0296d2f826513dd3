"""Variance diversity (LeFevre 2008): the variance of a numeric sensitive attribute in a class is at least v.

The variance divides by the records of the class that have a value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.errors import InfeasibleError, UsageError
from sfumato.requirements.measured import EXACT_SHARE, VARIANCE, MeasuredRequirement, MeasuredTest, by_class
from sfumato.requirements.requirement import ClassCounts, Verdict


@dataclass(frozen=True)
class VarianceDiversity(MeasuredRequirement):
    """A variance of ``attribute`` of at least ``v`` in every class."""

    attribute: str
    v: float
    kind = "variance"

    def test(self) -> MeasuredTest:
        return MeasuredTest(VARIANCE, self.v)

    def check_feasible(self, table: ClassCounts) -> None:
        reached = self.verdict(table)
        if not reached.holds:
            raise InfeasibleError(
                f"variance diversity of {self.attribute!r} with v = {self.v:g} cannot be reached: the whole table has "
                f"a variance of about {reached.value:.4g}. Choose a smaller v."
            )

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the smallest variance of a class."""
        histogram = classes.histograms[self.attribute]
        numbers = histogram.numbers
        if not np.isfinite(numbers).all():
            raise UsageError(
                f"variance diversity needs numbers, but the column {self.attribute!r} holds something else."
            )
        known = np.maximum(by_class(classes, histogram, histogram.count), 1)
        mean = by_class(classes, histogram, histogram.count * numbers[histogram.value]) / known
        away = numbers[histogram.value] - mean[histogram.owner]
        variance = by_class(classes, histogram, histogram.count * away * away) / known
        least = float(variance.min()) if variance.size else 0.0
        holds = least >= self.v * (1 - EXACT_SHARE)
        return Verdict(f"variance diversity of {self.attribute!r}, v = {self.v:g}", holds, least)
