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
    class_count,
    holds_with,
    lack_with,
    link,
    unlink,
    update_class,
)


@kernel
def repair(part, owner, near, rules, tally):
    """Make classes meet the requirements by exchanges, as far as possible; return the added cost.

    owner: int64[n], the class of each row, numbered without gaps, changed. near: int64[n, ...], see near_rows.
    """
    classes = build_classes(part, owner, class_count(owner), rules)
    tried = np.zeros(len(classes.facts), np.int64)
    spent, clock = np.int64(0), 0
    for class_id in range(len(classes.facts)):
        lack = lack_with(part, classes, class_id, NONE, NONE, rules, tally)
        while lack > 0:
            clock += 1
            cost, row, other = nearest_exchange(part, classes, class_id, lack, near, rules, tally, tried, clock)
            if row == NONE:
                break
            other_class = classes.rows[other, OWNER]
            unlink(classes, row)
            unlink(classes, other)
            link(classes, row, other_class)
            link(classes, other, class_id)
            update_class(part, classes, class_id, rules)
            update_class(part, classes, other_class, rules)
            spent += cost
            lack = lack_with(part, classes, class_id, NONE, NONE, rules, tally)
    for row in range(len(owner)):
        owner[row] = classes.rows[row, OWNER]
    return spent


@inlined_kernel
def nearest_exchange(part, classes, class_id, lack, near, rules, tally, tried, clock):
    """Return the cheapest exchange with a near class after which a class lacks less: its cost and the two rows or NONE.

    tried: int64[c], the clock when each class was last tried. The near rows of a class lead to near classes.
    """
    codes, (rows, facts, box), (layout, units, _) = part.codes, classes, rules
    size, cost = facts[class_id, SIZE], facts[class_id, COST]
    least, best_row, partner = INFINITE, NONE, NONE
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
                    if change < least:
                        other_cost = cost_instead(box, other_class, codes, row, other, layout, units, INFINITE)
                        change += facts[other_class, SIZE] * (other_cost - facts[other_class, COST])
                    if (
                        change < least
                        and lack_with(part, classes, class_id, other, row, rules, tally) < lack
                        and holds_with(part, classes, other_class, row, other, rules, tally)
                    ):
                        least, best_row, partner = change, row, other
                    row = rows[row, AFTER]
                other = rows[other, AFTER]
        member = rows[member, AFTER]
    return least, best_row, partner
