"""How much longer does Sfumato take than a program that only reads, sorts and writes a CSV file?

The floor is Polars, as in ``floor``: it reads the file, which finds the types of the columns, sorts it by one column,
writes it as CSV and syncs it. Sfumato's time includes the audit and the hash of the finished file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import polars
from pyarrow import csv, parquet

from benchmarks.floor import SORTED_BY, synced
from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, Options
from benchmarks.timing import ROUNDS, anonymization, best_alternating
from sfumato.policy import merge_flags

RECORDS = 1_000_000
K = 10
METHODS = ("auto", "hilbert")


def run(options: Options) -> Mapping[str, Table]:
    records = options.size(RECORDS)
    table = options.census(records)
    source = options.work / "floor.csv"
    csv.write_csv(parquet.read_table(table.path), source)
    policies = [merge_flags(table.policy(k=K), method=method) for method in METHODS]
    floor, *ours = best_alternating(
        _sorted_copy(source, options.work / "floor-sorted.csv"),
        *(anonymization(source, policy, options.work / "floor-release.csv") for policy in policies),
    )
    return {
        "ratios": Table(
            "Floor: CSV to CSV",
            [
                {
                    "method": method,
                    "floor s": floor.seconds,
                    "sfumato s": timed.seconds,
                    "ratio": timed.seconds / floor.seconds,
                    "CPU ratio": timed.cpu / floor.cpu,
                }
                for method, timed in zip(METHODS, ours, strict=True)
            ],
            [f"Generator {GENERATOR}, {records:,} records, 7 quasi-identifiers, k = {K}. Warm, best of {ROUNDS}."],
            worst="ratio",
        )
    }


def _sorted_copy(source: Path, target: Path) -> Callable[[], dict[str, float]]:
    def work() -> dict[str, float]:
        target.unlink(missing_ok=True)
        polars.read_csv(source).sort(SORTED_BY).write_csv(target)
        synced(target)
        return {}

    return work


SECTION = Section(run, timed=True, parameters={"records": RECORDS, "k": K, "methods": METHODS, "rounds": ROUNDS})
