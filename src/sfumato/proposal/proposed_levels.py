"""Propose the levels on which a quasi-identifier is shown: its type, taxonomy and limits, each with its reason.

A taxonomy is proposed where it needs no file and loses less than none, or where privacy needs it. Numbers have none:
their ranges are then as narrow as a class allows. The finest level is limited for dates, and for postal codes that few
records share. The coarsest level is never limited, since a group of few records would then make the policy impossible;
a reason may mention it.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Any

from sfumato.evaluation.linkability.column_facts import ColumnFacts
from sfumato.evaluation.linkability.column_names import words_of
from sfumato.policy import ColumnSettings, Grouping
from sfumato.policy.column_settings import CalendarUnit, ReadyName
from sfumato.taxonomies.ready import ready_taxonomy

NEARLY_UNIQUE = 0.2  # of the records with a value have one that no other record has
FEW_VALUES = 20  # so few different values need neither groups nor rounding
ROUNDED_PARTS = 100  # the range of a number has about as many multiples of the number to which ends are rounded
CODES_IN_A_GROUP = 2  # different postal codes, on average, in the smallest groups that are shown
TOP_AGE = 90
MOST_OUTSIDE = 0.3  # of the values, where a ready-made taxonomy is worth a mention
NARROW = "ranges are as narrow as a class allows; round would hide the true values at their ends, at more loss"
LONGEST_CODE = 3  # characters of a country's code
COUNTRY_WORDS = frozenset({"country", "wohnland", "pays", "pais"})
LONG_LIFE = 70  # years of birth so far apart include the very old
LONG_TIME = 3650  # days: dates of about ten years have decades; in less, years would leave nothing of births
FIRST_WHOLE_DECADE = 10


@dataclass(frozen=True)
class ProposedLevels:
    """The settings of a column as a quasi-identifier, and the reason for its levels; empty if there is none to give."""

    column: ColumnSettings
    reason: str = ""


def propose_levels(facts: ColumnFacts, kind: str | None) -> ProposedLevels:
    """Propose the levels of a column. kind: what the column is about, if that is known."""
    if kind == "postal":
        return _postal(facts)
    if facts.kind == "date":
        return _dates(facts, kind)
    if facts.kind in ("whole", "decimal"):
        return _numbers(facts, kind)
    return _categories(facts, kind)


def _settings(**settings: Any) -> ColumnSettings:
    return ColumnSettings(role="quasi-identifier", **settings)


# ---- categories ----


def _categories(facts: ColumnFacts, kind: str | None) -> ProposedLevels:
    """Propose a ready-made taxonomy if it has every value; otherwise none, with advice if there are many values."""
    name = _ready_name(facts, kind)
    outside = 0 if name is None else len(ready_taxonomy(name).rows(facts.texts).outside)
    if name is not None and outside == 0:
        reason = f"the groups come from {ready_taxonomy(name).source}"
        return ProposedLevels(_settings(type="categorical", taxonomy=Grouping(ready=name)), reason)
    if name is not None and outside <= MOST_OUTSIDE * facts.distinct:
        advice = (
            f'{{ ready = "{name}" }} would do as its taxonomy, but does not have {outside:,} of the {facts.distinct:,} '
            "values: correct them, or let `sfumato taxonomy` help to write a file"
        )
        return ProposedLevels(_settings(type="categorical"), advice)
    advice = (
        f"a class with two of its {facts.distinct:,} values shows *: a taxonomy loses less, and `sfumato taxonomy` "
        "helps to write one"
    )
    return ProposedLevels(_settings(type="categorical"), advice if facts.distinct > FEW_VALUES else "")


def _ready_name(facts: ColumnFacts, kind: str | None) -> ReadyName | None:
    """Return the ready-made taxonomy of what the column is about, if all of its values are at hand to be looked up."""
    if facts.kind != "text" or facts.distinct > len(facts.texts):
        return None
    if kind in ("place", "origin"):
        # Short codes of a place may be those of its provinces too.
        named = kind == "origin" or not COUNTRY_WORDS.isdisjoint(words_of(facts.name))
        return "countries" if named or max(map(len, facts.texts)) > LONGEST_CODE else None
    names: dict[str | None, ReadyName] = {"month": "months", "weekday": "weekdays", "health": "icd-10"}
    return names.get(kind)


# ---- postal codes ----


def _postal(facts: ColumnFacts) -> ProposedLevels:
    """Propose prefixes: all lengths that group the codes differently, and none longer than what few records share."""
    longest = max(map(len, facts.texts))
    groups = {length: len({text[:length] for text in facts.texts}) for length in range(1, longest)}
    groups = {length: count for length, count in groups.items() if 1 < count < len(facts.texts)}
    lengths = [length for length, count in groups.items() if count > groups.get(length - 1, 1)]
    if not lengths:
        return ProposedLevels(_settings(type="categorical"))
    taxonomy = Grouping(prefix=tuple(lengths))
    if facts.alone_share < NEARLY_UNIQUE:
        return ProposedLevels(
            _settings(type="categorical", taxonomy=taxonomy),
            "the beginning of a code stands for a larger area, so a class shows as much of it as its codes share",
        )
    shared = [length for length in lengths if groups[length] * CODES_IN_A_GROUP <= len(facts.texts)]
    shown = max(shared, default=lengths[0])
    return ProposedLevels(
        _settings(type="categorical", taxonomy=taxonomy, finest=len(lengths) - lengths.index(shown)),
        f"many records have a code of their own, which would name a person, so no more than {_beginning(shown)} of a "
        "code is ever shown",
    )


def _beginning(length: int) -> str:
    return "the first character" if length == 1 else f"the first {length} characters"


# ---- dates ----


def _dates(facts: ColumnFacts, kind: str | None) -> ProposedLevels:
    """Propose a calendar of the units of which the dates have several. It begins with months, for births with years."""
    units = _units(facts)
    if kind == "birth" and facts.span >= LONG_TIME:
        units = units[units.index("year") :]
        reason = (
            "a date of birth with sex and place singles out most people, so it is never finer than a year, as HIPAA's "
            "Safe Harbor asks"
        )
    else:
        reason = "a day with one other fact may single a person out, so dates are never finer than a month"
    if len(units) > 1:
        reason += (
            f'; coarsest = "{units[1]}" would keep every record within its {units[1]}, if enough records share one'
        )
    return ProposedLevels(_settings(type="date", taxonomy=Grouping(calendar=units), finest=units[0]), reason)


def _units(facts: ColumnFacts) -> tuple[CalendarUnit, ...]:
    first, last = (datetime.date.fromordinal(int(day)) for day in (facts.low, facts.high))
    units: list[CalendarUnit] = ["month"]
    if (first.year, (first.month - 1) // 3) != (last.year, (last.month - 1) // 3):
        units.append("quarter")
    if first.year != last.year:
        units.append("year")
    # The first decade would begin with a year 0, which no date has.
    if facts.span >= LONG_TIME and first.year >= FIRST_WHOLE_DECADE:
        units.append("decade")
    return tuple(units)


# ---- numbers ----


def _numbers(facts: ColumnFacts, kind: str | None) -> ProposedLevels:
    """Propose ranges without a taxonomy, since fixed intervals lose more. Ends of wide ranges are rounded."""
    if kind == "age" and facts.high >= TOP_AGE:
        return ProposedLevels(
            _settings(type="numeric", top=TOP_AGE),
            f"few people are older than {TOP_AGE - 1}, so they are one value, {TOP_AGE}+, as HIPAA's Safe Harbor asks; "
            f"{NARROW}",
        )
    if facts.distinct <= FEW_VALUES:
        return ProposedLevels(_settings(type="numeric"))
    step = _step(facts)
    if step is not None:
        return ProposedLevels(
            _settings(type="numeric", round=step),
            "an exact number may single a person out, so ranges begin and end at multiples of a round number",
        )
    if kind == "birth" and facts.span >= LONG_LIFE:
        return ProposedLevels(
            _settings(type="numeric"),
            f"few people are older than {TOP_AGE - 1}: set bottom to the last year of birth of such people, and "
            f"they are one value; {NARROW}",
        )
    return ProposedLevels(_settings(type="numeric"), NARROW)


def _step(facts: ColumnFacts) -> int | float | None:
    """Return the number to whose multiples ends are rounded, None if all values are multiples."""
    part = facts.span / ROUNDED_PARTS
    if not math.isfinite(part) or part <= 0:
        return None
    step = round_number(part)
    if step <= _resolution(facts):
        return None
    return int(step) if step.is_integer() else step


def round_number(least: float) -> float:
    """Return the smallest number of at least this size that is 1, 2 or 5 times a power of ten."""
    exponent = math.floor(math.log10(least))
    digit = next(digit for digit in (1, 2, 5, 10) if digit * 10.0**exponent >= least * 0.999)
    return float(f"{digit}e{exponent}")


def _resolution(facts: ColumnFacts) -> float:
    """Return the unit in which the numbers are written: 0.01 with two decimal places, 0 with powers of ten."""
    if facts.kind == "whole":
        return 1
    if any("e" in text.lower() for text in facts.texts):
        return 0
    places = max(len(text.replace(",", ".").partition(".")[2]) for text in facts.texts)
    return float(f"1e-{places}")
