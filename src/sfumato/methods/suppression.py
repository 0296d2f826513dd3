"""Suppression: records that are left out so that a requirement can be met at all, or because that lowers the loss.

Not eligible: a part of the table that the coarsest levels set apart, and that cannot meet the requirements, goes as a
whole if nothing less helps. Where a sensitive value is too frequent in the whole table, every value above a common
count is cut down to it: the largest count with which the requirement holds. The records of such a value that are
closest together in the order of the quasi-identifiers go first: there the value is hardest to hide.

Outliers: a suppressed record counts as a loss of 1 on every quasi-identifier, so suppressing it pays if the others of
its class gain more than that. The best candidate of each class is taken, the classes are formed again without them, and
the result with less loss is kept. The search ends with a round that gains less than one part in a thousand (``WORTH``),
so it may suppress fewer records than an exhaustive search would.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import box_cost, total_cost, widen
from sfumato.methods.class_counting import Counting
from sfumato.methods.level_parts import divided, every_part_holds, part_numbers
from sfumato.methods.method import ClassBatch, Records
from sfumato.requirements import ClassCounts, Histogram, Joint, Requirement, Requirements

WORTH = 1000  # a round must gain one part in this many for another to follow
NOTHING = np.empty(0, np.uint32)

Rows = NDArray[np.uint32]


def surplus_rows(records: Records, requirements: Requirements, most: int) -> Rows:
    """Return the rows to suppress, at most ``most``, so that the whole table, or each of its parts, can be released.

    Raises InfeasibleError where more would have to go, or where suppression does not help.
    """
    if part_numbers(records.codes, records.domains) is None:
        return _surplus_of_one(records, requirements, most)
    left_out, failing = NOTHING, 1
    # What is left out changes the distribution that some requirements refer to, so all parts are tested again.
    while failing and len(left_out) < records.count:
        parts = divided(records.without(left_out), requirements)
        surplus = [_surplus_of_part(part, requirements) for part in parts]
        failing = sum(len(rows) > 0 for rows in surplus)
        left_out = np.union1d(left_out, np.concatenate(surplus))
    if len(left_out) > most or len(left_out) == records.count:
        raise _infeasible_parts(records, requirements, len(left_out))
    return left_out


def _surplus_of_part(part: Records, requirements: Requirements) -> Rows:
    """Return the rows of a part to suppress: all of them where nothing less helps."""
    try:
        return _surplus_of_one(part, requirements, part.count - 1)
    except InfeasibleError:
        return part.rows


def _infeasible_parts(records: Records, requirements: Requirements, left_out: int) -> InfeasibleError:
    columns = ", ".join(repr(domain.name) for domain in records.domains if domain.coarsest is not None)
    parts = divided(records, requirements)
    failing = sum(len(_surplus_of_part(part, requirements)) > 0 for part in parts)
    advice = "Set coarser levels, or a smaller k or l."
    if left_out < records.count:
        fraction = enough_suppressed(left_out, records.count)
        advice = (
            "Set coarser levels, a smaller k or l, or leave these records out: max_suppressed_fraction = "
            f"{fraction} would be enough."
        )
    return InfeasibleError(
        f"the coarsest levels of {columns} divide the table into {len(parts):,} parts, and {failing:,} of these cannot "
        f"meet the requirements by themselves. {left_out:,} of the {records.count:,} records "
        f"({left_out / records.count:.2%}) would have to be left out. {advice}"
    )


def _surplus_of_one(records: Records, requirements: Requirements, most: int) -> Rows:
    """Return the rows to suppress, at most ``most``, so that all records together meet the requirements."""
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
    """Raise the error that names the requirement and, where suppressing ``left_out`` would help, how many that is."""
    try:
        requirements.check_feasible(Counting(records, requirements).whole)
    except InfeasibleError as error:
        if left_out is None:
            raise
        share = len(left_out) / records.count
        raise InfeasibleError(
            f"{error} Or leave out {len(left_out):,} of the {records.count:,} records ({share:.2%}): "
            f"max_suppressed_fraction = {enough_suppressed(len(left_out), records.count)} would be enough."
        ) from None
    raise AssertionError("the table is feasible, so it must not be refused")


def enough_suppressed(left_out: int, records: int) -> str:
    """Return the fraction, as a policy may write it, with which so many of the records may be left out."""
    digits = max(4, len(str(records)))  # enough digits that the proposed fraction stays below 1
    enough = np.ceil(left_out / records * 10**digits) / 10**digits
    return f"{enough:.{digits}f}"


def _relief(counting: Counting, part: Requirement) -> Rows:
    """Return rows without which the table, or a part of it, meets a requirement; none where nothing helps."""
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
    relief_rows = []
    for number in np.flatnonzero(failing):
        inside = rows[group.ravel() == number]
        relief = _above_cap(counting, part.part, inside)
        relief_rows.append(relief if len(relief) else inside)  # if nothing inside helps, all of it has to go
    return np.concatenate([NOTHING, *relief_rows])


def _above_cap(counting: Counting, part: Requirement, rows: Rows) -> Rows:
    """Return those of ``rows`` that exceed the cap on their value."""
    records, name = counting.records, part.attribute or ""
    values = records.sensitive[name]
    codes = values.codes[rows]
    keys = rows if records.persons is None else records.persons[rows]
    known = codes < values.distinct
    # A value counts once for each person.
    units = np.unique(np.stack([codes[known], keys[known]], axis=1), axis=0)
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
    suppressed = []
    for value in np.flatnonzero(counts > low):
        positions = np.flatnonzero(codes == value)
        gap = np.append(np.diff(positions), len(rows))  # to the next record with the value, in the order of the codes
        crowded = keys[positions[np.lexsort([positions, gap])]]
        _, first = np.unique(crowded, return_index=True)
        removed_keys = crowded[np.sort(first)][: counts[value] - low]
        suppressed.append(rows[positions[np.isin(keys[positions], removed_keys)]])
    return np.concatenate([NOTHING, *suppressed])


def trimmed(
    records: Records,
    requirements: Requirements,
    most: int,
    classes_of: Callable[[Records], ClassBatch],
) -> ClassBatch:
    """Return the classes of the records, without up to ``most`` outliers where that lowers the loss."""
    full = records.costs.full
    left_out, best = NOTHING, classes_of(records)
    total = _total(best, records)
    while len(left_out) < most:
        candidates = _outliers(best, records)[: most - len(left_out)]
        better = None
        while len(candidates) and better is None:
            rest = records.without(np.concatenate([left_out, candidates]))
            if every_part_holds(rest, requirements):
                batch = classes_of(rest)
                value = _total(batch, records) + full * (len(left_out) + len(candidates))
                better = (value, batch) if value < total else None
            if better is None:
                candidates = candidates[: len(candidates) // 2]
        if better is None:
            break
        left_out = np.concatenate([left_out, candidates])
        settled = (total - better[0]) * WORTH <= total
        total, best = better
        if settled:
            break
    return best


def _total(batch: ClassBatch, records: Records) -> int:
    return total_cost(batch.starts, batch.low, batch.high, records.costs.layout, records.costs.units)


def _outliers(batch: ClassBatch, records: Records) -> Rows:
    """Return the row of each class whose absence saves most, if more than a suppressed record costs; the best first."""
    code_of_row = np.empty(int(records.rows.max()) + 1, np.int64)
    code_of_row[records.rows] = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
    record_of, costs = code_of_row[batch.rows], records.costs
    position, saving = best_absences(
        records.codes, record_of, batch.starts, batch.low, batch.high, costs.layout, costs.units
    )
    worth = saving > records.costs.full
    order = np.lexsort([position[worth], -saving[worth]])
    rows: Rows = batch.rows[position[worth][order]]
    return rows


@kernel
def best_absences(codes, record_of, starts, class_low, class_high, layout, units):
    """Return for each class the position whose absence saves most, and the saving: two int64[c].

    codes: uint[m, d]; record_of: int64[n], the record at each position; starts: int64[c + 1]; class_low, class_high:
    uint[c, d]. Among equal savings, as with both of two records, the record farther from the neighbouring classes wins.
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
        for position in range(begin, end):
            for q in range(d):
                code = np.int64(codes[record_of[position], q])
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
        for position in range(begin, end):
            touches = False
            for q in range(d):
                code = np.int64(codes[record_of[position], q])
                low[q] = lowest[1, q] if code == lowest[0, q] else lowest[0, q]
                high[q] = highest[1, q] if code == highest[0, q] else highest[0, q]
                touches |= low[q] != lowest[0, q] or high[q] != highest[0, q]
            if touches:
                saved = whole - box_cost(low, high, layout, units) * (end - begin - 1)
                distance = np.int64(1) << 62
                for other in (i - 1, i + 1):
                    if saved >= saving[i] and 0 <= other < classes:
                        for q in range(d):
                            low[q] = class_low[other, q]
                            high[q] = class_high[other, q]
                        widen(low, high, codes[record_of[position]])
                        distance = min(distance, box_cost(low, high, layout, units))
                if saved > saving[i] or (saved == saving[i] and distance > farthest):
                    saving[i] = saved
                    best[i] = position
                    farthest = distance
    return best, saving
