"""Estimates from the two tables of Anatomy (Xiao and Tao 2006).

The first table has the exact quasi-identifiers and the group of every record. The second has, for each group, the
number of records with each sensitive value. A reader knows the cell of a record and counts the record there for every
sensitive value of its group, in proportion to that value's share of the group. Here null is a value like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError, UsageError
from sfumato.evaluation.audit.anatomy_audit import COUNT, GROUP
from sfumato.evaluation.queries.answers import Floats, Integers, Points, RangeQuery, weight_within
from sfumato.evaluation.queries.sensitive_values import SensitiveNumbers, encoded
from sfumato.kernels.decorator import kernel
from sfumato.tables.coding.released_labels import label_of, read_number
from sfumato.tables.coding.sorting import Field, bits_for, sort_rows
from sfumato.tables.released_classes import ReleasedClasses, find_classes
from sfumato.tables.sources.source import Source


@dataclass(frozen=True)
class GroupedRecords:
    """The first table as classes: its distinct records by quasi-identifiers and group."""

    classes: ReleasedClasses


def grouped_records(first: Source, quasi_identifiers: Sequence[str]) -> GroupedRecords:
    """Read the first of the two tables."""
    key = [*quasi_identifiers, GROUP]
    _check_columns(first, key, "first")
    return GroupedRecords(find_classes(first, key))


@dataclass(frozen=True)
class Anatomized:
    """Exact records; equal records of a group are collapsed.

    codes: int64[n, d]; group: int64[n], from 0; weight: float64[n], in records. Group g has the sensitive values
    value[starts[g]] to value[starts[g + 1] - 1], ascending, each with its share of the group.
    """

    codes: Integers
    group: Integers
    weight: Floats
    starts: Integers
    value: Integers
    share: Floats

    def in_cells(self, bounds: Sequence[Integers]) -> AnatomizedInCells:
        cells = [np.searchsorted(bound, self.codes[:, q], "right") - 1 for q, bound in enumerate(bounds)]
        return AnatomizedInCells(self, cells)

    def count(self, query: RangeQuery) -> float:
        shares = [selected.astype(np.float64) for selected in query.codes]
        share_of_group = np.add.reduceat(self.share * query.values[self.value], self.starts[:-1])
        return weight_within(self.codes, self.group, self.weight, query.columns, shares, share_of_group)


@dataclass(frozen=True)
class AnatomizedInCells:
    """Exact records and, by quasi-identifier, the cell of each record."""

    records: Anatomized
    cells: Sequence[Integers]

    def at(self, points: Points) -> Floats:
        records, count = self.records, len(points.cells)
        keys = np.vstack([points.cells, np.stack([self.cells[q] for q in points.columns], axis=1)])
        groups = len(records.starts) - 1
        owner = np.append(np.zeros(count, np.int64), records.group + 1)
        # Sort by cell; within a cell the points come first, by ascending value, and then the records by group.
        fields = [Field(keys[:, c].view(np.uint64), bits_for(size)) for c, size in enumerate(points.sizes)]
        line = sort_rows([*fields, Field(owner.view(np.uint64), bits_for(groups + 1))], len(keys))
        values = len(points.starts) - 1
        value_of_point = np.repeat(np.arange(values), np.diff(points.starts))
        estimates: Floats = estimates_by_group(
            *(line.rows, line.starts, keys, value_of_point, values),
            *(records.group, records.weight, records.starts, records.value, records.share),
        )
        return estimates


@kernel
def estimates_by_group(
    rows, starts, keys, value_of_point, values, group, weight, group_starts, group_value, group_share
):
    """Estimate the number of records at each point: float64[p].

    rows: uint32[p + n], points (the numbers below p) and records sorted by cell, in each cell points first and then
    records by group; starts: int64[runs + 1], where a cell's points and each of its groups start; keys:
    int64[p + n, d], their cells; value_of_point: int64[p], below values; the rest as in ``Anatomized``.
    """
    points, dimensions = len(value_of_point), keys.shape[1]
    estimates = np.zeros(points)
    point_of_value = np.full(values, -1)  # for the last cell that has points
    begin = end = 0  # the range of these points in rows
    for run in range(len(starts) - 1):
        row = np.int64(rows[starts[run]])
        if row < points:
            for index in range(begin, end):
                point_of_value[value_of_point[rows[index]]] = -1
            begin, end = starts[run], starts[run + 1]
            for index in range(begin, end):
                point_of_value[value_of_point[rows[index]]] = rows[index]
            continue
        same_cell = end > begin
        for axis in range(dimensions):
            same_cell = same_cell and keys[row, axis] == keys[rows[begin], axis]
        if not same_cell:  # the original has no record in this cell
            continue
        total = 0.0
        for index in range(starts[run], starts[run + 1]):
            total += weight[np.int64(rows[index]) - points]
        owner = group[row - points]
        for entry in range(group_starts[owner], group_starts[owner + 1]):
            point = point_of_value[group_value[entry]]
            if point >= 0:
                estimates[point] += total * group_share[entry]
    return estimates


def anatomized(
    records: GroupedRecords, spans: Sequence[Integers], shown: Integers, second: Source, numbers: SensitiveNumbers
) -> Anatomized:
    """Join the two tables.

    ``spans`` are the codes that each distinct value of the first table covers, ``shown`` the value that a class shows.
    """
    classes = records.classes
    for span, name in zip(spans, classes.values, strict=False):
        coarse = int(np.count_nonzero(np.diff(span) > 1))
        if coarse:
            raise InputError(
                f"column {name!r} of the release shows {coarse:,} generalized values, but Anatomy's first table has "
                "exact ones. Check that both tables and the policy belong together."
            )
    codes = np.stack([span[shown[:, q], 0] for q, span in enumerate(spans)], axis=1)
    group = classes.shown[GROUP]
    names = {label_of(value): number for number, value in enumerate(classes.values[GROUP])}
    sizes = np.bincount(group, weights=classes.sizes, minlength=len(names))
    owner, value, count = _counts(second, names, numbers)
    _check_sizes(sizes, np.bincount(owner[owner >= 0], weights=count[owner >= 0], minlength=len(names)), owner)
    # Bins may have given several rows the same group and value: join them.
    pairs, pair_of_row = np.unique(owner * numbers.count + value, return_inverse=True)
    owner, value = np.divmod(pairs, numbers.count)
    share = np.bincount(pair_of_row, weights=count) / sizes[owner]
    starts = np.searchsorted(owner, np.arange(len(names) + 1))
    return Anatomized(codes, group, classes.sizes.astype(np.float64), starts, value, share)


def _counts(
    second: Source, names: dict[str | None, int], numbers: SensitiveNumbers
) -> tuple[Integers, Integers, Floats]:
    """The group (-1 if the first table lacks it), sensitive value and count of every row of the second table."""
    _check_columns(second, [GROUP, numbers.name, COUNT], "second")
    batches = list(second.batches([GROUP, numbers.name, COUNT]))
    owner, count = [], []
    for batch in batches:
        texts, indices = encoded(batch.column(0))
        owner.append(np.array([names.get(text, -1) for text in (*texts, None)], np.int64)[indices])
        count.append(_whole_numbers(batch.column(2)))
    return np.concatenate(owner), numbers.of_release(batch.column(1) for batch in batches), np.concatenate(count)


def _whole_numbers(column: pa.Array) -> Floats:
    texts, indices = encoded(column)
    numbers = np.array([0.0 if text is None else read_number(text) for text in (*texts, None)], np.float64)
    counts: Floats = numbers[indices]
    wrong = int(np.count_nonzero(~((counts >= 1) & (counts % 1 == 0) & np.isfinite(counts))))
    if wrong:
        raise InputError(
            f"column {COUNT!r} of the release's second table has {wrong:,} values that are not positive whole numbers. "
            "Give the two tables that Anatomy made."
        )
    return counts


def _check_columns(table: Source, names: Sequence[str], which: str) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise UsageError(
                f"the column {name!r} has the same name as a column that Anatomy adds to its tables. Rename the column."
            )
        if name not in table.names:
            raise InputError(
                f"the {which} table of the release has no column {name!r}. Give the two tables that Anatomy made, and "
                "the policy they were made with."
            )


def _check_sizes(sizes: NDArray[Any], counted: NDArray[Any], owner: Integers) -> None:
    different = int(np.count_nonzero(sizes != counted)) + int(np.count_nonzero(owner < 0))
    if different:
        raise InputError(
            f"the two tables of the release differ in {different:,} groups: the counts of a group in the second table "
            "must add up to its records in the first. Check that both tables belong together."
        )
