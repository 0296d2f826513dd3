"""Kept columns that would undo a release, in a table that Spark has counted. ``linkable_columns`` has the rules."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.engines.spark.tally import TableTally
from sfumato.evaluation.linkability.column_facts import ValueTotals
from sfumato.evaluation.linkability.identifiers import IdentifierRules
from sfumato.evaluation.linkability.linkable_columns import nearly_determined, nearly_unique


def linkable_by_spark(
    tally: TableTally,
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
    reasons = {}
    for name, number in others.items():
        known, alone = tally.known[number], tally.alone[number]
        if not known:
            continue  # no record has a value
        if nearly_unique(alone, known):
            reasons[name] = f"{alone / known:.0%} of the records that have a value are alone with it"
            continue
        for attribute, attribute_number in quasi.items():
            if nearly_determined(tally.right[attribute_number, number], most[attribute], records):
                reasons[name] = f"it nearly determines the quasi-identifier {attribute!r}"
                break
        else:
            totals = ValueTotals(records, known, alone, tally.distinct[number])
            identifier = rules.reason(name, tally.samples[number], totals)
            if identifier is not None:
                reasons[name] = identifier
    return reasons
