"""The domain of a quasi-identifier: its values as codes, and how a range of codes is released.

Codes follow the order of the values (numbers, dates) or of the taxonomy's leaves, so a class is described by its
smallest and largest code on every quasi-identifier: its box. Null is a value of its own, always the last code; a box
that reaches from a value to null is the whole domain.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.taxonomies.snapping import Snap
from sfumato.taxonomies.tree import Taxonomy

WHOLE = "*"
Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class ReleasedValues:
    """What a set of boxes shows for one quasi-identifier.

    ``index`` says for each box which entry it shows. Entries are distinct. ``labels`` are texts, None for null;
    ``low`` and ``high`` are the typed bounds of the entries, null where an entry is not a range.
    """

    index: NDArray[np.int64]
    labels: list[str | None]
    low: pa.Array
    high: pa.Array


class Domain(Protocol):
    """What the rest of the product knows of one quasi-identifier."""

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

    def coordinates(self) -> NDArray[np.float64]:
        """Each code's place in [0, 1], for orderings."""
        ...

    def release(self, low: Codes, high: Codes) -> ReleasedValues:
        """What boxes show that reach from ``low`` to ``high``, code by code."""
        ...

    def penalties(self, labels: Sequence[str | None]) -> NDArray[np.float64]:
        """The normalised certainty penalty of each released label, NaN for one that is not of this domain."""
        ...


@dataclass(frozen=True)
class NumericDomain:
    """Numbers, dates or moments: sorted distinct values, int64 or float64.

    Dates are days since 1970-01-01, moments microseconds since then.
    """

    name: str
    values: NDArray[np.int64] | NDArray[np.float64]
    has_null: bool
    kind: str = "numeric"  # numeric | date | moment
    snap: Snap | None = None

    @property
    def size(self) -> int:
        return len(self.values) + self.has_null

    @property
    def extent(self) -> float:
        return float(self.values[-1] - self.values[0]) if len(self.values) else 0.0

    def coordinates(self) -> NDArray[np.float64]:
        scaled = np.ones(self.size)
        if self.extent > 0:
            scaled[: len(self.values)] = (self.values - self.values[0]) / self.extent
        else:
            scaled[: len(self.values)] = 0.0
        return scaled

    def release(self, low: Codes, high: Codes) -> ReleasedValues:
        pairs, index = np.unique(low.astype(np.int64) * self.size + high, return_inverse=True)
        first, last = pairs // self.size, pairs % self.size
        null = len(self.values)
        labels: list[str | None] = [WHOLE] * len(pairs)
        bounds: list[tuple[float | int, float | int] | None] = [None] * len(pairs)
        inside = np.flatnonzero(last < null)
        bottom, top = self.values[first[inside]], self.values[last[inside]]
        whole = np.zeros(len(inside), np.bool_)
        if self.snap is not None:
            bottom, top, whole = self.snap.snap(bottom, top, self.values.dtype.kind == "i")
        for entry, a, b, everything in zip(inside.tolist(), bottom.tolist(), top.tolist(), whole.tolist(), strict=True):
            covers = everything or (a <= self.values[0] and b >= self.values[-1])
            if covers and (a < b or everything) and len(self.values) > 1:
                bounds[entry] = (self.values[0].item(), self.values[-1].item())
            else:
                labels[entry] = self.text(a) if a == b else f"[{self.text(a)}..{self.text(b)}]"
                bounds[entry] = (a, b)
        if self.has_null:
            for entry in np.flatnonzero(first == null).tolist():
                labels[entry] = None
        return _merged(index, labels, self._typed(bounds, 0), self._typed(bounds, 1))

    def _typed(self, bounds: list[tuple[float | int, float | int] | None], side: int) -> pa.Array:
        kinds = {"date": pa.date32(), "moment": pa.timestamp("us")}
        plain = pa.array(
            [None if bound is None else bound[side] for bound in bounds],
            pa.int64() if self.values.dtype.kind == "i" else pa.float64(),
        )
        if self.kind == "date":
            return plain.cast(pa.int32()).cast(kinds["date"])
        return plain.cast(kinds["moment"]) if self.kind == "moment" else plain

    def text(self, value: float | int) -> str:
        """The shortest form that reads back as the same value."""
        if self.kind == "date":
            return (datetime.date(1970, 1, 1) + datetime.timedelta(days=int(value))).isoformat()
        if self.kind == "moment":
            return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(value))).isoformat()
        return number_text(value)

    def penalties(self, labels: Sequence[str | None]) -> NDArray[np.float64]:
        return np.array([self._penalty(label) for label in labels], np.float64)

    def _penalty(self, label: str | None) -> float:
        if label is None:
            return 0.0
        if label == WHOLE:
            return 1.0
        low, bar, high = label[1:-1].partition("..") if label[:1] == "[" and label[-1:] == "]" else (label, "", label)
        bottom, top = self._read(low), self._read(high if bar else low)
        if math.isnan(bottom) or math.isnan(top) or bottom > top:
            return math.nan
        if top == bottom:
            return 0.0
        return min((top - bottom) / self.extent, 1.0) if self.extent > 0 else 1.0

    def _read(self, text: str) -> float:
        try:
            if self.kind == "date":
                return float((datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days)
            if self.kind == "moment":
                passed = datetime.datetime.fromisoformat(text) - datetime.datetime(1970, 1, 1)
                return float(passed // datetime.timedelta(microseconds=1))
            return float(text)
        except ValueError:
            return math.nan


@dataclass(frozen=True)
class CategoricalDomain:
    """Categories: the leaves of a taxonomy, released as the lowest node that holds a class."""

    name: str
    taxonomy: Taxonomy
    has_null: bool
    kind: str = "categorical"

    @property
    def size(self) -> int:
        return len(self.taxonomy.leaves) + self.has_null

    def coordinates(self) -> NDArray[np.float64]:
        return np.arange(self.size) / max(self.size - 1, 1)

    def release(self, low: Codes, high: Codes) -> ReleasedValues:
        leaves = len(self.taxonomy.leaves)
        null_node = len(self.taxonomy.labels)
        nodes = np.zeros(len(low), np.int64)  # the root, also for a box that mixes null with something else
        inside = high < leaves
        nodes[inside] = self.taxonomy.lowest_common_ancestor(low[inside], high[inside])
        nodes[low == leaves] = null_node
        shown, index = np.unique(nodes, return_inverse=True)
        labels = [None if node == null_node else self.taxonomy.labels[node] for node in shown.tolist()]
        nothing = pa.nulls(len(labels))
        return ReleasedValues(index, labels, nothing, nothing)

    def penalties(self, labels: Sequence[str | None]) -> NDArray[np.float64]:
        span, nodes = self.taxonomy.span(), self.taxonomy.node_of_label()
        leaves = len(self.taxonomy.leaves)
        result = np.full(len(labels), math.nan)
        for position, label in enumerate(labels):
            if label is None:
                result[position] = 0.0
            elif label == WHOLE:
                result[position] = 1.0
            elif label in nodes:
                under = int(span[nodes[label]])
                result[position] = 0.0 if under == 1 else under / leaves
        return result


def number_text(value: float | int) -> str:
    """A number as people write it: 25, not 25.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value)


def _merged(index: NDArray[np.int64], labels: list[str | None], low: pa.Array, high: pa.Array) -> ReleasedValues:
    """The same with equal entries made one: two boxes may be widened to the same range."""
    seen: dict[tuple[str | None, object, object], int] = {}
    keys = zip(labels, low.to_pylist(), high.to_pylist(), strict=True)
    entry = np.array([seen.setdefault(key, len(seen)) for key in keys], np.int64)
    if len(seen) == len(labels):
        return ReleasedValues(index, labels, low, high)
    keep = pa.array(np.unique(entry, return_index=True)[1])
    return ReleasedValues(entry[index], [labels[place] for place in keep.to_pylist()], low.take(keep), high.take(keep))
