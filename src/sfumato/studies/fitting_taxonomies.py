"""Which taxonomies fit a column: the flags of ``sfumato taxonomy`` that would make one, with reasons."""

from __future__ import annotations

import math

from sfumato.evaluation.linkability.column_facts import TextSettings, collect_values, facts_of
from sfumato.evaluation.linkability.column_names import hints_of
from sfumato.policy import Grouping, InputOptions
from sfumato.proposal.roles import suggest
from sfumato.tables.coding.counted_values import CountedValues
from sfumato.tables.coding.domains import NumericDomain
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.ready import NAMES, ready_taxonomy

NUMBERS = "numbers"
SAME_LENGTH = 0.9  # of the values, so that they are taken for codes
SHORTEST = 3  # characters of such codes
LONGEST = 12
FEW = 12  # values that need no groups in order
INTERVALS = 20  # of the narrowest width, about, in the range of a column of numbers
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
    if rule is None:
        rule = _prefix(counted) if counted.kind == "categorical" else _intervals(counted)
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
        rows = ready_taxonomy(name).rows(counted.values)
        named = name.removesuffix("s").removesuffix("ie") in counted.column.casefold()
        if not rows.outside and (rows.reading != NUMBERS or named):
            fits[f"--ready {name}"] = f"they are {rows.reading}"
    return fits


def _proposed(source: Source, column: str, options: InputOptions) -> Grouping | None:
    """Return the rule that ``sfumato policy`` would propose, unless that is a ready-made taxonomy."""
    text = source.text or source.kind == "excel"
    settings = TextSettings(options.decimal, options.nulls if text else (), options.date_format)
    facts = facts_of(collect_values(source, column, text=text), settings)
    levels = suggest(facts, hints_of([column])[column]).levels
    taxonomy = None if levels is None else levels.column.taxonomy
    return taxonomy if isinstance(taxonomy, Grouping) and taxonomy.ready is None else None


def _intervals(counted: CountedValues) -> Grouping | None:
    """Return intervals of a round width, of which the numbers fill about twenty, and of twice and four times that."""
    domain = counted.domain
    if not isinstance(domain, NumericDomain) or domain.kind != "numeric" or len(counted.values) <= FEW:
        return None
    numbers = domain.numbers()
    part = float(numbers[-1] - numbers[0]) / INTERVALS
    exponent = math.floor(math.log10(part))
    width = next(float(f"{digit}e{exponent}") for digit in (1, 2, 5, 10) if digit * 10.0**exponent >= part)
    if domain.is_whole:
        width = max(width, 1)
    return Grouping(intervals=tuple(int(each) if each.is_integer() else each for each in (width, 2 * width, 4 * width)))


def _prefix(counted: CountedValues) -> Grouping | None:
    lengths = [len(value) for value in counted.values]
    usual = max(set(lengths), key=lengths.count)
    codes = sum(len(value) == usual and any(map(str.isdigit, value)) for value in counted.values)
    if not SHORTEST <= usual <= LONGEST or codes < SAME_LENGTH * len(lengths) or len(lengths) <= FEW:
        return None
    return Grouping(prefix=tuple(range(max(usual // 2, 1), usual)))
