"""How much memory does an anonymization need at its peak?"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.markdown import show
from benchmarks.process_usage import run_child
from benchmarks.tables import GENERATOR, Options

K = 10


def run(options: Options) -> list[dict[str, Any]]:
    results = []
    for records in options.records:
        table = options.census(records)
        arguments = ["anonymize", table.path, "-o", options.work / "memory.parquet", "--policy", table.policy_path]
        counted = [options.work / "compiled", *arguments, "-k", K]
        usage = run_child([sys.executable, "-m", "benchmarks.compilation_count", *map(str, counted)], {})
        results.append(
            {
                "records": records,
                "peak GB": usage.peak_bytes / 1e9,
                "bytes a record": usage.peak_bytes // records,
                "seconds": usage.seconds,
                "CPU s": usage.cpu,
            }
        )
    show(
        "Memory: peak of a fresh process",
        results,
        [f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}; start and imports included. GB are 10^9 bytes."],
    )
    return results
