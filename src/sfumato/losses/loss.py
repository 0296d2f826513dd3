"""The contract of a loss: one number, computed from the classes alone, that says how much a release has lost.

A loss is computed in two steps, so that the classes of a release can be measured in parts: ``total`` sums the loss of
some classes, ``join`` adds two totals, and ``value`` turns the total of all classes into the loss of the release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ClassTable:
    """All or some classes of a release, in the form that losses take.

    sizes: int64[c]. penalties: float64[c, d], the normalised certainty penalty of the values that each class shows.
    weights: float64[d], summing to 1. records: the number of records of the original. majority: int64[c], how many
    records of each class have its most frequent value in the target column, where one is named. groups: int64[g], the
    sizes of the groups, where sensitive values are released by group in a table of their own. suppression_cost: what a
    record that was left out counts in the loss ``cost``. errors: float64[d], see ``squared_errors.class_errors``; None
    if the columns have no means, or if nobody knows which records are in which class.
    """

    sizes: NDArray[np.int64]
    penalties: NDArray[np.float64]
    weights: NDArray[np.float64]
    records: int
    k: int
    majority: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None
    suppression_cost: float = 1.0
    errors: NDArray[np.float64] | None = None

    @property
    def indistinguishable(self) -> NDArray[np.int64]:
        """Return the size of each set of records whose sensitive values cannot be distinguished."""
        return self.sizes if self.groups is None else self.groups

    @property
    def extent(self) -> Extent:
        """Return how much of the release these classes cover."""
        return Extent(self.records, int(self.sizes.sum()), self.weights, self.k, self.suppression_cost)


@dataclass(frozen=True)
class Extent:
    """The number of records of the original and of the release. weights, k, suppression_cost: see ClassTable."""

    records: int
    released: int
    weights: NDArray[np.float64]
    k: int
    suppression_cost: float = 1.0

    @property
    def suppressed(self) -> int:
        return self.records - self.released

    def join(self, other: Extent) -> Extent:
        """Add further classes of the same release."""
        return replace(self, released=self.released + other.released)


class Loss(Protocol):
    """A loss. Each family has one file; it is registered in ``all_losses`` or by the entry point ``sfumato.losses``."""

    name: str
    summary: str

    def total(self, classes: ClassTable) -> Any:
        """Return what these classes lose together, or None where they lack the data to compute it."""
        ...

    def join(self, one: Any, other: Any) -> Any:
        """Return the total of both sets of classes, which belong to one release."""
        ...

    def value(self, total: Any, release: Extent) -> float | int | None:
        """Return the loss of the release whose classes have this total, or None where it has too few classes."""
        ...


class Sum:
    """A loss whose totals are added."""

    def join(self, one: Any, other: Any) -> Any:
        return one + other
