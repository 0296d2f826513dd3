"""Suggest a role, a type and a taxonomy for a column, each with its reason.

Values with the form of an identifier decide first; then the name, if the values agree with it; then dates, words of
demographic columns, and whether every record has a different value. If none of these settle the role, it is "decide".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sfumato.policy import ColumnSettings, Grouping
from sfumato.policy.column_settings import CalendarUnit, ColumnType, Role
from sfumato.proposal.column_facts import YEARS, ColumnFacts
from sfumato.proposal.column_names import ColumnMeaning, NameHints
from sfumato.proposal.value_forms import (
    form_of,
    holds_email,
    looks_like_persons,
    looks_like_streets,
    postal_form,
    share,
    vocabulary_of,
)

UNIQUE = 0.95  # of the records with a value have one that no other record has
NEARLY_UNIQUE = 0.2
VARIED = 0.1
FEWEST_RECORDS = 20  # with fewer, different values say little
FEW_VALUES = 20  # so few different numbers need no intervals
STEPS = 20  # the narrowest intervals cut the range into about this many parts
LONG_TEXT = 40
DAYS_OF_YEAR = 365


@dataclass(frozen=True)
class Suggestion:
    """A suggested role and its reason. ``column`` holds the settings as a quasi-identifier, if it could be one."""

    role: Role
    reason: str
    column: ColumnSettings | None = None


def suggest(facts: ColumnFacts, hints: NameHints) -> Suggestion:
    """Suggest the role of a column, and say why."""
    role, reason, kind = _role(facts, hints)
    column = None if facts.kind in ("nothing", "unusable") else _column_settings(facts, kind)
    return Suggestion(role, reason, column)


def _role(facts: ColumnFacts, hints: NameHints) -> tuple[Role, str, str | None]:
    """Return the role, the reason, and the kind of thing that the column is about."""
    meaning = hints.meaning
    if facts.kind == "nothing":
        return "decide", "no record has a value", None
    if facts.kind == "unusable":
        return "decide", "a quasi-identifier cannot have its type: convert it to text, numbers or dates", None
    if facts.dated:
        return "quasi-identifier", "its dates have another format than other columns, so they are read as text", None
    by_form = _by_form(facts)
    if by_form is not None:
        return by_form
    if meaning is not None and FITS[meaning.kind](facts):
        if meaning.role == "decide":
            emails = "; some of its texts contain e-mail addresses" if holds_email(facts.texts) else ""
            return "decide", f"its name suggests {meaning.description}{emails}", meaning.kind
        return meaning.role, f"its name suggests {meaning.description}, and its values fit", meaning.kind
    if hints.numbers_persons and _is_number(facts, VARIED / 2):
        return "identifier", "its name suggests that it numbers persons, and its values fit", "number"
    if hints.numbers_records and _is_number(facts, 0.5):
        return "identifier", "its name suggests that it numbers records, and its values fit", "number"
    if facts.kind == "date":
        return "quasi-identifier", "its values are dates, which others may know", "date"
    vocabulary = vocabulary_of(facts.texts) if facts.kind == "text" else None
    if vocabulary is not None:
        return "quasi-identifier", f"its values are {vocabulary.description}", vocabulary.kind
    if facts.distinct > 1 and facts.alone_share >= UNIQUE:
        return _by_uniqueness(facts)
    return "decide", _undecided(facts, meaning), None


def _by_form(facts: ColumnFacts) -> tuple[Role, str, str | None] | None:
    if facts.kind not in ("text", "whole"):
        return None
    if postal_form(facts.texts):
        return "quasi-identifier", "its values look like postal codes", "postal"
    form = form_of(facts.texts, varied=facts.varied >= VARIED)
    if form is not None:
        return "identifier", f"its values look like {form.description}", None
    if facts.kind == "text" and facts.varied >= VARIED and looks_like_streets(facts.texts):
        return "identifier", "its values look like addresses", None
    return None


def _by_uniqueness(facts: ColumnFacts) -> tuple[Role, str, str | None]:
    alone = _alone(facts)
    if facts.known < FEWEST_RECORDS:
        return "decide", f"{alone}, but only {facts.known} records have one", None
    if facts.kind == "decimal":
        return "decide", f"{alone}: exact measures single people out if somebody knows them", None
    if facts.kind == "text" and looks_like_persons(facts.texts):
        return "identifier", f"{alone}, and the values look like names of persons", None
    return "identifier", alone, None


def _undecided(facts: ColumnFacts, meaning: ColumnMeaning | None) -> str:
    """Say why no role is proposed, and what may help to decide."""
    parts = []
    if meaning is not None:
        parts.append(f"its name suggests {meaning.description.partition(':')[0]}, but its values do not look like it")
    if facts.distinct == 1:
        parts.append("it is the same in every record that has a value")
    elif facts.kind == "text" and holds_email(facts.texts):
        parts.append("some of its texts contain e-mail addresses")
    elif facts.kind == "text" and facts.varied >= VARIED and looks_like_persons(facts.texts):
        parts.append("its values may be names of persons")
    elif facts.kind == "text" and facts.width >= LONG_TEXT:
        parts.append("long texts may name persons")
    elif facts.kind == "text" and _are_codes(facts):
        parts.append("codes of one length, which may be postal codes or numbers of persons")
    if facts.distinct > 1 and facts.alone_share >= NEARLY_UNIQUE:
        parts.append(_alone(facts))
    return "; ".join(parts) or "neither its name nor its values show what it is"


# ---- do the values agree with the name? ----


def _is_number(facts: ColumnFacts, least: float) -> bool:
    return facts.kind in ("text", "whole") and facts.distinct >= 10 and facts.varied >= least


def _few(most: int) -> Callable[[ColumnFacts], bool]:
    """Return a check for a column of categories: text, or whole numbers that may stand for categories."""
    return lambda facts: facts.kind in ("text", "whole", "boolean") and facts.distinct <= most


def _is_name(facts: ColumnFacts) -> bool:
    letters = share(facts.texts, lambda text: not any(map(str.isdecimal, text)))
    return facts.kind == "text" and letters >= 0.8 and (facts.varied >= VARIED / 10 or facts.distinct >= 10)


def _is_varied_text(facts: ColumnFacts) -> bool:
    return facts.kind in ("text", "whole") and facts.varied >= VARIED / 2


def _has_digits(facts: ColumnFacts) -> bool:
    enough = share(facts.texts, lambda text: sum(map(str.isdecimal, text)) >= 6)
    return facts.kind in ("text", "whole") and enough >= 0.8


def _is_age(facts: ColumnFacts) -> bool:
    if facts.kind in ("whole", "decimal"):
        return facts.within(0, 130)
    return facts.kind == "text" and facts.distinct <= 150


def _is_postal(facts: ColumnFacts) -> bool:
    codes = share(facts.texts, lambda text: 3 <= len(text) <= 10 and any(map(str.isdecimal, text)))
    return facts.kind in ("text", "whole") and codes >= 0.9


def _is_year(facts: ColumnFacts) -> bool:
    return facts.kind == "whole" and facts.within(*YEARS)


def _is_moment(facts: ColumnFacts) -> bool:
    """Return whether the values are dates or parts of dates."""
    month = facts.kind == "whole" and facts.within(0, 31)
    return facts.kind == "date" or _is_year(facts) or month or _is_month(facts)


def _is_month(facts: ColumnFacts) -> bool:
    words = vocabulary_of(facts.texts) if facts.kind == "text" else None
    return (facts.kind == "whole" and facts.within(1, 12)) or (words is not None and words.kind == "month")


def _is_place(facts: ColumnFacts) -> bool:
    return facts.kind == "text" or (facts.kind == "whole" and facts.distinct <= 1000)


def _is_coordinate(facts: ColumnFacts) -> bool:
    return facts.kind == "decimal" and facts.within(-180, 180)


def _is_region(facts: ColumnFacts) -> bool:
    """Return whether the values, under a name such as "state", are not known regions, which would make it a place."""
    return facts.kind in ("text", "whole") and vocabulary_of(facts.texts) is None


def _any(facts: ColumnFacts) -> bool:
    return facts.kind != "nothing"


FITS: Mapping[str, Callable[[ColumnFacts], bool]] = {
    "name": _is_name,
    "email": lambda facts: facts.kind == "text" and share(facts.texts, lambda text: "@" in text) >= 0.5,
    "phone": _has_digits,
    "address": _is_varied_text,
    "number": lambda facts: _is_number(facts, VARIED),
    "account": lambda facts: _is_number(facts, VARIED),
    "online": lambda facts: facts.kind == "text" and facts.varied >= VARIED / 2,
    "vehicle": lambda facts: _is_number(facts, VARIED),
    "postal": _is_postal,
    "age": _is_age,
    "birth": _is_moment,
    "death": _is_moment,
    "sex": _few(12),
    "ethnicity": _few(100),
    "origin": _is_place,
    "language": _few(300),
    "marital": _few(20),
    "household": _few(60),
    "education": _few(100),
    "work": _few(60),
    "place": _is_place,
    "coordinate": _is_coordinate,
    "month": _is_month,
    "year": _is_year,
    "state": _is_region,
    "occupation": _any,
    "money": _any,
    "health": _any,
    "belief": _any,
    "body": _any,
    "text": lambda facts: facts.kind == "text",
}


# ---- type and taxonomy ----


def _column_settings(facts: ColumnFacts, kind: str | None) -> ColumnSettings:
    """Return the settings of the column as a quasi-identifier: its type, and a taxonomy that needs no file."""
    column_type: ColumnType = "categorical"
    taxonomy: Grouping | None = None
    if kind == "postal":
        longest = min(facts.width, 5)
        taxonomy = Grouping(prefix=tuple(range(1, longest))) if longest > 1 else None
    elif facts.kind == "date":
        column_type, taxonomy = "date", Grouping(calendar=_units(facts.span))
    elif facts.kind in ("whole", "decimal"):
        column_type, taxonomy = "numeric", _intervals(facts, kind)
    return ColumnSettings(role="quasi-identifier", type=column_type, taxonomy=taxonomy)


def _units(days: float) -> tuple[CalendarUnit, ...]:
    if days < DAYS_OF_YEAR / 4:
        return ("week",)
    if days < 2 * DAYS_OF_YEAR:
        return ("month", "quarter")
    if days < 10 * DAYS_OF_YEAR:
        return ("month", "quarter", "year")
    return ("month", "quarter", "year", "decade")


def _intervals(facts: ColumnFacts, kind: str | None) -> Grouping | None:
    """Return round widths, each twice the one before."""
    if kind == "coordinate":
        return Grouping(intervals=(0.1, 1, 10))
    if facts.distinct <= FEW_VALUES or not math.isfinite(facts.span) or facts.span <= 0:
        return None
    if kind == "age":
        return Grouping(intervals=(5, 10, 20))
    exponent = math.floor(math.log10(facts.span / STEPS))
    first = next(digit for digit in (1, 2, 5, 10) if digit * 10.0**exponent >= facts.span / STEPS * 0.999)
    widths = [float(f"{first * factor}e{exponent}") for factor in (1, 2, 4)]
    if facts.kind == "whole":
        widths = [width for width in widths if width > 1 and width.is_integer()]
        return Grouping(intervals=tuple(map(int, widths))) if widths else None
    return Grouping(intervals=tuple(int(width) if width.is_integer() else width for width in widths))


def _are_codes(facts: ColumnFacts) -> bool:
    return share(facts.texts, lambda text: len(text) == facts.width and text.isdecimal()) >= 0.9


def _alone(facts: ColumnFacts) -> str:
    part = "all records" if facts.alone == facts.known else f"{math.floor(facts.alone_share * 100)}% of the records"
    return f"{part} have a value that no other record has"
