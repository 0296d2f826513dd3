"""Columns that are identifiers by the form of their values, or by their name if the values agree with it.

``proposal`` gives them the role identifier, and a release that would keep them is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from sfumato.evaluation.linkability.column_facts import YEARS, ColumnFacts, TextSettings, ValueTotals, facts_of_sample
from sfumato.evaluation.linkability.column_names import ColumnMeaning, NameHints, hints_of
from sfumato.evaluation.linkability.value_forms import (
    form_of,
    looks_like_streets,
    postal_form,
    share,
    vocabulary_of,
)
from sfumato.policy import Policy

VARIED = 0.1  # distinct values per record that has one


class NamedColumns(Protocol):
    """A table whose columns have names and types."""

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def types(self) -> Mapping[str, pa.DataType]: ...


@dataclass(frozen=True)
class IdentifierRules:
    """The rules for the columns of a table, whose text is read as ``settings`` say."""

    types: Mapping[str, pa.DataType]
    hints: Mapping[str, NameHints]
    settings: TextSettings

    @classmethod
    def of(cls, table: NamedColumns, policy: Policy) -> IdentifierRules:
        return cls(table.types, hints_of(table.names), TextSettings.of(policy.input))

    def reason(self, name: str, sample: pa.Array, totals: ValueTotals) -> str | None:
        """Return why a column is an identifier, or None. sample: some distinct values; totals: of the whole column."""
        facts = facts_of_sample(name, self.types[name], sample.drop_null(), totals, self.settings)
        return identifier_reason(facts, self.hints[name])


def identifier_reason(facts: ColumnFacts, hints: NameHints) -> str | None:
    """Return why the column is an identifier by its name or the form of its values, or None if it is not."""
    if facts.kind in ("nothing", "unusable") or facts.dated or looks_postal(facts):
        return None
    by_form = _form_reason(facts)
    if by_form is not None:
        return by_form
    meaning = hints.meaning
    if meaning is not None and fits(facts, meaning):
        if meaning.role != "identifier":
            return None
        return f"its name suggests {meaning.description}, and its values fit"
    if hints.numbers_persons and _is_number(facts, VARIED / 2):
        return "its name suggests that it numbers persons, and its values fit"
    if hints.numbers_records and _is_number(facts, 0.5):
        return "its name suggests that it numbers records, and its values fit"
    return None


def fits(facts: ColumnFacts, meaning: ColumnMeaning) -> bool:
    """Return whether the values agree with what the name suggests."""
    return FITS[meaning.kind](facts)


def looks_postal(facts: ColumnFacts) -> bool:
    return facts.kind in ("text", "whole") and postal_form(facts.texts)


def _form_reason(facts: ColumnFacts) -> str | None:
    if facts.kind not in ("text", "whole"):
        return None
    form = form_of(facts.texts, varied=facts.varied >= VARIED)
    if form is not None:
        return f"its values look like {form.description}"
    if facts.kind == "text" and facts.varied >= VARIED and looks_like_streets(facts.texts):
        return "its values look like addresses"
    return None


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
