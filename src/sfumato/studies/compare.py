"""The comparison of methods on one table, which is read once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sfumato.bounds.object_boxes import object_box_bound
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.evaluation.comparison_points import CapturedError, Point, Row
from sfumato.kernels.decorator import on_compilation
from sfumato.methods.clustering.nearest_neighbour_groups import (
    NearestNeighbourGroups,
    PerimeterBounds,
    perimeter_bounds,
)
from sfumato.pipeline.prepare import read_table, table_for
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.studies.trial import trial_release

# A point of a comparison is timed again while that is cheap, and the quickest run counts. The first run of a method
# loads its compiled kernels, which may take a second.
RUNS = 3
SHORT_SECONDS = 1.0
FIRST_SECONDS = 5.0


def compare_points(data: object, points: Sequence[Point], progress: Progress) -> Iterator[Row]:
    """Yield the row of each point. The table is read once; its releases are audited and not kept."""
    with on_compilation(progress.compiling):
        # auto takes any table, so that a method that does not is refused in its own row.
        table = read_table(data, merge_flags(points[0].policy, method="auto"), progress)
    known = set()
    bounds = MaxSizeBounds(table, points)
    for number, point in enumerate(points, 1):
        progress.next_run(f"{point.method}, k = {point.k:,}", number, len(points))
        row = _quickest(table, point, SHORT_SECONDS if point.method in known else FIRST_SECONDS, progress)
        yield bounds.beside(row, point, progress)
        known.add(point.method)


class MaxSizeBounds:
    """Lower bounds of MAXSIZE, whatever the method. They take about as long as nng, so they come only with nng."""

    def __init__(self, table: TableInMemory, points: Sequence[Point]) -> None:
        self._table = table
        self._wanted = {point.k for point in points if point.method == NearestNeighbourGroups.name}
        # By k; k persons have at least k records.
        self._found: dict[int, PerimeterBounds | None] = {}
        self._object_box: dict[int, float] = {}

    def beside(self, row: Row, point: Point, progress: Progress) -> Row:
        """Add the bounds to a row if they hold for it: no record is left out, and its classes hide identity."""
        if row.code != 0 or row.suppressed or not row.hides_identity or point.k not in self._wanted:
            return row
        if point.k not in self._found:
            self._found[point.k], self._object_box[point.k] = None, 0.0
            attempt = CapturedError()
            with attempt, progress.phase("bound"), on_compilation(progress.compiling):
                self._object_box[point.k] = object_box_bound(self._table.records, point.k)
                self._found[point.k] = perimeter_bounds(self._table.records, point.k)
            if attempt.error is not None:
                row = replace(row, remarks=(*row.remarks, f"no bound of MAXSIZE was found: {attempt.error}"))
        return row.bounded(self._found[point.k], self._object_box[point.k])


def _quickest(table: TableInMemory, point: Point, enough: float, progress: Progress) -> Row:
    """Return the row of the quickest of several runs of a point, which take about ``enough`` seconds together."""
    runs: list[tuple[float, Row]] = []
    for _ in range(RUNS):
        started = time.perf_counter()
        row, compiled = _compared(table, point, progress)
        if row.code != 0:
            return row
        runs.append((time.perf_counter() - started, row))
        if sum(seconds for seconds, _ in runs) >= enough and not compiled:
            break
    return min(runs, key=lambda run: run[0])[1]


def _compared(table: TableInMemory, point: Point, progress: Progress) -> tuple[Row, bool]:
    """Return the row of a point, and whether kernels were compiled for it."""
    compiled = False

    def compiling() -> None:
        nonlocal compiled
        compiled = True
        progress.compiling()

    before, started = progress.seconds.get("partition", 0.0), time.perf_counter()
    attempt = CapturedError()
    with attempt, on_compilation(compiling):
        release = trial_release(table_for(table, point.policy))
        seconds = {"partition": progress.seconds["partition"] - before, "total": time.perf_counter() - started}
        by_groups = release.summary().get("c_dm_groups")
        return Row.measured(point, release.audit, release.losses, seconds, by_groups), compiled
    return attempt.row(point, table.count), compiled
