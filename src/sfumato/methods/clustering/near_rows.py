"""For each row of a part of a table, rows that it could share a class with: near ones, of many sensitive values.

Near is what costs little together. Rows are compared with those that stand beside them in the order of a gain tree, and
several trees, each with other weights of the attributes, make up for what one of them parts. Of rows that are equal,
sensitive values included, one is enough, and of one sensitive value there are only some: a row whose nearest ones all
have its own value would find nobody.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import Asked, SearchPart

NEAR = 32  # rows that are kept for each
OF_ONE_VALUE = 4  # at least so many of them may have one sensitive value, more where there are few values
TOGETHER = 256  # rows that are compared with each other


def near_rows(part: SearchPart, orders: list[NDArray[np.uint32]], distinct: int, asked: Asked) -> NDArray[np.int64]:
    """The near rows of each, the nearest first, then NONE: int64[n, NEAR]. distinct: how many sensitive values."""
    n = len(part.codes)
    near, away = np.full((n, NEAR), NONE, np.int64), np.full((n, NEAR), INFINITE, np.int64)
    of_one_value = max(OF_ONE_VALUE, NEAR // max(distinct, 1) + 1)
    for order in orders:
        compare(part, order.astype(np.int64), TOGETHER, of_one_value, asked, near, away)
    return near


@kernel
def compare(part, order, together, of_one_value, asked, near, away):
    """Add to the near rows those that stand together in an order, if they are nearer.

    order: int64[n]. near, away: int64[n, NEAR], the rows and what one record would cost with each, ascending.
    """
    codes, values = part
    for begin in range(0, len(order), together):
        count = min(together, len(order) - begin)
        for one in range(count):
            row = order[begin + one]
            # From the next one on and around, so that equal rows do not all find the same one.
            for step in range(1, count):
                other = order[begin + (one + step) % count]
                limit, cost = away[row, -1], np.int64(0)
                for q in range(codes.shape[1]):
                    low, high = min(codes[row, q], codes[other, q]), max(codes[row, q], codes[other, q])
                    cost += attribute_cost(asked.layout, asked.units, q, low, high)
                    if cost >= limit:
                        break
                if cost < limit:
                    insert(codes, values, other, cost, of_one_value, near[row], away[row])


@kernel
def insert(codes, values, other, cost, of_one_value, near, away):
    """Put a row among the near ones of another, unless its equal is there or enough nearer ones have its value."""
    place, same = len(near) - 1, 0
    for at in range(len(near)):
        one = near[at]
        if one == NONE:
            break
        if equal(values, one, other):
            if away[at] == cost and equal(codes, one, other):
                return
            same += 1
            if same >= of_one_value:
                place = at  # the farthest of the value, or one that is farther than enough of them, gives way
                break
    if away[place] <= cost:
        return
    while place > 0 and away[place - 1] > cost:
        near[place], away[place] = near[place - 1], away[place - 1]
        place -= 1
    near[place], away[place] = other, cost


@kernel
def equal(table, one, other):
    """Whether two rows of a table are equal."""
    q = 0
    while q < table.shape[1] and table[one, q] == table[other, q]:
        q += 1
    return q == table.shape[1]
