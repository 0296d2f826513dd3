"""Local search: records change classes as long as that has less loss and every class still meets the requirements.

A step is a move of a record to another class, an exchange of two records, an ejection (a record goes to the class it
costs least in, and a third class gives one in its stead), or a class that is dissolved, its records going to others one
by one. For each record in turn the best step is taken if it gains.

Costs are whole numbers and the order of the rows decides ties, so the result is the same everywhere. It can end after
any step.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    HIGH,
    LOW,
    OWNER,
    SIZE,
    cost_with,
    cost_without,
    holds_with,
    link,
    look_at,
    nearest_class,
    unlink,
)


@kernel
def search(part, classes, asked, tally, passes):
    """Improve the classes of a part, in at most so many passes over its rows: what is gained."""
    total = np.int64(0)
    for _ in range(passes):
        gained = np.int64(0)
        for row in range(len(part.codes)):
            gained += best_step(part, classes, row, asked, tally)
        for label in range(len(classes.about)):
            gained += dissolve(part, classes, label, asked, tally)
        total += gained
        if gained == 0:
            break
    return total


@kernel
def best_step(part, classes, row, asked, tally):
    """Take the best step that begins with a row, if it gains: what is gained."""
    own = classes.rows[row, OWNER]
    size, cost = classes.about[own, SIZE], classes.about[own, COST]
    if cost == 0:
        return np.int64(0)
    left = np.empty((1, 2, part.codes.shape[1]), np.int64)
    rest = cost_without(classes, own, part.codes, row, asked, left)
    may_leave = holds_with(part, classes, own, NONE, row, asked, tally)
    gain, other, to, third = np.int64(0), NONE, NONE, NONE
    if may_leave:
        saved = size * cost - (size - 1) * rest
        to, added = nearest_class(part, classes, row, asked, tally, saved)
        gain = saved - added
    if to == NONE:
        if rest == cost:
            return np.int64(0)
        gain, other = best_exchange(part, classes, row, asked, tally, left, rest)
        to = NONE if other == NONE else classes.rows[other, OWNER]
        if not may_leave:
            nearest, added = nearest_class(part, classes, row, asked, tally, size * (cost - rest))
            if nearest != NONE:
                more, ejected = best_ejection(part, classes, row, nearest, asked, tally, left, added, gain)
                if ejected != NONE:
                    gain, other, to, third = more, ejected, nearest, classes.rows[ejected, OWNER]
    if to != NONE:
        unlink(classes, row)
        link(classes, row, to)
        if other != NONE:
            unlink(classes, other)
            link(classes, other, own)
        look_at(part, classes, own, asked)
        look_at(part, classes, to, asked)
        if third != NONE:
            look_at(part, classes, third, asked)
    return gain


@kernel
def best_exchange(part, classes, row, asked, tally, left, rest):
    """What an exchange gains most, and the row of another class that it is with. left, rest: without the first."""
    codes, (rows, about, box), own = part.codes, classes, classes.rows[row, OWNER]
    own_size, own_cost = about[own, SIZE], about[own, COST]
    other_left = np.empty(left.shape, np.int64)
    potential = own_size * (own_cost - rest)
    gain, found = np.int64(0), NONE
    for label in range(len(about)):
        size, cost = about[label, SIZE], about[label, COST]
        if label == own or size == 0:
            continue
        # What the row adds to a class is mostly not made good by what leaves it.
        below = cost + min(potential + potential // 2, potential + size * cost) // size + 1
        if cost_with(box, label, codes, row, asked, below) >= below:
            continue
        other = about[label, FIRST]
        while other != NONE:
            here = cost_with(left, 0, codes, other, asked, own_cost)
            if here < own_cost:
                won = own_size * (own_cost - here)
                cost_without(classes, label, codes, other, asked, other_left)
                below = cost + (won - gain) // size + 1
                there = cost_with(other_left, 0, codes, row, asked, below)
                won -= size * (there - cost)
                if (
                    there < below
                    and won > gain
                    and holds_with(part, classes, own, other, row, asked, tally)
                    and holds_with(part, classes, label, row, other, asked, tally)
                ):
                    gain, found = won, other
            other = rows[other, AFTER]
    return gain, found


@kernel
def best_ejection(part, classes, row, to, asked, tally, left, added, least):
    """What it gains most, above ``least``, when ``row`` leaves for ``to`` and a row of a third class comes in: that."""
    codes, (rows, about, _), own = part.codes, classes, classes.rows[row, OWNER]
    own_size, own_cost = about[own, SIZE], about[own, COST]
    third_left = np.empty(left.shape, np.int64)
    gain, found = least, NONE
    for other in range(len(codes)):
        label = rows[other, OWNER]
        size, worth = about[label, SIZE], about[label, SIZE] * about[label, COST]
        if label == own or label == to or size <= asked.least:  # noqa: PLR1714, SIM109 - a tuple takes longer to compile
            continue
        here = cost_with(left, 0, codes, other, asked, own_cost + 1)
        won = own_size * (own_cost - here) - added
        if here > own_cost or won + worth <= gain:
            continue
        won += worth - (size - 1) * cost_without(classes, label, codes, other, asked, third_left)
        if (
            won > gain
            and holds_with(part, classes, own, other, row, asked, tally)
            and holds_with(part, classes, label, NONE, other, asked, tally)
        ):
            gain, found = won, other
    return gain, found


@kernel
def dissolve(part, classes, label, asked, tally):
    """Give the rows of a class to others, each where it costs least, if that gains: what is gained."""
    codes, (rows, about, box) = part.codes, classes
    count, worth = about[label, SIZE], about[label, SIZE] * about[label, COST]
    if worth == 0:
        return np.int64(0)
    leaving, targets = np.empty(count, np.int64), np.empty(count, np.int64)
    row, place = about[label, FIRST], 0
    while row != NONE:
        leaving[place] = row
        row, place = rows[row, AFTER], place + 1
    spent, gone = np.int64(0), 0
    while gone < count:
        row = leaving[gone]
        to, added = nearest_class(part, classes, row, asked, tally, worth - spent)
        if to == NONE:
            break
        spent += added
        targets[gone] = to
        unlink(classes, row)
        link(classes, row, to)
        about[to, COST] = 0
        for q in range(codes.shape[1]):
            box[to, LOW, q], box[to, HIGH, q] = (
                min(box[to, LOW, q], codes[row, q]),
                max(box[to, HIGH, q], codes[row, q]),
            )
            about[to, COST] += attribute_cost(asked.layout, asked.units, q, box[to, LOW, q], box[to, HIGH, q])
        gone += 1
    dissolved = gone == count
    if not dissolved:
        for place in range(gone):
            unlink(classes, leaving[place])
            link(classes, leaving[place], label)
    for place in range(gone):
        look_at(part, classes, targets[place], asked)
    look_at(part, classes, label, asked)
    return worth - spent if dissolved else np.int64(0)
