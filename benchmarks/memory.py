"""How much memory does an anonymization need at its peak?"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from benchmarks.process_usage import run_child
from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, Options

RECORDS = (1_000_000, 10_000_000)
K = 10


def run(options: Options) -> Mapping[str, Table]:
    rows = []
    for records in options.sizes(*RECORDS):
        table = options.census(records)
        arguments = ["anonymize", table.path, "-o", options.work / "memory.parquet", "--policy", table.policy_path]
        usage = run_child([sys.executable, "-m", "sfumato", *map(str, [*arguments, "-k", K])], {})
        peak = usage.peak_bytes
        rows.append({"records": records, "peak GB": peak / 1e9, "bytes a record": peak // records})
    note = f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}; start and imports included. GB are 10^9 bytes."
    return {"peaks": Table("Memory: peak of a fresh process", rows, [note], worst="peak GB")}


SECTION = Section(run, timed=True, parameters={"records": RECORDS, "k": K})
