"""Records that are left out: so that a requirement can be met at all, or because they cost more than they tell.

Not eligible: where a sensitive value is too frequent in the whole table, every value above a common count is cut down
to it, the largest count with which the requirement holds. Of such a value those records go that lie closest together
in the order of the quasi-identifiers: there it is hardest to hide.

Outliers: a record that is left out counts as a loss of 1 on every quasi-identifier, so it is worth leaving out if the
others of its class gain more than that. The best candidate of each class is taken, the classes are formed anew without
them, and what has less loss stays. It ends with a round that gains less than one part in a thousand (``WORTH``), so
fewer may be left out than a search without end would find.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import box_cost, total_cost, widen
from sfumato.methods.class_counting import Counting
from sfumato.methods.method import ClassBatch, Records
from sfumato.requirements import ClassCounts, Histogram, Joint, Requirement, Requirements

WORTH = 1000  # another round must gain one part in so many
NOTHING = np.empty(0, np.uint32)

Rows = NDArray[np.uint32]


def surplus_rows(records: Records, requirements: Requirements, most: int) -> Rows:
    """The rows to leave out, at most ``most``, so that the whole table meets the requirements.

    Raises InfeasibleError where more would have to go, or where leaving out does not help.
    """
    left_out = NOTHING
    while True:
        rest = records.without(left_out)
        counting = Counting(rest, requirements)
        failing = next((part for part in requirements.parts if not part.holds(counting.whole).all()), None)
        if failing is None and len(left_out) <= most:
            return left_out
        more = NOTHING if failing is None else _relief(counting, failing)
        if failing is not None and len(more):
            left_out = np.union1d(left_out, more)
            continue
        _refuse(records, requirements, left_out if failing is None else None)


def _refuse(records: Records, requirements: Requirements, left_out: Rows | None) -> None:
    """Say what cannot be met and, where leaving out ``left_out`` would help, how much that is."""
    try:
        requirements.check_feasible(Counting(records, requirements).whole)
    except InfeasibleError as error:
        if left_out is None:
            raise
        share = len(left_out) / records.count
        digits = max(4, len(str(records.count)))  # so that what is proposed stays below 1
        enough = np.ceil(share * 10**digits) / 10**digits
        raise InfeasibleError(
            f"{error} Or leave out {len(left_out):,} of the {records.count:,} records ({share:.2%}): "
            f"max_suppressed_fraction = {enough:.{digits}f} would do."
        ) from None
    raise AssertionError("a table that is feasible was to be refused")


def _relief(counting: Counting, part: Requirement) -> Rows:
    """Rows without which the table, or a part of it, meets a requirement; none where nothing helps."""
    if part.attribute is None:
        return NOTHING
    rows = counting.records.rows
    if not isinstance(part, Joint):
        return _above_cap(counting, part, rows)
    refined = counting.whole.refined[part.attribute]
    failing = ~part.part.holds(refined.counts)
    others = [counting.records.sensitive[name].codes[rows] for name in counting.requirements.joint]
    others = [codes for name, codes in zip(counting.requirements.joint, others, strict=True) if name != part.attribute]
    _, group = np.unique(np.stack(others, axis=1), axis=0, return_inverse=True)
    found = []
    for number in np.flatnonzero(failing):
        inside = rows[group.ravel() == number]
        relief = _above_cap(counting, part.part, inside)
        found.append(relief if len(relief) else inside)  # nothing inside helps, so all of it has to go
    return np.concatenate([NOTHING, *found])


def _above_cap(counting: Counting, part: Requirement, rows: Rows) -> Rows:
    """Those of ``rows`` that are too many of their value."""
    records, name = counting.records, part.attribute or ""
    values = records.sensitive[name]
    codes = values.codes[rows]
    keys = rows if records.persons is None else records.persons[rows]
    here = codes < values.distinct
    units = np.unique(np.stack([codes[here], keys[here]], axis=1), axis=0)  # what is counted: a value of a person
    counts = np.bincount(units[:, 0], minlength=values.distinct)

    def holds(cap: int) -> bool:
        left = np.minimum(counts, cap)
        value = np.flatnonzero(left)
        reference = left / max(int(left.sum()), 1)
        histogram = Histogram(
            np.zeros(len(value), np.int64), left[value], value, reference, values.numbers, None, values.hierarchy
        )
        return bool(part.holds(ClassCounts(np.array([left.sum()]), {name: histogram})).all())

    low, high = 0, int(counts.max(initial=0))
    while low + 1 < high:  # the largest cap that holds; a smaller one makes the values more even
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    if low == 0:
        return NOTHING
    goes = []
    for value in np.flatnonzero(counts > low):
        places = np.flatnonzero(codes == value)
        gap = np.append(np.diff(places), len(rows))  # to the next record with the value, in the order of the codes
        crowded = keys[places[np.lexsort([places, gap])]]
        _, first = np.unique(crowded, return_index=True)
        gone = crowded[np.sort(first)][: counts[value] - low]
        goes.append(rows[places[np.isin(keys[places], gone)]])
    return np.concatenate([NOTHING, *goes])


def trimmed(
    records: Records,
    requirements: Requirements,
    most: int,
    classes_of: Callable[[Records], ClassBatch],
) -> ClassBatch:
    """The classes of the records without at most ``most`` outliers, where that has less loss."""
    full = records.costs.full
    left_out, best = NOTHING, classes_of(records)
    total = _total(best, records)
    while len(left_out) < most:
        candidates = _outliers(best, records)[: most - len(left_out)]
        found = None
        while len(candidates) and found is None:
            rest = records.without(np.concatenate([left_out, candidates]))
            if requirements.holds(Counting(rest, requirements).whole).all():
                tried = classes_of(rest)
                value = _total(tried, records) + full * (len(left_out) + len(candidates))
                found = (value, tried) if value < total else None
            if found is None:
                candidates = candidates[: len(candidates) // 2]
        if found is None:
            break
        left_out = np.concatenate([left_out, candidates])
        settled = (total - found[0]) * WORTH <= total
        total, best = found
        if settled:
            break
    return best


def _total(batch: ClassBatch, records: Records) -> int:
    return total_cost(batch.starts, batch.low, batch.high, records.costs.layout, records.costs.units)


def _outliers(batch: ClassBatch, records: Records) -> Rows:
    """The row of each class whose absence saves most, if it saves more than a record is worth; the best first."""
    code_of_row = np.empty(int(records.rows.max()) + 1, np.int64)
    code_of_row[records.rows] = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
    at, costs = code_of_row[batch.rows], records.costs
    place, saving = best_absences(records.codes, at, batch.starts, batch.low, batch.high, costs.layout, costs.units)
    worth = saving > records.costs.full
    order = np.lexsort([place[worth], -saving[worth]])
    found: Rows = batch.rows[place[worth][order]]
    return found


@kernel
def best_absences(codes, at, starts, class_low, class_high, layout, units):
    """For each class the place whose absence saves most, and what it saves: two int64[c].

    codes: uint[m, d]; at: int64[n], the record at each place; starts: int64[c + 1]; class_low, class_high: uint[c, d].
    Of those that save as much, as both of two do, the one that lies farther from the classes beside it.
    """
    classes, d = len(starts) - 1, codes.shape[1]
    best, saving = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    # The two lowest and the two highest codes of a class, by attribute.
    lowest, highest = np.zeros((2, d), np.int64), np.zeros((2, d), np.int64)
    low, high = np.zeros(d, np.int64), np.zeros(d, np.int64)
    for i in range(classes):
        begin, end = starts[i], starts[i + 1]
        lowest[:] = np.int64(1) << 40
        highest[:] = -1
        for place in range(begin, end):
            for q in range(d):
                code = np.int64(codes[at[place], q])
                if code < lowest[0, q]:
                    lowest[1, q] = lowest[0, q]
                    lowest[0, q] = code
                elif code < lowest[1, q]:
                    lowest[1, q] = code
                if code > highest[0, q]:
                    highest[1, q] = highest[0, q]
                    highest[0, q] = code
                elif code > highest[1, q]:
                    highest[1, q] = code
        best[i] = begin
        farthest = np.int64(-1)
        if end - begin < 2:
            continue
        whole = box_cost(lowest[0], highest[0], layout, units) * (end - begin)
        for place in range(begin, end):
            touches = False
            for q in range(d):
                code = np.int64(codes[at[place], q])
                low[q] = lowest[1, q] if code == lowest[0, q] else lowest[0, q]
                high[q] = highest[1, q] if code == highest[0, q] else highest[0, q]
                touches |= low[q] != lowest[0, q] or high[q] != highest[0, q]
            if touches:
                saved = whole - box_cost(low, high, layout, units) * (end - begin - 1)
                apart = np.int64(1) << 62
                for other in (i - 1, i + 1):
                    if saved >= saving[i] and 0 <= other < classes:
                        for q in range(d):
                            low[q] = class_low[other, q]
                            high[q] = class_high[other, q]
                        widen(low, high, codes[at[place]])
                        apart = min(apart, box_cost(low, high, layout, units))
                if saved > saving[i] or (saved == saving[i] and apart > farthest):
                    saving[i] = saved
                    best[i] = place
                    farthest = apart
    return best, saving
