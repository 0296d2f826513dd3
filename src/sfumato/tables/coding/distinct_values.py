"""The distinct values of one quasi-identifier, collected batch by batch: texts, or numbers, dates and moments."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.scaled_integers import least_scale, rescaled, scaled_integers
from sfumato.tables.coding.text_index import TextIndex

DENSE_RANGE = 1 << 20  # integers within a range of this size are looked up in a table, not by binary search
MERGE_AFTER = 1 << 20  # collected numbers
# Bytes that the end takes for each distinct value, beside its letters: measured with texts that are numbers.
TEXT_BYTES, NUMBER_BYTES = 150, 40
FIRST = 8  # texts that tell what a column holds, as long as nobody has to rely on it
EPOCH = datetime.datetime(1970, 1, 1)
DAY = 86_400_000_000  # microseconds

Number = TypeVar("Number", bound=np.generic)
Numbers = NDArray[Any]  # int64 if all values are whole numbers, else float64


class DistinctTexts:
    """Distinct texts in order of appearance."""

    def __init__(self, name: str) -> None:
        self._index = TextIndex(name, pa.string())
        self.has_null = False

    @property
    def values(self) -> list[str]:
        return list(self._index.values.to_pylist())

    @property
    def first_values(self) -> list[str]:
        return list(self._index.values.slice(0, FIRST).to_pylist())

    @property
    def count(self) -> int:
        return self._index.count

    @property
    def bytes_to_finish(self) -> int:
        """The bytes that the end may take, beside what is held: every text becomes an object, and some are parsed."""
        return self._index.bytes_to_grow + self._index.letters + self.count * TEXT_BYTES

    @property
    def nbytes(self) -> int:
        return self._index.nbytes

    def add(self, column: pa.Array) -> None:
        dictionary, indices = _as_dictionary(column)
        used = np.bincount(indices, minlength=len(dictionary) + 1) > 0
        known = used[:-1]
        if dictionary.null_count:
            missing = to_numpy(dictionary.is_null())
            self.has_null = self.has_null or bool(np.any(known & missing))
            known = known & ~missing
        self.has_null = self.has_null or bool(used[-1])
        self._index.add(dictionary if known.all() else dictionary.filter(from_numpy(known)))

    def positions(self, column: pa.Array) -> NDArray[np.int64]:
        """Return the position of each record's value among the values; null is one past the last."""
        return self.looked_up(np.arange(self.count + 1), column)

    def looked_up(self, table: NDArray[Number], column: pa.Array) -> NDArray[Number]:
        """Return the entry of each record in a table that has one for every position."""
        dictionary, indices = _as_dictionary(column)
        position = self._index.positions(dictionary)
        if dictionary.null_count:
            position[to_numpy(dictionary.is_null())] = self.count
        return table[np.append(position, np.uint32(self.count))][indices]


class KnownTexts(DistinctTexts):
    """Texts that are known to be distinct, in their order. They need no index, so no kernel is loaded for them."""

    def __init__(self, texts: pa.StringArray) -> None:
        self._texts = texts
        self.has_null = False

    @property
    def values(self) -> list[str]:
        return list(self._texts.to_pylist())

    @property
    def count(self) -> int:
        return len(self._texts)

    def looked_up(self, table: NDArray[Number], column: pa.Array) -> NDArray[Number]:
        assert column is self._texts  # there is nothing else to look up
        return table[:-1]


class DistinctNumbers:
    """Distinct numbers, dates or moments in ascending order.

    ``scale``: decimals and moments are integers with as many further decimal places as the values need.
    """

    def __init__(self, name: str, kind: str, source_type: pa.DataType) -> None:
        self._name, self.kind, self.source_type, self.scale = name, kind, source_type, 0
        self._unmerged: list[Numbers] = []
        self._values: Numbers = np.empty(0, np.int64)
        self._unmerged_count = 0
        self.has_null = False

    def add(self, column: pa.Array) -> None:
        try:
            if is_scaled(self.source_type):
                self._refine(least_scale(column, self.scale))
            numbers, missing = _as_numbers(column, self.kind, self.scale)
        except (pa.ArrowInvalid, OverflowError):
            raise too_large(self._name) from None
        if missing is not None:
            self.has_null = self.has_null or bool(missing.any())
            numbers = numbers[~missing]
        refuse_infinities(self._name, numbers)
        if _is_dense(numbers):
            low = numbers.min()
            self._unmerged.append(np.flatnonzero(np.bincount(numbers - low)) + low)
        else:
            self._unmerged.append(merged_numbers([numbers]))
        self._unmerged_count += len(self._unmerged[-1])
        if self._unmerged_count > max(
            len(self._values), MERGE_AFTER
        ):  # limits memory when many batches share few values
            self._merge()

    @property
    def count(self) -> int:
        """How many there are. Values that wait to be merged may be counted twice."""
        return len(self._values) + self._unmerged_count

    @property
    def bytes_to_finish(self) -> int:
        """The bytes that a merge and the end may take, beside what is held."""
        return self.count * NUMBER_BYTES

    @property
    def nbytes(self) -> int:
        return int(self._values.nbytes)

    def _refine(self, scale: int) -> None:
        """Give the values collected so far the decimal places of a finer scale."""
        places, self.scale = scale - self.scale, scale
        self._values = rescaled(self._values, places)
        self._unmerged = [rescaled(values, places) for values in self._unmerged]

    def _merge(self) -> None:
        self._values = merged_numbers([self._values, *self._unmerged] if self._values.size else self._unmerged)
        self._unmerged, self._unmerged_count = [], 0

    def finish(self) -> Numbers:
        """Return all distinct values, ascending. Dates outside the years 1 to 9999 are refused."""
        if self._unmerged:
            self._merge()
        _refuse_beyond_calendar(self._name, self._values, self.kind, self.scale, self.source_type)
        return self._values

    def positions(self, column: pa.Array) -> NDArray[np.int64]:
        """Return the position of each record's value among the values; null is one past the last."""
        return self.looked_up(np.arange(len(self._values) + 1), column)

    def looked_up(self, table: NDArray[Number], column: pa.Array) -> NDArray[Number]:
        """Return the entry of each record in a table that has one for every position."""
        numbers, missing = _as_numbers(column, self.kind, self.scale)
        null = len(self._values)
        if _is_dense(self._values):
            low = self._values[0]
            by_number = np.full(int(self._values[-1] - low) + 1, table[null])
            by_number[self._values - low] = table[:null]
            if missing is not None:
                numbers = np.where(missing, low, numbers)
            result: NDArray[Number] = by_number[numbers - low]
        else:
            result = table[np.searchsorted(self._values, numbers)]
        if missing is not None:
            result[missing] = table[null]
        return result


def distinct_values_of(name: str, source_type: pa.DataType) -> DistinctTexts | DistinctNumbers:
    """Return an empty collection for the values of the column ``name``."""
    types = pa.types
    if types.is_string(source_type) or types.is_large_string(source_type) or types.is_boolean(source_type):
        return DistinctTexts(name)
    if types.is_integer(source_type) or types.is_floating(source_type) or types.is_decimal(source_type):
        return DistinctNumbers(name, "numeric", source_type)
    if types.is_date(source_type):
        return DistinctNumbers(name, "date", source_type)
    if types.is_timestamp(source_type):
        return DistinctNumbers(name, "moment", source_type)
    if types.is_null(source_type):
        return DistinctTexts(name)
    raise InputError(
        f"column {name!r} has the type {source_type}, which cannot be a quasi-identifier. "
        "Convert it to text, a number or a date, or give it another role."
    )


def merged_numbers(parts: Sequence[Numbers]) -> Numbers:
    """Return the distinct numbers of all parts, ascending. ``np.unique`` would take several times the memory."""
    numbers = np.concatenate(parts)
    numbers.sort()
    first = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=first[1:])
    return numbers[first]


def _as_dictionary(column: pa.Array) -> tuple[pa.StringArray, NDArray[np.int64]]:
    """Return the texts of a column, and the index of each record's text among them; null is one past the last."""
    if pa.types.is_boolean(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.dictionary.cast(pa.string()), to_numpy(column.indices, null=len(column.dictionary))


def is_scaled(source_type: pa.DataType) -> bool:
    """Return whether values of a type are coded as scaled integers."""
    return bool(pa.types.is_decimal(source_type) or pa.types.is_timestamp(source_type))


def _as_numbers(column: pa.Array, kind: str, scale: int) -> tuple[Numbers, NDArray[np.bool_] | None]:
    """Return a column as int64 or float64, and a mask of the records without a value (None if all have one)."""
    missing = to_numpy(column.is_null()) if column.null_count else None
    if is_scaled(column.type):
        return scaled_integers(column, scale), missing
    if kind == "date":
        column = column.cast(pa.date32()).cast(pa.int32())
    exact = pa.types.is_integer(column.type)
    numbers = to_numpy(column.cast(pa.int64() if exact else pa.float64()), null=0)
    if not exact:
        numbers = numbers + 0.0  # -0.0 becomes 0.0: which of the two a release showed would depend on the order of rows
        not_numbers = np.isnan(numbers)
        if not_numbers.any():
            missing = not_numbers if missing is None else missing | not_numbers
    return numbers, missing


def _is_dense(numbers: Numbers) -> bool:
    """Return whether integers lie within a range that is small enough for a table."""
    if numbers.dtype.kind != "i" or not numbers.size:
        return False
    return int(numbers.max()) - int(numbers.min()) < DENSE_RANGE


def refuse_infinities(name: str, numbers: Numbers) -> None:
    if numbers.dtype.kind == "f" and bool(np.isinf(numbers).any()):
        raise InputError(
            f"column {name!r} holds {counted_noun(int(np.isinf(numbers).sum()), 'infinite number')}; "
            "a range cannot have an infinite bound. Replace them with a value or with null."
        )


def _refuse_beyond_calendar(name: str, values: Numbers, kind: str, scale: int, source_type: pa.DataType) -> None:
    if kind == "numeric" or not values.size:
        return
    unit = 1 if kind == "date" else DAY * 10**scale
    first, after = (datetime.date.min - EPOCH.date()).days, (datetime.date.max - EPOCH.date()).days + 1
    if kind == "moment" and source_type.tz is not None:
        first, after = first + 1, after - 1  # clocks of time zones are up to a day apart
    first, after = first * unit, after * unit
    if values[0] < first or values[-1] >= after:
        raise InputError(
            f"column {name!r} holds dates outside the years 1 to 9999, which may mean 'unknown' or 'for ever'. "
            "Replace them with a date or with null."
        )


def too_large(name: str) -> InputError:
    return InputError(
        f"column {name!r} holds numbers or dates that 64 bits cannot hold exactly. Replace them with null; if they are "
        "codes, convert them to text and give the column the type categorical."
    )


def counted_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
