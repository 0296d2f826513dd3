"""The different sensitive values that a box must hold, and their count while a box grows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import inner_kernel


class DiversityLimits(NamedTuple):
    """How many different sensitive values a box must hold, and the values of each record by its position in the tree.

    needed: int64[a]; starts: int64[m + 1]; values: int64[...], numbered over all attributes; owner: int64[values], the
    attribute of each value.
    """

    needed: NDArray[np.int64]
    starts: NDArray[np.int64]
    values: NDArray[np.int64]
    owner: NDArray[np.int64]


def no_limits(count: int) -> DiversityLimits:
    """Return limits that every box of ``count`` records meets."""
    nothing = np.empty(0, np.int64)
    return DiversityLimits(nothing, np.zeros(count + 1, np.int64), nothing, nothing)


class DistinctValues(NamedTuple):
    """The number of different values counted, by attribute: different, int64[a].

    stamp: int64[values], the count in which each value was last seen; clock: int64[1], the number of the present count.
    """

    stamp: NDArray[np.int64]
    different: NDArray[np.int64]
    clock: NDArray[np.int64]


@inner_kernel
def reset_values(counted):
    """Begin a new count. counted: DistinctValues."""
    counted.clock[0] += 1
    for a in range(len(counted.different)):
        counted.different[a] = 0


@inner_kernel
def count_values(position, diversity, counted):
    """Count the sensitive values of a record, each once in the present count."""
    for v in range(diversity.starts[position], diversity.starts[position + 1]):
        value = diversity.values[v]
        if counted.stamp[value] != counted.clock[0]:
            counted.stamp[value] = counted.clock[0]
            counted.different[diversity.owner[value]] += 1


@inner_kernel
def values_suffice(diversity, counted):
    """Return whether as many different values were counted as a box must hold."""
    for a in range(len(diversity.needed)):  # noqa: SIM110 - a generator is not compiled well
        if counted.different[a] < diversity.needed[a]:
            return False
    return True
