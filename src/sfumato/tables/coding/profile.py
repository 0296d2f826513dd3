"""From a source to domains and codes: which values each quasi-identifier has, and the table in those codes.

Two passes over batches, so that a table larger than memory takes the same way: the first collects the distinct values
(``Profiler.add``), ``Profiler.finish`` decides what they are (number, date, category) and builds the domain, the second
turns batches into codes (``Encoder.encode``).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError, TaxonomyError
from sfumato.kernels.threads import in_threads
from sfumato.policy import ColumnSettings, Grouping
from sfumato.progress import Progress
from sfumato.tables.coding.distinct_values import (
    DAY,
    EPOCH,
    DistinctNumbers,
    DistinctTexts,
    Numbers,
    counted_noun,
    distinct_values_of,
    refuse_infinities,
    too_large,
)
from sfumato.tables.coding.domains import WHOLE, CategoricalDomain, Domain, NumericDomain
from sfumato.tables.sources.source import InputOptions, Source
from sfumato.taxonomies.derived_taxonomies import flat, prefix
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.widening import Calendar, Intervals, RoundingGrid, Snap

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)|nan", re.IGNORECASE)
INTEGER = re.compile(r"[+-]?\d+")
LEADING_ZERO = re.compile(r"[+-]?0\d")


# The batches of the column once more, to find the first record that holds a bad value.
Again = Callable[[], Iterable[pa.Array]]


@dataclass(frozen=True)
class Encoder:
    """Turns batches of one quasi-identifier into the codes of its domain."""

    domain: Domain
    _raw: DistinctTexts | DistinctNumbers
    _codes: NDArray[np.uint32]  # by raw position; the last entry is the code of null

    def encode(self, column: pa.Array) -> NDArray[np.uint32]:
        return self._codes[self._raw.positions(column)]


class Profiler:
    """Collects the values of one quasi-identifier and decides what they are."""

    def __init__(
        self,
        name: str,
        source_type: pa.DataType,
        column: ColumnSettings,
        options: InputOptions,
        *,
        text: bool,
        null_tokens: frozenset[str],
        taxonomy: Taxonomy | None,
    ) -> None:
        self._name, self._column, self._options, self._text = name, column, options, text
        self._given_taxonomy, self._null_tokens = taxonomy, null_tokens
        self._raw = distinct_values_of(name, source_type)

    def add(self, column: pa.Array) -> None:
        self._raw.add(column)

    def finish(self, again: Again) -> Encoder:
        """The domain of all values seen, and the encoder for it."""
        self._again = again
        return self._from_numbers(self._raw) if isinstance(self._raw, DistinctNumbers) else self._from_texts(self._raw)

    def _from_numbers(self, raw: DistinctNumbers) -> Encoder:
        values, kind, has_null = raw.finish(), raw.kind, raw.has_null
        given = np.ones(len(values), np.bool_)
        if self._categorical() or self._null_tokens:
            texts = NumericDomain(self._name, values, has_null, kind).texts(values).to_pylist()
            if self._categorical():
                return self._categories(raw, texts, has_null)
            given = np.array([text not in self._null_tokens for text in texts], np.bool_)
            has_null = has_null or not given.all()
        if kind == "moment" and (self._snaps("calendar") or not np.any(values % DAY)):
            values, kind = values // DAY, "date"
        self._check_type(kind)
        kept = np.unique(values[given])
        codes = np.where(given, np.searchsorted(kept, values), len(kept))
        return Encoder(self._ordered(kept, has_null, kind), raw, np.append(codes, len(kept)).astype(np.uint32))

    def _from_texts(self, raw: DistinctTexts) -> Encoder:
        texts = raw.values
        null = [text in self._null_tokens for text in texts]
        has_null = raw.has_null or any(null)
        given = [text for text, missing in zip(texts, null, strict=True) if not missing]
        kind = "categorical" if self._categorical() else self._column.implied_type or self._infer(given)
        if kind == "categorical" and given:
            return self._categories(raw, texts, has_null)
        read = self._read_numbers if kind == "numeric" or not given else self._read_moments
        numbers = read(given)
        missing = np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros(len(numbers), np.bool_)
        has_null = has_null or bool(missing.any())
        if kind == "date" and (self._snaps("calendar") or not np.any(numbers % DAY)):
            numbers //= DAY
        elif kind == "date":
            kind = "moment"
        values = np.unique(numbers[~missing])
        codes = np.full(len(texts) + 1, len(values), np.uint32)
        codes[:-1][~np.array(null, np.bool_)] = np.where(missing, len(values), np.searchsorted(values, numbers))
        return Encoder(self._ordered(values, has_null, kind), raw, codes)

    def _ordered(self, values: Numbers, has_null: bool, kind: str) -> NumericDomain:
        snap = self._snap(kind)
        if snap is not None:
            snap.check(values.dtype.kind == "i")
        return NumericDomain(self._name, values, has_null, kind, snap)

    def _categories(self, raw: DistinctTexts | DistinctNumbers, texts: list[str], has_null: bool) -> Encoder:
        given = [text for text in texts if text not in self._null_tokens]
        if WHOLE in given:
            raise InputError(
                f"column {self._name!r} holds the value '*', which a release uses for 'any value'. "
                "Replace it, or list it in [input] nulls if it means that the value is missing."
            )
        taxonomy = self._taxonomy(given)
        leaf = {text: code for code, text in enumerate(taxonomy.leaves)}
        outside = [place for place, text in enumerate(texts) if text not in leaf and text not in self._null_tokens]
        if outside:
            raise TaxonomyError(
                f"column {self._name!r}: {counted_noun(len(outside), 'distinct value')} not in the taxonomy "
                f"{self._column.taxonomy_file}; the first is in record {self._first_record(outside)}. "
                "Add the leaves to the taxonomy, or list them in [input] nulls if they mean that the value is missing."
            )
        null = len(taxonomy.leaves)
        codes = [null if text in self._null_tokens else leaf[text] for text in texts]
        domain = CategoricalDomain(self._name, taxonomy, has_null)
        return Encoder(domain, raw, np.array([*codes, null], np.uint32))

    def _taxonomy(self, given: list[str]) -> Taxonomy:
        if self._given_taxonomy is not None:
            return self._given_taxonomy
        rule = self._column.taxonomy
        if isinstance(rule, Grouping) and rule.prefix is not None:
            return prefix(given, rule.prefix, self._name)
        return flat(given, self._name)

    def _categorical(self) -> bool:
        return (
            self._column.type == "categorical"
            or self._column.taxonomy == "flat"
            or self._given_taxonomy is not None
            or self._snaps("prefix")
        )

    def _snaps(self, how: str) -> bool:
        return getattr(self._column.taxonomy, how, None) is not None

    def _snap(self, kind: str) -> Snap | None:
        for how, needed in (("intervals", "numeric"), ("calendar", "date")):
            if self._snaps(how):
                self._check_type(kind, needed, how)
        if self._column.round is not None:
            self._check_type(kind, "numeric", "round")
        return snap_of(self._name, self._column)

    def _check_type(self, kind: str, needed: str | None = None, reason: str = "type") -> None:
        wanted = needed or self._column.type
        if wanted is not None and wanted != ("date" if kind == "moment" else kind):
            raise InputError(
                f"column {self._name!r} is asked to be {wanted} ({reason}) but holds {kind} values. Change its policy."
            )

    def _infer(self, texts: list[str]) -> str:
        """What unmarked text is: numbers only if every value is one, and none is a code such as 007."""
        if not self._text:
            return "categorical"
        if self._options.date_format is None and all(
            NUMBER.fullmatch(self._plain(text)) and not LEADING_ZERO.match(text.strip()) for text in texts
        ):
            return "numeric"
        if all(self._moment(text) is not None for text in texts):
            return "date"
        if all(NUMBER.fullmatch(self._plain(text)) and not LEADING_ZERO.match(text.strip()) for text in texts):
            return "numeric"
        return "categorical"

    def _plain(self, text: str) -> str:
        """The number with a decimal point; a point where the policy says comma makes it no number."""
        text = text.strip()
        return text if self._options.decimal == "." else text.replace(".", "x").replace(",", ".")

    def _read_numbers(self, texts: list[str]) -> Numbers:
        plain = [self._plain(text) for text in texts]
        bad = [text for text, number in zip(texts, plain, strict=True) if not NUMBER.fullmatch(number)]
        self._refuse(bad, "is not a number", "are not numbers")
        if all(INTEGER.fullmatch(number) for number in plain):
            try:
                return np.array([int(number) for number in plain], np.int64)
            except OverflowError:  # as floats they would be released as numbers that nobody has
                raise too_large(self._name) from None
        numbers = np.array([float(number) for number in plain], np.float64)
        refuse_infinities(self._name, numbers)
        return numbers

    def _read_moments(self, texts: list[str]) -> NDArray[np.int64]:
        moments = [self._moment(text) for text in texts]
        form = self._options.date_format or "year-month-day"
        bad = [text for text, moment in zip(texts, moments, strict=True) if moment is None]
        self._refuse(bad, f"is not a date of the form {form}", f"are not dates of the form {form}")
        return np.array(moments, np.int64)

    def _moment(self, text: str) -> int | None:
        """Microseconds since 1970, none for text that is not a date."""
        text = text.strip()
        try:
            if self._options.date_format is not None:
                moment = datetime.datetime.strptime(text, self._options.date_format)
            elif re.match(r"\d{4}-\d\d-\d\d", text):
                moment = datetime.datetime.fromisoformat(text)
            else:
                return None
        except ValueError:
            return None
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        return (moment - EPOCH) // datetime.timedelta(microseconds=1)

    def _refuse(self, bad: list[str], one: str, many: str) -> None:
        if bad:
            what = f"1 distinct value {one}" if len(bad) == 1 else f"{len(bad):,} distinct values {many}"
            assert isinstance(self._raw, DistinctTexts)
            places = (place for place, text in enumerate(self._raw.values) if text in bad)
            raise InputError(
                f"column {self._name!r}: {what}; the first is in record {self._first_record(places)}. "
                "Correct the data, list it in [input] nulls if it means 'missing', or give the column another type."
            )

    def _first_record(self, places: Iterable[int]) -> int:
        """The first record, counted from 1, that holds one of the raw values at these places."""
        wanted, start = np.fromiter(places, np.int64), 1
        for chunk in self._again():
            found = np.flatnonzero(np.isin(self._raw.positions(chunk), wanted))
            if found.size:
                return start + int(found[0])
            start += len(chunk)
        raise AssertionError("a value that was collected is in none of the batches")


def snap_of(name: str, column: ColumnSettings) -> Snap | None:
    """How released ranges of a column are widened; none where they are not."""
    rule = column.taxonomy
    if isinstance(rule, Grouping) and rule.intervals is not None:
        return Intervals(rule.intervals, column=name)
    if isinstance(rule, Grouping) and rule.calendar is not None:
        return Calendar(rule.calendar, column=name)
    return None if column.round is None else RoundingGrid(column.round, column=name)


def profile_column(
    source: Source,
    name: str,
    values: pa.ChunkedArray,
    column: ColumnSettings,
    options: InputOptions,
    taxonomy: Taxonomy | None,
) -> Encoder:
    """The domain of a column of a source that was read; ``column`` is what a policy says of it."""
    profiler = profiler_of(source, name, column, options, taxonomy)
    for chunk in values.chunks:
        profiler.add(chunk)
    return profiler.finish(lambda: values.chunks)


def profiler_of(
    source: Source, name: str, column: ColumnSettings, options: InputOptions, taxonomy: Taxonomy | None
) -> Profiler:
    """What collects the values of a column of a source; ``column`` is what a policy says of it."""
    tokens = frozenset(options.nulls) if source.text or source.kind == "excel" else frozenset()
    return Profiler(name, source.types[name], column, options, text=source.text, null_tokens=tokens, taxonomy=taxonomy)


def profile_source(
    source: Source,
    columns: Mapping[str, ColumnSettings],
    options: InputOptions,
    taxonomies: Mapping[str, Taxonomy],
    progress: Progress,
) -> tuple[list[Encoder], int]:
    """The domains of some columns of a source, and how many records it has; no more than a batch is in memory."""
    profilers = {
        name: profiler_of(source, name, column, options, taxonomies.get(name)) for name, column in columns.items()
    }

    def again(name: str) -> Iterator[pa.Array]:
        return (batch.column(0) for batch in source.batches([name]))

    records = 0
    with progress.phase("profile", source.rows):
        for batch in source.batches(list(profilers)):
            in_threads(partial(add_column, batch, profilers), list(profilers))
            records += batch.num_rows
            progress.advance(batch.num_rows)
        return [profiler.finish(partial(again, name)) for name, profiler in profilers.items()], records


class Collector(Protocol):
    """What collects the values of a column."""

    def add(self, column: pa.Array) -> None: ...


def add_column(batch: pa.RecordBatch, profilers: Mapping[str, Collector], name: str) -> None:
    """Give one column of a batch to what collects its values."""
    profilers[name].add(batch.column(name))
