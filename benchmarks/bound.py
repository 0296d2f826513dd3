"""How far is the default method at most from the least possible loss?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, Final

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import Options

MANY_K = {"cmc": (5, 10, 25), "adult": (5, 10)}
EFFORT: Final = "balanced"


def run(options: Options) -> Mapping[str, Table]:
    rows: list[dict[str, Any]] = []
    for name in ("cmc",) if options.trial else MANY_K:
        table = options.real(name)
        for k in options.some(MANY_K[name]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sfumato.SfumatoWarning)
                release = sfumato.anonymize(table.path, table.policy, k=k, effort=EFFORT)
            bound = sfumato.bound(table.path, table.policy, k=k)
            gcp = float(release.losses.gcp)
            rows.append(
                {
                    "table": table.name,
                    "k": k,
                    # A bound is rounded down and a ratio up, so that what is shown is proven too.
                    "simple": math.floor(bound.simple * 1e4) / 1e4,
                    "prices": math.floor(bound.gcp * 1e4) / 1e4,
                    f"auto, {EFFORT}": gcp,
                    "at most times the best": math.ceil(bound.ratio(gcp) * 1e3) / 1e3,
                }
            )
    return {"ratios": Table("GCP and its lower bounds", rows, ["All quasi-identifiers with their taxonomies."])}


SECTION = Section(run, timed=False, parameters={"k": MANY_K, "effort": EFFORT}, tables=tuple(MANY_K))
