"""Frequency sets, counted for several regions in one reading of the data (LeFevre 2008, section 5.1).

A set counts records by code and by the combination of all values that decide a split: the values of the sensitive
attributes, the cell of the features, the class of every target, and for every numeric target whether it is missing.
Numeric targets are also summed. The set of a region is a table from the first code of its box to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.workload_scales import ScaledTable
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads
from sfumato.methods.trees.mondrian import Start
from sfumato.methods.trees.split_targets import COLUMN, MISSING, tasks_of
from sfumato.methods.trees.split_tests import VALUES, WEIGHT, Units
from sfumato.requirements import Requirements
from sfumato.tables.external.packed_records import Rows

NOBODY = -1  # no region
LARGEST_COUNT = 1 << 32


@dataclass(frozen=True)
class CombinationColumns:
    """The columns whose combinations are counted. sizes: the number of values of each. numbers: the summed columns."""

    scaled: ScaledTable
    attributes: tuple[str, ...]
    sizes: list[int]
    numbers: list[int]
    middle: int

    @classmethod
    def of(cls, scaled: ScaledTable, requirements: Requirements, start: Start) -> CombinationColumns:
        sizes = [int(distinct) + 1 for distinct in start.tests.distinct]
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
        return cls(scaled, requirements.attributes, sizes, numbers, middle)

    @property
    def slots(self) -> int:
        """The number of combinations."""
        return int(np.prod([1, *self.sizes], dtype=object))

    def bytes(self, codes: int, count: int) -> int:
        """Return the size in bytes of sets with this number of codes, for regions of up to ``count`` records."""
        return codes * self.slots * ((4 if count < LARGEST_COUNT else 8) + 8 * len(self.numbers))

    def slots_of(self, rows: Rows) -> tuple[NDArray[np.int64] | None, list[NDArray[np.int64]]]:
        """Return the combination of each record, and the numbers that are summed, with 0 for missing ones."""
        if not self.sizes:
            return None, []
        columns = [self.scaled.table.sensitive[name].of(rows).codes for name in self.attributes]
        workload = self.scaled.workload(rows)
        if workload is not None and len(self.sizes) > len(columns):
            columns += tasks_of(workload, np.arange(len(rows), dtype=np.uint32), len(columns))[1]
        slot, numbers = np.zeros(len(rows), np.int64), []
        for number, (column, size) in enumerate(zip(columns, self.sizes, strict=True)):
            values = column.astype(np.int64)
            if number in self.numbers:
                missing = column == MISSING
                numbers.append(np.where(missing, 0, values - self.middle))
                values = missing.astype(np.int64)
            slot = slot * size + values
        return slot, numbers

    def values_of(self, slots: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the values of combinations: uint32[n, columns]. A numeric target is 0 if present, 1 if missing."""
        values = np.empty((len(slots), len(self.sizes)), np.uint32)
        for column in range(len(self.sizes) - 1, -1, -1):
            slots, values[:, column] = np.divmod(slots, self.sizes[column])
        return values


@dataclass(frozen=True)
class FrequencySets:
    """The frequency sets of several regions.

    low: int64[regions, d], the first codes of their boxes. begin: int64[regions, d + 1], where the set of each
    attribute begins in ``counts`` and in each of ``sums``.
    """

    columns: CombinationColumns
    low: NDArray[np.int64]
    begin: NDArray[np.int64]
    counts: NDArray[np.unsignedinteger]
    sums: list[NDArray[np.int64]]

    @classmethod
    def empty(
        cls, columns: CombinationColumns, low: NDArray[np.int64], high: NDArray[np.int64], sizes: Sequence[int]
    ) -> FrequencySets:
        """Return empty sets for regions with the boxes low..high and these numbers of records."""
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
        """Count records. regions: int64[n], the region of each record, or NOBODY."""
        codes = self.columns.scaled.table.codes_of(rows)
        slot, numbers = self.columns.slots_of(rows)

        def count(attribute: int) -> None:
            bounds = np.ascontiguousarray(self.begin[:, attribute]), np.ascontiguousarray(self.low[:, attribute])
            count_codes(regions, codes, attribute, slot, *bounds, self.columns.slots, self.counts)
            for sums, values in zip(self.sums, numbers, strict=True):
                add_numbers(regions, codes, attribute, slot, values, *bounds, self.columns.slots, sums)

        in_threads(count, range(codes.shape[1]))

    def box(self, region: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the smallest box around the records of a region."""
        codes = [self.set(region, attribute).codes for attribute in range(self.low.shape[1])]
        low, high = [column[0, 0] for column in codes], [column[-1, 0] for column in codes]
        return np.array(low, np.int64), np.array(high, np.int64)

    def set(self, region: int, attribute: int) -> Units:
        """Return the frequency set of an attribute in a region."""
        span = slice(self.begin[region, attribute], self.begin[region, attribute + 1])
        occurring = np.flatnonzero(self.counts[span])
        codes, slots = np.divmod(occurring, self.columns.slots)
        weights = self.counts[span][occurring].astype(np.int64)
        values = self.columns.values_of(slots)
        if self.columns.numbers:
            sums = np.column_stack([column[span][occurring] for column in self.sums])
            return self._with_numbers(codes + self.low[region, attribute], weights, values, sums)
        data = np.zeros((len(occurring), VALUES + values.shape[1]), np.uint32)
        data[:, WEIGHT], data[:, VALUES:] = weights, values
        return Units((codes + self.low[region, attribute]).astype(np.uint32)[:, None], data)

    def _with_numbers(
        self,
        codes: NDArray[np.int64],
        weights: NDArray[np.int64],
        values: NDArray[np.uint32],
        sums: NDArray[np.int64],
    ) -> Units:
        """Return units whose numbers add up to the sums.

        A record gets the mean of its combination, rounded down, or one more, for as many records as the sum needs. A
        combination becomes one unit more than its numbers have distinct shares of such records.
        """
        below, more = np.divmod(sums, weights[:, None])
        shares = np.sort(np.column_stack([more, np.zeros_like(weights), weights]), axis=1)
        parts = np.diff(shares, axis=1)  # the records between one share and the next
        unit, part = np.nonzero(parts)
        data = np.zeros((len(unit), VALUES + values.shape[1]), np.uint32)
        data[:, WEIGHT], data[:, VALUES:] = parts[unit, part], values[unit]
        for number, column in enumerate(self.columns.numbers):
            one_more = shares[unit, part] < more[unit, number]
            present = below[unit, number] + self.columns.middle + one_more
            missing = values[unit, column] == 1
            data[:, VALUES + column] = np.where(missing, MISSING, present)
        return Units(codes[unit].astype(np.uint32)[:, None], data)


@kernel
def count_codes(regions, codes, attribute, slot, begin, low, slots, counts):
    """Count the records of each region by code and combination.

    slot: int64[n], the combination of each record, or None if there is only one. counts: modified.
    """
    for record in range(len(regions)):
        region = regions[record]
        if region >= 0:
            entry = begin[region] + (np.int64(codes[record, attribute]) - low[region]) * slots
            if slot is not None:
                entry += slot[record]
            counts[entry] += 1


@kernel
def add_numbers(regions, codes, attribute, slot, numbers, begin, low, slots, sums):
    """Add up the numbers of each region by code and combination. numbers: int64[n]. sums: modified."""
    for record in range(len(regions)):
        region = regions[record]
        if region >= 0:
            entry = begin[region] + (np.int64(codes[record, attribute]) - low[region]) * slots + slot[record]
            sums[entry] += numbers[record]
