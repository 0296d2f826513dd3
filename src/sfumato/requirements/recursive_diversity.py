"""Recursive (c, l)-diversity (Machanavajjhala et al. 2006; Ghinita 2007, section 2.3).

Let r_1, r_2, ... be the counts of the values of a class in descending order. The class must meet
r_1 < c (r_l + r_(l+1) + ...). With l = 1 it always does; with fewer than l values it never does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.parameters import Parameter, positive_number, whole_number
from sfumato.requirements.conjunction import BELOW, RECURSIVE
from sfumato.requirements.requirement import ClassCounts, Condition, Requirement, Verdict


@dataclass(frozen=True)
class RecursiveDiversity(Requirement):
    """The most frequent value of ``attribute`` is rarer than ``c`` times all but the ``l - 1`` most frequent."""

    attribute: str
    c: float
    l: int
    kind = "recursive"
    parameters: ClassVar = {
        "c": Parameter(positive_number, nothing=math.inf),
        "l": Parameter(whole_number(1), nothing=1, whole=True),
    }
    example: ClassVar = {"c": 2, "l": 3}
    larger_is_worse = True
    closed_under_union = True
    closed_under_addition = False

    def condition(self) -> Condition:
        return Condition(RECURSIVE, whole=self.l, bound=self.c)

    def check_feasible(self, table: ClassCounts) -> None:
        reached = self.verdict(table)
        if not reached.holds:
            values = len(table.histograms[self.attribute].count)
            if values < self.l:
                raise InfeasibleError(
                    f"recursive (c, l)-diversity of {self.attribute!r} with l = {self.l:,} needs {self.l:,} different "
                    f"values, but the table has {values:,}. Choose an l of at most {max(values, 1):,}."
                )
            raise InfeasibleError(
                f"recursive (c, l)-diversity of {self.attribute!r} with c = {self.c:g}, l = {self.l:,} cannot be "
                f"reached: the whole table needs a c above {reached.value:.4g}. Choose a larger c or a smaller l."
            )

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        if self.l == 1:
            return np.ones(len(classes.sizes), np.bool_)
        return classes.largest(self.attribute) < self.c * self._rest(classes) * BELOW

    def possible_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """With fewer than l values, r_l + r_(l+1) + ... is 0 however many persons have each, and r_1 is not below 0."""
        return (classes.different(self.attribute) >= self.l) | (self.l == 1)

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the c that the worst class reaches: the requirement holds for every larger c."""
        largest, rest = classes.largest(self.attribute), self._rest(classes)
        with np.errstate(divide="ignore"):
            ratio = np.where(rest > 0, largest / np.maximum(rest, 1), np.inf)
        text = f"recursive (c, l)-diversity of {self.attribute!r}, c = {self.c:g}, l = {self.l}"
        return Verdict(text, bool(self.holds(classes).all()), float(ratio.max()) if ratio.size else 0.0)

    def _rest(self, classes: ClassCounts) -> NDArray[np.float64]:
        """For each class, the number of records without the l - 1 most frequent values."""
        histogram = classes.histograms[self.attribute]
        order = np.lexsort([-histogram.count, histogram.owner])
        owner, count = histogram.owner[order], histogram.count[order]
        begins = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])) if owner.size else np.empty(0, np.int64)
        rank = np.arange(len(owner)) - np.repeat(begins, np.diff(np.append(begins, len(owner))))
        rest = np.zeros(len(classes.sizes))
        np.add.at(rest, owner[rank >= self.l - 1], count[rank >= self.l - 1])
        return rest
