"""What does the search cost on large tables, and what does it gain: in memory, on disk and on Spark?

Every figure covers a whole command. Memory is that of all its processes, so that on Spark it has Java's too.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.process_tree import run_tree
from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, GeneratedTable, Options
from sfumato.policy import EffortName

RECORDS = (1_000_000, 10_000_000)
LONG_RECORDS = 10_000_000  # whose search takes long: a section of its own
K, SPARK_MASTER = 10, "local[2]"
QUICK: tuple[EffortName, ...] = ("fast", "normal")
EFFORTS: tuple[EffortName, ...] = (*QUICK, "balanced")
WARM_RECORDS = 3_000  # on which kernels are compiled

Way = tuple[str, EffortName]  # engine and effort


def run(options: Options) -> Mapping[str, Table]:
    few, *many = options.sizes(*RECORDS)
    ways = [("memory", effort) for effort in EFFORTS] + [("disk", "balanced"), ("spark", "balanced")]
    return _table(options, {few: ways, **{records: [("memory", effort) for effort in QUICK] for records in many}})


def run_long(options: Options) -> Mapping[str, Table]:
    return _table(options, {options.size(LONG_RECORDS): [("memory", "balanced"), ("disk", "balanced")]})


def _table(options: Options, ways_by_records: Mapping[int, Sequence[Way]]) -> Mapping[str, Table]:
    for engine in {engine for ways in ways_by_records.values() for engine, _ in ways}:
        _usage(options, options.census(WARM_RECORDS), engine, "balanced")
    rows = [
        {
            "records": records,
            "engine": engine,
            "effort": effort,
            **_usage(options, options.census(records), engine, effort),
        }
        for records, ways in ways_by_records.items()
        for engine, effort in ways
    ]
    note = f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}; fresh processes, kernels compiled before."
    return {"usage": Table("Search on large tables", rows, [note], worst="seconds")}


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


PARAMETERS = {"k": K, "efforts": EFFORTS, "master": SPARK_MASTER}
SECTION = Section(run, timed=True, parameters={"records": RECORDS, **PARAMETERS})
LONG_SECTION = Section(run_long, timed=True, parameters={"records": LONG_RECORDS, **PARAMETERS})
