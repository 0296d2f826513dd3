"""Does the disk engine stay within its memory, and how much longer does it take than DuckDB to sort the same file?

The floor is DuckDB with the same limit: it reads the file, sorts it by one column and writes it with the same
compression. Memory is what all processes of a command hold themselves, sampled ten times a second. Pages of files that
the system could drop at any moment do not count.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from benchmarks.markdown import show
from benchmarks.process_tree import run_tree
from benchmarks.tables import GENERATOR, Options

K, MEMORY, SORTED_BY = 10, "2GB", "age"

FLOOR = """
import duckdb, sys
source, target, column, memory, scratch = sys.argv[1:]
database = duckdb.connect(config={"memory_limit": memory, "temp_directory": scratch})
ordered = f"SELECT * FROM read_parquet('{source}') ORDER BY \\"{column}\\""
database.execute(f"COPY ({ordered}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
"""


def run(options: Options) -> list[dict[str, Any]]:
    results = []
    for records in options.records:
        table = options.census(records)
        sorted_copy, release = options.work / "disk-sorted.parquet", options.work / "disk-release.parquet"
        scratch = options.work / "scratch"
        scratch.mkdir(exist_ok=True)
        floor = run_tree([sys.executable, "-c", FLOOR, table.path, sorted_copy, SORTED_BY, MEMORY, scratch])
        command = [
            sys.executable,
            "-m",
            "sfumato",
            "anonymize",
            table.path,
            "-o",
            release,
            "--policy",
            table.policy_path,
        ]
        command += ["-k", K, "--engine", "disk", "--memory", MEMORY, "--temporary", scratch, "--method", "hilbert"]
        ours = run_tree([*command, "--json"])
        summary = json.loads(ours.output)
        results.append(
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
                "phases": summary["seconds"],
            }
        )
        for path in (sorted_copy, release):
            path.unlink()
    show(
        "Disk: Parquet to Parquet within a memory limit",
        [{name: value for name, value in result.items() if name != "phases"} for result in results],
        [f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}, hilbert, --memory {MEMORY}; fresh processes."],
    )
    show("Disk: phases in seconds", [{"records": one["records"], **one["phases"]} for one in results])
    return results
