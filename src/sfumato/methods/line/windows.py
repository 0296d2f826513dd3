"""The best consecutive partition of a line under any requirement that the kernel of ``conjunction`` knows.

Requirements on a distribution (entropy, closeness and their like) are not closed under addition: a longer run may fail
where a shorter one held. So every run of up to ``reach`` places is tried:

    Opt(i) = min over j of Opt(j) + (i - j) * NCP(places j + 1 to i),    i - j <= reach, and the run holds

Exact over all partitions into runs of at most ``reach`` places. The reach is doubled until a partition exists and a
further doubling gains less than a thousandth; it is then the cap, and longer runs are not tried. Nor is a reach beyond
which more than ``MOST_RUNS`` runs would be looked at: where no partition was found by then, there is none here, and the
caller joins classes instead. Costs and ties as in ``blocks``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import Costs, box_cost, widen
from sfumato.methods.line.blocks import follow_back
from sfumato.requirements.conjunction import Conjunction, class_holds
from sfumato.tables.coding.domains import Codes

FIRST_REACH = 64
GAIN = 1000  # a doubling must gain one part in so many
MOST_RUNS = 1 << 29


def best_windows(
    codes: Codes,
    at: NDArray[np.uint32],
    values: NDArray[np.uint32],
    tests: Conjunction,
    least_size: int,
    costs: Costs,
) -> NDArray[np.int64] | None:
    """Where the line is cut, both ends included; none where the runs that are tried make no partition.

    values: uint32[a, n], the sensitive values of each place, ``distinct[a]`` for null.
    """

    def cut(reach: int) -> tuple[int, NDArray[np.int64]]:
        total, cuts = cut_windows(codes, at, values, tests, least_size, reach, costs.layout, costs.units)
        return int(total), cuts

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
    """The least cost and the cuts of the best partition into runs of at most ``reach`` places."""
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
            for one in range(m + 1):
                count[a, one] = 0
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
            # Cheaper to see than whether the run holds.
            if value_of_run < optimum[end] and class_holds(tests, end - begin, count, known, largest, different):
                optimum[end] = value_of_run
                back[end] = begin
    # Without a partition every place leads back to the start, and the cost tells.
    return optimum[n], follow_back(back)
