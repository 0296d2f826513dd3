"""Parts of a coded table: divided into files while they are larger than memory, and in memory once they fit.

Rothko-T and Rothko-S share this (LeFevre 2008, section 5). They find a tree of regions for a part that is larger than
memory, divide the part into the leaves of the tree, and finish the leaves with the method itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import ClassFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.rothko_io_cost import IoCounters
from sfumato.engines.disk.workload_scales import ScaledTable, scaled_table
from sfumato.engines.memory.classes import assign
from sfumato.errors import UsageError
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.methods.trees.mondrian import MondrianMethod, Start
from sfumato.methods.trees.region_tree import descend
from sfumato.methods.trees.split_from_counts import Split
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes
from sfumato.tables.external.memory_budget import SHARE, MemoryBudget
from sfumato.tables.external.packed_records import PackedFile, Rows, packed_file
from sfumato.tables.external.scratch import Scratch

SCANNED = 1 << 18  # records that are read at once if they are only counted
LEAST_ROOM = 1 << 20  # bytes for counts, however little memory is allowed
CHUNK = 1 << 15  # records that one thread takes of them


@dataclass(frozen=True)
class OpenRegion:
    """A node of a tree that still grows. low, high: int64[d], its first and last codes."""

    number: int
    low: NDArray[np.int64]
    high: NDArray[np.int64]


@dataclass(frozen=True)
class TablePart:
    """Records in one or several files.

    rule: the split rule that divides the part next. owned: the files may be removed once they are read; those of the
    whole table may not. settled: the part has no allowable split. region: the region of its records, if regions are
    kept.
    """

    files: Sequence[PackedFile]
    rule: int
    owned: bool = True
    settled: bool = False
    region: OpenRegion | None = None

    @property
    def count(self) -> int:
        return sum(file.count for file in self.files)

    def batches(self, rows: int) -> Iterator[Rows]:
        for file in self.files:
            yield from file.batches(rows)

    def remove(self) -> None:
        if self.owned:
            for file in self.files:
                file.remove()


@dataclass(frozen=True)
class RegionLookup:
    """A tree of regions, in the form that ``descend`` takes."""

    attribute: NDArray[np.int64]
    first_child: NDArray[np.int64]
    high: NDArray[np.integer]

    def leaves_of(self, codes: Codes) -> NDArray[np.int64]:
        """Return the leaf of each record: int64[n]."""
        parts = slices(len(codes), CHUNK)
        leaves = in_threads(
            lambda part: descend(codes[part[0] : part[1]], self.attribute, self.first_child, self.high), parts
        )
        return np.concatenate(leaves) if leaves else np.empty(0, np.int64)


@dataclass
class TableDivision(ABC):
    """The division of a table into parts. Subclasses say what becomes of a finished part."""

    table: CodedTable
    method: MondrianMethod
    requirements: Requirements
    budget: MemoryBudget
    scratch: Scratch
    progress: Progress
    counters: IoCounters
    scaled: ScaledTable = field(init=False)
    start: Start = field(init=False)
    """What a tree on any records of the table starts from. Its units are those of one record."""

    def __post_init__(self) -> None:
        refuse(self.method, self.requirements)
        self.scaled = scaled_table(self.table, self.scanned, self.counters)
        self.start = self.method.start(self.scaled.records(self.table.sample[:1]), self.requirements)

    @property
    def width(self) -> int:
        return int(self.table.file.kind.itemsize)

    @property
    def fits(self) -> int:
        """The number of records that are divided in memory."""
        return self.budget.rows(self.width)

    @property
    def scanned(self) -> int:
        return min(self.fits, SCANNED)

    @property
    def room(self) -> int:
        """The bytes that counts may take."""
        return max(self.budget.work // SHARE, LEAST_ROOM)

    def all(self) -> TablePart:
        return TablePart([self.table.file], self.start.rule, owned=False)

    def scan(self, part: TablePart, rows: int) -> Iterator[Rows]:
        """Read a part, at most ``rows`` records at a time."""
        self.counters.scans += 1
        for batch in part.batches(rows):
            self.counters.read += len(batch) * self.width
            yield batch

    def finish(self, part: TablePart) -> None:
        """Divide a part that fits into memory to the end."""
        batches = list(self.scan(part, self.fits))
        rows = batches[0] if len(batches) == 1 else np.concatenate(batches)
        part.remove()
        self.counters.finished += 1
        self.add(part, rows)
        self.progress.advance(len(rows))

    @abstractmethod
    def add(self, part: TablePart, rows: Rows) -> None:
        """Add what the method makes of a part whose records are in memory."""

    @abstractmethod
    def keep(self, part: TablePart) -> None:
        """Add a part that is larger than memory as one class."""

    def branch(self, region: OpenRegion | None, split: Split) -> Sequence[OpenRegion | None]:
        """Record that a region is divided, and return the regions of its parts."""
        return [None] * len(split.sizes)

    def divide(
        self,
        part: TablePart,
        regions: RegionLookup,
        leaves: NDArray[np.int64],
        visit: Callable[[Rows, NDArray[np.int64]], None] | None = None,
    ) -> list[PackedFile]:
        """Write the records of each leaf to a file of its own.

        leaves: the nodes that are leaves; files are in this order. visit: called with every batch of records and the
        position of each record's leaf in ``leaves``.
        """
        self.counters.repartitions += 1
        position_of = np.full(len(regions.attribute), -1, np.int64)
        position_of[leaves] = np.arange(len(leaves))
        files = [packed_file(self.scratch, "part", self.table.file.kind) for _ in leaves]
        for rows in self.scan(part, self.fits):
            leaf_of_row = position_of[regions.leaves_of(self.table.codes_of(rows))]
            if visit is not None:
                visit(rows, leaf_of_row)
            order, starts = in_runs(leaf_of_row, len(leaves))
            by_leaf = np.take(rows, order)
            for leaf in np.flatnonzero(np.diff(starts)).tolist():
                files[leaf].append(by_leaf[starts[leaf] : starts[leaf + 1]])
            self.counters.written += len(rows) * self.width
        part.remove()
        return files


@dataclass
class DivisionIntoClasses(TableDivision):
    """A division whose finished parts are classes in a file."""

    class_file: ClassFile

    def add(self, part: TablePart, rows: Rows) -> None:
        numbered = self.table.policy.numbered
        records = self.scaled.records(rows)
        for batch in assign(records, self.method, self.requirements, Progress(), numbered=numbered):
            self.class_file.add(np.take(rows, batch.rows), np.diff(batch.starts))

    def keep(self, part: TablePart) -> None:
        self.counters.whole += 1
        for rows in self.scan(part, self.fits):
            self.class_file.rows.append(rows)
            self.progress.advance(len(rows))
        self.class_file.sizes.append(np.array([part.count]))
        part.remove()


def refuse(method: MondrianMethod, requirements: Requirements) -> None:
    """Raise UsageError if a table cannot be divided part by part under this method and these requirements."""
    if requirements.person is not None:
        raise UsageError(
            f"{method.name} on tables larger than memory cannot count persons. Allow more memory, or use "
            "--engine memory."
        )
    if requirements.joint:
        raise UsageError(
            f"{method.name} on tables larger than memory cannot hold requirements jointly. Allow more memory, or use "
            "--engine memory."
        )
    if not method.tiles:
        raise UsageError(
            f"{method.name} puts equal values into several regions, so a table cannot be divided before all of it is "
            "in memory. Allow more memory, or use mondrian."
        )


@kernel
def in_runs(owner, owners):
    """Return the records sorted by owner, stably: uint32[n], and where each owner begins: int64[owners + 1].

    owner: int64[n], each in 0..owners-1, not modified.
    """
    starts = np.zeros(owners + 1, np.int64)
    for record in range(len(owner)):
        starts[owner[record] + 1] += 1
    for number in range(owners):
        starts[number + 1] += starts[number]
    next_free = starts[:-1].copy()
    order = np.empty(len(owner), np.uint32)
    for record in range(len(owner)):
        order[next_free[owner[record]]] = record
        next_free[owner[record]] += 1
    return order, starts
