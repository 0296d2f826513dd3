"""The released rows of a table on disk, in canonical order, batch by batch.

The classes are read twice. The first pass finds the boxes that occur on each quasi-identifier, so that the labels they
show can be sorted. The second pass gives every record the number of what it shows. The records are then sorted into the
order of the released rows, range by range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import SIZE, ClassFile
from sfumato.engines.disk.classes import ClassesOnDisk
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.passthrough_columns import PackedPassthrough
from sfumato.engines.engine import Outcome, outcome_of
from sfumato.errors import UsageError
from sfumato.kernels.threads import ahead, in_threads
from sfumato.losses.discernibility import GroupDiscernibility
from sfumato.methods.lattice.lattice_method import LevelRecoding
from sfumato.methods.line.optimal_cut import boxes_of
from sfumato.progress import Progress
from sfumato.releases.local_recoding import RecodedColumn, canonical_fields, recoded_column, released_columns
from sfumato.tables.coding.distinct_values import merged_numbers
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.sorting import Field, sort_rows
from sfumato.tables.external.external_sort import sorted_ranges
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.memory_limit import MemoryLimit, in_words, more_than
from sfumato.tables.external.packed_records import CODES, ROW, PackedFile, Rows, packed_file
from sfumato.tables.external.scratch import Scratch

ENTRIES = "entries"
DENSE_PAIRS = 1 << 22  # the largest table of all boxes on an attribute that is kept for marking
BATCH = 1 << 20  # released rows at a time
LABEL_BYTES = 250  # of what a box shows, while the texts are sorted; measured with ranges of numbers with two decimals


@dataclass(frozen=True)
class ReleasedRowsFile:
    """The released rows in a file, not yet sorted.

    A row has the number of the entry that it shows for every quasi-identifier, and the passthrough columns. columns:
    the entries, each once. bounded: the quasi-identifiers that have typed bounds.
    """

    file: PackedFile
    columns: list[RecodedColumn]
    carried: list[PackedPassthrough]
    names: Sequence[str]
    bounded: frozenset[str]
    keep_order: bool

    @property
    def count(self) -> int:
        return self.file.count

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch."""
        return self._released(np.empty(0, self.file.kind)).schema

    def batches(self, budget: MemoryBudget, scratch: Scratch) -> Iterator[pa.Table]:
        """Yield the released rows in canonical order, or in the order of the input.

        All batches but the last have the same size. All batches of a text column share one dictionary, which holds
        exactly the released values.
        """
        waiting: list[Rows] = []
        for rows in ahead(self._ordered(budget.rows(self.file.kind.itemsize), scratch)):
            waiting.append(rows)
            if sum(map(len, waiting)) >= BATCH:
                joined = np.concatenate(waiting)
                whole = len(joined) // BATCH * BATCH
                for first in range(0, whole, BATCH):
                    yield self._released(joined[first : first + BATCH])
                waiting = [joined[whole:].copy()]
        if any(map(len, waiting)):
            yield self._released(np.concatenate(waiting))

    def _ordered(self, most: int, scratch: Scratch) -> Iterator[Rows]:
        for rows in sorted_ranges(self.file, self._fields, most, scratch, keep=True):
            yield np.take(rows, sort_rows(self._fields(rows), len(rows)).rows)

    def _fields(self, rows: Rows) -> list[Field]:
        if self.keep_order:
            return [Field(rows[ROW], 8 * rows[ROW].itemsize)]  # records that were left out have numbers too
        shown = canonical_fields(self.columns, list(rows[ENTRIES].T))
        return [*shown, *(column.field(rows) for column in self.carried)]

    def _released(self, rows: Rows) -> pa.Table:
        attributes = {column.domain.name: q for q, column in enumerate(self.columns)}
        carried = {column.name: column for column in self.carried}

        def released(name: str) -> list[tuple[str, pa.Array]]:
            if name in carried:
                return [(name, carried[name].decode(rows))]
            entries = rows[ENTRIES][:, attributes[name]]
            column = self.columns[attributes[name]]
            return released_columns(column, lambda values: values[entries], bounds=name in self.bounded)

        columns = [pair for pairs in in_threads(released, self.names) for pair in pairs]
        return pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns])


@dataclass(frozen=True)
class RowsOnDisk:
    """The released rows in a file, and how they came about."""

    file: ReleasedRowsFile
    outcome: Outcome


def rows_on_disk(
    table: CodedTable, classes: ClassesOnDisk, budget: MemoryBudget, scratch: Scratch, limit: MemoryLimit
) -> RowsOnDisk:
    """Recode the records of every class to the smallest box around them, or each record to its levels."""
    outcome = outcome_of(classes.method, table.job.progress)
    if isinstance(classes.classes, ClassFile):
        sizes = classes.classes.sizes.batches(budget.rows(SIZE.itemsize))
        outcome = replace(outcome, facts={**outcome.facts, **GroupDiscernibility.of(sizes, table.count).facts()})
    return RowsOnDisk(_recoded(table, classes.classes, budget, scratch, limit), outcome)


def _recoded(
    table: CodedTable,
    classes: ClassFile | LevelRecoding,
    budget: MemoryBudget,
    scratch: Scratch,
    limit: MemoryLimit,
) -> ReleasedRowsFile:
    """Recode the records. A file of classes is removed afterwards."""
    progress = table.job.progress
    numbered, most = table.policy.numbered, budget.rows(table.file.kind.itemsize)
    with progress.phase("recode", 2 * table.count):
        domains = table.domains if isinstance(classes, ClassFile) else classes.domains
        boxes = [_OccurringBoxes(domain) for domain in domains]
        for _, _, low, high in _boxes(table, classes, most, progress):
            limit.claim(sum(occurring.bytes_to_add for occurring in boxes), partial(_too_many_boxes, boxes, limit))
            in_threads(lambda q: boxes[q].add(low[:, q], high[:, q]), range(len(boxes)))  # noqa: B023
        columns = []
        for occurring in boxes:  # one after the other: their texts take much memory on the way
            limit.claim(occurring.bytes_to_finish, partial(_too_many_boxes, boxes, limit))
            columns.append(occurring.finish(numbered=occurring.name in numbered))
        widest = max(len(column.labels) for column in columns)
        kept = [(name, table.file.kind[name]) for name in table.file.kind.names or () if name != CODES]
        file = packed_file(
            scratch, "shown", np.dtype([(ENTRIES, np.min_scalar_type(widest - 1), (len(columns),)), *kept])
        )
        for rows, sizes, low, high in _boxes(table, classes, most, progress):
            shown = np.empty(len(rows), file.kind)
            for q, occurring in enumerate(boxes):
                shown[ENTRIES][:, q] = np.repeat(occurring.entries(low[:, q], high[:, q]), sizes)
            for name, _ in kept:
                shown[name] = rows[name]
            file.append(shown)
    if isinstance(classes, ClassFile):
        classes.rows.remove()
        classes.sizes.remove()
    # This engine releases no means or medians, so the numbers are bounds.
    return ReleasedRowsFile(file, columns, table.carried, table.job.kept, numbered, table.policy.release.keep_order)


def _boxes(
    table: CodedTable, classes: ClassFile | LevelRecoding, most: int, progress: Progress
) -> Iterator[tuple[Rows, NDArray[np.int64], Codes, Codes]]:
    """Yield the records of some classes, the number of records with each box, and the boxes.

    Records on levels come in any order, without those that are left out.
    """
    if not isinstance(classes, ClassFile):
        for rows in ahead(table.file.batches(most)):
            groups = classes.groups_shown(table.codes_of(rows))
            here = np.flatnonzero(~classes.is_left_out(groups))
            yield np.take(rows, here), np.ones(len(here), np.int64), *classes.boxes(groups[here])
            progress.advance(len(rows))
        return
    for records, starts, box in ahead(_read(table, classes, most)):
        low, high = box or boxes_of(table.codes_of(records), np.arange(len(records), dtype=np.uint32), starts)
        yield records, np.diff(starts), low, high
        progress.advance(len(records))


def _read(
    table: CodedTable, class_file: ClassFile, most: int
) -> Iterator[tuple[Rows, NDArray[np.int64], tuple[Codes, Codes] | None]]:
    """Yield the records of whole classes, or the parts of a class that does not fit, with its box."""
    for first, starts in class_file.runs(most):
        last = first + int(starts[-1])
        if last - first <= most:
            yield class_file.rows.read(first, last), starts, None
            continue
        parts = [(begin, min(begin + most, last)) for begin in range(first, last, most)]
        boxes = [_extremes(table.codes_of(class_file.rows.read(*part))) for part in parts]
        low = np.min([box[0] for box in boxes], axis=0)[None, :]
        high = np.max([box[1] for box in boxes], axis=0)[None, :]
        for part in parts:
            yield class_file.rows.read(*part), np.array([0, part[1] - part[0]]), (low, high)


def _extremes(codes: Codes) -> tuple[Codes, Codes]:
    return codes.min(axis=0), codes.max(axis=0)


def _too_many_boxes(boxes: Sequence[_OccurringBoxes], limit: MemoryLimit, lacking: int) -> UsageError:
    largest = max(boxes, key=lambda occurring: occurring.count)
    return UsageError(
        f"the classes show {largest.count:,} different values of the quasi-identifier {largest.name!r}. They must "
        f"be in memory, and the run would take more than the {in_words(limit.memory)} that are allowed. Allow "
        f"{in_words(more_than(limit.memory + lacking))} with --memory, round or group the column, or choose a larger k."
    )


class _OccurringBoxes:
    """The boxes that occur on one quasi-identifier, as pairs of their smallest and largest code."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._occurs = np.zeros(domain.size**2, np.bool_) if domain.size**2 <= DENSE_PAIRS else None
        self._boxes = np.empty(0, np.int64)
        self._entry = np.empty(0, np.uint32)  # of each box that occurs

    def add(self, low: Codes, high: Codes) -> None:
        pairs = self._numbered(low, high)
        if self._occurs is not None:
            self._occurs[pairs] = True
        else:
            self._boxes = merged_numbers([self._boxes, pairs])

    @property
    def name(self) -> str:
        return self._domain.name

    @property
    def bytes_to_add(self) -> int:
        """The bytes that more boxes may take on the way, beside what is held."""
        return 2 * self._boxes.nbytes

    @property
    def count(self) -> int:
        return len(self._boxes) if self._occurs is None else int(np.count_nonzero(self._occurs))

    @property
    def bytes_to_finish(self) -> int:
        """The bytes that the texts of the boxes take, and on the way."""
        return self.count * LABEL_BYTES

    def finish(self, *, numbered: bool) -> RecodedColumn:
        """Return what the boxes show, each entry once."""
        if self._occurs is not None:
            self._boxes = np.flatnonzero(self._occurs)
        kind = np.min_scalar_type(self._domain.size - 1)
        low, high = np.divmod(self._boxes, self._domain.size)
        column = recoded_column(self._domain, low.astype(kind), high.astype(kind), numbered=numbered)
        self._entry = column.entry
        entries = np.arange(len(column.labels), dtype=np.uint32)
        return RecodedColumn(column.domain, entries, column.labels, column.low, column.high)

    def entries(self, low: Codes, high: Codes) -> NDArray[np.uint32]:
        """Return the entry that each box shows."""
        entries: NDArray[np.uint32] = self._entry[np.searchsorted(self._boxes, self._numbered(low, high))]
        return entries

    def _numbered(self, low: Codes, high: Codes) -> NDArray[np.int64]:
        return low.astype(np.int64) * self._domain.size + high
