"""Classes joined until every requirement holds: for what a method does not see to itself.

A class that fails is joined with the one before or after it, whichever adds less loss, and all are looked at again; at
the end stands at most the whole table, which was tested first. Classes that show the same are one class to whoever
reads the release, so they are counted as one. Where unions keep a requirement that changes nothing; where they do not
(persons), this is what makes the release hold.

Neighbours are those of the order in which the method gives its classes. Nothing here is optimal: it repairs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import box_cost, widen
from sfumato.methods.class_counting import Counting
from sfumato.methods.method import ClassBatch, Records
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes

# Which classes show the same: a number for each class, from its box.
Shown = Callable[[Codes, Codes], NDArray[np.integer]]


def join_failing(batch: ClassBatch, records: Records, requirements: Requirements, shown: Shown) -> ClassBatch:
    """The classes, joined with their neighbours until all that are seen as one meet the requirements."""
    counting = Counting(records, requirements)
    starts, low, high = batch.starts, batch.low, batch.high
    while len(starts) > 2:
        seen = np.asarray(shown(low, high), np.int64)
        owner = np.repeat(seen, np.diff(starts))
        holds = requirements.holds(counting.classes(batch.rows, owner, int(seen.max()) + 1))
        if holds.all():
            break
        joined = joins(~holds[seen], starts, low, high, records.costs.layout, records.costs.units)
        first = np.flatnonzero(joined)
        low, high = np.minimum.reduceat(low, first, axis=0), np.maximum.reduceat(high, first, axis=0)
        starts = np.append(starts[first], starts[-1])
    return ClassBatch(batch.rows, starts, low, high)


@kernel
def joins(failing, starts, low, high, layout, units):
    """Which classes are the first of a joined one: bool[c]. Every failing class is joined with a neighbour.

    failing: bool[c]; starts: int64[c + 1]; low, high: uint[c, d], the boxes; layout, units: see losses.costs.Costs.
    """
    classes, d = low.shape
    first = np.ones(classes, np.bool_)
    begin = 0  # the joined class so far, and its box
    box_low, box_high = np.zeros(d, np.int64), np.zeros(d, np.int64)
    wide_low, wide_high = np.zeros(d, np.int64), np.zeros(d, np.int64)
    next_low, next_high = np.zeros(d, np.int64), np.zeros(d, np.int64)
    for one in range(classes):
        wide_low[:] = box_low
        wide_high[:] = box_high
        if one > 0:
            widen(wide_low, wide_high, low[one])
            widen(wide_low, wide_high, high[one])
        if first[one] and failing[one]:
            backward = box_cost(wide_low, wide_high, layout, units) * (starts[one + 1] - starts[begin])
            backward -= box_cost(box_low, box_high, layout, units) * (starts[one] - starts[begin])
            forward = np.int64(0)
            if one + 1 < classes:
                for q in range(d):
                    next_low[q] = low[one + 1, q]
                    next_high[q] = high[one + 1, q]
                forward -= box_cost(next_low, next_high, layout, units) * (starts[one + 2] - starts[one + 1])
                widen(next_low, next_high, low[one])
                widen(next_low, next_high, high[one])
                forward += box_cost(next_low, next_high, layout, units) * (starts[one + 2] - starts[one])
            if one + 1 == classes or (one > 0 and backward <= forward):
                first[one] = False
            else:
                first[one + 1] = False
        if first[one]:
            begin = one
            for q in range(d):
                box_low[q] = low[one, q]
                box_high[q] = high[one, q]
        else:
            box_low[:] = wide_low
            box_high[:] = wide_high
    return first
