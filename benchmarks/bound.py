"""How far is the default method at most from the least possible loss?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import Options, SmallTable
from sfumato.policy import Policy, merge_flags

ASKED: Mapping[str, Sequence[str]] = {
    "cmc": ("k = 5", "k = 10", "k = 25", "l = 2"),
    "adult": ("k = 5", "k = 10", "l = 2", "l = 3"),
    "census-income": ("l = 2",),
}
EFFORT: Final = "balanced"


def run(options: Options) -> Mapping[str, Table]:
    rows: list[dict[str, Any]] = []
    for name in ("cmc",) if options.trial else ASKED:
        table = options.real(name)
        for asked in options.some(ASKED[name]):
            policy = _policy(table, asked)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sfumato.SfumatoWarning)
                release = sfumato.anonymize(table.path, policy, effort=EFFORT)
            bound = sfumato.bound(table.path, policy)
            gcp = float(release.losses.gcp)
            rows.append(
                {
                    "table": table.name,
                    "asked for": asked,
                    # A bound is rounded down and a ratio up, so that what is shown is proven too.
                    "simple": math.floor(bound.simple * 1e4) / 1e4,
                    "prices": math.floor(bound.gcp * 1e4) / 1e4,
                    f"auto, {EFFORT}": gcp,
                    "at most times the best": math.ceil(bound.ratio(gcp) * 1e3) / 1e3,
                }
            )
    note = (
        "All quasi-identifiers with their taxonomies; k alone, or frequency l-diversity of the sensitive column alone."
    )
    return {"ratios": Table("GCP and its lower bounds", rows, [note])}


def _policy(table: SmallTable, asked: str) -> Policy:
    kind, number = asked.split(" = ")
    if kind == "k":
        return merge_flags(table.policy, k=int(number))
    (sensitive, *_) = table.policy.sensitive
    return merge_flags(table.policy, k=1, require=[f"frequency({sensitive}, l={number})"])


SECTION = Section(run, timed=False, parameters={"asked for": ASKED, "effort": EFFORT}, tables=tuple(ASKED))
