"""Put the released values of a column into few cells, so that they can be counted, drawn and cross-tabulated.

A range that covers several cells is spread evenly over them, as a reader of the release would do. ``*`` and null have
separate cells. The categories with the most records have a cell each, and the others share one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.pictures.axes import DAY, Axis, axis_of
from sfumato.policy import ColumnSettings
from sfumato.tables.coding.released_labels import WHOLE
from sfumato.tables.decimal_commas import texts_with_exchanged_marks
from sfumato.taxonomies.periods import period_days
from sfumato.taxonomies.ready.calendar_parts import months, weekdays
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.texts import ENGLISH, Texts

NameOfCell = Callable[[Texts], str]
NamesOfCells = Callable[[Texts], list[str]]

NUMBER_FIRST = re.compile(r"\W*\d")
DIGITS = re.compile(r"\d+(?:\.\d+)?")
LENGTH = 300.0
CHUNK = 1 << 16
MOST_COUNTED = 1 << 22  # possible pairs of values that are counted in an array; more are sorted
DASH = "\N{EN DASH}"
EPOCH = np.datetime64(0, "ms")
# Units of NumPy's calendar, and how many of them make a cell.
CALENDAR = [("D", 1), ("W", 1), ("M", 1), ("M", 3), *(("Y", years) for years in (1, 2, 5, 10, 20, 50, 100, 500))]


@dataclass(frozen=True)
class ReleasedValuesOfColumn:
    """The different values of a column as text, None for null, each with its number of records."""

    name: str
    role: str
    texts: list[str | None] = field(repr=False)
    records: NDArray[np.int64] = field(repr=False)
    axis: Axis | None = field(repr=False)
    """The positions of numbers and dates; None for categories."""

    @property
    def kind(self) -> str:
        return "categorical" if self.axis is None else self.axis.kind

    @property
    def total(self) -> int:
        return int(self.records.sum())

    def among(self, chosen: NDArray[np.bool_]) -> int:
        """The number of records with one of the chosen values."""
        return int(self.records[chosen].sum())

    @property
    def is_null(self) -> NDArray[np.bool_]:
        return np.array([text is None for text in self.texts], np.bool_)

    @property
    def is_whole(self) -> NDArray[np.bool_]:
        """Whether each value is the whole domain, which says nothing. In a kept column, a star is an ordinary value."""
        return np.array([text == WHOLE and self.role == "quasi-identifier" for text in self.texts], np.bool_)

    @property
    def is_range(self) -> NDArray[np.bool_]:
        if self.axis is None:
            return np.zeros(len(self.texts), np.bool_)
        return np.array([text is not None and self._names_range(text) for text in self.texts], np.bool_)

    def _names_range(self, text: str) -> bool:
        return text[:1] == "[" or (self.kind == "date" and period_days(text) is not None)

    @property
    def plain(self) -> NDArray[np.bool_]:
        """Whether each value is neither null nor the whole domain."""
        return ~(self.is_null | self.is_whole)


@dataclass(frozen=True)
class ValueCells:
    """The cells of a column. A value is in the cell ``home``, or spread over several if that is -1."""

    names_in: NamesOfCells = field(repr=False)
    """The names of the cells in a language."""
    special: int
    """How many of the last cells are special: many values together, ``*`` or null."""
    home: NDArray[np.int64]
    ranges: NDArray[np.int64]
    """The values that are spread over several cells."""
    spread: NDArray[np.float64]
    """The share of each of the ``ranges`` in every cell."""
    edges: NDArray[np.float64] | None = None
    others: bool = False
    """Whether the first special cell holds many values."""

    @cached_property
    def names(self) -> list[str]:
        """The names of the cells for programs."""
        return self.names_in(ENGLISH)

    def totals(self, records: NDArray[np.int64]) -> NDArray[np.float64]:
        """The number of records in every cell. ``records``: by value."""
        fixed = self.home >= 0
        counts = np.bincount(self.home[fixed], weights=records[fixed], minlength=self.spread.shape[1])
        return np.asarray(counts + self.spread.T @ records[self.ranges])

    def rows(self, values: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of each of the values in every cell: float64[values, cells]."""
        shares = np.zeros((len(values), self.spread.shape[1]))
        home = self.home[values]
        fixed = np.flatnonzero(home >= 0)
        shares[fixed, home[fixed]] = 1.0
        if self.ranges.size:
            range_of_value = np.zeros(len(self.home), np.int64)
            range_of_value[self.ranges] = np.arange(len(self.ranges))
            spread = np.flatnonzero(home < 0)
            shares[spread] = self.spread[range_of_value[values[spread]]]
        return shares


def cross_tabulate(
    x: ValueCells,
    x_values: NDArray[np.int64],
    y: ValueCells,
    y_values: NDArray[np.int64],
    records: NDArray[np.int64],
) -> NDArray[np.float64]:
    """The number of records in every pair of cells: float64[x, y]. Each row has two values and a number of records."""
    width = len(y.home)
    pairs = x_values * width + y_values
    if len(x.home) * width <= MOST_COUNTED:
        totals = np.bincount(pairs, weights=records, minlength=1)
        pairs = np.flatnonzero(totals)
        totals = totals[pairs]
    else:
        pairs, pair_of_row = np.unique(pairs, return_inverse=True)
        totals = np.bincount(pair_of_row, weights=records, minlength=1)
    counts = np.zeros((x.spread.shape[1], y.spread.shape[1]))
    for start in range(0, len(pairs), CHUNK):
        x_value, y_value = np.divmod(pairs[start : start + CHUNK], width)
        counts += x.rows(x_value).T @ (y.rows(y_value) * totals[start : start + CHUNK, None])
    return counts


def values_of(
    name: str,
    role: str,
    texts: list[str | None],
    records: NDArray[np.int64],
    column: ColumnSettings | None,
    taxonomy: Taxonomy | None,
    *,
    commas: bool = False,
) -> ReleasedValuesOfColumn:
    """The released values of a column, with their positions if they are numbers or dates that can be drawn.

    ``commas``: whether numbers of the input have a decimal comma. A column that is kept then still has it.
    """
    kind = None if column is None else column.implied_type
    axis = None
    if taxonomy is None and kind != "categorical" and any(text not in (None, WHOLE) for text in texts):
        recoded = role == "quasi-identifier"
        read = texts_with_exchanged_marks(texts) if commas and not recoded else texts
        try:
            axis = axis_of(name, read, LENGTH, column=column if recoded else None)
        except InputError:  # not of the declared type, or too far apart to draw: treated as names
            axis = None
    if axis is not None and axis.labels is not None:
        axis = None
    return ReleasedValuesOfColumn(name, role, texts, records, axis)


def cells_of(values: ReleasedValuesOfColumn, most: int) -> ValueCells:
    """At most ``most`` cells (at least 2) for the values, and one each for ``*`` and null if they occur."""
    if values.axis is not None:
        return _cells_between(values, *edges_of(values.axis, most))
    plain = np.flatnonzero(values.plain)
    # By descending number of records; ties by name.
    order = sorted(plain.tolist(), key=lambda value: (-values.records[value], values.texts[value] or ""))
    kept = in_their_order(order if len(order) <= most else order[: most - 1], values.texts)
    shown = [values.texts[value] or "" for value in kept]
    home = np.full(len(values.texts), len(kept), np.int64)
    home[kept] = np.arange(len(kept))
    others = len(kept) < len(order)
    names = named_cells(shown, len(order) - len(kept))
    count = len(kept) + others
    return _with_special(values, names, home, np.empty(0, np.int64), np.empty((0, count)), None, others=others)


def in_their_order(chosen: Sequence[int], texts: Sequence[str | None]) -> list[int]:
    """The chosen values in an order of their own, if they have one: months, weekdays, codes and numbers."""
    names = {value: texts[value] or "" for value in chosen}
    for calendar in (months(), weekdays()):
        for writing in calendar.writings:
            leaves = {value: leaf for value, text in names.items() if (leaf := writing.leaf(text)) is not None}
            if len(leaves) == len(names):
                return sorted(chosen, key=leaves.__getitem__)
    if not all(NUMBER_FIRST.match(text) for text in names.values()):
        return list(chosen)
    if len({len(text) for text in names.values()}) == 1:  # codes, such as 10115 and 101**
        return sorted(chosen, key=names.__getitem__)
    return sorted(chosen, key=lambda value: [float(number) for number in DIGITS.findall(names[value])])


def named_cells(shown: Sequence[str], others: int) -> NamesOfCells:
    """The names of values, and of a cell for the others if there are any."""
    return lambda say: [*shown, *([say("report.others", count=others)] if others else [])]


def _cells_between(values: ReleasedValuesOfColumn, edges: NDArray[np.float64], names: NamesOfCells) -> ValueCells:
    """The cells of numbers or dates between these edges."""
    assert values.axis is not None
    cells = len(edges) - 1
    spans = values.axis.spans
    low, high = np.maximum(spans[:, 0], edges[0]), np.minimum(spans[:, 1], edges[-1])
    home = np.clip(np.searchsorted(edges, (low + high) / 2, side="right") - 1, 0, cells - 1)
    first = np.searchsorted(edges, low, side="right") - 1
    last = np.searchsorted(edges, high, side="left") - 1
    in_several = values.plain & (last > first)
    ranges = np.flatnonzero(in_several)
    overlap = np.minimum(high[ranges, None], edges[None, 1:]) - np.maximum(low[ranges, None], edges[None, :-1])
    spread = np.clip(overlap, 0.0, None) / (high - low)[ranges, None]
    home = np.where(in_several, -1, home)
    return _with_special(values, names, home, ranges, spread, edges)


def edges_of(axis: Axis, most: int) -> tuple[NDArray[np.float64], NamesOfCells]:
    """The edges of at most ``most`` cells at round numbers or dates, and the name of each cell in a language."""
    if axis.kind == "date":
        return _calendar_edges(axis.low, axis.high, most)
    return _number_edges(axis.low, axis.high, most, whole=axis.whole)


def _with_special(
    values: ReleasedValuesOfColumn,
    names: NamesOfCells,
    home: NDArray[np.int64],
    ranges: NDArray[np.int64],
    spread: NDArray[np.float64],
    edges: NDArray[np.float64] | None,
    *,
    others: bool = False,
) -> ValueCells:
    """The cells with further ones for ``*`` and null where they occur."""
    home, plain = home.copy(), spread.shape[1]
    added: list[NameOfCell] = []
    for chosen, name in ((values.is_whole, whole_name), (values.is_null, null_name)):
        if chosen.any():
            home[chosen] = plain + len(added)
            added.append(name)
    widened = np.zeros((len(ranges), plain + len(added)))
    widened[:, :plain] = spread

    def all_names(say: Texts) -> list[str]:
        return [*names(say), *(name(say) for name in added)]

    return ValueCells(all_names, int(others) + len(added), home, ranges, widened, edges, others)


def whole_name(say: Texts) -> str:
    """The name of the cell of ``*``, in every language."""
    return WHOLE


def null_name(say: Texts) -> str:
    """The name of the cell of null."""
    return say("report.null")


def _number_edges(low: float, high: float, most: int, *, whole: bool) -> tuple[NDArray[np.float64], NamesOfCells]:
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
    return np.array([low, high]), lambda say: [f"{say.number(low, 'g')} {DASH} {say.number(high, 'g')}"]


def _numbers(
    start: int, end: int, step: float, shift: float, *, whole: bool
) -> tuple[NDArray[np.float64], NamesOfCells]:
    marks = np.arange(start, end + 1, dtype=np.float64) * step
    ends = list(pairwise(marks.tolist()))

    def names(say: Texts) -> list[str]:
        if whole and step == 1:
            return [f"{int(mark)}" for mark in marks[:-1]]
        if whole:
            return [f"{_digits(left, say)} {DASH} {_digits(right - 1, say)}" for left, right in ends]
        return [f"{say.number(left, '.6g')} {DASH} {say.number(right, '.6g')}" for left, right in ends]

    return marks - shift, names


def _digits(number: float, say: Texts) -> str:
    """A number without a comma, as years are written, or with commas if it is larger."""
    return f"{number:.0f}" if abs(number) < 10_000 else say.number(number, ",.0f")


def _calendar_edges(low: float, high: float, most: int) -> tuple[NDArray[np.float64], NamesOfCells]:
    start, end = (EPOCH + np.timedelta64(int(position), "ms") for position in (low, math.ceil(high)))
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
    return edges, lambda say: [_period(mark, unit, count, say) for mark in marks[:-1]]


def _period(mark: np.datetime64, unit: str, count: int, say: Texts) -> str:
    if unit == "W":
        return say("report.week_of", day=str(mark.astype("datetime64[D]")))
    if unit == "M" and count == 3:
        year, month = str(mark).split("-")[-2:]
        return f"{year} Q{(int(month) + 2) // 3}"
    return str(mark) if count == 1 else f"{mark} {DASH} {mark + (count - 1)}"


def median_width(values: ReleasedValuesOfColumn) -> float | None:
    """The median width of ranges, weighted by records; in days for dates. None if there are no ranges."""
    chosen = np.flatnonzero(values.is_range & values.plain)
    if values.axis is None or not values.records[chosen].sum():
        return None
    spans = values.axis.spans[chosen]
    unit = DAY if values.axis.kind == "date" else 1.0
    widths = (spans[:, 1] - spans[:, 0]) / unit - (1.0 if values.axis.whole else 0.0)
    order = np.argsort(widths, kind="stable")
    cumulative = np.cumsum(values.records[chosen][order])
    return float(widths[order][np.searchsorted(cumulative, cumulative[-1] / 2)])


def texts_shown(names: Sequence[str], records: Sequence[float]) -> list[tuple[str, int]]:
    """The name of every cell with its number of records, rounded."""
    return [(name, round(count)) for name, count in zip(names, records, strict=True)]
