"""Checks for the numbers and words of a policy. A check returns the value to use.

A value that does not fit is a ValueError whose text follows the name of the parameter: "must be ...".
"""

from __future__ import annotations

import math
import numbers
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Check = Callable[[Any], Any]

LEAST_MEMORY = 256 * 10**6  # bytes, most of which the libraries take


@dataclass(frozen=True)
class Parameter:
    """One parameter of a requirement in a policy.

    nothing: the value with which the requirement asks for nothing; on the way there it becomes weaker. None if that
    cannot be said. whole: it takes whole numbers only.
    """

    check: Check
    required: bool = True
    nothing: float | None = None
    whole: bool = False


def whole_number(least: int, most: int | None = None) -> Check:
    """Accept whole numbers, NumPy's included, but not true, 5.0 or "5", which are more often mistakes."""
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"

    def check(value: Any) -> int:
        is_whole = hasattr(type(value), "__index__") and not isinstance(value, bool)
        if not is_whole or operator.index(value) < least or (most is not None and operator.index(value) > most):
            raise ValueError(f"must be a whole number {bounds}")
        return operator.index(value)

    return check


def number_of_at_least(least: int) -> Check:
    """Accept finite numbers; whole ones become ``int``, so that they are written without decimals."""

    def check(value: Any) -> int | float:
        if not is_positive(value) or value < least:
            raise ValueError(f"must be a finite number of at least {least}")
        return int(value) if value == int(value) else float(value)

    return check


def is_positive(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return 0 < float(value) < math.inf
    except OverflowError:
        return False


def positive_number(value: Any) -> float:
    if not is_positive(value):
        raise ValueError("must be a finite number above 0")
    return float(value)


def byte_size(value: Any) -> int:
    """Accept a number of bytes, or a text such as 500MB, 2GB or 1.5 GiB."""
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", value.strip(), re.IGNORECASE)
        value = match and float(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(match[2].upper() or " ")
    if not is_positive(value) or value < LEAST_MEMORY:
        raise ValueError(f"must be a size of at least {LEAST_MEMORY // 10**6}MB, such as 500MB or 2GB")
    return int(value)


def share(value: Any) -> float:
    if not is_positive(value) or value > 1:
        raise ValueError("must be a number above 0 and at most 1")
    return float(value)


def significance_level(value: Any) -> float:
    if not is_positive(value) or value > 0.5:
        raise ValueError("must be a number above 0 and at most 0.5")
    return float(value)


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def one_of(*choices: str) -> Check:
    quoted = ", ".join(map(repr, choices))

    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {quoted}")
        return str(value)

    return check
