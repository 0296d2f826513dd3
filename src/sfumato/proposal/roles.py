"""From what is known of a column to a role, a type and a taxonomy, each with its reason.

Values that have the form of an identifier decide; then the name, where the values agree with it; then dates, words of
demographic columns, and whether every record has a value of its own. What none of these settle is left to decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sfumato.policy import ColumnSettings, Grouping
from sfumato.policy.column_settings import CalendarUnit, ColumnType, Role
from sfumato.proposal.column_facts import YEARS, ColumnFacts
from sfumato.proposal.column_names import Meaning, NameHints
from sfumato.proposal.value_forms import (
    form_of,
    holds_email,
    looks_like_persons,
    looks_like_streets,
    postal_form,
    share,
    vocabulary_of,
)

UNIQUE = 0.95  # of the records that have a value are alone with it
NEARLY_UNIQUE = 0.2
VARIED = 0.1
FEWEST_RECORDS = 20  # below, that all values differ says little
FEW_VALUES = 20  # numbers so few need no intervals
STEPS = 20  # into how many parts the narrowest intervals cut the range, about
LONG_TEXT = 40
DAYS_OF_YEAR = 365


@dataclass(frozen=True)
class Suggestion:
    """What a column is taken for. ``column`` is how it would be described as a quasi-identifier, where it could be."""

    role: Role
    reason: str
    column: ColumnSettings | None = None


def suggest(facts: ColumnFacts, hints: NameHints) -> Suggestion:
    """The role of a column and why."""
    role, reason, kind = _role(facts, hints)
    described = None if facts.kind in ("nothing", "unusable") else _described(facts, kind)
    return Suggestion(role, reason, described)


def _role(facts: ColumnFacts, hints: NameHints) -> tuple[Role, str, str | None]:
    """The role, the reason, and the kind of thing that the column is about."""
    meaning = hints.meaning
    if facts.kind == "nothing":
        return "decide", "no record has a value", None
    if facts.kind == "unusable":
        return "decide", "its type cannot be that of a quasi-identifier: turn it into text, numbers or dates", None
    if facts.dated:
        return "quasi-identifier", "its values are dates in another form than others, so they are read as text", None
    told = _by_form(facts)
    if told is not None:
        return told
    if meaning is not None and FITS[meaning.kind](facts):
        if meaning.role == "decide":
            found = "; some of its texts hold e-mail addresses" if holds_email(facts.texts) else ""
            return "decide", f"its name says {meaning.says}{found}", meaning.kind
        return meaning.role, f"its name says {meaning.says}, and its values fit", meaning.kind
    if hints.numbers_persons and _is_number(facts, VARIED / 2):
        return "identifier", "its name says that it numbers persons, and its values fit", "number"
    if hints.numbers_records and _is_number(facts, 0.5):
        return "identifier", "its name says that it numbers records, and its values fit", "number"
    if facts.kind == "date":
        return "quasi-identifier", "its values are dates, which others may know", "date"
    vocabulary = vocabulary_of(facts.texts) if facts.kind == "text" else None
    if vocabulary is not None:
        return "quasi-identifier", f"its values are {vocabulary.says}", vocabulary.kind
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
        return "identifier", f"its values look like {form.says}", None
    if facts.kind == "text" and facts.varied >= VARIED and looks_like_streets(facts.texts):
        return "identifier", "its values look like addresses", None
    return None


def _by_uniqueness(facts: ColumnFacts) -> tuple[Role, str, str | None]:
    alone = _alone(facts)
    if facts.known < FEWEST_RECORDS:
        return "decide", f"{alone}, but only {facts.known} have one", None
    if facts.kind == "decimal":
        return "decide", f"{alone}: exact measures single people out when somebody knows them", None
    if facts.kind == "text" and looks_like_persons(facts.texts):
        return "identifier", f"{alone}, and the values look like names of persons", None
    return "identifier", alone, None


def _undecided(facts: ColumnFacts, meaning: Meaning | None) -> str:
    """Why nothing is proposed, and what helps to decide."""
    parts = []
    if meaning is not None:
        parts.append(f"its name says {meaning.says.partition(':')[0]}, but its values do not look like it")
    if facts.distinct == 1:
        parts.append("it is the same in every record that has a value")
    elif facts.kind == "text" and holds_email(facts.texts):
        parts.append("some of its texts hold e-mail addresses")
    elif facts.kind == "text" and facts.varied >= VARIED and looks_like_persons(facts.texts):
        parts.append("its values may be names of persons")
    elif facts.kind == "text" and facts.width >= LONG_TEXT:
        parts.append("long texts may name persons")
    elif facts.kind == "text" and _are_codes(facts):
        parts.append("codes of one length, which may be postal codes or numbers of persons")
    if facts.distinct > 1 and facts.alone_share >= NEARLY_UNIQUE:
        parts.append(_alone(facts))
    return "; ".join(parts) or "neither its name nor its values tell what it is"


# ---- do the values agree with the name? ----


def _is_number(facts: ColumnFacts, least: float) -> bool:
    return facts.kind in ("text", "whole") and facts.distinct >= 10 and facts.varied >= least


def _few(most: int) -> Callable[[ColumnFacts], bool]:
    """A column of categories: text, or whole numbers that may stand for them."""
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
    """A date, or a part of one."""
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
    """A state that its values do not tell to be a region, which would make it a place."""
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


def _described(facts: ColumnFacts, kind: str | None) -> ColumnSettings:
    """The column as a quasi-identifier: its type, and a taxonomy that needs no file."""
    kind_of: ColumnType = "categorical"
    taxonomy: Grouping | None = None
    if kind == "postal":
        longest = min(facts.width, 5)
        taxonomy = Grouping(prefix=tuple(range(1, longest))) if longest > 1 else None
    elif facts.kind == "date":
        kind_of, taxonomy = "date", Grouping(calendar=_units(facts.span))
    elif facts.kind in ("whole", "decimal"):
        kind_of, taxonomy = "numeric", _intervals(facts, kind)
    return ColumnSettings(role="quasi-identifier", type=kind_of, taxonomy=taxonomy)


def _units(days: float) -> tuple[CalendarUnit, ...]:
    if days < DAYS_OF_YEAR / 4:
        return ("week",)
    if days < 2 * DAYS_OF_YEAR:
        return ("month", "quarter")
    if days < 10 * DAYS_OF_YEAR:
        return ("month", "quarter", "year")
    return ("month", "quarter", "year", "decade")


def _intervals(facts: ColumnFacts, kind: str | None) -> Grouping | None:
    """Widths that are round and each twice the one before."""
    if kind == "coordinate":
        return Grouping(intervals=(0.1, 1, 10))
    if facts.distinct <= FEW_VALUES or not math.isfinite(facts.span) or facts.span <= 0:
        return None
    if kind == "age":
        return Grouping(intervals=(5, 10, 20))
    exponent = math.floor(math.log10(facts.span / STEPS))
    first = next(one for one in (1, 2, 5, 10) if one * 10.0**exponent >= facts.span / STEPS * 0.999)
    widths = [float(f"{first * times}e{exponent}") for times in (1, 2, 4)]
    if facts.kind == "whole":
        widths = [width for width in widths if width > 1 and width.is_integer()]
        return Grouping(intervals=tuple(map(int, widths))) if widths else None
    return Grouping(intervals=tuple(int(width) if width.is_integer() else width for width in widths))


def _are_codes(facts: ColumnFacts) -> bool:
    return share(facts.texts, lambda text: len(text) == facts.width and text.isdecimal()) >= 0.9


def _alone(facts: ColumnFacts) -> str:
    part = "all records" if facts.alone == facts.known else f"{math.floor(facts.alone_share * 100)}% of the records"
    return f"{part} are alone with their value"
