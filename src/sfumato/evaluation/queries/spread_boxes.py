"""Spread boxes over cells.

A box adds its weight at its corners, and running sums along every axis then give all cells at once. If there are too
many cells for that to pay, each requested cell visits each box instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.evaluation.queries.answers import Floats, Integers, Points
from sfumato.kernels.decorator import kernel

LARGEST_CUBE = 1 << 27  # cells of one sensitive value in memory at once, over all threads: 1 GiB
PIECES = 3
HEADROOM = 60  # bits for the largest estimate of a cell, in units


@dataclass(frozen=True)
class Pieces:
    """Released values as runs of cells, all quasi-identifiers in one table: the labels of q start at offsets[q].

    A range of codes fills the cells within it and parts of the cells at its ends, so it has up to three pieces of even
    density: the share of a record on one code. The pieces of a label cover the cells ``low`` to ``end`` - 1.
    """

    offsets: list[int]
    first: Integers
    last: Integers
    density: Floats
    count: Integers
    low: Integers
    end: Integers


def cut_into_pieces(spans: Sequence[Integers], bounds: Sequence[Integers]) -> Pieces:
    """Cut the released values of every quasi-identifier at the bounds of cells."""
    offsets = np.cumsum([0, *(len(span) for span in spans)]).tolist()
    total = offsets[-1]
    first, last = np.zeros((total, PIECES), np.int64), np.zeros((total, PIECES), np.int64)
    density, count = np.zeros((total, PIECES)), np.zeros(total, np.int64)
    low, end = np.empty(total, np.int64), np.empty(total, np.int64)
    for offset, span, bound in zip(offsets, spans, bounds, strict=False):
        for label, (start, stop) in enumerate(span.tolist(), offset):
            low[label] = np.searchsorted(bound, start, "right") - 1
            end[label] = np.searchsorted(bound, stop, "left")
            for cell, after, share in _runs(bound, start, stop, int(low[label]), int(end[label])):
                piece = count[label]
                first[label, piece], last[label, piece] = cell, after
                density[label, piece] = share / (stop - start)
                count[label] += 1
    return Pieces(offsets, first, last, density, count, low, end)


def _runs(bound: Integers, start: int, stop: int, low: int, end: int) -> list[tuple[int, int, float]]:
    """Runs of the cells ``low`` to ``end`` - 1 that the codes ``start`` to ``stop`` - 1 fill to the same share."""
    runs: list[tuple[int, int, float]] = []
    whole_from, whole_to = low + (bound[low] < start), end - (bound[end] > stop)
    if whole_from < whole_to:
        runs.append((whole_from, whole_to, 1.0))
    for cell in sorted({low, end - 1}):
        if not whole_from <= cell < whole_to:
            inside = min(stop, bound[cell + 1]) - max(start, bound[cell])
            runs.append((cell, cell + 1, float(inside / (bound[cell + 1] - bound[cell]))))
    return runs


def spread(points: Points, box_starts: Integers, shown: Integers, weight: Floats, pieces: Pieces) -> Floats:
    """The estimated number of records on each code of the points.

    Boxes are sorted by sensitive value, as points are; ``shown`` holds labels of ``pieces``.
    """
    boxes = (points.starts, points.cells, box_starts, shown, weight)
    table = (pieces.first, pieces.last, pieces.density, pieces.count)
    estimates: Floats
    if _sums_pay(points.sizes, np.diff(points.starts), np.diff(box_starts)):
        estimates = estimates_by_sums(*boxes, *table, np.array(points.sizes, np.int64), _axes(points.sizes))
    else:
        estimates = estimates_by_visits(*boxes, *table, pieces.low, pieces.end)
    return estimates


def _sums_pay(sizes: Sequence[int], points: Integers, boxes: Integers) -> bool:
    """Whether sums over all cells are less work than a visit to each box, given the numbers by sensitive value.

    The choice depends on the tables alone, not on the machine, so a measurement is the same everywhere.
    """
    cells = math.prod(sizes)
    summing = int(np.count_nonzero(points)) * cells * len(sizes) + int(boxes.sum()) * 2 ** _axes(sizes)
    return cells <= LARGEST_CUBE and summing <= int(points @ boxes)


def _axes(sizes: Sequence[int]) -> int:
    return sum(size > 1 for size in sizes)


@kernel
def estimates_by_sums(point_starts, points, box_starts, shown, weight, first, last, density, count, sizes, axes):
    """Estimate the records on each code of the cells ``points``: each box adds at its corners, sums do the rest.

    point_starts, box_starts: int64[m + 1], by sensitive value; points, shown: int64[n, d]; weight: float64[boxes];
    first, last, density, count: tables of pieces by label; axes: how many of sizes: int64[d] are above 1.
    The kernel adds whole units, so that what a box adds at one corner and subtracts at another is exactly the same.
    """
    dimensions = len(sizes)
    strides = np.ones(dimensions, np.int64)
    for axis in range(dimensions - 1, 0, -1):
        strides[axis - 1] = strides[axis] * sizes[axis]
    cube = np.empty(strides[0] * sizes[0], np.int64)
    corner_cells = np.empty(1 << axes, np.int64)
    units = np.empty(1 << axes, np.int64)
    picked = np.zeros(dimensions, np.int64)
    estimates = np.zeros(len(points))
    for value in range(len(point_starts) - 1):
        if point_starts[value] == point_starts[value + 1]:
            continue
        largest = 0.0  # no cell can exceed the sum of all boxes at their densest
        for box in range(box_starts[value], box_starts[value + 1]):
            highest = weight[box]
            for axis in range(dimensions):
                highest *= density[shown[box, axis]].max()
            largest += highest
        if largest == 0.0:
            continue
        scale = 2.0 ** (HEADROOM - math.ceil(math.log2(largest)))
        cube[:] = 0
        for box in range(box_starts[value], box_starts[value + 1]):
            picked[:] = 0
            axis = 0
            while axis < dimensions:
                amount = weight[box] * scale
                for axis in range(dimensions):
                    amount *= density[shown[box, axis], picked[axis]]
                corners = 1
                corner_cells[0] = 0
                units[0] = max(round(amount), 1)
                for axis in range(dimensions):
                    label, piece = shown[box, axis], picked[axis]
                    step = first[label, piece] * strides[axis]
                    if last[label, piece] < sizes[axis]:
                        for corner in range(corners):
                            corner_cells[corners + corner] = corner_cells[corner] + last[label, piece] * strides[axis]
                            units[corners + corner] = -units[corner]
                    for corner in range(corners):
                        corner_cells[corner] += step
                    if last[label, piece] < sizes[axis]:
                        corners *= 2
                for corner in range(corners):
                    cube[corner_cells[corner]] += units[corner]
                axis = 0  # the next choice of a piece on every axis
                while axis < dimensions:
                    picked[axis] += 1
                    if picked[axis] < count[shown[box, axis]]:
                        break
                    picked[axis] = 0
                    axis += 1
        for axis in range(dimensions):
            stride, block = strides[axis], strides[axis] * sizes[axis]
            for begin in range(0, len(cube), block):
                for cell in range(begin + stride, begin + block):
                    cube[cell] += cube[cell - stride]
        for point in range(point_starts[value], point_starts[value + 1]):
            cell = 0
            for axis in range(dimensions):
                cell += points[point, axis] * strides[axis]
            estimates[point] = cube[cell] / scale
    return estimates


@kernel
def estimates_by_visits(point_starts, points, box_starts, shown, weight, first, last, density, count, low, end):
    """Estimate the records on each code of the cells ``points``: each point visits each box.

    low, end: int64[labels], the cells that a label covers; the rest as in ``estimates_by_sums``.
    """
    dimensions = points.shape[1]
    estimates = np.zeros(len(points))
    for value in range(len(point_starts) - 1):
        start, stop = box_starts[value], box_starts[value + 1]
        lows, ends = np.empty((stop - start, dimensions), np.int64), np.empty((stop - start, dimensions), np.int64)
        for box in range(stop - start):
            for axis in range(dimensions):
                lows[box, axis] = low[shown[start + box, axis]]
                ends[box, axis] = end[shown[start + box, axis]]
        for point in range(point_starts[value], point_starts[value + 1]):
            for box in range(stop - start):
                inside = True
                for axis in range(dimensions):
                    if points[point, axis] < lows[box, axis] or points[point, axis] >= ends[box, axis]:
                        inside = False
                        break
                if inside:
                    amount = weight[start + box]
                    for axis in range(dimensions):
                        label, cell = shown[start + box, axis], points[point, axis]
                        for piece in range(count[label]):
                            if first[label, piece] <= cell < last[label, piece]:
                                amount *= density[label, piece]
                    estimates[point] += amount
    return estimates
