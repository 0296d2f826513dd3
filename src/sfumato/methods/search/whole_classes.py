"""Changes of whole classes: one is dissolved, or one is gathered from rows that other classes can spare.

Moves and exchanges of single rows never change how many classes there are: a class of the least size cannot give a row
away, and no row can begin a class alone. But most of what annealing gains, it gains by more and smaller classes.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    HIGH,
    LEAVING,
    LOW,
    OWNER,
    SIZE,
    TARGET,
    holds_with,
    lack_with,
    move,
    nearest_class,
    update_class,
)
from sfumato.methods.search.shortfall import ATTRIBUTES

LOOKED_AT = 3  # times as many near rows as a class needs: some are of classes that have given what they can spare


@inner_kernel
def dissolve(codes, values, rows, facts, box, class_id, layout, units, least, lack, space, real, allowed):
    """Give the rows of a class to other classes, each where it costs least; return the gain.

    Nothing is done, and the gain is 0, unless it is above ``-allowed``.
    """
    count, saved = facts[class_id, SIZE], facts[class_id, SIZE] * facts[class_id, COST]
    row, i = facts[class_id, FIRST] if saved > 0 else NONE, 0
    while row != NONE:
        rows[i, LEAVING] = row
        row, i = rows[row, AFTER], i + 1
    spent, moved, has_place = np.int64(0), np.int64(0), saved > 0
    while has_place and moved < count:
        row = rows[moved, LEAVING]
        target, added = nearest_class(
            codes, values, rows, facts, box, row, layout, units, least, lack, space, real, saved + allowed - spent
        )
        has_place = target != NONE
        if has_place:
            spent += added
            rows[moved, TARGET] = target
            move(rows, facts, row, target)
            widen_class(codes, facts, box, row, target, layout, units)
            moved += 1
    if not has_place:
        for i in range(moved):
            move(rows, facts, rows[i, LEAVING], class_id)
    update_targets(codes, rows, facts, box, moved, layout, units)
    if saved > 0:
        update_class(codes, rows, facts, box, class_id, layout, units)
    return saved - spent if has_place else np.int64(0)


@inlined_kernel
def widen_class(codes, facts, box, row, class_id, layout, units):
    """Widen the box of a class to hold a row, and update the cost of the class."""
    total = np.int64(0)
    for q in range(codes.shape[1]):
        low, high = min(box[class_id, LOW, q], codes[row, q]), max(box[class_id, HIGH, q], codes[row, q])
        box[class_id, LOW, q], box[class_id, HIGH, q] = low, high
        total += attribute_cost(layout, units, q, low, high)
    facts[class_id, COST] = total


@inner_kernel
def update_targets(codes, rows, facts, box, moved, layout, units):
    """Recompute each class that is a target of the first ``moved`` rows that left theirs; return what all cost now."""
    total = np.int64(0)
    for i in range(moved):
        target, is_first = rows[i, TARGET], True
        for j in range(i):
            is_first &= rows[j, TARGET] != target
        if is_first:
            update_class(codes, rows, facts, box, target, layout, units)
            total += facts[target, SIZE] * facts[target, COST]
    return total


@inlined_kernel
def gather(codes, values, rows, facts, box, row, layout, units, least, lack, space, real, allowed, distances):
    """Make a class of a row and the nearest rows that their classes can spare; return the gain.

    Nothing is done, and the gain is 0, unless it is above ``-allowed``. distances: int64[LOOKED_AT * least], working
    space.
    """
    made, gain, moved, found = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while made < len(facts) and facts[made, SIZE] > 0:
        made += 1
    own = rows[row, OWNER]
    if made < len(facts) and holds_with(values, rows, facts, own, NONE, row, least, lack, space, real):
        found = spare_rows(codes, rows, facts, row, layout, units, least, distances)
    is_counted = space[ATTRIBUTES] > 0
    lacking = INFINITE if is_counted else np.int64(least)
    for i in range(found):
        other = rows[i, LEAVING]
        donor, left = rows[other, OWNER], lacking
        if lacking > 0 and facts[donor, SIZE] > least:
            left = lacking - 1
            if is_counted:  # the class takes what brings it nearer to holding, and the others go on holding
                left = lack_with(values, rows, facts, made, other, NONE, least, lack, space, real)
                if not holds_with(values, rows, facts, donor, NONE, other, least, lack, space, real):
                    left = lacking
        if left < lacking:
            lacking = left
            rows[moved, LEAVING], rows[moved, TARGET] = other, donor
            move(rows, facts, other, made)
            moved += 1
    is_kept = lacking == 0
    if is_kept:
        for i in range(moved):  # what the classes that gave cost before, with all their rows
            donor, is_first = rows[i, TARGET], True
            for j in range(i):
                is_first &= rows[j, TARGET] != donor
            gain += facts[donor, COST] * (1 + (facts[donor, SIZE] if is_first else 0))
        gain -= update_targets(codes, rows, facts, box, moved, layout, units)
        update_class(codes, rows, facts, box, made, layout, units)
        gain -= facts[made, SIZE] * facts[made, COST]
        is_kept = gain > -allowed
    if not is_kept:
        gain = np.int64(0)
        for i in range(moved):
            move(rows, facts, rows[i, LEAVING], rows[i, TARGET])
        update_targets(codes, rows, facts, box, moved, layout, units)
    return gain


@inlined_kernel
def spare_rows(codes, rows, facts, row, layout, units, least, distances):
    """Write a row and the nearest rows of classes that can spare one, the nearest first; return how many.

    They are written to LEAVING, at most as many as ``distances`` has room for.
    """
    rows[0, LEAVING], distances[0], count = row, 0, 1
    for other in range(len(codes)):
        limit = distances[count - 1] if count == len(distances) else INFINITE
        total, q = np.int64(0), 0
        if other == row or facts[rows[other, OWNER], SIZE] <= least:
            total = limit
        while q < codes.shape[1] and total < limit:
            low, high = min(codes[row, q], codes[other, q]), max(codes[row, q], codes[other, q])
            total += attribute_cost(layout, units, q, low, high)
            q += 1
        if total < limit:
            count = min(count + 1, len(distances))
            i = count - 1
            while i > 1 and distances[i - 1] > total:
                distances[i], rows[i, LEAVING] = distances[i - 1], rows[i - 1, LEAVING]
                i -= 1
            distances[i], rows[i, LEAVING] = total, other
    return count
