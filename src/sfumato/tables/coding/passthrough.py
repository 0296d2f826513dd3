"""Columns that ride along: sorted by, taken in a new order, their values never changed.

Arrow keeps more than it shows: values beneath nulls, values around a slice, spare bits in NaN, categories that no
record has. None of that is part of the table, so none of it is released.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.dictionaries import dictionary_array, sorted_codes
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import Field, bits_for
from sfumato.tables.sources.in_memory_source import nan_as_null

SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class PassthroughColumn:
    """One released column that is not a quasi-identifier.

    Text is held as codes into a sorted dictionary, anything else as it came. ``codes`` has a last code for null.
    """

    name: str
    array: pa.Array  # the dictionary for text, else the whole column
    codes: Codes | None = None

    @classmethod
    def of(cls, name: str, column: pa.ChunkedArray) -> PassthroughColumn:
        if has_numbers(column.type):
            array = _one(column)
            return cls(name, _with_one_nan(array) if pa.types.is_floating(array.type) else array)
        try:
            dictionary, codes = sorted_codes(column)
        except pa.ArrowNotImplementedError:
            raise InputError(
                f"column {name!r} has the type {column.type}, which has no order, so the released rows could not be "
                "put in one. Drop the column or turn it into text."
            ) from None
        return cls(name, dictionary, codes)

    @property
    def numbered(self) -> tuple[Codes, list[object]]:
        """A code for every record, and the value of each code; one past the last is null, and NaN is null."""
        if self.codes is not None:
            return self.codes, self.array.to_pylist()
        encoded = self._encoded()
        return to_numpy(encoded.indices, len(encoded.dictionary)).astype(np.uint32), encoded.dictionary.to_pylist()

    @property
    def distinct(self) -> tuple[Codes, int]:
        """A code for every record and how many there are; the last is null, and NaN is null."""
        if self.codes is not None:
            return self.codes, len(self.array) + 1
        encoded = self._encoded()
        null = len(encoded.dictionary)
        return to_numpy(encoded.indices, null).astype(np.uint32), null + 1

    def _encoded(self) -> pa.DictionaryArray:
        array = self.array
        if pa.types.is_floating(array.type):
            # -0.0 and 0.0 are one value to whoever compares numbers; adding 0.0 makes them one.
            array = pc.add(nan_as_null(array.cast(pa.float64())), from_numpy(np.zeros(1))[0])
        return array.dictionary_encode()

    def fields(self) -> list[Field]:
        """The column as a part of a sort key; NaN comes after all numbers, null comes last."""
        if self.codes is not None:
            return [Field(self.codes, bits_for(len(self.array) + 1))]
        array, fields = self.array, []
        if array.null_count:
            fields.append(Field(to_numpy(array.is_null()).view(np.uint8), 1))
        numbers = order_numbers(array)
        numbers = numbers - numbers.min() if numbers.size else numbers
        return [*fields, Field(numbers, bits_for(int(numbers.max()) + 1) if numbers.size else 0)]

    def take(self, rows: NDArray[np.uint32] | None) -> pa.Array:
        """The column in the order of ``rows`` (as it is without them), with no trace of values that are not in it."""
        if self.codes is None:
            # Taken also when the order stays: the buffers of the input hold values beneath nulls and around slices.
            places = np.arange(len(self.array), dtype=np.uint32) if rows is None else rows
            return self.array.take(from_numpy(places))
        return dictionary_array(self.codes if rows is None else self.codes[rows], self.array)


def order_numbers(array: pa.Array) -> NDArray[np.uint64]:
    """Values as unsigned numbers in their order; -0.0 comes before 0.0 and NaN last. Null is any number."""
    if pa.types.is_floating(array.type):
        return _float_order(to_numpy(array.cast(pa.float64()), 0))
    whole = to_numpy(array, 0)
    if whole.dtype.kind in "ub":
        return whole.astype(np.uint64)
    # Adding 2 ** 63 makes signed order unsigned order.
    return whole.astype(np.int64).view(np.uint64) ^ SIGN


def from_order_numbers(numbers: NDArray[np.uint64], missing: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """The values that such numbers stand for, null where ``missing``."""
    if pa.types.is_floating(kind):
        numbers = np.where(missing, SIGN, numbers)
        values = np.where(numbers >= SIGN, numbers ^ SIGN, ~numbers).view(np.float64)
        return from_numpy(values.astype(kind.to_pandas_dtype()), missing)
    if pa.types.is_boolean(kind):
        return from_numpy(numbers.astype(np.bool_) & ~missing, missing)
    if pa.types.is_unsigned_integer(kind):
        return from_numpy(np.where(missing, 0, numbers).astype(kind.to_pandas_dtype()), missing)
    whole = np.where(missing, 0, (numbers ^ SIGN).view(np.int64))
    if pa.types.is_temporal(kind):
        return from_numpy(whole.astype(f"int{kind.bit_width}"), missing).view(kind)
    return from_numpy(whole.astype(kind.to_pandas_dtype()), missing)


def has_numbers(kind: pa.DataType) -> bool:
    """Whether values of this type are numbers to sort by, or stand for some."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_time(kind)
        or types.is_duration(kind)
        or types.is_floating(kind)
    )


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _with_one_nan(array: pa.Array) -> pa.Array:
    """The same numbers with every NaN the same: its spare bits are seen by nobody but would be released."""
    numbers = to_numpy(array, 0)
    not_numbers = np.isnan(numbers)
    if not not_numbers.any():
        return array
    return from_numpy(np.where(not_numbers, numbers.dtype.type(np.nan), numbers), to_numpy(array.is_null()))


def _float_order(numbers: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Whole numbers in the order of the floats, -0.0 before 0.0, NaN last: its spare bits are seen by nobody."""
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    return np.where(bits >= SIGN, ~bits, bits | SIGN)
