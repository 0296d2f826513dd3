"""The split rule for selections (LeFevre 2008, section 3.2, eq. 7): regions that lie inside a selection or outside.

A selection from a release takes every record whose box meets it. The records among them that it should not return are
its imprecision. The rule takes the allowable split that lowers the sum of weight times imprecision most; among equal
ones that of the first attribute, and its lowest threshold. Where none lowers the sum, the next rule is tried.

Differs from the paper: the box of a part is the smallest box around the records of its region, cut at the codes of the
part that occur, since a release shows smallest boxes. If the edge of a selection lies between two codes that occur, the
threshold is put there, so that the regions suit future records. Attributes are divided as in ``split_prediction``.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import inlined_kernel
from sfumato.methods.trees.split_prediction import BRANCHES, best_threshold, take_split
from sfumato.methods.trees.split_targets import BEFORE
from sfumato.methods.trees.split_tests import WEIGHT, frequency_set, natural_parts, parts_hold


@inlined_kernel
def split_by_selection(units, begin, end, low, high, shared, buffers, sensitive, selected, counters):
    """Return the split of a region: its attribute or NONE, and the number of parts in ``buffers``.

    low, high: int64[d], the smallest box around the units begin..end-1.
    """
    best, best_at, best_gain = NONE, NONE, 0.0
    met = np.ones(len(selected.weights), np.bool_)
    for box in range(len(met)):
        for q in range(len(low)):
            met[box] = met[box] and selected.edges[0, box, q] <= high[q] and selected.edges[1, box, q] >= low[q]
    for attribute in range(len(low)):
        if low[attribute] == high[attribute]:
            continue
        groups = frequency_set(units, attribute, begin, end, low[attribute], high[attribute], buffers, sensitive)
        parts = natural_parts(attribute, groups, shared, buffers)
        branches = parts > 0 and parts_hold(units, parts, shared, buffers, sensitive)
        add_reductions(units, attribute, begin, end, groups, branches, met, selected, buffers, counters)
        at = np.int64(BRANCHES)
        if not branches:
            at = best_threshold(units, groups, best_gain, shared, buffers, sensitive, counters.gain)
        gain = counters.gain[max(at, 0)]
        if at != NONE and gain > best_gain:
            best, best_at, best_gain = np.int64(attribute), at, gain
    if best == NONE:
        return NONE, 0
    parts = take_split(units, best, best_at, begin, end, low[best], high[best], shared, buffers, sensitive)
    if best_at != BRANCHES:
        edge = edge_between(buffers.code[best_at], buffers.code[best_at + 1], best, met, selected)
        buffers.last[0], buffers.first[1] = edge, edge + 1
    return best, parts


@inlined_kernel
def add_reductions(units, attribute, begin, end, groups, branches, met, selected, buffers, counters):
    """Fill ``counters.gain`` with the imprecision that each threshold saves, or gain[0] with that of the parts.

    met: bool[s], which selections the box of the region meets.
    """
    codes, data = units
    code, upto, ends = buffers.code, buffers.upto, buffers.last
    outside, gain = counters.groups[BEFORE], counters.gain
    for group in range(groups):
        gain[group] = 0.0
    for box in range(len(met)):
        if not met[box]:
            continue
        lowest, highest = selected.edges[0, box, attribute], selected.edges[1, box, attribute]
        for group in range(groups):
            outside[group] = upto[group + 1] - upto[group]
        for unit in range(begin, end):
            inside = True
            for q in range(codes.shape[1]):
                inside = inside and selected.edges[0, box, q] <= codes[unit, q] <= selected.edges[1, box, q]
            if inside:
                first, last = 0, groups - 1
                while first < last:  # the group of its code
                    middle = (first + last) // 2
                    if code[middle] < codes[unit, attribute]:
                        first = middle + 1
                    else:
                        last = middle
                outside[first] -= data[unit, WEIGHT]
        for group in range(1, groups):
            outside[group] += outside[group - 1]
        whole = outside[groups - 1]
        if branches:
            left, first, part = np.int64(0), 0, 0
            while first < groups:
                group = first
                while group + 1 < groups and code[group + 1] <= ends[part]:
                    group += 1
                if code[group] >= lowest and code[first] <= highest:
                    left += outside[group] - (outside[first - 1] if first > 0 else 0)
                first, part = group + 1, part + 1
            gain[0] += selected.weights[box] * (whole - left)
        else:
            for group in range(groups - 1):
                left = outside[group] if code[group] >= lowest and code[0] <= highest else np.int64(0)
                if code[groups - 1] >= lowest and code[group + 1] <= highest:
                    left += whole - outside[group]
                gain[group] += selected.weights[box] * (whole - left)


@inlined_kernel
def edge_between(below, above, attribute, met, selected):
    """Return the last code below a threshold between two codes: at the edge of a selection where there is one."""
    for box in range(len(met)):
        if met[box]:
            for edge in (selected.edges[0, box, attribute] - 1, selected.edges[1, box, attribute]):
                if below <= edge < above:
                    return edge
    return below
