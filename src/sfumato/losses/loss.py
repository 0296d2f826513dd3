"""What a loss is: one number that says how much a release has lost, from its classes alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ClassTable:
    """The classes of a release as losses see them.

    sizes: int64[c]. penalties: float64[c, d], the normalised certainty penalty of what each class shows.
    weights: float64[d], summing to 1. records: those of the original. majority: int64[c], how many records of each
    class have the class's most frequent value in a target column, where one is named. groups: int64[g], the sizes of
    the groups by which sensitive values are told, where they are released apart from the quasi-identifiers.
    """

    sizes: NDArray[np.int64]
    penalties: NDArray[np.float64]
    weights: NDArray[np.float64]
    records: int
    k: int
    majority: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None

    @property
    def alike(self) -> NDArray[np.int64]:
        """How many records each set has whose sensitive values cannot be told apart."""
        return self.sizes if self.groups is None else self.groups

    @property
    def released(self) -> int:
        return int(self.sizes.sum())

    @property
    def suppressed(self) -> int:
        return self.records - self.released


class Loss(Protocol):
    """One file a family of losses; registered in ``losses.measures`` or by the entry point ``sfumato.losses``."""

    name: str
    summary: str

    def value(self, classes: ClassTable) -> float | int | None:
        """The loss, none where the release does not say enough to compute it."""
        ...
