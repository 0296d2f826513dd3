"""Kept columns that would undo a release, of a table that Spark has counted: the rules are those of ``linkage``."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.engines.spark.intake import ALONE, COLUMN, COUNT, GIVEN
from sfumato.engines.spark.session import Frame, in_our_words
from sfumato.evaluation.linkage import nearly_determined, nearly_unique


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
        known = value.isNotNull()
        if isinstance(tally.schema[f"c{place}"].dataType, DoubleType | FloatType):
            known &= ~sql.isnan(value)
        there |= (column == place) & known
    single = tally.where((given == ALONE) & column.isin(others) & there)
    lone = sql.sum((count == 1).cast("long"))
    rows = single.groupBy(COLUMN).agg(lone.alias("alone"), sql.sum(count).alias("known")).collect()
    counted = {row[COLUMN]: (int(row["alone"]), int(row["known"])) for row in rows}
    paired = tally.where(given.isin(others))
    most = paired.groupBy(COLUMN, GIVEN, *(f"c{place}" for place in others)).agg(sql.max(count).alias(COUNT))
    guessed = most.groupBy(COLUMN, GIVEN).agg(sql.sum(count).alias(COUNT)).collect()
    return (
        {place: alone for place, (alone, _) in counted.items()},
        {place: known for place, (_, known) in counted.items()},
        {(row[GIVEN], row[COLUMN]): int(row[COUNT]) for row in guessed},
    )
