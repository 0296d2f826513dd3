"""Estimates from generalized records: a released value is a range of codes, so a released record is a box.

Each box has a sensitive value and a weight in records, which may be fractional. A reader spreads it evenly over its
codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InputError
from sfumato.evaluation.queries.answers import (
    Floats,
    Integers,
    Original,
    Points,
    RangeQuery,
    distinct_rows,
    weight_within,
)
from sfumato.evaluation.queries.spread_boxes import Pieces, cut_into_pieces, spread
from sfumato.tables.coding.domains import Domain
from sfumato.tables.coding.released_labels import label_of
from sfumato.tables.released_classes import ReleasedClasses


@dataclass(frozen=True)
class ReleasedBoxes:
    """Boxes: box b covers the codes spans[q][shown[b, q]] of quasi-identifier q, the end excluded."""

    shown: Integers
    spans: Sequence[Integers]
    sensitive: Integers
    weight: Floats

    def in_cells(self, bounds: Sequence[Integers]) -> BoxesInCells:
        return BoxesInCells(self, cut_into_pieces(self.spans, bounds), bounds)

    def count(self, query: RangeQuery) -> float:
        shares = []
        for q, selected in zip(query.columns, query.codes, strict=True):
            start, stop = self.spans[q].T
            before = np.append(0, np.cumsum(selected))
            shares.append((before[stop] - before[start]) / (stop - start))
        share_of_value = query.values.astype(np.float64)
        return weight_within(self.shown, self.sensitive, self.weight, query.columns, shares, share_of_value)


@dataclass(frozen=True)
class BoxesInCells:
    """Boxes whose spans are cut at the bounds of cells."""

    boxes: ReleasedBoxes
    pieces: Pieces
    bounds: Sequence[Integers]

    def at(self, points: Points) -> Floats:
        boxes = self.boxes
        labels = [len(boxes.spans[q]) for q in points.columns]
        keys = [boxes.shown[:, q] for q in points.columns]
        starts, shown, weight = distinct_rows(boxes.sensitive, len(points.starts) - 1, keys, labels, boxes.weight)
        shown += np.array([self.pieces.offsets[q] for q in points.columns])
        estimates = spread(points, starts, shown, weight, self.pieces)
        for axis, q in enumerate(points.columns):
            estimates *= np.diff(self.bounds[q])[points.cells[:, axis]]
        return estimates


def shown_spans(domains: Sequence[Domain], classes: ReleasedClasses) -> tuple[list[Integers], Integers]:
    """The codes that each distinct value of the release covers, and the value that each class shows."""
    spans = []
    shown = np.empty((len(classes.sizes), len(domains)), np.int64)
    for q, domain in enumerate(domains):
        used, shown[:, q] = np.unique(classes.shown[domain.name], return_inverse=True)
        values = classes.values[domain.name]
        span = domain.spans([label_of(values[entry]) for entry in used.tolist()])
        empty = int(np.count_nonzero(span[:, 0] >= span[:, 1]))
        if empty:
            raise InputError(
                f"column {domain.name!r} of the release shows {empty:,} values that cover no value of the original. "
                "Check that both files and the policy belong together."
            )
        spans.append(span)
    return spans, shown


def generalized(
    classes: ReleasedClasses, spans: Sequence[Integers], shown: Integers, sensitive: Integers, values: int
) -> ReleasedBoxes:
    """The boxes of a generalized release, one for every class and sensitive value. ``sensitive``: values by row."""
    assert classes.class_of_row is not None
    pairs, count = np.unique(classes.class_of_row * values + sensitive, return_counts=True)
    return ReleasedBoxes(shown[pairs // values], spans, pairs % values, count.astype(np.float64))


def suppressed(domains: Sequence[Domain], values: int, records: int) -> ReleasedBoxes:
    """The boxes of suppressed records: the whole domain, spread evenly over the sensitive values."""
    spans = [np.array([[0, domain.size]], np.int64) for domain in domains]
    shown = np.zeros((values, len(domains)), np.int64)
    return ReleasedBoxes(shown, spans, np.arange(values), np.full(values, records / values))


def exact(original: Original, domains: Sequence[Domain]) -> ReleasedBoxes:
    """The distinct records of the original, each a box of one code in every quasi-identifier."""
    sizes = [domain.size for domain in domains]
    keys = [original.codes[:, q].astype(np.int64) for q in range(len(domains))]
    starts, rows, count = distinct_rows(original.sensitive, original.values, keys, sizes, None)
    spans = [np.stack([np.arange(size), np.arange(size) + 1], axis=1) for size in sizes]
    return ReleasedBoxes(rows, spans, np.repeat(np.arange(original.values), np.diff(starts)), count)
