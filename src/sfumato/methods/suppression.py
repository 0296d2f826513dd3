"""Suppression: records that are left out so that a requirement can be met at all.

A part of the table that the coarsest levels set apart, and that cannot meet the requirements, goes as a whole if
nothing less helps. Where a sensitive value is too frequent in the whole table, every value above a common count is cut
down to it: the largest count with which the requirement holds. The records of such a value that are closest together in
the order of the quasi-identifiers go first: there the value is hardest to hide. ``outlier_search`` leaves out further
records where that lowers the loss.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.methods.class_counting import Counting
from sfumato.methods.level_parts import divided, part_numbers
from sfumato.methods.method import Records
from sfumato.requirements import ClassCounts, Histogram, Joint, Requirement, Requirements

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
