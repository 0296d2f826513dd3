"""The split rule of Mondrian: the widest attribute, at its median (LeFevre 2006; LeFevre 2008, section 2).

Attributes are tried in the order of their normalised range in the region, which is what the region would cost on them
(NCP times the attribute's weight), the widest first, until one has an allowable split: every part meets every
requirement. The first split that is tried on an attribute follows its domain: null apart from the values, else a
category into the children of the lowest taxonomy node that holds the region. Then comes a threshold between two codes:

- strict: after the value of the middle record, or before it where it is the largest.
- relaxed: at the middle record itself; records of its value may then be on either side, so that both have as many.

Differs from the paper: where the children of a category cannot be told apart because one of them has too few records,
there is a threshold too, in the order of the leaves: one rare child would else keep all others together. It is the one
nearest to the median; to divide the records of one category is the last resort. Where a threshold is not allowable and
more is asked for than k records, the allowable threshold nearest to the median is taken; with k alone, no other is
tried, as published. Of equally wide attributes the one whose range has fewer codes is tried first, since it is settled
sooner, then the first; of two thresholds equally near to the median the lower one is taken.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.trees.split_tests import BEYOND, allowed_thresholds, frequency_set, natural_parts, parts_hold

STRICT_MEDIAN, RELAXED_MEDIAN = 0, 1


@kernel
def split_by_median(rule, units, begin, end, low, high, ground, room, secrets):
    """The split of a region: its attribute or NONE, how many parts, in ``room``, and a share (see ``divide``).

    low, high: int64[d], the smallest box around the units begin..end-1.
    """
    tried = low == high
    while True:
        attribute = widest(tried, low, high, ground)
        if attribute == NONE:
            return NONE, 0, 0
        tried[attribute] = True
        parts, share = median_of(
            rule, units, attribute, begin, end, low[attribute], high[attribute], ground, room, secrets
        )
        if parts > 0:
            return attribute, parts, share


@kernel
def median_of(rule, units, attribute, begin, end, low, high, ground, room, secrets):
    """The split of a region on one attribute, whose codes are low..high: how many parts, 0 for none, and a share."""
    code, upto, ends = room.code, room.upto, room.ends
    groups = frequency_set(units, attribute, begin, end, low, high, room, secrets)
    total = upto[groups]
    for step in range(3 if rule == RELAXED_MEDIAN else 2):
        parts, share = 2, BEYOND
        at_threshold = step > 0 and (rule == STRICT_MEDIAN or (step == 1) != ground.ordered[attribute])
        if step == 0:
            parts = natural_parts(attribute, groups, ground, room)
        elif at_threshold and ground.ordered[attribute]:
            of_middle = np.searchsorted(upto[: groups + 1], (total + 1) // 2) - 1
            cut_after(min(of_middle, groups - 2), groups, room)
        elif at_threshold:
            cut_after(nearest_to_median(upto, groups, np.ones(groups - 1, np.bool_)), groups, room)
        else:
            middle = total // 2
            group = np.searchsorted(upto[: groups + 1], middle) - 1
            cut_after(group, groups, room)
            share = middle - upto[group]
            if upto[group + 1] > middle:
                room.first[1] = code[group]  # both sides have this value
            ends[0] = middle
        holds = parts > 0 and parts_hold(units, parts, ground, room, secrets)
        if secrets is not None and at_threshold and not holds:
            group = nearest_to_median(upto, groups, allowed_thresholds(units, groups, ground, room, secrets))
            holds = group != NONE
            if holds:
                cut_after(group, groups, room)
        if holds:
            return parts, share
    return 0, 0


@kernel
def widest(tried, low, high, ground):
    """The attribute, of those that were not tried, on which the box low..high is widest, NONE when all were."""
    best, best_cost, best_reach = NONE, np.int64(-1), np.int64(0)
    for attribute in range(len(tried)):
        if not tried[attribute]:
            cost = attribute_cost(ground.layout, ground.costs, attribute, low[attribute], high[attribute])
            reach = high[attribute] - low[attribute]
            if cost > best_cost or (cost == best_cost and reach < best_reach):
                best, best_cost, best_reach = attribute, cost, reach
    return best


@kernel
def nearest_to_median(upto, groups, allowed):
    """The last group below the allowed threshold that is nearest to the median, NONE where there is none.

    upto: int64, see Room. allowed: bool[groups - 1].
    """
    best, nearest = NONE, upto[groups] + 1
    for group in range(groups - 1):
        distance = abs(2 * upto[group + 1] - upto[groups])
        if allowed[group] and distance < nearest:
            best, nearest = group, distance
    return best


@kernel
def cut_after(group, groups, room):
    """Make two parts of a frequency set: up to ``group``, and the groups after it."""
    room.first[0], room.last[0], room.ends[0] = 0, room.code[group], room.upto[group + 1]
    room.first[1], room.last[1], room.ends[1] = room.code[group] + 1, BEYOND, room.upto[groups]
