"""Kept columns that would undo a release, in a table on disk. ``linkable_columns`` has the rules.

Columns with few values are counted against every quasi-identifier in one pass. Columns with many values are sorted
first, so that all records with the same value come together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from threading import Lock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.disk.coded_table import BATCH, CodedTable, distinct_column
from sfumato.engines.disk.passthrough_columns import PackedPassthrough
from sfumato.evaluation.linkability.column_facts import MOST_IN_SAMPLE, ValueTotals
from sfumato.evaluation.linkability.identifiers import IdentifierRules
from sfumato.evaluation.linkability.linkable_columns import count_pairs, nearly_determined, nearly_unique
from sfumato.kernels.threads import in_threads_ahead
from sfumato.tables.coding.arrow_arrays import from_numpy
from sfumato.tables.coding.passthrough import order_numbers
from sfumato.tables.coding.sorting import Field, bits_for
from sfumato.tables.external.external_sort import sorted_ranges
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.packed_records import CODES, Rows, packed_file
from sfumato.tables.external.scratch import Scratch

DENSE = 1 << 20  # the largest table of all pairs of value and code that is kept for counting
VALUE = "value"


def linkable_on_disk(
    table: CodedTable, accepted: Collection[str], budget: MemoryBudget, scratch: Scratch
) -> dict[str, str]:
    """Return the linkable columns that are not in ``accepted``, each with the reason in words."""
    columns = [_LinkedColumn(table, column) for column in table.carried if column.name not in accepted]
    dense = [column for column in columns if column.dense]
    if dense:
        batch = min(budget.rows(table.file.kind.itemsize), BATCH)
        for _ in in_threads_ahead(partial(_count, dense, Lock()), table.file.batches(batch)):
            pass  # the counts are added where they are made
    rules = IdentifierRules.of(table.job.source, table.policy)
    reasons = {}
    for column in columns:
        if not column.dense:
            _count_many(column, budget, scratch)
        reason = column.reason() or rules.reason(column.column.name, column.sample(), column.totals)
        if reason is not None:
            reasons[column.column.name] = reason
    return reasons


class _LinkedColumn:
    """The counts of one column so far: records that are alone with their value, and records that are guessed right.

    Values are numbers from 0 on; the last is null, which identifies nobody.
    """

    def __init__(self, table: CodedTable, column: PackedPassthrough) -> None:
        self.table, self.column = table, column
        self._value_of_code: NDArray[np.unsignedinteger] | None = None
        self.null = column.codes - 1 if column.has_null else column.codes
        if column.dictionary is not None or column.known is not None:
            self._value_of_code, size = distinct_column(column).distinct
            self.null = size - 1
        widest = max(domain.size for domain in table.domains)
        self.dense = self._value_of_code is not None and (self.null + 1) * widest <= DENSE
        self.counts: list[NDArray[np.int64]] = []  # by quasi-identifier: int64[values, codes]
        if self.dense:
            self.counts = [np.zeros((self.null + 1, domain.size), np.int64) for domain in table.domains]
        self.alone = self.known = self.different = 0
        self.right = np.zeros(len(table.domains), np.int64)

    def values(self, rows: Rows) -> NDArray[np.unsignedinteger]:
        """Return the value of each record. NaN is null, and -0.0 is 0.0."""
        codes: NDArray[np.unsignedinteger] = rows[self.column.key]
        if self._value_of_code is not None:
            values: NDArray[np.unsignedinteger] = self._value_of_code[self.column.positions(codes)]
            return values
        if not pa.types.is_floating(self.column.kind):
            return codes
        special = order_numbers(from_numpy(np.array([-0.0, 0.0, np.nan])))
        negative, positive, nothing = special - np.uint64(self.column.least)
        codes = np.where(codes == negative, positive, codes)
        return np.where(codes == nothing, np.uint64(self.null), codes)

    def add(self, sizes: NDArray[np.int64], right: NDArray[np.int64], *, null: bool) -> None:
        """Add values. sizes: the records of each. right: by quasi-identifier, the records that are guessed right."""
        self.right += right
        if not null:
            self.alone += int(np.count_nonzero(sizes == 1))
            self.known += int(sizes.sum())
            self.different += len(sizes)

    @property
    def totals(self) -> ValueTotals:
        return ValueTotals(self.table.count, self.known, self.alone, self.different)

    def sample(self) -> pa.Array:
        """Return some of the distinct values."""
        if self.column.dictionary is not None:
            return distinct_column(self.column).some_values(MOST_IN_SAMPLE)
        if self._value_of_code is not None:
            return self.column.values
        return self.column.decode(next(self.table.file.batches(MOST_IN_SAMPLE))[self.column.key]).unique()

    def reason(self) -> str | None:
        if self.dense:
            self.right[:] = [counts.max(axis=1).sum() for counts in self.counts]
            sizes = self.counts[0].sum(axis=1)[:-1]
            self.alone, self.known = int(np.count_nonzero(sizes == 1)), int(sizes.sum())
            self.different = int(np.count_nonzero(sizes))
        if nearly_unique(self.alone, self.known):
            return f"{self.alone / self.known:.0%} of the records that have a value are alone with it"
        for q, domain in enumerate(self.table.domains):
            most = int(self.table.used[q].max())
            if nearly_determined(int(self.right[q]), most, self.table.count):
                return f"it nearly determines the quasi-identifier {domain.name!r}"
        return None


def _count(columns: Sequence[_LinkedColumn], adding: Lock, rows: Rows) -> None:
    codes = [np.ascontiguousarray(rows[CODES][:, q]) for q in range(rows[CODES].shape[1])]
    for column in columns:
        values = column.values(rows)
        for codes_of_column, counts in zip(codes, column.counts, strict=True):
            more = np.zeros_like(counts)
            count_pairs(values, codes_of_column, more)
            with adding:
                np.add(counts, more, out=counts)


def _count_many(column: _LinkedColumn, budget: MemoryBudget, scratch: Scratch) -> None:
    """Count a column with many values by sorting. The last value of a range may go on in the next."""
    table, sizes = column.table, [domain.size for domain in column.table.domains]
    kind = np.dtype([(VALUE, np.uint64), (CODES, table.file.kind[CODES].base, (len(sizes),))])
    file = packed_file(scratch, "linkage", kind)
    most = budget.rows(kind.itemsize)
    for rows in table.file.batches(most):
        pairs = np.empty(len(rows), kind)
        pairs[VALUE], pairs[CODES] = column.values(rows), rows[CODES]
        file.append(pairs)
    open_value, open_counts = -1, [np.zeros(size, np.int64) for size in sizes]

    def close() -> None:
        if open_value >= 0:
            right = np.array([counts.max() for counts in open_counts])
            column.add(np.array([open_counts[0].sum()]), right, null=open_value == column.null)

    bits = bits_for(column.null + 1)
    for rows in sorted_ranges(file, lambda rows: [Field(rows[VALUE], bits)], most, scratch):
        last = int(rows[VALUE].max())
        ends = rows[VALUE] == last
        before = rows[~ends]
        first = before[VALUE] == open_value
        for q, size in enumerate(sizes):
            open_counts[q] += np.bincount(before[CODES][:, q][first], minlength=size)
        if last != open_value:
            close()
            open_value, open_counts = last, [np.zeros(size, np.int64) for size in sizes]
        for q, size in enumerate(sizes):
            open_counts[q] += np.bincount(rows[CODES][:, q][ends], minlength=size)
        whole = before[~first]
        if len(whole):
            _, number = np.unique(whole[VALUE], return_inverse=True)
            right = np.array([_right(number, whole[CODES][:, q], size) for q, size in enumerate(sizes)])
            column.add(np.bincount(number), right, null=False)  # null is above all values, so never among these
    close()


def _right(number: NDArray[np.int64], codes: NDArray[np.unsignedinteger], size: int) -> int:
    """Count the records with the most frequent code of their value. number: the value of each record, from 0 on."""
    pairs, counts = np.unique(number * size + codes, return_counts=True)
    owner = pairs // size
    return int(np.maximum.reduceat(counts, np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))).sum())
