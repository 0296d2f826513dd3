"""How much memory does an anonymization need at its peak?"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.child import run_child
from benchmarks.markdown import show
from benchmarks.setting import GENERATOR, Setting

K = 10


def run(setting: Setting) -> list[dict[str, Any]]:
    results = []
    for records in setting.records:
        table = setting.census(records)
        arguments = ["anonymize", table.path, "-o", setting.work / "memory.parquet", "--policy", table.policy_path]
        counted = [setting.work / "compiled", *arguments, "-k", K]
        usage = run_child([sys.executable, "-m", "benchmarks.command", *map(str, counted)], {})
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
