"""The domain of a quasi-identifier: its values as codes, and how a range of codes is released.

Codes follow the order of the values (numbers, dates) or of the taxonomy's leaves. A class is therefore described by its
smallest and largest code on every quasi-identifier: its box. Null is a value of its own and always the last code. A box
that holds both a value and null is the whole domain.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.tables.coding.arrow_arrays import from_numpy, from_texts
from sfumato.tables.coding.released_labels import (
    WHOLE,
    moment_texts,
    number_text,
    read_number,
    released_ends,
    without_signs,
)
from sfumato.tables.coding.scaled_integers import decimal_text, decimals_of, in_units
from sfumato.tables.coding.sorting import distinct_numbers
from sfumato.taxonomies.code_tree import CodeTree, nested_groups
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.widening import Snap, Snapped

BELOW, ABOVE = "-", "+"
Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class ReleasedValues:
    """The released values of one quasi-identifier for a set of boxes.

    ``index`` gives the entry of each box; two entries may be equal. ``labels`` are texts, with null for null. ``low``
    and ``high`` are the typed bounds of the entries, null where an entry is not a range.
    """

    index: NDArray[np.int64]
    labels: pa.StringArray
    low: pa.Array
    high: pa.Array


class Domain(Protocol):
    """What other packages may ask about one quasi-identifier."""

    @property
    def name(self) -> str: ...

    @property
    def has_null(self) -> bool: ...

    @property
    def size(self) -> int:
        """The number of codes, null included."""
        ...

    @property
    def kind(self) -> str: ...

    @property
    def tree(self) -> CodeTree | None:
        """The nested groups that classes are released as; None where they are released as ranges of any ends."""
        ...

    @property
    def finest(self) -> int:
        """The level of the codes: 0 are the values, 1 the first step more general."""
        ...

    @property
    def coarsest(self) -> int | None:
        """The most general level that may be shown; None if that is ``*``."""
        ...

    @property
    def top_level(self) -> int:
        """The number of the level that is ``*``."""
        ...

    def at_level(self, level: int) -> tuple[Domain, NDArray[np.uint32]]:
        """Return the domain whose codes are the groups of a level below ``*``, and the group of each code.

        Null stays a value of its own.
        """
        ...

    def node_penalties(self) -> NDArray[np.float64]:
        """Return the normalised certainty penalty of each node of the tree."""
        ...

    def coordinates(self) -> NDArray[np.float64]:
        """Return the coordinate of each code in [0, 1], for orderings."""
        ...

    def release(self, low: Codes, high: Codes) -> ReleasedValues:
        """Return the released values of boxes with codes from ``low`` to ``high``, both included."""
        ...

    def penalties(self, labels: Sequence[str | None]) -> NDArray[np.float64]:
        """Return the normalised certainty penalty of each released label; NaN for a label outside the domain."""
        ...

    def spans(self, labels: Sequence[str | None]) -> NDArray[np.int64]:
        """Return the first code under each released label, and one past the last; 0 and 0 outside the domain."""
        ...


@dataclass(frozen=True)
class NumericDomain:
    """Numbers, dates or moments: sorted distinct values, int64 or float64.

    Dates are days since 1970-01-01, moments microseconds since then. Decimals, and moments in nanoseconds, are integers
    with ``scale`` further decimal places: 255 at scale 2 is 2.55. Numbers below ``lowest`` were made equal to it, and
    numbers above ``highest`` to that: these two are released as ``18-`` and ``90+``. With ``finest`` above 0 the values
    are the first of their cells on that level, and ``extent`` has the smallest and the largest value of the table.
    """

    name: str
    values: NDArray[Any]
    has_null: bool
    kind: str = "numeric"  # numeric | date | moment
    snap: Snap | None = None
    scale: int = 0
    bound_type: pa.DataType | None = None  # of decimals, and of moments with a time zone or in nanoseconds
    lowest: float | int | None = None
    highest: float | int | None = None
    finest: int = 0
    coarsest: int | None = None
    extent: NDArray[Any] | None = None

    @property
    def size(self) -> int:
        return len(self.values) + self.has_null

    @property
    def top_level(self) -> int:
        return 1 if self.snap is None else self.snap.sizes + 1

    @property
    def ends(self) -> NDArray[Any]:
        """The smallest and the largest value of the table; none if every value is null."""
        if self.extent is not None:
            return self.extent
        return self.values[[0, -1]] if len(self.values) else self.values

    def at_level(self, level: int) -> tuple[NumericDomain, NDArray[np.uint32]]:
        if level == self.finest:
            return self, np.arange(self.size, dtype=np.uint32)
        cells = None if self.snap is None else self.snap.cells(self.values, self.is_whole, self._decimal_scale)
        if cells is None or not self.finest < level < self.top_level:
            raise ValueError(f"there is no level {level} between {self.finest} and {self.top_level}")
        values, groups = np.unique(self._clipped(cells[level - 1]), return_inverse=True)
        codes = np.append(groups.ravel(), len(values))[: self.size].astype(np.uint32)
        return replace(self, values=values, finest=level, extent=self.ends), codes

    @property
    def is_decimal(self) -> bool:
        return self.bound_type is not None and self.kind == "numeric"

    @property
    def is_whole(self) -> bool:
        """Whether the column can hold nothing but whole numbers: of its unit, or of the unit of its type."""
        if self.bound_type is not None and self.is_decimal:
            return bool(self.bound_type.scale <= 0)
        return self.values.dtype.kind == "i"

    @cached_property
    def tree(self) -> CodeTree | None:
        firsts = None if self.snap is None else self.snap.cells(self.values, self.is_whole, self._decimal_scale)
        if firsts is None:
            return None
        shown = reversed(firsts[self.finest : self.coarsest])
        starts = [np.append(True, first[1:] != first[:-1])[: len(self.values)] for first in shown]
        return nested_groups(starts, len(self.values), whole_group=self.coarsest is not None)[0]

    def node_penalties(self) -> NDArray[np.float64]:
        assert self.tree is not None
        if not len(self.values):
            return np.ones(1)
        bottom, top = self.shown_positions(self.tree.first, self.tree.last)
        penalties = np.minimum(top - bottom, 1.0)
        penalties[0] = 1.0 if len(self.values) > 1 else 0.0
        return penalties

    def coordinates(self) -> NDArray[np.float64]:
        scaled = np.ones(self.size)
        scaled[: len(self.values)] = _shares(self.values, self.values)
        return scaled

    def shown_positions(
        self, low: NDArray[np.integer], high: NDArray[np.integer]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return where the released ranges of low..high begin and end, if the values lie from 0 to 1. No code is null.

        What is released as ``*`` for want of a cell begins at -inf and ends at inf.
        """
        bottom, top, unheld = self._shown(self.values[low], self.values[high])
        begin, end = _shares(bottom, self.ends), _shares(top, self.ends)
        return np.where(unheld, -np.inf, begin), np.where(unheld, np.inf, end)

    def _shown(self, low: NDArray[Any], high: NDArray[Any]) -> Snapped:
        """Return the ends of the released ranges around low..high. Where ``whole`` is set, no cell holds the range."""
        shown = Snapped(low, high, np.zeros(len(low), np.bool_))
        if self.snap is not None:
            shown = self.snap.snap(low, high, self.is_whole, self._decimal_scale, finest=self.finest)
        # A cell that holds the highest value also holds everything above it, and likewise below.
        return Snapped(self._clipped(shown.low), self._clipped(shown.high), shown.whole)

    def cell_starts(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the first value of the cell, on the finest level, that holds each value. They may be any numbers."""
        if self.finest == 0 or self.snap is None:
            return values
        # NaN, and whole numbers beyond 64 bits, are in no cell.
        least, most = (-math.inf, math.inf) if self.values.dtype.kind == "f" else (-(2**63), 2**63 - 1)
        known = np.array([least <= value <= most for value in values.tolist()], np.bool_)
        starts = values.copy()
        cells = self.snap.cells(values[known].astype(self.values.dtype), self.is_whole, self._decimal_scale)
        assert cells is not None
        starts[known] = self._clipped(cells[self.finest - 1])
        return starts

    def cell_ends(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return where the cell, on the finest level, of each value ends; the value itself without such a level."""
        return values if self.finest == 0 else self._shown(values, values).high

    def _clipped(self, values: NDArray[Any]) -> NDArray[Any]:
        unclipped = self.lowest is None and self.highest is None
        return values if unclipped else np.clip(values, self.lowest, self.highest)

    @property
    def _decimal_scale(self) -> int | None:
        return self.scale if self.is_decimal else None

    def release(self, low: Codes, high: Codes) -> ReleasedValues:
        pairs, index = distinct_numbers(low.astype(np.int64) * self.size + high, self.size**2)
        first, last = pairs // self.size, pairs % self.size
        null = len(self.values)
        if not null:  # every value is null
            no_bounds = self._typed(np.zeros(len(pairs), self.values.dtype), np.ones(len(pairs), np.bool_))
            return ReleasedValues(index, pa.nulls(len(pairs), pa.string()), no_bounds, no_bounds)
        mixed = last == null
        ends = self.values[np.where(mixed, 0, first)], self.values[np.where(mixed, 0, last)]
        bottom, top, unheld = self._shown(*ends)
        smallest, largest = self.ends
        whole = unheld & ((bottom < top) | (self.finest > 0))
        if self.coarsest is None:
            several = (first != last) | (self.finest == 0)  # a single cell shows itself even if it holds every value
            whole |= (bottom <= smallest) & (top >= largest) & (bottom < top) & several
        texts, upper = self._open_texts(bottom), self._open_texts(top)
        left, dots, right, separator = from_texts(["[", "..", "]", ""])
        ranges = pc.binary_join_element_wise(left, texts, dots, upper, right, separator)
        labels = pc.if_else(from_numpy(bottom == top), texts, ranges)
        if self.snap is not None:
            labels = pc.coalesce(from_texts(self.snap.names(bottom, top)), labels)
        labels = pc.if_else(from_numpy(whole | mixed), from_texts([WHOLE])[0], labels)
        labels = pc.if_else(from_numpy(first == null), pa.nulls(1, pa.string())[0], labels)
        # What no interval or period holds has no bounds: those of the table may be values of records left out.
        missing = mixed | unheld
        return ReleasedValues(index, labels, self._typed(bottom, missing), self._typed(top, missing))

    def _typed(self, values: NDArray[Any], missing: NDArray[np.bool_]) -> pa.Array:
        if self.is_decimal:
            assert self.bound_type is not None
            return decimals_of(values, missing, self.scale, self.bound_type)
        numbers = from_numpy(values, missing)
        if self.kind == "date":
            return numbers.cast(pa.int32()).cast(pa.date32())
        return numbers.cast(self.bound_type or pa.timestamp("us")) if self.kind == "moment" else numbers

    def texts(self, values: NDArray[Any]) -> pa.StringArray:
        """Write values in the shortest form that reads back as the same value."""
        if self.kind == "date":
            return from_numpy(values).cast(pa.int32()).cast(pa.date32()).cast(pa.string())
        if self.kind == "moment":
            return from_texts(list(moment_texts(values, self.scale, self.zone)))
        if self.is_decimal:
            return from_texts([decimal_text(value, self.scale) for value in values.tolist()])
        if values.dtype.kind == "f":
            return from_texts([number_text(value) for value in values.tolist()])
        return from_numpy(values).cast(pa.string())

    def _open_texts(self, values: NDArray[Any]) -> pa.StringArray:
        """Write the ends of ranges; the lowest and the highest value say that they stand for others too."""
        texts = self.texts(values)
        for end, sign in ((self.lowest, BELOW), (self.highest, ABOVE)):
            if end is not None:
                signed = pc.binary_join_element_wise(texts, *from_texts([sign, ""]))
                texts = pc.if_else(from_numpy(values == end), signed, texts)
        return texts

    def penalties(self, labels: Sequence[str | None]) -> NDArray[np.float64]:
        read, extent = cache(self.read), self.ends.tolist() if len(self.values) else None  # many labels share an end
        return np.array([self._penalty(label, read, extent) for label in labels], np.float64)

    def _penalty(
        self, label: str | None, read: Callable[[str], float | Fraction], extent: Sequence[float] | None
    ) -> float:
        if label is None:
            return 0.0
        if label == WHOLE:
            return 1.0
        ends = self._ends(label, read)
        if ends is None:
            return math.nan
        bottom, top = ends
        if top == bottom or extent is None:
            return 0.0
        first, last = extent
        if first == last:
            return 1.0
        if math.isinf(last - first):
            bottom, top, first, last = bottom / 2, top / 2, first / 2, last / 2
        return float(min((top - bottom) / (last - first), 1.0))

    def spans(self, labels: Sequence[str | None]) -> NDArray[np.int64]:
        values, read = self.values.tolist(), cache(self.read)
        spans = np.zeros((len(labels), 2), np.int64)
        for position, label in enumerate(labels):
            if label is None:
                spans[position] = len(values), self.size
            elif label == WHOLE:
                spans[position] = 0, self.size
            elif (ends := self._ends(label, read)) is not None:
                spans[position] = bisect_left(values, ends[0]), bisect_right(values, ends[1])
        return spans

    @property
    def zone(self) -> str | None:
        """The time zone of moments."""
        return self.bound_type.tz if self.kind == "moment" and self.bound_type is not None else None

    def read(self, text: str) -> float | Fraction:
        """Read a number, date or moment in the unit of the values; NaN if the text is not one."""
        unit: int = 10**self.scale
        return read_number(text, "decimal" if self.is_decimal else self.kind) * unit

    def numbers(self) -> NDArray[np.float64]:
        """Return the values as the nearest floats: numbers, days or microseconds."""
        return in_units(self.values, self.scale)

    def _ends(
        self, label: str, read: Callable[[str], float | Fraction]
    ) -> tuple[float | Fraction, float | Fraction] | None:
        """Return the smallest and largest value that a label allows, or None for a label outside the domain.

        read: as ``self.read``.
        """
        closed = label if self.lowest is None and self.highest is None else without_signs(label)
        ends = released_ends(closed, read, day=1 if self.kind == "date" else 0)
        if ends is not None and self.kind == "date" and any(Fraction(end).denominator > 1 for end in ends):
            return None  # a moment within a day is not a date
        return ends


@dataclass(frozen=True)
class CategoricalDomain:
    """Categories: the leaves of a taxonomy. A class is released as the lowest node above all of its leaves."""

    name: str
    taxonomy: Taxonomy
    has_null: bool
    kind: str = "categorical"
    coarsest: int | None = None

    @property
    def size(self) -> int:
        return len(self.taxonomy.leaves) + self.has_null

    @property
    def finest(self) -> int:
        return self.taxonomy.finest

    @property
    def top_level(self) -> int:
        return self.taxonomy.top_level

    def at_level(self, level: int) -> tuple[CategoricalDomain, NDArray[np.uint32]]:
        codes = np.append(self.taxonomy.level_codes(level), 0).astype(np.uint32)
        cut = replace(self, taxonomy=self.taxonomy.cut(level, self.coarsest))
        codes[-1] = len(cut.taxonomy.leaves)
        return cut, codes[: self.size]

    @property
    def tree(self) -> Taxonomy:
        return self.taxonomy

    def node_penalties(self) -> NDArray[np.float64]:
        values = self.taxonomy.values_under()
        return np.where(values == 1, 0.0, values / max(int(values[0]), 1))

    def coordinates(self) -> NDArray[np.float64]:
        return np.arange(self.size) / max(self.size - 1, 1)

    def release(self, low: Codes, high: Codes) -> ReleasedValues:
        leaves = len(self.taxonomy.leaves)
        null_node = len(self.taxonomy.labels)
        nodes = np.zeros(len(low), np.int64)  # the root, also for a box that mixes null with something else
        inside = high < leaves
        nodes[inside] = self.taxonomy.lowest_common_ancestor(low[inside], high[inside])
        nodes[low == leaves] = null_node
        released_nodes, index = distinct_numbers(nodes, null_node + 1)
        names = [None if node == null_node else self.taxonomy.labels[node] for node in released_nodes.tolist()]
        labels, no_bounds = from_texts(names), pa.nulls(len(names))
        return ReleasedValues(index, labels, no_bounds, no_bounds)

    def penalties(self, labels: Sequence[str | None]) -> NDArray[np.float64]:
        penalties, nodes = self.node_penalties(), self.taxonomy.node_of_label()
        result = np.full(len(labels), math.nan)
        for position, label in enumerate(labels):
            if label is None:
                result[position] = 0.0
            elif label == WHOLE:
                result[position] = 1.0
            elif label in nodes:
                result[position] = penalties[nodes[label]]
        return result

    def spans(self, labels: Sequence[str | None]) -> NDArray[np.int64]:
        nodes = self.taxonomy.node_of_label()
        spans = np.zeros((len(labels), 2), np.int64)
        for position, label in enumerate(labels):
            if label is None:
                spans[position] = len(self.taxonomy.leaves), self.size
            elif label == WHOLE:
                spans[position] = 0, self.size
            elif label in nodes:
                spans[position] = self.taxonomy.first[nodes[label]], self.taxonomy.last[nodes[label]] + 1
        return spans


def numbers_of(domain: Domain) -> NDArray[np.float64]:
    """Return each code as a number for learners: the number itself, or the position of a category; null comes last."""
    if not isinstance(domain, NumericDomain) or not len(domain.values):
        return np.arange(domain.size, dtype=np.float64)
    numbers = domain.numbers()
    # For numbers such as 1e22, adding 1 gives the same number.
    return np.append(numbers, max(numbers[-1] + 1, np.nextafter(numbers[-1], np.inf)))[: domain.size]


def _shares(numbers: NDArray[Any], values: NDArray[Any]) -> NDArray[np.float64]:
    """Scale numbers linearly so that the first of the ascending ``values`` would be 0 and the last 1.

    If there is one value only, what lies below it is -1, and what lies above it 1.
    """
    if not len(values):
        return np.zeros(len(numbers))
    if values[0] == values[-1]:
        return np.asarray(np.sign(numbers - values[0]), np.float64)
    if values.dtype.kind == "f":
        first, last = values[0] / 2, values[-1] / 2  # the distance between two large numbers may overflow
        return np.asarray((numbers / 2 - first) / (last - first))
    # Unsigned differences of arrays are exact up to 64 bits.
    unsigned = numbers.astype(np.int64).view(np.uint64)
    first, last = values[:1].astype(np.int64).view(np.uint64), values[-1:].astype(np.int64).view(np.uint64)
    below, above = (first - unsigned) / (last - first), (unsigned - first) / (last - first)
    return np.asarray(np.where(numbers < values[0], -below, above))
