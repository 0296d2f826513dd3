"""Compute the positions of the released values of a quasi-identifier on an axis.

Numbers and dates are at their position, and a range reaches from its lower to its upper end: a whole number extends
halfway to its neighbours, a date over its day. Categories are in the order of the taxonomy's leaves, and a group covers
its leaves; without a taxonomy every released value is a separate category, in the order of the text. ``*``, which says
nothing, and null have a strip each after the other values.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.policy import ColumnSettings, Grouping
from sfumato.tables.coding.domains import CategoricalDomain
from sfumato.tables.coding.number_text import LEADING_ZERO
from sfumato.tables.coding.released_labels import DAY as MICROSECONDS
from sfumato.tables.coding.released_labels import WHOLE, label_of, read_number, released_ends, without_signs
from sfumato.tables.coding.value_order import is_missing
from sfumato.taxonomies.ready import taxonomy_of_release
from sfumato.taxonomies.taxonomy import Taxonomy

Range = tuple[float, float]

DAY = 86_400_000.0  # milliseconds, the unit of time in pictures
THINNEST = 3.0  # units of the picture: smaller spans are drawn with this width, so that they are visible
STRIP, GAP = 18.0, 9.0  # the width of the strip of ``*`` or null, and of the space before it
LABEL = 15.0  # the space that the label of a category needs
LAST_CHARACTER = chr(0x10FFFF)


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The names along an axis of categories: the middle and text of each, and the borders between categories."""

    middles: list[float]
    texts: list[str] = field(repr=False)  # a repr may end up in a log
    borders: list[float]


@dataclass(frozen=True)
class AxisStrip:
    """The strip of ``*``, or of null, which has no name."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis with a length of ``length`` units of the picture; ``spans[value]`` is the span of a released value."""

    name: str
    kind: str  # numeric | date | categorical
    length: float
    low: float
    high: float
    end: float  # after the strips, if there are any
    spans: NDArray[np.float64]
    whole: bool = False
    labels: Labels | None = None
    strips: tuple[AxisStrip, ...] = ()

    def drawn(self) -> NDArray[np.float64]:
        """The spans, widened where they would be too thin to see."""
        thinnest = THINNEST * (self.end - self.low) / self.length
        margin = np.maximum(thinnest - (self.spans[:, 1] - self.spans[:, 0]), 0.0) / 2
        return self.spans + np.outer(margin, [-1.0, 1.0])


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
    if taxonomy is None and column is not None:
        taxonomy = taxonomy_of_release(column.ready_name, [text for text in texts if text is not None], name)
    if taxonomy is not None:
        return _by_taxonomy(name, texts, length, taxonomy)
    known = [text for text in texts if text is not None and text != WHOLE]
    declared = column.implied_type if column is not None else None
    if column is not None and (column.bottom is not None or column.top is not None):
        texts = [None if text is None else without_signs(text) for text in texts]
        known = list(map(without_signs, known))
    has_codes = any(map(_is_code, known))
    for kind, read in READERS.items():
        if known and (declared == kind or (declared is None and not has_codes)):
            ranges = [None if text is None else read(text) for text in texts]
            unreadable = len(known) - sum(span is not None for span in ranges)
            if not unreadable:
                return _of_numbers(name, kind, texts, ranges, length)
            if declared is not None:
                raise InputError(
                    f"column {name!r} of the release shows {unreadable:,} values that are no {kind} value or range. "
                    "Check that the release and the policy belong together."
                )
    rule = column.taxonomy if column is not None else None
    by_prefix = isinstance(rule, Grouping) and rule.prefix is not None
    return _of_texts(name, texts, length, by_prefix=by_prefix)


def _of_numbers(
    name: str, kind: str, texts: Sequence[str | None], ranges: Sequence[Range | None], length: float
) -> Axis:
    unit = DAY if kind == "date" else 1.0
    whole = all(end % unit == 0 for ends in ranges if ends is not None for end in ends)
    before, after = (0.0, 0.0) if not whole else (0.0, unit) if kind == "date" else (unit / 2, unit / 2)
    spans = [None if ends is None else (ends[0] - before, ends[1] + after) for ends in ranges]
    known = [span for span in spans if span is not None]
    low, high = min(span[0] for span in known), max(span[1] for span in known)
    if low == high:  # a single number that is not whole, or one too large to have a neighbour
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    if not math.isfinite((high - low) * 2):
        raise InputError(
            f"the range of the column {name!r} of the release is too wide to draw. Draw another quasi-identifier."
        )
    return _finished(name, kind, texts, spans, length, low, high, whole=whole)


def _by_taxonomy(name: str, texts: Sequence[str | None], length: float, taxonomy: Taxonomy) -> Axis:
    leaf_spans = CategoricalDomain(name, taxonomy, has_null=None in texts).spans(texts)
    unknown = int(np.count_nonzero(leaf_spans[:, 0] >= leaf_spans[:, 1]))
    if unknown:
        raise InputError(
            f"column {name!r} of the release shows {unknown:,} values that its taxonomy does not have. Check that the "
            "release and the policy belong together."
        )
    spans = [
        None if text is None or text == WHOLE else (float(low), float(high))
        for text, (low, high) in zip(texts, leaf_spans.tolist(), strict=True)
    ]
    first, last = taxonomy.first.tolist(), taxonomy.last.tolist()
    level = _level(taxonomy, shown_nodes(taxonomy, texts), int(length // LABEL))
    cells = [(float(first[node]), last[node] + 1.0) for node in level]
    count = max(len(taxonomy.leaves), 1)
    labels = _labels(cells, [taxonomy.labels[node] for node in level], length / count)
    return _finished(name, "categorical", texts, spans, length, 0.0, float(count), labels=labels)


def _of_texts(name: str, texts: Sequence[str | None], length: float, *, by_prefix: bool) -> Axis:
    released = sorted({text for text in texts if text is not None and text != WHOLE})
    stems = {text: text.rstrip(WHOLE) if by_prefix else text for text in released}
    sorted_stems = sorted(stems.values())
    # A group covers the released values under it; a group without any is a category itself.
    cells = [text for text in released if stems[text] == text or _count_under(sorted_stems, stems[text]) == 1]
    span_of_text = {cell: (float(index), index + 1.0) for index, cell in enumerate(cells)}
    cell_stems = [stems[cell] for cell in cells]
    for text in released:
        if text not in span_of_text:
            first = bisect_left(cell_stems, stems[text])
            span_of_text[text] = (float(first), float(first + _count_under(cell_stems, stems[text])))
    spans = [None if text is None or text == WHOLE else span_of_text[text] for text in texts]
    shown = cells or [WHOLE]
    labels = _labels([(float(index), index + 1.0) for index in range(len(shown))], shown, length / len(shown))
    return _finished(name, "categorical", texts, spans, length, 0.0, float(len(shown)), labels=labels)


def _finished(
    name: str,
    kind: str,
    texts: Sequence[str | None],
    spans: Sequence[Range | None],
    length: float,
    low: float,
    high: float,
    *,
    whole: bool = False,
    labels: Labels | None = None,
) -> Axis:
    """The axis with strips for ``*`` and null, if they occur."""
    has_plain = any(span is not None for span in spans)  # an axis of ``*`` alone has no strip for it
    names = [*([WHOLE] if WHOLE in texts and has_plain else []), *([""] if None in texts else [])]
    unit = (high - low) / (length - len(names) * (STRIP + GAP))
    ends = [high + number * (STRIP + GAP) * unit for number in range(1, len(names) + 1)]
    strips = {name: AxisStrip(name, end - STRIP * unit, end) for name, end in zip(names, ends, strict=True)}

    def span_of(text: str | None, span: Range | None) -> Range:
        strip = strips.get(text or "") if span is None else None
        return span or ((low, high) if strip is None else (strip.low, strip.high))

    all_spans = [span_of(text, span) for text, span in zip(texts, spans, strict=True)]
    return Axis(
        name=name,
        kind=kind,
        length=length,
        low=low,
        high=high,
        end=max([high, *ends]),
        strips=tuple(strips.values()),
        spans=np.array(all_spans, np.float64).reshape(-1, 2),
        whole=whole,
        labels=labels,
    )


def _labels(cells: Sequence[Range], texts: Sequence[str], unit: float) -> Labels:
    """As many names as fit, those of wide cells first. ``unit`` is the width of one category."""
    kept: list[tuple[float, str]] = []
    for (low, high), text in sorted(zip(cells, texts, strict=True), key=lambda cell: cell[0][0] - cell[0][1]):
        middle = (low + high) / 2
        if all(abs(middle - other) * unit >= LABEL - 1 for other, _ in kept):
            kept.append((middle, text))
    kept.sort()
    borders = [high for (_, high), _ in pairwise(cells)]
    return Labels(middles=[middle for middle, _ in kept], texts=[text for _, text in kept], borders=borders)


def shown_nodes(taxonomy: Taxonomy, texts: Iterable[str | None]) -> list[int]:
    """The released nodes and those above them, in preorder. Other nodes may be hidden values of the original."""
    nodes, parents = taxonomy.node_of_label(), taxonomy.parent.tolist()
    shown = {0}
    for text in texts:
        node = nodes.get(text, 0) if text is not None else 0
        while node not in shown:
            shown.add(node)
            node = parents[node]
    return sorted(shown)


def _level(taxonomy: Taxonomy, shown: Sequence[int], room: int) -> list[int]:
    """The nodes to name: those of the most specific level that has at most ``room`` nodes.

    A leaf that is not in ``shown`` may be a hidden value of the original, so its group is named instead.
    """
    inner = (taxonomy.span() > 1).tolist()
    allowed = set(shown)
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(taxonomy.parent.tolist()):
        children.setdefault(parent, []).append(node)

    def refined(node: int) -> list[int]:
        below = children.get(node, [])
        return below if below and all(inner[child] or child in allowed for child in below) else [node]

    level = refined(0)
    while True:
        finer = [child for node in level for child in refined(node)]
        if len(finer) == len(level) or len(finer) > room:
            return level
        level = finer


def _count_under(sorted_texts: Sequence[str], stem: str) -> int:
    """How many of the sorted texts begin with ``stem``."""
    return bisect_left(sorted_texts, stem + LAST_CHARACTER) - bisect_left(sorted_texts, stem)


def _is_code(text: str) -> bool:
    """Whether a value only looks like a number, such as 007."""
    return LEADING_ZERO.match(text) is not None


def _numbers(text: str) -> Range | None:
    """The ends of a released number or range of numbers, or None for text that is neither."""
    return None if "_" in text else _finite(released_ends(text, read_number), 1.0)


def _moments(text: str) -> Range | None:
    """The ends of a released date, moment, range or period in milliseconds, or None for text that is none of these."""
    return _finite(released_ends(text, partial(read_number, kind="moment"), day=MICROSECONDS), 1000.0)


def _finite(ends: tuple[float | Fraction, float | Fraction] | None, unit: float) -> Range | None:
    if ends is None:
        return None
    low, high = float(ends[0]) / unit, float(ends[1]) / unit
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


READERS: dict[str, Callable[[str], Range | None]] = {"numeric": _numbers, "date": _moments}
