"""Recursive (c, l)-diversity (Machanavajjhala et al. 2006; Ghinita 2007, section 2.3).

With the values of a class in descending order of their counts r_1, r_2, ...: r_1 < c (r_l + r_(l+1) + ...). With l = 1
it always holds; with fewer than l values it never does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.errors import InfeasibleError
from sfumato.requirements.measured import BELOW, RECURSIVE, MeasuredRequirement, MeasuredTest
from sfumato.requirements.requirement import ClassCounts, Verdict


@dataclass(frozen=True)
class RecursiveDiversity(MeasuredRequirement):
    """The most frequent value of ``attribute`` is rarer than ``c`` times all but the ``l - 1`` most frequent."""

    attribute: str
    c: float
    l: int  # noqa: E741 - the name that the field knows it by
    kind = "recursive"

    def test(self) -> MeasuredTest:
        return MeasuredTest(RECURSIVE, self.c, self.l)

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

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the c that the worst class reaches: it holds for every larger one."""
        histogram = classes.histograms[self.attribute]
        order = np.lexsort([-histogram.count, histogram.owner])
        owner, count = histogram.owner[order], histogram.count[order]
        begins = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])) if owner.size else np.empty(0, np.int64)
        place = np.arange(len(owner)) - np.repeat(begins, np.diff(np.append(begins, len(owner))))
        largest = np.zeros(len(classes.sizes))
        largest[owner[begins]] = count[begins]
        rest = np.zeros(len(classes.sizes))
        np.add.at(rest, owner[place >= self.l - 1], count[place >= self.l - 1])
        with np.errstate(divide="ignore"):
            ratio = np.where(rest > 0, largest / np.maximum(rest, 1), np.inf)
        text = f"recursive (c, l)-diversity of {self.attribute!r}, c = {self.c:g}, l = {self.l}"
        holds = self.l == 1 or bool(np.all(largest < self.c * rest * BELOW))
        return Verdict(text, holds, float(ratio.max()) if ratio.size else 0.0)
