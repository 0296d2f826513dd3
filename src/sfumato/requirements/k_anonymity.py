"""k-anonymity (Samarati and Sweeney; Ghinita 2007, definition 2): every class has at least k records.

With a person key it counts persons instead: a person with k records could otherwise be alone in a class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError, UsageError
from sfumato.requirements.conjunction import SIZE
from sfumato.requirements.requirement import ClassCounts, Condition, Counter, Requirement, Verdict


@dataclass(frozen=True)
class KAnonymity(Requirement):
    """At least ``k`` records, or persons, in every class."""

    k: int
    counted: str = "records"
    kind = "k-anonymity"
    attribute = None
    closed_under_union = True
    closed_under_addition = True

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"k must be a whole number of at least 1, not {self.k}.")

    @property
    def counters(self) -> frozenset[Counter]:
        return frozenset({"size"})

    def condition(self) -> Condition:
        return Condition(SIZE, whole=self.k)

    def check_feasible(self, table: ClassCounts) -> None:
        available = int(table.sizes.sum())
        if available < self.k:
            raise InfeasibleError(
                f"k = {self.k:,} needs at least {self.k:,} {self.counted}, but the table has {available:,}. "
                f"Choose a k of at most {available:,}, or add {self.counted}."
            )

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        result: NDArray[np.bool_] = classes.sizes >= self.k
        return result

    # Every record belongs to one person. So a class has at most as many persons as records, and at least one.

    def possible_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self.holds(classes)

    def certain_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return np.full(len(classes.sizes), self.k == 1)

    def verdict(self, classes: ClassCounts) -> Verdict:
        smallest = int(classes.sizes.min()) if classes.sizes.size else 0
        text = f"k-anonymity, k = {self.k}" + ("" if self.counted == "records" else f", in {self.counted}")
        return Verdict(text, smallest >= self.k, smallest)
