"""The disk engine: it keeps to a memory limit, and keeps what does not fit in a scratch directory."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.disk.class_file import ClassedFile
from sfumato.engines.disk.coded_table import CodedTable
from sfumato.engines.disk.diverse_cut_by_range import part_line
from sfumato.engines.disk.region_checks import failing_leaves
from sfumato.engines.disk.released_rows import ShownFile, show
from sfumato.engines.disk.rothko_io_cost import Traffic
from sfumato.engines.disk.rothko_regions import regions_by_counts
from sfumato.engines.disk.rothko_s import rothko_s
from sfumato.engines.disk.rothko_t import rothko_t
from sfumato.engines.disk.search_by_range import search_ranges
from sfumato.engines.disk.streaming_cut import cut_line
from sfumato.errors import UsageError
from sfumato.methods.auto import CURVES, Auto
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.methods.method import Method
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import Tiling
from sfumato.progress import Progress
from sfumato.releases.recoding import Recoding
from sfumato.requirements import Requirements
from sfumato.tables.external.memory_budget import Budget
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.released_classes import ReleasedClasses, find_classes
from sfumato.tables.sources.parquet_source import ParquetSource
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.file_writers import write_batches
from sfumato.tables.targets.target import Target


class DiskEngine:
    """Tables larger than memory. Its scratch directory goes with it, or with the process."""

    name = "disk"

    def __init__(self, memory: int, progress: Progress, budget: Budget | None = None) -> None:
        self._progress, self._memory = progress, memory
        self.budget = Budget.of(memory) if budget is None else budget
        self.scratch = Scratch().__enter__()
        self.close = weakref.finalize(self, self.scratch.close)

    @property
    def limit(self) -> tuple[int, Scratch]:
        return self._memory, self.scratch

    def assign(self, table: CodedTable, method: Method, requirements: Requirements) -> ClassedFile:
        """Which records share a class."""
        where = (self.budget, self.scratch, self._progress)
        if isinstance(method, MondrianMethod):
            return self._divided(table, method, requirements)
        assert isinstance(method, OptimalOneDimensional)
        if requirements.attributes:
            return part_line(table, method, requirements, *where)
        return cut_line(table, method, requirements.least_class, *where)

    def _divided(self, table: CodedTable, method: MondrianMethod, requirements: Requirements) -> ClassedFile:
        """By counts, with the classes of memory; on samples where that is asked for or counts do not decide."""
        traffic, counts = Traffic(), method.rule != "selection" and requirements.tested
        divide = rothko_t if counts and not table.policy.engine.sampled else rothko_s
        with self._progress.phase("partition", table.count):
            classed = divide(table, method, requirements, self.budget, self.scratch, self._progress, traffic=traffic)
        way = "counts" if divide is rothko_t else "samples"
        self._progress.told["divided"] = {"by": way, **asdict(traffic)}
        return classed

    def regions(self, table: CodedTable, method: MondrianMethod, requirements: Requirements) -> Tiling:
        """The regions that the classes of a method are in, as a tree: those of the method in memory."""
        traffic = Traffic()
        where = (self.budget, self.scratch, self._progress)
        tree = regions_by_counts(table, method, requirements, *where, traffic=traffic)
        self._progress.told["divided"] = {"by": "counts", **asdict(traffic)}
        return tree

    def failing(
        self, table: CodedTable, requirements: Requirements, recoding: Recoding, tree: Tiling
    ) -> NDArray[np.int64]:
        """The leaves of the tree of a recoding whose records are in a class that does not meet the requirements."""
        return failing_leaves(table, requirements, recoding, tree, self.budget)

    def search(self, table: CodedTable, classed: ClassedFile, requirements: Requirements) -> ClassedFile:
        """The classes with less loss, as far as the effort allows."""
        return search_ranges(table, classed, requirements, self.budget, self.scratch, self._progress)

    def release(self, table: CodedTable, classed: ClassedFile, names: Sequence[str]) -> ShownFile:
        """What every record shows."""
        return show(table, classed, names, self.budget, self.scratch, self._progress)

    def write(self, released: ShownFile, target: Target) -> Source:
        with self._progress.phase("write", released.file.count):
            return target.write(released.schema, lambda: self._batches(released))

    def write_sensitive(self, released: ShownFile, target: Target) -> Source:
        raise AssertionError("no method on disk releases sensitive values apart")

    def readable(self, released: ShownFile) -> Path:
        """The released rows in a file of their own, until the engine is gone."""
        path = self.scratch.directory / "released.parquet"
        if not path.exists():
            with self._progress.phase("write", released.file.count):
                write_batches(released.schema, lambda: self._batches(released), path)
        return path

    def table(self, released: ShownFile) -> pa.Table:
        """The file that was audited, and no second making of it."""
        source = ParquetSource(self.readable(released))
        return pa.Table.from_batches(source.batches(source.names))

    def sensitive_table(self, released: ShownFile) -> None:
        return None

    def persons_of(self, released: ShownFile) -> None:
        return None

    def group_count(self, source: Source, key: Sequence[str], *, by_row: bool) -> ReleasedClasses:
        return find_classes(source, key, by_row=by_row)

    def _batches(self, released: ShownFile) -> Iterator[pa.RecordBatch]:
        for table in released.batches(self.budget, self.scratch):
            yield from table.to_batches()
            self._progress.advance(table.num_rows)


def check_on_disk(method: Method) -> None:
    """Refuse a method that works in memory alone."""
    if isinstance(method, Auto) or _is_streamed(method):
        return
    if isinstance(method, MondrianMethod) and method.splits == "strict":
        return
    able = ", ".join(["auto", *(one.name for one in CURVES), MondrianMethod().name])
    raise UsageError(
        f"{method.name} works in memory alone. On disk there are {able} and others of their kind; choose one of "
        "them, or --engine memory."
    )


def _is_streamed(method: Method) -> bool:
    # An ordering of another package may not say.
    return isinstance(method, OptimalOneDimensional) and getattr(method.ordering, "needs_no_table", False)
