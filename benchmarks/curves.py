"""How does time grow with the records, with k and with the quasi-identifiers?

Time should be linear in the records; forming classes should be linear in k; quasi-identifiers should hardly matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, GeneratedTable, Options
from benchmarks.timing import ROUNDS, Timed, anonymization, best_alternating

RECORDS = 1_000_000
PARTS_OF_RECORDS = (0.25, 1, 4)
K = 10
MANY_K = (5, 10, 25, 100)
QUASI_IDENTIFIERS = (2, 4, 7)


def run(options: Options) -> Mapping[str, Table]:
    base = options.size(RECORDS)
    table = options.census(base)
    whole = f"Generator {GENERATOR}. From file to file, warm, best of {ROUNDS}."
    return {
        "records": _curve(
            "records",
            (
                (records, _time(options, options.census(records), k=K))
                for records in (int(base * part) for part in PARTS_OF_RECORDS)
            ),
            f"{whole} 7 quasi-identifiers, k = {K}.",
        ),
        "k": _curve(
            "k",
            ((k, _time(options, table, k=k)) for k in MANY_K),
            f"{whole} {base:,} records, 7 quasi-identifiers.",
        ),
        "quasi-identifiers": _curve(
            "quasi-identifiers",
            ((count, _time(options, table, k=K, quasi_identifiers=count)) for count in QUASI_IDENTIFIERS),
            f"{whole} {base:,} records, k = {K}; the other quasi-identifiers are passthrough columns.",
        ),
    }


def _time(options: Options, table: GeneratedTable, *, k: int, quasi_identifiers: int | None = None) -> Timed:
    policy = table.policy(k=k, quasi_identifiers=quasi_identifiers)
    return best_alternating(anonymization(table.path, policy, options.work / "curve.parquet"))[0]


def _curve(name: str, points: Iterable[tuple[int, Timed]], note: str) -> Table:
    """Return the points with their ratios to the first: of the varied size, the total time and the partition time."""
    measured = list(points)
    first_value, first = measured[0]
    rows: list[dict[str, Any]] = [
        {
            name: value,
            "to first": value / first_value,
            "seconds": run.seconds,
            "seconds to first": run.seconds / first.seconds,
            "partition s": run.phases["partition"],
            "partition to first": run.phases["partition"] / first.phases["partition"],
        }
        for value, run in measured
    ]
    return Table(f"Time against {name}", rows, [note], worst="seconds to first")


SECTION = Section(
    run,
    timed=True,
    parameters={
        "records": RECORDS,
        "parts of records": PARTS_OF_RECORDS,
        "k": MANY_K,
        "quasi-identifiers": QUASI_IDENTIFIERS,
        "rounds": ROUNDS,
    },
)
