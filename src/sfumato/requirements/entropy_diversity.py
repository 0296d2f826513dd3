"""Entropy l-diversity (Machanavajjhala et al. 2006): the entropy of the values of a class is at least log l."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.parameters import Parameter, whole_number
from sfumato.requirements.conjunction import ENTROPY, EXACT
from sfumato.requirements.requirement import ClassCounts, Condition, Requirement, Verdict


@dataclass(frozen=True)
class EntropyDiversity(Requirement):
    """At least as much uncertainty about ``attribute`` in a class as ``l`` equally frequent values give."""

    attribute: str
    l: int
    kind = "entropy"
    parameters: ClassVar = {"l": Parameter(whole_number(1))}
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
                f"{int(reached.value + 1e-9):,}."
            )

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
