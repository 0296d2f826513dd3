"""What a loss is: one number that says how much a release has lost, from its classes alone.

A loss is told in two steps, so that a release can be measured a part of its classes at a time: what some classes lose
together (``total``, which can be ``join``ed with that of others), and what that is for the whole release (``value``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ClassTable:
    """Classes of a release, all or a part of them, as losses see them.

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
    def extent(self) -> Extent:
        """How much of the release these classes are."""
        return Extent(self.records, int(self.sizes.sum()), self.weights, self.k)


@dataclass(frozen=True)
class Extent:
    """How large a release is: the records of the original, and those it has. weights, k: see ClassTable."""

    records: int
    released: int
    weights: NDArray[np.float64]
    k: int

    @property
    def suppressed(self) -> int:
        return self.records - self.released

    def join(self, other: Extent) -> Extent:
        """With further classes of the same release."""
        return Extent(self.records, self.released + other.released, self.weights, self.k)


class Loss(Protocol):
    """One file a family of losses; registered in ``losses.measures`` or by the entry point ``sfumato.losses``."""

    name: str
    summary: str

    def total(self, classes: ClassTable) -> Any:
        """What these classes lose together, none where they do not say enough to compute it."""
        ...

    def join(self, one: Any, other: Any) -> Any:
        """The total of the classes of both, which are of one release."""
        ...

    def value(self, total: Any, release: Extent) -> float | int | None:
        """The loss of the release whose classes have this total, none where there are too few to compute it."""
        ...


class Sum:
    """A loss whose totals add up."""

    def join(self, one: Any, other: Any) -> Any:
        return one + other
