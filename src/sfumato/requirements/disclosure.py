"""delta-disclosure privacy (Brickell and Shmatikov 2008): |ln(p / q)| < delta for every sensitive value and class.

A class that lacks a value of the release has an infinite ratio and fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.requirements.measured import DELTA, MeasuredRequirement, MeasuredTest, by_class
from sfumato.requirements.requirement import ClassCounts, Verdict


@dataclass(frozen=True)
class Disclosure(MeasuredRequirement):
    """Every value of ``attribute`` is about as frequent in each class as in the release."""

    attribute: str
    delta: float
    kind = "delta-disclosure"

    def test(self) -> MeasuredTest:
        return MeasuredTest(DELTA, self.delta)

    def check_feasible(self, table: ClassCounts) -> None:
        """The whole table has the ratio 1 everywhere."""

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the largest logarithm of a ratio."""
        histogram = classes.histograms[self.attribute]
        known = np.maximum(by_class(classes, histogram, histogram.count), 1)
        ratio = np.abs(np.log(histogram.count / known[histogram.owner] / histogram.reference[histogram.value]))
        present = np.bincount(histogram.owner, minlength=len(classes.sizes))
        lacking = bool(np.any(present < np.count_nonzero(histogram.reference)))
        worst = float("inf") if lacking else float(ratio.max(initial=0.0))
        return Verdict(f"delta-disclosure of {self.attribute!r}, delta = {self.delta:g}", worst < self.delta, worst)
