"""Propose the levels on which a quasi-identifier is shown: its type, taxonomy and limits, each with its reason.

A taxonomy is proposed only where it loses nothing or where privacy needs it: ranges of numbers without one are as narrow
as a class allows. The finest level is limited for dates and for postal codes that few records share. The coarsest level
is never limited, because few records in a group can then make a policy impossible; a reason may mention it.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Any

from sfumato.evaluation.linkability.column_facts import YEARS, ColumnFacts
from sfumato.policy import ColumnSettings, Grouping
from sfumato.policy.column_settings import CalendarUnit

NEARLY_UNIQUE = 0.2  # of the records with a value have one that no other record has
FEW_VALUES = 20  # so few different categories need no groups
ROUNDED_PARTS = 100  # the range of a number has about as many multiples of the number to which ends are rounded
CODES_IN_A_GROUP = 2  # different postal codes, on average, in the smallest groups that are shown
TOP_AGE = 90
LONG_LIFE = 70  # years of birth so far apart include the very old
DAYS_OF_YEAR = 365
BIRTHS_BY_YEAR = 10 * DAYS_OF_YEAR  # in a shorter time, years would leave nothing of the dates


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
    many = facts.kind == "text" and facts.distinct > FEW_VALUES
    advice = "a class with two of its many values shows *: a taxonomy file with groups of values loses less"
    return ProposedLevels(_settings(type="categorical"), advice if many else "")


def _settings(**settings: Any) -> ColumnSettings:
    return ColumnSettings(role="quasi-identifier", **settings)


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
        f"a whole code would name a person: many records have a code of their own. So no more than {_beginning(shown)} "
        "is ever shown",
    )


def _beginning(length: int) -> str:
    return "the first character" if length == 1 else f"the first {length} characters"


# ---- dates ----


def _dates(facts: ColumnFacts, kind: str | None) -> ProposedLevels:
    """Propose a calendar. It begins with months, or with years for births in many years."""
    if kind == "birth" and facts.span >= BIRTHS_BY_YEAR:
        units: tuple[CalendarUnit, ...] = ("year", "decade")
        reason = (
            "a date of birth with sex and place singles out most people, so it is never finer than a year, as HIPAA's "
            "Safe Harbor asks"
        )
    else:
        units = ("month", *_coarser_units(facts))
        reason = "a day with one other fact may single a person out, so dates are never finer than a month"
    if len(units) > 1:
        reason += f'; coarsest = "{units[1]}" would keep every record within its {units[1]}, if enough records share one'
    return ProposedLevels(_settings(type="date", taxonomy=Grouping(calendar=units), finest=units[0]), reason)


def _coarser_units(facts: ColumnFacts) -> list[CalendarUnit]:
    """Return the units above the month of which the dates have several."""
    first, last = (datetime.date.fromordinal(int(day)) for day in (facts.low, facts.high))
    units: list[CalendarUnit] = []
    if (first.year, (first.month - 1) // 3) != (last.year, (last.month - 1) // 3):
        units.append("quarter")
    if first.year != last.year:
        units.append("year")
    if facts.span >= 10 * DAYS_OF_YEAR:
        units.append("decade")
    return units


# ---- numbers ----


def _numbers(facts: ColumnFacts, kind: str | None) -> ProposedLevels:
    """Propose ranges without a taxonomy, since fixed intervals lose more. Ends of wide ranges are rounded."""
    if kind == "age" and facts.high >= TOP_AGE:
        return ProposedLevels(
            _settings(type="numeric", top=TOP_AGE),
            f"few people are that old, so all ages from {TOP_AGE} on are one value ({TOP_AGE}+), as HIPAA's Safe Harbor asks",
        )
    step = _step(facts)
    if step is not None:
        return ProposedLevels(
            _settings(type="numeric", round=step),
            f"an exact number may single a person out, so the ends of ranges are multiples of {step:g}",
        )
    if kind == "birth" and facts.within(*YEARS) and facts.span >= LONG_LIFE:
        reason = "bottom would make the first years of birth one value: the very old are few"
        return ProposedLevels(_settings(type="numeric"), reason)
    return ProposedLevels(_settings(type="numeric"))


def _step(facts: ColumnFacts) -> int | float | None:
    """Return the number to whose multiples ends are rounded: 1, 2 or 5 times a power of ten; None if that is no loss."""
    part = facts.span / ROUNDED_PARTS
    if facts.distinct <= FEW_VALUES or not math.isfinite(part) or part <= 0:
        return None
    exponent = math.floor(math.log10(part))
    digit = next(digit for digit in (1, 2, 5, 10) if digit * 10.0**exponent >= part * 0.999)
    step = float(f"{digit}e{exponent}")
    if facts.kind == "whole":
        return int(step) if step > 1 else None
    return int(step) if step.is_integer() else step
