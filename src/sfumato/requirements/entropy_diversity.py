"""Entropy l-diversity (Machanavajjhala et al. 2006): the entropy of the values of a class is at least log l."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.parameters import Parameter, number_of_at_least
from sfumato.requirements.conjunction import ENTROPY, EXACT
from sfumato.requirements.requirement import ClassCounts, Condition, Requirement, Verdict


@dataclass(frozen=True)
class EntropyDiversity(Requirement):
    """At least as much uncertainty about ``attribute`` in a class as ``l`` equally frequent values give.

    ``l`` need not be whole: between 1 and 2, one value of two may be the more frequent one.
    """

    attribute: str
    l: float
    kind = "entropy"
    parameters: ClassVar = {"l": Parameter(number_of_at_least(1), nothing=1)}
    example: ClassVar = {"l": 3}
    closed_under_union = True
    closed_under_addition = False

    def condition(self) -> Condition:
        return Condition(ENTROPY, bound=math.log(self.l))

    def check_feasible(self, table: ClassCounts) -> None:
        reached = self.verdict(table)
        if not reached.holds:
            raise InfeasibleError(
                f"entropy l-diversity of {self.attribute!r} with l = {self.l:,} cannot be reached: the whole table has "
                f"the entropy of {reached.value:.2f} equally frequent values. Choose an l of at most "
                f"{math.floor(100 * (reached.value + EXACT)) / 100:,.6g}."
            )

    @property
    def least_values(self) -> int:
        """The least number of different values in a class that meets it, if none is missing."""
        return math.ceil(self.l * math.exp(-EXACT))

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self._entropy(classes) >= math.log(self.l) - EXACT

    def possible_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """d different values have at most the entropy log d, however many persons have each; none has the entropy 0.

        So at least l different values, rounded up, are necessary.
        """
        most = np.log(np.maximum(classes.different(self.attribute), 1))
        return most >= math.log(self.l) - EXACT

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the number of equally frequent values with the entropy of the worst class."""
        entropy = self._entropy(classes)
        worst = float(entropy.min()) if entropy.size else 0.0
        text = f"entropy l-diversity of {self.attribute!r}, l = {self.l}"
        return Verdict(text, worst >= math.log(self.l) - EXACT, float(np.exp(worst)))

    def _entropy(self, classes: ClassCounts) -> NDArray[np.float64]:
        count = classes.histograms[self.attribute].count
        total = np.maximum(classes.sums(self.attribute, count), 1)
        return np.log(total) - classes.sums(self.attribute, count * np.log(count)) / total
