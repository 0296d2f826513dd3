"""How long does each effort take on real tables, and what does it gain?

The seconds are those of a run in a warm process, from file to frame. What an effort takes more than ``fast`` is what
the user pays for less loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import Options, SmallTable
from benchmarks.timing import timed
from sfumato.policy import EffortName, Policy, merge_flags

TABLES = ("adult", "cmc", "census-income", "diabetes", "fars", "acs-census")
K, MANY_L = 10, (2, 3)
EFFORTS: tuple[EffortName, ...] = ("fast", "normal", "balanced")


def run(options: Options) -> Mapping[str, Table]:
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        for name in options.some(TABLES):
            table = options.real(name)
            for asked, policy in _policies(table).items():
                if not rows or asked not in {row["asked for"] for row in rows}:
                    _efforts(table, asked, policy)  # compiles what there is to compile
                rows += _efforts(table, asked, policy)
    note = f"k = {K}, or frequency l-diversity of the sensitive column; from file to frame, in a warm process."
    return {"seconds": Table("Efforts: seconds and loss", rows, [note], worst="seconds")}


def _policies(table: SmallTable) -> dict[str, Policy]:
    """Return the policies to try: k alone, and l alone where a table has that many values that are rare enough."""
    (sensitive, *_) = table.policy.sensitive
    diverse = {f"l = {l}": merge_flags(table.policy, k=1, require=[f"frequency({sensitive}, l={l})"]) for l in MANY_L}
    return {f"k = {K}": merge_flags(table.policy, k=K), **diverse}


def _efforts(table: SmallTable, asked: str, policy: Policy) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for effort in EFFORTS:
        result: list[float] = []

        def work(effort: EffortName = effort, result: list[float] = result) -> dict[str, float]:
            release = sfumato.anonymize(table.path, policy, effort=effort)
            result.append(float(release.losses.gcp))
            return {}

        try:
            run = timed(work)
        except sfumato.InfeasibleError:
            return rows
        first = rows[0] if rows else None
        rows.append(
            {
                "table": table.name,
                "asked for": asked,
                "effort": effort,
                "GCP": result[-1],
                "seconds": run.seconds,
                "CPU s": run.cpu,
                "seconds more than fast": run.seconds - (first["seconds"] if first else run.seconds),
            }
        )
    return rows


SECTION = Section(run, timed=True, parameters={"k": K, "l": MANY_L, "efforts": EFFORTS}, tables=TABLES)
