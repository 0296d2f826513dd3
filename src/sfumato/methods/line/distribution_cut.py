"""The best partition of a line into runs under any requirement that the kernel of ``conjunction`` knows.

Requirements on a distribution (such as entropy and closeness) are not closed under addition: a longer run may fail
where a shorter one holds. So every run of up to ``reach`` places is tried:

    Opt(i) = min over j of Opt(j) + (i - j) * NCP(places j + 1 to i),    i - j <= reach, and the run holds

This is exact over all partitions into runs of at most ``reach`` places. The reach is doubled until a partition exists
and a further doubling gains less than a thousandth; longer runs are not tried. It is not doubled either where more than
``MOST_RUNS`` runs would have to be tried: if no partition was found by then, the result is None, and the caller merges
classes instead. Costs and ties as in ``block_cut``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import Costs, box_cost, widen
from sfumato.methods.line.block_cut import followed_back
from sfumato.requirements.conjunction import Conjunction, class_holds
from sfumato.tables.coding.domains import Codes

FIRST_REACH = 64
GAIN = 1000  # a doubling must gain one part in this many
MOST_RUNS = 1 << 29


def best_windows(
    codes: Codes,
    at: NDArray[np.uint32],
    values: NDArray[np.uint32],
    tests: Conjunction,
    least_size: int,
    costs: Costs,
) -> NDArray[np.int64] | None:
    """Return where the line is cut, both ends included; None where the runs tried form no partition.

    values: uint32[a, n], the sensitive values of each place, ``distinct[a]`` for null.
    """

    def cut(reach: int) -> tuple[int, NDArray[np.int64]]:
        total, back = cut_windows(codes, at, values, tests, least_size, reach, costs.layout, costs.units)
        return int(total), followed_back(back)

    reach = min(max(FIRST_REACH, 4 * least_size), len(at))
    total, cuts = cut(reach)
    while reach < len(at) and 2 * reach * len(at) <= MOST_RUNS:
        reach = min(2 * reach, len(at))
        further, longer = cut(reach)
        settled = total < INFINITE and (total - further) * GAIN <= total
        total, cuts = further, longer
        if settled:
            break
    return cuts if total < INFINITE else None


@kernel
def cut_windows(codes, at, values, tests, least_size, reach, layout, units):
    """Return the least cost of a partition into runs of at most ``reach`` places, and where each last run begins."""
    n, d = len(at), codes.shape[1]
    attributes, m = values.shape[0], tests.reference.shape[1]
    optimum, back = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    low, high = np.zeros(d, np.int64), np.zeros(d, np.int64)
    count = np.zeros((attributes, m + 1), np.int64)
    known, largest, different = (
        np.zeros(attributes, np.int64),
        np.zeros(attributes, np.int64),
        np.zeros(attributes, np.int64),
    )
    for end in range(1, n + 1):
        optimum[end] = INFINITE
        for a in range(attributes):
            known[a], largest[a], different[a] = 0, 0, 0
            for v in range(m + 1):
                count[a, v] = 0
        for q in range(d):
            low[q] = np.int64(codes[at[end - 1], q])
            high[q] = low[q]
        cost = np.int64(0)
        for begin in range(end - 1, max(end - reach, 0) - 1, -1):
            for a in range(attributes):
                value = values[a, begin]
                if value < tests.distinct[a]:
                    known[a] += 1
                    different[a] += count[a, value] == 0
                    count[a, value] += 1
                    largest[a] = max(largest[a], count[a, value])
            if widen(low, high, codes[at[begin]]):
                cost = box_cost(low, high, layout, units)
            if end - begin < least_size or optimum[begin] >= INFINITE:
                continue
            value_of_run = optimum[begin] + (end - begin) * cost
            # Compare costs first: that is cheaper than the test of the requirements.
            if value_of_run < optimum[end] and class_holds(tests, end - begin, count, known, largest, different):
                optimum[end] = value_of_run
                back[end] = begin
    # Without a partition every place leads back to the start, and the cost is INFINITE.
    return optimum[n], back
