"""What do twenty points of a trade-off cost in comparison with single runs? The bar: less than five runs.

Both are commands in fresh processes, with start and imports. The single run is the mean of anonymizations whose k are
spread over the range.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.process_usage import Usage, run_child
from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, QUICK, Options
from sfumato.evaluation.parameter_values import MOST

RECORDS = 1_000_000
RANGE = "2..100"  # of which MOST values are computed
SINGLE = (2, 14, 100)
METHODS = ("auto", "hilbert", "mondrian")


def run(options: Options) -> Mapping[str, Table]:
    rows, phases = [], []
    for method in options.some(METHODS):
        measured, seconds = _measure(options, method)
        rows.append(measured)
        phases.append({"method": method, **seconds, "together": measured["points, seconds"]})
    note = (
        f"Generator {GENERATOR}, {options.size(RECORDS):,} records, 7 quasi-identifiers, Parquet, k = {RANGE}; single "
        f"runs at k = {', '.join(map(str, SINGLE))}, from file to file, and their mean. Whole commands."
    )
    return {
        "commands": Table(f"Trade-off: {MOST} points against single runs", rows, [note], worst="in single runs"),
        "phases": Table("Trade-off: where the time goes, in seconds", phases, worst="together"),
    }


def _measure(options: Options, method: str) -> tuple[dict[str, Any], dict[str, float]]:
    table, output = options.census(options.size(RECORDS)), options.work / "tradeoff.json"
    policy = ["--policy", table.policy_path]
    points = ["tradeoff", table.path, *policy, "--methods", method, "-k", RANGE, "-o", output, "--force", "--json"]
    release = ["anonymize", table.path, *policy, "--method", method, "--effort", QUICK, "-o"]
    release += [options.work / "single.parquet", "-k"]
    _command(points)  # compiles what there is to compile
    _command([*release, SINGLE[0]])
    single = [_command([*release, k]) for k in SINGLE]
    whole = _command(points)
    cpu, seconds = (sum(getattr(one, name) for one in single) / len(single) for name in ("cpu", "seconds"))
    measured = {
        "method": method,
        "single, seconds": seconds,
        "points, seconds": whole.seconds,
        "in single runs": whole.seconds / seconds,
        "single, CPU s": cpu,
        "points, CPU s": whole.cpu,
        "in single runs, CPU": whole.cpu / cpu,
    }
    return measured, json.loads(output.read_text("utf-8"))["seconds"]


def _command(arguments: list[object]) -> Usage:
    return run_child([sys.executable, "-m", "sfumato", *map(str, arguments)], {})


SECTION = Section(run, timed=True, parameters={"records": RECORDS, "k": RANGE, "single k": SINGLE, "methods": METHODS})
