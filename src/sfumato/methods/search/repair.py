"""Repairing: classes that do not meet the requirements exchange records with near ones until they do.

Classes that are good for k alone mostly meet l-diversity too. Those that do not have too many records of one value:
the exchange that brings such a class nearer to holding at the least cost, and leaves the other one holding, is made
again and again. What cannot be repaired so is left as it is.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import kernel
from sfumato.methods.search.exchange_chains import cost_instead
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    OWNER,
    SIZE,
    classes_of,
    count_of,
    holds_with,
    link,
    look_at,
    unlink,
)


@kernel
def repair(part, owner, near, asked, tally):
    """Make classes hold by exchanges, as far as that goes: what that costs.

    owner: int64[n], the class of each row, changed; numbers without gaps. near: int64[n, ...], see near_rows.
    """
    classes = classes_of(part, owner, count_of(owner), asked)
    tried = np.zeros(len(classes.about), np.int64)
    spent, clock = np.int64(0), 0
    for label in range(len(classes.about)):
        lack = lack_instead(part, classes, label, NONE, NONE, asked, tally)
        while lack > 0:
            clock += 1
            cost, row, other = nearest_exchange(part, classes, label, lack, near, asked, tally, tried, clock)
            if row == NONE:
                break
            to = classes.rows[other, OWNER]
            unlink(classes, row)
            unlink(classes, other)
            link(classes, row, to)
            link(classes, other, label)
            look_at(part, classes, label, asked)
            look_at(part, classes, to, asked)
            spent += cost
            lack = lack_instead(part, classes, label, NONE, NONE, asked, tally)
    for row in range(len(owner)):
        owner[row] = classes.rows[row, OWNER]
    return spent


@kernel
def nearest_exchange(part, classes, label, lack, near, asked, tally, tried, clock):
    """The exchange with a near class after which a class lacks less: what it costs, and the two rows, NONE if none.

    tried: int64[c], the clock at which a class was last tried with; near rows of all rows of the class lead to them.
    """
    codes, (rows, about, box) = part.codes, classes
    size, cost = about[label, SIZE], about[label, COST]
    least, found, partner = INFINITE, NONE, NONE
    member = about[label, FIRST]
    while member != NONE:
        for beside in near[member]:
            if beside == NONE:
                break
            to = rows[beside, OWNER]
            if to == label or tried[to] == clock:
                continue
            tried[to] = clock
            other = about[to, FIRST]
            while other != NONE:
                row = about[label, FIRST]
                while row != NONE:
                    change = size * (cost_instead(box, label, codes, other, row, asked, INFINITE) - cost)
                    if change < least:
                        there = cost_instead(box, to, codes, row, other, asked, INFINITE)
                        change += about[to, SIZE] * (there - about[to, COST])
                    if (
                        change < least
                        and lack_instead(part, classes, label, other, row, asked, tally) < lack
                        and holds_with(part, classes, to, row, other, asked, tally)
                    ):
                        least, found, partner = change, row, other
                    row = rows[row, AFTER]
                other = rows[other, AFTER]
        member = rows[member, AFTER]
    return least, found, partner


@kernel
def lack_instead(part, classes, label, more, less, asked, tally):
    """What a class lacks to hold with one row more and one less; NONE for none."""
    row, count = classes.about[label, FIRST], 0
    while row != NONE:
        if row != less:
            tally.rows[count] = row
            count += 1
        row = classes.rows[row, AFTER]
    if more != NONE:
        tally.rows[count] = more
        count += 1
    return tally.lack(part.values, tally.rows, count, asked.least, tally.whole, tally.real, tally.counts)
