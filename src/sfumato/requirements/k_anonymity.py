"""k-anonymity (Samarati and Sweeney; Ghinita 2007, definition 2): every class has at least k records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError, UsageError
from sfumato.requirements.requirement import AT_LEAST, SIZE, ClassCounts, Verdict


@dataclass(frozen=True)
class KAnonymity:
    """At least ``k`` records in every class."""

    k: int
    kind = "k-anonymity"
    attribute = None
    closed_under_union = True
    closed_under_addition = True

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"k must be a whole number of at least 1, not {self.k}.")

    def thresholds(self, _: int) -> NDArray[np.int64]:
        return np.array([[AT_LEAST, SIZE, self.k, 0]], np.int64)

    def check_feasible(self, table: ClassCounts) -> None:
        records = int(table.sizes.sum())
        if records < self.k:
            raise InfeasibleError(
                f"k = {self.k:,} needs at least {self.k:,} records, but the table has {records:,}. "
                f"Choose a k of at most {records:,}, or add records."
            )

    def verdict(self, classes: ClassCounts) -> Verdict:
        smallest = int(classes.sizes.min()) if classes.sizes.size else 0
        return Verdict(f"k-anonymity, k = {self.k}", smallest >= self.k, smallest)
