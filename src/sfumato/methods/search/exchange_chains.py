"""Exchange chains: several records in turn take each other's places among near classes.

A record leaves its class for another and takes the place of one there, which takes the place of one in a third class,
and so on. The last takes the place of the first, or is added to some class if the first may leave its own. No class
occurs twice, so the gains of the links add up, and every class on the way must meet the requirements after its
replacement. As in the search of Lin and Kernighan (1973) for short tours, the next link is the one with the most gain
so far, even if that is negative, and of all ends the best is taken. From the first record the best few links are
followed, after that one.

Under l-diversity a record in the wrong class can seldom go where it belongs, because its value is there already. The
record with that value has to leave first, and so on; ``local_search``, which moves one or two records at a time, ends
early there.

Only the classes of the rows near a record (``near_rows``) are tried, so that thousands of classes can be searched at
once. A record is tried again only if a class near it has changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    HIGH,
    HIGH2,
    LEFT,
    LOW,
    LOW2,
    OWNER,
    SIZE,
    build_classes,
    class_count,
    cost_with,
    cost_without,
    holds_with,
    link,
    unlink,
    update_class,
)

LINKS = 4  # the longest chain
WIDTH = 3  # first links that are followed
DEEP = 12  # near rows that are tried after the first link
GAIN, LENGTH, CLOSED, CLOCK = range(4)  # entries of Chain.best
MET, CHANGED = range(2)  # columns of Chain.classes
NO_LINKS, OPEN_END, CLOSED_END = np.int64(0), np.int64(0), np.int64(1)


class Chain(NamedTuple):
    """Working space of the search for a chain.

    rows: int64[2, LINKS + 1], the rows whose places are taken, in the present and in the best chain; an open chain ends
    with a row of the class that the last one goes to. best: int64[4], the gain of the best chain, its number of links,
    whether it is closed; and a clock. begun: int64[2, WIDTH], first links and their gains. classes: int64[c, 2], when a
    class was last visited and last changed.
    """

    rows: NDArray[np.int64]
    best: NDArray[np.int64]
    begun: NDArray[np.int64]
    classes: NDArray[np.int64]


@kernel
def chain_search(part, owner, near, rules, tally, passes):
    """Improve the classes of a part by chains in at most ``passes`` passes over its rows; return the gain.

    owner: int64[n], the class of each row, numbered without gaps, changed. near: int64[n, ...], see near_rows.
    """
    n, count = len(owner), class_count(owner)
    classes = build_classes(part, owner, count, rules)
    chain = Chain(
        np.empty((2, LINKS + 1), np.int64),
        np.zeros(4, np.int64),
        np.empty((2, WIDTH), np.int64),
        np.zeros((count, 2), np.int64),
    )
    tried_at = np.empty(n, np.int64)
    for row in range(n):
        tried_at[row] = -1
    total = np.int64(0)
    for pass_number in range(passes):
        gained = np.int64(0)
        for row in range(n):
            if has_changed(classes, chain, near[row], row, tried_at[row]):
                # The first pass takes chains of one link: they bring most of the gain in less time.
                gain = take_chain(part, classes, near, row, rules, tally, chain, WIDTH if pass_number > 0 else 0)
                gained += gain
                if gain == 0 and pass_number > 0:
                    tried_at[row] = chain.best[CLOCK]
        total += gained
        if gained == 0 and pass_number > 0:
            break
    for row in range(n):
        owner[row] = classes.rows[row, OWNER]
    return total


@inlined_kernel
def has_changed(classes, chain, near, row, tried_at):
    """Return whether the class of a row costs anything and a class near it has changed since ``tried_at``."""
    own = classes.rows[row, OWNER]
    if classes.facts[own, COST] == 0:
        return False
    changed = chain.classes[own, CHANGED]
    for other in near:
        if other == NONE or changed > tried_at:
            break
        changed = chain.classes[classes.rows[other, OWNER], CHANGED]
    return changed > tried_at


@inlined_kernel
def take_chain(part, classes, near, first, rules, tally, chain, width):
    """Take the best chain that begins with a row, if it gains; return the gain."""
    rows, facts, own = classes.rows, classes.facts, classes.rows[first, OWNER]
    size, cost = facts[own, SIZE], facts[own, COST]
    rest = cost_without(facts, classes.box, own, part.codes, first, rules.layout, rules.units, LEFT)
    saved = -INFINITE
    if holds_with(part, classes, own, NONE, first, rules, tally):
        saved = size * cost - (size - 1) * rest
    most = max(saved, size * (cost - rest))
    best, met = chain.best, chain.classes
    best[GAIN] = 0
    if most <= 0:
        return np.int64(0)
    for start in range(width):
        chain.begun[0, start] = NONE
    best[CLOCK] += 1
    met[own, MET] = best[CLOCK]
    next_link(part, classes, near, first, first, NO_LINKS, NO_LINKS, saved, most, rules, tally, chain, width)
    for start in range(width):
        last, gain = chain.begun[0, start], chain.begun[1, start]
        if last == NONE:
            break
        best[CLOCK] += 1
        met[own, MET] = best[CLOCK]
        links = NO_LINKS
        while links < LINKS and last != NONE and gain + most > best[GAIN]:
            met[rows[last, OWNER], MET] = best[CLOCK]
            chain.rows[0, links] = last
            links += 1
            last, gain = next_link(
                part, classes, near, first, last, links, gain, saved, most, rules, tally, chain, NO_LINKS
            )
    if best[GAIN] > 0:
        apply_chain(part, classes, first, own, rules, chain)
    return best[GAIN]


@inner_kernel
def next_link(part, classes, near, first, last, links, gain, saved, most, rules, tally, chain, width):
    """Try every end and every further link of a chain; return the row of the best next link and the gain with it.

    The best end is kept in ``chain``, and the ``width`` best first links.
    """
    codes, (rows, facts, box), own = part.codes, classes, classes.rows[first, OWNER]
    (layout, units, least), is_counted = rules, len(tally.counts) > 0
    own_size, own_cost = facts[own, SIZE], facts[own, COST]
    best, met, clock = chain.best, chain.classes, chain.best[CLOCK]
    best_row, best_gain = NONE, -INFINITE
    for i in range(near.shape[1] if links == 0 else min(DEEP, near.shape[1])):
        near_row = near[last, i]
        if near_row == NONE:
            break
        class_id = rows[near_row, OWNER]
        if met[class_id, MET] == clock:
            continue
        repeated = False
        for j in range(i):
            repeated |= rows[near[last, j], OWNER] == class_id
        if repeated:
            continue
        size, cost = facts[class_id, SIZE], facts[class_id, COST]
        open_gain = gain + saved - best[GAIN]  # the most that an open end may add
        if cost < open_gain:
            below = (open_gain + cost * size) // (size + 1) + 1
            added = cost_with(box, class_id, codes, last, layout, units, below) * (size + 1) - cost * size
            if (
                added < open_gain
                and size + 1 >= least
                and (not is_counted or holds_with(part, classes, class_id, last, NONE, rules, tally))
            ):
                keep_best(chain, links, near_row, gain + saved - added, OPEN_END)
        other = facts[class_id, FIRST]
        while other != NONE:
            below = cost + (gain + most - best[GAIN]) // size + 1
            link_gain = gain - size * (cost_instead(box, class_id, codes, last, other, layout, units, below) - cost)
            if link_gain + most > best[GAIN]:
                limit = own_cost + max(link_gain - best[GAIN], 0) // own_size + 1
                closed = link_gain + own_size * (own_cost - cost_with(box, LEFT, codes, other, layout, units, limit))
                if (
                    (closed > best[GAIN] or link_gain > best_gain or width > 0)
                    and size >= least
                    and (not is_counted or holds_with(part, classes, class_id, last, other, rules, tally))
                ):
                    if (
                        closed > best[GAIN]
                        and own_size >= least
                        and (not is_counted or holds_with(part, classes, own, other, first, rules, tally))
                    ):
                        keep_best(chain, links, other, closed, CLOSED_END)
                    if link_gain > best_gain:
                        best_row, best_gain = other, link_gain
                    keep_first_link(chain.begun, width, other, link_gain)
            other = rows[other, AFTER]
    return best_row, best_gain


@inlined_kernel
def keep_first_link(begun, width, row, gain):
    """Insert a first link if it is among the best. begun: see Chain."""
    i = width - 1
    if width == 0 or (begun[0, i] != NONE and begun[1, i] >= gain):
        return
    while i > 0 and (begun[0, i - 1] == NONE or begun[1, i - 1] < gain):
        begun[0, i], begun[1, i] = begun[0, i - 1], begun[1, i - 1]
        i -= 1
    begun[0, i], begun[1, i] = row, gain


@inner_kernel
def keep_best(chain, links, last, gain, closed):
    """Record the present chain with one more row as the best."""
    for i in range(links):
        chain.rows[1, i] = chain.rows[0, i]
    chain.rows[1, links] = last
    chain.best[GAIN], chain.best[LENGTH], chain.best[CLOSED] = gain, links + 1, closed


@inlined_kernel
def apply_chain(part, classes, first, own, rules, chain):
    """Move every row of the best chain to its new class."""
    length, closed, row = chain.best[LENGTH], chain.best[CLOSED], first
    chain.best[CLOCK] += 1
    for i in range(length):
        other = chain.rows[1, i]
        target = classes.rows[other, OWNER]
        unlink(classes, row)
        link(classes, row, target)
        row = other
    if closed:
        unlink(classes, row)
        link(classes, row, own)
    for i in range(-1, length):
        row = first if i < 0 else chain.rows[1, i]
        class_id = classes.rows[row, OWNER]
        update_class(part, classes, class_id, rules)
        chain.classes[class_id, CHANGED] = chain.best[CLOCK]
    update_class(part, classes, own, rules)
    chain.classes[own, CHANGED] = chain.best[CLOCK]


@inner_kernel
def cost_instead(box, class_id, codes, row, less, layout, units, limit):
    """Return the cost of a class with ``row`` in place of ``less``; any number from ``limit`` up if it is not below."""
    total, q = np.int64(0), np.int64(0)
    while q < codes.shape[1] and total < limit:
        code, code_less = codes[row, q], codes[less, q]
        low = box[class_id, LOW2 if code_less == box[class_id, LOW, q] else LOW, q]
        high = box[class_id, HIGH2 if code_less == box[class_id, HIGH, q] else HIGH, q]
        total += attribute_cost(layout, units, q, min(low, code), max(high, code))
        q += 1
    return total
