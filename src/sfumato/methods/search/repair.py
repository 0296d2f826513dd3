"""Repair: classes that do not meet the requirements exchange records with near ones until they do.

Classes that are good for k alone mostly meet l-diversity too. Those that do not have too many records of one value.
Such a class repeatedly makes the cheapest exchange that brings it closer to the requirements and leaves the other class
meeting them. A class that cannot be repaired this way is left as it is.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, kernel
from sfumato.methods.search.exchange_chains import cost_instead
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    OWNER,
    SIZE,
    build_classes,
    holds_with,
    lack_with,
    move,
    update_class,
)


@kernel
def repair(part, owner, count, rules, tests, near):
    """Make classes meet the requirements by exchanges, as far as possible; return the added cost.

    owner: int64[n], the class of each row, below ``count``, changed. near: int64[n, ...], see near_rows.
    """
    (codes, values), (layout, units, least), (lack, space, real) = part, rules, tests
    rows, facts, box = build_classes(codes, owner, count, layout, units)
    tried = np.zeros(len(facts), np.int64)
    spent, clock = np.int64(0), 0
    for class_id in range(len(facts)):
        lacking = lack_with(values, rows, facts, class_id, NONE, NONE, least, lack, space, real)
        while lacking > 0:
            clock += 1
            cost, row, other = nearest_exchange(
                codes, values, rows, facts, box, class_id, lacking, near,
                layout, units, least, lack, space, real, tried, clock,
            )  # fmt: skip
            if row == NONE:
                break
            other_class = rows[other, OWNER]
            move(rows, facts, row, other_class)
            move(rows, facts, other, class_id)
            update_class(codes, rows, facts, box, class_id, layout, units)
            update_class(codes, rows, facts, box, other_class, layout, units)
            spent += cost
            lacking = lack_with(values, rows, facts, class_id, NONE, NONE, least, lack, space, real)
    for row in range(len(owner)):
        owner[row] = rows[row, OWNER]
    return spent


@inlined_kernel
def nearest_exchange(
    codes, values, rows, facts, box, class_id, lacking, near, layout, units, least, lack, space, real, tried, clock
):
    """Return the cheapest exchange with a near class after which a class lacks less: its cost and the two rows or NONE.

    tried: int64[c], the clock when each class was last tried. The near rows of a class lead to near classes.
    """
    size, cost = facts[class_id, SIZE], facts[class_id, COST]
    least_change, best_row, partner = INFINITE, NONE, NONE
    member = facts[class_id, FIRST]
    while member != NONE:
        for near_row in near[member]:
            if near_row == NONE:
                break
            other_class = rows[near_row, OWNER]
            if other_class == class_id or tried[other_class] == clock:
                continue
            tried[other_class] = clock
            other = facts[other_class, FIRST]
            while other != NONE:
                row = facts[class_id, FIRST]
                while row != NONE:
                    change = size * (cost_instead(box, class_id, codes, other, row, layout, units, INFINITE) - cost)
                    if change < least_change:
                        other_cost = cost_instead(box, other_class, codes, row, other, layout, units, INFINITE)
                        change += facts[other_class, SIZE] * (other_cost - facts[other_class, COST])
                    if (
                        change < least_change
                        and lack_with(values, rows, facts, class_id, other, row, least, lack, space, real) < lacking
                        and holds_with(values, rows, facts, other_class, row, other, least, lack, space, real)
                    ):
                        least_change, best_row, partner = change, row, other
                    row = rows[row, AFTER]
                other = rows[other, AFTER]
        member = rows[member, AFTER]
    return least_change, best_row, partner
