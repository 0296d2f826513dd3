"""The order of the values of a column, as people would put them.

Requirements on ordered values (closeness, variance) need it, and need the same for a table and for its release,
whatever file each is in: text that is numbers throughout counts as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray


def ascending(values: Sequence[object]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The places of the values in ascending order, and each value as a number (NaN where they are not numbers)."""
    numbers = [_number(value) for value in values]
    if values and not any(math.isnan(number) for number in numbers):
        # Different values may be the same number, such as "1" and "1.0"; their text then decides in every file alike.
        in_order = sorted(range(len(values)), key=lambda place: (numbers[place], str(values[place])))
        return np.array(in_order, np.int64), np.array(numbers, np.float64)
    if len({type(value) for value in values}) == 1 and isinstance(values[0], timedelta | datetime):
        # Their text is not in their order: "10 days" comes before "2 days".
        places = sorted(range(len(values)), key=lambda place: values[place])  # type: ignore[arg-type, return-value]
    else:
        places = sorted(range(len(values)), key=lambda place: (str(type(values[place])), str(values[place])))
    return np.array(places, np.int64), np.full(len(values), math.nan)


def is_missing(value: object, tokens: Collection[str]) -> bool:
    """Whether a value is null or, written as text, one of the tokens for it; the same for every kind of file."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return text_of(value) in tokens


def texts_of(values: Sequence[object]) -> list[str | None]:
    """Values as text; null stays null."""
    return [None if value is None else text_of(value) for value in values]


def text_of(value: object) -> str:
    """A value as text, the same for every kind of file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _number(value: object) -> float:
    if isinstance(value, bool):
        return math.nan  # a CSV file has words for them
    if isinstance(value, int | float | Decimal):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value) if "_" not in value else math.nan
        except ValueError:
            return math.nan
    return math.nan
