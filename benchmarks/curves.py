"""How does time grow with the records, with k and with the quasi-identifiers?

Time should be linear in the records; forming classes should be linear in k; quasi-identifiers should hardly matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.markdown import show
from benchmarks.tables import GENERATOR, GeneratedTable, Options
from benchmarks.timing import ROUNDS, Timed, anonymization, best_alternating

K = 10
MANY_K = (5, 10, 25, 50, 100)
PARTS_OF_RECORDS = (0.125, 0.25, 0.5, 1, 2, 4)
FEWEST_QUASI_IDENTIFIERS = 2


def run(options: Options) -> dict[str, list[dict[str, Any]]]:
    base = options.records[0]
    table = options.census(base)
    attributes = len(table.policy(k=K).quasi_identifiers)
    whole = f"Generator {GENERATOR}. From file to file, warm, best of {ROUNDS}."
    curves = {
        "records": _curve(
            "records",
            (
                (records, _time(options, options.census(records), k=K))
                for records in (int(base * part) for part in PARTS_OF_RECORDS)
            ),
        ),
        "k": _curve("k", ((k, _time(options, table, k=k)) for k in MANY_K)),
        "quasi-identifiers": _curve(
            "quasi-identifiers",
            (
                (count, _time(options, table, k=K, quasi_identifiers=count))
                for count in range(FEWEST_QUASI_IDENTIFIERS, attributes + 1)
            ),
        ),
    }
    curves["quasi-identifiers of equal files"] = _curve(
        "quasi-identifiers",
        (
            (count, _time(options, table, k=K, quasi_identifiers=count, pass_through=True))
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
        [f"{whole} {base:,} records, k = {K}; the other quasi-identifiers are passthrough columns."],
    )
    return curves


def _time(
    options: Options, table: GeneratedTable, *, k: int, quasi_identifiers: int | None = None, pass_through: bool = False
) -> Timed:
    policy = table.policy(k=k, quasi_identifiers=quasi_identifiers, pass_through=pass_through)
    return best_alternating(anonymization(table.path, policy, options.work / "curve.parquet"))[0]


def _curve(name: str, points: Iterable[tuple[int, Timed]]) -> list[dict[str, Any]]:
    """Return the points with their ratios to the first: of the varied size, the total time and the partition time."""
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
