"""What does each method lose on tables with many categorical quasi-identifiers, and how long does it take?

Combinations of taxonomy levels are too many to count there, and every class is ``*`` in most columns. Every method has
the same time, and what does not end within it says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
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
LIMIT = 120  # seconds that a command may take
EFFORTS: tuple[EffortName, ...] = (USUAL_EFFORT, "balanced", "fast")
METHODS = (
    "hilbert", "idistance", "snake", "snake-hilbert", "gain-tree", "cell-peeling", "mapping-median", "close-k",
    "mondrian", "mondrian:published", "mondrian:ordered", "mondrian-relaxed", "topdown", "single-dimensional",
    "tds", "nng", "k-member", "global", "datafly", "samarati", "incognito",
)  # fmt: skip
WARM_RECORDS, WARM_COLUMNS = 200, 4  # of a table on which kernels are compiled


def run(options: Options) -> Mapping[str, Table]:
    ways = [(AUTO, effort) for effort in EFFORTS] + [(method, USUAL_EFFORT) for method in options.some(METHODS)]
    few = _written(options, WARM_COLUMNS, WARM_RECORDS)
    for method, effort in ways:
        _release(*few, method, effort)
    tables = {}
    for columns in options.some(QUASI_IDENTIFIERS):
        path, policy = _written(options, columns, options.size(RECORDS))
        rows = [
            {"method": method_in_words(method, effort), **_release(path, policy, method, effort)}
            for method, effort in ways
        ]
        note = f"Generator wide {VERSION}, {options.size(RECORDS):,} records, k = {K}. Seconds of the whole command."
        tables[f"{columns}"] = Table(f"{columns} categorical quasi-identifiers", rows, [note], worst="seconds")
    return tables


def _written(options: Options, columns: int, records: int) -> tuple[Path, Path]:
    """Return a generated table and the file of its policy."""
    path, policy = wide_table(options, columns, records)
    policy_path = path.with_suffix(".policy.toml")
    policy_path.write_text(tomli_w.dumps(policy), "utf-8")
    return path, policy_path


def _release(path: Path, policy: Path, method: str, effort: EffortName) -> dict[str, Any]:
    """Return what a release loses and whether it was audited, and the seconds of its command; or why there is none."""
    command = [sys.executable, "-m", "sfumato", "anonymize", path, "-o", path.with_name("release.parquet"), "--json"]
    command += ["--policy", policy, "-k", K, "--method", method, "--force"]
    command += ["--effort", effort] if method == AUTO else []
    started = time.perf_counter()
    try:
        finished = subprocess.run(
            list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"GCP": None, "seconds": None, "audit": f"not within {LIMIT} s"}
    if finished.returncode != 0:
        return {"GCP": None, "seconds": None, "audit": "refused"}
    seconds, summary = time.perf_counter() - started, json.loads(finished.stdout)
    holds = all(line["holds"] for line in summary["audit"])
    return {"GCP": summary["gcp"], "seconds": seconds, "audit": "holds" if holds else "fails"}


SECTION = Section(
    run,
    timed=True,
    parameters={
        "records": RECORDS,
        "k": K,
        "quasi-identifiers": QUASI_IDENTIFIERS,
        "methods": METHODS,
        "efforts": EFFORTS,
        "limit": LIMIT,
    },
)
