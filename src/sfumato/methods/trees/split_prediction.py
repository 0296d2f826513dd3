"""The split that gains most for what is to be predicted (LeFevre 2008, sections 3.1.1 to 3.1.3).

Of all allowable splits the one is taken whose gain, summed over the targets (eq. 5 and 6), is the largest; of equal
ones the first attribute's, and its lowest threshold. An attribute is divided as its domain branches where that is
allowable (null apart from the values, else a category into the children of the lowest taxonomy node that holds the
region), else at a threshold between two codes that occur.

Differs from the paper: where the children of a category have too few records, there are thresholds in the order of the
leaves, as with the median. Where the best gain of a record is below ``least_gain``, the region is divided at the median
(footnote 18, there for speed alone), and its parts are tried again: a class that depends on two attributes may gain by
neither alone. Regions where nothing is left to gain are divided at the median to the end; the paper leaves them open.
Targets of both kinds are each a share of what they are for the whole table. A gain below a millionth is none: so little
may be rounding.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.methods.trees.split_information_gain import purity_of_classes
from sfumato.methods.trees.split_median import cut_after
from sfumato.methods.trees.split_regression import purity_of_numbers
from sfumato.methods.trees.split_targets import AFTER, BEFORE, CLASSES, count_entries
from sfumato.methods.trees.split_tests import allowed_thresholds, frequency_set, least_of, natural_parts, parts_hold

NOTHING = 1e-6
SETTLED = -1
BRANCHES = -2  # stands for a split as the domain branches, where else the last group below a threshold does


@kernel
def split_by_targets(units, begin, end, low, high, ground, room, secrets, tasks, counters):
    """The split of a region: its attribute or NONE, and how many parts, in ``room``; SETTLED where none will be.

    low, high: int64[d], the smallest box around the units begin..end-1.
    """
    # A kernel is compiled anew for every constant that it is called with, so constants are made numbers like others.
    best, best_at, best_gain, settled = np.int64(NONE), np.int64(NONE), 0.0, False
    for attribute in range(len(low)):
        if low[attribute] == high[attribute] or settled:
            continue
        at, gain, settled = gain_of(
            units, attribute, begin, end, low[attribute], high[attribute], best_gain, ground, room, secrets, tasks,
            counters,
        )  # fmt: skip
        if at != NONE:
            best, best_at, best_gain = np.int64(attribute), at, gain
    if best == NONE:
        return NONE, SETTLED if settled else 0
    return best, take_split(units, best, best_at, begin, end, low[best], high[best], ground, room, secrets)


@kernel
def gain_of(units, attribute, begin, end, low, high, best_gain, ground, room, secrets, tasks, counters):
    """The split of a region on one attribute, whose codes are low..high, that gains most.

    BRANCHES or the last group below a threshold, NONE where no split gains enough and more than ``best_gain``; what it
    gains; and whether there is nothing to gain in the region at all.
    """
    groups = frequency_set(units, attribute, begin, end, low, high, room, secrets)
    parts = natural_parts(attribute, groups, ground, room)
    branches = parts > 0 and parts_hold(units, parts, ground, room, secrets)
    settled = add_gains(units, attribute, begin, end, low, high, groups, branches, tasks, room, counters)
    least_gain = max(max(tasks.least, NOTHING) * room.upto[groups], best_gain)
    at = np.int64(BRANCHES)
    if not branches:
        at = best_threshold(units, groups, least_gain, ground, room, secrets, counters.gain)
    gain = counters.gain[max(at, 0)]
    if at != NONE and gain >= least_gain and gain > best_gain:
        return at, gain, settled
    return np.int64(NONE), 0.0, settled


@kernel
def take_split(units, attribute, at, begin, end, low, high, ground, room, secrets):
    """Put a split that was found into ``room``: how many parts."""
    groups = frequency_set(units, attribute, begin, end, low, high, room, secrets)
    if at == BRANCHES:
        return natural_parts(attribute, groups, ground, room)
    cut_after(at, groups, room)
    return 2


@kernel
def best_threshold(units, groups, least_gain, ground, room, secrets, gain):
    """The last group below the allowable threshold that gains most, and ``least_gain`` at least; NONE without one.

    gain: float64, by group.
    """
    upto, total, least = room.upto, room.upto[groups], least_of(2, ground)
    best, best_gain = NONE, 0.0
    for group in range(groups - 1):
        if gain[group] > best_gain and min(upto[group + 1], total - upto[group + 1]) >= least:
            best, best_gain = group, gain[group]
    if secrets is None or best_gain < least_gain:
        return best if best_gain >= least_gain else NONE
    allowed = allowed_thresholds(units, groups, ground, room, secrets)
    best, best_gain = NONE, 0.0
    for group in range(groups - 1):
        if allowed[group] and gain[group] > best_gain:
            best, best_gain = group, gain[group]
    return best if best_gain >= least_gain else NONE


@kernel
def add_gains(units, attribute, begin, end, low, high, groups, branches, tasks, room, counters):
    """Fill ``counters.gain`` with what each threshold gains or, with ``branches``, the parts of ``room``: gain[0].

    Whether there is nothing to gain in the region and any part of it: all its records with the same features are of one
    class.
    """
    before, after, gain = counters.groups[BEFORE], counters.groups[AFTER], counters.gain
    zero, one = np.int64(0), np.int64(1)
    left, right = np.int64(BEFORE), np.int64(AFTER)
    settled = True
    for group in range(groups):
        gain[group] = 0.0
    for target in range(len(tasks.factor)):
        count_entries(units, target, attribute, begin, end, low, high, groups, tasks, room, counters)
        purity(target, zero, groups, one, tasks, counters, left)
        factor, whole = tasks.factor[target], before[groups - 1]
        settled = settled and tasks.targets[CLASSES, target] > 0 and whole == 0
        if branches:
            first, end_of_part, part, of_parts = zero, zero, 0, zero
            while first < groups:
                while end_of_part < groups and room.code[end_of_part] <= room.last[part]:
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


@kernel
def purity(target, begin, end, step, tasks, counters, side):
    """The purity of the groups from ``begin`` on, by the kind of the target."""
    classes = tasks.targets[CLASSES, target]
    if classes > 0:
        purity_of_classes(begin, end, step, classes, tasks, counters, side)
    else:
        purity_of_numbers(begin, end, step, counters, side)
