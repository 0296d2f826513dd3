"""How much longer does the first run on a machine take than the next one?

Kernels are compiled on first use and cached. The first process starts with an empty cache, the second with a full one.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.process_usage import Usage, run_child
from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, Options

RECORDS = 10_000
K = 10


def run(options: Options) -> Mapping[str, Table]:
    usages, compiled = _first_and_second(options)
    rows = [
        {
            "process": process,
            "seconds": usage.seconds,
            "CPU s": usage.cpu,
            "times the second": usage.seconds / usages["second"].seconds,
            "kernels compiled": compiled[process],
        }
        for process, usage in usages.items()
    ]
    title = "First use: one `sfumato anonymize` with an empty cache, then another"
    note = f"Generator {GENERATOR}, {RECORDS:,} records, k = {K}; fresh processes, start and imports included."
    return {"processes": Table(title, rows, [note], worst="times the second")}


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


SECTION = Section(run, timed=True, parameters={"records": RECORDS, "k": K})
