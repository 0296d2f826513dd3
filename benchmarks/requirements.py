"""What does each kind of requirement cost on real tables, what does a search gain, and how much is left to gain?

On Adult the section ``diversity`` compares more of them.

The bound uses the shares of frequency l-diversity, but of the other kinds at most how many different values a class
has. So it is shown for frequency l-diversity alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, Final

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import Options, SmallTable, method_in_words
from sfumato.methods import AUTO
from sfumato.policy import EffortName, Policy, merge_flags

TABLES = ("cmc", "census-income", "diabetes", "fars", "acs-census")
METHODS: tuple[tuple[str, EffortName], ...] = (
    ("hilbert", "fast"),
    (AUTO, "fast"),
    (AUTO, "normal"),
    (AUTO, "balanced"),
)
BOUNDED = tuple(f"frequency({{}}, l={l})" for l in (2, 3, 5))
REQUIREMENTS: Mapping[str, int] = {
    **dict.fromkeys((*BOUNDED, "distinct({}, l=3)", "entropy({}, l=2)"), 1),
    **dict.fromkeys(("recursive({}, c=2, l=3)", "t-closeness({}, t=0.4)"), 5),
}  # each with k
SECONDS: Final = 60  # of the bound


def run(options: Options) -> Mapping[str, Table]:
    tables = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        for name in options.some(TABLES):
            table = options.real(name)
            rows = [_row(table, asked, k) for asked, k in REQUIREMENTS.items()]
            note = f"The bound has {SECONDS} seconds. What the values of a table cannot meet is left out."
            tables[name] = Table(f"GCP on {table.name}", [row for row in rows if row is not None], [note])
    return tables


def _row(table: SmallTable, asked: str, k: int) -> dict[str, Any] | None:
    """Return what each method loses, and the bound, or None if the table cannot meet the requirement."""
    (sensitive, *_) = table.policy.sensitive
    policy = merge_flags(table.policy, k=k, require=[asked.format(sensitive)])
    try:
        losses = {method_in_words(*way): _loss(table, policy, *way) for way in METHODS}
    except sfumato.InfeasibleError:
        return None
    bound = sfumato.bound(table.path, policy, effort="best", seconds=SECONDS) if asked in BOUNDED else None
    return {
        "requirement": asked.format(sensitive),
        "k": k,
        **losses,
        # A bound is rounded down and a ratio up, so that what is shown is proven too.
        "bound": None if bound is None else math.floor(bound.gcp * 1e4) / 1e4,
        "at most times the best": None if bound is None else math.ceil(bound.ratio(min(losses.values())) * 1e3) / 1e3,
    }


def _loss(table: SmallTable, policy: Policy, method: str, effort: EffortName) -> float:
    return float(sfumato.anonymize(table.path, policy, method=method, effort=effort).losses.gcp)


SECTION = Section(
    run,
    timed=False,
    parameters={
        "requirements and k": REQUIREMENTS,
        "methods": METHODS,
        "seconds of the bound": SECONDS,
    },
    tables=TABLES,
)
