"""Does the disk engine keep to its memory, and how far is it from what DuckDB takes to sort and write the same file?

The floor is DuckDB with the same limit: it reads the file, sorts it by one column and writes it with the same
compression. Memory is what the whole tree of processes holds by itself, sampled ten times a second: pages of files that
the system could drop at any moment are not counted.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from benchmarks.markdown import show
from benchmarks.setting import GENERATOR, Setting
from benchmarks.watching import watch

K, MEMORY, SORTED_BY = 10, "2GB", "age"

FLOOR = """
import duckdb, sys
source, target, column, memory, scratch = sys.argv[1:]
database = duckdb.connect(config={"memory_limit": memory, "temp_directory": scratch})
ordered = f"SELECT * FROM read_parquet('{source}') ORDER BY \\"{column}\\""
database.execute(f"COPY ({ordered}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
"""


def run(setting: Setting) -> list[dict[str, Any]]:
    results = []
    for records in setting.records:
        table = setting.census(records)
        sorted_copy, release = setting.work / "disk-sorted.parquet", setting.work / "disk-release.parquet"
        scratch = setting.work / "scratch"
        scratch.mkdir(exist_ok=True)
        floor = watch([sys.executable, "-c", FLOOR, table.path, sorted_copy, SORTED_BY, MEMORY, scratch])
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
        ours = watch([*command, "--json"])
        told = json.loads(ours.output)
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
                "scratch written GB": told["scratch"]["bytes_written"] / 1e9,
                "scratch read GB": told["scratch"]["bytes_read"] / 1e9,
                "phases": told["seconds"],
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
