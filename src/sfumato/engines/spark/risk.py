"""The risk of a Spark table. Spark jobs count the classes, and only the counts reach the driver."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from math import comb
from typing import Any

from sfumato.engines.spark.session import Frame, in_our_words
from sfumato.errors import UsageError
from sfumato.evaluation.risk.exposure import THRESHOLDS, Exposure, most_dangerous_first
from sfumato.evaluation.risk.reidentification import Attack, Population, Risk

MOST_SETS = 200
TOGETHER = 8  # sets of columns that are counted in one job


def risk_by_spark(
    frame: Frame, key: Sequence[str], population: Population, *, columns: Sequence[str], largest_set: int
) -> Risk:
    """Measure the risk as ``measure_risk`` does for other tables. The population may be a size or a fraction."""
    if population.source is not None:
        raise UsageError("a Spark table cannot be compared with a population table. Give the size of the population.")
    names = {name: f"c{number}" for number, name in enumerate(frame.columns)}
    plain = frame.toDF(*names.values())
    sets: list[tuple[str, ...]] = []
    left_out = []
    for size in range(1, min(largest_set, len(columns)) + 1):
        if len(sets) + comb(len(columns), size) > MOST_SETS:
            left_out.append(f"no set of {size} columns was counted: each takes Spark a job, and there are too many")
            break
        sets += combinations(columns, size)
    all_sets: list[Sequence[str]] = [key, *sets]
    counts: list[dict[str, Any]] = []
    for first in range(0, len(all_sets), TOGETHER):
        together = all_sets[first : first + TOGETHER]
        counts += _counted(plain, [[names[name] for name in column_set] for column_set in together])
    whole, rest = counts[0], counts[1:]
    total, classes, smallest = whole["records"], whole["classes"], whole["smallest"]
    fraction = population.drawn(total)
    prosecutor = Attack(1 / smallest, classes / total)
    journalist = None if fraction is None else Attack(fraction / smallest, fraction * classes / total)
    exposures = [_exposure(column_set, counted) for column_set, counted in zip(sets, rest, strict=True)]
    return Risk(
        whole=_exposure(columns, whole),
        smallest_class=smallest,
        counted="records",
        prosecutor=prosecutor,
        journalist=journalist,
        marketer=(journalist or prosecutor).mean,
        sets=most_dangerous_first(exposures, columns),
        left_out=tuple(left_out),
        remarks=(),
        sampling_fraction=fraction,
    )


def _exposure(columns: Sequence[str], counts: dict[str, Any]) -> Exposure:
    below = tuple(counts[f"below_{bound}"] for bound in THRESHOLDS)
    return Exposure(tuple(columns), counts["records"], counts["classes"], counts["unique"], below)


def _counted(plain: Frame, sets: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Count the records, the classes, and the records in small classes, for each set of columns."""
    from pyspark.sql import functions as sql

    count = sql.col("count")
    smaller = {"unique": 2, **{f"below_{bound}": bound for bound in THRESHOLDS}}
    parts = []
    for number, columns in enumerate(sets):
        parts.append(
            plain.groupBy(*columns)
            .count()
            .agg(
                sql.lit(number).alias("set"),
                sql.sum(count).alias("records"),
                sql.count(count).alias("classes"),
                sql.min(count).alias("smallest"),
                *(sql.sum(sql.when(count < bound, count).otherwise(0)).alias(name) for name, bound in smaller.items()),
            )
        )
    with in_our_words("count the classes"):
        rows = reduce(lambda first, second: first.unionAll(second), parts).collect()
    counts = sorted((row.asDict() for row in rows), key=lambda row: int(row["set"]))
    if not counts[0]["records"]:
        raise UsageError("the Spark table has no records. Give a table with at least one.")
    return [{name: int(value) for name, value in row.items()} for row in counts]
