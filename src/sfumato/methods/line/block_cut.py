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
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import Costs, box_cost, widen
from sfumato.tables.coding.domains import Codes


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
    cuts = cut_runs(codes, at, starts, nearest, costs.layout, costs.units)
    result: NDArray[np.int64] = starts[cuts]
    return result


@kernel
def nearest_starts(starts, values, distinct, least_size, least_distinct):
    """Return for each block the nearest first block of a class that ends here, -1 for none: int64[blocks]."""
    blocks, attributes = len(starts) - 1, values.shape[0]
    nearest = np.empty(blocks, np.int64)
    largest = 1
    for a in range(attributes):
        largest = max(largest, distinct[a] + 1)
    count = np.zeros((max(attributes, 1), largest), np.int64)
    different = np.zeros(max(attributes, 1), np.int64)
    begin = 0
    for end in range(blocks):
        count_block(starts[end], starts[end + 1], values, distinct, 1, count, different)
        while begin < end and starts[end + 1] - starts[begin + 1] >= least_size:
            # Remove the first block; put it back if the run then fails.
            count_block(starts[begin], starts[begin + 1], values, distinct, -1, count, different)
            if not enough_differ(different, least_distinct):
                count_block(starts[begin], starts[begin + 1], values, distinct, 1, count, different)
                break
            begin += 1
        enough = starts[end + 1] - starts[begin] >= least_size and enough_differ(different, least_distinct)
        nearest[end] = begin if enough else -1
    return nearest


@kernel
def count_block(begin, end, values, distinct, sign, count, different):
    """Add the sensitive values of the places begin..end-1 to the counts, or subtract them with a sign of -1."""
    for a in range(values.shape[0]):
        for place in range(begin, end):
            value = values[a, place]
            if value < distinct[a]:
                before = count[a, value]
                count[a, value] = before + sign
                different[a] += (before + sign > 0) - (before > 0)


@kernel
def enough_differ(different, least_distinct):
    """Return whether every attribute has as many different values as required."""
    enough = True
    for a in range(len(least_distinct)):
        enough = enough and different[a] >= least_distinct[a]
    return enough


@kernel
def cut_runs(codes, at, starts, nearest, layout, units):
    """Return the best cuts, as numbers of blocks, ascending from 0 to the number of blocks.

    codes: uint[m, d], C-order; at: uint32[places]; nearest: int64[blocks]; layout, units: see losses.exact_costs.Costs.
    """
    blocks, d = len(starts) - 1, codes.shape[1]
    optimum, back = np.zeros(blocks + 1, np.int64), np.zeros(blocks + 1, np.int64)
    for end in range(1, blocks + 1):
        optimum[end] = INFINITE
    low, high = np.zeros(d, np.int64), np.zeros(d, np.int64)
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
    return follow_back(back)


@kernel
def follow_back(back):
    """Follow the choices back from the end; return the cuts, ascending. back: int64[n + 1], begin of the last run."""
    classes, end = 0, len(back) - 1
    while end > 0:
        end = back[end]
        classes += 1
    cuts = np.zeros(classes + 1, np.int64)
    end = len(back) - 1
    while classes > 0:
        cuts[classes] = end
        end = back[end]
        classes -= 1
    return cuts
