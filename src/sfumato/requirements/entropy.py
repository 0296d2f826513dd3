"""Entropy l-diversity (Machanavajjhala et al. 2006): the entropy of the values of a class is at least log l."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InfeasibleError
from sfumato.requirements.measured import ENTROPY, EXACT, MeasuredRequirement, MeasuredTest, by_class
from sfumato.requirements.requirement import ClassCounts, Verdict


@dataclass(frozen=True)
class EntropyDiversity(MeasuredRequirement):
    """At least as much uncertainty about ``attribute`` in a class as ``l`` equally frequent values give."""

    attribute: str
    l: int  # noqa: E741 - the name that the field knows it by
    kind = "entropy"

    def test(self) -> MeasuredTest:
        return MeasuredTest(ENTROPY, math.log(self.l))

    def check_feasible(self, table: ClassCounts) -> None:
        reached = self.verdict(table)
        if not reached.holds:
            raise InfeasibleError(
                f"entropy l-diversity of {self.attribute!r} with l = {self.l:,} cannot be reached: the whole table has "
                f"the entropy of {reached.value:.2f} equally frequent values. Choose an l of at most "
                f"{int(reached.value + 1e-9):,}."
            )

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the number of equally frequent values with the entropy of the worst class."""
        histogram = classes.histograms[self.attribute]
        known = by_class(classes, histogram, histogram.count)
        weighted = by_class(classes, histogram, histogram.count * np.log(histogram.count))
        entropy = np.log(np.maximum(known, 1)) - weighted / np.maximum(known, 1)
        worst = float(entropy.min()) if entropy.size else 0.0
        text = f"entropy l-diversity of {self.attribute!r}, l = {self.l}"
        return Verdict(text, worst >= math.log(self.l) - EXACT, float(np.exp(worst)))
