"""How much longer does the first run on a machine take than the next one?

Kernels are compiled on first use and cached. The first process starts with an empty cache, the second with a full one.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.process_usage import run_child
from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, GeneratedTable, Options

RECORDS = 30_000
K = 10
ASKED: Mapping[str, Sequence[str]] = {
    "fast": ("--effort", "fast"),
    "normal": ("--effort", "normal"),
    "balanced": ("--effort", "balanced"),
    "balanced, l = 2": ("--effort", "balanced", "--require", "frequency(occupation, l=2)"),
}


def run(options: Options) -> Mapping[str, Table]:
    table = options.census(options.size(RECORDS))
    rows = [row for effort, flags in ASKED.items() for row in _first_and_second(options, table, effort, flags)]
    title = "First use: one `sfumato anonymize` with an empty cache, then another"
    note = f"Generator {GENERATOR}, {table.records:,} records, k = {K}; fresh processes, start and imports included."
    return {"processes": Table(title, rows, [note], worst="CPU s")}


def _first_and_second(
    options: Options, table: GeneratedTable, effort: str, flags: Sequence[str]
) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        directory = Path(name)
        environment = {"SFUMATO_CACHE_DIR": str(directory / "cache")}
        for process in ("first", "second"):
            count = directory / f"compiled-{process}"
            arguments = ["anonymize", table.path, "-o", directory / "release.parquet", "--policy", table.policy_path]
            counted = [sys.executable, "-m", "benchmarks.compilation_count", count, *arguments, "-k", K, *flags]
            usage = run_child(list(map(str, counted)), environment)
            rows.append(
                {
                    "effort": effort,
                    "process": process,
                    "seconds": usage.seconds,
                    "CPU s": usage.cpu,
                    "kernels compiled": int(count.read_text()),
                }
            )
    return rows


SECTION = Section(run, timed=True, parameters={"records": RECORDS, "k": K, "asked": ASKED})
