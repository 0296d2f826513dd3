"""How a column is derived from others: a time between dates, a part of a date, first characters, the group of a code.

A rule gives the values of a batch, and the records from which nothing can be derived.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy import Policy
from sfumato.policy.column_settings import ReadyName
from sfumato.policy.derive_settings import DatePart, TimeUnit
from sfumato.tables.coding.arrow_arrays import to_numpy
from sfumato.tables.coding.column_texts import ColumnTexts, column_texts
from sfumato.tables.coding.released_labels import DAY
from sfumato.tables.coding.written_dates import written_moment
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.periods import period_name
from sfumato.taxonomies.ready import ready_taxonomy
from sfumato.taxonomies.taxonomy import Taxonomy

Mask = NDArray[np.bool_]
FIRST_DAY, LAST_DAY = ((day - datetime.date(1970, 1, 1)).days for day in (datetime.date.min, datetime.date.max))
NAMED_PARTS = {"year-month": "month", "year-quarter": "quarter"}  # the period that the part is the name of
MONTHS_OF_YEAR, DAYS_OF_WEEK = 12, 7
THURSDAY = 3  # the weekday of 1970-01-01, counted from Monday


class DerivationFault(NamedTuple):
    """Records from which a column cannot be derived. what: continues "in 3 records,"; advice: what to do about it."""

    rows: Mask
    what: str
    advice: str


class DerivedNumbers(NamedTuple):
    """Whole numbers of records, which a text file gets as text."""

    values: NDArray[np.int64]
    missing: Mask


class DerivationRule(Protocol):
    """How a column is derived."""

    @property
    def columns(self) -> Sequence[str]: ...

    @property
    def numeric(self) -> bool:
        """Whether it gives whole numbers; otherwise it gives texts."""
        ...

    def derive(self, columns: Sequence[pa.Array]) -> tuple[DerivedNumbers | ColumnTexts, list[DerivationFault]]:
        """Return the column for a batch of the columns that it is made from, and what is wrong with the records."""
        ...


class _Dates(NamedTuple):
    """The days of records since 1970. bad: records whose value is not a date."""

    days: NDArray[np.int64]
    missing: Mask
    bad: Mask

    @property
    def months(self) -> NDArray[np.int64]:
        """The months since January 1970."""
        return self.days.astype("M8[D]").astype("M8[M]").astype(np.int64)

    @property
    def day_of_month(self) -> NDArray[np.int64]:
        """The day of the month, counted from 0."""
        return self.days - self.months.astype("M8[M]").astype("M8[D]").astype(np.int64)


@dataclass(frozen=True)
class CellReader:
    """Reads the cells that a column is derived from."""

    name: str
    source: Source
    date_format: str | None
    null_tokens: frozenset[str]

    @classmethod
    def of(cls, source: Source, policy: Policy, name: str) -> CellReader:
        options = policy.input_options
        tokens = frozenset(options.nulls) if source.text or source.kind == "excel" else frozenset()
        return cls(name, source, options.date_format, tokens)

    def of_dates(self, *columns: str) -> CellReader:
        """Return this reader if the columns may hold dates."""
        for column in columns:
            kind = self.source.types[column]
            if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_string(kind)):
                raise InputError(
                    f"the derived column {self.name!r} needs dates, but the column {column!r} has the type {kind}. "
                    "Name a column of dates, or convert it to dates."
                )
        return self

    def texts(self, column: pa.Array) -> ColumnTexts:
        return column_texts(column, self.null_tokens)

    def dates(self, column: pa.Array) -> _Dates:
        if pa.types.is_dictionary(column.type):
            codes, texts, missing = self.texts(column)
            moments = [written_moment(text, self.date_format) for text in texts] or [None]
            days = np.array([0 if moment is None else moment // DAY for moment in moments], np.int64)[codes]
            bad = np.array([moment is None for moment in moments], np.bool_)[codes] & ~missing
            return _Dates(days, missing, bad)
        missing = to_numpy(column.is_null())
        if pa.types.is_timestamp(column.type):
            if column.type.tz is not None:
                column = self._local(column)  # a day is that of the column's time zone
            seconds = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
            days = to_numpy(column, 0) // (seconds * 86400)
        else:
            days = to_numpy(column.cast(pa.date32()), 0).astype(np.int64)
        bad = ((days < FIRST_DAY) | (days > LAST_DAY)) & ~missing
        return _Dates(np.where(bad | missing, 0, days), missing, bad)

    def _local(self, column: pa.Array) -> pa.Array:
        try:
            return pc.local_timestamp(column)
        except pa.ArrowInvalid:
            raise InputError(
                f"the derived column {self.name!r} needs a time zone that this machine does not know. Install its time "
                "zone data, or convert the column to UTC."
            ) from None

    def no_date(self, column: str, bad: Mask) -> DerivationFault:
        form = "year-month-day" if self.date_format is None else self.date_format
        return DerivationFault(
            bad,
            f"the value of {column!r} is not a date of the form {form}",
            "Correct the data, list the value in [input] nulls if it means 'missing', or set --date-format, or "
            "date_format in [input], which `sfumato policy` finds.",
        )


@dataclass(frozen=True)
class TimeBetween:
    """Full years, months or days between two dates."""

    columns: Sequence[str]
    unit: TimeUnit
    reader: CellReader
    numeric = True

    def derive(self, columns: Sequence[pa.Array]) -> tuple[DerivedNumbers, list[DerivationFault]]:
        start, end = map(self.reader.dates, columns)
        missing = start.missing | end.missing
        usable = ~missing & ~start.bad & ~end.bad
        backwards = DerivationFault(
            (end.days < start.days) & usable,
            f"{self.columns[1]!r} lies before {self.columns[0]!r}",
            "Exchange from and to, or correct the data.",
        )
        faults = [self.reader.no_date(name, dates.bad) for name, dates in zip(self.columns, (start, end), strict=True)]
        return DerivedNumbers(np.where(missing, 0, self._between(start, end)), missing), [*faults, backwards]

    def _between(self, start: _Dates, end: _Dates) -> NDArray[np.int64]:
        if self.unit == "days":
            return end.days - start.days
        # A month is full once its day has come; who was born on February 29 is a year older on March 1.
        months = end.months - start.months - (end.day_of_month < start.day_of_month)
        return months if self.unit == "months" else months // MONTHS_OF_YEAR


@dataclass(frozen=True)
class PartOfDate:
    """A part of a date: a number, or the name of a period."""

    columns: Sequence[str]
    part: DatePart
    reader: CellReader

    @property
    def numeric(self) -> bool:
        return self.part not in NAMED_PARTS

    def derive(self, columns: Sequence[pa.Array]) -> tuple[DerivedNumbers | ColumnTexts, list[DerivationFault]]:
        dates = self.reader.dates(columns[0])
        faults = [self.reader.no_date(self.columns[0], dates.bad)]
        months = dates.months
        month = months % MONTHS_OF_YEAR
        if self.part in NAMED_PARTS:
            size = 3 if self.part == "year-quarter" else 1
            different, codes = np.unique(months // size * size, return_inverse=True)
            return ColumnTexts(codes, [self._named(number) for number in different.tolist()], dates.missing), faults
        numbers: dict[str, Any] = {
            "year": months // MONTHS_OF_YEAR + 1970,
            "quarter": month // 3 + 1,
            "month": month + 1,
            "weekday": (dates.days + THURSDAY) % DAYS_OF_WEEK + 1,
        }
        return DerivedNumbers(numbers[self.part], dates.missing), faults

    def _named(self, months: int) -> str:
        year, month = divmod(months, MONTHS_OF_YEAR)
        name = period_name(NAMED_PARTS[self.part], datetime.date(1970 + year, month + 1, 1))
        assert name is not None
        return name


@dataclass(frozen=True)
class FirstCharacters:
    """The first characters of a text."""

    columns: Sequence[str]
    length: int
    reader: CellReader
    numeric = False

    def derive(self, columns: Sequence[pa.Array]) -> tuple[ColumnTexts, list[DerivationFault]]:
        codes, texts, missing = self.reader.texts(columns[0])
        return ColumnTexts(codes, [text[: self.length] for text in texts], missing), []


@dataclass(frozen=True)
class GroupOfCode:
    """The group of a code in a taxonomy."""

    columns: Sequence[str]
    taxonomy: Taxonomy
    level: int
    file: str
    reader: CellReader
    numeric = False

    def derive(self, columns: Sequence[pa.Array]) -> tuple[ColumnTexts, list[DerivationFault]]:
        codes, texts, missing = self.reader.texts(columns[0])
        code_of, labels = self.taxonomy.code_of_value, self.taxonomy.level_labels[self.level - 1]
        groups = {text: labels[code_of[text]] for text in texts if text in code_of}
        fault = DerivationFault(
            _without_group(codes, texts, missing, groups),
            f"the value of {self.columns[0]!r} is not in the taxonomy {self.file!r}",
            "Add it to the taxonomy, or list it in [input] nulls if it means 'missing'.",
        )
        return ColumnTexts(codes, [groups.get(text, "") for text in texts], missing), [fault]


@dataclass(frozen=True)
class GroupOfReady:
    """The group of a value in a ready-made taxonomy."""

    columns: Sequence[str]
    name: ReadyName
    level: int
    reader: CellReader
    numeric = False

    def derive(self, columns: Sequence[pa.Array]) -> tuple[ColumnTexts, list[DerivationFault]]:
        codes, texts, missing = self.reader.texts(columns[0])
        ready = ready_taxonomy(self.name).rows(texts)
        outside, rows = set(ready.outside), ready.rows
        groups = {
            text: group
            for text, group in zip(rows.leaves, rows.levels[self.level - 1], strict=True)
            if text not in outside
        }
        fault = DerivationFault(
            _without_group(codes, texts, missing, groups),
            f"the value of {self.columns[0]!r} is not in the ready-made taxonomy {self.name!r}",
            "Correct the data, list the value in [input] nulls if it means 'missing', or use groups of a file.",
        )
        return ColumnTexts(codes, [groups.get(text, "") for text in texts], missing), [fault]


def _without_group(codes: NDArray[np.int64], texts: Sequence[str], missing: Mask, groups: Mapping[str, str]) -> Mask:
    """Return the records that have a value and no group."""
    unknown = np.array([text not in groups for text in texts] or [False], np.bool_)
    return unknown[codes] & ~missing
