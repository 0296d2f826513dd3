"""What does each method lose on tables with many categorical quasi-identifiers, and does it end within a minute?

Combinations of taxonomy levels are too many to count there, and every class is ``*`` in most columns. Losses do not
depend on the machine, so one run is enough; the minute is that of the whole command. What does not end within it is not
tried on tables with more columns.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from benchmarks.process_usage import ROOT
from benchmarks.section import Section, Table
from benchmarks.tables import Options, method_in_words
from benchmarks.wide_tables import VERSION, wide_table
from sfumato.methods import AUTO
from sfumato.policy import EffortName
from sfumato.policy.run_settings import USUAL_EFFORT

RECORDS, K = 30_000, 5
QUASI_IDENTIFIERS = (16, 24, 30, 100)
LIMIT = 60  # seconds that a command may take
EFFORTS: tuple[EffortName, ...] = (USUAL_EFFORT, "balanced", "fast")
METHODS = (
    "hilbert", "idistance", "snake", "snake-hilbert", "gain-tree", "cell-peeling", "mapping-median", "close-k",
    "mondrian", "mondrian:published", "mondrian:ordered", "mondrian-relaxed", "topdown", "single-dimensional",
    "tds", "nng", "k-member", "global", "datafly", "samarati", "incognito",
)  # fmt: skip
HOLDS = "holds"
WARM_RECORDS, WARM_COLUMNS = 200, 4  # of a table on which kernels are compiled


def run(options: Options) -> Mapping[str, Table]:
    ways = [(AUTO, effort) for effort in EFFORTS] + [(method, USUAL_EFFORT) for method in options.some(METHODS)]
    few = _written(options, WARM_COLUMNS, WARM_RECORDS)
    for method, effort in ways:
        _release(*few, method, effort)
    tables, records = {}, options.size(RECORDS)
    note = f"Generator wide {VERSION}, {records:,} records, k = {K}; at most {LIMIT} s for a command."
    for columns in options.some(QUASI_IDENTIFIERS):
        path, policy = _written(options, columns, records)
        released = {way: _release(path, policy, *way) for way in ways}
        rows = [{"method": method_in_words(*way), **row} for way, row in released.items()]
        tables[f"{columns}"] = Table(f"{columns} categorical quasi-identifiers", rows, [note])
        ways = [way for way, row in released.items() if row["audit"] == HOLDS]
    return tables


def _written(options: Options, columns: int, records: int) -> tuple[Path, Path]:
    """Return a generated table and the file of its policy."""
    path, policy = wide_table(options, columns, records)
    policy_path = path.with_suffix(".policy.toml")
    policy_path.write_text(tomli_w.dumps(policy), "utf-8")
    return path, policy_path


def _release(path: Path, policy: Path, method: str, effort: EffortName) -> dict[str, Any]:
    """Return what a release loses and what its audit says, or why there is no release."""
    command = [sys.executable, "-m", "sfumato", "anonymize", path, "-o", path.with_name("release.parquet"), "--json"]
    command += ["--policy", policy, "-k", K, "--method", method, "--force"]
    command += ["--effort", effort] if method == AUTO else []
    try:
        finished = subprocess.run(
            list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"GCP": None, "audit": f"not within {LIMIT} s"}
    if finished.returncode != 0:
        return {"GCP": None, "audit": "refused"}
    summary = json.loads(finished.stdout)
    return {"GCP": summary["gcp"], "audit": HOLDS if all(line["holds"] for line in summary["audit"]) else "fails"}


SECTION = Section(
    run,
    timed=False,
    parameters={
        "records": RECORDS,
        "k": K,
        "quasi-identifiers": QUASI_IDENTIFIERS,
        "methods": METHODS,
        "efforts": EFFORTS,
        "limit": LIMIT,
    },
)
