"""Kept columns that would undo a release, found by Spark jobs: the rules are those of ``linkage``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from sfumato.engines.spark.session import Frame, in_our_words
from sfumato.evaluation.linkage import nearly_determined, nearly_unique


def linkable_by_spark(
    frame: Frame, others: Mapping[str, str], quasi: Mapping[str, str], most: Mapping[str, int], records: int
) -> dict[str, str]:
    """The columns that are linkable, each with the reason in words.

    others, quasi: the columns of the frame by the names that users know. most: how many records have the most frequent
    value of each quasi-identifier.
    """
    found = {}
    for name, column in others.items():
        with in_our_words(f"look at the column {name!r}"):
            alone, known, right = _counted(frame, column, list(quasi.values()))
        if nearly_unique(alone, known):
            found[name] = f"{alone / known:.0%} of the records that have a value are alone with it"
            continue
        for attribute, place in quasi.items():
            if nearly_determined(right[place], most[attribute], records):
                found[name] = f"it nearly determines the quasi-identifier {attribute!r}"
                break
    return found


def _counted(frame: Frame, column: str, attributes: Sequence[str]) -> tuple[int, int, dict[str, int]]:
    """How many records are alone with their value, how many have one, and how many are guessed right in each attribute.

    Guessed by who knows the column and, for every value of it, the most frequent value of the attribute.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import DoubleType, FloatType

    value, count = sql.col(column), sql.col("count")
    there = value.isNotNull()
    if isinstance(frame.schema[column].dataType, DoubleType | FloatType):
        there &= ~sql.isnan(value)
    parts = [
        frame.where(there)
        .groupBy(column)
        .count()
        .agg(
            sql.lit("").alias("attribute"),
            sql.sum((count == 1).cast("long")).alias("alone"),
            sql.sum("count").alias("right"),
        )
    ]
    for attribute in attributes:
        most = frame.groupBy(column, attribute).count().groupBy(column).agg(sql.max("count").alias("count"))
        one = most.agg(sql.lit(attribute).alias("attribute"), sql.lit(0).cast("long").alias("alone"), sql.sum("count"))
        parts.append(one)
    rows = reduce(lambda one, other: one.unionAll(other), parts).collect()
    right = {row["attribute"]: int(row["right"] or 0) for row in rows}
    alone = next(int(row["alone"] or 0) for row in rows if not row["attribute"])
    return alone, right[""], right
