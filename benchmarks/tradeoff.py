"""What do twenty points of a trade-off cost in comparison with single runs? The bar: less than five runs.

Both are commands in fresh processes, with start and imports. The single run is the mean of anonymizations whose k are
spread over the range.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from benchmarks.markdown import show
from benchmarks.process_usage import Usage, run_child
from benchmarks.tables import GENERATOR, Options
from sfumato.evaluation.parameter_values import MOST

RECORDS = (100_000, 1_000_000)
RANGE = "2..100"  # of which MOST values are computed
SINGLE = (2, 14, 100)
METHODS = ("auto", "hilbert", "mondrian")
ROUNDS = 2


def run(options: Options) -> dict[str, list[dict[str, Any]]]:
    commands, phases = [], []
    for records in RECORDS:
        for method in METHODS:
            measured, seconds = _measure(options, records, method)
            commands.append(measured)
            phases.append({"records": records, "method": method, **seconds})
    show(
        f"Trade-off: {MOST} points against single runs",
        commands,
        [
            f"Generator {GENERATOR}, 7 quasi-identifiers, Parquet, k = {RANGE}; single runs at k = "
            f"{', '.join(map(str, SINGLE))}, from file to file, and their mean. Whole commands, least CPU seconds of "
            f"{ROUNDS}. The bar is below 5."
        ],
    )
    show(
        "Trade-off: where the time goes, in seconds",
        phases,
        [f"{MOST} points together; partition, recode and count grow with the points, the rest is done once."],
    )
    return {"commands": commands, "phases": phases}


def _measure(options: Options, records: int, method: str) -> tuple[dict[str, Any], dict[str, float]]:
    table, output = options.census(records), options.work / "tradeoff.json"
    policy = ["--policy", table.policy_path]
    points = ["tradeoff", table.path, *policy, "--methods", method, "-k", RANGE, "-o", output, "--json"]
    release = ["anonymize", table.path, *policy, "--method", method, "-o", options.work / "single.parquet", "-k"]
    _command(options, points)  # compiles what there is to compile
    _command(options, [*release, SINGLE[0]])
    single = [_least(options, [*release, k]) for k in SINGLE]
    whole = _least(options, points)
    cpu, seconds = (sum(getattr(one, name) for one in single) / len(single) for name in ("cpu", "seconds"))
    measured = {
        "records": records,
        "method": method,
        "single, CPU s": cpu,
        "points, CPU s": whole.cpu,
        "in single runs, CPU": whole.cpu / cpu,
        "single, seconds": seconds,
        "points, seconds": whole.seconds,
        "in single runs, seconds": whole.seconds / seconds,
    }
    return measured, json.loads(output.read_text("utf-8"))["seconds"]


def _least(options: Options, arguments: list[object]) -> Usage:
    return min((_command(options, arguments) for _ in range(ROUNDS)), key=lambda usage: usage.cpu)


def _command(options: Options, arguments: list[object]) -> Usage:
    counted = [options.work / "compiled", *arguments]
    return run_child([sys.executable, "-m", "benchmarks.compilation_count", *map(str, counted)], {})
