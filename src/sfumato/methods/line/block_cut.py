"""The optimal partition of a line of blocks under requirements that longer runs still meet.

A block is a record, or a class that already meets the requirements that joining would not bring about. A run of blocks
may be a class once it is long enough, and so may every longer run (the requirements are closed under addition, or the
blocks meet them and are closed under union). So for each last block there is a nearest first block, and a run that
could be cut into two classes never has less loss than the two: only shorter runs are tried, and the result is the exact
optimum over all partitions of the line into runs of blocks. Costs as in ``losses.exact_costs``; a tie goes to the
shorter run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE
from sfumato.kernels.decorator import inner_kernel, kernel
from sfumato.losses.exact_costs import Costs, box_cost, widen
from sfumato.tables.coding.domains import Codes

ADDED, REMOVED = np.int64(1), np.int64(-1)


def best_runs(
    codes: Codes,
    at: NDArray[np.uint32],
    starts: NDArray[np.int64],
    values: NDArray[np.uint32],
    distinct: NDArray[np.int64],
    least_size: int,
    least_distinct: NDArray[np.int64],
    costs: Costs,
) -> NDArray[np.int64]:
    """Return where the line is cut, both ends included. The whole line must meet the requirements.

    at: the record at each place. starts: int64[blocks + 1], where each block begins. values: uint32[a, places], the
    sensitive values, ``distinct[a]`` for null; a class must have ``least_distinct[a]`` different ones.
    """
    nearest = nearest_starts(starts, values, distinct, least_size, least_distinct)
    optimum, back = np.zeros((2, len(starts)), np.int64)
    box = np.zeros((2, codes.shape[1]), np.int64)
    cut_runs(codes, at, starts, nearest, costs.layout, costs.units, box, optimum, back)
    result: NDArray[np.int64] = starts[followed_back(back)]
    return result


def nearest_starts(
    starts: NDArray[np.int64],
    values: NDArray[np.uint32],
    distinct: NDArray[np.int64],
    least_size: int,
    least_distinct: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return for each block the nearest first block of a class that ends here, -1 for none: int64[blocks]."""
    nearest, different = np.empty(len(starts) - 1, np.int64), np.zeros(len(values), np.int64)
    counts = np.zeros((len(values), int(distinct.max(initial=0)) + 1), np.int64)
    find_nearest_starts(starts, values, distinct, least_size, least_distinct, counts, different, nearest)
    return nearest


def followed_back(back: NDArray[np.int64]) -> NDArray[np.int64]:
    """Follow the choices back from the end; return the cuts, ascending. back: int64[n + 1], begin of the last run."""
    cuts = np.empty(len(back), np.int64)
    return cuts[follow_back(back, cuts) :]


@kernel
def find_nearest_starts(starts, values, distinct, least_size, least_distinct, count, different, nearest):
    """Write for each block the nearest first block of a class that ends here, -1 for none: int64[blocks].

    count: int64[a, m], different: int64[a], how often each value occurs and how many do: all 0, overwritten.
    """
    begin = 0
    for end in range(len(nearest)):
        count_block(starts[end], starts[end + 1], values, distinct, ADDED, count, different)
        while begin < end and starts[end + 1] - starts[begin + 1] >= least_size:
            # Remove the first block; put it back if the run then fails.
            count_block(starts[begin], starts[begin + 1], values, distinct, REMOVED, count, different)
            if not enough_differ(different, least_distinct):
                count_block(starts[begin], starts[begin + 1], values, distinct, ADDED, count, different)
                break
            begin += 1
        enough = starts[end + 1] - starts[begin] >= least_size and enough_differ(different, least_distinct)
        nearest[end] = begin if enough else -1


@inner_kernel
def count_block(begin, end, values, distinct, sign, count, different):
    """Add the sensitive values of the places begin..end-1 to the counts, or subtract them with a sign of -1."""
    for a in range(values.shape[0]):
        for place in range(begin, end):
            value = values[a, place]
            if value < distinct[a]:
                before = count[a, value]
                count[a, value] = before + sign
                different[a] += (before + sign > 0) - (before > 0)


@inner_kernel
def enough_differ(different, least_distinct):
    """Return whether every attribute has as many different values as required."""
    enough = True
    for a in range(len(least_distinct)):
        enough = enough and different[a] >= least_distinct[a]
    return enough


@kernel
def cut_runs(codes, at, starts, nearest, layout, units, box, optimum, back):
    """Write for each number of blocks where the last run of their best partition begins to back: int64[blocks + 1].

    codes: uint[m, d], C-order; at: uint32[places]; nearest: int64[blocks]; layout, units: see losses.exact_costs.Costs.
    box: int64[2, d]; optimum, back: int64[blocks + 1], all 0; overwritten.
    """
    blocks, d, low, high = len(starts) - 1, codes.shape[1], box[0], box[1]
    for end in range(1, blocks + 1):
        optimum[end] = INFINITE
    for end in range(1, blocks + 1):
        latest = nearest[end - 1]
        if latest < 0:
            continue
        earliest = 0
        if latest > 0 and nearest[latest - 1] >= 0:
            earliest = nearest[latest - 1] + 1
        for q in range(d):
            low[q] = np.int64(codes[at[starts[end] - 1], q])
            high[q] = low[q]
        cost = np.int64(0)
        for begin in range(end - 1, earliest - 1, -1):
            changed = False
            for place in range(starts[begin], starts[begin + 1]):
                changed |= widen(low, high, codes[at[place]])
            if changed:
                cost = box_cost(low, high, layout, units)
            if begin <= latest and optimum[begin] < INFINITE:
                value = optimum[begin] + (starts[end] - starts[begin]) * cost
                if value < optimum[end]:
                    optimum[end] = value
                    back[end] = begin


@kernel
def follow_back(back, cuts):
    """Write the cuts to the end of ``cuts``, ascending; return where they begin. back, cuts: int64[n + 1]."""
    end, i = len(back) - 1, len(cuts) - 1
    while end > 0:
        cuts[i] = end
        end = back[end]
        i -= 1
    cuts[i] = 0
    return i
