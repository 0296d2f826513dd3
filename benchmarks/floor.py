"""How much longer does Sfumato take than a program that only reads, sorts and writes the table?

The floor is Polars: it reads the same file, sorts it by one column and writes it with the same compression. Both sync
what they wrote. Sfumato's time includes the audit and the hash of the finished file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa

from benchmarks.markdown import show
from benchmarks.tables import GENERATOR, Options
from benchmarks.timing import ROUNDS, anonymization, best_alternating

K = 10
SORTED_BY = "age"


def run(options: Options) -> list[dict[str, Any]]:
    results = [_compare(options, records) for records in options.records]
    phases = list(dict.fromkeys(name for result in results for name in result["phases"]))
    show(
        "Floor: Parquet to Parquet",
        [{name: value for name, value in result.items() if name != "phases"} for result in results],
        [f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}. Warm, best of {ROUNDS}, alternating, one process."],
    )
    show(
        "Floor: phases in seconds",
        [
            {"records": result["records"], **{name: result["phases"].get(name, 0.0) for name in phases}}
            for result in results
        ],
    )
    return results


def _compare(options: Options, records: int) -> dict[str, Any]:
    table = options.census(records)
    release = options.work / "floor-release.parquet"
    floor, ours = best_alternating(
        _sorted_copy(table.path, options.work / "floor-sorted.parquet"),
        anonymization(table.path, table.policy(k=K), release),
    )
    return {
        "records": records,
        "floor s": floor.seconds,
        "sfumato s": ours.seconds,
        "ratio": ours.seconds / floor.seconds,
        "floor CPU s": floor.cpu,
        "sfumato CPU s": ours.cpu,
        "CPU ratio": ours.cpu / floor.cpu,
        "phases": ours.phases,
    }


def _sorted_copy(source: Path, target: Path) -> Callable[[], dict[str, float]]:
    # The level that the release is written with; Polars would take another one of its own.
    level = pa.Codec.default_compression_level("zstd")

    def work() -> dict[str, float]:
        target.unlink(missing_ok=True)
        ordered = polars.read_parquet(source).sort(SORTED_BY)
        ordered.write_parquet(target, compression="zstd", compression_level=level)
        handle = os.open(target, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        return {}

    return work
