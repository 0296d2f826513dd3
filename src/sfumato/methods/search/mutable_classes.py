"""Records that are put into classes, taken out and moved: what searching for better classes has in common.

Kernels work on a part of a table: some rows, each in a class. The rows of a class are a doubly linked list, so that one
more or one fewer costs nothing; the two lowest and two highest codes of each attribute tell the box of a class with any
one of its rows left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import attribute_cost

FAR = 1 << 40  # more than any code

OWNER, AFTER, BEFORE = range(3)  # of Classes.rows
FIRST, SIZE, COST = range(3)  # of Classes.about
LOW, HIGH, LOW2, HIGH2 = range(4)  # of Classes.box


class Asked(NamedTuple):
    """What records cost, and the fewest that a class has. layout, units: see losses.costs.Costs."""

    layout: NDArray[np.int64]
    units: NDArray[np.int64]
    least: int


class SearchPart(NamedTuple):
    """Some rows of a table. codes: int64[n, d]. values: uint32[n, a], the sensitive ones, or ``distinct``. C-order."""

    codes: NDArray[np.int64]
    values: NDArray[np.uint32]


class Classes(NamedTuple):
    """Which class each row of a part is in, and what the classes are like. A class of size 0 is none.

    rows: int64[n, 3], the class of a row and its neighbours in the list of the class, NONE at its ends. about:
    int64[c, 3], the first row, the size and the cost of one record. box: int64[c, 4, d], the lowest and highest codes
    of a class, and those of its rows without one that has them. Few arrays, since each takes time to compile.
    """

    rows: NDArray[np.int64]
    about: NDArray[np.int64]
    box: NDArray[np.int64]


@kernel
def count_of(owner):
    """How many classes there are. owner: int64[n], the class of each row, numbers without gaps."""
    count = np.int64(0)
    for row in range(len(owner)):
        count = max(count, owner[row] + 1)
    return count


@kernel
def classes_of(part, owner, most, asked):
    """The classes of a part, with room for ``most``. owner: int64[n], the class of each row."""
    n, d = part.codes.shape
    classes = Classes(np.empty((n, 3), np.int64), np.zeros((most, 3), np.int64), np.empty((most, 4, d), np.int64))
    for label in range(most):
        classes.about[label, FIRST] = NONE
    for row in range(n):
        link(classes, row, owner[row])
    for label in range(most):
        look_at(part, classes, label, asked)
    return classes


@kernel
def link(classes, row, label):
    """Put a row into a class; its box is not looked at."""
    rows, about, _ = classes
    first = about[label, FIRST]
    rows[row, OWNER], rows[row, AFTER], rows[row, BEFORE] = label, first, NONE
    if first != NONE:
        rows[first, BEFORE] = row
    about[label, FIRST] = row
    about[label, SIZE] += 1


@kernel
def unlink(classes, row):
    """Take a row out of its class; its box is not looked at."""
    rows, about, _ = classes
    label, after, before = rows[row, OWNER], rows[row, AFTER], rows[row, BEFORE]
    if before == NONE:
        about[label, FIRST] = after
    else:
        rows[before, AFTER] = after
    if after != NONE:
        rows[after, BEFORE] = before
    rows[row, OWNER] = NONE
    about[label, SIZE] -= 1


@kernel
def look_at(part, classes, label, asked):
    """Find the box and the cost of a class anew."""
    codes, (rows, about, box) = part.codes, classes
    total = np.int64(0)
    for q in range(codes.shape[1]):
        low, low2, high, high2 = FAR, FAR, NONE, NONE
        row = about[label, FIRST]
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
        box[label, LOW, q], box[label, HIGH, q], box[label, LOW2, q], box[label, HIGH2, q] = low, high, low2, high2
        if about[label, SIZE] > 0:
            total += attribute_cost(asked.layout, asked.units, q, low, high)
    about[label, COST] = total


@kernel
def cost_with(box, label, codes, row, asked, limit):
    """The cost of a box with a row more; any number from ``limit`` on where it is not below that."""
    total = np.int64(0)
    for q in range(codes.shape[1]):
        code = codes[row, q]
        low, high = min(box[label, LOW, q], code), max(box[label, HIGH, q], code)
        total += attribute_cost(asked.layout, asked.units, q, low, high)
        if total >= limit:
            break
    return total


@kernel
def cost_without(classes, label, codes, row, asked, left):
    """The cost of a class without one of its rows, 0 where it was the last. left: int64[1, 2, d], its box then."""
    box = classes.box
    total, some = np.int64(0), classes.about[label, SIZE] > 1
    for q in range(codes.shape[1]):
        code = codes[row, q]
        left[0, LOW, q] = box[label, LOW2 if code == box[label, LOW, q] else LOW, q]
        left[0, HIGH, q] = box[label, HIGH2 if code == box[label, HIGH, q] else HIGH, q]
        if some:
            total += attribute_cost(asked.layout, asked.units, q, left[0, LOW, q], left[0, HIGH, q])
    return total


@kernel
def nearest_class(part, classes, row, asked, tally, limit):
    """The other class that a row adds the least cost to, below ``limit``, and that holds with it: class and cost.

    NONE where there is none.
    """
    about, own = classes.about, classes.rows[row, OWNER]
    best, to = limit, NONE
    for label in range(len(about)):
        size, cost = about[label, SIZE], about[label, COST]
        # A record more costs at least what one there costs now.
        if label == own or size == 0 or cost >= best:
            continue
        below = (best + cost * size) // (size + 1) + 1
        added = cost_with(classes.box, label, part.codes, row, asked, below) * (size + 1) - cost * size
        if added < best and holds_with(part, classes, label, row, NONE, asked, tally):
            best, to = added, label
    return to, best


@kernel
def holds_with(part, classes, label, more, less, asked, tally):
    """Whether a class meets the requirements with one row more and one less; NONE for none."""
    if classes.about[label, SIZE] + (more != NONE) - (less != NONE) < asked.least:
        return False
    if len(tally.counts) == 0:
        return True
    row, count = classes.about[label, FIRST], 0
    while row != NONE:
        if row != less:
            tally.rows[count] = row
            count += 1
        row = classes.rows[row, AFTER]
    if more != NONE:
        tally.rows[count] = more
        count += 1
    return tally.lack(part.values, tally.rows, count, asked.least, tally.whole, tally.real, tally.counts) == 0
