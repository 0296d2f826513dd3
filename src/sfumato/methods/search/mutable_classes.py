"""Classes whose rows can be added, removed and moved: the data structure of all searches for better classes.

Kernels work on a part of a table: some rows, each in a class. The rows of a class are a doubly linked list, so that
adding or removing one takes constant time; the two lowest and two highest codes of each attribute give the box of a
class without any one of its rows. Three arrays hold the classes:

    rows    int64[n, 5]: the class of a row and its neighbours in the list of the class, NONE at its ends; then working
            space for rows that leave a class, one after the other, and where they go.
    facts   int64[c, 3]: the first row, the size and the cost of one record of each class. One of size 0 is unused.
    box     int64[c + 2, 4, d]: the lowest and highest codes of a class, and the lowest and highest once a row that has
            them is removed; then working space for LEFT and OTHER_LEFT.

Kernels take them, the codes, the costs (``layout``, ``units``) and the tests (``lack``, ``space``, ``real``: see
``shortfall``) one by one. In a tuple, the references of each would be counted at every call, which two threads do in
turns. For the same reason loops ask whether values are counted before they call ``stays_class``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import ABOVE_CODES, NONE
from sfumato.kernels.decorator import inner_kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.shortfall import ATTRIBUTES, FREQUENCY_ALONE, FREQUENCY_VALUES, ROWS

# Columns of rows, facts and box.
OWNER, AFTER, BEFORE, LEAVING, TARGET, ROW_FACTS = range(6)
FIRST, SIZE, COST = range(3)
LOW, HIGH, LOW2, HIGH2 = range(4)
LEFT, OTHER_LEFT = np.int64(-1), np.int64(-2)  # boxes without a row, at the end of box
BOXES_LEFT = 2


class SearchRules(NamedTuple):
    """The costs of records, and the least size of a class. layout, units: see losses.exact_costs.Costs."""

    layout: NDArray[np.int64]
    units: NDArray[np.int64]
    least: int


class SearchPart(NamedTuple):
    """Some rows of a table. codes: int64[n, d]; values: uint32[n, a], sensitive, ``distinct`` for null; C-order."""

    codes: NDArray[np.int64]
    values: NDArray[np.uint32]


@inner_kernel
def build_classes(codes, owner, most, layout, units):
    """Return the rows, facts and box of classes, with room for ``most``. owner: int64[n], the class of each row."""
    n, d = codes.shape
    rows, facts = np.empty((n, ROW_FACTS), np.int64), np.empty((most, 3), np.int64)
    box = np.empty((most + BOXES_LEFT, 4, d), np.int64)
    for class_id in range(most):
        facts[class_id, FIRST], facts[class_id, SIZE] = NONE, 0
    for row in range(n):
        link(rows, facts, row, owner[row])
    for class_id in range(most):
        update_class(codes, rows, facts, box, class_id, layout, units)
    return rows, facts, box


@inner_kernel
def link(rows, facts, row, class_id):
    """Put a row into a class, without updating the box of the class."""
    first = facts[class_id, FIRST]
    rows[row, OWNER], rows[row, AFTER], rows[row, BEFORE] = class_id, first, NONE
    if first != NONE:
        rows[first, BEFORE] = row
    facts[class_id, FIRST] = row
    facts[class_id, SIZE] += 1


@inner_kernel
def unlink(rows, facts, row):
    """Remove a row from its class, without updating the box of the class."""
    class_id, after, before = rows[row, OWNER], rows[row, AFTER], rows[row, BEFORE]
    if before == NONE:
        facts[class_id, FIRST] = after
    else:
        rows[before, AFTER] = after
    if after != NONE:
        rows[after, BEFORE] = before
    rows[row, OWNER] = NONE
    facts[class_id, SIZE] -= 1


@inner_kernel
def move(rows, facts, row, class_id):
    """Move a row to another class, without updating the boxes of the two."""
    unlink(rows, facts, row)
    link(rows, facts, row, class_id)


@inner_kernel
def update_class(codes, rows, facts, box, class_id, layout, units):
    """Recompute the box and the cost of a class."""
    total = np.int64(0)
    for q in range(codes.shape[1]):
        low, low2, high, high2 = ABOVE_CODES, ABOVE_CODES, NONE, NONE
        row = facts[class_id, FIRST]
        while row != NONE:
            code = codes[row, q]
            if code < low:
                low, low2 = code, low
            elif code < low2:
                low2 = code
            if code > high:
                high, high2 = code, high
            elif code > high2:
                high2 = code
            row = rows[row, AFTER]
        box[class_id, LOW, q], box[class_id, HIGH, q], box[class_id, LOW2, q], box[class_id, HIGH2, q] = (
            low,
            high,
            low2,
            high2,
        )
        if facts[class_id, SIZE] > 0:
            total += attribute_cost(layout, units, q, low, high)
    facts[class_id, COST] = total


@inner_kernel
def cost_with(box, class_id, codes, row, layout, units, limit):
    """Return the cost of a box with one more row, or any number from ``limit`` up if it is not below that."""
    total, q = np.int64(0), np.int64(0)
    while q < codes.shape[1] and total < limit:
        code = codes[row, q]
        low, high = min(box[class_id, LOW, q], code), max(box[class_id, HIGH, q], code)
        total += attribute_cost(layout, units, q, low, high)
        q += 1
    return total


@inner_kernel
def cost_without(facts, box, class_id, codes, row, layout, units, left):
    """Return the cost of a class without one of its rows, 0 if it was the last. left: where its box is written."""
    total, has_others = np.int64(0), facts[class_id, SIZE] > 1
    for q in range(codes.shape[1]):
        code = codes[row, q]
        box[left, LOW, q] = box[class_id, LOW2 if code == box[class_id, LOW, q] else LOW, q]
        box[left, HIGH, q] = box[class_id, HIGH2 if code == box[class_id, HIGH, q] else HIGH, q]
        if has_others:
            total += attribute_cost(layout, units, q, box[left, LOW, q], box[left, HIGH, q])
    return total


@inner_kernel
def nearest_class(codes, values, rows, facts, box, row, layout, units, least, lack, space, real, limit):
    """Return the other class that holds with the row at the least added cost below ``limit``, and that cost.

    The class is NONE where there is none.
    """
    own, best, nearest, is_counted = rows[row, OWNER], limit, NONE, space[ATTRIBUTES] > 0
    for class_id in range(len(facts)):
        size, cost = facts[class_id, SIZE], facts[class_id, COST]
        # One more record costs at least as much as each record of the class costs now.
        if class_id != own and size > 0 and cost < best:
            below = (best + cost * size) // (size + 1) + 1
            added = cost_with(box, class_id, codes, row, layout, units, below) * (size + 1) - cost * size
            if (
                added < best
                and size + 1 >= least
                and (not is_counted or stays_class(values, rows, facts, class_id, row, NONE, least, lack, space, real))
            ):
                best, nearest = added, class_id
    return nearest, best


@inner_kernel
def holds_with(values, rows, facts, class_id, more, less, least, lack, space, real):
    """Return whether a class meets the requirements with row ``more`` added and row ``less`` removed; NONE for none."""
    holds = facts[class_id, SIZE] + (more != NONE) - (less != NONE) >= least
    if holds and space[ATTRIBUTES] > 0:
        holds = lack_with(values, rows, facts, class_id, more, less, least, lack, space, real) == 0
    return holds


@inner_kernel
def stays_class(values, rows, facts, class_id, more, less, least, lack, space, real):
    """Return whether a class still meets all requirements with row ``more`` and without row ``less``, NONE for none.

    It meets them now, and is large enough. So it does if the two rows have the same values. If one frequency is all
    that values must meet, then only that of a value that comes can become too high.
    """
    times, distinct = space[FREQUENCY_ALONE], np.uint32(space[FREQUENCY_VALUES])
    is_alike = less != NONE
    for a in range(values.shape[1]):
        is_alike &= values[more, a] == values[less, a]
    if is_alike:
        lacking = np.int64(0)
    elif times > 0 and values[more, 0] < distinct:
        value, row, lacking = values[more, 0], facts[class_id, FIRST], times - 1
        while row != NONE:
            if row != less:
                lacking += (times if values[row, 0] == value else 0) - (values[row, 0] < distinct)
            row = rows[row, AFTER]
        lacking = max(lacking, np.int64(0))
    else:
        lacking = lack_with(values, rows, facts, class_id, more, less, least, lack, space, real)
    return lacking == 0


@inner_kernel
def lack_with(values, rows, facts, class_id, more, less, least, lack, space, real):
    """Return how many records a class lacks with row ``more`` added and row ``less`` removed; NONE for none."""
    row, begin, count = facts[class_id, FIRST], space[ROWS], np.int64(0)
    while row != NONE:
        space[begin + count] = row
        count += row != less
        row = rows[row, AFTER]
    if more != NONE:
        space[begin + count] = more
        count += 1
    return lack(values, count, least, space, real)
