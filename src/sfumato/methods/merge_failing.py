"""Merging of failing classes: classes are joined until every requirement holds that a method does not enforce itself.

A class that fails is joined with the one before or after it, whichever adds less loss, and all are tested again. In the
worst case one class is left, the whole table, which was tested first. A reader of the release sees classes that show
the same values as one class, so they are counted as one. Where unions keep a requirement that makes no difference;
where they do not (persons), it is what makes the release hold.

Neighbours are those in the order in which the method yields its classes. The result is not optimal.
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

# Returns a number for each class, from its box; classes with the same number show the same values.
Shown = Callable[[Codes, Codes], NDArray[np.integer]]


def join_failing(batch: ClassBatch, records: Records, requirements: Requirements, shown: Shown) -> ClassBatch:
    """Join classes with their neighbours until all that a reader sees as one meet the requirements."""
    counting = Counting(records, requirements)
    starts, low, high = batch.starts, batch.low, batch.high
    while len(starts) > 2:
        seen = np.asarray(shown(low, high), np.int64)
        owner = np.repeat(seen, np.diff(starts))
        holds = requirements.holds(counting.classes(batch.rows, owner, int(seen.max()) + 1))
        if holds.all():
            break
        joined = join_neighbours(~holds[seen], starts, low, high, records.costs.layout, records.costs.units)
        first = np.flatnonzero(joined)
        low, high = np.minimum.reduceat(low, first, axis=0), np.maximum.reduceat(high, first, axis=0)
        starts = np.append(starts[first], starts[-1])
    return ClassBatch(batch.rows, starts, low, high)


@kernel
def join_neighbours(failing, starts, low, high, layout, units):
    """Join every failing class with a neighbour; return which classes begin a joined one: bool[c].

    failing: bool[c]; starts: int64[c + 1]; low, high: uint[c, d], the boxes; layout, units: see exact_costs.Costs.
    """
    classes, d = low.shape
    first = np.ones(classes, np.bool_)
    begin = 0  # the first class of the present joined one, whose box follows
    box_low, box_high = np.zeros(d, np.int64), np.zeros(d, np.int64)
    wide_low, wide_high = np.zeros(d, np.int64), np.zeros(d, np.int64)
    next_low, next_high = np.zeros(d, np.int64), np.zeros(d, np.int64)
    for class_id in range(classes):
        wide_low[:] = box_low
        wide_high[:] = box_high
        if class_id > 0:
            widen(wide_low, wide_high, low[class_id])
            widen(wide_low, wide_high, high[class_id])
        if first[class_id] and failing[class_id]:
            backward = box_cost(wide_low, wide_high, layout, units) * (starts[class_id + 1] - starts[begin])
            backward -= box_cost(box_low, box_high, layout, units) * (starts[class_id] - starts[begin])
            forward = np.int64(0)
            if class_id + 1 < classes:
                for q in range(d):
                    next_low[q] = low[class_id + 1, q]
                    next_high[q] = high[class_id + 1, q]
                forward -= box_cost(next_low, next_high, layout, units) * (starts[class_id + 2] - starts[class_id + 1])
                widen(next_low, next_high, low[class_id])
                widen(next_low, next_high, high[class_id])
                forward += box_cost(next_low, next_high, layout, units) * (starts[class_id + 2] - starts[class_id])
            if class_id + 1 == classes or (class_id > 0 and backward <= forward):
                first[class_id] = False
            else:
                first[class_id + 1] = False
        if first[class_id]:
            begin = class_id
            for q in range(d):
                box_low[q] = low[class_id, q]
                box_high[q] = high[class_id, q]
        else:
            box_low[:] = wide_low
            box_high[:] = wide_high
    return first
