"""beta-likeness (Cao and Karras 2012): no sensitive value is much more frequent in a class than in the release.

Basic: (p - q) / q <= beta for every value with p > q. Enhanced: <= min(beta, -ln q), so that frequent values are
protected too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.parameters import Parameter, flag, positive_number
from sfumato.requirements.conjunction import BETA, BETA_ENHANCED, EXACT
from sfumato.requirements.requirement import ClassCounts, Condition, Counter, Requirement, Verdict


@dataclass(frozen=True)
class BetaLikeness(Requirement):
    """A relative gain of at most ``beta`` for every value of ``attribute``."""

    attribute: str
    beta: float
    enhanced: bool = False
    kind = "beta-likeness"
    parameters: ClassVar = {
        "beta": Parameter(positive_number, nothing=math.inf),
        "enhanced": Parameter(flag, required=False),
    }
    example: ClassVar = {"beta": 1}
    larger_is_worse = True
    closed_under_union = True
    closed_under_addition = False

    @property
    def counters(self) -> frozenset[Counter]:
        return frozenset({"values", "reference"})

    def condition(self) -> Condition:
        return Condition(BETA_ENHANCED if self.enhanced else BETA, bound=self.beta)

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        histogram = classes.histograms[self.attribute]
        gain, reference = self._gain(classes), histogram.reference[histogram.value]
        limit = np.minimum(self.beta, -np.log(reference)) if self.enhanced else np.full(len(gain), self.beta)
        result = np.ones(len(classes.sizes), np.bool_)
        result[histogram.owner[(gain > EXACT) & (gain > limit + EXACT)]] = False
        return result

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the largest relative gain. The enhanced form is decided by the gain above each value's limit."""
        name = "enhanced beta-likeness" if self.enhanced else "beta-likeness"
        text = f"{name} of {self.attribute!r}, beta = {self.beta:g}"
        largest = max(float(self._gain(classes).max(initial=0.0)), 0.0)
        return Verdict(text, bool(self.holds(classes).all()), largest)

    def _gain(self, classes: ClassCounts) -> NDArray[np.float64]:
        histogram = classes.histograms[self.attribute]
        total = np.maximum(classes.sums(self.attribute, histogram.count), 1)
        gain: NDArray[np.float64] = histogram.count / total[histogram.owner] / histogram.reference[histogram.value] - 1
        return gain
