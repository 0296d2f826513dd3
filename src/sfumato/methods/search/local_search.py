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
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    HIGH,
    LEAVING,
    LEFT,
    LOW,
    OTHER_LEFT,
    OWNER,
    SIZE,
    TARGET,
    cost_with,
    cost_without,
    holds_with,
    link,
    nearest_class,
    unlink,
    update_class,
)


@inner_kernel
def search(part, classes, rules, tally, passes):
    """Improve the classes of a part in at most ``passes`` passes over its rows; return the gain."""
    total = np.int64(0)
    for _ in range(passes):
        gained = np.int64(0)
        for row in range(len(part.codes)):
            gained += best_step(part, classes, row, rules, tally)
        for class_id in range(len(classes.facts)):
            gained += dissolve(part, classes, class_id, rules, tally)
        total += gained
        if gained == 0:
            break
    return total


@inlined_kernel
def best_step(part, classes, row, rules, tally):
    """Take the best step that begins with a row, if it gains; return the gain."""
    own = classes.rows[row, OWNER]
    size, cost = classes.facts[own, SIZE], classes.facts[own, COST]
    if cost == 0:
        return np.int64(0)
    rest = cost_without(classes.facts, classes.box, own, part.codes, row, rules.layout, rules.units, LEFT)
    may_leave = holds_with(part, classes, own, NONE, row, rules, tally)
    gain, other, target, third = np.int64(0), NONE, NONE, NONE
    if may_leave:
        saved = size * cost - (size - 1) * rest
        target, added = nearest_class(part, classes, row, rules, tally, saved)
        gain = saved - added
    if target == NONE:
        if rest == cost:
            return np.int64(0)
        gain, other = best_exchange(part, classes, row, rules, tally, rest)
        target = NONE if other == NONE else classes.rows[other, OWNER]
        if not may_leave:
            nearest, added = nearest_class(part, classes, row, rules, tally, size * (cost - rest))
            if nearest != NONE:
                ejection_gain, ejected = best_ejection(part, classes, row, nearest, rules, tally, added, gain)
                if ejected != NONE:
                    gain, other, target, third = ejection_gain, ejected, nearest, classes.rows[ejected, OWNER]
    if target != NONE:
        unlink(classes, row)
        link(classes, row, target)
        if other != NONE:
            unlink(classes, other)
            link(classes, other, own)
        update_class(part, classes, own, rules)
        update_class(part, classes, target, rules)
        if third != NONE:
            update_class(part, classes, third, rules)
    return gain


@inlined_kernel
def best_exchange(part, classes, row, rules, tally, rest):
    """Return the gain of the best exchange and the row to exchange with. rest: the cost of LEFT, without ``row``."""
    codes, (rows, facts, box), own = part.codes, classes, classes.rows[row, OWNER]
    (layout, units, least_size), is_counted = rules, len(tally.counts) > 0
    own_size, own_cost = facts[own, SIZE], facts[own, COST]
    potential = own_size * (own_cost - rest)
    gain, partner = np.int64(0), NONE
    for class_id in range(len(facts)):
        size, cost = facts[class_id, SIZE], facts[class_id, COST]
        if class_id == own or size == 0:
            continue
        # The cost that the row adds to a class is seldom saved by the row that leaves it.
        below = cost + min(potential + potential // 2, potential + size * cost) // size + 1
        if cost_with(box, class_id, codes, row, layout, units, below) >= below:
            continue
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
                    and own_size >= least_size
                    and size >= least_size
                    and (
                        not is_counted
                        or (
                            holds_with(part, classes, own, other, row, rules, tally)
                            and holds_with(part, classes, class_id, row, other, rules, tally)
                        )
                    )
                ):
                    gain, partner = new_gain, other
            other = rows[other, AFTER]
    return gain, partner


@inlined_kernel
def best_ejection(part, classes, row, to, rules, tally, added, least):
    """Return the best gain above ``least`` if ``row`` goes to ``to`` and a row of a third class comes in; and that."""
    codes, (rows, facts, box), own = part.codes, classes, classes.rows[row, OWNER]
    (layout, units, least_size), is_counted = rules, len(tally.counts) > 0
    own_size, own_cost = facts[own, SIZE], facts[own, COST]
    gain, incoming = least, NONE
    for other in range(len(codes)):
        class_id = rows[other, OWNER]
        size, class_cost = facts[class_id, SIZE], facts[class_id, SIZE] * facts[class_id, COST]
        if class_id == own or class_id == to or size <= least_size:  # noqa: PLR1714, SIM109 - a tuple takes longer to compile
            continue
        cost_here = cost_with(box, LEFT, codes, other, layout, units, own_cost + 1)
        new_gain = own_size * (own_cost - cost_here) - added
        if cost_here > own_cost or new_gain + class_cost <= gain:
            continue
        new_gain += class_cost - (size - 1) * cost_without(
            facts, box, class_id, codes, other, layout, units, OTHER_LEFT
        )
        if (
            new_gain > gain
            and own_size >= least_size
            and (
                not is_counted
                or (
                    holds_with(part, classes, own, other, row, rules, tally)
                    and holds_with(part, classes, class_id, NONE, other, rules, tally)
                )
            )
        ):
            gain, incoming = new_gain, other
    return gain, incoming


@inlined_kernel
def dissolve(part, classes, class_id, rules, tally):
    """Give the rows of a class to other classes, each where it costs least, if that gains; return the gain."""
    codes, (rows, facts, box), (layout, units, _) = part.codes, classes, rules
    count, saved = facts[class_id, SIZE], facts[class_id, SIZE] * facts[class_id, COST]
    if saved == 0:
        return np.int64(0)
    row, i = facts[class_id, FIRST], 0
    while row != NONE:
        rows[i, LEAVING] = row
        row, i = rows[row, AFTER], i + 1
    spent, moved = np.int64(0), 0
    while moved < count:
        row = rows[moved, LEAVING]
        target, added = nearest_class(part, classes, row, rules, tally, saved - spent)
        if target == NONE:
            break
        spent += added
        rows[moved, TARGET] = target
        unlink(classes, row)
        link(classes, row, target)
        facts[target, COST] = 0
        for q in range(codes.shape[1]):
            box[target, LOW, q], box[target, HIGH, q] = (
                min(box[target, LOW, q], codes[row, q]),
                max(box[target, HIGH, q], codes[row, q]),
            )
            facts[target, COST] += attribute_cost(layout, units, q, box[target, LOW, q], box[target, HIGH, q])
        moved += 1
    dissolved = moved == count
    if not dissolved:
        for i in range(moved):
            unlink(classes, rows[i, LEAVING])
            link(classes, rows[i, LEAVING], class_id)
    for i in range(moved):
        update_class(part, classes, rows[i, TARGET], rules)
    update_class(part, classes, class_id, rules)
    return saved - spent if dissolved else np.int64(0)
