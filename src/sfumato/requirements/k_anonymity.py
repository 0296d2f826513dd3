"""k-anonymity (Samarati and Sweeney; Ghinita 2007, definition 2): every class has at least k records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError, UsageError
from sfumato.requirements.requirement import AT_LEAST, SIZE, Verdict


@dataclass(frozen=True)
class KAnonymity:
    """At least ``k`` records in every class."""

    k: int
    kind = "k-anonymity"
    closed_under_union = True
    closed_under_addition = True

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"k must be a whole number of at least 1, not {self.k}.")

    def thresholds(self) -> NDArray[np.int64]:
        return np.array([[AT_LEAST, SIZE, self.k]], np.int64)

    def check_feasible(self, records: int) -> None:
        if records < self.k:
            raise InfeasibleError(
                f"k = {self.k:,} needs at least {self.k:,} records, but the table has {records:,}. "
                f"Choose a k of at most {records:,}, or add records."
            )

    def verdict(self, sizes: NDArray[np.int64]) -> Verdict:
        smallest = int(sizes.min()) if sizes.size else 0
        return Verdict(f"k-anonymity, k = {self.k}", smallest >= self.k, smallest)
