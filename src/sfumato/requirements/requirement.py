"""What a requirement is: a condition that every class of a release must meet.

A requirement is data to the kernels: rows of thresholds on counters of a class, tested by one kernel for every kind and
any conjunction (``satisfied``). The audit does not use thresholds: it asks ``verdict``, the definition written out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels import kernel

# Counters of a class, by column.
SIZE = 0
COUNTERS = 1

# Tests of a counter against a bound.
AT_LEAST = 0


@dataclass(frozen=True)
class Verdict:
    """What the audit found: the requirement in words, whether it holds, and the value that the release reaches."""

    requirement: str
    holds: bool
    value: float | int


class Requirement(Protocol):
    """One file a kind; declares what a search may assume."""

    kind: str
    closed_under_union: bool  # may two classes that satisfy it be joined?
    closed_under_addition: bool  # may any record be added to a class that satisfies it?

    def thresholds(self) -> NDArray[np.int64]:
        """int64[t, 3]: test, counter, bound."""
        ...

    def check_feasible(self, records: int) -> None:
        """Raise InfeasibleError when no partition of the table can meet it."""
        ...

    def verdict(self, sizes: NDArray[np.int64]) -> Verdict:
        """Whether the classes of a finished release meet it."""
        ...


@dataclass(frozen=True)
class Requirements:
    """All of the policy's requirements together."""

    parts: tuple[Requirement, ...]

    @property
    def closed_under_union(self) -> bool:
        return all(part.closed_under_union for part in self.parts)

    def thresholds(self) -> NDArray[np.int64]:
        return np.concatenate([part.thresholds() for part in self.parts])

    @property
    def least_class(self) -> int:
        """The smallest number of records a class can have."""
        rows = self.thresholds()
        return int(max(rows[(rows[:, 0] == AT_LEAST) & (rows[:, 1] == SIZE), 2], default=1))

    def check_feasible(self, records: int) -> None:
        for part in self.parts:
            part.check_feasible(records)

    def unmet(self, counters: NDArray[np.int64]) -> NDArray[np.int64]:
        """The classes, by number, that break a threshold. counters: int64[classes, COUNTERS]."""
        return np.flatnonzero(~satisfied(counters, self.thresholds()))


@kernel
def satisfied(counters, thresholds):  # type: ignore[no-untyped-def]
    """Whether each class meets every threshold. counters: int64[c, COUNTERS]; thresholds: int64[t, 3]; bool[c]."""
    result = np.ones(counters.shape[0], np.bool_)
    for row in range(counters.shape[0]):
        for line in range(thresholds.shape[0]):
            test, counter, bound = thresholds[line, 0], thresholds[line, 1], thresholds[line, 2]
            if test == AT_LEAST and counters[row, counter] < bound:
                result[row] = False
    return result
