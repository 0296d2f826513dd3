"""Local search: records change classes as long as that lowers the loss and every class still meets the requirements.

A step is a move of a record to another class; an exchange of two records; an ejection (a record goes to the class where
it costs least, and a third class gives one of its records in exchange); or the dissolution of a class, whose records go
to others one by one. For each record in turn the best step is taken if it gains.

Costs are integers and the order of the rows decides ties, so the result is the same everywhere. The search can stop
after any step.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    LEFT,
    OTHER_LEFT,
    OWNER,
    SIZE,
    cost_with,
    cost_without,
    holds_with,
    move,
    nearest_class,
    stays_class,
    update_class,
)
from sfumato.methods.search.shortfall import ATTRIBUTES
from sfumato.methods.search.whole_classes import dissolve


@inner_kernel
def search(codes, values, rows, facts, box, layout, units, least, lack, space, real, passes):
    """Improve the classes of a part in at most ``passes`` passes over its rows; return the gain."""
    total, gained, number = np.int64(0), np.int64(1), 0
    while number < passes and gained > 0:
        gained = np.int64(0)
        for row in range(len(codes)):
            gained += best_step(codes, values, rows, facts, box, row, layout, units, least, lack, space, real)
        for class_id in range(len(facts)):
            gained += dissolve(
                codes, values, rows, facts, box, class_id, layout, units, least, lack, space, real, np.int64(0)
            )
        total += gained
        number += 1
    return total


@inner_kernel
def best_step(codes, values, rows, facts, box, row, layout, units, least, lack, space, real):
    """Take the best step that begins with a row, if it gains; return the gain."""
    own = rows[row, OWNER]
    size, cost, rest = facts[own, SIZE], facts[own, COST], np.int64(0)
    gain, other, target, third, may_leave = np.int64(0), NONE, NONE, NONE, False
    if cost > 0:
        rest = cost_without(facts, box, own, codes, row, layout, units, LEFT)
        may_leave = holds_with(values, rows, facts, own, NONE, row, least, lack, space, real)
    # What the class saves if the row leaves it, or if another record takes its place for nothing.
    saved = size * cost - (size - 1) * rest if may_leave else size * (cost - rest)
    nearest, added = NONE, saved
    if saved > 0:
        nearest, added = nearest_class(
            codes, values, rows, facts, box, row, layout, units, least, lack, space, real, saved
        )
    if may_leave:
        gain, target = saved - added, nearest
    if target == NONE and rest < cost:
        gain, other = best_exchange(codes, values, rows, facts, box, row, layout, units, least, lack, space, real, rest)
        target = NONE if other == NONE else rows[other, OWNER]
        if nearest != NONE:
            ejection_gain, ejected = best_ejection(
                codes, values, rows, facts, box, row, layout, units, least, lack, space, real, nearest, added, gain
            )
            if ejected != NONE:
                gain, other, target, third = ejection_gain, ejected, nearest, rows[ejected, OWNER]
    if target != NONE:
        move(rows, facts, row, target)
        if other != NONE:
            move(rows, facts, other, own)
        for i in range(3):
            class_id = own if i == 0 else target if i == 1 else third
            if class_id != NONE:
                update_class(codes, rows, facts, box, class_id, layout, units)
    return gain


@inlined_kernel
def best_exchange(codes, values, rows, facts, box, row, layout, units, least, lack, space, real, rest):
    """Return the gain of the best exchange and the row to exchange with. rest: the cost of LEFT, without ``row``."""
    own = rows[row, OWNER]
    own_size, own_cost = facts[own, SIZE], facts[own, COST]
    potential = own_size * (own_cost - rest)
    gain, partner, is_counted = np.int64(0), NONE, space[ATTRIBUTES] > 0
    for class_id in range(len(facts)):
        size, cost, other = facts[class_id, SIZE], facts[class_id, COST], NONE
        if class_id != own and size > 0:
            # The cost that the row adds to a class is seldom saved by the row that leaves it.
            below = cost + min(potential + potential // 2, potential + size * cost) // size + 1
            if cost_with(box, class_id, codes, row, layout, units, below) < below:
                other = facts[class_id, FIRST]
        while other != NONE:
            cost_here = cost_with(box, LEFT, codes, other, layout, units, own_cost)
            if cost_here < own_cost:
                new_gain = own_size * (own_cost - cost_here)
                cost_without(facts, box, class_id, codes, other, layout, units, OTHER_LEFT)
                below = cost + (new_gain - gain) // size + 1
                cost_there = cost_with(box, OTHER_LEFT, codes, row, layout, units, below)
                new_gain -= size * (cost_there - cost)
                if (
                    cost_there < below
                    and new_gain > gain
                    and min(own_size, size) >= least
                    and (
                        not is_counted
                        or (
                            stays_class(values, rows, facts, own, other, row, least, lack, space, real)
                            and stays_class(values, rows, facts, class_id, row, other, least, lack, space, real)
                        )
                    )
                ):
                    gain, partner = new_gain, other
            other = rows[other, AFTER]
    return gain, partner


@inlined_kernel
def best_ejection(codes, values, rows, facts, box, row, layout, units, least, lack, space, real, to, added, least_gain):
    """Return the best gain above ``least_gain`` if ``row`` goes to ``to`` and a row of a third class comes, and it."""
    own = rows[row, OWNER]
    own_size, own_cost = facts[own, SIZE], facts[own, COST]
    gain, incoming, is_counted = least_gain, NONE, space[ATTRIBUTES] > 0
    for other in range(len(codes)):
        class_id = rows[other, OWNER]
        size, class_cost = facts[class_id, SIZE], facts[class_id, SIZE] * facts[class_id, COST]
        if class_id != own and class_id != to and size > least:  # noqa: PLR1714 - a tuple takes longer to compile
            cost_here = cost_with(box, LEFT, codes, other, layout, units, own_cost + 1)
            new_gain = own_size * (own_cost - cost_here) - added
            if cost_here <= own_cost and new_gain + class_cost > gain:
                new_gain += class_cost - (size - 1) * cost_without(
                    facts, box, class_id, codes, other, layout, units, OTHER_LEFT
                )
                if (
                    new_gain > gain
                    and own_size >= least
                    and (
                        not is_counted
                        or (
                            stays_class(values, rows, facts, own, other, row, least, lack, space, real)
                            and holds_with(values, rows, facts, class_id, NONE, other, least, lack, space, real)
                        )
                    )
                ):
                    gain, incoming = new_gain, other
    return gain, incoming
