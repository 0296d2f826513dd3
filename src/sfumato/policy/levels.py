"""Levels of a column: how they are named and numbered in a policy.

0 is the value, 1 the first step more general, and the last level is ``*``. In a taxonomy file the number of a level is
that of the field, counted from 0; with intervals, calendar units and prefixes it counts from fine to coarse.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from sfumato.errors import PolicyError
from sfumato.policy.error_text import listed, wrong

DAY = "day"  # the values of a calendar
# The levels of ready-made taxonomies, from the values on.
READY_LEVELS = {
    "countries": ("country", "subregion", "region"),
    "months": ("month", "quarter", "half-year"),
    "weekdays": ("weekday", "week-part"),
    "icd-10": ("code", "category", "block", "chapter"),
}


def level_setting(value: Any) -> int | str:
    """Check a level as a policy has it: its number or its name."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise wrong('must be the name of a level, such as "year", or its number: 0 for the value, 1 for the next')
    return int(value)


def level_number(level: int | str, names: Sequence[str]) -> int:
    """Return the number of a level. names: from the values on; empty where levels have no names."""
    if not isinstance(level, str):
        return level
    if not names:
        raise wrong(
            "is a name, but only the levels of calendars and ready-made taxonomies have names. Write its number"
        )
    if level not in names:
        raise wrong(f"is {level!r}, but the levels of this taxonomy are {listed(names)}. Choose one of them")
    return names.index(level)


def checked_levels(column: str, finest: int, coarsest: int | None, top_level: int) -> tuple[int, int]:
    """Return both levels, once they are known to exist. top_level: the number of the level that is ``*``."""
    if finest >= top_level:
        raise PolicyError(
            f"column {column!r}: finest is level {finest}, but its taxonomy has the levels 0 to {top_level - 1} below "
            "'*'. Choose one of these, or drop the column."
        )
    if coarsest is not None and coarsest > top_level:
        raise PolicyError(
            f"column {column!r}: coarsest is level {coarsest}, but the most general level of its taxonomy, '*', has "
            f"the number {top_level}. Choose a level up to that."
        )
    return finest, top_level if coarsest is None else coarsest
