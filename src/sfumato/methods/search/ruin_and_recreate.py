"""Rebuilding: some neighbouring classes are dissolved, formed anew by agglomeration, searched, and kept if better.

Local search ends where no single step gains. Taking a class and those nearest to it apart and putting them together
again leads out of there, and because they are few it takes little time: what is done again and again is small. Classes
that cost as much as before are taken too, so that the next try starts from somewhere else.

The random numbers are the kernel's own (xorshift64*, Vigna 2016), so that they are the same everywhere.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import kernel
from sfumato.methods.clustering.agglomeration import agglomerate, increase
from sfumato.methods.search.local_search import search
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    OWNER,
    SIZE,
    SearchPart,
    classes_of,
    link,
    look_at,
    unlink,
)

SPARE = 8  # classes that there may be more than before
SHUFFLE = 2  # how near a class is counts for more by up to one part in so many


@kernel
def drawn(state):
    """A random number. state: uint64[1], not 0."""
    number = state[0]
    number ^= number >> np.uint64(12)
    number ^= number << np.uint64(25)
    number ^= number >> np.uint64(27)
    state[0] = number
    return (number * np.uint64(2685821657736338717)) >> np.uint64(32)


@kernel
def rebuild(part, owner, most, asked, tally, first, tries, near, passes, state):
    """Improve the classes of a part by search and by so many tries to rebuild ``near`` of them: what is gained.

    owner: int64[n], the class of each row, below ``most``, changed; numbers need not be without gaps.
    """
    classes = classes_of(part, owner, most + SPARE, asked)
    gained = search(part, classes, asked, tally, first)
    labels = np.empty(near, np.int64)
    for _ in range(tries):
        centre = classes.rows[np.int64(drawn(state) % np.uint64(len(part.codes))), OWNER]
        count = neighbours(classes, centre, asked, labels, state)
        chosen, worth = rows_of(classes, labels, count)
        if count < 2 or worth == 0:
            continue
        few = part_of(part, chosen)
        made = agglomerate(few, asked, tally, owner)
        again = classes_of(few, owner, made, asked)
        search(few, again, asked, tally, passes)
        gained += take_over(part, classes, labels, count, worth, again, chosen, asked)
    for row in range(len(owner)):
        owner[row] = classes.rows[row, OWNER]
    return gained


@kernel
def part_of(part, chosen):
    """The part of the chosen rows: int64[n]."""
    codes = np.empty((len(chosen), part.codes.shape[1]), np.int64)
    values = np.empty((len(chosen), part.values.shape[1]), np.uint32)
    for place in range(len(chosen)):
        for q in range(codes.shape[1]):
            codes[place, q] = part.codes[chosen[place], q]
        for a in range(values.shape[1]):
            values[place, a] = part.values[chosen[place], a]
    return SearchPart(codes, values)


@kernel
def rows_of(classes, labels, count):
    """The rows of the first ``count`` classes that are named, ascending, and what they cost."""
    rows, about, _ = classes
    worth, size, inside = np.int64(0), 0, np.zeros(len(about), np.int64)
    for place in range(count):
        label = labels[place]
        worth += about[label, SIZE] * about[label, COST]
        size += about[label, SIZE]
        inside[label] = 1
    chosen, place = np.empty(size, np.int64), 0
    for row in range(len(rows)):
        if inside[rows[row, OWNER]]:
            chosen[place] = row
            place += 1
    return chosen, worth


@kernel
def take_over(part, classes, labels, count, worth, again, chosen, asked):
    """Put the new classes of the chosen rows in place of those that are named, if they cost no more: what is gained."""
    about = classes.about
    total, left = np.int64(0), 0
    for label in range(len(again.about)):
        total += again.about[label, SIZE] * again.about[label, COST]
        left += again.about[label, SIZE] > 0
    if total > worth:
        return np.int64(0)
    free, label = np.empty(max(left, count), np.int64), 0
    for place in range(count):
        free[place] = labels[place]
    for place in range(count, left):
        while label < len(about) and about[label, SIZE] > 0:
            label += 1
        if label == len(about):
            return np.int64(0)  # no room for so many
        free[place] = label
        label += 1
    for place in range(len(chosen)):
        unlink(classes, chosen[place])
    place = 0
    for label in range(len(again.about)):
        row = again.about[label, FIRST]
        place += row != NONE
        while row != NONE:
            link(classes, chosen[row], free[place - 1])
            row = again.rows[row, AFTER]
    for place in range(len(free)):
        look_at(part, classes, free[place], asked)
    return worth - total


@kernel
def neighbours(classes, centre, asked, labels, state):
    """Fill ``labels`` with a class and those that it would cost least to join it with, more or less: how many."""
    about = classes.about
    labels[0] = centre
    away = np.empty(len(labels), np.int64)
    count = 1
    for label in range(len(about)):
        if label == centre or about[label, SIZE] == 0:
            continue
        limit = away[count - 1] if count == len(labels) else np.int64(INFINITE)
        added = increase(about, classes.box, centre, label, asked, limit)
        added += added // SHUFFLE // 1024 * np.int64(drawn(state) % np.uint64(1024))
        if count == len(labels) and added >= away[count - 1]:
            continue
        count = min(count + 1, len(labels))
        place = count - 1
        while place > 1 and away[place - 1] > added:
            away[place], labels[place] = away[place - 1], labels[place - 1]
            place -= 1
        away[place], labels[place] = added, label
    return count
