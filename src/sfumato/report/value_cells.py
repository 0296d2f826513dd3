"""The released values of a column in few cells, so that they can be counted, drawn and crossed with another column.

A range that reaches over several cells is spread evenly over them, as a reader of the release would do it. ``*`` and
null have cells of their own. Of categories those with the most records have a cell, and the others one together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.pictures.axes import DAY, Axis, axis_of
from sfumato.policy import ColumnSettings
from sfumato.tables.coding.domains import WHOLE
from sfumato.taxonomies.taxonomy import Taxonomy

LENGTH = 300.0
CHUNK = 1 << 16
MOST_COUNTED = 1 << 22  # different pairs of values that are counted by place; more are sorted
NULL = "null"
DASH = "\N{EN DASH}"
EPOCH = np.datetime64(0, "ms")
# Units of NumPy's calendar and how many of them a cell has.
CALENDAR = [("D", 1), ("W", 1), ("M", 1), ("M", 3), *(("Y", years) for years in (1, 2, 5, 10, 20, 50, 100, 500))]


@dataclass(frozen=True)
class ReleasedValuesOfColumn:
    """The different values of a column as text, none for null, each with its records."""

    name: str
    role: str
    texts: list[str | None] = field(repr=False)
    records: NDArray[np.int64] = field(repr=False)
    axis: Axis | None = field(repr=False)
    """Where numbers and dates stand; none for categories."""

    @property
    def kind(self) -> str:
        return "categorical" if self.axis is None else self.axis.kind

    @property
    def total(self) -> int:
        return int(self.records.sum())

    def among(self, chosen: NDArray[np.bool_]) -> int:
        """The records of some of the values."""
        return int(self.records[chosen].sum())

    @property
    def is_null(self) -> NDArray[np.bool_]:
        return np.array([text is None for text in self.texts], np.bool_)

    @property
    def is_whole(self) -> NDArray[np.bool_]:
        """Those that say nothing. In a column that was kept, a star is a value like another."""
        return np.array([text == WHOLE and self.role == "quasi-identifier" for text in self.texts], np.bool_)

    @property
    def is_range(self) -> NDArray[np.bool_]:
        if self.axis is None:
            return np.zeros(len(self.texts), np.bool_)
        return np.array([text is not None and text[:1] == "[" for text in self.texts], np.bool_)

    @property
    def plain(self) -> NDArray[np.bool_]:
        """Values that are neither null nor the whole domain."""
        return ~(self.is_null | self.is_whole)


@dataclass(frozen=True)
class ValueCells:
    """Cells of a column. A value is in the cell ``home``, or spread over several where that is -1."""

    names: list[str] = field(repr=False)
    asides: int
    """How many of the last cells are no values like the others."""
    home: NDArray[np.int64]
    ranges: NDArray[np.int64]
    spread: NDArray[np.float64]
    """Of each of the ``ranges``, the share in every cell."""
    edges: NDArray[np.float64] | None = None
    others: bool = False
    """Is the first of the asides one for many values?"""

    def totals(self, records: NDArray[np.int64]) -> NDArray[np.float64]:
        """The records in every cell."""
        fixed = self.home >= 0
        found = np.bincount(self.home[fixed], weights=records[fixed], minlength=len(self.names))
        return np.asarray(found + self.spread.T @ records[self.ranges])

    def rows(self, values: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of each of the values in every cell."""
        dense = np.zeros((len(values), len(self.names)))
        home = self.home[values]
        fixed = np.flatnonzero(home >= 0)
        dense[fixed, home[fixed]] = 1.0
        if self.ranges.size:
            place = np.zeros(len(self.home), np.int64)
            place[self.ranges] = np.arange(len(self.ranges))
            loose = np.flatnonzero(home < 0)
            dense[loose] = self.spread[place[values[loose]]]
        return dense


def crossed(
    one: ValueCells,
    one_values: NDArray[np.int64],
    other: ValueCells,
    other_values: NDArray[np.int64],
    records: NDArray[np.int64],
) -> NDArray[np.float64]:
    """The records in every pair of cells, [one, other], of rows that show these values."""
    wide = len(other.home)
    pairs = one_values * wide + other_values
    if len(one.home) * wide <= MOST_COUNTED:
        totals = np.bincount(pairs, weights=records, minlength=1)
        pairs = np.flatnonzero(totals)
        totals = totals[pairs]
    else:
        pairs, place = np.unique(pairs, return_inverse=True)
        totals = np.bincount(place, weights=records, minlength=1)
    found = np.zeros((len(one.names), len(other.names)))
    for start in range(0, len(pairs), CHUNK):
        first, second = np.divmod(pairs[start : start + CHUNK], wide)
        found += one.rows(first).T @ (other.rows(second) * totals[start : start + CHUNK, None])
    return found


def values_of(
    name: str,
    role: str,
    texts: list[str | None],
    records: NDArray[np.int64],
    column: ColumnSettings | None,
    taxonomy: Taxonomy | None,
) -> ReleasedValuesOfColumn:
    """What is known of a column with these released values."""
    kind = None if column is None else column.implied_type
    axis = None
    if taxonomy is None and kind != "categorical" and any(text not in (None, WHOLE) for text in texts):
        try:
            axis = axis_of(name, texts, LENGTH, column=column if role == "quasi-identifier" else None)
        except InputError:  # not what its type says, or too far apart to be drawn: shown as the names that they are
            axis = None
    if axis is not None and axis.labels is not None:
        axis = None
    return ReleasedValuesOfColumn(name, role, texts, records, axis)


def cells_of(values: ReleasedValuesOfColumn, most: int) -> ValueCells:
    """At most so many cells, at least two, and those for ``*`` and null where they occur."""
    if values.axis is not None:
        return along(values, *edges_of(values.axis, most))
    plain = np.flatnonzero(values.plain)
    # Of those with as many records, the one that comes first by its name.
    order = sorted(plain.tolist(), key=lambda place: (-values.records[place], values.texts[place] or ""))
    kept = order if len(order) <= most else order[: most - 1]
    names = [values.texts[place] or "" for place in kept]
    home = np.full(len(values.texts), len(kept), np.int64)
    home[kept] = np.arange(len(kept))
    others = len(kept) < len(order)
    if others:
        names.append(f"{len(order) - len(kept):,} others")
    return _with_asides(values, names, home, np.empty(0, np.int64), np.empty((0, len(names))), None, others=others)


def along(values: ReleasedValuesOfColumn, edges: NDArray[np.float64], names: list[str]) -> ValueCells:
    """Cells between these edges for the numbers or dates."""
    assert values.axis is not None
    spans = values.axis.spans
    low, high = np.maximum(spans[:, 0], edges[0]), np.minimum(spans[:, 1], edges[-1])
    home = np.clip(np.searchsorted(edges, (low + high) / 2, side="right") - 1, 0, len(names) - 1)
    first = np.searchsorted(edges, low, side="right") - 1
    last = np.searchsorted(edges, high, side="left") - 1
    loose = values.plain & (last > first)
    ranges = np.flatnonzero(loose)
    over = np.minimum(high[ranges, None], edges[None, 1:]) - np.maximum(low[ranges, None], edges[None, :-1])
    spread = np.clip(over, 0.0, None) / (high - low)[ranges, None]
    home = np.where(loose, -1, home)
    return _with_asides(values, names, home, ranges, spread, edges)


def edges_of(axis: Axis, most: int) -> tuple[NDArray[np.float64], list[str]]:
    """The edges of at most ``most`` cells at round numbers or dates, and what each cell is called."""
    return (
        _calendar_edges(axis.low, axis.high, most)
        if axis.kind == "date"
        else (_number_edges(axis.low, axis.high, most, whole=axis.whole))
    )


def _with_asides(
    values: ReleasedValuesOfColumn,
    names: list[str],
    home: NDArray[np.int64],
    ranges: NDArray[np.int64],
    spread: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    *,
    others: bool = False,
) -> ValueCells:
    names, home, asides = list(names), home.copy(), int(others)
    for chosen, name in ((values.is_whole, WHOLE), (values.is_null, NULL)):
        if chosen.any():
            home[chosen] = len(names)
            names.append(name)
            asides += 1
    wide = np.zeros((len(ranges), len(names)))
    wide[:, : spread.shape[1]] = spread
    return ValueCells(names, asides, home, ranges, wide, edges, others)


def _number_edges(low: float, high: float, most: int, *, whole: bool) -> tuple[NDArray[np.float64], list[str]]:
    shift = 0.5 if whole else 0.0
    first, last = low + shift, high + shift
    for power in range(math.floor(math.log10(max((last - first) / most, 5e-324))), 310):
        for leading in (1, 2, 5):
            step = float(f"{leading}e{power}")
            if whole and step < 1:
                continue
            start, end = math.floor(first / step), math.ceil(last / step)
            if end - start <= most and math.isfinite((end - start) * step):
                return _numbers(start, max(end, start + 1), step, shift, whole=whole)
    return np.array([low, high]), [f"{low:g} {DASH} {high:g}"]


def _numbers(start: int, end: int, step: float, shift: float, *, whole: bool) -> tuple[NDArray[np.float64], list[str]]:
    marks = np.arange(start, end + 1, dtype=np.float64) * step
    if whole and step == 1:
        names = [f"{int(mark)}" for mark in marks[:-1]]
    elif whole:
        names = [f"{_digits(left)} {DASH} {_digits(right - 1)}" for left, right in pairwise(marks.tolist())]
    else:
        names = [f"{left:.6g} {DASH} {right:.6g}" for left, right in pairwise(marks.tolist())]
    return marks - shift, names


def _digits(number: float) -> str:
    """Years without a comma, larger numbers with."""
    return f"{number:.0f}" if abs(number) < 10_000 else f"{number:,.0f}"


def _calendar_edges(low: float, high: float, most: int) -> tuple[NDArray[np.float64], list[str]]:
    start, end = (EPOCH + np.timedelta64(int(place), "ms") for place in (low, math.ceil(high)))
    for unit, count in CALENDAR:
        first = start.astype(f"datetime64[{unit}]")
        whole = int(first.astype(np.int64)) // count * count
        steps = math.ceil(
            (int((end - np.timedelta64(1, "ms")).astype(f"datetime64[{unit}]").astype(np.int64)) - whole + 1) / count
        )
        if steps <= most or (unit, count) == CALENDAR[-1]:
            break
    marks = (whole + count * np.arange(max(steps, 1) + 1)).astype(f"datetime64[{unit}]")
    edges = marks.astype("datetime64[ms]").astype(np.int64).astype(np.float64)
    return edges, [_period(mark, unit, count) for mark in marks[:-1]]


def _period(mark: np.datetime64, unit: str, count: int) -> str:
    if unit == "W":
        return f"week of {mark.astype('datetime64[D]')}"
    if unit == "M" and count == 3:
        year, month = str(mark).split("-")[-2:]
        return f"{year} Q{(int(month) + 2) // 3}"
    return str(mark) if count == 1 else f"{mark} {DASH} {mark + (count - 1)}"


def median_width(values: ReleasedValuesOfColumn) -> float | None:
    """The width that half of the ranges, by records, do not exceed; in days for dates."""
    chosen = np.flatnonzero(values.is_range & values.plain)
    if values.axis is None or not values.records[chosen].sum():
        return None
    spans = values.axis.spans[chosen]
    unit = DAY if values.axis.kind == "date" else 1.0
    widths = (spans[:, 1] - spans[:, 0]) / unit - (1.0 if values.axis.whole else 0.0)
    order = np.argsort(widths, kind="stable")
    reached = np.cumsum(values.records[chosen][order])
    return float(widths[order][np.searchsorted(reached, reached[-1] / 2)])


def texts_shown(cells: ValueCells, records: Sequence[float]) -> list[tuple[str, int]]:
    """Every cell with its records, as whole numbers."""
    return [(name, round(many)) for name, many in zip(cells.names, records, strict=True)]
