"""t-closeness (Li et al. 2007): the sensitive values of a class are distributed nearly as in the whole release.

The distance is the earth mover's: with equal ground distances half the sum of the differences, with ordered ones the
sum of the cumulated differences over the number of values less one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.requirements.measured import (
    CLOSENESS_EQUAL,
    CLOSENESS_ORDERED,
    EXACT,
    MeasuredRequirement,
    MeasuredTest,
    by_class,
)
from sfumato.requirements.requirement import ClassCounts, Histogram, Verdict

CELLS = 1 << 22


@dataclass(frozen=True)
class Closeness(MeasuredRequirement):
    """At most the distance ``t`` between the distribution of ``attribute`` in a class and in the release."""

    attribute: str
    t: float
    distance: Literal["equal", "ordered"] = "equal"
    kind = "t-closeness"

    def test(self) -> MeasuredTest:
        return MeasuredTest(CLOSENESS_EQUAL if self.distance == "equal" else CLOSENESS_ORDERED, self.t)

    def check_feasible(self, table: ClassCounts) -> None:
        """The whole table has the distance 0."""

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the largest distance of a class."""
        histogram = classes.histograms[self.attribute]
        distance = _equal(classes, histogram) if self.distance == "equal" else _ordered(classes, histogram)
        worst = float(distance.max()) if distance.size else 0.0
        text = f"t-closeness of {self.attribute!r} ({self.distance}), t = {self.t:g}"
        return Verdict(text, worst <= self.t + EXACT, worst)


def _equal(classes: ClassCounts, histogram: Histogram) -> NDArray[np.float64]:
    known = np.maximum(by_class(classes, histogram, histogram.count), 1)
    share = histogram.count / known[histogram.owner]
    # Half of all differences is the sum of the positive ones, and these are at values that the class has.
    surplus = np.maximum(share - histogram.reference[histogram.value], 0.0)
    return by_class(classes, histogram, surplus)


def _ordered(classes: ClassCounts, histogram: Histogram) -> NDArray[np.float64]:
    values = len(histogram.reference)
    result = np.zeros(len(classes.sizes))
    step = max(CELLS // max(values, 1), 1)
    for first in range(0, len(classes.sizes), step):
        last = min(first + step, len(classes.sizes))
        begin, end = np.searchsorted(histogram.owner, [first, last])
        counts = np.zeros((last - first, values))
        counts[histogram.owner[begin:end] - first, histogram.value[begin:end]] = histogram.count[begin:end]
        known = counts.sum(axis=1, keepdims=True)
        shares = np.where(known > 0, counts / np.maximum(known, 1), histogram.reference)
        gaps = np.abs(np.cumsum(shares - histogram.reference, axis=1)).sum(axis=1)
        result[first:last] = gaps / max(values - 1, 1)
    return result
