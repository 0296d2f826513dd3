"""Look up a text by its key in the catalogue of a language, and put values into it.

A catalogue is a folder of TOML files. The key ``report.verdict.title`` is the entry ``title`` in the table ``verdict``
of the file ``report.toml``. An entry is a text, or a table of two forms, ``one`` and ``other``, of which the number in
the placeholder ``count`` chooses; ``by`` names another placeholder. Values stand in braces. A whole number is written
as the language does; everything else is put in as it is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from sfumato.errors import UsageError

FOLDER = Path(__file__).parent
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, kw_only=True)
class Language:
    """A language and how it writes numbers."""

    code: str
    name: str
    """What the language calls itself."""
    decimal: str
    thousands: str
    before_percent: str
    quotes: tuple[str, str]
    locale: str
    """The name of the language and country for pictures, which have months on their axes."""

    def number_format(self) -> dict[str, object]:
        """How numbers are written on the axes of pictures, as a locale of d3."""
        marks = {"decimal": self.decimal, "thousands": self.thousands, "percent": f"{self.before_percent}%"}
        return {**marks, "grouping": [3], "currency": ["", ""]}


LANGUAGES = {
    language.code: language
    for language in (
        Language(
            code="en", name="English", decimal=".", thousands=",", before_percent="", quotes=("'", "'"), locale="en-US"
        ),
        Language(
            code="de",
            name="Deutsch",
            decimal=",",
            thousands=".",
            before_percent=NO_BREAK,
            quotes=("„", "“"),
            locale="de-DE",
        ),
    )
}


@dataclass(frozen=True)
class TextEntry:
    """A text in its forms; one form serves for every number unless there is a second for a single thing."""

    other: str
    one: str | None = None
    by: str = "count"

    def form(self, values: dict[str, Any]) -> str:
        return self.one if self.one is not None and values[self.by] == 1 else self.other


class Texts:
    """The texts of one language: ``say("report.title", records=5)``."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def __call__(self, key: str, **values: Any) -> str:
        """The text of this key with these values."""
        return "".join(map(str, self.parts(key, **values)))

    def parts(self, key: str, **values: Any) -> list[object]:
        """The text in pieces, with values that are markup as they are; text must still be escaped."""
        pieces: list[object] = []
        for before, name, _, _ in Formatter().parse(self._entry(key).form(values)):
            pieces.append(before)
            if name is not None:
                value = values[name]
                pieces.append(self.number(value) if isinstance(value, int) else value)
        return pieces

    def template(self, key: str) -> str:
        """The text of this key with its placeholders; of two forms, that for many."""
        return self._entry(key).other

    def number(self, value: float, form: str = ",") -> str:
        """A number in a form of Python's, such as ``,`` or ``.1%``, with the marks of the language."""
        return self.with_marks(format(value, form))

    def with_marks(self, figure: str) -> str:
        """A figure that is written in the English way, such as 1,234.5 or 12%, with the marks of the language."""
        language = self.language
        marks = {",": language.thousands, ".": language.decimal, "%": f"{language.before_percent}%"}
        return "".join(marks.get(character, character) for character in figure)

    def percent(self, share: float) -> str:
        """A share as a percentage with one decimal, which never rounds to nothing or to all."""
        if 0 < share < 0.0005:
            return self("words.less_than", figure=self.number(0.001, ".1%"))
        if 0.9995 < share < 1:
            return self("words.more_than", figure=self.number(0.999, ".1%"))
        whole = f"{share:.1%}".endswith(".0%")
        return self.number(share, ".0%" if whole else ".1%")

    def date(self, day: date) -> str:
        """A date in words: 3 May 2026."""
        return self("words.date", day=day.day, month=self(MONTHS[day.month - 1]), year=str(day.year))

    def alternatives(self, items: Sequence[object]) -> str:
        """Several things of which one is the case: a, b or c."""
        texts = [str(item) for item in items]
        if len(texts) < 2:
            return "".join(texts)
        return self("words.or", first=", ".join(texts[:-1]), last=texts[-1])

    def _entry(self, key: str) -> TextEntry:
        file, _, rest = key.partition(".")
        return catalogue(self.language.code, file)[rest]


MONTHS = (
    "words.months.january",
    "words.months.february",
    "words.months.march",
    "words.months.april",
    "words.months.may",
    "words.months.june",
    "words.months.july",
    "words.months.august",
    "words.months.september",
    "words.months.october",
    "words.months.november",
    "words.months.december",
)


@cache
def catalogue(language: str, file: str) -> dict[str, TextEntry]:
    """The entries of one file of a language, by the key without the name of the file."""
    return _entries(tomllib.loads((FOLDER / language / f"{file}.toml").read_text("utf-8")))


def _entries(table: dict[str, Any], above: str = "") -> dict[str, TextEntry]:
    found: dict[str, TextEntry] = {}
    for name, value in table.items():
        if isinstance(value, str):
            found[above + name] = TextEntry(value)
        elif "one" in value:
            found[above + name] = TextEntry(**value)
        else:
            found |= _entries(value, f"{above}{name}.")
    return found


@cache
def texts_in(language: str) -> Texts:
    """The texts of the language with this code."""
    if language not in LANGUAGES:
        raise UsageError.unknown_choice("language", language, LANGUAGES)
    return Texts(LANGUAGES[language])


ENGLISH = texts_in("en")
