"""Columns that a policy derives from those of a table, before roles apply: ages, parts of dates, prefixes, groups.

They are made batch by batch wherever a table is read, so every engine and every study has them. Of a text file they are
text, like all its columns; of other tables they are whole numbers or text.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError, PolicyError
from sfumato.policy import Policy
from sfumato.policy.derive_settings import DatePart, TimeUnit
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.column_texts import column_texts, text_column
from sfumato.tables.coding.distinct_values import counted_noun
from sfumato.tables.coding.released_labels import DAY
from sfumato.tables.coding.written_dates import written_moment
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.periods import period_name
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.taxonomy_file import read_taxonomy

Mask = NDArray[np.bool_]
FIRST_DAY, LAST_DAY = ((day - datetime.date(1970, 1, 1)).days for day in (datetime.date.min, datetime.date.max))
NAMED_PARTS = {"year-month": "month", "year-quarter": "quarter"}  # the period that the part is the name of
MONTHS_OF_YEAR, DAYS_OF_WEEK = 12, 7
THURSDAY = 3  # the weekday of 1970-01-01, counted from Monday


class Fault(NamedTuple):
    """Records from which a column cannot be derived. what: continues "in 3 records,"; advice: what to do about it."""

    rows: Mask
    what: str
    advice: str


class Numbers(NamedTuple):
    """Whole numbers of records, which a text file gets as text."""

    values: NDArray[np.int64]
    missing: Mask


class Texts(NamedTuple):
    """Texts of records. codes: the position of each among ``texts``."""

    codes: NDArray[np.int64]
    texts: Sequence[str]
    missing: Mask


class Rule(Protocol):
    """How a column is derived."""

    @property
    def columns(self) -> Sequence[str]: ...

    @property
    def numeric(self) -> bool:
        """Whether it gives whole numbers; otherwise it gives texts."""
        ...

    def derive(self, columns: Sequence[pa.Array]) -> tuple[Numbers | Texts, list[Fault]]:
        """Return the column for a batch of the columns that it is made from, and what is wrong with the records."""
        ...


class DerivedSource:
    """A table whose own columns are followed by derived ones."""

    def __init__(self, source: Source, rules: dict[str, Rule]) -> None:
        self._source, self._rules = source, rules
        self.names = (*source.names, *rules)
        derived = {name: self._type(rule) for name, rule in rules.items()}
        self.types: dict[str, pa.DataType] = {**source.types, **derived}
        self.kind, self.text = source.kind, source.text

    @property
    def rows(self) -> int | None:
        return self._source.rows

    def _type(self, rule: Rule) -> pa.DataType:
        return pa.int64() if rule.numeric and not self._source.text else pa.string()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        read = [name for name in columns if name not in self._rules]
        read += [column for name in columns if name in self._rules for column in self._rules[name].columns]
        return map(partial(self._with_derived, columns), self._source.batches(list(dict.fromkeys(read))))

    def _with_derived(self, columns: Sequence[str], batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [self._derived(name, batch) if name in self._rules else batch.column(name) for name in columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _derived(self, name: str, batch: pa.RecordBatch) -> pa.Array:
        rule = self._rules[name]
        derived, faults = rule.derive([batch.column(column) for column in rule.columns])
        if any(fault.rows.any() for fault in faults):
            raise self._refusal(name, rule)
        if isinstance(derived, Texts):
            return text_column(*derived)
        if not self._source.text:
            return from_numpy(derived.values, derived.missing)
        different, codes = np.unique(derived.values, return_inverse=True)
        return text_column(codes, [str(number) for number in different.tolist()], derived.missing)

    def _refusal(self, name: str, rule: Rule) -> InputError:
        """Read the whole table again, and return the error for the first fault with the number of its records."""
        counts: dict[tuple[str, str], int] = {}
        first: dict[tuple[str, str], int] = {}
        start = 1
        for batch in self._source.batches(list(dict.fromkeys(rule.columns))):
            _, faults = rule.derive([batch.column(column) for column in rule.columns])
            for rows, *reason in faults:
                if rows.any():
                    key = (reason[0], reason[1])
                    counts[key] = counts.get(key, 0) + int(np.count_nonzero(rows))
                    first.setdefault(key, start + int(np.argmax(rows)))
            start += batch.num_rows
        what, advice = min(first, key=lambda key: first[key])
        records = counted_noun(counts[what, advice], "record")
        return InputError(
            f"the derived column {name!r}: in {records}, {what}; the first is record {first[what, advice]}. {advice}"
        )


def with_derived(source: Source, policy: Policy) -> Source:
    """Return a table with the columns that the policy derives. Refuses names that the table has, or lacks."""
    if not policy.derive:
        return source
    rules: dict[str, Rule] = {}
    for name, settings in policy.derive.items():
        if name in source.names:
            raise PolicyError(
                policy.origin.say(
                    f"the derived column {name!r} is a column of the table already. Choose another name.",
                    ("derive", name),
                )
            )
        for key, column in zip(("from", "to"), settings.columns, strict=False):
            if column not in source.names:
                where = policy.origin.place(("derive", name, key)) or f"the derived column {name!r}"
                raise PolicyError.unknown_column(column, where, source.names)
        reader = _Reader.of(source, policy, name)
        if settings.unit is not None:
            rules[name] = _TimeBetween(settings.columns, settings.unit, reader.of_dates(*settings.columns))
        elif settings.part is not None:
            rules[name] = _PartOfDate(settings.columns, settings.part, reader.of_dates(*settings.columns))
        elif settings.first is not None:
            rules[name] = _FirstCharacters(settings.columns, settings.first, reader)
        else:
            path = policy.groups_path(name)
            taxonomy = read_taxonomy(path, name)
            if settings.level >= taxonomy.top_level:
                highest = taxonomy.top_level - 1
                have = f"only the levels 1 to {highest}" if highest else "no groups"
                raise PolicyError(
                    policy.origin.say(
                        f"level of the derived column {name!r} is {settings.level}, but the taxonomy has {have} below "
                        "'*'. Choose another level, or add groups to the taxonomy.",
                        ("derive", name, "level"),
                    )
                )
            rules[name] = _GroupOfCode(settings.columns, taxonomy, settings.level, path.name, reader)
    return DerivedSource(source, rules)


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
class _Reader:
    """Reads the cells that a column is derived from."""

    name: str
    source: Source
    date_format: str | None
    null_tokens: frozenset[str]

    @classmethod
    def of(cls, source: Source, policy: Policy, name: str) -> _Reader:
        options = policy.input_options
        tokens = frozenset(options.nulls) if source.text or source.kind == "excel" else frozenset()
        return cls(name, source, options.date_format, tokens)

    def of_dates(self, *columns: str) -> _Reader:
        """Return this reader if the columns may hold dates."""
        for column in columns:
            kind = self.source.types[column]
            if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_string(kind)):
                raise InputError(
                    f"the derived column {self.name!r} needs dates, but the column {column!r} has the type {kind}. "
                    "Name a column of dates, or convert it to dates."
                )
        return self

    def texts(self, column: pa.Array) -> Texts:
        return Texts(*column_texts(column, self.null_tokens))

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

    def no_date(self, column: str, bad: Mask) -> Fault:
        form = "year-month-day" if self.date_format is None else self.date_format
        return Fault(
            bad,
            f"the value of {column!r} is not a date of the form {form}",
            "Correct the data, list the value in [input] nulls if it means 'missing', or set date_format.",
        )


@dataclass(frozen=True)
class _TimeBetween:
    """Full years, months or days between two dates."""

    columns: Sequence[str]
    unit: TimeUnit
    reader: _Reader
    numeric = True

    def derive(self, columns: Sequence[pa.Array]) -> tuple[Numbers, list[Fault]]:
        start, end = map(self.reader.dates, columns)
        missing = start.missing | end.missing
        usable = ~missing & ~start.bad & ~end.bad
        backwards = Fault(
            (end.days < start.days) & usable,
            f"{self.columns[1]!r} lies before {self.columns[0]!r}",
            "Exchange from and to, or correct the data.",
        )
        faults = [self.reader.no_date(name, dates.bad) for name, dates in zip(self.columns, (start, end), strict=True)]
        return Numbers(np.where(missing, 0, self._between(start, end)), missing), [*faults, backwards]

    def _between(self, start: _Dates, end: _Dates) -> NDArray[np.int64]:
        if self.unit == "days":
            return end.days - start.days
        # A month is full once its day has come; who was born on February 29 is a year older on March 1.
        months = end.months - start.months - (end.day_of_month < start.day_of_month)
        return months if self.unit == "months" else months // MONTHS_OF_YEAR


@dataclass(frozen=True)
class _PartOfDate:
    """A part of a date: a number, or the name of a period."""

    columns: Sequence[str]
    part: DatePart
    reader: _Reader

    @property
    def numeric(self) -> bool:
        return self.part not in NAMED_PARTS

    def derive(self, columns: Sequence[pa.Array]) -> tuple[Numbers | Texts, list[Fault]]:
        dates = self.reader.dates(columns[0])
        faults = [self.reader.no_date(self.columns[0], dates.bad)]
        months = dates.months
        month = months % MONTHS_OF_YEAR
        if self.part in NAMED_PARTS:
            size = 3 if self.part == "year-quarter" else 1
            different, codes = np.unique(months // size * size, return_inverse=True)
            return Texts(codes, [self._named(number) for number in different.tolist()], dates.missing), faults
        numbers: dict[str, Any] = {
            "year": months // MONTHS_OF_YEAR + 1970,
            "quarter": month // 3 + 1,
            "month": month + 1,
            "weekday": (dates.days + THURSDAY) % DAYS_OF_WEEK + 1,
        }
        return Numbers(numbers[self.part], dates.missing), faults

    def _named(self, months: int) -> str:
        year, month = divmod(months, MONTHS_OF_YEAR)
        name = period_name(NAMED_PARTS[self.part], datetime.date(1970 + year, month + 1, 1))
        assert name is not None
        return name


@dataclass(frozen=True)
class _FirstCharacters:
    """The first characters of a text."""

    columns: Sequence[str]
    length: int
    reader: _Reader
    numeric = False

    def derive(self, columns: Sequence[pa.Array]) -> tuple[Texts, list[Fault]]:
        codes, texts, missing = self.reader.texts(columns[0])
        return Texts(codes, [text[: self.length] for text in texts], missing), []


@dataclass(frozen=True)
class _GroupOfCode:
    """The group of a code in a taxonomy."""

    columns: Sequence[str]
    taxonomy: Taxonomy
    level: int
    file: str
    reader: _Reader
    numeric = False

    def derive(self, columns: Sequence[pa.Array]) -> tuple[Texts, list[Fault]]:
        codes, texts, missing = self.reader.texts(columns[0])
        code_of, labels = self.taxonomy.code_of_value, self.taxonomy.level_labels[self.level - 1]
        unknown = np.array([text not in code_of for text in texts] or [False], np.bool_)[codes] & ~missing
        fault = Fault(
            unknown,
            f"the value of {self.columns[0]!r} is not in the taxonomy {self.file!r}",
            "Add it to the taxonomy, or list it in [input] nulls if it means 'missing'.",
        )
        return Texts(codes, [labels[code_of[text]] if text in code_of else "" for text in texts], missing), [fault]
