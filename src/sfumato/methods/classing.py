"""Records that are put into classes, taken out and moved: what searching for better classes has in common.

Kernels work on a part of a table: some rows, each in a class. The rows of a class are a doubly linked list, so that one
more or one fewer costs nothing; the two lowest and two highest codes of each attribute tell the box of a class with any
one of its rows left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels import kernel
from sfumato.losses.costs import attribute_cost, box_cost
from sfumato.requirements.conjunction import DISTINCT, FREQUENCY, SIZE, Conjunction, class_holds
from sfumato.tables.domains import Codes

NONE = -1
FAR = 1 << 40  # more than any code
INFINITE = 1 << 62


class Asked(NamedTuple):
    """What records cost, and the fewest that a class has. layout, units: see losses.costs.Costs."""

    layout: NDArray[np.int64]
    units: NDArray[np.int64]
    least: int


class Part(NamedTuple):
    """Some rows of a table. codes: uint[n, d], C-order. values: uint32[n, a], the sensitive ones, or ``distinct``."""

    codes: Codes
    values: NDArray[np.uint32]


class Classes(NamedTuple):
    """Which class each row of a part is in, and what the classes are like. A class of size 0 is none.

    owner, after, before: int64[n], the class of a row and its neighbours in the list of the class, NONE at its ends.
    first, size, cost: int64[c], cost being that of one record. low, high, low2, high2: int64[c, d], the lowest and
    highest codes of a class, and those of the rows without one that has them.
    """

    owner: NDArray[np.int64]
    after: NDArray[np.int64]
    before: NDArray[np.int64]
    first: NDArray[np.int64]
    size: NDArray[np.int64]
    cost: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    low2: NDArray[np.int64]
    high2: NDArray[np.int64]


class Tally(NamedTuple):
    """What sensitive requirements need; kernels are given None instead where there are none.

    tests: all requirements. rows: int64[n + 1], the rows that are counted. The rest counts the values of a class, see
    conjunction.class_holds; all are 0 between tests.
    """

    tests: Conjunction
    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    known: NDArray[np.int64]
    largest: NDArray[np.int64]
    different: NDArray[np.int64]


@kernel
def tally_for(n, tests):  # type: ignore[no-untyped-def]
    """Room to count classes of up to n + 1 rows; none where there is nothing to count."""
    if tests is None:
        return None
    attributes, most = tests.reference.shape
    return Tally(
        tests,
        np.empty(n + 1, np.int64),
        np.zeros((attributes, most + 1), np.int64),
        np.zeros(attributes, np.int64),
        np.zeros(attributes, np.int64),
        np.zeros(attributes, np.int64),
    )


@kernel
def classes_for(n, d, most):  # type: ignore[no-untyped-def]
    """Room for ``most`` classes of n rows with d attributes, all of them empty."""
    return Classes(
        np.full(n, NONE, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.full(most, NONE, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.empty((most, d), np.int64),
        np.empty((most, d), np.int64),
        np.empty((most, d), np.int64),
        np.empty((most, d), np.int64),
    )


@kernel
def link(classes, row, label):  # type: ignore[no-untyped-def]
    """Put a row into a class; its box is not looked at."""
    owner, after, before, first, size = classes[:5]
    owner[row] = label
    after[row] = first[label]
    before[row] = NONE
    if first[label] != NONE:
        before[first[label]] = row
    first[label] = row
    size[label] += 1


@kernel
def unlink(classes, row):  # type: ignore[no-untyped-def]
    """Take a row out of its class; its box is not looked at."""
    owner, after, before, first, size = classes[:5]
    label = owner[row]
    if before[row] == NONE:
        first[label] = after[row]
    else:
        after[before[row]] = after[row]
    if after[row] != NONE:
        before[after[row]] = before[row]
    owner[row] = NONE
    size[label] -= 1


@kernel
def look_at(part, classes, label, asked):  # type: ignore[no-untyped-def]
    """Find the box and the cost of a class anew."""
    low, high, low2, high2 = classes.low, classes.high, classes.low2, classes.high2
    codes = part.codes
    d = codes.shape[1]
    for q in range(d):
        low[label, q], low2[label, q], high[label, q], high2[label, q] = FAR, FAR, NONE, NONE
    row = classes.first[label]
    while row != NONE:
        for q in range(d):
            code = np.int64(codes[row, q])
            if code < low[label, q]:
                low2[label, q] = low[label, q]
                low[label, q] = code
            elif code < low2[label, q]:
                low2[label, q] = code
            if code > high[label, q]:
                high2[label, q] = high[label, q]
                high[label, q] = code
            elif code > high2[label, q]:
                high2[label, q] = code
        row = classes.after[row]
    classes.cost[label] = 0
    if classes.size[label] > 0:
        classes.cost[label] = box_cost(low[label], high[label], asked.layout, asked.units)


@kernel
def cost_with(low, high, label, codes, row, asked, limit):  # type: ignore[no-untyped-def]
    """The cost of a box with a row more; any number from ``limit`` on where it is not below that.

    Boxes and rows are told by their numbers here: a view of each would take longer than the sum.
    """
    total = np.int64(0)
    for q in range(codes.shape[1]):
        code = np.int64(codes[row, q])
        total += attribute_cost(asked.layout, asked.units, q, min(low[label, q], code), max(high[label, q], code))
        if total >= limit:
            break
    return total


@kernel
def cost_without(classes, label, codes, row, asked, low, high):  # type: ignore[no-untyped-def]
    """The cost of a class without one of its rows, 0 where it was the last. low, high: int64[1, d], its box then."""
    total, left = np.int64(0), classes.size[label] > 1
    for q in range(codes.shape[1]):
        code = np.int64(codes[row, q])
        low[0, q] = classes.low2[label, q] if code == classes.low[label, q] else classes.low[label, q]
        high[0, q] = classes.high2[label, q] if code == classes.high[label, q] else classes.high[label, q]
        if left:
            total += attribute_cost(asked.layout, asked.units, q, low[0, q], high[0, q])
    return total


@kernel
def nearest_class(part, classes, row, asked, tally, limit):  # type: ignore[no-untyped-def]
    """The other class that a row adds the least cost to, below ``limit``, and that holds with it: class and cost.

    NONE where there is none.
    """
    size, cost = classes.size, classes.cost
    codes, own = part.codes, classes.owner[row]
    best, to = limit, NONE
    for label in range(len(size)):
        # A record more costs at least what one there costs now.
        if label == own or size[label] == 0 or cost[label] >= best:
            continue
        below = (best + cost[label] * size[label]) // (size[label] + 1) + 1
        added = cost_with(classes.low, classes.high, label, codes, row, asked, below)
        added = added * (size[label] + 1) - cost[label] * size[label]
        if added < best and holds_with(part, classes, label, row, NONE, asked, tally):
            best, to = added, label
    return to, best


@kernel
def holds_with(part, classes, label, more, less, asked, tally):  # type: ignore[no-untyped-def]
    """Whether a class meets the requirements with one row more and one less; NONE for none."""
    size = classes.size[label] + (more != NONE) - (less != NONE)
    if size < asked.least:
        return False
    if tally is None:
        return True
    rows, count = tally.rows, 0
    row = classes.first[label]
    while row != NONE:
        if row != less:
            rows[count] = row
            count += 1
        row = classes.after[row]
    if more != NONE:
        rows[count] = more
        count += 1
    return rows_hold(part.values, count, tally)


@kernel
def count_rows(values, count, tally):  # type: ignore[no-untyped-def]
    """Count the values of the first ``count`` of ``tally.rows``."""
    for place in range(count):
        row = tally.rows[place]
        for a in range(values.shape[1]):
            value = values[row, a]
            if value < tally.tests.distinct[a]:
                tally.known[a] += 1
                tally.different[a] += tally.counts[a, value] == 0
                tally.counts[a, value] += 1
                tally.largest[a] = max(tally.largest[a], tally.counts[a, value])


@kernel
def forget_rows(values, count, tally):  # type: ignore[no-untyped-def]
    """Undo ``count_rows``."""
    for place in range(count):
        for a in range(values.shape[1]):
            tally.counts[a, values[tally.rows[place], a]] = 0
    for a in range(values.shape[1]):
        tally.known[a], tally.largest[a], tally.different[a] = 0, 0, 0


@kernel
def rows_hold(values, count, tally):  # type: ignore[no-untyped-def]
    """Whether the first ``count`` of ``tally.rows`` meet the requirements as a class."""
    count_rows(values, count, tally)
    holds = class_holds(tally.tests, count, tally.counts, tally.known, tally.largest, tally.different)
    forget_rows(values, count, tally)
    return holds


@kernel
def lacking(values, count, asked, tally):  # type: ignore[no-untyped-def]
    """How many records the first ``count`` of ``tally.rows`` lack at least to be a class, 0 where they are one.

    What requirements on a distribution lack is not known; then it is 1.
    """
    tests = tally.tests
    count_rows(values, count, tally)
    lack = max(asked.least - count, 0)
    for t in range(len(tests.kind)):
        kind, a, whole = tests.kind[t], tests.attribute[t], tests.whole[t]
        if kind == SIZE:
            lack = max(lack, whole - count)
        elif kind == FREQUENCY:
            lack = max(lack, tally.largest[a] * whole - tally.known[a])
        elif kind == DISTINCT:
            lack = max(lack, whole - tally.different[a])
    if lack == 0 and not class_holds(tests, count, tally.counts, tally.known, tally.largest, tally.different):
        lack = 1
    forget_rows(values, count, tally)
    return lack
