"""Kept columns that would undo a release, of a table that Spark has counted: the rules are those of ``linkage``."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.engines.spark.input_scan import ALONE, COLUMN, COUNT, GIVEN
from sfumato.engines.spark.session import Frame, in_our_words
from sfumato.evaluation.linkability.linkable_columns import nearly_determined, nearly_unique


def linkable_by_spark(
    tally: Frame, others: Mapping[str, int], quasi: Mapping[str, int], most: Mapping[str, int], records: int
) -> dict[str, str]:
    """The columns that are linkable, each with the reason in words.

    others, quasi: the places of columns by their names; the tally has the values of the former and their pairs with the
    latter. most: how many records have the most frequent value of each quasi-identifier.
    """
    if not others:
        return {}
    with in_our_words("look for columns that tell who a record is"):
        alone, known, right = _counted(tally, list(others.values()))
    found = {}
    for name, place in others.items():
        if nearly_unique(alone.get(place, 0), known.get(place, 0)):
            found[name] = f"{alone[place] / known[place]:.0%} of the records that have a value are alone with it"
            continue
        for attribute, its in quasi.items():
            if nearly_determined(right[place, its], most[attribute], records):
                found[name] = f"it nearly determines the quasi-identifier {attribute!r}"
                break
    return found


def _counted(tally: Frame, others: list[int]) -> tuple[dict[int, int], dict[int, int], dict[tuple[int, int], int]]:
    """How many records are alone with their value, how many have one, and how many are guessed right in an attribute.

    Guessed by who knows the column and, for every value of it, the most frequent value of the attribute.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import DoubleType, FloatType

    column, given, count = sql.col(COLUMN), sql.col(GIVEN), sql.col(COUNT)
    there = sql.lit(False)
    for place in others:
        value = sql.col(f"c{place}")
        has = value.isNotNull()
        if isinstance(tally.schema[f"c{place}"].dataType, DoubleType | FloatType):
            has &= ~sql.isnan(value)
        there |= (column == place) & has
    lone, known = sql.sum((count == 1).cast("long")), sql.sum(count)
    single = tally.where((given == ALONE) & column.isin(others) & there).groupBy(COLUMN, GIVEN)
    paired = tally.where(given.isin(others)).groupBy(COLUMN, GIVEN, *(f"c{place}" for place in others))
    most = paired.agg(sql.max(count).alias(COUNT)).groupBy(COLUMN, GIVEN)
    both = single.agg(lone.alias("alone"), known.alias("known"))
    rows = both.unionAll(most.agg(sql.lit(0).cast("long"), sql.sum(count))).collect()
    return (
        {row[COLUMN]: int(row["alone"]) for row in rows if row[GIVEN] == ALONE},
        {row[COLUMN]: int(row["known"]) for row in rows if row[GIVEN] == ALONE},
        {(row[GIVEN], row[COLUMN]): int(row["known"]) for row in rows if row[GIVEN] != ALONE},
    )
