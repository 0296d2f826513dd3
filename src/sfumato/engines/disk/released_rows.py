"""The released rows of a table on disk, in canonical order, batch by batch.

The classes are read twice. The first pass finds the boxes that occur on each quasi-identifier, so that the labels they
show can be sorted. The second pass gives every record the number of what it shows. The records are then sorted into the
order of the released rows, range by range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import SIZE, ClassFile
from sfumato.engines.disk.classes import ClassesOnDisk
from sfumato.engines.disk.coded_table import BATCH, CodedTable
from sfumato.engines.disk.passthrough_columns import PackedPassthrough
from sfumato.engines.engine import Outcome, outcome_of
from sfumato.errors import UsageError
from sfumato.kernels.threads import ahead, in_threads, in_threads_ahead
from sfumato.losses.discernibility import GroupDiscernibility
from sfumato.methods.lattice.lattice_method import LevelRecoding
from sfumato.methods.line.optimal_cut import boxes as boxes_around
from sfumato.releases.local_recoding import RecodedColumn, canonical_fields, recoded_column, released_columns
from sfumato.tables.coding.distinct_values import merged_numbers
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.sorting import Field, bits_for, row_order
from sfumato.tables.external.external_sort import sorted_ranges
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.memory_limit import MemoryLimit, in_words, more_than
from sfumato.tables.external.packed_records import CODES, ROW, PackedFile, Rows, packed_file
from sfumato.tables.external.record_words import WORDS, WordLayout, Words, sorted_words, words_of
from sfumato.tables.external.scratch import Scratch

ENTRIES = "entries"
DENSE_PAIRS = 1 << 22  # the largest table of all boxes on an attribute that is kept for marking
FEW_PAIRS = 1 << 20  # the largest table of the entries of all boxes on an attribute
FLAGS = 1  # fields of a word before the entries: whether a row shows nothing, and so comes last
LABEL_BYTES = 250  # of what a box shows, while the texts are sorted; measured with ranges of numbers with two decimals


@dataclass(frozen=True)
class ReleasedRowsFile:
    """The released rows in a file, not yet sorted.

    A row has the number of the entry that it shows for every quasi-identifier, and the passthrough columns. columns:
    the entries, each once. bounded: the quasi-identifiers that have typed bounds. layout: of rows that are words.
    """

    file: PackedFile
    layout: WordLayout | None
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
        ordered = self._ordered(budget, scratch)
        yield from in_threads_ahead(self._released, _equal_batches(ahead(ordered)))

    def _ordered(self, budget: MemoryBudget, scratch: Scratch) -> Iterator[NDArray[Any]]:
        if self.layout is not None:
            yield from sorted_words(self.file, self.layout, budget.words(0), scratch, keep=True)
            return
        for rows in sorted_ranges(self.file, self._fields, budget.rows(self.file.kind.itemsize), scratch, keep=True):
            yield np.take(rows, row_order(self._fields(rows), len(rows)))

    def _fields(self, rows: Rows) -> list[Field]:
        if self.keep_order:
            return [Field(rows[ROW], 8 * rows[ROW].itemsize)]  # records that were left out have numbers too
        shown = canonical_fields(self.columns, list(rows[ENTRIES].T))
        return [*shown, *(column.field(rows) for column in self.carried)]

    def _released(self, rows: NDArray[Any]) -> pa.Table:
        attributes = {column.domain.name: q for q, column in enumerate(self.columns)}
        carried = {column.name: number for number, column in enumerate(self.carried)}
        columns: list[tuple[str, pa.Array]] = []
        for name in self.names:
            if name in carried:
                columns.append((name, self.carried[carried[name]].decode(self._carried(rows, carried[name]))))
                continue
            column, entries = self.columns[attributes[name]], self._entries(rows, attributes[name])
            columns += released_columns(column, partial(np.take, indices=entries), bounds=name in self.bounded)
        return pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns])

    def _entries(self, rows: NDArray[Any], q: int) -> NDArray[np.intp]:
        """Return the entry that each row shows for a quasi-identifier."""
        entries = rows[ENTRIES][:, q] if self.layout is None else self.layout.values(rows, FLAGS + q)
        return entries.astype(np.intp)

    def _carried(self, rows: NDArray[Any], number: int) -> NDArray[np.unsignedinteger]:
        """Return the codes of a passthrough column."""
        column = self.carried[number]
        if self.layout is None:
            packed: NDArray[np.unsignedinteger] = rows[column.key]
            return packed
        return self.layout.values(rows, FLAGS + len(self.columns) + number).astype(column.stored)


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
    progress, numbered = table.job.progress, table.policy.numbered
    most = min(budget.rows(table.file.kind.itemsize), BATCH)
    with progress.phase("recode", 2 * table.count):
        domains = table.domains if isinstance(classes, ClassFile) else classes.domains
        boxes = [_OccurringBoxes(domain) for domain in domains]
        for rows, _, low, high in in_threads_ahead(partial(_boxed, table, classes), _parts(table, classes, most)):
            limit.claim(sum(occurring.bytes_to_add for occurring in boxes), partial(_too_many_boxes, boxes, limit))
            in_threads(lambda q: boxes[q].add(low[:, q], high[:, q]), range(len(boxes)))  # noqa: B023
            progress.advance(len(rows))
        columns = []
        for occurring in boxes:  # one after the other: their texts take much memory on the way
            limit.claim(occurring.bytes_to_finish, partial(_too_many_boxes, boxes, limit))
            columns.append(occurring.finish(numbered=occurring.name in numbered))
        kept = [(name, table.file.kind[name]) for name in table.file.kind.names or () if name != CODES]
        keep_order = table.policy.release.keep_order
        layout = None if keep_order else _layout(columns, table.carried)
        widest = max(len(column.labels) for column in columns)
        kind = np.dtype([(ENTRIES, np.min_scalar_type(widest - 1), (len(columns),)), *kept])
        file = packed_file(scratch, "shown", WORDS if layout is not None else kind)

        def shown(part: _PackedPart) -> tuple[NDArray[Any], int]:
            rows, sizes, low, high = _boxed(table, classes, part)
            entries = [occurring.entries(low[:, q], high[:, q]) for q, occurring in enumerate(boxes)]
            if layout is not None:
                return _words(columns, entries, sizes, table.carried, rows), len(part.rows)
            packed = np.empty(len(rows), kind)
            for q, entries_of_class in enumerate(entries):
                packed[ENTRIES][:, q] = np.repeat(entries_of_class, sizes)
            for name, _ in kept:
                packed[name] = rows[name]
            return packed, len(part.rows)

        for packed, records in in_threads_ahead(shown, _parts(table, classes, most)):
            file.append(packed)
            progress.advance(records)
    if isinstance(classes, ClassFile):
        classes.rows.remove()
        classes.sizes.remove()
    # This engine releases no means or medians, so the numbers are bounds.
    return ReleasedRowsFile(file, layout, columns, table.carried, table.job.kept, numbered, keep_order)


def _layout(columns: Sequence[RecodedColumn], carried: Sequence[PackedPassthrough]) -> WordLayout | None:
    """Return how released rows become words in canonical order; None if they do not fit into words."""
    entries = (bits_for(len(column.labels)) for column in columns)
    layout = WordLayout((1, *entries, *(bits_for(column.codes) for column in carried)))
    return layout if layout.fits else None


def _words(
    columns: Sequence[RecodedColumn],
    entries: Sequence[NDArray[np.uint32]],
    sizes: NDArray[np.int64],
    carried: Sequence[PackedPassthrough],
    rows: Rows,
) -> Words:
    """Return the released rows of some classes as words. entries: what each class shows, by column."""
    fields = canonical_fields(columns, entries)
    if len(fields) == len(columns):  # no row shows nothing
        fields = [Field(np.zeros(len(sizes), np.uint8), FLAGS), *fields]
    words = np.repeat(words_of(fields), sizes)
    others = [column.field(rows) for column in carried]
    if others:
        words <<= np.uint64(sum(field.bits for field in others))
        words |= words_of(others)
    return words


def _equal_batches(parts: Iterator[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Divide rows into batches of one size, the last one aside."""
    waiting: list[NDArray[Any]] = []
    held = 0
    for part in parts:
        begin = 0
        while held + len(part) - begin >= BATCH:
            end = begin + BATCH - held
            yield np.concatenate([*waiting, part[begin:end]])
            waiting, held, begin = [], 0, end
        if begin < len(part):
            waiting.append(part[begin:].copy())
            held += len(waiting[-1])
    if waiting:
        yield np.concatenate(waiting)


@dataclass(frozen=True)
class _PackedPart:
    """Packed records. starts: where classes begin, if they are whole classes. box: that of a class they are part of."""

    rows: Rows
    starts: NDArray[np.int64] | None = None
    box: tuple[Codes, Codes] | None = None


def _parts(table: CodedTable, classes: ClassFile | LevelRecoding, most: int) -> Iterator[_PackedPart]:
    if isinstance(classes, ClassFile):
        yield from _read(table, classes, most)
    else:
        yield from map(_PackedPart, table.file.batches(most))


def _boxed(
    table: CodedTable, classes: ClassFile | LevelRecoding, part: _PackedPart
) -> tuple[Rows, NDArray[np.int64], Codes, Codes]:
    """Return the records of a part, the number of records with each box, and the boxes.

    Records on levels are without those that are left out.
    """
    rows, starts = part.rows, part.starts
    if not isinstance(classes, ClassFile):
        groups = classes.groups_shown(table.codes_of(rows))
        here = np.flatnonzero(~classes.is_left_out(groups))
        return np.take(rows, here), np.ones(len(here), np.int64), *classes.boxes(groups[here])
    assert starts is not None
    low, high = part.box or boxes_around(table.codes_of(rows), np.arange(len(rows), dtype=np.uint32), starts)
    return rows, np.diff(starts), low, high


def _read(table: CodedTable, class_file: ClassFile, most: int) -> Iterator[_PackedPart]:
    """Yield the records of whole classes, or the parts of a class that does not fit, with its box."""
    for first, starts in class_file.runs(most):
        last = first + int(starts[-1])
        if last - first <= most:
            yield _PackedPart(class_file.rows.read(first, last), starts)
            continue
        parts = [(begin, min(begin + most, last)) for begin in range(first, last, most)]
        boxes = [_extremes(table.codes_of(class_file.rows.read(*part))) for part in parts]
        low = np.min([box[0] for box in boxes], axis=0)[None, :]
        high = np.max([box[1] for box in boxes], axis=0)[None, :]
        for part in parts:
            yield _PackedPart(class_file.rows.read(*part), np.array([0, part[1] - part[0]]), (low, high))


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
        self._entry_of_pair: NDArray[np.uint32] | None = None  # if there are few pairs

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
        if self._occurs is not None and len(self._occurs) <= FEW_PAIRS:
            self._entry_of_pair = np.zeros(len(self._occurs), np.uint32)
            self._entry_of_pair[self._boxes] = self._entry
        entries = np.arange(len(column.labels), dtype=np.uint32)
        return RecodedColumn(column.domain, entries, column.labels, column.low, column.high)

    def entries(self, low: Codes, high: Codes) -> NDArray[np.uint32]:
        """Return the entry that each box shows."""
        if self._entry_of_pair is not None:
            return self._entry_of_pair[self._numbered(low, high)]
        entries: NDArray[np.uint32] = self._entry[np.searchsorted(self._boxes, self._numbered(low, high))]
        return entries

    def _numbered(self, low: Codes, high: Codes) -> NDArray[np.int64]:
        return low.astype(np.int64) * self._domain.size + high
