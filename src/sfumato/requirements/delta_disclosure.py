"""delta-disclosure privacy (Brickell and Shmatikov 2008): |ln(p / q)| < delta for every sensitive value and class.

A class that lacks a value of the release has an infinite ratio and fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.parameters import Parameter, positive_number
from sfumato.requirements.conjunction import DELTA
from sfumato.requirements.requirement import ClassCounts, Condition, Counter, Requirement, Verdict


@dataclass(frozen=True)
class DeltaDisclosure(Requirement):
    """Every value of ``attribute`` is about as frequent in each class as in the release."""

    attribute: str
    delta: float
    kind = "delta-disclosure"
    parameters: ClassVar = {"delta": Parameter(positive_number, nothing=math.inf)}
    example: ClassVar = {"delta": 1}
    larger_is_worse = True
    closed_under_union = True
    closed_under_addition = False

    @property
    def counters(self) -> frozenset[Counter]:
        return frozenset({"values", "reference"})

    def condition(self) -> Condition:
        return Condition(DELTA, bound=self.delta)

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self._ratio(classes) < self.delta

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the largest logarithm of a ratio."""
        worst = float(self._ratio(classes).max(initial=0.0))
        return Verdict(f"delta-disclosure of {self.attribute!r}, delta = {self.delta:g}", worst < self.delta, worst)

    def _ratio(self, classes: ClassCounts) -> NDArray[np.float64]:
        """The largest |ln(p / q)| of each class."""
        histogram = classes.histograms[self.attribute]
        total = np.maximum(classes.sums(self.attribute, histogram.count), 1)
        ratio = np.abs(np.log(histogram.count / total[histogram.owner] / histogram.reference[histogram.value]))
        result = np.zeros(len(classes.sizes))
        np.maximum.at(result, histogram.owner, ratio)
        present = np.bincount(histogram.owner, minlength=len(classes.sizes))
        result[present < np.count_nonzero(histogram.reference)] = np.inf
        return result
