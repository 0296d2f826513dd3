"""Where the released values of a quasi-identifier stand on an axis.

Numbers and dates stand where they are, and a range from its lower to its upper end: a whole number takes the room up to
halfway to its neighbours, a date its day. Categories stand in the order of the taxonomy's leaves, and a group takes the
room of its leaves; without a taxonomy every released value is a category of its own, in the order of the text. ``*``
takes the whole axis. Null has a strip of its own behind the other values.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy import ColumnSettings, Grouping
from sfumato.tables.coding.domains import WHOLE, CategoricalDomain, label_of, read_number
from sfumato.tables.coding.profile import LEADING_ZERO
from sfumato.tables.coding.value_order import is_missing
from sfumato.taxonomies.taxonomy import Taxonomy

Range = tuple[float, float]
Read = Callable[[str], float | None]

DAY = 86_400_000.0  # milliseconds, in which pictures count time
THINNEST = 3.0  # units of the picture: what is smaller is drawn as large as this, so that it can be seen
STRIP, GAP = 18.0, 9.0  # the strip of null, and the space before it
LABEL = 15.0  # the room that the label of a category needs
LAST_CHARACTER = chr(0x10FFFF)


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The names along an axis of categories: the middle of each, its text, and the borders between all of them."""

    middles: list[float]
    texts: list[str] = field(repr=False)  # a repr ends in logs
    borders: list[float]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis of ``length`` units of the picture; ``spans[value]`` is what a released value takes of it."""

    name: str
    kind: str  # numeric | date | categorical
    length: float
    low: float
    high: float
    end: float  # behind the strip of null, where there is one
    spans: NDArray[np.float64]
    whole: bool = False
    labels: Labels | None = None

    @property
    def null(self) -> Range | None:
        """The strip of null."""
        return None if self.end == self.high else (self.end - STRIP * (self.end - self.low) / self.length, self.end)

    def drawn(self) -> NDArray[np.float64]:
        """The spans, none of them too thin to be seen."""
        least = THINNEST * (self.end - self.low) / self.length
        missing = np.maximum(least - (self.spans[:, 1] - self.spans[:, 0]), 0.0) / 2
        return self.spans + np.outer(missing, [-1.0, 1.0])


def axis_of(
    name: str,
    values: Sequence[object],
    length: float,
    *,
    column: ColumnSettings | None = None,
    taxonomy: Taxonomy | None = None,
    nulls: Sequence[str] = (),
) -> Axis:
    """The axis of a quasi-identifier with these released values. ``nulls`` are texts that mean null."""
    texts = [None if is_missing(value, nulls) else label_of(value) for value in values]
    if taxonomy is not None:
        return _by_taxonomy(name, texts, length, taxonomy)
    known = [text for text in texts if text is not None and text != WHOLE]
    stated = column.implied_type if column is not None else None
    looks = {"numeric": not any(map(_is_code, known)), "date": True}
    for kind, read in READERS.items():
        if known and (stated == kind or (stated is None and looks[kind])):
            ranges = [None if text is None else _range(text, read) for text in texts]
            strange = len(known) - sum(one is not None for one in ranges)
            if not strange:
                return _along(name, kind, texts, ranges, length)
            if stated is not None:
                raise InputError(
                    f"column {name!r} of the release shows {strange:,} values that are no {kind} value or range. Check "
                    "that the release and the policy belong together."
                )
    rule = column.taxonomy if column is not None else None
    by_prefix = isinstance(rule, Grouping) and rule.prefix is not None
    return _of_texts(name, texts, length, by_prefix=by_prefix)


def _along(name: str, kind: str, texts: Sequence[str | None], ranges: Sequence[Range | None], length: float) -> Axis:
    unit = DAY if kind == "date" else 1.0
    whole = all(end % unit == 0 for one in ranges if one is not None for end in one)
    before, after = (0.0, 0.0) if not whole else (0.0, unit) if kind == "date" else (unit / 2, unit / 2)
    placed = [None if one is None else (one[0] - before, one[1] + after) for one in ranges]
    known = [one for one in placed if one is not None]
    low, high = min(one[0] for one in known), max(one[1] for one in known)
    if low == high:  # a single number that is not whole, or one too large to have a neighbour
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    if not math.isfinite((high - low) * 2):
        raise InputError(
            f"column {name!r} of the release reaches further than can be drawn. Draw another quasi-identifier."
        )
    return _finished(name, kind, texts, placed, length, low, high, whole=whole)


def _by_taxonomy(name: str, texts: Sequence[str | None], length: float, taxonomy: Taxonomy) -> Axis:
    spans = CategoricalDomain(name, taxonomy, has_null=None in texts).spans(texts)
    strange = int(np.count_nonzero(spans[:, 0] >= spans[:, 1]))
    if strange:
        raise InputError(
            f"column {name!r} of the release shows {strange:,} values that its taxonomy does not have. Check that the "
            "release and the policy belong together."
        )
    placed = [
        None if text is None or text == WHOLE else (float(low), float(high))
        for text, (low, high) in zip(texts, spans.tolist(), strict=True)
    ]
    first, last = taxonomy.first.tolist(), taxonomy.last.tolist()
    level = _level(taxonomy, shown_nodes(taxonomy, texts), int(length // LABEL))
    cells = [(float(first[node]), last[node] + 1.0) for node in level]
    count = max(len(taxonomy.leaves), 1)
    labels = _labels(cells, [taxonomy.labels[node] for node in level], length / count)
    return _finished(name, "categorical", texts, placed, length, 0.0, float(count), labels=labels)


def _of_texts(name: str, texts: Sequence[str | None], length: float, *, by_prefix: bool) -> Axis:
    released = sorted({text for text in texts if text is not None and text != WHOLE})
    stems = {text: text.rstrip(WHOLE) if by_prefix else text for text in released}
    in_order = sorted(stems.values())
    # A group takes the room of the released values under it; one that has none is a category itself.
    cells = [text for text in released if stems[text] == text or _under(in_order, stems[text]) == 1]
    spans = {cell: (float(place), place + 1.0) for place, cell in enumerate(cells)}
    places = [stems[cell] for cell in cells]
    for text in released:
        if text not in spans:
            first = bisect_left(places, stems[text])
            spans[text] = (float(first), float(first + _under(places, stems[text])))
    placed = [None if text is None or text == WHOLE else spans[text] for text in texts]
    shown = cells or [WHOLE]
    labels = _labels([(float(place), place + 1.0) for place in range(len(shown))], shown, length / len(shown))
    return _finished(name, "categorical", texts, placed, length, 0.0, float(len(shown)), labels=labels)


def _finished(
    name: str,
    kind: str,
    texts: Sequence[str | None],
    placed: Sequence[Range | None],
    length: float,
    low: float,
    high: float,
    *,
    whole: bool = False,
    labels: Labels | None = None,
) -> Axis:
    """The axis with room for ``*`` and, where it occurs, for null."""
    end = high
    strip: Range = (high, high)
    if None in texts:
        unit = (high - low) / (length - STRIP - GAP)
        end = high + (STRIP + GAP) * unit
        strip = (high + GAP * unit, end)
    spans = [
        strip if text is None else (low, end) if one is None else one for text, one in zip(texts, placed, strict=True)
    ]
    return Axis(
        name=name,
        kind=kind,
        length=length,
        low=low,
        high=high,
        end=end,
        spans=np.array(spans, np.float64).reshape(-1, 2),
        whole=whole,
        labels=labels,
    )


def _labels(cells: Sequence[Range], texts: Sequence[str], unit: float) -> Labels:
    """As many names as there is room for, wide cells before narrow ones; ``unit`` is the room of one category."""
    kept: list[tuple[float, str]] = []
    for (low, high), text in sorted(zip(cells, texts, strict=True), key=lambda cell: cell[0][0] - cell[0][1]):
        middle = (low + high) / 2
        if all(abs(middle - other) * unit >= LABEL - 1 for other, _ in kept):
            kept.append((middle, text))
    kept.sort()
    borders = [high for (_, high), _ in pairwise(cells)]
    return Labels(middles=[middle for middle, _ in kept], texts=[text for _, text in kept], borders=borders)


def shown_nodes(taxonomy: Taxonomy, texts: Iterable[str | None]) -> list[int]:
    """The released nodes and those above them, in preorder. Others may be values of the original that are hidden."""
    nodes, parents = taxonomy.node_of_label(), taxonomy.parent.tolist()
    found = {0}
    for text in texts:
        node = nodes.get(text, 0) if text is not None else 0
        while node not in found:
            found.add(node)
            node = parents[node]
    return sorted(found)


def _level(taxonomy: Taxonomy, shown: Sequence[int], room: int) -> list[int]:
    """The nodes that are named: those of the most specific level of which there are few enough.

    A leaf that is not among those ``shown`` may be a value of the original that is hidden: its group stands for it.
    """
    inner = (taxonomy.span() > 1).tolist()
    named = set(shown)
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(taxonomy.parent.tolist()):
        children.setdefault(parent, []).append(node)

    def under(node: int) -> list[int]:
        below = children.get(node, [])
        return below if below and all(inner[one] or one in named for one in below) else [node]

    found = under(0)
    while True:
        finer = [one for node in found for one in under(node)]
        if len(finer) == len(found) or len(finer) > room:
            return found
        found = finer


def _under(in_order: Sequence[str], stem: str) -> int:
    """How many of the sorted texts begin with ``stem``."""
    return bisect_left(in_order, stem + LAST_CHARACTER) - bisect_left(in_order, stem)


def _range(text: str, read: Read) -> Range | None:
    """The ends of a released range or value; none for text that is neither."""
    inside = text[1:-1] if text[:1] == "[" and text[-1:] == "]" and ".." in text else f"{text}..{text}"
    low, high = (read(end) for end in inside.split("..", 1))
    return None if low is None or high is None or low > high else (low, high)


def _is_code(text: str) -> bool:
    """Whether a value only looks like a number, as 007 does."""
    return LEADING_ZERO.match(text) is not None


def _number(text: str) -> float | None:
    number = float(read_number(text))
    return number if math.isfinite(number) and "_" not in text else None


def _moment(text: str) -> float | None:
    moment = float(read_number(text, "moment"))
    return moment / 1000 if math.isfinite(moment) else None


READERS: dict[str, Read] = {"numeric": _number, "date": _moment}
