"""Passthrough columns: they serve as sort keys and are put in a new order, but their values never change.

Arrow buffers hold more than the table: values beneath nulls, values around a slice, spare bits in NaN, categories that
no record has. None of that is part of the table, so none of it is released.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy, to_python
from sfumato.tables.coding.dictionaries import dictionary_array, sorted_codes
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import Field, bits_for, gathered
from sfumato.tables.sources.in_memory_source import nan_as_null

SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class PassthroughColumn:
    """One released column that is not a quasi-identifier.

    Text is stored as codes into a sorted dictionary, and the last code is null. Other columns are stored unchanged.
    """

    name: str
    array: pa.Array  # the dictionary for text, else the whole column
    codes: Codes | None = None

    @classmethod
    def of(cls, name: str, column: pa.ChunkedArray) -> PassthroughColumn:
        if has_numbers(column.type):
            array = _one_array(column)
            return cls(name, _with_one_nan(array) if pa.types.is_floating(array.type) else array)
        try:
            dictionary, codes = sorted_codes(column)
        except pa.ArrowNotImplementedError:
            raise InputError(
                f"column {name!r} has the type {column.type}, which has no order, so the released rows cannot be "
                "sorted by it. Drop the column, or convert it to text."
            ) from None
        return cls(name, dictionary, codes)

    @property
    def numbered(self) -> tuple[Codes, list[object]]:
        """Return a code for every record, and the value of each code. The code after the last is null; NaN is null."""
        if self.codes is not None:
            return self.codes, to_python(self.array)
        encoded = self._encoded()
        return to_numpy(encoded.indices, len(encoded.dictionary)).astype(np.uint32), to_python(encoded.dictionary)

    @property
    def distinct(self) -> tuple[Codes, int]:
        """Return a code for every record, and the number of codes. The last code is null; NaN is null."""
        if self.codes is not None:
            return self.codes, len(self.array) + 1
        encoded = self._encoded()
        null = len(encoded.dictionary)
        return to_numpy(encoded.indices, null).astype(np.uint32), null + 1

    def some_values(self, most: int) -> pa.Array:
        """Return some of the distinct values: evenly spread over those of text, or over the records of numbers."""
        step = -(-len(self.array) // most) or 1
        return self.array.take(from_numpy(np.arange(0, len(self.array), step))).unique()

    def _encoded(self) -> pa.DictionaryArray:
        array = self.array
        if pa.types.is_floating(array.type):
            # -0.0 and 0.0 compare equal, so they are one value; adding 0.0 makes them identical.
            array = pc.add(nan_as_null(array.cast(pa.float64())), from_numpy(np.zeros(1))[0])
        return array.dictionary_encode()

    def fields(self) -> list[Field]:
        """Return the column as part of a sort key. NaN comes after all numbers, and null comes last."""
        if self.codes is not None:
            return [Field(self.codes, bits_for(len(self.array) + 1))]
        array, fields = self.array, []
        if array.null_count:
            fields.append(Field(to_numpy(array.is_null()).view(np.uint8), 1))
        numbers = order_numbers(array)
        numbers = numbers - numbers.min() if numbers.size else numbers
        return [*fields, Field(numbers, bits_for(int(numbers.max()) + 1) if numbers.size else 0)]

    def in_order(self, rows: NDArray[np.uint32]) -> PassthroughColumn:
        """Return the column with its rows in another order. rows: the row that comes first, second, ..."""
        if self.codes is None:
            return replace(self, array=self.array.take(from_numpy(rows)))
        return replace(self, codes=gathered(self.codes, rows))

    def take(self, rows: NDArray[np.uint32] | None) -> pa.Array:
        """Return the given rows, or all in their order, with no trace of values that are not among them."""
        if self.codes is None:
            # Copied even if the order stays: the buffers of the input hold values beneath nulls and around slices.
            rows = np.arange(len(self.array), dtype=np.uint32) if rows is None else rows
            return self.array.take(from_numpy(rows))
        return dictionary_array(self.codes if rows is None else gathered(self.codes, rows), self.array)


def order_numbers(array: pa.Array) -> NDArray[np.uint64]:
    """Map values to unsigned integers of the same order: -0.0 before 0.0, NaN last. Null may be any number."""
    if pa.types.is_floating(array.type):
        return _float_order(to_numpy(array.cast(pa.float64()), 0))
    integers = to_numpy(array, 0)
    if integers.dtype.kind in "ub":
        return integers.astype(np.uint64)
    # Adding 2 ** 63 turns signed order into unsigned order.
    return integers.astype(np.int64).view(np.uint64) ^ SIGN


def from_order_numbers(numbers: NDArray[np.uint64], missing: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Turn the integers of ``order_numbers`` back into values of type ``kind``, null where ``missing``."""
    if pa.types.is_floating(kind):
        numbers = np.where(missing, SIGN, numbers)
        values = np.where(numbers >= SIGN, numbers ^ SIGN, ~numbers).view(np.float64)
        return from_numpy(values.astype(kind.to_pandas_dtype()), missing)
    if pa.types.is_boolean(kind):
        return from_numpy(numbers.astype(np.bool_) & ~missing, missing)
    if pa.types.is_unsigned_integer(kind):
        return from_numpy(np.where(missing, 0, numbers).astype(kind.to_pandas_dtype()), missing)
    integers = np.where(missing, 0, (numbers ^ SIGN).view(np.int64))
    if pa.types.is_temporal(kind):
        return from_numpy(integers.astype(f"int{kind.bit_width}"), missing).view(kind)
    return from_numpy(integers.astype(kind.to_pandas_dtype()), missing)


def has_numbers(kind: pa.DataType) -> bool:
    """Return whether values of this type are stored as numbers, which then serve as the sort key."""
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


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _with_one_nan(array: pa.Array) -> pa.Array:
    """Give every NaN the same bits: the spare bits of NaN are invisible, but would be released."""
    numbers = to_numpy(array, 0)
    not_numbers = np.isnan(numbers)
    if not not_numbers.any():
        return array
    return from_numpy(np.where(not_numbers, numbers.dtype.type(np.nan), numbers), to_numpy(array.is_null()))


def _float_order(numbers: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Map floats to integers of the same order: -0.0 before 0.0, and every NaN last, whatever its spare bits."""
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    return np.where(bits >= SIGN, ~bits, bits | SIGN)
