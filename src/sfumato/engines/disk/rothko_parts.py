"""Parts of a coded table that are divided into files and, as soon as they fit into memory, to the end.

What Rothko-T and Rothko-S have in common (LeFevre 2008, section 5): they find a tree of regions for a part that is
larger than memory, divide it into the leaves of the tree, and finish the leaves with the method itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import ClassedFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.rothko_io_cost import Traffic
from sfumato.engines.disk.workload_scales import Whole, measured
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
from sfumato.tables.external.memory_budget import SHARE, Budget
from sfumato.tables.external.packed_records import PackedFile, Rows, packed_file
from sfumato.tables.external.scratch import Scratch

SCANNED = 1 << 18  # records that are looked at at once where they are only counted
LEAST_ROOM = 1 << 20  # bytes for what is counted, however little memory is allowed
CHUNK = 1 << 15  # of them, those that one thread looks at


@dataclass(frozen=True)
class OpenRegion:
    """A node of a tree that is being made: its number, and its first and last codes, int64[d]."""

    number: int
    low: NDArray[np.int64]
    high: NDArray[np.int64]


@dataclass(frozen=True)
class TablePart:
    """Records in one or several files. Those of the table itself are kept, all others are removed once they are read.

    rule: what the part is divided by next. settled: it has no allowable split. region: the one that its records are
    in, where regions are kept.
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
class OpenRegions:
    """A tree of regions as ``descend`` takes it."""

    attribute: NDArray[np.int64]
    first_child: NDArray[np.int64]
    high: NDArray[np.integer]

    def leaves_of(self, codes: Codes) -> NDArray[np.int64]:
        """The leaf that each record comes to."""
        parts = slices(len(codes), CHUNK)
        found = in_threads(
            lambda part: descend(codes[part[0] : part[1]], self.attribute, self.first_child, self.high), parts
        )
        return np.concatenate(found) if found else np.empty(0, np.int64)


@dataclass
class Parting(ABC):
    """The work on a table: what is known of all of it, and what has been counted. What comes of it, others say."""

    table: CodedTable
    method: MondrianMethod
    requirements: Requirements
    budget: Budget
    scratch: Scratch
    progress: Progress
    traffic: Traffic
    whole: Whole = field(init=False)
    start: Start = field(init=False)
    """What a tree of any records of the table starts from; its units are those of a few records alone."""

    def __post_init__(self) -> None:
        refuse(self.method, self.requirements)
        self.whole = measured(self.table, self.scanned, self.traffic)
        self.start = self.method.start(self.whole.records(self.table.sample[:1]), self.requirements)

    @property
    def width(self) -> int:
        return int(self.table.file.kind.itemsize)

    @property
    def fits(self) -> int:
        """How many records are divided in memory."""
        return self.budget.rows(self.width)

    @property
    def scanned(self) -> int:
        return min(self.fits, SCANNED)

    @property
    def room(self) -> int:
        """Bytes for what is counted."""
        return max(self.budget.work // SHARE, LEAST_ROOM)

    def all(self) -> TablePart:
        return TablePart([self.table.file], self.start.rule, owned=False)

    def scan(self, part: TablePart, rows: int) -> Iterator[Rows]:
        """Read a part, so many records at a time."""
        self.traffic.scans += 1
        for batch in part.batches(rows):
            self.traffic.read += len(batch) * self.width
            yield batch

    def finish(self, part: TablePart) -> None:
        """Divide a part that fits into memory to the end."""
        batches = list(self.scan(part, self.fits))
        rows = batches[0] if len(batches) == 1 else np.concatenate(batches)
        part.remove()
        self.traffic.finished += 1
        self.add(part, rows)
        self.progress.advance(len(rows))

    @abstractmethod
    def add(self, part: TablePart, rows: Rows) -> None:
        """Take up what the method makes of a part whose records are in memory."""

    @abstractmethod
    def keep(self, part: TablePart) -> None:
        """Take up a part that is larger than memory as one class."""

    def branch(self, region: OpenRegion | None, split: Split) -> Sequence[OpenRegion | None]:
        """Take up that a region is divided: the regions of its parts."""
        return [None] * len(split.sizes)

    def divide(
        self,
        part: TablePart,
        regions: OpenRegions,
        leaves: NDArray[np.int64],
        seen: Callable[[Rows, NDArray[np.int64]], None] | None = None,
    ) -> list[PackedFile]:
        """Write the records of each leaf into a file of its own; ``seen`` looks at all records and their leaves.

        leaves: the nodes that are leaves; what follows counts them from 0 on.
        """
        self.traffic.repartitions += 1
        place_of = np.full(len(regions.attribute), -1, np.int64)
        place_of[leaves] = np.arange(len(leaves))
        files = [packed_file(self.scratch, "part", self.table.file.kind) for _ in leaves]
        for rows in self.scan(part, self.fits):
            places = place_of[regions.leaves_of(self.table.codes_of(rows))]
            if seen is not None:
                seen(rows, places)
            order, starts = in_runs(places, len(leaves))
            in_line = np.take(rows, order)
            for place in np.flatnonzero(np.diff(starts)).tolist():
                files[place].append(in_line[starts[place] : starts[place + 1]])
            self.traffic.written += len(rows) * self.width
        part.remove()
        return files


@dataclass
class Classing(Parting):
    """What comes of it is classes, and they are written."""

    classed: ClassedFile

    def add(self, part: TablePart, rows: Rows) -> None:
        bounds = self.table.policy.release.bounds
        records = self.whole.records(rows)
        for batch in assign(records, self.method, self.requirements, Progress(), bounds=bounds):
            self.classed.add(np.take(rows, batch.rows), np.diff(batch.starts))

    def keep(self, part: TablePart) -> None:
        self.traffic.whole += 1
        for rows in self.scan(part, self.fits):
            self.classed.rows.append(rows)
            self.progress.advance(len(rows))
        self.classed.sizes.append(np.array([part.count]))
        part.remove()


def refuse(method: MondrianMethod, requirements: Requirements) -> None:
    """Raise UsageError for what cannot be done on parts of a table."""
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
    """The records by owner, and in their order within each: uint32[n], and where each owner begins: int64[owners + 1].

    owner: int64[n], each of 0..owners-1.
    """
    starts = np.zeros(owners + 1, np.int64)
    for record in range(len(owner)):
        starts[owner[record] + 1] += 1
    for one in range(owners):
        starts[one + 1] += starts[one]
    place = starts[:-1].copy()
    order = np.empty(len(owner), np.uint32)
    for record in range(len(owner)):
        order[place[owner[record]]] = record
        place[owner[record]] += 1
    return order, starts
