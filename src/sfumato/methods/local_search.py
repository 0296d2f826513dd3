"""Local search: records change classes as long as that has less loss and every class still meets the requirements.

A step is a move of a record to another class, an exchange of two records, an ejection (a record goes to the class it
costs least in, and a third class gives one in its stead), or a class that is dissolved, its records going to others one
by one. For each record in turn the best step is taken if it gains.

Costs are whole numbers and the order of the rows decides ties, so the result is the same everywhere. It can end after
any step.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels import kernel
from sfumato.losses.costs import box_cost
from sfumato.methods.classing import (
    NONE,
    cost_with,
    cost_without,
    holds_with,
    link,
    look_at,
    nearest_class,
    unlink,
)


@kernel
def search(part, classes, asked, tally, passes):  # type: ignore[no-untyped-def]
    """Improve the classes of a part, in at most so many passes over its rows: what is gained."""
    total = np.int64(0)
    for _ in range(passes):
        gained = np.int64(0)
        for row in range(len(part.codes)):
            gained += best_step(part, classes, row, asked, tally)
        for label in range(len(classes.size)):
            gained += dissolve(part, classes, label, asked, tally)
        total += gained
        if gained == 0:
            break
    return total


@kernel
def best_step(part, classes, row, asked, tally):  # type: ignore[no-untyped-def]
    """Take the best step that begins with a row, if it gains: what is gained."""
    codes, own = part.codes, classes.owner[row]
    size, cost = classes.size, classes.cost
    if cost[own] == 0:
        return np.int64(0)
    d = codes.shape[1]
    low, high = np.empty((1, d), np.int64), np.empty((1, d), np.int64)
    rest = cost_without(classes, own, codes, row, asked, low, high)
    may_leave = holds_with(part, classes, own, NONE, row, asked, tally)
    if may_leave:
        saved = size[own] * cost[own] - (size[own] - 1) * rest
        to, added = nearest_class(part, classes, row, asked, tally, saved)
        if to != NONE:
            unlink(classes, row)
            link(classes, row, to)
            look_at(part, classes, own, asked)
            look_at(part, classes, to, asked)
            return saved - added
    if rest == cost[own]:
        return np.int64(0)
    gain, other = best_exchange(part, classes, row, asked, tally, low, high, rest)
    if not may_leave:
        to, added = nearest_class(part, classes, row, asked, tally, size[own] * (cost[own] - rest))
        if to != NONE:
            more, third = best_ejection(part, classes, row, to, asked, tally, low, high, added, gain)
            if third != NONE:
                giving = classes.owner[third]
                unlink(classes, third)
                unlink(classes, row)
                link(classes, third, own)
                link(classes, row, to)
                look_at(part, classes, own, asked)
                look_at(part, classes, to, asked)
                look_at(part, classes, giving, asked)
                return more
    if other != NONE:
        label = classes.owner[other]
        unlink(classes, other)
        unlink(classes, row)
        link(classes, other, own)
        link(classes, row, label)
        look_at(part, classes, own, asked)
        look_at(part, classes, label, asked)
    return gain


@kernel
def best_exchange(part, classes, row, asked, tally, low, high, rest):  # type: ignore[no-untyped-def]
    """The row of another class with which an exchange gains most, and what it gains. low, high, rest: without it."""
    codes, own = part.codes, classes.owner[row]
    size, cost = classes.size, classes.cost
    other_low, other_high = np.empty_like(low), np.empty_like(high)
    potential = size[own] * (cost[own] - rest)
    gain, found = np.int64(0), NONE
    for label in range(len(size)):
        if label == own or size[label] == 0:
            continue
        # What the row adds to a class is mostly not made good by what leaves it.
        below = cost[label] + min(potential + potential // 2, potential + size[label] * cost[label]) // size[label] + 1
        if cost_with(classes.low, classes.high, label, codes, row, asked, below) >= below:
            continue
        other = classes.first[label]
        while other != NONE:
            here = cost_with(low, high, 0, codes, other, asked, cost[own])
            if here < cost[own]:
                won = size[own] * (cost[own] - here)
                cost_without(classes, label, codes, other, asked, other_low, other_high)
                below = cost[label] + (won - gain) // size[label] + 1
                there = cost_with(other_low, other_high, 0, codes, row, asked, below)
                won -= size[label] * (there - cost[label])
                if (
                    there < below
                    and won > gain
                    and holds_with(part, classes, own, other, row, asked, tally)
                    and holds_with(part, classes, label, row, other, asked, tally)
                ):
                    gain, found = won, other
            other = classes.after[other]
    return gain, found


@kernel
def best_ejection(part, classes, row, to, asked, tally, low, high, added, least):  # type: ignore[no-untyped-def]
    """The row of a third class to come in where ``row`` leaves for ``to``, and what that gains: above ``least``."""
    codes, own = part.codes, classes.owner[row]
    size, cost = classes.size, classes.cost
    third_low, third_high = np.empty_like(low), np.empty_like(high)
    gain, found = least, NONE
    for other in range(len(codes)):
        label = classes.owner[other]
        if label in (own, to) or size[label] <= asked.least:
            continue
        here = cost_with(low, high, 0, codes, other, asked, cost[own] + 1)
        won = size[own] * (cost[own] - here) - added
        if here > cost[own] or won + size[label] * cost[label] <= gain:
            continue
        without = cost_without(classes, label, codes, other, asked, third_low, third_high)
        won += size[label] * cost[label] - (size[label] - 1) * without
        if (
            won > gain
            and holds_with(part, classes, own, other, row, asked, tally)
            and holds_with(part, classes, label, NONE, other, asked, tally)
        ):
            gain, found = won, other
    return gain, found


@kernel
def dissolve(part, classes, label, asked, tally):  # type: ignore[no-untyped-def]
    """Give the rows of a class to others, each where it costs least, if that gains: what is gained."""
    codes, d = part.codes, part.codes.shape[1]
    count, worth = classes.size[label], classes.size[label] * classes.cost[label]
    if worth == 0:
        return np.int64(0)
    rows, targets = np.empty(count, np.int64), np.empty(count, np.int64)
    row, place = classes.first[label], 0
    while row != NONE:
        rows[place] = row
        row, place = classes.after[row], place + 1
    spent, gone = np.int64(0), 0
    while gone < count:
        row = rows[gone]
        to, added = nearest_class(part, classes, row, asked, tally, worth - spent)
        if to == NONE:
            break
        spent += added
        targets[gone] = to
        unlink(classes, row)
        link(classes, row, to)
        for q in range(d):
            code = np.int64(codes[row, q])
            classes.low[to, q] = min(classes.low[to, q], code)
            classes.high[to, q] = max(classes.high[to, q], code)
        classes.cost[to] = box_cost(classes.low[to], classes.high[to], asked.layout, asked.units)
        gone += 1
    dissolved = gone == count
    if not dissolved:
        for place in range(gone):
            unlink(classes, rows[place])
            link(classes, rows[place], label)
    for place in range(gone):
        look_at(part, classes, targets[place], asked)
    look_at(part, classes, label, asked)
    return worth - spent if dissolved else np.int64(0)
