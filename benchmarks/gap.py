"""How far are the best classes at most from the least possible loss, with five minutes for each side?

A section for each table, since each takes half an hour or more. Both sides end by the clock: a busy machine would make
the ratio larger, never smaller, so one run is enough. There are no seconds in it but the limit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import Options
from sfumato.policy import EffortName

TABLES = ("cmc", "adult", "census-income", "diabetes", "fars", "acs-census")
MANY_K = (5, 10, 25, 50)
SECONDS: Final = 300
EFFORTS: tuple[EffortName, ...] = ("best",)
EFFORTS_OF_SMALL: tuple[EffortName, ...] = ("best", "exact")  # the solver reaches all parts of a small table
SMALL = "cmc"


def run(name: str, options: Options) -> Mapping[str, Table]:
    rows: list[dict[str, Any]] = []
    seconds = 1 if options.trial else SECONDS
    table = options.real(name)
    for k in options.some(MANY_K):
        bound = sfumato.bound(table.path, table.policy, k=k, effort="best", seconds=seconds)
        for effort in _efforts(name):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sfumato.SfumatoWarning)
                release = sfumato.anonymize(table.path, table.policy, k=k, effort=effort, seconds=seconds)
            gcp, most = float(release.losses.gcp), bound.relaxation
            rows.append(
                {
                    "table": table.name,
                    "k": k,
                    "effort": effort,
                    "loss": gcp,
                    # A bound is rounded down and a ratio up, so that what is shown is proven too.
                    "bound": math.floor(bound.gcp * 1e4) / 1e4,
                    "prices prove at most": None if most is None else math.ceil(most * 1e4) / 1e4,
                    "at most times the best": math.ceil(bound.ratio(gcp) * 1e3) / 1e3,
                }
            )
    notes = [
        f"All quasi-identifiers with their taxonomies; --seconds {SECONDS} on both sides. Where prices prove "
        "no more than the bound, or little more, it cannot be raised by this kind of proof, however long the search; "
        "on small tables it then goes on with triples, and may be above."
    ]
    return {"ratios": Table("GCP and its lower bound", rows, notes)}


def _efforts(name: str) -> tuple[EffortName, ...]:
    return EFFORTS_OF_SMALL if name == SMALL else EFFORTS


SECTIONS = {
    f"gap-{name}": Section(
        partial(run, name),
        timed=False,
        parameters={"k": MANY_K, "seconds": SECONDS, "efforts": _efforts(name)},
        tables=(name,),
    )
    for name in TABLES
}
