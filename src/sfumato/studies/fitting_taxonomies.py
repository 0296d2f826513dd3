"""Which taxonomies fit a column: the flags of ``sfumato taxonomy`` that would make one, with reasons."""

from __future__ import annotations

import math

from sfumato.evaluation.linkability.column_facts import ColumnFacts, TextSettings, collect_values, facts_of
from sfumato.evaluation.linkability.column_names import NameHints, hints_of
from sfumato.policy import Grouping, InputOptions
from sfumato.proposal.proposed_levels import round_number
from sfumato.proposal.roles import suggest
from sfumato.tables.coding.counted_values import CountedValues
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.ready import NAMES, ready_taxonomy

NUMBERS = "numbers"
SAME_LENGTH = 0.9  # of the values, so that they are taken for codes
SHORTEST = 3  # characters of such codes
LONGEST = 12
FEW = 12  # values that need no groups in order
FEW_NUMBERS = 20  # that need no intervals
PARTS = 20  # of the range of numbers, into which the narrowest intervals divide it
AGES = (5, 10, 20)
REASONS = {
    "intervals": "they are numbers",
    "calendar": "they are dates",
    "prefix": "they are codes that share their first characters",
}


def fitting_taxonomies(source: Source, counted: CountedValues, options: InputOptions) -> dict[str, str]:
    """Return flags with the reason why each fits, the best first."""
    if not counted.values:
        return {}
    fits = _ready(counted)
    rule = _proposed(source, counted.column, options)
    if rule is None and counted.kind == "categorical":
        rule = _prefix(counted)
    if rule is not None:
        ((key, steps),) = rule.model_dump(exclude_none=True).items()
        fits[f"--{key} {','.join(map(str, steps))}"] = REASONS[key]
    if len(counted.values) > FEW:
        fits["--groups 8,4,2"] = "groups of about equally many records, in the order of the values"
        if counted.kind == "categorical":
            fits["--frequent 10"] = "the most frequent values apart, all others together"
    return fits


def _ready(counted: CountedValues) -> dict[str, str]:
    """Return the ready-made taxonomies that have every value. Small numbers fit many, so the name must agree."""
    fits = {}
    for name in NAMES:
        ready = ready_taxonomy(name)
        if any(ready.levels_of(value) is None for value in counted.values):
            continue  # most columns end here, at their first value
        rows = ready.rows(counted.values)
        named = name.removesuffix("s").removesuffix("ie") in counted.column.casefold()
        if not rows.outside and (rows.reading != NUMBERS or named):
            fits[f"--ready {name}"] = f"they are {rows.reading}"
    return fits


def _proposed(source: Source, column: str, options: InputOptions) -> Grouping | None:
    """Return the calendar or the prefixes that ``sfumato policy`` would propose; for numbers, intervals."""
    text = source.text or source.kind == "excel"
    nulls = options.nulls if text else ()
    settings = TextSettings(options.decimal, nulls, options.date_format, thousands=options.thousands)
    facts = facts_of(collect_values(source, column, text=text), settings)
    hints = hints_of([column])[column]
    levels = suggest(facts, hints).levels
    if levels is None:
        return None
    if levels.column.type == "numeric":
        return _intervals(facts, hints)
    rule = levels.column.taxonomy
    return rule if isinstance(rule, Grouping) and rule.ready is None else None


def _intervals(facts: ColumnFacts, hints: NameHints) -> Grouping | None:
    """Return intervals of round widths, each twice as wide as the one before."""
    if facts.distinct <= FEW_NUMBERS or not math.isfinite(facts.span) or facts.span <= 0:
        return None
    if hints.meaning is not None and hints.meaning.kind == "age":
        return Grouping(intervals=AGES)
    narrowest = round_number(facts.span / PARTS)
    widths = [float(f"{narrowest * factor:.1g}") for factor in (1, 2, 4)]
    if facts.kind == "whole":
        widths = [width for width in widths if width > 1 and width.is_integer()]
    return (
        Grouping(intervals=tuple(int(width) if width.is_integer() else width for width in widths)) if widths else None
    )


def _prefix(counted: CountedValues) -> Grouping | None:
    lengths = [len(value) for value in counted.values]
    usual = max(set(lengths), key=lengths.count)
    codes = sum(len(value) == usual and any(map(str.isdigit, value)) for value in counted.values)
    if not SHORTEST <= usual <= LONGEST or codes < SAME_LENGTH * len(lengths) or len(lengths) <= FEW:
        return None
    return Grouping(prefix=tuple(range(max(usual // 2, 1), usual)))
