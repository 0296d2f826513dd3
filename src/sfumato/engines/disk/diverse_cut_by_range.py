"""The cut of a line that does not fit into memory, under requirements on sensitive values: range by range.

The method cuts each range of the line in memory, and no class crosses from one range into the next. A range is joined
with the next one if it does not meet the requirements as a whole, or if the rest of the table would not. With memory
for the whole table there is one range, and the classes are those of the memory engine; with less they depend on the
limit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.engines.disk.class_file import ClassFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.streaming_cut import ranges_along_line
from sfumato.engines.memory.classes import assign
from sfumato.errors import InfeasibleError
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.methods.method import ClassBatch, Method
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.packed_records import Rows
from sfumato.tables.external.scratch import Scratch

SHARE = 4  # a range has this part of the records that fit: a method takes more memory than sorting
MOST = 16  # ranges that may be joined


def cut_line_by_range(
    table: CodedTable,
    method: OptimalOneDimensional,
    requirements: Requirements,
    budget: MemoryBudget,
    scratch: Scratch,
    progress: Progress,
) -> ClassFile:
    """Form the classes along the ordering of the method. No class crosses from one range into the next."""
    most = max(budget.rows(table.file.kind.itemsize) // SHARE, 1)
    class_file = ClassFile.empty(scratch, table.file.kind)
    with progress.phase("partition", table.count):
        ranges = (rows for rows, _ in ranges_along_line(table, method, most, scratch))
        for rows in _sufficient(table, ranges, requirements, MOST * most):
            add_classes(table, method, requirements, rows, class_file, progress)
    return class_file


def add_classes(
    table: CodedTable,
    method: Method,
    requirements: Requirements,
    rows: Rows,
    class_file: ClassFile,
    progress: Progress,
) -> None:
    """Add the classes that the method forms from records, each tested as it is formed."""
    numbered = table.policy.numbered
    batches = assign(table.records(rows), method, requirements, Progress(), numbered=numbered)
    batch = ClassBatch.joined(list(batches))
    class_file.add(np.take(rows, batch.rows), np.diff(batch.starts))
    progress.advance(len(rows))


def _sufficient(table: CodedTable, ranges: Iterator[Rows], requirements: Requirements, most: int) -> Iterator[Rows]:
    """Join ranges until each meets the requirements as a whole, and so does the rest of the table."""
    left = table.whole
    joined: list[Rows] = []
    for rows in ranges:
        joined.append(rows)
        together = np.concatenate(joined)
        counts = table.counts(together)
        rest = left.minus(counts)
        both = [counts.as_one_class(table), *([rest.as_one_class(table)] if rest.count else [])]
        if all(requirements.holds(one_class).all() for one_class in both):
            yield together
            left, joined = rest, []
        elif len(together) > most:
            raise InfeasibleError(
                f"{len(together):,} consecutive records, or those after them, do not meet the requirements together, "
                "and the memory limit leaves no room for more. Allow more memory, use --method mondrian, or ask for "
                "less."
            )
