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
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import SearchPart, SearchRules

NEAR = 32  # near rows that are kept for each row
OF_ONE_VALUE = 4  # of these may share a sensitive value; more if there are few values
TOGETHER = 256  # rows that are compared with each other


def near_rows(
    part: SearchPart, orders: list[NDArray[np.uint32]], distinct: int, rules: SearchRules
) -> NDArray[np.int64]:
    """Return the near rows of each row, the nearest first, then NONE: int64[n, NEAR].

    orders: the rows in the order of each tree. distinct: the number of sensitive values.
    """
    n = len(part.codes)
    near, costs = np.full((n, NEAR), NONE, np.int64), np.full((n, NEAR), INFINITE, np.int64)
    of_one_value = max(OF_ONE_VALUE, NEAR // max(distinct, 1) + 1)
    for order in orders:
        compare(part, order.astype(np.int64), TOGETHER, of_one_value, rules, near, costs)
    return near


@kernel
def compare(part, order, together, of_one_value, rules, near, costs):
    """Add to the near rows of each row those beside it in an order, if they are nearer.

    order: int64[n]. near, costs: int64[n, NEAR], the rows and the cost of one record with each, ascending.
    """
    (codes, values), (layout, units, _) = part, rules
    for begin in range(0, len(order), together):
        count = min(together, len(order) - begin)
        for i in range(count):
            row = order[begin + i]
            # Start with the next row and wrap around, so that equal rows do not all find the same one.
            for step in range(1, count):
                other = order[begin + (i + step) % count]
                limit, cost, q = costs[row, -1], np.int64(0), np.int64(0)
                while q < codes.shape[1] and cost < limit:
                    low, high = min(codes[row, q], codes[other, q]), max(codes[row, q], codes[other, q])
                    cost += attribute_cost(layout, units, q, low, high)
                    q += 1
                if cost < limit:
                    insert(codes, values, other, cost, of_one_value, near[row], costs[row])


@inlined_kernel
def insert(codes, values, other, cost, of_one_value, near, costs):
    """Insert a row among the near ones of another, unless its equal is there or enough nearer ones have its value."""
    i, same = len(near) - 1, 0
    for j in range(len(near)):
        present = near[j]
        if present == NONE:
            break
        if equal(values, present, other):
            if costs[j] == cost and equal(codes, present, other):
                return
            same += 1
            if same >= of_one_value:
                i = j  # replace the farthest row of the value, or one beyond enough of them
                break
    if costs[i] <= cost:
        return
    while i > 0 and costs[i - 1] > cost:
        near[i], costs[i] = near[i - 1], costs[i - 1]
        i -= 1
    near[i], costs[i] = other, cost


@inner_kernel
def equal(table, one, other):
    """Return whether two rows of a table are equal."""
    q = 0
    while q < table.shape[1] and table[one, q] == table[other, q]:
        q += 1
    return q == table.shape[1]
