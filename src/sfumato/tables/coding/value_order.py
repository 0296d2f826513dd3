"""The order of the values of a column, as a person would sort them.

Requirements on ordered values (closeness, variance) need it. The order must be the same for a table and for its
release, whatever kind of file holds them: a column whose texts are all numbers is ordered as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray


def ascending(values: Sequence[object]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the indices that sort the values, and each value as a number (NaN unless all of them are numbers)."""
    numbers = [_number(value) for value in values]
    if values and not any(math.isnan(number) for number in numbers):
        # Different values may be the same number, such as "1" and "1.0". Their text then decides, in any kind of file.
        order = sorted(range(len(values)), key=lambda index: (numbers[index], str(values[index])))
        return np.array(order, np.int64), np.array(numbers, np.float64)
    if len({type(value) for value in values}) == 1 and isinstance(values[0], timedelta | datetime):
        # Sorting them as text would be wrong: "10 days" comes before "2 days".
        order = sorted(range(len(values)), key=lambda index: values[index])  # type: ignore[arg-type, return-value]
    else:
        order = sorted(range(len(values)), key=lambda index: (str(type(values[index])), str(values[index])))
    return np.array(order, np.int64), np.full(len(values), math.nan)


def is_missing(value: object, tokens: Collection[str]) -> bool:
    """Return whether a value is null, NaN or, as text, one of the null tokens; the same for every kind of file."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return text_of(value) in tokens


def texts_of(values: Sequence[object]) -> list[str | None]:
    """Return the values as text, with None for null."""
    return [None if value is None else text_of(value) for value in values]


def text_of(value: object) -> str:
    """Return a value as text, the same for every kind of file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _number(value: object) -> float:
    if isinstance(value, bool):
        return math.nan  # in a CSV file they are words
    if isinstance(value, int | float | Decimal):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value) if "_" not in value else math.nan
        except ValueError:
            return math.nan
    return math.nan
