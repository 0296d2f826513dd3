"""What a requirement is: a condition that every class of a release must meet.

A requirement is data to the kernels: rows of thresholds on counters of a class, tested by one kernel for every kind and
any conjunction (``satisfied``). The audit does not use thresholds: it asks ``verdict``, the definition written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels import kernel

# Counters of a class, by column: its records, then three for every sensitive attribute.
SIZE = 0
KNOWN, LARGEST, DISTINCT = 1, 2, 3
PER_ATTRIBUTE = 3

# Tests of a counter: at least the bound; or the bound times it at most another counter.
AT_LEAST = 0
TIMES_AT_MOST = 1


@dataclass(frozen=True)
class Histogram:
    """How often each value of a sensitive attribute occurs in each class; null is no value and is not in it.

    owner, count, value: int64[pairs], one entry for every value that occurs in a class, by class; values are numbered
    in ascending order. reference: float64[values], the share of each in the whole release. numbers: float64[values],
    what each is as a number, NaN for what is none.
    """

    owner: NDArray[np.int64]
    count: NDArray[np.int64]
    value: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    reference: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    numbers: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class ClassCounts:
    """The classes of a release as requirements see them."""

    sizes: NDArray[np.int64]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """What the audit found: the requirement in words, whether it holds, and the value that the release reaches."""

    requirement: str
    holds: bool
    value: float | int


class Requirement(Protocol):
    """One file a kind; declares what a search may assume."""

    @property
    def kind(self) -> str: ...

    @property
    def attribute(self) -> str | None:
        """The sensitive attribute that it counts; none where it counts records."""
        ...

    @property
    def closed_under_union(self) -> bool:
        """May two classes that satisfy it be joined?"""
        ...

    @property
    def closed_under_addition(self) -> bool:
        """May any record be added to a class that satisfies it?"""
        ...

    def thresholds(self, attribute: int) -> NDArray[np.int64]:
        """int64[t, 4]: test, counter, bound, other counter. ``attribute`` is the place of the sensitive attribute."""
        ...

    def check_feasible(self, table: ClassCounts) -> None:
        """Raise InfeasibleError when no partition of the table, given as one class, can meet it."""
        ...

    def verdict(self, classes: ClassCounts) -> Verdict:
        """Whether the classes of a finished release meet it."""
        ...


@dataclass(frozen=True)
class Requirements:
    """All of the policy's requirements together."""

    parts: tuple[Requirement, ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        """The sensitive attributes that are counted, each once."""
        return tuple(dict.fromkeys(part.attribute for part in self.parts if part.attribute is not None))

    @property
    def closed_under_union(self) -> bool:
        return all(part.closed_under_union for part in self.parts)

    def thresholds(self) -> NDArray[np.int64]:
        return np.concatenate([part.thresholds(self.place(part.attribute)) for part in self.parts])

    @property
    def least_class(self) -> int:
        """The smallest number of records a class can have."""
        rows = self.thresholds()
        return int(max(rows[(rows[:, 0] == AT_LEAST) & (rows[:, 1] == SIZE), 2], default=1))

    def place(self, attribute: str | None) -> int:
        """The place of a sensitive attribute among those that are counted."""
        return self.attributes.index(attribute) if attribute is not None else 0

    def check_feasible(self, table: ClassCounts) -> None:
        for part in self.parts:
            part.check_feasible(table)

    def unmet(self, counters: NDArray[np.int64]) -> NDArray[np.int64]:
        """The classes, by number, that break a threshold. counters: int64[classes, counters]."""
        return np.flatnonzero(~satisfied(counters, self.thresholds()))


def counter_of(attribute: int, counter: int) -> int:
    """The column of a counter of a sensitive attribute."""
    return counter + PER_ATTRIBUTE * attribute


@kernel
def satisfied(counters, thresholds):  # type: ignore[no-untyped-def]
    """Whether each class meets every threshold. counters: int64[c, counters]; thresholds: int64[t, 4]; bool[c]."""
    result = np.ones(counters.shape[0], np.bool_)
    for row in range(counters.shape[0]):
        for line in range(thresholds.shape[0]):
            value, bound = counters[row, thresholds[line, 1]], thresholds[line, 2]
            if thresholds[line, 0] == AT_LEAST:
                met = value >= bound
            else:
                met = value * bound <= counters[row, thresholds[line, 3]]
            if not met:
                result[row] = False
    return result


@kernel
def count_values(values, starts, distinct, counters, first):  # type: ignore[no-untyped-def]
    """Fill the counters of one sensitive attribute: known, largest, distinct, from column ``first`` on.

    values: uint32[n], those of the records class after class; ``distinct`` is null. starts: int64[c + 1].
    counters: int64[c, counters], written to.
    """
    count = np.zeros(distinct + 1, np.int64)
    for i in range(len(starts) - 1):
        known, largest, different = 0, 0, 0
        for place in range(starts[i], starts[i + 1]):
            value = values[place]
            if value < distinct:
                known += 1
                different += count[value] == 0
                count[value] += 1
                largest = max(largest, count[value])
        for place in range(starts[i], starts[i + 1]):
            count[values[place]] = 0
        counters[i, first] = known
        counters[i, first + 1] = largest
        counters[i, first + 2] = different
