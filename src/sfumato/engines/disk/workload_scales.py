"""The scales of a workload that depend on the whole table, so that they are the same for every part of it.

All records together number the combinations of features, divide a numeric feature with many values at its quartiles,
and scale the targets by their range and impurity. Each of these takes a reading of the table, which is left out if
nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.counted_columns import coded_workload
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.rothko_io_cost import IoCounters
from sfumato.methods.coded_workload import CodedWorkload, NumberTarget, Scales, parts_of_feature
from sfumato.methods.method import Records
from sfumato.methods.trees.split_targets import Weighing
from sfumato.tables.external.packed_records import Rows


@dataclass(frozen=True)
class ScaledTable:
    """A table, and any part of it as records with the scales of the whole table.

    features: by feature, the part of each of its codes. numbered: for each feature, the combinations of the features up
    to it that occur, ascending.
    """

    table: CodedTable
    features: dict[str, NDArray[np.int64]]
    numbered: list[NDArray[np.int64]]
    scales: Scales | None

    def records(self, rows: Rows) -> Records:
        """Return packed records in the form that methods take."""
        records = self.table.records(rows)
        if records.workload is None:
            return records
        return replace(records, workload=self._scaled(records.workload, rows))

    def workload(self, rows: Rows) -> CodedWorkload | None:
        """Return the workload of packed records."""
        workload = self.table.workload(rows)
        return None if workload is None else self._scaled(workload, rows)

    def _scaled(self, workload: CodedWorkload, rows: Rows) -> CodedWorkload:
        return replace(workload, cells=self.cells(rows), scales=self.scales)

    def cells(self, rows: Rows) -> NDArray[np.uint32] | None:
        """Return the combination of features of each packed record: uint32[n], or None without features."""
        return self.combined(rows, len(self.numbered)).astype(np.uint32) if self.features else None

    def combined(self, rows: Rows, stages: int) -> NDArray[np.int64]:
        """Combine the first ``stages`` features, which are numbered, with the next one: int64[n]."""
        combination = np.zeros(len(rows), np.int64)
        for stage, (name, parts) in enumerate(self.features.items()):
            if stage > stages:
                break
            combination = combination * (int(parts.max()) + 1) + parts[self.table.targets[name].of(rows).codes]
            if stage < stages:
                combination = np.searchsorted(self.numbered[stage], combination)
        return combination


def scaled_table(table: CodedTable, batch: int, counters: IoCounters) -> ScaledTable:
    """Read the table as often as its workload needs, ``batch`` records at a time, and return its scales."""
    scaled = ScaledTable(table, {}, [], None)
    workload_settings = table.policy.workload
    if not workload_settings:
        return scaled

    def batches() -> Iterator[Rows]:
        counters.scans += 1
        counters.read += table.count * table.file.kind.itemsize
        return table.file.batches(batch)

    if workload_settings.features:
        columns = {name: table.targets[name] for name in workload_settings.features}
        counts = {name: np.zeros(column.values.distinct + 1, np.int64) for name, column in columns.items()}
        for rows in batches():
            for name, column in columns.items():
                counts[name] += np.bincount(column.of(rows).codes, minlength=len(counts[name]))
        parts = {name: parts_of_feature(column.values.numbers, counts[name]) for name, column in columns.items()}
        scaled = replace(scaled, features=parts)
        for stage in range(len(parts)):
            combinations = np.empty(0, np.int64)
            for rows in batches():
                combinations = np.union1d(combinations, scaled.combined(rows, stage))
            scaled = replace(scaled, numbered=[*scaled.numbered, combinations])
    workload = coded_workload(table.policy, table.domains, lambda name: table.targets[name].of(table.sample[:1]))
    ranges = np.zeros((len(workload.targets), 2))
    for number, target in enumerate(workload.targets):
        numbers = table.targets[target.name].values.numbers
        if isinstance(target, NumberTarget) and len(numbers):
            ranges[number] = numbers.min() / 2, numbers.max() / 2
    cells = len(scaled.numbered[-1]) if scaled.numbered else 1
    weighing = Weighing(workload, table.count, cells, ranges)
    if workload.regression:
        for rows in batches():
            part = scaled.workload(rows)
            assert part is not None
            weighing.add(part, np.arange(len(rows), dtype=np.uint32))
    return replace(scaled, scales=weighing.scales())
