"""How much longer does Sfumato take than a program that only reads, sorts and writes the table?

The floor is Polars: it reads the same file, sorts it by one column and writes it with the same compression. Both sync
what they wrote. Sfumato's time includes the audit and the hash of the finished file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import polars
import pyarrow as pa

from benchmarks.section import Rows, Section, Table
from benchmarks.tables import GENERATOR, Options
from benchmarks.timing import ROUNDS, Timed, anonymization, best_alternating

RECORDS = (1_000_000, 10_000_000)
K = 10
SORTED_BY = "age"
AIM = 2.0


def run(options: Options) -> Mapping[str, Table]:
    measured = {records: _measure(options, records) for records in options.sizes(*RECORDS)}
    return {
        "ratios": Table(
            "Floor: Parquet to Parquet",
            [
                {
                    "records": records,
                    "floor s": floor.seconds,
                    "sfumato s": ours.seconds,
                    "ratio": ours.seconds / floor.seconds,
                    "floor CPU s": floor.cpu,
                    "sfumato CPU s": ours.cpu,
                    "CPU ratio": ours.cpu / floor.cpu,
                }
                for records, (floor, ours) in measured.items()
            ],
            [f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}. Warm, best of {ROUNDS}, alternating, one process."],
            worst="ratio",
        ),
        "phases": Table(
            "Floor: phases in seconds",
            [{"records": records, **ours.phases, "together": ours.seconds} for records, (_, ours) in measured.items()],
            worst="together",
        ),
    }


def phrases(rows: Mapping[str, Rows]) -> Mapping[str, str]:
    most = rows["ratios"][-1]
    pace = f"{most['sfumato s']:.0f} seconds on two cores: {most['ratio']:.1f} times what it takes to"
    aim = (f"{'met' if row['ratio'] <= AIM else 'missed'} at {row['records']:,} records" for row in rows["ratios"])
    return {"pace": f"{pace} read, sort and write the file", "aim": ", ".join(aim)}


def _measure(options: Options, records: int) -> tuple[Timed, Timed]:
    table = options.census(records)
    floor, ours = best_alternating(
        _sorted_copy(table.path, options.work / "floor-sorted.parquet"),
        anonymization(table.path, table.policy(k=K), options.work / "floor-release.parquet"),
    )
    return floor, ours


def _sorted_copy(source: Path, target: Path) -> Callable[[], dict[str, float]]:
    # The level that the release is written with; Polars would take another one of its own.
    level = pa.Codec.default_compression_level("zstd")

    def work() -> dict[str, float]:
        target.unlink(missing_ok=True)
        ordered = polars.read_parquet(source).sort(SORTED_BY)
        ordered.write_parquet(target, compression="zstd", compression_level=level)
        synced(target)
        return {}

    return work


def synced(path: Path) -> None:
    """Wait until a file is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


SECTION = Section(run, timed=True, parameters={"records": RECORDS, "k": K, "rounds": ROUNDS}, phrases=phrases)
