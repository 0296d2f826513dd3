"""The datacube: compute the divergence of every group-by at one level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from sfumato.evaluation.queries.accuracy import GroupBy
from sfumato.evaluation.queries.answers import (
    CellEstimates,
    Integers,
    Original,
    Points,
    ReleasedPart,
    distinct_rows,
)
from sfumato.evaluation.queries.spread_boxes import LARGEST_CUBE
from sfumato.kernels.threads import in_threads, thread_count
from sfumato.tables.coding.domains import Domain


def datacube(
    original: Original,
    released: Sequence[ReleasedPart],
    domains: Sequence[Domain],
    bounds: Sequence[Integers],
    level: int,
) -> list[GroupBy]:
    """The divergence of every group-by of ``level`` quasi-identifiers. ``bounds``: of cells, by quasi-identifier."""
    cells = [
        np.repeat(np.arange(len(bound) - 1), np.diff(bound))[original.codes[:, q]] for q, bound in enumerate(bounds)
    ]
    parts = [part.in_cells(bounds) for part in released]
    sizes = [len(bound) - 1 for bound in bounds]

    def divergence(columns: tuple[int, ...]) -> float:
        return _divergence(original, parts, [cells[q] for q in columns], [sizes[q] for q in columns], columns)

    def is_wide(columns: tuple[int, ...]) -> bool:
        return math.prod(sizes[q] for q in columns) * thread_count() > LARGEST_CUBE

    chosen = list(combinations(range(len(domains)), level))
    narrow = [columns for columns in chosen if not is_wide(columns)]
    divergences = dict(zip(narrow, in_threads(divergence, narrow), strict=True))
    # A wide group-by may need all the memory that is set aside for sums, so these run one at a time.
    divergences.update((columns, divergence(columns)) for columns in chosen if is_wide(columns))
    return [GroupBy(tuple(domains[q].name for q in columns), divergences[columns]) for columns in chosen]


def _divergence(
    original: Original,
    parts: Sequence[CellEstimates],
    cells: Sequence[Integers],
    sizes: Sequence[int],
    columns: tuple[int, ...],
) -> float:
    """The divergence of one group-by."""
    starts, rows, counts = distinct_rows(original.sensitive, original.values, cells, sizes, None)
    points = Points(columns, tuple(sizes), starts, rows)
    estimates = np.zeros(len(rows))
    for part in parts:
        estimates += part.at(points)
    if not np.all(estimates > 0):
        return math.inf
    # Estimates are rounded to units, so the sum may be slightly negative.
    return max(float(np.sum(counts / len(original.codes) * np.log(counts / estimates))), 0.0)
