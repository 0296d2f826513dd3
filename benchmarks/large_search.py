"""What does the search cost on large tables, and what does it gain: in memory, on disk and on Spark?

Every figure covers a whole command. Memory is that of all its processes, so that on Spark it has Java's too.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.process_tree import run_tree
from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, GeneratedTable, Options
from sfumato.policy import EffortName

RECORDS = (1_000_000, 10_000_000)
K, SPARK_MASTER = 10, "local[2]"
EFFORTS: tuple[EffortName, ...] = ("fast", "normal", "balanced")
MOST_SEARCHED = {"balanced": 1_000_000}  # beyond that, one run takes too long to be repeated
WARM_RECORDS = 3_000  # on which kernels are compiled
MOST_ON_SPARK = 1_000_000


def run(options: Options) -> Mapping[str, Table]:
    for engine in ("memory", "disk", "spark"):
        _usage(options, options.census(WARM_RECORDS), engine, "balanced")
    rows = []
    for records in options.sizes(*RECORDS):
        table = options.census(records)
        for engine, effort in _ways(records):
            rows.append(
                {"records": records, "engine": engine, "effort": effort, **_usage(options, table, engine, effort)}
            )
    note = f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}; fresh processes, kernels compiled before."
    return {"usage": Table("Search on large tables", rows, [note], worst="seconds")}


def _ways(records: int) -> list[tuple[str, EffortName]]:
    efforts = [effort for effort in EFFORTS if records <= MOST_SEARCHED.get(effort, records)]
    ways = [("memory", effort) for effort in efforts]
    if "balanced" in efforts:
        ways.append(("disk", "balanced"))
        if records <= MOST_ON_SPARK:
            ways.append(("spark", "balanced"))
    return ways


def _usage(options: Options, table: GeneratedTable, engine: str, effort: EffortName) -> dict[str, Any]:
    target = options.work / "large-search.parquet"
    command = [sys.executable, "-m", "sfumato", "anonymize", table.path, "-o", target, "--policy", table.policy_path]
    command += ["-k", K, "--effort", effort, "--engine", engine, "--json"]
    usage = run_tree([*command, *(["--spark-master", SPARK_MASTER] if engine == "spark" else [])])
    _remove(target)
    return {
        "GCP": json.loads(usage.output)["gcp"],
        "seconds": usage.seconds,
        "CPU s": usage.cpu,
        "peak GB": usage.peak_bytes / 1e9,
        "bytes a record": usage.peak_bytes // table.records,
    }


def _remove(target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()


SECTION = Section(
    run,
    timed=True,
    parameters={"records": RECORDS, "k": K, "efforts": EFFORTS, "master": SPARK_MASTER},
)
