"""Distinct l-diversity (Machanavajjhala et al. 2006): every class has at least l different sensitive values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.parameters import Parameter, whole_number
from sfumato.requirements.conjunction import DISTINCT
from sfumato.requirements.requirement import ClassCounts, Condition, Requirement, Verdict


@dataclass(frozen=True)
class DistinctDiversity(Requirement):
    """At least ``l`` different values of ``attribute`` in a class; null is none of them."""

    attribute: str
    l: int
    kind = "distinct"
    parameters: ClassVar = {"l": Parameter(whole_number(1), nothing=1, whole=True)}
    example: ClassVar = {"l": 3}
    closed_under_union = True
    closed_under_addition = True

    def condition(self) -> Condition:
        return Condition(DISTINCT, whole=self.l)

    def check_feasible(self, table: ClassCounts) -> None:
        different = int(table.different(self.attribute).max(initial=0))
        if different < self.l:
            raise InfeasibleError(
                f"distinct l-diversity of {self.attribute!r} with l = {self.l:,} needs {self.l:,} different values, "
                f"but the table has {different:,}. Choose an l of at most {different:,}."
            )

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return classes.different(self.attribute) >= self.l

    # A class has a value if one of its records has it, whoever that belongs to. So the records decide.

    def possible_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self.holds(classes)

    def certain_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self.holds(classes)

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the number of different values in the class with the fewest."""
        different = classes.different(self.attribute)
        fewest = int(different.min()) if different.size else 0
        return Verdict(f"distinct l-diversity of {self.attribute!r}, l = {self.l}", fewest >= self.l, fewest)
