"""A line that does not fit into memory, under requirements on sensitive values: cut range by range.

Each range of the line is cut in memory by the same method, and no class crosses from one into the next. A range that
does not meet the requirements as a whole is joined with the one after it, the last with the one before. With memory for
the whole table there is one range, and the classes are those of the memory engine; with less they depend on the limit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.engines.disk.budget import Budget
from sfumato.engines.disk.classed import ClassedFile
from sfumato.engines.disk.coding import CodedTable
from sfumato.engines.disk.cutting import lined
from sfumato.engines.memory import MemoryEngine
from sfumato.errors import InfeasibleError
from sfumato.methods.counting import Counting
from sfumato.methods.method import ClassBatch, Method
from sfumato.methods.optimal_1d import OptimalOneDimensional
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.packed import Rows
from sfumato.tables.scratch import Scratch

SHARE = 4  # of the records that fit, so many parts make a range: a method takes more memory than sorting
MOST = 16  # ranges that may have to be joined


def part_line(
    table: CodedTable,
    method: OptimalOneDimensional,
    requirements: Requirements,
    budget: Budget,
    scratch: Scratch,
    progress: Progress,
) -> ClassedFile:
    """The classes along the ordering of the method, no class crossing from range to range."""
    most = max(budget.rows(table.file.kind.itemsize) // SHARE, 1)
    classed = ClassedFile.empty(scratch, table.file.kind)
    with progress.phase("partition", table.count):
        ranges = (rows for rows, _ in lined(table, method, most, scratch))
        for rows in _sufficient(table, ranges, requirements, MOST * most):
            add_classes(table, method, requirements, rows, classed, progress)
    return classed


def add_classes(
    table: CodedTable,
    method: Method,
    requirements: Requirements,
    rows: Rows,
    classed: ClassedFile,
    progress: Progress,
) -> None:
    """The classes that the method makes of some records, each tested as it comes."""
    bounds = table.policy.release.bounds
    batches = MemoryEngine(Progress()).assign(table.records(rows), method, requirements, bounds=bounds)
    batch = ClassBatch.joined(list(batches))
    classed.add(np.take(rows, batch.rows), np.diff(batch.starts))
    progress.advance(len(rows))


def _sufficient(table: CodedTable, ranges: Iterator[Rows], requirements: Requirements, most: int) -> Iterator[Rows]:
    """The ranges, joined until each meets the requirements as a whole. One is held back for what remains at the end."""
    held: Rows | None = None
    open_rows = np.empty(0, table.file.kind)
    for rows in ranges:
        open_rows = np.concatenate([open_rows, rows]) if len(open_rows) else rows
        if requirements.holds(Counting(table.records(open_rows), requirements).whole).all():
            if held is not None:
                yield held
            held, open_rows = open_rows, np.empty(0, table.file.kind)
        elif len(open_rows) > most:
            raise InfeasibleError(
                f"{len(open_rows):,} records that lie side by side do not meet the requirements together, and no more "
                "fit into this memory. Give more memory, choose mondrian, or ask for less."
            )
    if len(open_rows):
        yield open_rows if held is None else np.concatenate([held, open_rows])
    elif held is not None:
        yield held
