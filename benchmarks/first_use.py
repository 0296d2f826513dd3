"""How much longer does the first run on a machine take than the next one?

Kernels are compiled on first use and cached. The first process starts with an empty cache, the second with a full one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.markdown import show
from benchmarks.process_usage import Usage, run_child
from benchmarks.tables import GENERATOR, Options
from benchmarks.timing import ROUNDS

RECORDS = 10_000
K = 10


def run(options: Options) -> dict[str, dict[str, Any]]:
    rounds = [_first_and_second(options) for _ in range(ROUNDS)]
    compiled = {process: {counts[process] for _, counts in rounds} for process in ("first", "second")}
    first, second = (
        min((usages[process] for usages, _ in rounds), key=lambda usage: usage.cpu) for process in ("first", "second")
    )
    result: dict[str, dict[str, Any]] = {
        "first": {"CPU s": first.cpu, "seconds": first.seconds, "kernels compiled": max(compiled["first"])},
        "second": {"CPU s": second.cpu, "seconds": second.seconds, "kernels compiled": max(compiled["second"])},
        "compilation": {
            "CPU s": first.cpu - second.cpu,
            "seconds": first.seconds - second.seconds,
            "kernels compiled": None,
        },
    }
    show(
        "First use: one `sfumato anonymize` with an empty cache, then another",
        [{"process": process, **row} for process, row in result.items()],
        [f"Generator {GENERATOR}, {RECORDS:,} records, k = {K}. Least CPU seconds of {ROUNDS}, each with a new cache."],
    )
    return result


def _first_and_second(options: Options) -> tuple[dict[str, Usage], dict[str, int]]:
    table = options.census(RECORDS)
    usages, compiled = {}, {}
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        directory = Path(name)
        environment = {"SFUMATO_CACHE_DIR": str(directory / "cache")}
        for process in ("first", "second"):
            count = directory / f"compiled-{process}"
            arguments = ["anonymize", table.path, "-o", directory / "release.parquet", "--policy", table.policy_path]
            command = [sys.executable, "-m", "benchmarks.compilation_count", *map(str, (count, *arguments, "-k", K))]
            usages[process] = run_child(command, environment)
            compiled[process] = int(count.read_text())
    return usages, compiled
