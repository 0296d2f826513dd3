"""How much does the default method lose at each effort, beside the methods that it starts from?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import sfumato
from benchmarks.section import Rows, Section, Table
from benchmarks.tables import Options
from sfumato.policy.run_settings import EffortName

TABLES = ("adult", "cmc", "census-income", "diabetes", "fars", "acs-census")
MANY_K = (5, 10, 25, 50)
METHODS: tuple[tuple[str, EffortName], ...] = (
    ("hilbert", "fast"),
    ("cell-peeling", "fast"),
    ("auto", "fast"),
    ("auto", "balanced"),
)
"""Methods, and the effort that they may make; only the default method makes any."""


def run(options: Options) -> Mapping[str, Table]:
    rows = []
    for name in options.some(TABLES):
        table = options.real(name)
        for method, effort in METHODS:
            row: dict[str, Any] = {"table": table.name, "method": _name(method, effort)}
            for k in options.some(MANY_K):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", sfumato.SfumatoWarning)
                    release = sfumato.anonymize(table.path, table.policy, k=k, method=method, effort=effort)
                row[f"k = {k}"] = float(release.losses.gcp)
            rows.append(row)
    return {
        "gcp": Table("GCP", rows, ["All quasi-identifiers of each table with their taxonomies, nothing suppressed."])
    }


def phrases(rows: Mapping[str, Rows]) -> Mapping[str, str]:
    adult = {row["method"]: 1 - row["k = 10"] for row in rows["gcp"] if row["table"].startswith("adult ")}
    at_once, later = adult["auto"], adult["auto, balanced"]
    return {"kept": f"{at_once:.0%} of the information at once and {later:.0%} after some seconds"}


def _name(method: str, effort: EffortName) -> str:
    return method if effort == "fast" else f"{method}, {effort}"


SECTION = Section(run, timed=False, parameters={"k": MANY_K, "methods": METHODS}, tables=TABLES, phrases=phrases)
