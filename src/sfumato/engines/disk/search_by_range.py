"""Search for less loss on classes that do not fit into memory, one range of classes at a time.

Consecutive classes lie near each other, so most of what a search would exchange is within a range. Every class meets
the requirements before and after.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.engines.disk.class_file import ClassFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.methods.auto import improvement_of, limits_of
from sfumato.methods.line.optimal_cut import boxes_of
from sfumato.methods.method import ClassBatch
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.scratch import Scratch

SHARE = 4  # a range has this part of the records that fit: search takes more memory than sorting


def search_ranges(
    table: CodedTable,
    class_file: ClassFile,
    requirements: Requirements,
    budget: MemoryBudget,
    scratch: Scratch,
    progress: Progress,
) -> ClassFile:
    """Return classes with less loss, as far as the effort allows. The file of the old classes is removed."""
    improved = ClassFile.empty(scratch, table.file.kind)
    with progress.phase("improve"):
        for first, starts in class_file.runs(max(budget.rows(table.file.kind.itemsize) // SHARE, 1)):
            rows = class_file.rows.read(first, first + int(starts[-1]))
            effort = table.effort
            if effort.seconds is not None:
                effort = replace(effort, seconds=effort.seconds * len(rows) / table.count)
            row_numbers = np.arange(len(rows), dtype=np.uint32)
            start = ClassBatch(row_numbers, starts, *boxes_of(table.codes_of(rows), row_numbers, starts))
            improvement = improvement_of(start, replace(table.records(rows), effort=effort), requirements)
            improvement.improve(limits_of(effort, requirements, len(rows), len(table.domains)), progress)
            batch = improvement.batch
            improved.add(np.take(rows, batch.rows), np.diff(batch.starts))
    class_file.rows.remove()
    class_file.sizes.remove()
    return improved
