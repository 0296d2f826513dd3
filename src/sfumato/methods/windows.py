"""The best consecutive partition of a line under any requirement that unions keep.

Requirements on a distribution (entropy, closeness and their like) are not closed under addition: a longer run may fail
where a shorter one held. So every run of up to ``reach`` places is tried:

    Opt(i) = min over j of Opt(j) + (i - j) * NCP(places j + 1 to i),    i - j <= reach, and the run holds

Exact over all partitions into runs of at most ``reach`` places. The reach is doubled until a partition exists and a
further doubling gains less than a thousandth; it is then the cap, and longer runs are not tried. Costs and ties as in
``blocks``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels import kernel
from sfumato.losses.costs import Costs, attribute_cost
from sfumato.methods.blocks import INFINITE, follow_back
from sfumato.requirements.measured import distribution_holds
from sfumato.tables.domains import Codes

FIRST_REACH = 64
GAIN = 1000  # a doubling must gain one part in so many


@dataclass(frozen=True)
class Tests:
    """The requirements of a run, as the kernel takes them.

    reference, numbers: float64[a, m], by sensitive attribute. whole: int64[t, 3], attribute, times (largest * times is
    at most the known) and least distinct. measured: int64[t, 3], attribute, kind, rank; bounds: float64[t].
    """

    distinct: NDArray[np.int64]
    reference: NDArray[np.float64]
    numbers: NDArray[np.float64]
    whole: NDArray[np.int64]
    measured: NDArray[np.int64]
    bounds: NDArray[np.float64]
    least_size: int


def best_windows(
    codes: Codes, at: NDArray[np.uint32], values: NDArray[np.uint32], tests: Tests, costs: Costs
) -> NDArray[np.int64]:
    """Where the line is cut, both ends included. The whole line must satisfy the requirements.

    values: uint32[a, n], the sensitive values of each place, ``distinct[a]`` for null.
    """

    def cut(reach: int) -> tuple[int, NDArray[np.int64]]:
        total, cuts = cut_windows(
            codes,
            at,
            values,
            tests.distinct,
            tests.reference,
            tests.numbers,
            tests.whole,
            tests.measured,
            tests.bounds,
            tests.least_size,
            reach,
            costs.layout,
            costs.units,
        )
        return int(total), cuts

    reach = min(max(FIRST_REACH, 4 * tests.least_size), len(at))
    total, cuts = cut(reach)
    while reach < len(at):
        reach = min(2 * reach, len(at))
        further, longer = cut(reach)
        settled = total < INFINITE and (total - further) * GAIN <= total
        total, cuts = further, longer
        if settled:
            break
    return cuts


@kernel
def cut_windows(  # type: ignore[no-untyped-def]
    codes, at, values, distinct, reference, numbers, whole, measured, bounds, least_size, reach, layout, units
):
    """The least cost and the cuts of the best partition into runs of at most ``reach`` places; see ``Tests``."""
    n, d = len(at), codes.shape[1]
    attributes, m = values.shape[0], reference.shape[1]
    optimum = np.full(n + 1, INFINITE, np.int64)
    optimum[0] = 0
    back = np.zeros(n + 1, np.int64)
    low, high = np.zeros(d, np.int64), np.zeros(d, np.int64)
    count = np.zeros((attributes, m + 1), np.int64)
    known, largest, different = (
        np.zeros(attributes, np.int64),
        np.zeros(attributes, np.int64),
        np.zeros(attributes, np.int64),
    )
    for end in range(1, n + 1):
        for a in range(attributes):
            known[a] = 0
            largest[a] = 0
            different[a] = 0
            for v in range(m + 1):
                count[a, v] = 0
        for q in range(d):
            low[q] = np.int64(codes[at[end - 1], q])
            high[q] = low[q]
        cost = 0
        for begin in range(end - 1, max(end - reach, 0) - 1, -1):
            for a in range(attributes):
                value = values[a, begin]
                if value < distinct[a]:
                    known[a] += 1
                    different[a] += count[a, value] == 0
                    count[a, value] += 1
                    largest[a] = max(largest[a], count[a, value])
            changed = False
            for q in range(d):
                code = np.int64(codes[at[begin], q])
                if code < low[q]:
                    low[q] = code
                    changed = True
                elif code > high[q]:
                    high[q] = code
                    changed = True
            if changed:
                cost = 0
                for q in range(d):
                    cost += attribute_cost(layout, units, q, low[q], high[q])
            if end - begin < least_size or optimum[begin] >= INFINITE:
                continue
            value_of_run = optimum[begin] + (end - begin) * cost
            if value_of_run >= optimum[end]:  # cheaper to see than whether the run holds
                continue
            holds = True
            for t in range(whole.shape[0]):
                a = whole[t, 0]
                if largest[a] * whole[t, 1] > known[a] or different[a] < whole[t, 2]:
                    holds = False
            for t in range(measured.shape[0]):
                a = measured[t, 0]
                if holds:
                    holds = distribution_holds(
                        measured[t, 1],
                        bounds[t],
                        measured[t, 2],
                        count[a, : distinct[a]],
                        known[a],
                        reference[a, : distinct[a]],
                        numbers[a, : distinct[a]],
                    )
            if holds:
                optimum[end] = value_of_run
                back[end] = begin
    # Without a partition every place leads back to the start, and the cost tells.
    return optimum[n], follow_back(back)
