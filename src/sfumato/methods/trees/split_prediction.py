"""The split rule for targets: the split that best predicts them (LeFevre 2008, sections 3.1.1 to 3.1.3).

The rule takes the allowable split with the largest gain, summed over the targets (eq. 5 and 6); among equal ones that
of the first attribute, and its lowest threshold. An attribute is divided along the branches of its domain where that is
allowable (null is separated from the values, otherwise a category is divided into the children of the lowest taxonomy
node that holds the region), otherwise at a threshold between two codes that occur.

Differs from the paper: where the children of a category have too few records, thresholds in the order of the leaves are
tried, as with the median. Where the best gain per record is below ``least_gain``, the region is divided at the median
(footnote 18, there for speed alone), and its parts are tried again: a class that depends on two attributes may gain by
neither alone. Regions where nothing is left to gain are divided at the median to the end; the paper leaves this open.
If there are targets of both kinds, each counts as a share of its value for the whole table. A gain below a millionth
counts as none, since it may be rounding.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.methods.trees.split_information_gain import purity_of_classes
from sfumato.methods.trees.split_median import cut_after
from sfumato.methods.trees.split_regression import purity_of_numbers
from sfumato.methods.trees.split_targets import AFTER, BEFORE, CLASSES, count_entries
from sfumato.methods.trees.split_tests import (
    allowed_thresholds,
    frequency_set,
    least_of,
    natural_parts,
    parts_hold,
)

NOTHING = 1e-6  # a gain per record below this counts as none
SETTLED = -1  # in place of the number of parts: nothing is left to gain
BRANCHES = -2  # in place of the last group below a threshold: a split along the branches of the domain


@inlined_kernel
def split_by_targets(units, begin, end, low, high, shared, buffers, sensitive, tasks, counters):
    """Return the split of a region: its attribute or NONE, and the number of parts in ``buffers``, or SETTLED.

    low, high: int64[d], the smallest box around the units begin..end-1.
    """
    # A kernel is compiled again for every literal that it is called with, so literals are converted to int64.
    best, best_at, best_gain, settled = NONE, NONE, 0.0, False
    for attribute in range(len(low)):
        if low[attribute] == high[attribute] or settled:
            continue
        at, gain, settled = gain_of(
            units, attribute, begin, end, low[attribute], high[attribute], best_gain, shared, buffers, sensitive, tasks,
            counters,
        )  # fmt: skip
        if at != NONE:
            best, best_at, best_gain = np.int64(attribute), at, gain
    if best == NONE:
        return NONE, SETTLED if settled else 0
    return best, take_split(units, best, best_at, begin, end, low[best], high[best], shared, buffers, sensitive)


@kernel
def gain_of(units, attribute, begin, end, low, high, best_gain, shared, buffers, sensitive, tasks, counters):
    """Find the split of a region on one attribute, whose codes are low..high, with the largest gain.

    Returns BRANCHES or the last group below a threshold, or NONE where no split gains enough and more than
    ``best_gain``; the gain; and whether there is nothing to gain in the region at all.
    """
    groups = frequency_set(units, attribute, begin, end, low, high, buffers, sensitive)
    parts = natural_parts(attribute, groups, shared, buffers)
    branches = parts > 0 and parts_hold(units, parts, shared, buffers, sensitive)
    settled = add_gains(units, attribute, begin, end, low, high, groups, branches, tasks, buffers, counters)
    least_gain = max(max(tasks.least, NOTHING) * buffers.upto[groups], best_gain)
    at = np.int64(BRANCHES)
    if not branches:
        at = best_threshold(units, groups, least_gain, shared, buffers, sensitive, counters.gain)
    gain = counters.gain[max(at, 0)]
    if at != NONE and gain >= least_gain and gain > best_gain:
        return at, gain, settled
    return NONE, 0.0, settled


@kernel
def take_split(units, attribute, at, begin, end, low, high, shared, buffers, sensitive):
    """Write the parts of a split that ``gain_of`` found into ``buffers``; return their number."""
    groups = frequency_set(units, attribute, begin, end, low, high, buffers, sensitive)
    if at == BRANCHES:
        return natural_parts(attribute, groups, shared, buffers)
    cut_after(at, groups, buffers)
    return 2


@inner_kernel
def best_threshold(units, groups, least_gain, shared, buffers, sensitive, gain):
    """Return the last group below the allowable threshold with the largest gain, at least ``least_gain``, or NONE.

    gain: float64, by group.
    """
    upto, total, least = buffers.upto, buffers.upto[groups], least_of(np.int64(2), shared)
    best, best_gain = NONE, 0.0
    for group in range(groups - 1):
        if gain[group] > best_gain and min(upto[group + 1], total - upto[group + 1]) >= least:
            best, best_gain = group, gain[group]
    if sensitive is None or best_gain < least_gain:
        return best if best_gain >= least_gain else NONE
    allowed = allowed_thresholds(units, groups, shared, buffers, sensitive)
    best, best_gain = NONE, 0.0
    for group in range(groups - 1):
        if allowed[group] and gain[group] > best_gain:
            best, best_gain = group, gain[group]
    return best if best_gain >= least_gain else NONE


@inlined_kernel
def add_gains(units, attribute, begin, end, low, high, groups, branches, tasks, buffers, counters):
    """Fill ``counters.gain`` with the gain of each threshold or, with ``branches``, gain[0] with that of the parts.

    Returns whether there is nothing to gain in the region and any part of it: all its records with the same features
    have the same class.
    """
    before, after, gain = counters.groups[BEFORE], counters.groups[AFTER], counters.gain
    zero, one = np.int64(0), np.int64(1)
    left, right = np.int64(BEFORE), np.int64(AFTER)
    settled = True
    for group in range(groups):
        gain[group] = 0.0
    for target in range(len(tasks.factor)):
        count_entries(units, target, attribute, begin, end, low, high, groups, tasks, buffers, counters)
        purity(target, zero, groups, one, tasks, counters, left)
        factor, whole = tasks.factor[target], before[groups - 1]
        settled = settled and tasks.targets[CLASSES, target] > 0 and whole == 0
        if branches:
            first, end_of_part, part, of_parts = zero, zero, 0, zero
            while first < groups:
                while end_of_part < groups and buffers.code[end_of_part] <= buffers.last[part]:
                    end_of_part += one
                purity(target, first, end_of_part, one, tasks, counters, right)
                of_parts += after[end_of_part - 1]
                first, part = end_of_part, part + 1
            gain[0] += factor * (of_parts - whole)
        else:
            purity(target, groups - 1, -one, -one, tasks, counters, right)
            for group in range(groups - 1):
                gain[group] += factor * (before[group] + after[group + 1] - whole)
    return settled


@inner_kernel
def purity(target, begin, end, step, tasks, counters, side):
    """Compute the purity of the groups from ``begin`` on, by the kind of the target."""
    classes = tasks.targets[CLASSES, target]
    if classes > 0:
        purity_of_classes(begin, end, step, classes, tasks, counters, side)
    else:
        purity_of_numbers(begin, end, step, counters, side)
