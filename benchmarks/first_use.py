"""How much longer does the first run on a machine take than the next one?

Kernels are compiled on first use and cached. The first process starts with an empty cache, the second with a full one.
Both are the command as users start it; what was compiled is counted from outside, by the files in the cache. A kernel
that is a part of others has no file of its own and is not counted. Compiling takes twice as long on one machine as on
another, so the floor is a process in which numba compiles one function of its own.
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
COMMAND = (sys.executable, "-m", "sfumato")
FLOOR = "import numba, numpy; numba.njit(lambda numbers: numpy.argsort(numbers))(numpy.arange(9.0))"


def run(options: Options) -> Mapping[str, Table]:
    table = options.census(options.size(RECORDS))
    floor, help_text = (run_child(command, {}) for command in ([sys.executable, "-c", FLOOR], [*COMMAND, "--help"]))
    rows: list[dict[str, Any]] = [
        {"effort": effort, "process": "-", "seconds": used.seconds, "CPU s": used.cpu, "kernels compiled": compiled}
        for effort, used, compiled in (("numba alone", floor, 1), ("none: `sfumato --help`", help_text, 0))
    ]
    rows += [row for effort, flags in ASKED.items() for row in _first_and_second(options, table, effort, flags)]
    rows = [{**row, "times the floor": row["CPU s"] / floor.cpu} for row in rows]
    title = "First use: one `sfumato anonymize` with an empty cache, then another"
    note = f"Generator {GENERATOR}, {table.records:,} records, k = {K}; fresh processes, start and imports included."
    return {"processes": Table(title, rows, [note], worst="CPU s")}


def _first_and_second(
    options: Options, table: GeneratedTable, effort: str, flags: Sequence[str]
) -> list[dict[str, Any]]:
    rows, compiled_before = [], 0
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        directory = Path(name)
        environment = {"SFUMATO_CACHE_DIR": str(directory / "cache")}
        arguments = ["anonymize", table.path, "-o", directory / "release.parquet", "--policy", table.policy_path]
        command = [*COMMAND, *map(str, arguments), "-k", str(K), *flags]
        for process in ("first", "second"):
            usage = run_child(command, environment)
            compiled = sum(1 for _ in (directory / "cache").rglob("*.kernel"))
            rows.append(
                {
                    "effort": effort,
                    "process": process,
                    "seconds": usage.seconds,
                    "CPU s": usage.cpu,
                    "kernels compiled": compiled - compiled_before,
                }
            )
            compiled_before = compiled
    return rows


SECTION = Section(run, timed=True, parameters={"records": RECORDS, "k": K, "asked": ASKED})
