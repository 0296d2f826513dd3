"""How far are the best classes at most from the least possible loss, on every table, with five minutes for each side?

Both sides end by the clock, so the machine must be quiet, although the section runs once: it takes six hours on two
cores, 15 minutes for each table and k.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from typing import Any, Final, Literal

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import Options

TABLES = ("cmc", "adult", "census-income", "diabetes", "fars", "acs-census")
MANY_K = (5, 10, 25, 50)
SECONDS: Final = 300
EFFORTS: Final[tuple[Literal["best"], Literal["exact"]]] = ("best", "exact")


def run(options: Options) -> Mapping[str, Table]:
    rows: list[dict[str, Any]] = []
    seconds = 1 if options.trial else SECONDS
    for name in ("cmc",) if options.trial else TABLES:
        table = options.real(name)
        for k in options.some(MANY_K):
            start = time.perf_counter()
            bound = sfumato.bound(table.path, table.policy, k=k, effort="best", seconds=seconds)
            bound_seconds = time.perf_counter() - start
            for effort in EFFORTS:
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", sfumato.SfumatoWarning)
                    release = sfumato.anonymize(table.path, table.policy, k=k, effort=effort, seconds=seconds)
                gcp = float(release.losses.gcp)
                rows.append(
                    {
                        "table": table.name,
                        "k": k,
                        "effort": effort,
                        "loss": gcp,
                        # A bound is rounded down and a ratio up, so that what is shown is proven too.
                        "bound": math.floor(bound.gcp * 1e4) / 1e4,
                        "at most times the best": math.ceil(bound.ratio(gcp) * 1e3) / 1e3,
                        "seconds": round(time.perf_counter() - start),
                        "seconds of the bound": round(bound_seconds),
                    }
                )
    notes = [f"All quasi-identifiers with their taxonomies; --seconds {SECONDS} on both sides."]
    return {"ratios": Table("GCP and its lower bound", rows, notes)}


SECTION = Section(run, timed=False, parameters={"k": MANY_K, "seconds": SECONDS, "efforts": EFFORTS}, tables=TABLES)
