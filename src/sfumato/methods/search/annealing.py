"""Annealing: records change classes, also at a loss, which becomes smaller and smaller until only gains are allowed.

Threshold accepting (Dueck and Scheuer, J. Computational Physics 1990) with thresholds drawn at random. A try draws a
record and one that is near to it. The record goes to the class of the near one, or takes the place there of the record
for which that costs least. What the change may cost is drawn between 0 and the heat, a multiple of what a record of the
two classes costs, which falls to 0. Where local search and rebuilding end, whole groups of classes would have to change
at once; heat takes them there step by step. Some tries dissolve a class instead, or gather one (``whole_classes``): so
there may be more classes or fewer.

Most of the loss is in few classes, in many tables a tenth of them. So a part with dear classes gets more tries, and no
try is spent on two classes that cost nothing.

Costs and thresholds are integers and the kernel draws its own random numbers, so the result is the same everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    LEFT,
    OTHER_LEFT,
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
from sfumato.methods.search.ruin_and_recreate import next_random
from sfumato.methods.search.shortfall import ATTRIBUTES
from sfumato.methods.search.whole_classes import LOOKED_AT, dissolve, gather

DRAWS = 1024  # thresholds that can be drawn
# One try in so many dissolves a class, and one gathers a class. Both take the longer, the larger a class must be.
WAYS, FEWEST_WAYS = 4, 32  # for each record that a class must have; at least
CLASS_HEAT = 3  # times as much as a change of one record may such a change cost
ONE = 1 << 16  # a heat of 1: as much as a record costs


class EqualRows(NamedTuple):
    """The rows of a part by kind: rows with equal codes are of one kind.

    kind: int64[n], the kind of each row. rows: int64[n], the rows of each kind together. starts: int64[kinds + 1].
    """

    kind: NDArray[np.int64]
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, records: NDArray[np.uint32]) -> EqualRows:
        """Group rows. records: the distinct record of each row."""
        _, kind, counts = np.unique(records, return_inverse=True, return_counts=True)
        return cls(kind, np.argsort(kind, kind="stable"), np.append(0, np.cumsum(counts)))


@kernel
def anneal(part, owner, most, rules, tests, kinds, near, tries, usual, heat, state):
    """Anneal the classes of a part; return the gain. Classes that would cost more than before are not kept.

    owner: int64[n], the class of each row, below ``most``, changed; then there may be gaps. kinds: see EqualRows.
    near: int64[kinds, m], filled with the nearest kinds of each. tries: for each row of a part whose rows cost
    ``usual``, more where they cost more. heat: at the beginning, in ONE.
    """
    (codes, values), (layout, units, least), (lack, space, real), (kind, equal, starts) = part, rules, tests, kinds
    rows, facts, box = build_classes(codes, owner, max(len(codes) // least, most), layout, units)
    distances, ways = np.empty(LOOKED_AT * least, np.int64), np.uint64(max(least * WAYS, FEWEST_WAYS))
    nearest_kinds(codes, equal, starts, layout, units, near)
    cost, gained = np.int64(0), np.int64(0)
    for class_id in range(most):
        cost += facts[class_id, SIZE] * facts[class_id, COST]
    steps, choices = tries * (len(codes) + cost // usual) // 2, np.uint64(near.shape[1])
    for step in range(steps if cost > 0 else 0):
        row = np.int64(next_random(state) % np.uint64(len(codes)))
        nearness = min(next_random(state) % choices, next_random(state) % choices)  # nearer ones are drawn more often
        near_kind = near[kind[row], np.int64(nearness)]
        first, count = starts[near_kind], starts[near_kind + 1] - starts[near_kind]
        beside = equal[first + np.int64(next_random(state) % np.uint64(count))]
        own, to = rows[row, OWNER], rows[beside, OWNER]
        worth = (facts[own, COST] + facts[to, COST]) // 2
        if worth > 0:
            hottest = worth * (heat - heat * step // steps) // ONE
            allowed = hottest * np.int64(next_random(state) % np.uint64(DRAWS)) // DRAWS
            way = next_random(state) % ways
            if way < 2:
                allowed *= CLASS_HEAT
            if way == 0:
                gained += dissolve(
                    codes, values, rows, facts, box, own, layout, units, least, lack, space, real, allowed
                )
            elif way == 1:
                gained += gather(
                    codes, values, rows, facts, box, row, layout, units, least, lack, space, real, allowed, distances
                )
            elif own != to:
                gained -= change(
                    codes, values, rows, facts, box, row, beside, layout, units, least, lack, space, real, allowed
                )
    if gained >= 0:
        for i in range(len(owner)):
            owner[i] = rows[i, OWNER]
    return max(gained, np.int64(0))


@inlined_kernel
def nearest_kinds(codes, equal, starts, layout, units, near):
    """Fill ``near`` with the nearest kinds of each kind: those that cost least together with it.

    A kind that has several rows is near to itself.
    """
    costs = np.empty(near.shape[1], np.int64)
    for kind in range(len(starts) - 1):
        row, is_single, count = equal[starts[kind]], starts[kind + 1] - starts[kind] == 1, 0
        for other_kind in range(len(starts) - 1):
            limit = costs[count - 1] if count == len(costs) else INFINITE
            other = equal[starts[other_kind]]
            total, q = limit if is_single and other_kind == kind else np.int64(0), 0
            while q < codes.shape[1] and total < limit:
                low, high = min(codes[row, q], codes[other, q]), max(codes[row, q], codes[other, q])
                total += attribute_cost(layout, units, q, low, high)
                q += 1
            if total < limit:
                count = min(count + 1, len(costs))
                i = count - 1
                while i > 0 and costs[i - 1] > total:
                    costs[i], near[kind, i] = costs[i - 1], near[kind, i - 1]
                    i -= 1
                costs[i], near[kind, i] = total, other_kind


@inlined_kernel
def change(codes, values, rows, facts, box, row, beside, layout, units, least, lack, space, real, allowed):
    """Put a row beside another if that costs at most ``allowed`` more; return what it costs, 0 if nothing is done.

    The row moves to the other class, or is exchanged with one of its rows, whatever costs less.
    """
    own, to = rows[row, OWNER], rows[beside, OWNER]
    own_size, own_cost, size, cost = facts[own, SIZE], facts[own, COST], facts[to, SIZE], facts[to, COST]
    rest = cost_without(facts, box, own, codes, row, layout, units, LEFT)
    spent, partner, is_found, is_counted = allowed + 1, NONE, False, space[ATTRIBUTES] > 0
    if own_size > least:
        saved = own_size * own_cost - (own_size - 1) * rest
        below = (spent + saved + size * cost) // (size + 1) + 1
        new_spent = cost_with(box, to, codes, row, layout, units, below) * (size + 1) - size * cost - saved
        if (
            new_spent < spent
            and size + 1 >= least
            and (
                not is_counted
                or (
                    holds_with(values, rows, facts, own, NONE, row, least, lack, space, real)
                    and stays_class(values, rows, facts, to, row, NONE, least, lack, space, real)
                )
            )
        ):
            spent, is_found = new_spent, True
    other = facts[to, FIRST]
    while other != NONE:
        below = own_cost + (spent + size * cost) // own_size + 1
        cost_here = cost_with(box, LEFT, codes, other, layout, units, below)
        if other != beside and cost_here < below:
            cost_without(facts, box, to, codes, other, layout, units, OTHER_LEFT)
            added = own_size * (cost_here - own_cost)
            below = cost + (spent - added) // size + 1
            new_spent = added + size * (cost_with(box, OTHER_LEFT, codes, row, layout, units, below) - cost)
            if new_spent < spent and (
                not is_counted
                or (
                    stays_class(values, rows, facts, own, other, row, least, lack, space, real)
                    and stays_class(values, rows, facts, to, row, other, least, lack, space, real)
                )
            ):
                spent, partner, is_found = new_spent, other, True
        other = rows[other, AFTER]
    if is_found:
        move(rows, facts, row, to)
        if partner != NONE:
            move(rows, facts, partner, own)
        update_class(codes, rows, facts, box, own, layout, units)
        update_class(codes, rows, facts, box, to, layout, units)
    return spent if is_found else np.int64(0)
