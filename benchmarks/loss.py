"""How much does the default method lose at each effort, beside the methods that it starts from?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import sfumato
from benchmarks.section import Rows, Section, Table
from benchmarks.tables import Options, method_in_words
from sfumato.policy.run_settings import EffortName

TABLES = ("adult", "cmc", "census-income", "diabetes", "fars", "acs-census")
MANY_K = (5, 10, 25, 50)
METHODS: tuple[tuple[str, EffortName], ...] = (
    ("hilbert", "fast"),
    ("cell-peeling", "fast"),
    ("auto", "fast"),
    ("auto", "normal"),
    ("auto", "balanced"),
)
"""Methods, and the effort that they may make; only the default method makes any."""


def run(options: Options) -> Mapping[str, Table]:
    rows = []
    for name in options.some(TABLES):
        table = options.real(name)
        for method, effort in METHODS:
            row: dict[str, Any] = {"table": table.name, "method": method_in_words(method, effort)}
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
    usual, quick = adult["auto"], adult["auto, fast"]
    return {"kept": f"{usual:.1%} of the information, and {quick:.1%} if it may not search"}


SECTION = Section(run, timed=False, parameters={"k": MANY_K, "methods": METHODS}, tables=TABLES, phrases=phrases)
