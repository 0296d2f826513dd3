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

import numpy as np

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inner_kernel, kernel
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
    cost_with,
    cost_without,
    holds_with,
    move,
    stays_class,
    update_class,
)
from sfumato.methods.search.shortfall import ATTRIBUTES

LINKS = 4  # the longest chain
WIDTH = 3  # first links that are followed
DEEP = 12  # near rows that are tried after the first link
# Lines of the working space ``chain``, int64[5, LINKS + 1]: the rows whose places are taken in the present and in the
# best chain, of which an open one ends with a row of the class that the last goes to; the facts of the best chain; the
# best first links, and their gains.
PRESENT, BEST, FACTS, BEGUN, BEGUN_GAIN, LINES = range(6)
# Facts: the gain, the number of links, whether it is closed; a clock, and how often a next link was searched for.
GAIN, LENGTH, CLOSED, CLOCK, SEARCHES = range(5)
MET, CHANGED, TRIED = range(3)  # columns of ``seen``, int64[c, 3]: when a class was last visited, changed, tried
NO_LINKS, OPEN_END, CLOSED_END = np.int64(0), np.int64(0), np.int64(1)


@kernel
def chain_search(part, owner, count, rules, tests, near, passes):
    """Improve the classes of a part by chains in at most ``passes`` passes over its rows; return the gain.

    owner: int64[n], the class of each row, below ``count``, changed. near: int64[n, ...], see near_rows.
    """
    (codes, values), (layout, units, least), (lack, space, real) = part, rules, tests
    n = len(owner)
    rows, facts, box = build_classes(codes, owner, count, layout, units)
    chain, seen = np.zeros((LINES, LINKS + 1), np.int64), np.zeros((count, 3), np.int64)
    tried_at = np.empty(n, np.int64)
    for row in range(n):
        tried_at[row] = -1
    total, gained, number = np.int64(0), np.int64(0), 0
    # The first pass takes chains of one link: they bring most of the gain in less time.
    while number < passes and (gained > 0 or number < 2):
        gained = np.int64(0)
        for row in range(n):
            if has_changed(rows, facts, seen, near, row, tried_at[row]):
                gain = take_chain(
                    codes, values, rows, facts, box, near, row, layout, units, least, lack, space, real, chain, seen,
                    WIDTH if number > 0 else 0,
                )  # fmt: skip
                gained += gain
                if gain == 0 and number > 0:
                    tried_at[row] = chain[FACTS, CLOCK]
        total += gained
        number += 1
    for row in range(n):
        owner[row] = rows[row, OWNER]
    return total


@inner_kernel
def has_changed(rows, facts, seen, near, row, tried_at):
    """Return whether the class of a row costs anything and a class near it has changed since ``tried_at``."""
    own, i = rows[row, OWNER], 0
    changed = seen[own, CHANGED]
    while i < near.shape[1] and near[row, i] != NONE and changed <= tried_at:
        changed = seen[rows[near[row, i], OWNER], CHANGED]
        i += 1
    return facts[own, COST] > 0 and changed > tried_at


@inner_kernel
def take_chain(
    codes, values, rows, facts, box, near, first, layout, units, least, lack, space, real, chain, seen, width
):
    """Take the best chain that begins with a row, if it gains; return the gain."""
    own = rows[first, OWNER]
    size, cost = facts[own, SIZE], facts[own, COST]
    rest = cost_without(facts, box, own, codes, first, layout, units, LEFT)
    saved = -INFINITE
    if holds_with(values, rows, facts, own, NONE, first, least, lack, space, real):
        saved = size * cost - (size - 1) * rest
    most = max(saved, size * (cost - rest))
    chain[FACTS, GAIN] = 0
    for start in range(width):
        chain[BEGUN, start], chain[BEGUN_GAIN, start] = NONE, -INFINITE
    if most > 0:
        chain[FACTS, CLOCK] += 1
        seen[own, MET] = chain[FACTS, CLOCK]
        next_link(
            codes, values, rows, facts, box, near, first, first, NO_LINKS, NO_LINKS, saved, most,
            layout, units, least, lack, space, real, chain, seen, width,
        )  # fmt: skip
    start = 0
    while most > 0 and start < width and chain[BEGUN, start] != NONE:
        last, gain = chain[BEGUN, start], chain[BEGUN_GAIN, start]
        chain[FACTS, CLOCK] += 1
        seen[own, MET] = chain[FACTS, CLOCK]
        links = NO_LINKS
        while links < LINKS and last != NONE and gain + most > chain[FACTS, GAIN]:
            seen[rows[last, OWNER], MET] = chain[FACTS, CLOCK]
            chain[PRESENT, links] = last
            links += 1
            last, gain = next_link(
                codes, values, rows, facts, box, near, first, last, links, gain, saved, most,
                layout, units, least, lack, space, real, chain, seen, NO_LINKS,
            )  # fmt: skip
        start += 1
    if chain[FACTS, GAIN] > 0:
        apply_chain(codes, rows, facts, box, first, own, layout, units, chain, seen)
    return chain[FACTS, GAIN]


@inner_kernel
def next_link(
    codes, values, rows, facts, box, near, first, last, links, gain, saved, most,
    layout, units, least, lack, space, real, chain, seen, width,
):  # fmt: skip
    """Try every end and every further link of a chain; return the row of the best next link and the gain with it.

    The best end is kept in ``chain``, and the ``width`` best first links.
    """
    own, clock = rows[first, OWNER], chain[FACTS, CLOCK]
    own_size, own_cost = facts[own, SIZE], facts[own, COST]
    best_row, best_gain, is_counted = NONE, -INFINITE, space[ATTRIBUTES] > 0
    i, tried = 0, near.shape[1] if links == 0 else min(DEEP, near.shape[1])
    searches = chain[FACTS, SEARCHES] + 1
    chain[FACTS, SEARCHES] = searches
    while i < tried and near[last, i] != NONE:
        near_row = near[last, i]
        class_id = rows[near_row, OWNER]
        is_new = seen[class_id, MET] != clock and seen[class_id, TRIED] != searches
        seen[class_id, TRIED] = searches
        i += 1
        size, cost, other = facts[class_id, SIZE], facts[class_id, COST], facts[class_id, FIRST] if is_new else NONE
        open_gain = gain + saved - chain[FACTS, GAIN]  # the most that an open end may add
        if is_new and cost < open_gain:
            below = (open_gain + cost * size) // (size + 1) + 1
            added = cost_with(box, class_id, codes, last, layout, units, below) * (size + 1) - cost * size
            if (
                added < open_gain
                and size + 1 >= least
                and (not is_counted or stays_class(values, rows, facts, class_id, last, NONE, least, lack, space, real))
            ):
                keep_best(chain, links, near_row, gain + saved - added, OPEN_END)
        while other != NONE:
            best = chain[FACTS, GAIN]
            below = cost + (gain + most - best) // size + 1
            link_gain = gain - size * (cost_instead(box, class_id, codes, last, other, layout, units, below) - cost)
            if link_gain + most > best:
                limit = own_cost + max(link_gain - best, 0) // own_size + 1
                closed = link_gain + own_size * (own_cost - cost_with(box, LEFT, codes, other, layout, units, limit))
                if (
                    (closed > best or link_gain > best_gain or (width > 0 and link_gain > chain[BEGUN_GAIN, width - 1]))
                    and size >= least
                    and (
                        not is_counted
                        or stays_class(values, rows, facts, class_id, last, other, least, lack, space, real)
                    )
                ):
                    if (
                        closed > best
                        and own_size >= least
                        and (
                            not is_counted
                            or stays_class(values, rows, facts, own, other, first, least, lack, space, real)
                        )
                    ):
                        keep_best(chain, links, other, closed, CLOSED_END)
                    if link_gain > best_gain:
                        best_row, best_gain = other, link_gain
                    keep_first_link(chain, width, other, link_gain)
            other = rows[other, AFTER]
    return best_row, best_gain


@inner_kernel
def keep_first_link(chain, width, row, gain):
    """Insert a first link if it is among the ``width`` best."""
    i = width - 1
    if width > 0 and chain[BEGUN_GAIN, i] < gain:
        while i > 0 and chain[BEGUN_GAIN, i - 1] < gain:
            chain[BEGUN, i], chain[BEGUN_GAIN, i] = chain[BEGUN, i - 1], chain[BEGUN_GAIN, i - 1]
            i -= 1
        chain[BEGUN, i], chain[BEGUN_GAIN, i] = row, gain


@inner_kernel
def keep_best(chain, links, last, gain, closed):
    """Record the present chain with one more row as the best."""
    for i in range(links):
        chain[BEST, i] = chain[PRESENT, i]
    chain[BEST, links] = last
    chain[FACTS, GAIN], chain[FACTS, LENGTH], chain[FACTS, CLOSED] = gain, links + 1, closed


@inner_kernel
def apply_chain(codes, rows, facts, box, first, own, layout, units, chain, seen):
    """Move every row of the best chain to its new class."""
    length, row = chain[FACTS, LENGTH], first
    chain[FACTS, CLOCK] += 1
    for i in range(length):
        other = chain[BEST, i]
        target = rows[other, OWNER]
        move(rows, facts, row, target)
        row = other
    if chain[FACTS, CLOSED]:
        move(rows, facts, row, own)
    for i in range(-1, length):
        row = first if i < 0 else chain[BEST, i]
        class_id = rows[row, OWNER]
        update_class(codes, rows, facts, box, class_id, layout, units)
        seen[class_id, CHANGED] = chain[FACTS, CLOCK]
    update_class(codes, rows, facts, box, own, layout, units)
    seen[own, CHANGED] = chain[FACTS, CLOCK]


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
