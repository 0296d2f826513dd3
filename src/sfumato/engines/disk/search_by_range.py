"""Less loss by search, for classes that do not fit into memory: range by range of the order that they are in.

Classes that follow each other lie near each other, so most of what a search would exchange is within a range. Every
class meets the requirements before and after.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.engines.disk.class_file import ClassedFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.methods.auto import limits_of
from sfumato.methods.line.optimal_cut import boxes_of
from sfumato.methods.method import ClassBatch
from sfumato.methods.search.improvement import Improvement
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.external.memory_budget import Budget
from sfumato.tables.external.scratch import Scratch

SHARE = 4  # of the records that fit, so many parts make a range: search takes more memory than sorting


def search_ranges(
    table: CodedTable,
    classed: ClassedFile,
    requirements: Requirements,
    budget: Budget,
    scratch: Scratch,
    progress: Progress,
) -> ClassedFile:
    """The classes with less loss, as far as the effort allows. The file of those before is removed."""
    found = ClassedFile.empty(scratch, table.file.kind)
    with progress.phase("improve"):
        for first, starts in classed.runs(max(budget.rows(table.file.kind.itemsize) // SHARE, 1)):
            rows = classed.rows.read(first, first + int(starts[-1]))
            effort = table.effort
            if effort.seconds is not None:
                effort = replace(effort, seconds=effort.seconds * len(rows) / table.count)
            places = np.arange(len(rows), dtype=np.uint32)
            start = ClassBatch(places, starts, *boxes_of(table.codes_of(rows), places, starts))
            improvement = Improvement(start, table.records(rows), requirements)
            improvement.improve(limits_of(effort, requirements, len(rows)), progress)
            batch = improvement.batch
            found.add(np.take(rows, batch.rows), np.diff(batch.starts))
    classed.rows.remove()
    classed.sizes.remove()
    return found
