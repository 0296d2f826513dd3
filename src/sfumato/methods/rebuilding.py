"""Rebuilding: some neighbouring classes are dissolved, formed anew by agglomeration, searched, and kept if better.

Local search ends where no single step gains. Taking a class and those nearest to it apart and putting them together
again leads out of there, and because they are few it takes little time: what is done again and again is small. Classes
that cost as much as before are taken too, so that the next try starts from somewhere else.

The random numbers are the kernel's own (xorshift64*, Vigna 2016), so that they are the same everywhere.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels import kernel
from sfumato.methods.agglomeration import agglomerate, increase
from sfumato.methods.classing import INFINITE, NONE, Part, classes_for, link, look_at, tally_for, unlink
from sfumato.methods.local_search import search

SPARE = 8  # classes that there may be more than before
SHUFFLE = 2  # how near a class is counts for more by up to one part in so many


@kernel
def drawn(state):  # type: ignore[no-untyped-def]
    """A random number. state: uint64[1], not 0."""
    number = state[0]
    number ^= number >> np.uint64(12)
    number ^= number << np.uint64(25)
    number ^= number >> np.uint64(27)
    state[0] = number
    return (number * np.uint64(2685821657736338717)) >> np.uint64(32)


@kernel
def rebuild(part, owner, asked, tests, first, tries, near, passes, state):  # type: ignore[no-untyped-def]
    """Improve the classes of a part by search and by so many tries to rebuild ``near`` of them: what is gained.

    owner: int64[n], the class of each row, changed; numbers need not be without gaps. tests: all requirements, None
    where there is nothing but the least size.
    """
    n, d = part.codes.shape
    most = owner.max() + 1 + SPARE
    classes = classes_for(n, d, most)
    for row in range(n):
        link(classes, row, owner[row])
    for label in range(most):
        look_at(part, classes, label, asked)
    tally = tally_for(n, tests)
    gained = search(part, classes, asked, tally, first)
    for _ in range(tries):
        gained += rebuild_once(part, classes, asked, tally, near, passes, state)
    for row in range(n):
        owner[row] = classes.owner[row]
    return gained


@kernel
def rebuild_once(part, classes, asked, tally, near, passes, state):  # type: ignore[no-untyped-def]
    """Rebuild the class of a row drawn at random and those near it, if that does not lose: what is gained."""
    size, cost = classes.size, classes.cost
    centre = classes.owner[np.int64(drawn(state) % np.uint64(len(part.codes)))]
    labels = np.empty(near, np.int64)
    count = neighbours(classes, centre, asked, labels, state)
    worth, rows = np.int64(0), 0
    for place in range(count):
        worth += size[labels[place]] * cost[labels[place]]
        rows += size[labels[place]]
    if count < 2 or worth == 0:
        return np.int64(0)
    inside = np.zeros(len(size), np.bool_)
    for place in range(count):
        inside[labels[place]] = True
    chosen, place = np.empty(rows, np.int64), 0
    for row in range(len(part.codes)):
        if inside[classes.owner[row]]:
            chosen[place] = row
            place += 1
    few = Part(part.codes[chosen], part.values[chosen])
    owner = np.empty(rows, np.int64)
    made = agglomerate(few, asked, tally, owner)
    again = classes_for(rows, part.codes.shape[1], made)
    for place in range(rows):
        link(again, place, owner[place])
    for label in range(made):
        look_at(few, again, label, asked)
    search(few, again, asked, tally, passes)
    total, left = np.int64(0), 0
    for label in range(made):
        total += again.size[label] * again.cost[label]
        left += again.size[label] > 0
    if total > worth:
        return np.int64(0)
    free = np.empty(left, np.int64)
    for place in range(min(left, count)):
        free[place] = labels[place]
    label = 0
    for place in range(count, left):
        while label < len(size) and size[label] > 0:
            label += 1
        if label == len(size):
            return np.int64(0)  # no room for so many
        free[place] = label
        label += 1
    for place in range(rows):
        unlink(classes, chosen[place])
    place = 0
    for label in range(made):
        if again.size[label] > 0:
            row = again.first[label]
            while row != NONE:
                link(classes, chosen[row], free[place])
                row = again.after[row]
            place += 1
    for place in range(left):
        look_at(part, classes, free[place], asked)
    for place in range(left, count):
        look_at(part, classes, labels[place], asked)
    return worth - total


@kernel
def neighbours(classes, centre, asked, labels, state):  # type: ignore[no-untyped-def]
    """Fill ``labels`` with a class and those that it would cost least to join it with, more or less: how many."""
    size = classes.size
    labels[0] = centre
    away = np.full(len(labels), INFINITE)
    away[0] = NONE
    count = 1
    for label in range(len(size)):
        if label == centre or size[label] == 0:
            continue
        limit = away[count - 1] if count == len(labels) else np.int64(INFINITE)
        added = increase(classes, centre, label, asked, limit)
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
