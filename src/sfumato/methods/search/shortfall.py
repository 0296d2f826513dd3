"""How many records a set of rows lacks to be a class, under any conjunction of requirements.

Searches ask this at every step and in many kernels, and the code that answers is large: it is compiled once and passed
to kernels as an argument (see ``kernels.decorator.entrance``). For it the requirements are packed into two arrays.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import entrance, inlined_kernel, kernel
from sfumato.requirements.conjunction import DISTINCT, FREQUENCY, SIZE, Conjunction, distribution_holds

HEAD = 4  # numbers that give the lengths of the packed arrays


class ShortfallCounts(NamedTuple):
    """The working space that kernels need to test rows.

    lack: ``lack_of_rows``, compiled. rows: int64[n], the rows to test. whole: int64, real: float64: the packed
    requirements. counts: int64[a, m + 4], how often each value of an attribute occurs, null last, then the number of
    values, the largest count, and the number of different values; all 0 between tests. Where the least size is the only
    requirement there are no attributes.
    """

    lack: Any
    rows: NDArray[np.int64]
    whole: NDArray[np.int64]
    real: NDArray[np.float64]
    counts: NDArray[np.int64]


def tally_for(n: int, tests: Conjunction) -> ShortfallCounts:
    """Return working space to test up to n + 1 rows."""
    a, m = tests.reference.shape
    head = np.array([len(tests.kind), a, m, tests.weight.shape[1]])
    whole = [head, tests.kind, tests.attribute, tests.whole, tests.distinct, tests.nodes.ravel()]
    real = [tests.bound, tests.reference.ravel(), tests.numbers.ravel(), tests.weight.ravel()]
    return ShortfallCounts(
        _compiled(),
        np.empty(n + 1, np.int64),
        np.concatenate(whole).astype(np.int64),
        np.concatenate(real),
        np.zeros((a, m + 4), np.int64),
    )


@cache
def _compiled() -> Any:
    whole, real = numba.int64[::1], numba.float64[::1]
    signature = numba.int64(numba.uint32[:, ::1], whole, numba.int64, numba.int64, whole, real, numba.int64[:, ::1])
    return entrance(lack_of_rows, (signature.args, signature.return_type))


def lack_of_rows(values, rows, count, least, whole, real, counts):
    """Call ``lack_of_counted``: the uncompiled function that is passed to kernels."""
    return lack_of_counted(values, rows, count, least, whole, real, counts)


@kernel
def lack_of_counted(values, rows, count, least, whole, real, counts):
    """Return how many records the first ``count`` of the rows lack at least to be a class, 0 where they are one.

    Requirements on a distribution do not say how much is lacking; it counts as 1. values: uint32[n, a], the sensitive
    ones.
    """
    t, attributes, m = whole[0], len(counts), counts.shape[1] - 4
    known, largest, different = m + 1, m + 2, m + 3
    for i in range(count):
        for a in range(attributes):
            value = values[rows[i], a]
            if value < whole[HEAD + 3 * t + a]:
                counts[a, known] += 1
                counts[a, different] += counts[a, value] == 0
                counts[a, value] += 1
                counts[a, largest] = max(counts[a, largest], counts[a, value])
    lack, simple = max(least - count, 0), True
    for test in range(t):
        kind, a, most = whole[HEAD + test], whole[HEAD + t + test], whole[HEAD + 2 * t + test]
        if kind == SIZE:
            lack = max(lack, most - count)
        elif kind == FREQUENCY:
            lack = max(lack, counts[a, largest] * most - counts[a, known])
        elif kind == DISTINCT:
            lack = max(lack, most - counts[a, different])
        else:
            simple = False
    if lack == 0 and not simple:
        for test in range(t):
            if lack == 0 and whole[HEAD + test] > DISTINCT:
                lack += not packed_holds(test, whole, real, counts)
    for a in range(attributes):
        for i in range(count):
            counts[a, values[rows[i], a]] = 0
        counts[a, known], counts[a, largest], counts[a, different] = 0, 0, 0
    return lack


@inlined_kernel
def packed_holds(test, whole, real, counts):
    """Return whether a class meets a requirement on a distribution, packed by ``tally_for``."""
    t, attributes, m, s = whole[0], whole[1], whole[2], whole[3]
    a = whole[HEAD + t + test]
    values = whole[HEAD + 3 * t + a]
    nodes = HEAD + 3 * t + attributes + a * 3 * s
    reference = t + a * m
    numbers = reference + attributes * m
    weight = t + 2 * attributes * m + a * s
    return distribution_holds(
        whole[HEAD + test],
        whole[HEAD + 2 * t + test],
        real[test],
        counts[a, :values],
        counts[a, m + 1],
        real[reference : reference + values],
        real[numbers : numbers + values],
        whole[nodes : nodes + 3 * s],
        real[weight : weight + s],
    )
