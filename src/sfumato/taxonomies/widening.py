"""Widen the released ranges of a numeric or date column.

The column keeps its numbers and their order. The two bounds of a class are moved, and never inward. Intervals and
periods are nested, so they form a tree over the values; a grid does not.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PolicyError
from sfumato.taxonomies.decimal_multiples import Multiples, decimal_places
from sfumato.taxonomies.periods import period_name

# The months in each unit; a week is counted in days.
MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
UNITS = ("week", *MONTHS)
# 1970-01-01, day 0, was a Thursday: its week began on Monday, three days earlier.
DAYS_SINCE_MONDAY = 3
EPOCH = datetime.date(1970, 1, 1)
FIRST_DAY = (datetime.date.min - EPOCH).days  # the first decade would begin before it, with a year 0


class Snapped(NamedTuple):
    """Widened bounds, both included. Where ``whole`` is set, ``*`` is released and the bounds are unchanged."""

    low: NDArray[Any]
    high: NDArray[Any]
    whole: NDArray[np.bool_]


class Snap(Protocol):
    """A way to widen ranges."""

    @property
    def places(self) -> int:
        """The decimal places that widened bounds need."""

    @property
    def sizes(self) -> int:
        """How many sizes of cells there are: the levels between the values and ``*``."""

    def check(self, integral: bool, scale: int | None = None) -> None:
        """Refuse a column that cannot be widened this way. integral: it holds whole numbers. scale: see ``snap``."""

    def snap(
        self, low: NDArray[Any], high: NDArray[Any], integral: bool, scale: int | None = None, *, finest: int = 0
    ) -> Snapped:
        """Widen the ranges low..high. Both: int64[n] if integral, else finite float64[n]; low <= high; not modified.

        With ``scale``, at least ``places``, the column holds decimals: int64[n], in units of 10 ** -scale. With
        ``finest`` above 0, a single value is widened too: to its cell on that level.
        """

    def cells(self, values: NDArray[Any], integral: bool, scale: int | None = None) -> list[NDArray[Any]] | None:
        """Return the first value of the cell that holds each value, the smallest cells first; None if not nested."""

    def names(self, low: NDArray[Any], high: NDArray[Any]) -> list[str | None]:
        """Return the names of widened ranges, None for a range that people know by no name. low, high: see snap."""


@dataclass(frozen=True)
class Intervals:
    """Widen a range to the smallest interval from m * width to (m + 1) * width that holds it, of the given widths.

    Whole numbers are released as ``[m * width .. (m + 1) * width - 1]``, other numbers with both ends of the interval,
    although the upper end belongs to the next interval. A single value is not widened.
    """

    widths: tuple[float, ...]
    column: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))
        if not self.widths:
            raise _refusal(self.column, "intervals without a width. Write ascending widths, such as [5, 10, 20].")
        for narrow, wide in pairwise(self._steps()):
            if wide <= narrow or wide % narrow:
                raise _refusal(
                    self.column,
                    f"intervals of width {float(wide):g} do not consist of intervals of width {float(narrow):g}. "
                    "Write ascending widths, each a multiple of the one before, such as [5, 10, 20].",
                )

    def check(self, integral: bool, scale: int | None = None) -> None:
        for step in self._steps():
            if integral or scale is not None:
                _check_whole(step, "an interval's width", self.column, scale)

    @property
    def places(self) -> int:
        return max(map(decimal_places, self._steps()))

    @property
    def sizes(self) -> int:
        return len(self.widths)

    def snap(
        self, low: NDArray[Any], high: NDArray[Any], integral: bool, scale: int | None = None, *, finest: int = 0
    ) -> Snapped:
        exact = integral or scale is not None
        return _smallest(_numbers(low, exact), _numbers(high, exact), self._sizes(integral, scale), finest)

    def cells(self, values: NDArray[Any], integral: bool, scale: int | None = None) -> list[NDArray[Any]]:
        return _firsts(_numbers(values, integral or scale is not None), self._sizes(integral, scale))

    def names(self, low: NDArray[Any], high: NDArray[Any]) -> list[str | None]:
        return [None] * len(low)

    def _sizes(self, integral: bool, scale: int | None) -> list[CellsOf]:
        self.check(integral, scale)
        if integral or scale is not None:
            steps = [int(step * 10 ** (scale or 0)) for step in self._steps()]
            return [partial(_whole_interval, step, 1 if integral else 0) for step in steps]
        return [partial(_interval, Multiples(step)) for step in self._steps()]

    def _steps(self) -> list[Fraction]:
        return [_decimal(width, "an interval's width", self.column) for width in self.widths]


@dataclass(frozen=True)
class Calendar:
    """Widen a range to the smallest week, month, quarter, year or decade that holds it, of the given units.

    Dates are days since 1970-01-01. Weeks begin on Monday; a decade begins with a year that ends in 0. A single day is
    not widened.
    """

    units: tuple[str, ...]
    column: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", tuple(self.units))
        for unit in self.units:
            if unit not in UNITS:
                raise PolicyError.unknown_choice(f"calendar unit{_of(self.column)}", unit, UNITS)
        if not self.units:
            raise _refusal(self.column, 'a calendar without a unit. Write units such as ["month", "year"].')
        if "week" in self.units and len(self.units) > 1:
            raise _refusal(
                self.column,
                "weeks cross the ends of months and years, so a calendar with weeks can have no other unit. "
                'Write ["week"], or leave the week out.',
            )
        if any(UNITS.index(small) >= UNITS.index(large) for small, large in pairwise(self.units)):
            raise _refusal(self.column, 'calendar units must ascend, such as ["month", "quarter", "year"].')

    def check(self, integral: bool, scale: int | None = None) -> None:
        if not integral:
            raise _refusal(self.column, "a calendar needs a column of dates. Use intervals for numbers.")

    @property
    def places(self) -> int:
        return 0

    @property
    def sizes(self) -> int:
        return len(self.units)

    def snap(
        self, low: NDArray[Any], high: NDArray[Any], integral: bool = True, scale: int | None = None, *, finest: int = 0
    ) -> Snapped:
        self.check(integral)
        return _smallest(_numbers(low, integral), _numbers(high, integral), self._sizes(), finest)

    def cells(self, values: NDArray[Any], integral: bool = True, scale: int | None = None) -> list[NDArray[Any]]:
        self.check(integral)
        return _firsts(_numbers(values, integral), self._sizes())

    def names(self, low: NDArray[Any], high: NDArray[Any]) -> list[str | None]:
        names: list[str | None] = [None] * len(low)
        for unit in self.units:
            start, end, _ = _period(unit, low, low)
            for period in np.flatnonzero((low == start) & (high == end) & (start >= FIRST_DAY)).tolist():
                names[period] = period_name(unit, EPOCH + datetime.timedelta(days=int(low[period])))
        return names

    def _sizes(self) -> list[CellsOf]:
        return [partial(_period, unit) for unit in self.units]


@dataclass(frozen=True)
class RoundingGrid:
    """Round the lower bound down and the upper bound up to a multiple of the step. A multiple itself stays as it is."""

    step: float
    column: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        _decimal(self.step, "round", self.column)

    def check(self, integral: bool, scale: int | None = None) -> None:
        if integral or scale is not None:
            _check_whole(_decimal(self.step, "round", self.column), "round", self.column, scale)

    @property
    def places(self) -> int:
        return decimal_places(_decimal(self.step, "round", self.column))

    @property
    def sizes(self) -> int:
        return 0

    def snap(
        self, low: NDArray[Any], high: NDArray[Any], integral: bool, scale: int | None = None, *, finest: int = 0
    ) -> Snapped:
        """Widen both ends. A grid has no levels, so ``finest`` is 0."""
        self.check(integral, scale)
        step = _decimal(self.step, "round", self.column)
        exact = integral or scale is not None
        low, high = _numbers(low, exact), _numbers(high, exact)
        if exact:
            return _outward_whole(low, high, int(step * 10 ** (scale or 0)))
        return _outward(low, high, Multiples(step))

    def cells(self, values: NDArray[Any], integral: bool, scale: int | None = None) -> None:
        """Return None: two ranges on a grid may overlap."""

    def names(self, low: NDArray[Any], high: NDArray[Any]) -> list[str | None]:
        return [None] * len(low)


def _outward_whole(low: NDArray[np.int64], high: NDArray[np.int64], step: int) -> Snapped:
    over = high % step
    start, end = low - low % step, np.where(over == 0, high, high + (step - over))
    # A multiple beyond the 64-bit integers has wrapped around.
    whole = (start > low) | (end < high)
    return Snapped(np.where(whole, low, start), np.where(whole, high, end), whole)


def _outward(low: NDArray[np.float64], high: NDArray[np.float64], multiples: Multiples) -> Snapped:
    start, _ = multiples.around(low)
    below, above = multiples.around(high)
    end = np.where(below == high, below, above)
    whole = ~(np.isfinite(start) & np.isfinite(end))
    return Snapped(np.where(whole, low, start), np.where(whole, high, end), whole)


# For ranges low..high: the first and last value of the cell that holds low, and whether that cell holds high too.
Cells = tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]
CellsOf = Callable[[NDArray[Any], NDArray[Any]], Cells]


def _firsts(values: NDArray[Any], sizes: Sequence[CellsOf]) -> list[NDArray[Any]]:
    """Return the first value of the cell around each value, by size. A value without a cell is alone in its own."""
    firsts = []
    for cells in sizes:
        start, _, holds = cells(values, values)
        firsts.append(np.where(holds, start, values))
    return firsts


def _smallest(low: NDArray[Any], high: NDArray[Any], sizes: Sequence[CellsOf], finest: int) -> Snapped:
    """Widen every range to the first cell that holds it, of level ``finest`` at least.

    sizes: functions that return cells, smallest cells first. Level 0 are the values themselves.
    """
    new_low, new_high = low.copy(), high.copy()
    whole = (low != high) | (finest > 0)
    for cells in sizes[max(finest - 1, 0) :]:
        waiting = np.flatnonzero(whole)
        start, end, holds = cells(low[waiting], high[waiting])
        held = waiting[holds]
        new_low[held], new_high[held] = start[holds], end[holds]
        whole[held] = False
    return Snapped(new_low, new_high, whole)


def _whole_interval(width: int, gap: int, low: NDArray[np.int64], high: NDArray[np.int64]) -> Cells:
    """gap: how far the end that a cell shows is from the next cell; 0 for decimals, which show where that begins."""
    over = low % width
    start, last = low - over, low + (width - 1 - over)
    end = last + (1 - gap)
    # A bound beyond the 64-bit integers has wrapped around. Such a cell counts as holding nothing.
    return start, end, (start <= low) & (high <= last) & (last <= end)


def _interval(multiples: Multiples, low: NDArray[np.float64], high: NDArray[np.float64]) -> Cells:
    start, end = multiples.around(low)
    return start, end, (high < end) & np.isfinite(start) & np.isfinite(end)


def _period(unit: str, low: NDArray[np.int64], high: NDArray[np.int64]) -> Cells:
    if unit == "week":
        start = low - (low + DAYS_SINCE_MONDAY) % 7
        end = start + 6
    else:
        month = low.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        # Months are counted from January 1970, when a quarter, a year and a decade began.
        first_month = month - month % MONTHS[unit]
        start = _first_day(first_month)
        end = _first_day(first_month + MONTHS[unit]) - 1
    # The decade of the years before 10 would begin with a year 0, which no date has. It counts as holding nothing.
    return start, end, (high <= end) & (start >= FIRST_DAY)


def _first_day(month: NDArray[np.int64]) -> NDArray[np.int64]:
    return month.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _numbers(values: NDArray[Any], integral: bool) -> NDArray[Any]:
    return np.asarray(values, np.int64 if integral else np.float64)


def _decimal(number: float, what: str, column: str) -> Fraction:
    """Return the number as the user wrote it: 0.1 is a tenth, not the double nearest to it."""
    if not (math.isfinite(number) and number > 0):
        raise _refusal(column, f"{what} must be a number above 0.")
    return Fraction(str(number))


def _check_whole(step: Fraction, what: str, column: str, scale: int | None) -> None:
    if scale is not None and step * 10**scale > np.iinfo(np.int64).max:
        raise _refusal(
            column,
            f"{what} is {float(step):g}, too large beside the decimal places of the column. Write a smaller one.",
        )
    if scale:
        return
    if step.denominator != 1 or step > np.iinfo(np.int64).max:
        raise _refusal(
            column, f"{what} is {float(step):g}, but the column holds whole numbers. Write a whole number, such as 5."
        )


def _refusal(column: str, problem: str) -> PolicyError:
    return PolicyError(f"column {column!r}: {problem}" if column else problem)


def _of(column: str) -> str:
    return f" of column {column!r}" if column else ""
