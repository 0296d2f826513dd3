"""Chains: records take each other's places, several in turn, among the classes that are near to them.

A record leaves its class for another and takes the place of one there, which takes the place of one in a third class,
and so on; the last takes the place of the first, or is one more in some class if the first may leave its own. No class
is met twice, so the gains of the links add up, and every class on the way meets the requirements with the one instead
of the other. As in the search of Lin and Kernighan (1973) for short tours: the next link is the one that has gained
most so far, though that may be less than nothing, and of all ends the best is taken. From the first record the best few
links are followed, from there on one.

Under l-diversity a record that is in the wrong place can seldom go where it belongs: its value is there already. Its
equal in value has to leave, and so on; ``local_search``, which tries one and two at a time, ends early there.

Classes are tried by the rows near to a record (``near_rows``), not all of them: so thousands of classes are searched at
once. A record is looked at again only if a class near to it has changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    HIGH,
    HIGH2,
    LOW,
    LOW2,
    OWNER,
    SIZE,
    classes_of,
    cost_with,
    cost_without,
    count_of,
    holds_with,
    link,
    look_at,
    unlink,
)

LINKS = 4  # of a chain, at most
WIDTH = 3  # first links that are followed
DEEP = 12  # near rows that are looked at after the first link
GAIN, LENGTH, CLOSED, CLOCK = range(4)  # of Chain.best
MET, CHANGED = range(2)  # of Chain.classes


class Chain(NamedTuple):
    """Working space.

    rows: int64[2, LINKS + 1], whose places are taken: now, and in the best chain so far, at whose end without a close
    stands a row of the class to go to. best: int64[4], what it gains, its links, whether it closes; and a clock.
    begun: int64[2, WIDTH], first links and what they gain. classes: int64[c, 2], when a class was last met and last
    changed. left: int64[1, 2, d], the box of the first class without the first row.
    """

    rows: NDArray[np.int64]
    best: NDArray[np.int64]
    begun: NDArray[np.int64]
    classes: NDArray[np.int64]
    left: NDArray[np.int64]


@kernel
def chain_search(part, owner, near, asked, tally, passes):
    """Improve the classes of a part by chains, in at most so many passes over its rows: what is gained.

    owner: int64[n], the class of each row, changed; numbers without gaps. near: int64[n, ...], see near_rows.
    """
    n, count = len(owner), count_of(owner)
    classes = classes_of(part, owner, count, asked)
    chain = Chain(
        np.empty((2, LINKS + 1), np.int64),
        np.zeros(4, np.int64),
        np.empty((2, WIDTH), np.int64),
        np.zeros((count, 2), np.int64),
        np.empty((1, 2, part.codes.shape[1]), np.int64),
    )
    seen = np.empty(n, np.int64)
    for row in range(n):
        seen[row] = -1
    total = np.int64(0)
    for done in range(passes):
        gained = np.int64(0)
        for row in range(n):
            if is_new(classes, chain, near[row], row, seen[row]):
                # Chains of one link first: they gain most of it, and in less time.
                found = take_chain(part, classes, near, row, asked, tally, chain, WIDTH if done > 0 else 0)
                gained += found
                if found == 0 and done > 0:
                    seen[row] = chain.best[CLOCK]
        total += gained
        if gained == 0 and done > 0:
            break
    for row in range(n):
        owner[row] = classes.rows[row, OWNER]
    return total


@kernel
def is_new(classes, chain, near, row, seen):
    """Whether a row pays for its class and something near to it has changed since it was looked at."""
    own = classes.rows[row, OWNER]
    if classes.about[own, COST] == 0:
        return False
    changed = chain.classes[own, CHANGED]
    for other in near:
        if other == NONE or changed > seen:
            break
        changed = chain.classes[classes.rows[other, OWNER], CHANGED]
    return changed > seen


@kernel
def take_chain(part, classes, near, first, asked, tally, chain, width):
    """Take the best chain that begins with a row, if it gains: what is gained."""
    rows, about, own = classes.rows, classes.about, classes.rows[first, OWNER]
    size, cost = about[own, SIZE], about[own, COST]
    rest = cost_without(classes, own, part.codes, first, asked, chain.left)
    saved = -INFINITE
    if holds_with(part, classes, own, NONE, first, asked, tally):
        saved = size * cost - (size - 1) * rest
    most = max(saved, size * (cost - rest))
    best, met = chain.best, chain.classes
    best[GAIN] = 0
    if most <= 0:
        return np.int64(0)
    for place in range(width):
        chain.begun[0, place] = NONE
    best[CLOCK] += 1
    met[own, MET] = best[CLOCK]
    next_link(part, classes, near, first, first, 0, np.int64(0), saved, most, asked, tally, chain, width)
    for place in range(width):
        last, gain = chain.begun[0, place], chain.begun[1, place]
        if last == NONE:
            break
        best[CLOCK] += 1
        met[own, MET] = best[CLOCK]
        links = 0
        while links < LINKS and last != NONE and gain + most > best[GAIN]:
            met[rows[last, OWNER], MET] = best[CLOCK]
            chain.rows[0, links] = last
            links += 1
            last, gain = next_link(part, classes, near, first, last, links, gain, saved, most, asked, tally, chain, 0)
    if best[GAIN] > 0:
        apply_chain(part, classes, first, own, asked, chain)
    return best[GAIN]


@kernel
def next_link(part, classes, near, first, last, links, gain, saved, most, asked, tally, chain, width):
    """Try every end and every further link of a chain: the row whose place is best taken next, and the gain with it.

    The best end is kept in ``chain``, and with a ``width`` so many links as well.
    """
    codes, (rows, about, box), own = part.codes, classes, classes.rows[first, OWNER]
    own_size, own_cost = about[own, SIZE], about[own, COST]
    best, met, clock = chain.best, chain.classes, chain.best[CLOCK]
    found, most_gained = NONE, -INFINITE
    for place in range(near.shape[1] if links == 0 else min(DEEP, near.shape[1])):
        beside = near[last, place]
        if beside == NONE:
            break
        label = rows[beside, OWNER]
        if met[label, MET] == clock:
            continue
        repeated = False
        for before in range(place):
            repeated |= rows[near[last, before], OWNER] == label
        if repeated:
            continue
        size, cost = about[label, SIZE], about[label, COST]
        open_gain = gain + saved - best[GAIN]  # what may be added at most for an open end
        if cost < open_gain:
            below = (open_gain + cost * size) // (size + 1) + 1
            added = cost_with(box, label, codes, last, asked, below) * (size + 1) - cost * size
            if added < open_gain and holds_with(part, classes, label, last, NONE, asked, tally):
                keep(chain, links, beside, gain + saved - added, False)
        other = about[label, FIRST]
        while other != NONE:
            below = cost + (gain + most - best[GAIN]) // size + 1
            now = gain - size * (cost_instead(box, label, codes, last, other, asked, below) - cost)
            if now + most > best[GAIN]:
                limit = own_cost + max(now - best[GAIN], 0) // own_size + 1
                closed = now + own_size * (own_cost - cost_with(chain.left, 0, codes, other, asked, limit))
                if (closed > best[GAIN] or now > most_gained or width > 0) and holds_with(
                    part, classes, label, last, other, asked, tally
                ):
                    if closed > best[GAIN] and holds_with(part, classes, own, other, first, asked, tally):
                        keep(chain, links, other, closed, True)
                    if now > most_gained:
                        found, most_gained = other, now
                    begin_with(chain.begun, width, other, now)
            other = rows[other, AFTER]
    return found, most_gained


@kernel
def begin_with(begun, width, row, gain):
    """Keep a first link if it is among the best. begun: see Chain."""
    place = width - 1
    if width == 0 or (begun[0, place] != NONE and begun[1, place] >= gain):
        return
    while place > 0 and (begun[0, place - 1] == NONE or begun[1, place - 1] < gain):
        begun[0, place], begun[1, place] = begun[0, place - 1], begun[1, place - 1]
        place -= 1
    begun[0, place], begun[1, place] = row, gain


@kernel
def keep(chain, links, last, gain, closed):
    """Keep the chain as it is now, with one row more, as the best."""
    for place in range(links):
        chain.rows[1, place] = chain.rows[0, place]
    chain.rows[1, links] = last
    chain.best[GAIN], chain.best[LENGTH], chain.best[CLOSED] = gain, links + 1, closed


@kernel
def apply_chain(part, classes, first, own, asked, chain):
    """Put every row of the best chain where it goes."""
    length, closed, row = chain.best[LENGTH], chain.best[CLOSED], first
    chain.best[CLOCK] += 1
    for place in range(length):
        other = chain.rows[1, place]
        to = classes.rows[other, OWNER]
        unlink(classes, row)
        link(classes, row, to)
        row = other
    if closed:
        unlink(classes, row)
        link(classes, row, own)
    for place in range(-1, length):
        row = first if place < 0 else chain.rows[1, place]
        label = classes.rows[row, OWNER]
        look_at(part, classes, label, asked)
        chain.classes[label, CHANGED] = chain.best[CLOCK]
    look_at(part, classes, own, asked)
    chain.classes[own, CHANGED] = chain.best[CLOCK]


@kernel
def cost_instead(box, label, codes, row, less, asked, limit):
    """The cost of a class with a row in place of one of its own; any number from ``limit`` on where it is not below."""
    total = np.int64(0)
    for q in range(codes.shape[1]):
        code, out = codes[row, q], codes[less, q]
        low = box[label, LOW2 if out == box[label, LOW, q] else LOW, q]
        high = box[label, HIGH2 if out == box[label, HIGH, q] else HIGH, q]
        total += attribute_cost(asked.layout, asked.units, q, min(low, code), max(high, code))
        if total >= limit:
            break
    return total
