"""How much memory does an anonymization need at its peak, and is a limit of it kept?

The limit is tried on tables whose values are many: a kept text that is nearly unique, and numbers with millions of
different values, also as the text of a CSV file. A run either keeps to the limit or is refused before it passes it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from benchmarks.process_tree import run_tree
from benchmarks.process_usage import run_child
from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, QUICK, Options

RECORDS = (1_000_000, 10_000_000)
K = 10
LIMITED, LIMITS = 5_000_000, (300, 500, 1000)  # records, and MB
SECONDS_BETWEEN_SAMPLES = 0.05
REFUSED = 2  # the exit code
TEXT = ["--quasi-identifiers", "age,sex,region", "--accept-linkable", "note"]
NUMBERS = ["--quasi-identifiers", "age,sex,zip,income"]


def run(options: Options) -> Mapping[str, Table]:
    rows = []
    for records in options.sizes(*RECORDS):
        table = options.census(records)
        arguments = ["anonymize", table.path, "-o", options.work / "memory.parquet", "--policy", table.policy_path]
        arguments += ["--effort", QUICK]
        usage = run_child([sys.executable, "-m", "sfumato", *map(str, [*arguments, "-k", K])], {})
        peak = usage.peak_bytes
        rows.append({"records": records, "peak GB": peak / 1e9, "bytes a record": peak // records})
    note = f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}; start and imports included. GB are 10^9 bytes."
    return {
        "peaks": Table("Memory: peak of a fresh process", rows, [note], worst="peak GB"),
        "limits": Table(
            "Memory: tables with many values within a limit",
            _limited(options),
            [
                f"{LIMITED:,} records, k = {K}, `--engine disk`. Peak of the command (RssAnon and RssShmem of all its "
                "processes), sampled twenty times a second. A run that is refused ends before it passes the limit."
            ],
            worst="of the limit",
        ),
    }


def _limited(options: Options) -> list[dict[str, Any]]:
    text, numbers, as_csv = _tables(options.work, options.size(LIMITED))
    cases = {
        "kept text, nearly unique": (text, TEXT),
        "numbers": (numbers, NUMBERS),
        "numbers in CSV": (as_csv, NUMBERS),
    }
    rows = []
    for name, (path, columns) in cases.items():
        for limit in options.some(LIMITS):
            command = [sys.executable, "-m", "sfumato", "anonymize", path, "-o", options.work / "limited.parquet"]
            command += [*columns, "--other", "keep", "-k", K, "--engine", "disk", "--memory", f"{limit}MB", "--json"]
            usage = run_tree(command, interval=SECONDS_BETWEEN_SAMPLES, expected=(0, REFUSED))
            rows.append(
                {
                    "table": name,
                    "limit MB": limit,
                    "run": "refused" if usage.exit_code == REFUSED else "kept",
                    "peak MB": usage.peak_bytes / 1e6,
                    "of the limit": usage.peak_bytes / 1e6 / limit,
                }
            )
    return rows


def _tables(work: Path, records: int) -> tuple[Path, Path, Path]:
    """Write the three tables: with a kept text, with numbers, and with the same numbers as CSV."""
    random = np.random.default_rng(1)
    base = {
        "age": random.integers(18, 90, records),
        "sex": pa.array(["m", "f"]).take(pa.array(random.integers(0, 2, records))),
        "region": random.integers(0, 400, records),
    }
    notes = pa.array([f"note-{number}" for number in random.integers(0, 10**12, records).tolist()])
    incomes = np.round(random.lognormal(10, 1, records), 2)
    numbers = pa.table({**base, "zip": random.integers(10_000, 99_999, records), "income": incomes})
    paths = (work / "kept-text.parquet", work / "numbers.parquet", work / "numbers.csv")
    parquet.write_table(pa.table({**base, "note": notes}), paths[0])
    parquet.write_table(numbers, paths[1])
    csv.write_csv(numbers, paths[2])
    return paths


SECTION = Section(
    run, timed=True, parameters={"records": RECORDS, "k": K, "limited_records": LIMITED, "limits_mb": LIMITS}
)
