"""What of a workload is decided by the whole table, so that it is the same for every part of it.

The combinations of features are numbered by all records, a feature of many numbers is divided at quarters of all
records, and targets are scaled by their range and impurity in all of them. Each of these takes a reading of the table,
which is saved where nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.counted_columns import coded_workload
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.rothko_io_cost import Traffic
from sfumato.methods.coded_workload import CodedWorkload, NumberTarget, Scales, parts_of_feature
from sfumato.methods.method import Records
from sfumato.methods.trees.split_targets import Weighing
from sfumato.tables.external.packed_records import Rows


@dataclass(frozen=True)
class Whole:
    """A table, and any part of it as records with what was measured of all.

    features: of each feature, the part that each of its codes is in; numbered: the combinations of the first feature
    with each further one that occur, ascending.
    """

    table: CodedTable
    features: dict[str, NDArray[np.int64]]
    numbered: list[NDArray[np.int64]]
    scales: Scales | None

    def records(self, rows: Rows) -> Records:
        """Some packed records as methods take them."""
        records = self.table.records(rows)
        if records.workload is None:
            return records
        return replace(records, workload=self._measured(records.workload, rows))

    def workload(self, rows: Rows) -> CodedWorkload | None:
        """What some packed records are for."""
        workload = self.table.workload(rows)
        return None if workload is None else self._measured(workload, rows)

    def _measured(self, workload: CodedWorkload, rows: Rows) -> CodedWorkload:
        return replace(workload, cells=self.cells(rows), scales=self.scales)

    def cells(self, rows: Rows) -> NDArray[np.uint32] | None:
        """The combination of features of some packed records."""
        return self.combined(rows, len(self.numbered)).astype(np.uint32) if self.features else None

    def combined(self, rows: Rows, stages: int) -> NDArray[np.int64]:
        """The combination of the first features, as far as they are numbered, and of the next one."""
        found = np.zeros(len(rows), np.int64)
        for stage, (name, parts) in enumerate(self.features.items()):
            if stage > stages:
                break
            found = found * (int(parts.max()) + 1) + parts[self.table.targets[name].of(rows).codes]
            if stage < stages:
                found = np.searchsorted(self.numbered[stage], found)
        return found


def measured(table: CodedTable, batch: int, traffic: Traffic) -> Whole:
    """Read the table as often as its workload needs, so many records at a time."""
    whole = Whole(table, {}, [], None)
    asked = table.policy.workload
    if not asked:
        return whole

    def batches() -> Iterator[Rows]:
        traffic.scans += 1
        traffic.read += table.count * table.file.kind.itemsize
        return table.file.batches(batch)

    if asked.features:
        columns = {name: table.targets[name] for name in asked.features}
        counts = {name: np.zeros(one.values.distinct + 1, np.int64) for name, one in columns.items()}
        for rows in batches():
            for name, one in columns.items():
                counts[name] += np.bincount(one.of(rows).codes, minlength=len(counts[name]))
        parts = {name: parts_of_feature(one.values.numbers, counts[name]) for name, one in columns.items()}
        whole = replace(whole, features=parts)
        for stage in range(len(parts)):
            found = np.empty(0, np.int64)
            for rows in batches():
                found = np.union1d(found, whole.combined(rows, stage))
            whole = replace(whole, numbered=[*whole.numbered, found])
    workload = coded_workload(table.policy, table.domains, lambda name: table.targets[name].of(table.sample[:1]))
    ranges = np.zeros((len(workload.targets), 2))
    for place, target in enumerate(workload.targets):
        numbers = table.targets[target.name].values.numbers
        if isinstance(target, NumberTarget) and len(numbers):
            ranges[place] = numbers.min() / 2, numbers.max() / 2
    cells = len(whole.numbered[-1]) if whole.numbered else 1
    weighing = Weighing(workload, table.count, cells, ranges)
    if workload.regression:
        for rows in batches():
            part = whole.workload(rows)
            assert part is not None
            weighing.add(part, np.arange(len(rows), dtype=np.uint32))
    return replace(whole, scales=weighing.scales())
