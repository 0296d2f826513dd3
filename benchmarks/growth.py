"""Does the cost grow as the work does: with records, k, columns, distinct values and l?

The slope of a row is the exponent by which time has grown since the row before: 1 if twice the work takes twice the
time, 0 if it takes no longer. Time should be linear in the records and in the columns; forming classes should be linear
in k. Distinct values of a kept column cost their sort, and l costs hardly more than k. The section ``disk-long`` has
the curve of records beyond memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, GeneratedTable, Options
from benchmarks.timing import Timed, anonymization, best_alternating
from sfumato import Policy
from sfumato.policy import merge_flags

RECORDS = 1_000_000
MANY_RECORDS = (100_000, 1_000_000, 10_000_000)
K = 10
MANY_K = (5, 10, 100, 1_000)
WIDE_RECORDS = 100_000
QUASI_IDENTIFIERS = (5, 10, 25, 100)
KEPT = (10, 100, 300)
DISTINCT_RECORDS = 10_000_000
DISTINCT = (1_000, 100_000, 10_000_000)
MANY_L = (2, 4, 8)
SENSITIVE = "occupation"
FEW_VALUES = 20  # of a column of the wide tables
SEED = 0
ROUNDS = 2  # of every point: they are many, and slopes need no better


def run(options: Options) -> Mapping[str, Table]:
    base = options.size(RECORDS)
    table = options.census(base)
    census = f"Generator {GENERATOR}, 7 quasi-identifiers"
    wide = options.size(WIDE_RECORDS)
    long = options.size(DISTINCT_RECORDS)
    uniform = f"columns of {FEW_VALUES} values each, drawn uniformly, k = {K}"
    sizes = dict.fromkeys(options.sizes(*MANY_RECORDS))  # in a trial, the smallest are the same
    return {
        "records": _curve(
            "records", ((records, _census(options, options.census(records), k=K)) for records in sizes), f"{census}."
        ),
        "k": _curve(
            "k", ((k, _census(options, table, k=k)) for k in options.some(MANY_K)), f"{census}, {base:,} records."
        ),
        "l": _curve(
            "l",
            (
                (l, _census(options, table, k=K, require=[f"frequency({SENSITIVE}, l={l})"]))
                for l in options.some(MANY_L)
            ),
            f"{census}, {base:,} records, k = {K}, frequency l-diversity.",
        ),
        "quasi-identifiers": _curve(
            "quasi-identifiers",
            ((count, _wide(options, wide, quasi_identifiers=count)) for count in options.some(QUASI_IDENTIFIERS)),
            f"{wide:,} records, {uniform}.",
        ),
        "kept columns": _curve(
            "kept columns",
            ((count, _wide(options, wide, kept=count)) for count in options.some(KEPT)),
            f"{wide:,} records, 5 quasi-identifiers, {uniform}.",
        ),
        "distinct values": _curve(
            "distinct values",
            ((count, _wide(options, long, distinct=count)) for count in _within(options.some(DISTINCT), long)),
            f"{long:,} records, 5 quasi-identifiers, one kept column of text, {uniform}.",
        ),
    }


def _within(counts: Iterable[int], records: int) -> list[int]:
    """Return the numbers of values that so many records can have."""
    return sorted({min(count, records) for count in counts})


def _census(options: Options, table: GeneratedTable, *, k: int, **flags: Any) -> Timed:
    return _timed(options, table.path, merge_flags(table.policy(k=k), **flags))


def _wide(
    options: Options, records: int, *, quasi_identifiers: int = 5, kept: int = 0, distinct: int | None = None
) -> Timed:
    """Time a table of uniform columns. distinct: the number of texts in one further column."""
    names = [f"q{number}" for number in range(quasi_identifiers)]
    others = [f"kept{number}" for number in range(kept)]
    random = np.random.default_rng(SEED)
    columns: dict[str, pa.Array] = {
        name: pa.array(random.integers(0, FEW_VALUES, records, dtype=np.int32)) for name in [*names, *others]
    }
    if distinct is not None:
        texts = pa.array(random.permutation(np.arange(records) % distinct)).cast(pa.string())
        columns["text"] = texts
        others.append("text")
    path = options.work / "growth.parquet"
    pq.write_table(pa.table(columns), path)
    del columns
    policy = merge_flags(quasi_identifiers=names, other="keep", accept_linkable=others, k=K)
    return _timed(options, path, policy)


def _timed(options: Options, path: Path, policy: Policy) -> Timed:
    return best_alternating(anonymization(path, policy, options.work / "growth-release.parquet"), rounds=ROUNDS)[0]


def _curve(name: str, points: Iterable[tuple[int, Timed]], note: str) -> Table:
    """Return the points with the slopes of the whole time, the CPU time and the time of forming classes."""
    rows: list[dict[str, Any]] = []
    previous: tuple[int, Timed] | None = None
    for value, timed in points:
        row = {name: value, "seconds": timed.seconds, "CPU s": timed.cpu, "partition s": timed.phases["partition"]}
        if previous is None:
            slopes: list[float | None] = [None, None, None]
        else:
            before = previous[1]
            ratios = (
                timed.seconds / before.seconds,
                timed.cpu / before.cpu,
                timed.phases["partition"] / before.phases["partition"],
            )
            slopes = [math.log(ratio) / math.log(value / previous[0]) for ratio in ratios]
        rows.append(row | dict(zip(("slope", "CPU slope", "partition slope"), slopes, strict=True)))
        previous = value, timed
    return Table(f"Time against {name}", rows, [f"{note} From file to file, warm, best of {ROUNDS}."], worst="seconds")


SECTION = Section(
    run,
    timed=True,
    parameters={
        "records": MANY_RECORDS,
        "k": MANY_K,
        "l": MANY_L,
        "quasi-identifiers": QUASI_IDENTIFIERS,
        "kept columns": KEPT,
        "distinct values": DISTINCT,
        "rounds": ROUNDS,
    },
)
