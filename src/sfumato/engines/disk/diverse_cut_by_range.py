"""A line that does not fit into memory, under requirements on sensitive values: cut range by range.

Each range of the line is cut in memory by the same method, and no class crosses from one into the next. A range that
does not meet the requirements as a whole, or leaves a rest of the table that does not, is joined with the one after it.
With memory for the whole table there is one range, and the classes are those of the memory engine; with less they
depend on the limit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.engines.disk.class_file import ClassedFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.streaming_cut import lined
from sfumato.engines.memory.classes import assign
from sfumato.errors import InfeasibleError
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.methods.method import ClassBatch, Method
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.external.memory_budget import Budget
from sfumato.tables.external.packed_records import Rows
from sfumato.tables.external.scratch import Scratch

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
    batches = assign(table.records(rows), method, requirements, Progress(), bounds=bounds)
    batch = ClassBatch.joined(list(batches))
    classed.add(np.take(rows, batch.rows), np.diff(batch.starts))
    progress.advance(len(rows))


def _sufficient(table: CodedTable, ranges: Iterator[Rows], requirements: Requirements, most: int) -> Iterator[Rows]:
    """The ranges, joined until each meets the requirements as a whole, and so does what is left of the table."""
    left = table.whole
    joined: list[Rows] = []
    for rows in ranges:
        joined.append(rows)
        together = np.concatenate(joined)
        amount = table.amount(together)
        rest = left.minus(amount)
        enough = [amount.as_one_class(table), *([rest.as_one_class(table)] if rest.count else [])]
        if all(requirements.holds(one).all() for one in enough):
            yield together
            left, joined = rest, []
        elif len(together) > most:
            raise InfeasibleError(
                f"{len(together):,} records that lie side by side, or those after them, do not meet the requirements "
                "together, and no more fit into this memory. Give more memory, take --method mondrian, or ask for less."
            )
