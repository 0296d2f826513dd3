"""Which taxonomies fit a column: the flags of ``sfumato taxonomy`` that would make one, with reasons."""

from __future__ import annotations

from sfumato.evaluation.linkability.column_facts import TextSettings, collect_values, facts_of
from sfumato.evaluation.linkability.column_names import hints_of
from sfumato.policy import Grouping, InputOptions
from sfumato.proposal.roles import suggest
from sfumato.tables.coding.counted_values import CountedValues
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.ready import NAMES, ready_taxonomy

NUMBERS = "numbers"
SAME_LENGTH = 0.9  # of the values, so that they are taken for codes
SHORTEST = 3  # characters of such codes
LONGEST = 12
FEW = 12  # values that need no groups in order
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
        rows = ready_taxonomy(name).rows(counted.values)
        named = name.removesuffix("s").removesuffix("ie") in counted.column.casefold()
        if not rows.outside and (rows.reading != NUMBERS or named):
            fits[f"--ready {name}"] = f"they are {rows.reading}"
    return fits


def _proposed(source: Source, column: str, options: InputOptions) -> Grouping | None:
    """Return the rule that ``sfumato policy`` would propose."""
    text = source.text or source.kind == "excel"
    settings = TextSettings(options.decimal, options.nulls if text else (), options.date_format)
    facts = facts_of(collect_values(source, column, text=text), settings)
    suggestion = suggest(facts, hints_of([column])[column])
    taxonomy = None if suggestion.column is None else suggestion.column.taxonomy
    return taxonomy if isinstance(taxonomy, Grouping) else None


def _prefix(counted: CountedValues) -> Grouping | None:
    lengths = [len(value) for value in counted.values]
    usual = max(set(lengths), key=lengths.count)
    codes = sum(len(value) == usual and any(map(str.isdigit, value)) for value in counted.values)
    if not SHORTEST <= usual <= LONGEST or codes < SAME_LENGTH * len(lengths) or len(lengths) <= FEW:
        return None
    return Grouping(prefix=tuple(range(max(usual // 2, 1), usual)))
