"""Distinct l-diversity (Machanavajjhala et al. 2006): every class has at least l different sensitive values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.requirements.requirement import AT_LEAST, DISTINCT, ClassCounts, Verdict, counter_of


@dataclass(frozen=True)
class DistinctDiversity:
    """At least ``l`` different values of ``attribute`` in a class; null is none of them."""

    attribute: str
    l: int  # noqa: E741 - the name that the field knows it by
    kind = "distinct"
    closed_under_union = True
    closed_under_addition = True

    def thresholds(self, attribute: int) -> NDArray[np.int64]:
        return np.array([[AT_LEAST, counter_of(attribute, DISTINCT), self.l, 0]], np.int64)

    def check_feasible(self, table: ClassCounts) -> None:
        different = len(table.histograms[self.attribute].count)
        if different < self.l:
            raise InfeasibleError(
                f"distinct l-diversity of {self.attribute!r} with l = {self.l:,} needs {self.l:,} different values, "
                f"but the table has {different:,}. Choose an l of at most {different:,}."
            )

    def verdict(self, classes: ClassCounts) -> Verdict:
        different = np.bincount(classes.histograms[self.attribute].owner, minlength=len(classes.sizes))
        fewest = int(different.min()) if different.size else 0
        return Verdict(f"distinct l-diversity of {self.attribute!r}, l = {self.l}", fewest >= self.l, fewest)
