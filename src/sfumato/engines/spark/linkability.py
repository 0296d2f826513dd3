"""Kept columns that would undo a release, in a table that Spark has counted. ``linkable_columns`` has the rules."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.engines.spark.input_scan import ALONE, COLUMN, COUNT, GIVEN
from sfumato.engines.spark.session import Frame, in_our_words
from sfumato.evaluation.linkability.linkable_columns import nearly_determined, nearly_unique


def linkable_by_spark(
    tally: Frame, others: Mapping[str, int], quasi: Mapping[str, int], most: Mapping[str, int], records: int
) -> dict[str, str]:
    """Return the linkable columns among ``others``, each with the reason in words.

    others, quasi: the numbers of columns, by name. The tally has the values of the former and their pairs with the
    latter. most: the number of records with the most frequent value of each quasi-identifier.
    """
    if not others:
        return {}
    with in_our_words("look for columns that identify records"):
        alone, known, right = _counted(tally, list(others.values()))
    reasons = {}
    for name, number in others.items():
        if nearly_unique(alone.get(number, 0), known.get(number, 0)):
            reasons[name] = f"{alone[number] / known[number]:.0%} of the records that have a value are alone with it"
            continue
        for attribute, attribute_number in quasi.items():
            if nearly_determined(right[number, attribute_number], most[attribute], records):
                reasons[name] = f"it nearly determines the quasi-identifier {attribute!r}"
                break
    return reasons


def _counted(tally: Frame, others: list[int]) -> tuple[dict[int, int], dict[int, int], dict[tuple[int, int], int]]:
    """Count records that are alone with their value, that have a value, and whose attribute is guessed right.

    The guess is the most frequent value of the attribute among the records with the same value of the column.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import DoubleType, FloatType

    column, given, count = sql.col(COLUMN), sql.col(GIVEN), sql.col(COUNT)
    present = sql.lit(False)
    for number in others:
        value = sql.col(f"c{number}")
        has_value = value.isNotNull()
        if isinstance(tally.schema[f"c{number}"].dataType, DoubleType | FloatType):
            has_value &= ~sql.isnan(value)
        present |= (column == number) & has_value
    lone, known = sql.sum((count == 1).cast("long")), sql.sum(count)
    single = tally.where((given == ALONE) & column.isin(others) & present).groupBy(COLUMN, GIVEN)
    paired = tally.where(given.isin(others)).groupBy(COLUMN, GIVEN, *(f"c{number}" for number in others))
    most = paired.agg(sql.max(count).alias(COUNT)).groupBy(COLUMN, GIVEN)
    both = single.agg(lone.alias("alone"), known.alias("known"))
    rows = both.unionAll(most.agg(sql.lit(0).cast("long"), sql.sum(count))).collect()
    return (
        {row[COLUMN]: int(row["alone"]) for row in rows if row[GIVEN] == ALONE},
        {row[COLUMN]: int(row["known"]) for row in rows if row[GIVEN] == ALONE},
        {(row[GIVEN], row[COLUMN]): int(row["known"]) for row in rows if row[GIVEN] != ALONE},
    )
