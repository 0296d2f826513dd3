"""What the values of the columns are: numbers, dates or text; how many there are; and how text is to be read."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.tables.coding.profile import LEADING_ZERO
from sfumato.tables.coding.value_order import is_missing, text_of
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source

SAMPLE = 5000  # different values that forms and words are looked for in
TRIED = 50  # values that a date format is tried on before all are read
LARGEST_WHOLE = 2**63 - 1
YEARS = (1900, 2100)

# Text that stands for "missing" whatever the column holds, and text that does where all else is numbers or dates.
CERTAIN_NULLS = ("?", "NULL", "null", "N/A", "n/a", "#N/A", "#NV", "\\N", "NaN", "nan", "<NA>", "k.A.", "*")
LIKELY_NULLS = ("NA", "None", "none", "-", "--", ".", "unknown", "Unknown", "missing", "Missing", "unbekannt")

_WHOLE = re.compile(r"[+-]?\d+")
_POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
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
    """The different values of a column, how often each occurs, and how many records have none."""

    name: str
    type: pa.DataType
    text: bool
    values: list[object] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    records: int

    def given(self, nulls: Collection[str]) -> tuple[list[object], NDArray[np.int64]]:
        """Those that are not null, nor one of these texts for it."""
        places = [place for place, value in enumerate(self.values) if not is_missing(value, nulls)]
        return [self.values[place] for place in places], self.counts[places]


@dataclass(frozen=True)
class Settings:
    """How the text of a table is to be read, where that is not the default, and what to say of it."""

    decimal: str | None = None
    nulls: tuple[str, ...] = ("",)
    date_format: str | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column.

    kind: nothing, boolean, whole, decimal, date, text, or unusable for a type that no quasi-identifier can have.
    alone: records that no other has the value of. span: of numbers, or of dates in days. width: the most frequent
    length of the texts. dated: texts that are dates, but not of the form that the table is read with. Numbers and texts
    are never shown.
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
        """The different values for each record that has one."""
        return self.distinct / self.known if self.known else 0.0

    @property
    def alone_share(self) -> float:
        return self.alone / self.known if self.known else 0.0

    def within(self, low: float, high: float) -> bool:
        return low <= self.low and self.high <= high


def collect(source: Source, name: str, *, text: bool) -> ColumnValues:
    """The values of one column; ``text``: texts are still those of a file, where some may mean null."""
    found = find_classes(source, [name])
    counts = np.zeros(len(found.values[name]), np.int64)
    counts[found.shown[name]] = found.sizes
    return ColumnValues(name, source.types[name], text, found.values[name], counts, found.records)


# ---- how text is read ----


def find_settings(columns: Sequence[ColumnValues], given: Mapping[str, Any]) -> Settings:
    """How the texts of these columns are to be read; what is ``given`` is not looked for."""
    texts = {one.name: _texts(one) for one in columns if pa.types.is_string(one.type)}
    ignored = frozenset(given.get("nulls", ("", *CERTAIN_NULLS, *LIKELY_NULLS)))
    rest = {name: [text for text in found if text not in ignored] for name, found in texts.items()}
    rest = {name: found for name, found in rest.items() if found}
    remarks: list[str] = []
    decimal = given.get("decimal") or _decimal(rest, given.get("separator", ","), remarks)
    date_format = given.get("date_format") or _date_format(rest, remarks)
    nulls = given.get("nulls")
    if nulls is None:
        ordered = {name for name, found in rest.items() if _kind_of(found, decimal or ".", date_format) != "text"}
        nulls = _nulls([one for one in columns if one.text and one.name in texts], texts, ordered, remarks)
    return Settings(decimal, tuple(nulls), date_format, tuple(remarks))


def _texts(column: ColumnValues) -> list[str]:
    return [value for value in column.values if isinstance(value, str)]


def _decimal(texts: Mapping[str, list[str]], separator: str, remarks: list[str]) -> str | None:
    """The decimal comma, where numbers have one and none has a point."""
    point = any("." in "".join(found[:TRIED]) and _all(_POINT, found) for found in texts.values())
    written = {name: [text for text in found if "," in text] for name, found in texts.items() if _all(_COMMA, found)}
    comma = [name for name, found in written.items() if found and not _all(_THOUSANDS, found)]
    thousands = [name for name, found in written.items() if found and name not in comma]
    if thousands and not comma:
        remarks.append(f"{_named(thousands)}: numbers whose commas may separate thousands are taken for text")
    if not comma:
        return None
    if point or separator == ",":
        why = "others have a decimal point" if point else "the comma separates the cells too"
        remarks.append(f"{_named(comma)}: numbers with a decimal comma are taken for text, because {why}")
        return None
    return ","


def _date_format(texts: Mapping[str, list[str]], remarks: list[str]) -> str | None:
    """The form of most columns of dates; other forms are taken for text, since a policy has one."""
    fitting = {name: formats for name, found in texts.items() if (formats := _formats(found))}
    if not fitting:
        return None
    votes = {one: sum(one in formats for formats in fitting.values()) for one in (ISO, *FORMATS)}
    chosen = max(votes, key=lambda one: votes[one])  # of equals the first, which is the default
    left = [name for name, formats in fitting.items() if chosen not in formats]
    if left:
        remarks.append(f"{_named(left)}: dates in another form than {chosen} are taken for text: a policy has one form")
    rivals = [one for one, count in votes.items() if count == votes[chosen] and one != chosen and _swapped(one, chosen)]
    if rivals:
        remarks.append(f"the dates can be read as {chosen} and as {rivals[0]}: check which of the two is right")
    if "%y" in chosen:
        remarks.append("dates have years of two digits: 00 to 68 are read as 2000 to 2068")
    return None if chosen == ISO else chosen


def _swapped(one: str, other: str) -> bool:
    """Whether two formats differ in which of day and month comes first."""
    return one.replace("%d", "%m") == other.replace("%d", "%m")


def _formats(texts: Sequence[str]) -> list[str]:
    if _are_iso(texts):
        return [ISO]
    if not all(_DATE_LIKE.fullmatch(text.strip()) for text in texts):
        return []
    return [one for one in FORMATS if _are_dates(texts[:TRIED], one) and _are_dates(texts, one)]


def _are_iso(texts: Sequence[str]) -> bool:
    return all(_ISO.fullmatch(text.strip()) for text in texts) and all(_moment(text, None) for text in texts)


def _are_dates(texts: Iterable[str], date_format: str) -> bool:
    return all(_moment(text, date_format) is not None for text in texts)


def _moment(text: str, date_format: str | None) -> datetime.datetime | None:
    try:
        if date_format is None:
            return datetime.datetime.fromisoformat(text.strip())
        return datetime.datetime.strptime(text.strip(), date_format)
    except ValueError:
        return None


def _nulls(
    columns: Sequence[ColumnValues], texts: Mapping[str, list[str]], ordered: Collection[str], remarks: list[str]
) -> list[str]:
    """The texts for null that occur: the likely ones only where all else in a column is numbers or dates."""
    found = {text for one in columns for text in CERTAIN_NULLS if text in texts[one.name]}
    found |= {text for one in columns if one.name in ordered for text in LIKELY_NULLS if text in texts[one.name]}
    doubtful = {
        one.name: [text for text in LIKELY_NULLS if text in texts[one.name] and text not in found] for one in columns
    }
    names = [name for name, words in doubtful.items() if words]
    if names:
        words = [text for text in LIKELY_NULLS if any(text in of_one for of_one in doubtful.values())]
        remarks.append(
            f"{_named(names)}: {', '.join(map(repr, words))} is taken for a value; add it to nulls if it means missing"
        )
    return ["", *(text for text in (*CERTAIN_NULLS, *LIKELY_NULLS) if text in found)]


def _named(names: Sequence[str]) -> str:
    return ("column " if len(names) == 1 else "columns ") + ", ".join(map(repr, names))


# ---- what a column holds ----


def facts_of(column: ColumnValues, settings: Settings) -> ColumnFacts:
    """What is known of a column, its text read as the settings say."""
    values, counts = column.given(settings.nulls if column.text else ())
    known, alone = int(counts.sum()), int(np.count_nonzero(counts == 1))
    step = -(-len(values) // SAMPLE) or 1
    kind, low, high = _read(column, values, settings)
    texts = [text_of(value) for value in values[::step]]
    lengths = [len(text) for text in texts]
    width = max(set(lengths), key=lengths.count) if lengths and kind in ("text", "whole") else 0
    dated = kind == "text" and bool(_formats([text_of(value) for value in values]))
    return ColumnFacts(column.name, kind, column.records, known, len(values), alone, texts, low, high, width, dated)


def _read(column: ColumnValues, values: Sequence[Any], settings: Settings) -> tuple[str, float, float]:
    """The kind of a column, and its least and largest number or day."""
    types, stored = pa.types, column.type
    if not values:
        return "nothing", math.nan, math.nan
    if types.is_boolean(stored):
        return "boolean", math.nan, math.nan
    if types.is_date(stored) or types.is_timestamp(stored):
        return "date", *_days(values)
    if types.is_integer(stored):
        return "whole", float(min(values)), float(max(values))
    if types.is_floating(stored) or types.is_decimal(stored):
        whole = all(isinstance(value, float | Decimal) and value == value // 1 for value in values)
        return "whole" if whole else "decimal", float(min(values)), float(max(values))
    if not types.is_string(stored):
        return "unusable", math.nan, math.nan
    decimal = settings.decimal or "."
    kind = _kind_of(values, decimal, settings.date_format)
    if kind == "date":
        moments = [_moment(text, settings.date_format) for text in values]
        return kind, *_days([moment for moment in moments if moment is not None])
    if kind in ("whole", "decimal"):
        numbers = [float(text.strip().replace(decimal, ".")) for text in values]
        return kind, min(numbers), max(numbers)
    return kind, math.nan, math.nan


def _kind_of(texts: Sequence[str], decimal: str, date_format: str | None) -> str:
    """whole, decimal, date or text; numbers with leading zeros are codes, which are text."""
    if date_format is not None and _are_dates(texts[:TRIED], date_format) and _are_dates(texts, date_format):
        return "date"
    if date_format is None and _are_iso(texts):
        return "date"
    if any(LEADING_ZERO.match(text.strip()) for text in texts):
        return "text"
    if _all(_WHOLE, texts):
        return "whole" if all(abs(int(text)) <= LARGEST_WHOLE for text in texts if len(text) > 18) else "text"
    if _all(_POINT if decimal == "." else _COMMA, texts):
        return "decimal" if all(math.isfinite(float(text.strip().replace(decimal, "."))) for text in texts) else "text"
    return "text"


def _days(moments: Sequence[datetime.date]) -> tuple[float, float]:
    days = [moment.toordinal() for moment in moments]
    return float(min(days)), float(max(days))


def _all(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return all(pattern.fullmatch(text.strip()) for text in texts)
