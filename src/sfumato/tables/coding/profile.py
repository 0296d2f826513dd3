"""Profile the quasi-identifiers of a source: find their values, build their domains, and encode the table.

There are two passes over batches, so that tables larger than memory follow the same path. The first pass collects the
distinct values (``Profiler.add``); ``Profiler.finish`` decides what they are (number, date, category) and builds the
domain. The second pass turns batches into codes (``Encoder.encode``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError, PolicyError, ReadingWarning
from sfumato.kernels.threads import in_threads
from sfumato.policy import ColumnSettings, Grouping, InputOptions
from sfumato.progress import Progress
from sfumato.tables.coding.distinct_values import (
    DAY,
    DistinctNumbers,
    DistinctTexts,
    Numbers,
    counted_noun,
    distinct_values_of,
    merged_numbers,
    refuse_infinities,
    too_large,
)
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.tables.coding.number_text import INTEGER, NUMBER, NumberForm
from sfumato.tables.coding.outside_taxonomy import OutsideTaxonomyError, or_problem, problem_of, without_problems
from sfumato.tables.coding.released_labels import WHOLE, local_microseconds
from sfumato.tables.coding.scaled_integers import INTEGER_DIGITS, MOST_DIGITS, rescaled
from sfumato.tables.coding.unread_numbers import unread_numbers
from sfumato.tables.coding.written_dates import written_moment
from sfumato.tables.sources.source import Source, place_of
from sfumato.taxonomies.derived_taxonomies import flat, prefix
from sfumato.taxonomies.ready import ready_taxonomy
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.widening import Calendar, Intervals, RoundingGrid, Snap

CATEGORY_BYTES = 300  # that a taxonomy takes for a leaf

# Reads the batches of the column again, to find the first record that holds a bad value.
ReadAgain = Callable[[], Iterable[pa.Array]]


@dataclass(frozen=True)
class Encoder:
    """Turns batches of one quasi-identifier into the codes of its domain."""

    domain: Domain
    _distinct: DistinctTexts | DistinctNumbers
    _codes: NDArray[np.uint32]  # by position among the distinct values; the last entry is the code of null

    @property
    def nbytes(self) -> int:
        """The bytes that finding the codes takes."""
        return self._distinct.nbytes + self._codes.nbytes

    def encode(self, column: pa.Array) -> NDArray[np.uint32]:
        return self._distinct.looked_up(self._codes, column)


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
        place_of: Callable[[int], str] | None,
        distinct: DistinctTexts | None = None,
    ) -> None:
        self._place_of = place_of
        self._name, self._column, self._options, self._text = name, column, options, text
        self._taxonomy_from_file, self._null_tokens = taxonomy, null_tokens
        self._numbers = NumberForm(options.decimal, options.thousands)
        self._distinct = distinct_values_of(name, source_type) if distinct is None else distinct

    def add(self, column: pa.Array) -> None:
        self._distinct.add(column)

    @property
    def count(self) -> int:
        return self._distinct.count

    @property
    def bytes_to_finish(self) -> int:
        categories = self.count if self._categorical() or self._are_words() else 0
        return self._distinct.bytes_to_finish + categories * CATEGORY_BYTES

    def _are_words(self) -> bool:
        """Whether the first text is neither a number nor a date, so that the column will be categorical."""
        if not isinstance(self._distinct, DistinctTexts) or self._column.implied_type in ("numeric", "date"):
            return False
        return self._infer(self._distinct.first_values) == "categorical"

    def finish(self, read_again: ReadAgain) -> Encoder:
        """Build the domain of all collected values, and return its encoder."""
        self._read_again = read_again
        if isinstance(self._distinct, DistinctNumbers):
            return self._from_numbers(self._distinct)
        return self._from_texts(self._distinct)

    def _from_numbers(self, distinct: DistinctNumbers) -> Encoder:
        values, kind, has_null = distinct.finish(), distinct.kind, distinct.has_null
        known = np.ones(len(values), np.bool_)
        scale, bound_type = distinct.scale, self._bound_type(distinct)
        if self._categorical() or self._null_tokens:
            domain = NumericDomain(self._name, values, has_null, kind, scale=scale, bound_type=bound_type)
            texts = domain.texts(values).to_pylist()
            if self._categorical():
                return self._categories(distinct, texts, has_null)
            known = np.array([text not in self._null_tokens for text in texts], np.bool_)
            has_null = has_null or not known.all()
        if kind == "moment":
            zone, day = distinct.source_type.tz, DAY * 10**scale
            if self._has_grouping("calendar"):
                # The days of a calendar are those of the column's time zone.
                values = values // day if zone is None else local_microseconds(values // 10**scale, zone) // DAY
                kind, scale, bound_type = "date", 0, None
            elif zone is None and not np.any(values % day):
                values, kind, scale, bound_type = values // day, "date", 0, None
        self._check_type(kind)
        values = self._clipped(values, kind, scale)
        kept = merged_numbers([values[known]])
        codes = np.full(len(values) + 1, len(kept), np.uint32)
        codes[:-1][known] = np.searchsorted(kept, values[known])
        return self._encoder(self._ordered(kept, has_null, kind, scale, bound_type), distinct, codes)

    def _bound_type(self, distinct: DistinctNumbers) -> pa.DataType | None:
        """Return the type of released bounds, where the kind of the column does not say it."""
        stored = distinct.source_type
        if pa.types.is_decimal(stored):
            snap = self._snap("numeric")
            if snap is None:
                return stored
            # A bound that is rounded outward may have more digits than the type of the column.
            places = max(distinct.scale, snap.places, min(stored.scale, MOST_DIGITS - INTEGER_DIGITS))
            return pa.decimal128(MOST_DIGITS, places if stored.scale > 0 else 0)
        if distinct.kind == "moment" and (distinct.scale or stored.tz is not None):
            if stored.tz is not None:
                self._check_zone(stored.tz)
            return pa.timestamp("ns" if distinct.scale else "us", stored.tz)
        return None

    def _check_zone(self, zone: str) -> None:
        try:
            local_microseconds(np.zeros(1, np.int64), zone)
        except pa.ArrowInvalid:
            raise InputError(
                f"column {self._name!r} has a time zone that this machine does not know. Install its time zone data, "
                "or convert the column to UTC."
            ) from None

    def _from_texts(self, distinct: DistinctTexts) -> Encoder:
        texts = distinct.values
        null = [text in self._null_tokens for text in texts]
        has_null = distinct.has_null or any(null)
        known = [text for text, missing in zip(texts, null, strict=True) if not missing]
        kind = "categorical" if self._categorical() else self._column.implied_type or self._infer(known)
        if kind == "categorical" and known:
            self._warn_of_numbers(known)
            return self._categories(distinct, texts, has_null)
        read = self._read_numbers if kind == "numeric" or not known else self._read_moments
        numbers = read(known)
        missing = np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros(len(numbers), np.bool_)
        has_null = has_null or bool(missing.any())
        if kind == "date" and (self._has_grouping("calendar") or not np.any(numbers % DAY)):
            numbers //= DAY
        elif kind == "date":
            kind = "moment"
        numbers = self._clipped(numbers, kind)
        values = merged_numbers([numbers[~missing]])
        codes = np.full(len(texts) + 1, len(values), np.uint32)
        codes[:-1][~np.array(null, np.bool_)] = np.where(missing, len(values), np.searchsorted(values, numbers))
        return self._encoder(self._ordered(values, has_null, kind), distinct, codes)

    def _encoder(
        self, domain: NumericDomain, distinct: DistinctTexts | DistinctNumbers, codes: NDArray[np.uint32]
    ) -> Encoder:
        """Return the encoder of a domain of values, whose codes are the cells of the finest level that may be shown."""
        finest, coarsest = self._levels(domain.top_level)
        if finest == 0 and coarsest is None:
            return Encoder(domain, distinct, codes)
        assert domain.snap is not None
        highest = max(finest, coarsest or 0)
        scale = domain.scale if domain.is_decimal else None
        if domain.snap.snap(domain.values, domain.values, domain.is_whole, scale, finest=highest).whole.any():
            raise InputError(
                f"column {self._name!r} has values that are in no interval or period of its policy: they are too "
                "large, or too early for a whole decade. Set top or bottom, or choose other levels."
            )
        cells, cell_of = replace(domain, coarsest=coarsest).at_level(finest)
        # Without null, the last code stands for nothing.
        return Encoder(cells, distinct, np.append(cell_of, cells.size).astype(np.uint32)[codes])

    def _levels(self, top_level: int) -> tuple[int, int | None]:
        """Return the finest and the coarsest level that may be shown. No coarsest level means ``*``."""
        finest, coarsest = self._column.levels(self._name, top_level)
        return finest, None if coarsest == top_level else coarsest

    def _clipped(self, values: Numbers, kind: str, scale: int = 0) -> Numbers:
        """Make what lies below the bottom equal to it, and what lies above the top equal to that."""
        column = self._column
        if column.bottom is None and column.top is None:
            return values
        self._check_type(kind, "numeric", "bottom" if column.top is None else "top")
        return np.clip(values, *ends_of(self._name, column, values.dtype.kind == "i", scale))

    def _ordered(
        self, values: Numbers, has_null: bool, kind: str, scale: int = 0, bound_type: pa.DataType | None = None
    ) -> NumericDomain:
        snap = self._snap(kind)
        if snap is not None and kind == "numeric" and bound_type is not None:
            try:
                values, scale = rescaled(values, max(snap.places - scale, 0)), max(snap.places, scale)
            except OverflowError:
                raise too_large(self._name) from None
        ends = ends_of(self._name, self._column, values.dtype.kind == "i", scale)
        domain = NumericDomain(self._name, values, has_null, kind, snap, scale, bound_type, *ends)
        if snap is not None:
            snap.check(domain.is_whole, scale if domain.is_decimal else None)
        return domain

    def _categories(self, distinct: DistinctTexts | DistinctNumbers, texts: list[str], has_null: bool) -> Encoder:
        if self._column.form not in (None, "labels"):
            raise InputError(
                f"the policy wants the column {self._name!r} in the form {self._column.form!r}, which is for numbers "
                "and dates, but it holds categorical values. Change its form, or set its type if it holds numbers or "
                "dates as text."
            )
        known = [text for text in texts if text not in self._null_tokens]
        if WHOLE in known:
            raise InputError(
                f"column {self._name!r} holds the value '*', which a release uses for 'any value'. "
                "Replace it, or list it in [input] nulls if it means that the value is missing."
            )
        taxonomy = self._taxonomy(known)
        finest, coarsest = self._levels(taxonomy.top_level)
        if finest or coarsest is not None:
            taxonomy = taxonomy.cut(finest, coarsest)
        leaf = taxonomy.code_of_value
        outside = [index for index, text in enumerate(texts) if text not in leaf and text not in self._null_tokens]
        if outside:
            raise self._outside(outside, known)
        null = len(taxonomy.leaves)
        codes = [null if text in self._null_tokens else leaf[text] for text in texts]
        domain = CategoricalDomain(self._name, taxonomy, has_null, coarsest=coarsest)
        return Encoder(domain, distinct, np.array([*codes, null], np.uint32))

    def _outside(self, positions: list[int], known: list[str]) -> OutsideTaxonomyError:
        values = f"{counted_noun(len(positions), 'distinct value')} {'is' if len(positions) == 1 else 'are'}"
        name, file, remark = self._column.ready_name, self._column.taxonomy_file or "", ""
        taxonomy, check = f"the taxonomy {file}", ["--check", file]
        if name is not None:
            ready = ready_taxonomy(name).rows(known)
            taxonomy, check, remark = f"the ready-made taxonomy {name!r}", ["--ready", name], ready.explanation
        return OutsideTaxonomyError(
            problem_of(self._name, values, taxonomy, self._first_place(positions), check, remark)
        )

    def _taxonomy(self, values: list[str]) -> Taxonomy:
        if self._taxonomy_from_file is not None:
            return self._taxonomy_from_file
        if self._column.ready_name is not None:
            return ready_taxonomy(self._column.ready_name).rows(values).rows.taxonomy(self._name)
        grouping = self._column.taxonomy
        if isinstance(grouping, Grouping) and grouping.prefix is not None:
            return prefix(values, grouping.prefix, self._name)
        return flat(values, self._name)

    def _categorical(self) -> bool:
        return (
            self._column.type == "categorical"
            or self._column.taxonomy == "flat"
            or self._taxonomy_from_file is not None
            or self._has_grouping("prefix")
            or self._has_grouping("ready")
        )

    def _has_grouping(self, key: str) -> bool:
        return getattr(self._column.taxonomy, key, None) is not None

    def _snap(self, kind: str) -> Snap | None:
        for key, needed in (("intervals", "numeric"), ("calendar", "date")):
            if self._has_grouping(key):
                self._check_type(kind, needed, key)
        if self._column.round is not None:
            self._check_type(kind, "numeric", "round")
        return snap_of(self._name, self._column)

    def _check_type(self, kind: str, needed: str | None = None, reason: str = "type") -> None:
        wanted = needed or self._column.type
        if wanted is not None and wanted != ("date" if kind == "moment" else kind):
            raise InputError(
                f"the policy wants the column {self._name!r} to be {wanted} ({reason}), but it holds {kind} values. "
                "Change the policy of the column."
            )

    def _infer(self, texts: list[str]) -> str:
        """Infer the type of text. It is numeric only if every value is a number and none is a code such as 007."""
        if not self._text:
            return "categorical"
        if self._options.date_format is None and all(map(self._numbers.is_number, texts)):
            return "numeric"
        if all(self._moment(text) is not None for text in texts):
            return "date"
        if all(map(self._numbers.is_number, texts)):
            return "numeric"
        return "categorical"

    def _warn_of_numbers(self, texts: list[str]) -> None:
        """Say why a column that looks like one of numbers is taken for text, unless the policy says that it is text."""
        if self._categorical() or not (self._text or self._null_tokens):
            return
        found = unread_numbers(texts, self._numbers, typed=not self._text)
        if found is None:
            return
        place = None
        if found.others and self._place_of is not None:
            assert isinstance(self._distinct, DistinctTexts)
            values = self._distinct.values
            others = (index for index, text in enumerate(values) if text in found.others)
            place = self._first_place(others)
        sentence = found.sentence(self._name, self._numbers, place, typed=not self._text)
        warnings.warn(sentence, ReadingWarning, stacklevel=2)

    def _read_numbers(self, texts: list[str]) -> Numbers:
        plain = [self._numbers.plain(text) for text in texts]
        bad = [text for text, number in zip(texts, plain, strict=True) if not NUMBER.fullmatch(number)]
        found = unread_numbers(texts, self._numbers) if bad else None
        hint = f"Add {found.flags(self._numbers)}. " if found is not None and found.form != self._numbers else ""
        self._refuse(bad, "is not a number", "are not numbers", hint)
        if all(INTEGER.fullmatch(number) for number in plain):
            try:
                return np.array([int(number) for number in plain], np.int64)
            except OverflowError:  # as floats, they would be released as numbers that nobody has
                raise too_large(self._name) from None
        numbers = np.array([float(number) for number in plain], np.float64) + 0.0  # -0.0 becomes 0.0
        refuse_infinities(self._name, numbers)
        return numbers

    def _read_moments(self, texts: list[str]) -> NDArray[np.int64]:
        moments = [self._moment(text) for text in texts]
        date_format = self._options.date_format or "year-month-day"
        bad = [text for text, moment in zip(texts, moments, strict=True) if moment is None]
        # If no cell is a date, it is the format that is wrong.
        hint = (
            "Set --date-format, or date_format in [input]; `sfumato policy` finds it. "
            if len(bad) == len(texts)
            else ""
        )
        self._refuse(bad, f"is not a date of the form {date_format}", f"are not dates of the form {date_format}", hint)
        return np.array(moments, np.int64)

    def _moment(self, text: str) -> int | None:
        """Return microseconds since 1970, or None if the text is not a date."""
        return written_moment(text, self._options.date_format)

    def _refuse(self, bad: list[str], singular: str, plural: str, hint: str = "") -> None:
        if bad:
            what = f"1 distinct value {singular}" if len(bad) == 1 else f"{len(bad):,} distinct values {plural}"
            assert isinstance(self._distinct, DistinctTexts)
            positions = (position for position, text in enumerate(self._distinct.values) if text in bad)
            raise InputError(
                f"column {self._name!r}: {what}; the first is in {self._first_place(positions)}. "
                f"{hint}Correct the data, list it in [input] nulls if it means 'missing', or give the column another "
                "type."
            )

    def _first_place(self, positions: Iterable[int]) -> str:
        """Return where the first record is that holds one of the distinct values at these positions."""
        record = self._first_record(positions)
        return f"record {record}" if self._place_of is None else self._place_of(record)

    def _first_record(self, positions: Iterable[int]) -> int:
        """Return the number, from 1, of the first record that holds one of the distinct values at these positions."""
        wanted, start = np.fromiter(positions, np.int64), 1
        for chunk in self._read_again():
            rows = np.flatnonzero(np.isin(self._distinct.positions(chunk), wanted))
            if rows.size:
                return start + int(rows[0])
            start += len(chunk)
        raise AssertionError("no batch holds a value that was collected")


def snap_of(name: str, column: ColumnSettings) -> Snap | None:
    """Return how released ranges of a column are widened, or None if they are not."""
    grouping = column.taxonomy
    if isinstance(grouping, Grouping) and grouping.intervals is not None:
        return Intervals(grouping.intervals, column=name)
    if isinstance(grouping, Grouping) and grouping.calendar is not None:
        return Calendar(grouping.calendar, column=name)
    return None if column.round is None else RoundingGrid(column.round, column=name)


def ends_of(name: str, column: ColumnSettings, integral: bool, scale: int) -> tuple[Any, Any]:
    """Return bottom and top of a column in the unit of its values. integral: these are whole numbers."""
    ends: list[Any] = []
    for key, end in (("bottom", column.bottom), ("top", column.top)):
        exact = None if end is None else Fraction(str(end)) * 10**scale
        if exact is not None and integral and exact.denominator > 1:
            raise PolicyError(
                f"column {name!r}: {key} is {end:g}, but the column holds whole numbers. Write a whole number."
                if scale == 0
                else f"column {name!r}: {key} has more decimal places than the column. Write fewer."
            )
        ends.append(None if exact is None else int(exact) if integral else float(exact))
    return ends[0], ends[1]


def profile_column(
    source: Source,
    name: str,
    values: pa.ChunkedArray,
    column: ColumnSettings,
    options: InputOptions,
    taxonomy: Taxonomy | None,
) -> Encoder:
    """Profile a column that is in memory; ``column`` holds its settings in the policy."""
    profiler = profiler_of(source, name, column, options, taxonomy)
    for chunk in values.chunks:
        profiler.add(chunk)
    return profiler.finish(lambda: values.chunks)


def profiler_of(
    source: Source, name: str, column: ColumnSettings, options: InputOptions, taxonomy: Taxonomy | None
) -> Profiler:
    """Return the profiler of a column of a source; ``column`` holds its settings in the policy."""
    tokens = frozenset(options.nulls) if source.text or source.kind == "excel" else frozenset()
    return Profiler(
        name,
        source.types[name],
        column,
        options,
        text=source.text,
        null_tokens=tokens,
        taxonomy=taxonomy,
        place_of=None if source.kind == "spark" else partial(place_of, source),
    )


def profile_source(
    source: Source,
    columns: Mapping[str, ColumnSettings],
    options: InputOptions,
    taxonomies: Mapping[str, Taxonomy],
    progress: Progress,
) -> tuple[list[Encoder], int]:
    """Profile columns of a source batch by batch. Return their encoders, and the number of records."""
    profilers = {
        name: profiler_of(source, name, column, options, taxonomies.get(name)) for name, column in columns.items()
    }

    def read_again(name: str) -> Iterator[pa.Array]:
        return (batch.column(0) for batch in source.batches([name]))

    records = 0
    with progress.phase("profile", source.rows):
        for batch in source.batches(list(profilers)):
            in_threads(partial(add_column, batch, profilers), list(profilers))
            records += batch.num_rows
            progress.advance(batch.num_rows)
        finished = (
            or_problem(partial(profiler.finish, partial(read_again, name))) for name, profiler in profilers.items()
        )
        return without_problems(finished), records


class Collector(Protocol):
    """Collects the values of a column, batch by batch."""

    def add(self, column: pa.Array) -> None: ...

    @property
    def count(self) -> int:
        """How many different values there are so far, approximately."""
        ...

    @property
    def bytes_to_finish(self) -> int:
        """The bytes that the end may take with these values, beside what is held."""
        ...


def add_column(batch: pa.RecordBatch, collectors: Mapping[str, Collector], name: str) -> None:
    """Pass the column ``name`` of a batch to its collector."""
    collectors[name].add(batch.column(name))
