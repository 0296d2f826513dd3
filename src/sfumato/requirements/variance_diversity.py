"""Variance diversity (LeFevre 2008): the variance of a numeric sensitive attribute in a class is at least v.

The variance divides by the records of the class that have a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError, UsageError
from sfumato.parameters import Parameter, positive_number
from sfumato.requirements.conjunction import EXACT_SHARE, VARIANCE
from sfumato.requirements.requirement import ClassCounts, Condition, Counter, Requirement, Verdict


@dataclass(frozen=True)
class VarianceDiversity(Requirement):
    """A variance of ``attribute`` of at least ``v`` in every class."""

    attribute: str
    v: float
    kind = "variance"
    parameters: ClassVar = {"v": Parameter(positive_number, nothing=0)}
    example: ClassVar = {"v": 100}
    closed_under_union = True
    closed_under_addition = False

    @property
    def counters(self) -> frozenset[Counter]:
        return frozenset({"values", "numbers"})

    def condition(self) -> Condition:
        return Condition(VARIANCE, bound=self.v)

    def check_feasible(self, table: ClassCounts) -> None:
        reached = self.verdict(table)
        if not reached.holds:
            raise InfeasibleError(
                f"variance diversity of {self.attribute!r} with v = {self.v:g} cannot be reached: the whole table has "
                f"a variance of about {reached.value:.4g}. Choose a smaller v."
            )

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self._variance(classes) >= self.v * (1 - EXACT_SHARE)

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the smallest variance of a class."""
        variance = self._variance(classes)
        least = float(variance.min()) if variance.size else 0.0
        text = f"variance diversity of {self.attribute!r}, v = {self.v:g}"
        return Verdict(text, least >= self.v * (1 - EXACT_SHARE), least)

    def _variance(self, classes: ClassCounts) -> NDArray[np.float64]:
        histogram = classes.histograms[self.attribute]
        if not np.isfinite(histogram.numbers).all():
            raise UsageError(
                f"variance diversity needs numbers, but the column {self.attribute!r} holds other values. Choose "
                "another kind of requirement for it."
            )
        count, numbers = histogram.count, histogram.numbers[histogram.value]
        total = np.maximum(classes.sums(self.attribute, count), 1)
        away = numbers - (classes.sums(self.attribute, count * numbers) / total)[histogram.owner]
        return classes.sums(self.attribute, count * away * away) / total
