"""Division of a table on disk by the coarsest levels that may be shown, so that no class reaches beyond its part.

``methods/level_parts.py`` says what a part is. The records are sorted by their parts. A part that fits into memory is
given to the method as the memory engine would do it; a larger one becomes a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from sfumato.engines.disk.class_file import ClassFile
from sfumato.engines.disk.coded_table import SAMPLE, CodedTable, RecordCounts
from sfumato.engines.memory.classes import assign
from sfumato.errors import InfeasibleError
from sfumato.methods.level_parts import coarse_groups, limited_columns
from sfumato.methods.method import ClassBatch, Method
from sfumato.progress import Progress
from sfumato.tables.coding.sorting import Field, bits_for, sort_rows
from sfumato.tables.external.external_sort import sorted_ranges
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.packed_records import PackedFile, Rows, packed_file
from sfumato.tables.external.scratch import Scratch

SHARE = 4  # a part in memory has this share of the records that fit: a method takes more memory than sorting

FormOnDisk = Callable[[CodedTable], ClassFile]


def classes_of_parts(
    table: CodedTable, method: Method, form_on_disk: FormOnDisk, budget: MemoryBudget, scratch: Scratch
) -> ClassFile:
    """Form the classes of every part. form_on_disk: forms the classes of a part that does not fit into memory.

    Raises InfeasibleError if a part cannot meet the requirements by itself.
    """
    requirements, progress = table.job.requirements, table.job.progress
    most = max(budget.rows(table.file.kind.itemsize) // SHARE, 1)
    class_file = ClassFile.empty(scratch, table.file.kind)
    parts = failing = failing_records = 0
    for part in _parts(table, most, scratch):
        parts += 1
        counts = _counts(table, part, most)
        if not requirements.holds(counts.as_one_class(table)).all():
            failing, failing_records = failing + 1, failing_records + counts.count
        elif failing:
            continue  # the run ends with an error, once all parts that fail are counted
        elif part.count <= most:
            with progress.phase("partition", table.count):
                rows = part.read()
                records = table.records(rows, shuffled=bool(table.sensitive))
                numbered = table.policy.numbered
                batch = ClassBatch.joined(list(assign(records, method, requirements, Progress(), numbered=numbered)))
                class_file.add(np.take(rows, batch.rows), np.diff(batch.starts))
                progress.advance(len(rows))
        else:
            formed = form_on_disk(_as_table(table, part, counts))
            for rows in formed.rows.batches(most):
                class_file.rows.append(rows)
            for sizes in formed.sizes.batches(most):
                class_file.sizes.append(sizes)
            formed.rows.remove()
            formed.sizes.remove()
        part.remove()
    if failing:
        columns = ", ".join(repr(table.domains[q].name) for q in limited_columns(table.domains))
        raise InfeasibleError(
            f"the coarsest levels of {columns} divide the table into {parts:,} parts, and {failing:,} of these, with "
            f"{failing_records:,} records, cannot meet the requirements by themselves. Set coarser levels, or a "
            "smaller k or l. The memory engine can leave such records out."
        )
    return class_file


def _parts(table: CodedTable, most: int, scratch: Scratch) -> Iterator[PackedFile]:
    """Yield the records of each part in a file, in the order of the table."""
    groups = [(q, coarse_groups(table.domains[q])) for q in limited_columns(table.domains)]

    def fields_of(rows: Rows) -> list[Field]:
        codes = table.codes_of(rows)
        return [Field(group[codes[:, q]], bits_for(int(group.max()) + 1)) for q, group in groups]

    part, key = packed_file(scratch, "part", table.file.kind), None
    for rows in sorted_ranges(table.file, fields_of, most, scratch):
        ordered = sort_rows(fields_of(rows), len(rows))
        for begin, end in zip(ordered.starts[:-1].tolist(), ordered.starts[1:].tolist(), strict=True):
            run = np.take(rows, ordered.rows[begin:end])
            run_key = [int(field.values[0]) for field in fields_of(run[:1])]
            if part.count and run_key != key:
                yield part
                part = packed_file(scratch, "part", table.file.kind)
            part.append(run)
            key = run_key
    if part.count:
        yield part


def _counts(table: CodedTable, part: PackedFile, most: int) -> RecordCounts:
    counts = RecordCounts(0, {name: np.zeros_like(totals) for name, totals in table.whole.values.items()})
    for rows in part.batches(most):
        counts = counts.plus(table.counts(rows))
    return counts


def _as_table(table: CodedTable, part: PackedFile, counts: RecordCounts) -> CodedTable:
    every = -(-part.count // SAMPLE)
    sample = np.concatenate([part.read(at, at + 1) for at in range(0, part.count, every)])
    return replace(table, file=part, sample=sample, part=counts)
