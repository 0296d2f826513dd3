"""How many records a set of rows lacks to be a class, under any conjunction of requirements.

Searches ask this at every step and in many kernels, and the code that answers is large: it is compiled once and passed
to kernels as an argument (see ``kernels.decorator.entrance``). For it the requirements are packed into two arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import entrance, inlined_kernel, kernel
from sfumato.requirements.conjunction import DISTINCT, FREQUENCY, SIZE, Conjunction, distribution_holds

# Entries of the working space: the numbers of requirements, attributes, values and nodes of taxonomies, and where the
# counts and the rows begin; then the l of a frequency if it is all that values must meet, or 0, and the number of
# values of the first attribute. The packed requirements come after these.
TESTS, ATTRIBUTES, VALUES, NODES, COUNTS, ROWS, FREQUENCY_ALONE, FREQUENCY_VALUES, HEAD = range(9)

# The types of what ``lack_of_rows`` takes and returns.
SIGNATURE = numba.int64(numba.uint32[:, ::1], numba.int64, numba.int64, numba.int64[::1], numba.float64[::1])


class ShortfallTests(NamedTuple):
    """What kernels need to test rows.

    lack: ``lack_of_rows``, compiled. space: int64, the entries above, the packed requirements, then for each attribute
    int64[m + 4], how often each value occurs, null last, the number of values, the largest count, and the number of
    different values, all 0 between tests; then the rows to test. real: float64, the packed requirements. Where the
    least size is the only requirement there are no attributes. All is in two arrays, since every array that a kernel
    passes on costs time.
    """

    lack: Any
    space: NDArray[np.int64]
    real: NDArray[np.float64]


def shortfall_tests(n: int, tests: Conjunction) -> ShortfallTests:
    """Return what kernels need to test up to n + 1 rows."""
    a, m = tests.reference.shape
    whole = [tests.kind, tests.attribute, tests.whole, tests.distinct, tests.nodes.ravel()]
    counts = HEAD + sum(map(len, whole))
    rows = counts + a * (m + 4)
    on_values = np.flatnonzero(tests.kind != SIZE)
    alone = tests.whole[on_values[0]] if a == 1 and tests.kind[on_values].tolist() == [FREQUENCY] else 0
    head = np.array([len(tests.kind), a, m, tests.weight.shape[1], counts, rows, alone, tests.distinct[0] if a else 0])
    space = np.concatenate([head, *whole, np.zeros(a * (m + 4) + n + 1, np.int64)])
    real = [tests.bound, tests.reference.ravel(), tests.numbers.ravel(), tests.weight.ravel()]
    return ShortfallTests((lack_of_rows if a else nothing_lacks).value, space, np.concatenate(real))


def part_tests(values: NDArray[np.uint32], tests: Conjunction) -> tuple[NDArray[np.uint32], ShortfallTests]:
    """Return the values of the rows of a part, uint32[n, a], and what kernels need to test these rows.

    Where it only matters which values are different, they are numbered anew: to clear the space for all values of a
    table, such as a million persons, would take longer than to search the part.
    """
    n, (a, m) = len(values), tests.reference.shape
    if m <= n or not np.isin(tests.kind, (SIZE, DISTINCT)).all():
        return values, shortfall_tests(n, tests)
    renumbered, distinct = np.empty_like(values), np.empty(a, np.int64)
    for column in range(a):
        known, number = np.unique(values[:, column], return_inverse=True)
        distinct[column] = np.searchsorted(known, tests.distinct[column])  # null comes after all values
        renumbered[:, column] = number
    width = int(distinct.max())
    nothing = np.zeros((a, width))
    return renumbered, shortfall_tests(
        n,
        tests._replace(
            distinct=distinct,
            reference=nothing,
            numbers=nothing,
            nodes=np.zeros((a, 3 * width), np.int64),
            weight=nothing,
        ),
    )


@entrance(SIGNATURE)
def nothing_lacks(values, count, least, space, real):
    """Stand in for ``lack_of_rows`` where the least size is the only requirement: no kernel calls it then.

    So nobody waits for the other to be compiled.
    """
    return 0


@entrance(SIGNATURE)
def lack_of_rows(values, count, least, space, real):
    """Return how many records the first ``count`` rows in ``space`` lack at least to be a class, 0 where they are one.

    Requirements on a distribution do not say how much is lacking; it counts as 1. values: uint32[n, a], the sensitive
    ones. space, real: see ShortfallTests.
    """
    t, attributes, m, rows = space[TESTS], space[ATTRIBUTES], space[VALUES], space[ROWS]
    known, largest, different = m + 1, m + 2, m + 3
    for a in range(attributes):
        counts, distinct = space[COUNTS] + a * (m + 4), space[HEAD + 3 * t + a]
        for i in range(count):
            value = np.int64(values[space[rows + i], a])
            if value < distinct:
                times = space[counts + value] + 1
                space[counts + value] = times
                space[counts + known] += 1
                space[counts + different] += times == 1
                space[counts + largest] = max(space[counts + largest], times)
    lack, simple = max(least - count, 0), True
    for test in range(t):
        kind, most = space[HEAD + test], space[HEAD + 2 * t + test]
        counts = space[COUNTS] + space[HEAD + t + test] * (m + 4)
        if kind == SIZE:
            lack = max(lack, most - count)
        elif kind == FREQUENCY:
            lack = max(lack, space[counts + largest] * most - space[counts + known])
        elif kind == DISTINCT:
            lack = max(lack, most - space[counts + different])
        else:
            simple = False
    if lack == 0 and not simple:
        for test in range(t):
            if lack == 0 and space[HEAD + test] > DISTINCT:
                lack += not packed_holds(test, space, real)
    for a in range(attributes):
        counts = space[COUNTS] + a * (m + 4)
        for i in range(count):
            space[counts + np.int64(values[space[rows + i], a])] = 0
        space[counts + known], space[counts + largest], space[counts + different] = 0, 0, 0
    return lack


@kernel
def lack_of_counted(values, count, least, tests):
    """Return how many records the first ``count`` rows in the space of the tests lack: a way in from Python."""
    return tests.lack(values, count, least, tests.space, tests.real)


@inlined_kernel
def packed_holds(test, space, real):
    """Return whether a class meets a requirement on a distribution, packed by ``shortfall_tests``."""
    t, attributes, m, s = space[TESTS], space[ATTRIBUTES], space[VALUES], space[NODES]
    a = space[HEAD + t + test]
    values = space[HEAD + 3 * t + a]
    nodes = HEAD + 3 * t + attributes + a * 3 * s
    counts = space[COUNTS] + a * (m + 4)
    reference = t + a * m
    numbers = reference + attributes * m
    weight = t + 2 * attributes * m + a * s
    return distribution_holds(
        space[HEAD + test],
        space[HEAD + 2 * t + test],
        real[test],
        space[counts : counts + values],
        space[counts + m + 1],
        real[reference : reference + values],
        real[numbers : numbers + values],
        space[nodes : nodes + 3 * s],
        real[weight : weight + s],
    )
