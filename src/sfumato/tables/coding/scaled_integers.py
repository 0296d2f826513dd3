"""Decimals and moments as 64-bit integers at a scale: 255 at scale 2 is 2.55.

A double cannot hold 2.55, and a microsecond cannot hold 7 nanoseconds, so a range with such an end would not hold the
value that it was made of. Integers are exact, and their order is the order of the values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy

MOST_DIGITS = 38  # of a decimal with 128 bits
INTEGER_DIGITS = 19  # of an integer with 64 bits
EXACT_POWER = 22  # the largest power of ten that is a double
NANOSECONDS = 3  # the scale of nanoseconds: they are microseconds with three more decimal places


def least_scale(column: pa.Array, at_least: int) -> int:
    """Return the least scale, not below ``at_least``, at which every value of the column is a whole number."""
    if pa.types.is_timestamp(column.type):
        if at_least >= NANOSECONDS or column.type.unit != "ns":
            return at_least
        return NANOSECONDS if bool(np.any(to_numpy(column, null=0) % 10**NANOSECONDS)) else at_least
    for scale in range(at_least, column.type.scale):
        try:
            _at_scale(column, scale)
        except pa.ArrowInvalid:  # some value has more decimal places
            continue
        return scale
    return max(at_least, column.type.scale)


def scaled_integers(column: pa.Array, scale: int) -> NDArray[np.int64]:
    """Return the values times 10 ** scale: of decimals, or of moments in microseconds. Null may be any number.

    Raises ``pa.ArrowInvalid`` for a value that 64 bits cannot hold, or that is not whole at this scale.
    """
    if pa.types.is_timestamp(column.type):
        return to_numpy(column.cast(pa.timestamp("ns" if scale else "us", column.type.tz)), null=0)
    if not len(column):
        return np.empty(0, np.int64)
    decimals = _at_scale(column, scale)
    words = np.frombuffer(decimals.buffers()[1], "<i8")[2 * decimals.offset :][: 2 * len(decimals)].reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    overflows = high != low >> 63  # the upper half of a value that fits repeats its sign
    if decimals.null_count:
        overflows &= ~to_numpy(decimals.is_null())
    if overflows.any():
        raise pa.ArrowInvalid("a decimal has more digits than 64 bits hold")
    return np.ascontiguousarray(low)


def _at_scale(column: pa.Array, scale: int) -> pa.Array:
    return column.cast(pa.decimal128(MOST_DIGITS, scale))


def rescaled(values: NDArray[np.int64], places: int) -> NDArray[np.int64]:
    """Return integers with more decimal places. Raises ``OverflowError`` if 64 bits cannot hold one."""
    if not places or not len(values):
        return values
    factor, limit = 10**places, np.iinfo(np.int64).max
    if max(abs(int(values.min())), abs(int(values.max()))) * factor > limit:
        raise OverflowError("an integer has more digits than 64 bits hold")
    return values * np.int64(factor)


def decimals_of(
    values: NDArray[np.int64], missing: NDArray[np.bool_], scale: int, decimal_type: pa.DataType
) -> pa.Array:
    """Return scaled integers as decimals of a type, null where ``missing``."""
    words = np.stack([values, values >> 63], axis=1).astype("<i8")
    validity = from_numpy(~missing).buffers()[1]
    stored = pa.Array.from_buffers(pa.decimal128(MOST_DIGITS, scale), len(values), [validity, pa.py_buffer(words)])
    return stored.cast(decimal_type)


def decimal_text(value: int, scale: int) -> str:
    """Write a scaled integer without needless digits: 2.5, not 2.50."""
    if not scale:
        return str(value)
    whole, part = divmod(abs(value), 10**scale)
    return f"{'-' if value < 0 else ''}{whole}.{part:0{scale}}".rstrip("0").rstrip(".")


def in_units(values: NDArray[Any], scale: int) -> NDArray[np.float64]:
    """Return scaled integers, or floats at scale 0, as the nearest floats."""
    numbers = values.astype(np.float64)
    if not scale:
        return numbers
    if scale <= EXACT_POWER and not np.any(np.abs(numbers) >= 2.0**53):
        return np.asarray(numbers / 10.0**scale)
    # The division of Python's integers is rounded once; NumPy would round the integers first.
    return np.array([value / 10**scale for value in values.tolist()], np.float64)
