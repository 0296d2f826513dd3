"""The sensitive values of a class and of its box: how many must differ, how many may be equal, and their count."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inner_kernel


class DiversityLimits(NamedTuple):
    """How many different sensitive values a box must hold, and how many of k records may have the same value.

    needed: int64[a], different values by attribute. starts: int64[m + 1]; values: int64[...], the values of each record
    by its position in the tree, numbered over all attributes; owner: int64[values], the attribute of each value.
    most: of any k records that count, as many may have the same value of one attribute. value: int64[m], that value by
    position, NONE where there is no limit. shares: how many values the attribute has.
    """

    needed: NDArray[np.int64]
    starts: NDArray[np.int64]
    values: NDArray[np.int64]
    owner: NDArray[np.int64]
    most: int
    value: NDArray[np.int64]
    shares: int


def no_limits(count: int) -> DiversityLimits:
    """Return limits that every box of ``count`` records meets."""
    nothing = np.empty(0, np.int64)
    unlimited = np.full(count, NONE, np.int64)
    return DiversityLimits(nothing, np.zeros(count + 1, np.int64), nothing, nothing, int(INFINITE), unlimited, 0)


class ValueTally(NamedTuple):
    """The number of different values counted, by attribute: different, int64[a].

    stamp: int64[values], the count in which each value was last seen; clock: int64[1], the number of the present count.
    share_stamp: int64[shares], in which count each value with a limit was last seen; share: int64[shares], how many
    records had it.
    """

    stamp: NDArray[np.int64]
    different: NDArray[np.int64]
    clock: NDArray[np.int64]
    share_stamp: NDArray[np.int64]
    share: NDArray[np.int64]


@inner_kernel
def counts_values(diversity):
    """Return whether sensitive values have to be counted at all."""
    return diversity.shares > 0 or len(diversity.needed) > 0


@inner_kernel
def reset_values(counted):
    """Begin a new count. counted: ValueTally."""
    counted.clock[0] += 1
    for a in range(len(counted.different)):
        counted.different[a] = 0


@inner_kernel
def count_values(position, weight, diversity, counted):
    """Count the sensitive values of a record, each once; return how many of its ``weight`` copies a class may hold."""
    for v in range(diversity.starts[position], diversity.starts[position + 1]):
        value = diversity.values[v]
        if counted.stamp[value] != counted.clock[0]:
            counted.stamp[value] = counted.clock[0]
            counted.different[diversity.owner[value]] += 1
    limited = diversity.value[position]
    if limited != NONE:
        if counted.share_stamp[limited] != counted.clock[0]:
            counted.share_stamp[limited] = counted.clock[0]
            counted.share[limited] = 0
        weight = min(weight, diversity.most - counted.share[limited])
        counted.share[limited] += weight
    return weight


@inner_kernel
def values_suffice(diversity, counted):
    """Return whether as many different values were counted as a box must hold."""
    for a in range(len(diversity.needed)):  # noqa: SIM110 - a generator is not compiled well
        if counted.different[a] < diversity.needed[a]:
            return False
    return True
