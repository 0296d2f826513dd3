"""Figures that were recorded: one JSON file per section in ``results/``.

A timed section runs three times, each time in a fresh process. If other processes took more than 5% of the cores during
any of the runs, nothing is recorded. All runs are kept; of each row the worst run is shown.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.environment import environment
from benchmarks.machine_watch import run_watched
from benchmarks.section import Row, Rows, Section, Table
from benchmarks.tables import Options, data_file

RESULTS = Path(__file__).with_name("results")
RUNS = 3
MOST_OTHERS = 0.05
DIGITS = 6

Recording = dict[str, Any]


class NotRecordedError(Exception):
    """A section gave no figures that may be recorded. The message says why."""


def path_of(name: str) -> Path:
    return RESULTS / f"{name}.json"


def recorded(name: str) -> Recording | None:
    """Return what was recorded of a section, or None."""
    path = path_of(name)
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def record(name: str, section: Section, options: Options) -> Recording:
    """Measure a section. It is written if the sizes are the standard ones; otherwise it can only be looked at."""
    data = {table: _sha256(options, table) for table in section.tables}
    runs: list[dict[str, Table]] = []
    others: list[float] = []
    for _ in range(RUNS if section.timed and options.recordable else 1):
        tables, share = _measured(name, options)
        if section.timed and options.recordable and share > MOST_OTHERS:
            raise NotRecordedError(
                f"other processes took {share:.1%} of the cores during a run, more than {MOST_OTHERS:.0%}. Its figures "
                "are refused: try again on a quiet machine."
            )
        runs.append(tables)
        others.append(share)
    recording: Recording = {
        "section": name,
        "timed": section.timed,
        "parameters": dict(section.parameters),
        "environment": environment(),
        "data": data,
        **({"others": others} if section.timed else {}),
        "tables": {table: _of_runs(name, section, [run[table] for run in runs]) for table in runs[0]},
    }
    recording = rounded(recording)
    if options.recordable:
        RESULTS.mkdir(exist_ok=True)
        path_of(name).write_text(json.dumps(recording, indent=1) + "\n", "utf-8")
    return recording


def worst_rows(table: Mapping[str, Any]) -> Rows:
    """Return the rows of a recorded table, each from the run in which it was worst."""
    runs: Sequence[Rows] = table["runs"]
    column = table["worst"]
    if column is None:
        return runs[0]
    sign = -1 if table["worst_is_smallest"] else 1

    def badness(row: Row) -> float:
        return -math.inf if row[column] is None else sign * row[column]

    return [max(rows, key=badness) for rows in zip(*runs, strict=True)]


def rows_by_table(recording: Recording) -> dict[str, Rows]:
    return {name: worst_rows(table) for name, table in recording["tables"].items()}


def _measured(name: str, options: Options) -> tuple[dict[str, Table], float]:
    """Run a section once in a process of its own. Return its tables and the share of the cores that others took."""
    result = options.work / f"{name}.json"
    result.unlink(missing_ok=True)
    watched = run_watched([sys.executable, "-m", "benchmarks.section_process", name, options.to_json(), str(result)])
    if watched.exit != 0:
        raise NotRecordedError(f"the section failed (exit code {watched.exit}).")
    tables = json.loads(result.read_text("utf-8"))
    return {table: Table(**contents) for table, contents in tables.items()}, watched.others


def _of_runs(name: str, section: Section, tables: list[Table]) -> dict[str, Any]:
    first = asdict(tables[0])
    runs = [table.rows for table in tables]
    if not section.timed and (seconds := [column for column in runs[0][0] if _is_time(column)]):
        raise NotRecordedError(f"{name} has {', '.join(seconds)}, which depends on the load, but is not timed.")
    if first["worst"] is None and any(rows != runs[0] for rows in runs):
        raise NotRecordedError(f"{first['title']!r} of {name} differs from run to run, but names no worst column.")
    return {**{key: value for key, value in first.items() if key != "rows"}, "runs": runs}


def _is_time(column: str) -> bool:
    return column.endswith(" s") or "seconds" in column


def _sha256(options: Options, table: str) -> str:
    path = None if options.data is None else data_file(options.data / table)
    if path is None:
        raise NotRecordedError(f"it needs the table {table!r}. --data DIR names the directory that has it.")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rounded(value: Any) -> Any:
    """Round every number, so that a file does not claim digits that nobody measured."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value
