"""How does time grow with the records, with k and with the quasi-identifiers?

The first should be linear, the second linear in the part that forms classes, the third nearly flat.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.markdown import show
from benchmarks.setting import GENERATOR, GeneratedTable, Setting
from benchmarks.timing import ROUNDS, Timed, anonymization, best_alternating

K = 10
MANY_K = (5, 10, 25, 50, 100)
PARTS_OF_RECORDS = (0.125, 0.25, 0.5, 1, 2, 4)
FEWEST_QUASI_IDENTIFIERS = 2


def run(setting: Setting) -> dict[str, list[dict[str, Any]]]:
    base = setting.records[0]
    table = setting.census(base)
    attributes = len(table.policy(k=K).quasi_identifiers)
    whole = f"Generator {GENERATOR}. From file to file, warm, best of {ROUNDS}."
    curves = {
        "records": _curve(
            "records",
            (
                (records, _time(setting, setting.census(records), k=K))
                for records in (int(base * part) for part in PARTS_OF_RECORDS)
            ),
        ),
        "k": _curve("k", ((k, _time(setting, table, k=k)) for k in MANY_K)),
        "quasi-identifiers": _curve(
            "quasi-identifiers",
            (
                (count, _time(setting, table, k=K, quasi_identifiers=count))
                for count in range(FEWEST_QUASI_IDENTIFIERS, attributes + 1)
            ),
        ),
    }
    curves["quasi-identifiers of equal files"] = _curve(
        "quasi-identifiers",
        (
            (count, _time(setting, table, k=K, quasi_identifiers=count, ride_along=True))
            for count in range(FEWEST_QUASI_IDENTIFIERS, attributes + 1)
        ),
    )
    show("Time against records", curves["records"], [f"{whole} {attributes} quasi-identifiers, k = {K}."])
    show("Time against k", curves["k"], [f"{whole} {base:,} records, {attributes} quasi-identifiers."])
    show(
        "Time against quasi-identifiers",
        curves["quasi-identifiers"],
        [f"{whole} {base:,} records, k = {K}; the other quasi-identifiers are neither read nor written."],
    )
    show(
        "Time against quasi-identifiers, the same file",
        curves["quasi-identifiers of equal files"],
        [f"{whole} {base:,} records, k = {K}; the other quasi-identifiers ride along as they are."],
    )
    return curves


def _time(
    setting: Setting, table: GeneratedTable, *, k: int, quasi_identifiers: int | None = None, ride_along: bool = False
) -> Timed:
    policy = table.policy(k=k, quasi_identifiers=quasi_identifiers, ride_along=ride_along)
    return best_alternating(anonymization(table.path, policy, setting.work / "curve.parquet"))[0]


def _curve(name: str, points: Iterable[tuple[int, Timed]]) -> list[dict[str, Any]]:
    """Each point beside its ratio to the first: of what was varied, of the whole time and of forming classes."""
    measured = list(points)
    first_value, first = measured[0]
    return [
        {
            name: value,
            f"{name} to first": value / first_value,
            "seconds": run.seconds,
            "seconds to first": run.seconds / first.seconds,
            "partition s": run.phases["partition"],
            "partition to first": run.phases["partition"] / first.phases["partition"],
            "CPU s": run.cpu,
        }
        for value, run in measured
    ]
