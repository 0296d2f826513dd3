"""Near rows: for each row of a part of a table, rows that it could share a class with, of many sensitive values.

Rows are near if they cost little together. Each row is compared with those beside it in the order of a gain tree.
Several trees with different weights of the attributes make up for the neighbours that one tree separates. Among equal
rows, sensitive values included, one is enough. Only a few rows of each sensitive value are kept: if all near rows had
the row's own value, it would find no partner.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.kernels.heap import pop, push
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import SearchPart, SearchRules

NEAR = 32  # near rows that are kept for each row
OF_ONE_VALUE = 4  # of these may share a sensitive value; more if there are few values
TOGETHER = 256  # rows that are compared with each other
PLACE_BITS = 9  # enough for the place of a candidate, of which there are at most NEAR + TOGETHER
PLACES = (1 << PLACE_BITS) - 1


def near_rows(
    part: SearchPart, orders: list[NDArray[np.uint32]], distinct: int, rules: SearchRules
) -> NDArray[np.int64]:
    """Return the near rows of each row, the nearest first, then NONE: int64[n, NEAR].

    orders: the rows in the order of each tree. distinct: the number of sensitive values.
    """
    n = len(part.codes)
    near, costs = np.full((n, NEAR), NONE, np.int64), np.full((n, NEAR), INFINITE, np.int64)
    of_one_value = max(OF_ONE_VALUE, NEAR // max(distinct, 1) + 1)
    kinds = np.unique(part.values, axis=0, return_inverse=True)[1].reshape(n)
    count_of = np.zeros(n, np.int64)
    for order in orders:
        compare(
            part.codes, kinds, count_of, order.astype(np.int64), TOGETHER, of_one_value,
            rules.layout, rules.units, near, costs,
        )  # fmt: skip
    return near


@kernel
def compare(codes, kinds, count_of, order, together, of_one_value, layout, units, near, costs):
    """Choose the near rows of each row anew, from those that it has and those beside it in an order.

    kinds: int64[n], the number of the sensitive values of each row. count_of: int64[kinds], all 0. order: int64[n].
    near, costs: int64[n, NEAR], the rows and the cost of one record with each, ascending.
    """
    between, line, most = np.empty((together, together), np.int64), np.empty((3, together), np.int64), near.shape[1]
    candidates, heap = np.empty(most + together, np.int64), np.empty(most + together + 1, np.int64)
    nearest_of = np.empty((len(count_of), of_one_value), np.int64)
    for begin in range(0, len(order), together):
        count = min(together, len(order) - begin)
        fill_between(codes, order[begin : begin + count], layout, units, line, between)
        for i in range(count):
            row = order[begin + i]
            for j in range(most):
                candidates[j] = near[row, j]
                if near[row, j] != NONE:
                    keep(codes, kinds, candidates, j, costs[row, j], count_of, nearest_of)
            # Start with the next row and wrap around, so that equal rows do not all find the same one.
            for step in range(1, count):
                j = i + step if i + step < count else i + step - count
                candidates[most + step - 1] = order[begin + j]
                kind = kinds[order[begin + j]]
                if between[i, j] < costs[row, most - 1] and (
                    count_of[kind] < of_one_value or between[i, j] << PLACE_BITS < nearest_of[kind, of_one_value - 1]
                ):
                    keep(codes, kinds, candidates, most + step - 1, between[i, j], count_of, nearest_of)
            take_nearest(kinds, candidates, most + count - 1, heap, count_of, nearest_of, near, costs, row)


@inlined_kernel
def fill_between(codes, together, layout, units, line, between):
    """Fill in the cost of each of two rows that share a class, for all pairs of some rows.

    Attribute by attribute, with one look at each pair of codes: they are fewer than pairs of rows. line: int64[3, n],
    overwritten: the different codes, which of them each row has, and what each costs with one of them.
    """
    count = len(together)
    for i in range(count):
        for j in range(count):
            between[i, j] = 0
    for q in range(codes.shape[1]):
        different = np.int64(0)
        for i in range(count):
            code, place = codes[together[i], q], np.int64(0)
            while place < different and line[0, place] != code:
                place += 1
            line[0, place], line[1, i] = code, place
            different = max(different, place + 1)
        for one in range(different):
            code = line[0, one]
            for other in range(different):
                low, high = min(code, line[0, other]), max(code, line[0, other])
                line[2, other] = attribute_cost(layout, units, q, low, high)
            for i in range(count):
                if line[1, i] == one:
                    for j in range(count):
                        between[i, j] += line[2, line[1, j]]


@inner_kernel
def keep(codes, kinds, candidates, place, cost, count_of, nearest_of):
    """Keep a candidate if it is one of the nearest of its kind and none of them is its equal.

    nearest_of: int64[kinds, ...], ascending, the cost of each that is kept, and in the last bits its place among
    the candidates. count_of: int64[kinds], how many are kept.
    """
    row, key = candidates[place], (cost << PLACE_BITS) + place
    kind, is_there = kinds[row], False
    count = count_of[kind]
    for i in range(count):
        if nearest_of[kind, i] >> PLACE_BITS == cost:
            is_there |= equal(codes, candidates[nearest_of[kind, i] & PLACES], row)
    i = min(count, nearest_of.shape[1] - 1)
    if not is_there and (i == count or key < nearest_of[kind, i]):
        count_of[kind] = i + 1
        while i > 0 and nearest_of[kind, i - 1] > key:
            nearest_of[kind, i] = nearest_of[kind, i - 1]
            i -= 1
        nearest_of[kind, i] = key


@inner_kernel
def take_nearest(kinds, candidates, count, heap, count_of, nearest_of, near, costs, row):
    """Make the nearest of those that are kept the near rows of a row, and keep none. heap: overwritten."""
    heap[0] = 0
    for place in range(count):
        if candidates[place] != NONE:
            kind = kinds[candidates[place]]
            for i in range(count_of[kind]):
                push(heap, nearest_of[kind, i])
            count_of[kind] = 0
    taken = 0
    while heap[0] > 0 and taken < near.shape[1]:
        near[row, taken], costs[row, taken] = candidates[heap[1] & PLACES], heap[1] >> PLACE_BITS
        pop(heap)
        taken += 1


@inner_kernel
def equal(table, one, other):
    """Return whether two rows of a table are equal."""
    q = 0
    while q < table.shape[1] and table[one, q] == table[other, q]:
        q += 1
    return q == table.shape[1]
