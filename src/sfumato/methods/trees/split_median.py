"""Mondrian's median split: the widest attribute is divided at its median (LeFevre 2006; LeFevre 2008, section 2).

Attributes are tried in the order of their normalised range in the region, which is the NCP of the region on them times
the weight of the attribute, the widest first, until one has an allowable split: every part meets every
requirement. The first split tried on an attribute follows its domain: null is separated from the values, otherwise a
category is divided into the children of the lowest taxonomy node that holds the region. Next comes a threshold between
two codes:

- strict: after the value of the middle record, or before it where it is the largest.
- relaxed: at the middle record itself; records of its value may then be on either side, so that both sides have equally
  many.
- published: after the value of the middle record, otherwise before it, for numbers alone. A category is divided into
  the children of a node or not at all, whatever the requirements: LeFevre 2008, section 2.2, to the letter. Of equally
  wide attributes the first is tried first.

Strict and relaxed differ from the paper. Where the children of a category cannot be separated because one of them has
too few records, a threshold in the order of the leaves is tried too: otherwise one rare child would keep all others
together. It is the one nearest to the median; dividing the records of one category is the last resort. Where a
threshold is not allowable, the allowable threshold nearest to the median is taken, so that a class is left whole only
if no threshold divides it (the paper's "minimal"); with k alone that is the one before the median value. Of equally
wide attributes the one whose range has fewer codes is tried first, since it is decided sooner, then the first; of two
thresholds equally near to the median the lower one is taken.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import ABOVE_CODES, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.trees.split_tests import allowed_thresholds, frequency_set, natural_parts, parts_hold

STRICT_MEDIAN, RELAXED_MEDIAN, PUBLISHED_MEDIAN = 0, 1, 4  # see region_tree for the rules between them


@inlined_kernel
def split_by_median(rule, units, begin, end, low, high, shared, buffers, sensitive):
    """Split a region; return the attribute or NONE, the number of parts in ``buffers``, and a share (see ``divide``).

    low, high: int64[d], the smallest box around the units begin..end-1.
    """
    tried = low == high
    while True:
        attribute = widest(rule, tried, low, high, shared)
        if attribute == NONE:
            return NONE, 0, 0
        tried[attribute] = True
        if rule == PUBLISHED_MEDIAN:
            parts, share = published_of(
                units, attribute, begin, end, low[attribute], high[attribute], shared, buffers, sensitive
            )
        else:
            parts, share = median_of(
                rule, units, attribute, begin, end, low[attribute], high[attribute], shared, buffers, sensitive
            )
        if parts > 0:
            return attribute, parts, share


@kernel
def median_of(rule, units, attribute, begin, end, low, high, shared, buffers, sensitive):
    """Split a region on one attribute, with codes low..high; return the number of parts, 0 for none, and a share."""
    code, upto, ends = buffers.code, buffers.upto, buffers.ends
    groups = frequency_set(units, attribute, begin, end, low, high, buffers, sensitive)
    total = upto[groups]
    for step in range(3 if rule == RELAXED_MEDIAN else 2):
        parts, share = 2, ABOVE_CODES
        at_threshold = step > 0 and (rule == STRICT_MEDIAN or (step == 1) != shared.ordered[attribute])
        if step == 0:
            parts = natural_parts(attribute, groups, shared, buffers)
        elif at_threshold and shared.ordered[attribute]:
            middle_group = np.searchsorted(upto[: groups + 1], (total + 1) // 2) - 1
            cut_after(min(middle_group, groups - 2), groups, buffers)
        elif at_threshold:
            cut_after(nearest_to_median(upto, groups, np.ones(groups - 1, np.bool_)), groups, buffers)
        else:
            middle = total // 2
            group = np.searchsorted(upto[: groups + 1], middle) - 1
            cut_after(group, groups, buffers)
            share = middle - upto[group]
            if upto[group + 1] > middle:
                buffers.first[1] = code[group]  # both sides have this value
            ends[0] = middle
        holds = parts > 0 and parts_hold(units, parts, shared, buffers, sensitive)
        if at_threshold and not holds:
            group = nearest_to_median(upto, groups, allowed_thresholds(units, groups, shared, buffers, sensitive))
            holds = group != NONE
            if holds:
                cut_after(group, groups, buffers)
        if holds:
            return parts, share
    return 0, 0


@kernel
def widest(rule, tried, low, high, shared):
    """Return the attribute not tried yet on which the box low..high is widest, NONE when all were tried."""
    best, best_width, best_reach = NONE, -1.0, np.int64(0)
    for attribute in range(len(tried)):
        if not tried[attribute]:
            units = attribute_cost(shared.layout, shared.widths, attribute, low[attribute], high[attribute])
            # One division of whole numbers: attributes of the same share that are equally wide have equal results.
            width = units / shared.layout[attribute, 3] * shared.shares[attribute]
            reach = np.int64(0) if rule == PUBLISHED_MEDIAN else high[attribute] - low[attribute]
            if width > best_width or (width == best_width and reach < best_reach):
                best, best_width, best_reach = attribute, width, reach
    return best


@inlined_kernel
def published_of(units, attribute, begin, end, low, high, shared, buffers, sensitive):
    """Split a region on one attribute by the published rule. See ``median_of``."""
    groups = frequency_set(units, attribute, begin, end, low, high, buffers, sensitive)
    parts = natural_parts(attribute, groups, shared, buffers)
    if parts > 0 and parts_hold(units, parts, shared, buffers, sensitive):
        return parts, ABOVE_CODES
    if shared.ordered[attribute]:
        upto = buffers.upto
        middle = np.searchsorted(upto[: groups + 1], (upto[groups] + 1) // 2) - 1
        for group in (middle, middle - 1):
            if 0 <= group < groups - 1:
                cut_after(group, groups, buffers)
                if parts_hold(units, np.int64(2), shared, buffers, sensitive):
                    return 2, ABOVE_CODES
    return 0, 0


@inner_kernel
def nearest_to_median(upto, groups, allowed):
    """Return the last group below the allowed threshold that is nearest to the median, NONE where there is none.

    upto: int64, see SplitBuffers. allowed: bool[groups - 1].
    """
    best, nearest = NONE, upto[groups] + 1
    for group in range(groups - 1):
        distance = abs(2 * upto[group + 1] - upto[groups])
        if allowed[group] and distance < nearest:
            best, nearest = group, distance
    return best


@inner_kernel
def cut_after(group, groups, buffers):
    """Divide a frequency set into two parts: the groups up to ``group``, and those after it."""
    buffers.first[0], buffers.last[0], buffers.ends[0] = 0, buffers.code[group], buffers.upto[group + 1]
    buffers.first[1], buffers.last[1], buffers.ends[1] = buffers.code[group] + 1, ABOVE_CODES, buffers.upto[groups]
