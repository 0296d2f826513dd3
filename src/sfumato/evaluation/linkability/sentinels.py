"""Sentinels: values such as -999 or 9999-12-31 that stand for "missing" in a column of numbers or dates.

Read as a value, a sentinel stretches the range of its column, and with it every released range. Only the values of the
fixed lists below are ever suspected, so that a message may show them. They are reported and never acted upon.
"""

from __future__ import annotations

import datetime
import json
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.evaluation.linkability.column_facts import ColumnValues, TextSettings, moment_of
from sfumato.tables.coding.unread_numbers import unread_numbers
from sfumato.tables.coding.value_order import text_of

NUMBERS = frozenset([-1, *(sign * int(digit * length) for sign in (1, -1) for digit in "89" for length in range(2, 9))])
DATES = frozenset(
    datetime.date(*day)
    for day in (
        *((1, 1, 1), (1111, 11, 11), (1582, 10, 15), (1753, 1, 1), (1800, 1, 1), (1899, 12, 30), (1899, 12, 31)),
        *((1900, 1, 1), (1901, 1, 1), (1970, 1, 1), (2099, 12, 31), (2999, 12, 31), (9999, 1, 1), (9999, 12, 31)),
    )
)
LAST_SECOND = 1 - 1 / 86_400  # of a day, which some exports add to a date
DAYS = frozenset(day.toordinal() + part for day in DATES for part in (0, LAST_SECOND))
FEWEST = 2  # other values, which have a range


@dataclass(frozen=True)
class Sentinel:
    """A value of the lists that may mean "missing". text: as the column writes it."""

    column: str
    text: str
    records: int
    reason: str

    @property
    def sentence(self) -> str:
        """What to check, and the flag or the line of the policy that would make the value null."""
        times = "1 record has" if self.records == 1 else f"{self.records:,} records have"
        return (
            f"column {self.column!r}: {times} {self.text}, which {self.reason}. If it means that the value is missing, "
            f"add --column-null {shlex.quote(f'{self.column}={self.text}')}, or nulls = [{json.dumps(self.text)}] to "
            f"[columns.{_key(self.column)}]; if not, leave it"
        )


def suspected_sentinels(column: ColumnValues, settings: TextSettings) -> list[Sentinel]:
    """Return the values of a column that are sentinels by the lists and by how far they lie from the other values."""
    values, counts = column.known(settings)
    numbers, dates = _numbers(column, values, settings)
    if not numbers:
        return []
    listed = DAYS if dates else NUMBERS
    records: dict[float, int] = {}
    texts: dict[float, str] = {}
    for number, value, count in zip(numbers, values, counts.tolist(), strict=True):
        records[number] = records.get(number, 0) + count
        texts.setdefault(number, text_of(value))
    others = [number for number in records if number not in listed]
    if len(others) < FEWEST:
        return []
    suspected = []
    for number in sorted(set(records) & listed):
        reason = _reason(number, records, others, dates=dates)
        if reason is not None:
            suspected.append(Sentinel(column.name, texts[number], records[number], reason))
    return suspected


def reading_remarks(
    column: ColumnValues, settings: TextSettings, place_of_text: Callable[[Collection[str]], str] | None = None
) -> list[str]:
    """Return what to check about how a column is read: suspected sentinels, and numbers that are taken for text.

    place_of_text: returns where the first of some texts is.
    """
    remarks = [sentinel.sentence for sentinel in suspected_sentinels(column, settings)]
    texts = [value for value in column.known(settings)[0] if isinstance(value, str)]
    if not column.text or not texts or column.kind_of_text(settings) == "date":
        return remarks
    found = unread_numbers(texts, settings.numbers)
    if found is not None:
        place = place_of_text(found.others) if found.others and place_of_text is not None else None
        remarks.append(found.sentence(column.name, settings.numbers, place).removesuffix("."))
    return remarks


def _reason(value: float, records: Mapping[float, int], others: Sequence[float], *, dates: bool) -> str | None:
    """Return why a listed value is suspected beside the other values of its column, or None."""
    low, high = min(others), max(others)
    gap = low - value if value < low else value - high
    if gap <= 0:
        return None
    if gap > high - low:
        return "is farther from all other values than these are from each other"
    if not dates and value < 0 <= low:
        return "is negative, and no other value is"
    if dates and records[value] > max(records[other] for other in others):
        return f"is the {'first' if value < low else 'last'} date and the most frequent one"
    return None


def _numbers(column: ColumnValues, values: Sequence[Any], settings: TextSettings) -> tuple[list[float], bool]:
    """Return the values as numbers, or dates as numbers of days, and whether they are dates; nothing for other text."""
    types, kind = pa.types, column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return [float(value) for value in values], False
    if types.is_date(kind) or types.is_timestamp(kind):
        # Moments in nanoseconds come as text.
        moments = [moment_of(value, None) if isinstance(value, str) else value for value in values]
    elif not types.is_string(kind) or not values:
        return [], False
    else:
        meaning = column.kind_of_text(settings)
        if meaning in ("whole", "decimal"):
            return [float(settings.numbers.plain(text)) for text in values], False
        moments = [moment_of(text, settings.date_format) for text in values] if meaning == "date" else []
    return [_day(moment) for moment in moments if moment is not None], True


def _day(moment: datetime.date) -> float:
    """Return the number of a day, with the time as a part of it: a message may show a day of the list, and no time."""
    if not isinstance(moment, datetime.datetime):
        return moment.toordinal()
    seconds = 3600 * moment.hour + 60 * moment.minute + moment.second + moment.microsecond / 1_000_000
    return moment.toordinal() + seconds / 86_400


def _key(name: str) -> str:
    """Return a name as a key of TOML."""
    bare = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if bare else json.dumps(name, ensure_ascii=False)
