"""Repair of small classes: a class of fewer than k borrows records or is joined with another (see ``topdown``).

A class borrows the records that it lacks from one that can spare them, or is joined with another, whichever costs less
over all other classes: by what the penalty (size times NCP) of all records grows, or by the penalty of the repaired
class, as published. To find the cheapest partner, branch and bound searches a tree of boxes over all classes:
O(d log N) where boxes hardly overlap, O(N d) where all do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE, STACK_SIZE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.losses.exact_costs import attribute_cost, widen, widened_cost
from sfumato.methods.method import Records
from sfumato.tables.coding.domains import Codes

BY_GROWTH, BY_PENALTY = 0, 1  # what partners are compared by


class LinkedClasses(NamedTuple):
    """The classes during repair.

    A class is a linked list of entries, each some copies of a distinct record. record: uint32[entries], the record;
    held: int64[entries], the copies; after: int64[entries], the next entry or NONE; free: int64[1], the first unused
    entry. taken: int64[entries], working space.
    head, size, cost: int64[c], by class: its first entry, its number of records (0 once it was joined to another), and
    the cost of its box. low, high: uint[2 w, d], a tree of boxes: node i is above 2 i and 2 i + 1, class c is node
    w + c. The low codes of a node without records are above the high ones. lending: int64[2 w], by node, the cost of
    the costliest class below that has more than k records, NONE where there is none.
    """

    record: NDArray[np.uint32]
    held: NDArray[np.int64]
    after: NDArray[np.int64]
    free: NDArray[np.int64]
    taken: NDArray[np.int64]
    head: NDArray[np.int64]
    size: NDArray[np.int64]
    cost: NDArray[np.int64]
    low: Codes
    high: Codes
    lending: NDArray[np.int64]


def linked_classes(
    records: Records, weights: NDArray[np.int64], line: NDArray[np.uint32], cuts: NDArray[np.int64], k: int
) -> LinkedClasses:
    """Return the classes that begin at the cuts of the line."""
    count = len(cuts) - 1
    entries = len(line) + count  # a class borrows once, and then divides one entry
    nodes = 2 << (count - 1).bit_length()
    codes = records.codes
    classes = LinkedClasses(
        record=np.append(line, np.zeros(count, np.uint32)),
        held=np.append(weights[line], np.zeros(count, np.int64)),
        after=np.arange(1, entries + 1),
        free=np.array([len(line)]),
        taken=np.zeros(entries, np.int64),
        head=cuts[:-1].copy(),
        size=np.add.reduceat(weights[line], cuts[:-1]),
        cost=np.zeros(count, np.int64),
        low=np.full((nodes, codes.shape[1]), np.iinfo(codes.dtype).max, codes.dtype),
        high=np.zeros((nodes, codes.shape[1]), codes.dtype),
        lending=np.full(nodes, NONE, np.int64),
    )
    classes.after[cuts[1:] - 1] = NONE
    build_tree(classes, codes, k, records.costs.layout, records.costs.units)
    return classes


@kernel
def build_tree(classes, codes, k, layout, units):
    """Fill in the boxes and costs of all classes and nodes."""
    for group in range(len(classes.head)):
        fit_class(classes, codes, group, k, layout, units)
    for node in range(len(classes.low) // 2 - 1, 0, -1):
        fit_node(classes, node)


@inner_kernel
def fit_class(classes, codes, group, k, layout, units):
    """Compute the box and the cost of a class from its entries; a class without entries gets an empty box."""
    node = len(classes.low) // 2 + group
    for q in range(codes.shape[1]):
        classes.low[node, q], classes.high[node, q] = classes.low[0, q], classes.high[0, q]  # node 0 is above nothing
    entry = classes.head[group]
    while entry != NONE:
        widen(classes.low[node], classes.high[node], codes[classes.record[entry]])
        entry = classes.after[entry]
    classes.lending[node] = NONE
    if classes.size[group] > 0:
        classes.cost[group] = widened_cost(classes.low[node], classes.high[node], classes.low[node], layout, units)
        if classes.size[group] > k:
            classes.lending[node] = classes.cost[group]


@inner_kernel
def fit_node(classes, node):
    """Compute the box and the lending cost of a node from the two nodes below."""
    one, other = 2 * node, 2 * node + 1
    for q in range(classes.low.shape[1]):
        classes.low[node, q] = min(classes.low[one, q], classes.low[other, q])
        classes.high[node, q] = max(classes.high[one, q], classes.high[other, q])
    classes.lending[node] = max(classes.lending[one], classes.lending[other])


@inner_kernel
def refit(classes, codes, group, k, layout, units):
    """Update a class that has changed, and all nodes above it."""
    fit_class(classes, codes, group, k, layout, units)
    node = (len(classes.low) // 2 + group) // 2
    while node > 0:
        fit_node(classes, node)
        node //= 2


@kernel
def repair_classes(criterion, classes, codes, first, last, k, layout, units):
    """Bring the classes first..last-1 up to k, each in the cheapest way. The table must have k records.

    criterion: BY_GROWTH or BY_PENALTY.
    """
    low, high = np.empty(codes.shape[1], codes.dtype), np.empty(codes.shape[1], codes.dtype)
    for group in range(first, last):
        while 0 < classes.size[group] < k:
            other = cheapest_partner(criterion, classes, codes, group, k, low, high, layout, units)
            if classes.size[group] + classes.size[other] < 2 * k:
                join(classes, group, other)
            else:
                choose_loan(classes, codes, group, other, k, INFINITE, low, high, layout, units)
                move_loan(classes, group, other, k)
            refit(classes, codes, group, k, layout, units)
            refit(classes, codes, other, k, layout, units)


@inlined_kernel
def cheapest_partner(criterion, classes, codes, group, k, low, high, layout, units):
    """Return the class that is cheapest to join ``group`` with or to borrow from, the first among equals."""
    width = len(classes.low) // 2
    own, size = width + group, classes.size[group]
    by_growth = criterion == BY_GROWTH
    cost = classes.cost[group] if by_growth else np.int64(0)  # what its records pay before
    best, best_group = INFINITE, NONE
    waiting, bounds = np.empty(STACK_SIZE, np.int64), np.empty(STACK_SIZE, np.int64)
    waiting[0], bounds[0] = 1, 0
    left = 1
    while left > 0:
        left -= 1
        node, bound = waiting[left], bounds[left]
        if bound > best or (bound == best and first_class(node, width) > best_group):
            continue
        if node >= width:
            other = node - width
            if size + classes.size[other] < 2 * k:
                joined = joined_cost(classes.low, classes.high, own, classes.low, classes.high, node, layout, units)
                paid = classes.cost[other] if by_growth else np.int64(0)
                value = size * (joined - cost) + classes.size[other] * (joined - paid)
            else:
                paid = size * cost + ((k - size) * classes.cost[other] if by_growth else 0)
                repaired = choose_loan(classes, codes, group, other, k, (best + paid) // k, low, high, layout, units)
                value = k * repaired - paid if repaired < INFINITE else INFINITE
            if value < best or (value == best and other < best_group):
                best, best_group = value, other
            continue
        begin = left
        for child in range(2 * node, 2 * node + 2):
            if classes.low[child, 0] <= classes.high[child, 0] and child != own:
                # The smallest box that holds the class and touches the child: the ends of its box are exchanged.
                reached = joined_cost(classes.low, classes.high, own, classes.high, classes.low, child, layout, units)
                waiting[left], bounds[left] = child, size * (reached - cost)
                if by_growth and classes.lending[child] != NONE:
                    bounds[left] += min((k - size) * (reached - classes.lending[child]), 0)
                left += 1
        # Take next the node that holds the class itself, since near classes are below it; else the lower bound.
        if (
            left == begin + 2
            and not is_above(waiting[begin + 1], own)
            and (is_above(waiting[begin], own) or bounds[begin] <= bounds[begin + 1])
        ):
            waiting[begin], waiting[begin + 1] = waiting[begin + 1], waiting[begin]
            bounds[begin], bounds[begin + 1] = bounds[begin + 1], bounds[begin]
    return best_group


@inlined_kernel
def first_class(node, width):
    """Return the lowest class under a node."""
    while node < width:
        node *= 2
    return node - width


@inner_kernel
def is_above(node, leaf):
    """Return whether a node is the leaf, or above it."""
    while leaf > node:
        leaf //= 2
    return leaf == node


@inner_kernel
def joined_cost(low, high, node, other_low, other_high, other, layout, units):
    """Return the cost of the smallest box that holds the boxes of two nodes, row numbers of uint[., d]."""
    total = np.int64(0)
    for q in range(low.shape[1]):
        least, most = min(low[node, q], other_low[other, q]), max(high[node, q], other_high[other, q])
        total += attribute_cost(layout, units, q, np.int64(least), np.int64(most))
    return total


@inner_kernel
def choose_loan(classes, codes, group, lender, k, most, low, high, layout, units):
    """Mark in ``taken`` what the class borrows: in turn, the entry that widens its box least.

    Returns the cost of the repaired box, or INFINITE when that is above ``most``. low, high: uint[d], the box.
    """
    own = len(classes.low) // 2 + group
    for q in range(len(low)):
        low[q], high[q] = classes.low[own, q], classes.high[own, q]
    entry = classes.head[lender]
    while entry != NONE:
        classes.taken[entry] = 0
        entry = classes.after[entry]
    cost, lacking = np.int64(0), k - classes.size[group]
    while lacking > 0:
        best, cost = NONE, INFINITE
        entry = classes.head[lender]
        while entry != NONE:
            if classes.taken[entry] == 0:
                grown = widened_cost(low, high, codes[classes.record[entry]], layout, units)
                if grown < cost or (grown == cost and classes.record[entry] < classes.record[best]):
                    best, cost = entry, grown
            entry = classes.after[entry]
        if cost > most:
            return INFINITE
        classes.taken[best] = min(lacking, classes.held[best])
        lacking -= classes.taken[best]
        widen(low, high, codes[classes.record[best]])
    return cost


@inlined_kernel
def move_loan(classes, group, lender, k):
    """Move the entries in ``taken`` from the lender to the class."""
    classes.size[lender] -= k - classes.size[group]
    classes.size[group] = k
    before, entry = NONE, classes.head[lender]
    while entry != NONE:
        following, moved = classes.after[entry], entry
        if classes.taken[entry] < classes.held[entry]:
            before = entry
            if classes.taken[entry] > 0:
                moved = classes.free[0]
                classes.free[0] += 1
                classes.record[moved], classes.held[moved] = classes.record[entry], classes.taken[entry]
                classes.held[entry] -= classes.taken[entry]
        elif before == NONE:
            classes.head[lender] = following
        else:
            classes.after[before] = following
        if classes.taken[entry] > 0:
            classes.after[moved], classes.head[group] = classes.head[group], moved
        entry = following


@inlined_kernel
def join(classes, group, other):
    """Move all entries of the other class to the class."""
    last = classes.head[other]
    while classes.after[last] != NONE:
        last = classes.after[last]
    classes.after[last], classes.head[group] = classes.head[group], classes.head[other]
    classes.size[group] += classes.size[other]
    classes.head[other], classes.size[other] = NONE, 0


@kernel
def write_rows(classes, starts, rows, result):
    """Write the rows class by class. rows, result: uint32[n]; starts: int64[m + 1], where those of a record begin."""
    used = starts[:-1].copy()
    position = 0
    for group in range(len(classes.head)):
        entry = classes.head[group]
        while entry != NONE:
            record = classes.record[entry]
            for _ in range(classes.held[entry]):
                result[position] = rows[used[record]]
                used[record] += 1
                position += 1
            entry = classes.after[entry]
