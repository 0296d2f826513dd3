"""Kept columns that would undo a release, in a table that Spark has counted. ``linkable_columns`` has the rules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engines.spark.input_scan import ALONE, COLUMN, COUNT, GIVEN
from sfumato.engines.spark.session import Frame, in_our_words
from sfumato.engines.spark.spark_tables import one_array
from sfumato.evaluation.linkability.column_facts import MOST_IN_SAMPLE, ValueTotals
from sfumato.evaluation.linkability.identifiers import IdentifierRules
from sfumato.evaluation.linkability.linkable_columns import nearly_determined, nearly_unique


def linkable_by_spark(
    tally: Frame,
    others: Mapping[str, int],
    quasi: Mapping[str, int],
    most: Mapping[str, int],
    records: int,
    rules: IdentifierRules,
) -> dict[str, str]:
    """Return the linkable columns among ``others``, each with the reason in words.

    others, quasi: the numbers of columns, by name. The tally has the values of the former and their pairs with the
    latter. most: the number of records with the most frequent value of each quasi-identifier. rules: what makes a
    column an identifier.
    """
    if not others:
        return {}
    with in_our_words("look for columns that identify records"):
        totals, right = _counted(tally, list(others.values()), records)
        samples = _samples(tally, list(totals))
    reasons = {}
    for name, number in others.items():
        if number not in totals:
            continue  # no record has a value
        known, alone = totals[number].known, totals[number].alone
        if nearly_unique(alone, known):
            reasons[name] = f"{alone / known:.0%} of the records that have a value are alone with it"
            continue
        for attribute, attribute_number in quasi.items():
            if nearly_determined(right[number, attribute_number], most[attribute], records):
                reasons[name] = f"it nearly determines the quasi-identifier {attribute!r}"
                break
        else:
            identifier = rules.reason(name, samples[number], totals[number])
            if identifier is not None:
                reasons[name] = identifier
    return reasons


def _counted(
    tally: Frame, others: list[int], records: int
) -> tuple[dict[int, ValueTotals], dict[tuple[int, int], int]]:
    """Count the values of columns, and the records whose attribute is guessed right from them.

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
    single = tally.where((given == ALONE) & column.isin(others) & present).groupBy(COLUMN, GIVEN)
    paired = tally.where(given.isin(others)).groupBy(COLUMN, GIVEN, *(f"c{number}" for number in others))
    most = paired.agg(sql.max(count).alias(COUNT)).groupBy(COLUMN, GIVEN)
    nothing = sql.lit(0).cast("long")
    both = single.agg(
        sql.sum(count).alias("known"),
        sql.sum((count == 1).cast("long")).alias("alone"),
        sql.count("*").alias("distinct"),
    )
    rows = both.unionAll(most.agg(sql.sum(count), nothing, nothing)).collect()
    totals = {
        row[COLUMN]: ValueTotals(records, int(row["known"]), int(row["alone"]), int(row["distinct"]))
        for row in rows
        if row[GIVEN] == ALONE
    }
    return totals, {(row[GIVEN], row[COLUMN]): int(row["known"]) for row in rows if row[GIVEN] != ALONE}


def _samples(tally: Frame, numbers: list[int]) -> dict[int, pa.Array]:
    """Return some of the distinct values of each column."""
    from pyspark.sql import functions as sql

    if not numbers:
        return {}
    names = [f"c{number}" for number in numbers]
    of_column = (
        tally.where((sql.col(GIVEN) == ALONE) & (sql.col(COLUMN) == number) & sql.col(f"c{number}").isNotNull())
        .select(COLUMN, *names)
        .limit(MOST_IN_SAMPLE)
        for number in numbers
    )
    table = reduce(lambda some, more: some.unionAll(more), of_column).toArrow()
    return {
        number: one_array(table.filter(pc.field(COLUMN) == number).column(name))
        for number, name in zip(numbers, names, strict=True)
    }
