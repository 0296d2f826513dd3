"""Facts about columns: whether they hold numbers, dates or text, how many values they have, and how to read text."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.policy import InputSettings
from sfumato.tables.coding.arrow_arrays import from_numpy, to_python
from sfumato.tables.coding.number_text import LEADING_ZERO, NumberForm
from sfumato.tables.coding.value_order import is_missing, text_of
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source

SAMPLED_VALUES = 5000  # distinct values in which forms and words are searched for
MOST_IN_SAMPLE = 1000  # distinct values that show the form of a kept column
TRIED_FIRST = 50  # values on which a date format is tried before all are read
LARGEST_WHOLE = 2**63 - 1
YEARS = (1900, 2100)

# Text that means "missing" in any column, and text that does so only if all other values are numbers or dates.
CERTAIN_NULLS = ("?", "NULL", "null", "N/A", "n/a", "#N/A", "#NV", "\\N", "NaN", "nan", "<NA>", "k.A.", "*")
LIKELY_NULLS = ("NA", "None", "none", "-", "--", ".", "unknown", "Unknown", "missing", "Missing", "unbekannt")

_WHOLE = re.compile(r"[+-]?\d+")
_POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE_LIKE = re.compile(r"\d{1,4}[-./ ]\w{1,9}[-./ ]\d{2,4}.{0,16}")
_ISO = re.compile(r"\d{4}-\d\d-\d\d.*")
_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%d-%b-%y"),
)
FORMATS = tuple(f"{day}{time}" for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S"))
ISO = "ISO 8601"


@dataclass(frozen=True)
class ColumnValues:
    """The distinct values of a column, and how often each occurs. text: they are unparsed text of a file."""

    name: str
    type: pa.DataType
    text: bool
    values: list[object] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    records: int
    _known: dict[tuple[str, ...], tuple[list[Any], NDArray[np.int64]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    _kinds: dict[TextSettings, str] = field(default_factory=dict, repr=False, compare=False)

    def known(self, settings: TextSettings) -> tuple[list[Any], NDArray[np.int64]]:
        """Return the values that are neither null nor a text that means null, and their counts."""
        nulls = settings.nulls if self.text else ()
        if nulls not in self._known:
            indices = [index for index, value in enumerate(self.values) if not is_missing(value, nulls)]
            self._known[nulls] = [self.values[index] for index in indices], self.counts[indices]
        return self._known[nulls]

    def kind_of_text(self, settings: TextSettings) -> str:
        """Return what the known values of a column of texts are: see ``kind_of_texts``."""
        if settings not in self._kinds:
            self._kinds[settings] = kind_of_texts(self.known(settings)[0], settings.numbers, settings.date_format)
        return self._kinds[settings]


class ValueTotals(NamedTuple):
    """The numbers of records, of those with a value, of those alone with their value, and of distinct values."""

    records: int
    known: int
    alone: int
    distinct: int


@dataclass(frozen=True)
class TextSettings:
    """How to read the text of a table where that differs from the default, and remarks for the user."""

    decimal: str | None = None
    nulls: tuple[str, ...] = ("",)
    date_format: str | None = None
    remarks: tuple[str, ...] = ()
    thousands: str | None = None

    @classmethod
    def of(cls, read: InputSettings) -> TextSettings:
        """Return the settings of a policy."""
        return cls(read.decimal, read.nulls, read.date_format, thousands=read.thousands)

    @property
    def numbers(self) -> NumberForm:
        """How numbers are written."""
        return NumberForm(self.decimal or ".", self.thousands)


@dataclass(frozen=True)
class ColumnFacts:
    """What is known about a column.

    kind: nothing, boolean, whole, decimal, date, text, or unusable for a type that no quasi-identifier can have.
    alone: the number of records whose value no other record has. span: of numbers, or of dates in days. width: the most
    frequent length of the texts. dated: the texts are dates, but not in the format in which the table is read. Numbers
    and texts are never shown.
    """

    name: str
    kind: str
    records: int
    known: int
    distinct: int
    alone: int
    texts: list[str] = field(repr=False)
    low: float = field(default=math.nan, repr=False)
    high: float = field(default=math.nan, repr=False)
    width: int = field(default=0, repr=False)
    dated: bool = False

    @property
    def span(self) -> float:
        return self.high - self.low

    @property
    def varied(self) -> float:
        """The number of distinct values per record that has a value."""
        return self.distinct / self.known if self.known else 0.0

    @property
    def alone_share(self) -> float:
        return self.alone / self.known if self.known else 0.0

    def within(self, low: float, high: float) -> bool:
        return low <= self.low and self.high <= high


def collect_values(source: Source, name: str, *, text: bool) -> ColumnValues:
    """Collect the distinct values of a column; ``text``: they are unparsed text of a file, so some may mean null."""
    classes = find_classes(source, [name])
    counts = np.zeros(len(classes.values[name]), np.int64)
    counts[classes.shown[name]] = classes.sizes
    return ColumnValues(name, source.types[name], text, classes.values[name], counts, classes.records)


# ---- how text is read ----


def find_text_settings(columns: Sequence[ColumnValues], preset: Mapping[str, Any]) -> TextSettings:
    """Find out how to read the texts of these columns, except for the settings in ``preset``."""
    texts = {column.name: _texts(column) for column in columns if pa.types.is_string(column.type)}
    ignored = frozenset(preset.get("nulls", ("", *CERTAIN_NULLS, *LIKELY_NULLS)))
    known = {name: [text for text in values if text not in ignored] for name, values in texts.items()}
    known = {name: values for name, values in known.items() if values}
    remarks: list[str] = []
    decimal, thousands = _marks(known, preset, remarks)
    date_format = preset.get("date_format") or _date_format(known, remarks)
    nulls = preset.get("nulls")
    if nulls is None:
        form = NumberForm(decimal or ".", thousands)
        ordered = {name for name, values in known.items() if kind_of_texts(values, form, date_format) != "text"}
        text_columns = [column for column in columns if column.text and column.name in texts]
        nulls = _nulls(text_columns, texts, ordered, remarks)
    return TextSettings(decimal, tuple(nulls), date_format, tuple(remarks), thousands)


def _texts(column: ColumnValues) -> list[str]:
    return [value for value in column.values if isinstance(value, str)]


def _marks(
    texts: Mapping[str, list[str]], preset: Mapping[str, Any], remarks: list[str]
) -> tuple[str | None, str | None]:
    """Return the decimal mark and the mark of thousands, except for those in ``preset``; None for the default.

    1.5 and 1.234,5 show which mark is the decimal one, and 1.234 shows nothing. Once the decimal mark is known, the
    other mark separates thousands.
    """
    forms = {decimal: NumberForm(decimal, other) for decimal, other in ((".", ","), (",", "."))}
    shown: dict[str, list[str]] = {".": [], ",": []}  # columns by the only decimal mark that they can have
    for name, values in texts.items():
        possible = [decimal for decimal, form in forms.items() if _are_numbers(values, form)]
        if len(possible) == 1:
            shown[possible[0]].append(name)
    decimal = preset.get("decimal")
    comma = [name for name in shown[","] if any("," in text for text in texts[name])]
    if decimal is None and comma and (shown["."] or preset.get("separator", ",") == ","):
        why = "others have a decimal point" if shown["."] else "the comma also separates the cells"
        remarks.append(f"{_named(comma)}: numbers with a decimal comma are read as text, because {why}")
        return None, preset.get("thousands")
    if decimal is None and comma:
        decimal = ","
    thousands = preset.get("thousands")
    if thousands is None:
        form = forms[decimal or "."]
        grouped = [
            name for name, values in texts.items() if any(map(form.is_grouped, values)) and _are_numbers(values, form)
        ]
        if grouped and (decimal is not None or shown["."]):
            thousands = form.thousands
        elif grouped:
            remarks.append(f"{_named(grouped)}: numbers whose commas may separate thousands are read as text")
    return decimal, thousands


def _are_numbers(texts: Sequence[str], form: NumberForm) -> bool:
    return all(_POINT.fullmatch(form.plain(text)) for text in texts)


def _date_format(texts: Mapping[str, list[str]], remarks: list[str]) -> str | None:
    """Return the format of most date columns, None for ISO 8601. A policy has one format; others are read as text."""
    fitting = {name: formats for name, values in texts.items() if (formats := _formats(values))}
    if not fitting:
        return None
    votes = {option: sum(option in formats for formats in fitting.values()) for option in (ISO, *FORMATS)}
    best = max(votes, key=lambda option: votes[option])  # the first of equals, which is the default
    other_columns = [name for name, formats in fitting.items() if best not in formats]
    if other_columns:
        remarks.append(
            f"{_named(other_columns)}: dates in another format than {best} are read as text, since a policy has one "
            "date format"
        )
    rivals = [
        option for option, count in votes.items() if count == votes[best] and option != best and _swapped(option, best)
    ]
    if rivals:
        remarks.append(f"the dates can be read as {best} and as {rivals[0]}: check which of the two is right")
    if "%y" in best:
        remarks.append("dates have years of two digits: 00 to 68 are read as 2000 to 2068")
    return None if best == ISO else best


def _swapped(date_format: str, other: str) -> bool:
    """Return whether two formats differ only in the order of day and month."""
    return date_format.replace("%d", "%m") == other.replace("%d", "%m")


def _formats(texts: Sequence[str]) -> list[str]:
    if _are_iso(texts):
        return [ISO]
    if not all(_DATE_LIKE.fullmatch(text.strip()) for text in texts):
        return []
    return [
        date_format
        for date_format in FORMATS
        if _are_dates(texts[:TRIED_FIRST], date_format) and _are_dates(texts, date_format)
    ]


def _are_iso(texts: Sequence[str]) -> bool:
    return all(_ISO.fullmatch(text.strip()) for text in texts) and all(moment_of(text, None) for text in texts)


def _are_dates(texts: Iterable[str], date_format: str) -> bool:
    return all(moment_of(text, date_format) is not None for text in texts)


def moment_of(text: str, date_format: str | None) -> datetime.datetime | None:
    """Return the moment that a text writes, or None if it writes none. A format of None is ISO 8601."""
    try:
        if date_format is None:
            return datetime.datetime.fromisoformat(text.strip())
        return datetime.datetime.strptime(text.strip(), date_format)
    except ValueError:
        return None


def _nulls(
    columns: Sequence[ColumnValues], texts: Mapping[str, list[str]], ordered: Collection[str], remarks: list[str]
) -> list[str]:
    """Return the null texts that occur. Likely ones count only if all else in a column is numbers or dates."""
    nulls = {text for column in columns for text in CERTAIN_NULLS if text in texts[column.name]}
    nulls |= {
        text for column in columns if column.name in ordered for text in LIKELY_NULLS if text in texts[column.name]
    }
    doubtful = {
        column.name: [text for text in LIKELY_NULLS if text in texts[column.name] and text not in nulls]
        for column in columns
    }
    names = [name for name, words in doubtful.items() if words]
    if names:
        words = [text for text in LIKELY_NULLS if any(text in column_words for column_words in doubtful.values())]
        remarks.append(
            f"{_named(names)}: {', '.join(map(repr, words))} is read as a value; add it to nulls if it means missing"
        )
    return ["", *(text for text in (*CERTAIN_NULLS, *LIKELY_NULLS) if text in nulls)]


def _named(names: Sequence[str]) -> str:
    return ("column " if len(names) == 1 else "columns ") + ", ".join(map(repr, names))


# ---- what a column holds ----


def facts_of(column: ColumnValues, settings: TextSettings) -> ColumnFacts:
    """Collect the facts about a column, with its text read according to the settings."""
    values, counts = column.known(settings)
    known, alone = int(counts.sum()), int(np.count_nonzero(counts == 1))
    step = -(-len(values) // SAMPLED_VALUES) or 1
    kind, low, high = _read(column, values, settings)
    texts = [text_of(value) for value in values[::step]]
    lengths = [len(text) for text in texts]
    width = max(set(lengths), key=lengths.count) if lengths and kind in ("text", "whole") else 0
    dated = kind == "text" and bool(_formats([text_of(value) for value in values]))
    return ColumnFacts(column.name, kind, column.records, known, len(values), alone, texts, low, high, width, dated)


def facts_of_sample(
    name: str, kind: pa.DataType, sample: pa.Array, totals: ValueTotals, settings: TextSettings
) -> ColumnFacts:
    """Collect the facts about a column from some of its distinct values and the counts of all of them."""
    values = to_python(sample.take(from_numpy(np.arange(0, len(sample), -(-len(sample) // MOST_IN_SAMPLE) or 1))))
    column = ColumnValues(name, kind, True, values, np.ones(len(values), np.int64), len(values))
    return replace(facts_of(column, settings), **totals._asdict())


def _read(column: ColumnValues, values: Sequence[Any], settings: TextSettings) -> tuple[str, float, float]:
    """Return the kind of a column, and its smallest and largest number or day."""
    types, stored = pa.types, column.type
    if not values:
        return "nothing", math.nan, math.nan
    if types.is_boolean(stored):
        return "boolean", math.nan, math.nan
    if types.is_date(stored) or types.is_timestamp(stored):
        # Moments in nanoseconds come as text.
        return "date", *_days([datetime.datetime.fromisoformat(day) if isinstance(day, str) else day for day in values])
    if types.is_integer(stored):
        return "whole", float(min(values)), float(max(values))
    if types.is_floating(stored) or types.is_decimal(stored):
        whole = all(isinstance(value, float | Decimal) and value == value // 1 for value in values)
        return "whole" if whole else "decimal", float(min(values)), float(max(values))
    if not types.is_string(stored):
        return "unusable", math.nan, math.nan
    form = settings.numbers
    kind = column.kind_of_text(settings)
    if kind == "date":
        moments = [moment_of(text, settings.date_format) for text in values]
        return kind, *_days([moment for moment in moments if moment is not None])
    if kind in ("whole", "decimal"):
        numbers = [float(form.plain(text)) for text in values]
        return kind, min(numbers), max(numbers)
    return kind, math.nan, math.nan


def kind_of_texts(texts: Sequence[str], form: NumberForm, date_format: str | None) -> str:
    """Return whole, decimal, date or text. Numbers with leading zeros are codes, which are text."""
    if date_format is not None and _are_dates(texts[:TRIED_FIRST], date_format) and _are_dates(texts, date_format):
        return "date"
    if date_format is None and _are_iso(texts):
        return "date"
    if any(LEADING_ZERO.match(text.strip()) for text in texts):
        return "text"
    numbers = [form.plain(text) for text in texts]
    if _all(_WHOLE, numbers):
        return "whole" if all(abs(int(number)) <= LARGEST_WHOLE for number in numbers if len(number) > 18) else "text"
    if _all(_POINT, numbers):
        return "decimal" if all(math.isfinite(float(number)) for number in numbers) else "text"
    return "text"


def _days(moments: Sequence[datetime.date]) -> tuple[float, float]:
    days = [moment.toordinal() for moment in moments]
    return float(min(days)), float(max(days))


def _all(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return all(pattern.fullmatch(text.strip()) for text in texts)
