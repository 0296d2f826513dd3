"""Frequency sets, counted in one reading of the data for several regions at once (LeFevre 2008, section 5.1).

Beside a code stands the combination of all values that a split is decided by: those of sensitive attributes, the cell
of the features, the class of every target, and of numbers whether there is one; of these also the sum is counted. The
combinations of a region are a table by code and combination, from the first code of its box to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.workload_scales import Whole
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads
from sfumato.methods.trees.mondrian import Start
from sfumato.methods.trees.split_targets import COLUMN, MISSING, tasks_of
from sfumato.methods.trees.split_tests import VALUES, WEIGHT, Units
from sfumato.requirements import Requirements
from sfumato.tables.external.packed_records import Rows

NOBODY = -1
LARGEST_COUNT = 1 << 32


@dataclass(frozen=True)
class Columns:
    """What is counted beside the codes. sizes: how many values each column has; numbers: which columns are summed."""

    whole: Whole
    attributes: tuple[str, ...]
    sizes: list[int]
    numbers: list[int]
    middle: int

    @classmethod
    def of(cls, whole: Whole, requirements: Requirements, start: Start) -> Columns:
        sizes = [int(one) + 1 for one in start.tests.distinct]
        numbers, middle = [], 0
        if start.tasks is not None:
            tasks = start.tasks
            middle = tasks.middle
            if tasks.cell >= 0:
                sizes.append(tasks.cells)
            for column, classes, absent in tasks.targets.T.tolist():
                if classes == 0:
                    numbers.append(column - VALUES)
                sizes.append(absent + 1 if classes else 2)
            assert [VALUES + len(sizes)] == [int(tasks.targets[COLUMN].max()) + 1]
        return cls(whole, requirements.attributes, sizes, numbers, middle)

    @property
    def slots(self) -> int:
        """How many combinations there are."""
        return int(np.prod([1, *self.sizes], dtype=object))

    def bytes(self, codes: int, count: int) -> int:
        """What the sets of so many codes take, for regions of up to so many records."""
        return codes * self.slots * ((4 if count < LARGEST_COUNT else 8) + 8 * len(self.numbers))

    def slots_of(self, rows: Rows) -> tuple[NDArray[np.int64] | None, list[NDArray[np.int64]]]:
        """The combination of each of some records, and the numbers that are summed, missing ones as 0."""
        if not self.sizes:
            return None, []
        columns = [self.whole.table.sensitive[name].of(rows).codes for name in self.attributes]
        workload = self.whole.workload(rows)
        if workload is not None and len(self.sizes) > len(columns):
            columns += tasks_of(workload, np.arange(len(rows), dtype=np.uint32), len(columns))[1]
        slot, numbers = np.zeros(len(rows), np.int64), []
        for place, (column, size) in enumerate(zip(columns, self.sizes, strict=True)):
            values = column.astype(np.int64)
            if place in self.numbers:
                missing = column == MISSING
                numbers.append(np.where(missing, 0, values - self.middle))
                values = missing.astype(np.int64)
            slot = slot * size + values
        return slot, numbers

    def values_of(self, slots: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The columns that combinations stand for: uint32[n, columns]; a number that is there is 0."""
        found = np.empty((len(slots), len(self.sizes)), np.uint32)
        for place in range(len(self.sizes) - 1, -1, -1):
            slots, found[:, place] = np.divmod(slots, self.sizes[place])
        return found


@dataclass(frozen=True)
class FrequencySets:
    """The frequency sets of several regions.

    low: int64[regions, d], the first codes of their boxes; begin: int64[regions, d + 1], where the set of each
    attribute begins in ``counts`` and in each of ``sums``.
    """

    columns: Columns
    low: NDArray[np.int64]
    begin: NDArray[np.int64]
    counts: NDArray[np.unsignedinteger]
    sums: list[NDArray[np.int64]]

    @classmethod
    def empty(
        cls, columns: Columns, low: NDArray[np.int64], high: NDArray[np.int64], sizes: Sequence[int]
    ) -> FrequencySets:
        """For regions with the boxes low..high and so many records."""
        spans = (high - low + 1) * columns.slots
        ends = np.append(0, np.cumsum(spans)).astype(np.int64)
        begin = np.column_stack([ends[:-1].reshape(spans.shape), ends[spans.shape[1] :: spans.shape[1]]])
        kind = np.uint32 if max(sizes) < LARGEST_COUNT else np.uint64
        return cls(
            columns,
            low,
            begin,
            np.zeros(int(ends[-1]), kind),
            [np.zeros(int(ends[-1]), np.int64) for _ in columns.numbers],
        )

    def add(self, rows: Rows, regions: NDArray[np.int64]) -> None:
        """Count some records; ``regions`` says which each is in, NOBODY for none of these."""
        codes = self.columns.whole.table.codes_of(rows)
        slot, numbers = self.columns.slots_of(rows)

        def count(attribute: int) -> None:
            places = np.ascontiguousarray(self.begin[:, attribute]), np.ascontiguousarray(self.low[:, attribute])
            count_codes(regions, codes, attribute, slot, *places, self.columns.slots, self.counts)
            for sums, values in zip(self.sums, numbers, strict=True):
                add_numbers(regions, codes, attribute, slot, values, *places, self.columns.slots, sums)

        in_threads(count, range(codes.shape[1]))

    def box(self, region: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The smallest box around the records of a region."""
        codes = [self.set(region, attribute).codes for attribute in range(self.low.shape[1])]
        return np.array([one[0, 0] for one in codes], np.int64), np.array([one[-1, 0] for one in codes], np.int64)

    def set(self, region: int, attribute: int) -> Units:
        """The frequency set of an attribute in a region."""
        here = slice(self.begin[region, attribute], self.begin[region, attribute + 1])
        there = np.flatnonzero(self.counts[here])
        codes, slots = np.divmod(there, self.columns.slots)
        weights = self.counts[here][there].astype(np.int64)
        values = self.columns.values_of(slots)
        if self.columns.numbers:
            sums = np.column_stack([one[here][there] for one in self.sums])
            return self._with_numbers(codes + self.low[region, attribute], weights, values, sums)
        data = np.zeros((len(there), VALUES + values.shape[1]), np.uint32)
        data[:, WEIGHT], data[:, VALUES:] = weights, values
        return Units((codes + self.low[region, attribute]).astype(np.uint32)[:, None], data)

    def _with_numbers(
        self,
        codes: NDArray[np.int64],
        weights: NDArray[np.int64],
        values: NDArray[np.uint32],
        sums: NDArray[np.int64],
    ) -> Units:
        """Each combination with numbers that have the sums: the mean, rounded down, or one more for as many as needed.

        With several numbers, a combination is as many units as there are different such shares, and one more.
        """
        below, more = np.divmod(sums, weights[:, None])
        shares = np.sort(np.column_stack([more, np.zeros_like(weights), weights]), axis=1)
        parts = np.diff(shares, axis=1)  # the records between one share and the next
        unit, place = np.nonzero(parts)
        data = np.zeros((len(unit), VALUES + values.shape[1]), np.uint32)
        data[:, WEIGHT], data[:, VALUES:] = parts[unit, place], values[unit]
        for number, column in enumerate(self.columns.numbers):
            one_more = shares[unit, place] < more[unit, number]
            here = below[unit, number] + self.columns.middle + one_more
            missing = values[unit, column] == 1
            data[:, VALUES + column] = np.where(missing, MISSING, here)
        return Units(codes[unit].astype(np.uint32)[:, None], data)


@kernel
def count_codes(regions, codes, attribute, slot, begin, low, slots, counts):
    """Count the records of each region by code and combination. slot: int64[n], or None where there is one alone."""
    for record in range(len(regions)):
        region = regions[record]
        if region >= 0:
            place = begin[region] + (np.int64(codes[record, attribute]) - low[region]) * slots
            if slot is not None:
                place += slot[record]
            counts[place] += 1


@kernel
def add_numbers(regions, codes, attribute, slot, numbers, begin, low, slots, sums):
    """The same for the sum of numbers: int64[n]."""
    for record in range(len(regions)):
        region = regions[record]
        if region >= 0:
            sums[begin[region] + (np.int64(codes[record, attribute]) - low[region]) * slots + slot[record]] += numbers[
                record
            ]
