"""Does the disk engine stay within its memory, and how much longer does it take than DuckDB to sort the same file?

How does its time grow with the records? The slope is the exponent between two sizes: 1 if time is linear.

The floor is DuckDB with the same limit: it reads the file, sorts it by one column and writes it with the same
compression. Memory is what all processes of a command hold themselves, sampled ten times a second. Pages of files that
the system could drop at any moment do not count.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from math import log

from benchmarks.process_tree import run_tree
from benchmarks.section import Rows, Section, Table
from benchmarks.tables import GENERATOR, Options

RECORDS = (10_000_000, 30_000_000)
MANY_RECORDS = (10_000_000, 100_000_000)
K, MEMORY, SORTED_BY = 10, "2GB", "age"

FLOOR = """
import duckdb, sys
source, target, column, memory, scratch = sys.argv[1:]
database = duckdb.connect(config={"memory_limit": memory, "temp_directory": scratch})
ordered = f"SELECT * FROM read_parquet('{source}') ORDER BY \\"{column}\\""
database.execute(f"COPY ({ordered}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
"""


def run(options: Options) -> Mapping[str, Table]:
    return _measured(options, options.sizes(*RECORDS))


def run_long(options: Options) -> Mapping[str, Table]:
    return _measured(options, options.sizes(*MANY_RECORDS))


def _measured(options: Options, sizes: Sequence[int]) -> Mapping[str, Table]:
    rows, phases = [], []
    sorted_copy, release = options.work / "disk-sorted.parquet", options.work / "disk-release.parquet"
    scratch = options.work / "scratch"
    scratch.mkdir(exist_ok=True)
    for records in sizes:
        table = options.census(records)
        floor = run_tree([sys.executable, "-c", FLOOR, table.path, sorted_copy, SORTED_BY, MEMORY, scratch])
        command = [sys.executable, "-m", "sfumato", "anonymize", table.path, "-o", release]
        command += ["--policy", table.policy_path, "-k", K, "--engine", "disk", "--memory", MEMORY]
        ours = run_tree([*command, "--temporary", scratch, "--method", "hilbert", "--json"])
        summary = json.loads(ours.output)
        rows.append(
            {
                "records": records,
                "floor s": floor.seconds,
                "sfumato s": ours.seconds,
                "ratio": ours.seconds / floor.seconds,
                "floor CPU s": floor.cpu,
                "sfumato CPU s": ours.cpu,
                "floor GB": floor.peak_bytes / 1e9,
                "sfumato GB": ours.peak_bytes / 1e9,
                "scratch written GB": summary["scratch"]["bytes_written"] / 1e9,
                "scratch read GB": summary["scratch"]["bytes_read"] / 1e9,
            }
        )
        phases.append({"records": records, **summary["seconds"], "together": ours.seconds})
        for path in (sorted_copy, release):
            path.unlink()
    note = f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}, hilbert, --memory {MEMORY}; fresh processes."
    return {
        "ratios": Table("Disk: Parquet to Parquet within a memory limit", rows, [note], worst="ratio"),
        "phases": Table("Disk: phases in seconds", phases, worst="together"),
        "curve": Table("Disk: time against records", _curve(rows), [note], worst="slope"),
    }


def _curve(rows: Rows) -> Rows:
    """Return the time and what it grows by from each size to the next."""
    curve = []
    for before, row in zip([rows[0], *rows[:-1]], rows, strict=True):
        grown, longer = row["records"] / before["records"], row["sfumato s"] / before["sfumato s"]
        curve.append(
            {
                "records": row["records"],
                "seconds": row["sfumato s"],
                "microseconds per record": row["sfumato s"] / row["records"] * 1e6,
                "CPU microseconds per record": row["sfumato CPU s"] / row["records"] * 1e6,
                "slope": log(longer) / log(grown) if grown > 1 else 1.0,
            }
        )
    return curve


PARAMETERS = {"k": K, "memory": MEMORY, "method": "hilbert"}
SECTION = Section(run, timed=True, parameters={"records": RECORDS, **PARAMETERS})
LONG_SECTION = Section(run_long, timed=True, parameters={"records": MANY_RECORDS, **PARAMETERS})
