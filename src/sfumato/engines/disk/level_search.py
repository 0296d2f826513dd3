"""Levels for a table on disk: counts of its distinct records, which have to fit into memory, decide everything.

The search is that of the memory engine, on the same counts. The records are read once to count them; what each of them
shows follows from its own codes, so that no classes have to be written.
"""

from __future__ import annotations

import numpy as np

from sfumato.engines.disk.coded_table import CodedTable
from sfumato.errors import UsageError
from sfumato.methods.lattice.lattice_method import LatticeMethod, LevelRecoding, chosen_recoding
from sfumato.methods.lattice.level_counts import (
    CountedColumns,
    LevelCounts,
    counted_columns,
    counts_of_codes,
    joined_counts,
)
from sfumato.methods.lattice.level_lattice import LevelLattice
from sfumato.methods.lattice.node_results import NodeResults, SuppressionLimits
from sfumato.tables.external.memory_budget import MemoryBudget

SHARE = 2  # the counts may have this share of the records that fit: counts of further nodes are made from them


def choose_levels(table: CodedTable, method: LatticeMethod, budget: MemoryBudget) -> LevelRecoding:
    """Choose a level for every column."""
    job, policy = table.job, table.policy
    lattice = LevelLattice.of(table.domains, table.costs)
    counted = counted_columns({name: each.values for name, each in table.sensitive.items()}, None, job.requirements)
    limits = SuppressionLimits.of(policy, policy.most_suppressed(table.count), table.costs)
    with job.progress.phase("partition", table.count):
        base = _counts(table, lattice, counted, budget)
        results = NodeResults(lattice, base, counted, job.requirements, limits)
        return chosen_recoding(method, results, table.effort, job.progress)


def _counts(table: CodedTable, lattice: LevelLattice, counted: CountedColumns, budget: MemoryBudget) -> LevelCounts:
    """Count the records at the most specific node. Raises UsageError before the counts take too much memory."""
    parts: list[LevelCounts] = []
    for rows in table.file.batches(max(budget.rows(table.file.kind.itemsize) // SHARE, 1)):
        columns = [table.sensitive[name].of(rows).codes for name in counted.values]
        codes = np.column_stack([table.codes_of(rows), *columns])
        parts.append(counts_of_codes(codes, np.ones(len(codes), np.int64), lattice, counted))
        most = budget.rows(codes.itemsize * codes.shape[1] + parts[0].weights.itemsize) // SHARE
        if sum(len(part.codes) for part in parts) > most:
            parts = [joined_counts(parts, lattice, counted)]
            if len(parts[0].codes) > most:
                raise UsageError(
                    f"the table has more than {most:,} different records, and to choose levels all of them must be "
                    "counted in memory. Allow more with --memory, set finest for columns with many values, or drop "
                    "such columns."
                )
        table.job.progress.advance(len(rows))
    return joined_counts(parts, lattice, counted)
