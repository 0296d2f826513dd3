"""iDistance: rings around centres (Ghinita 2007, section 5, after Zhang, Kalnis, Ooi, Tan, TODS 2005).

A sample of the records is clustered around centres, which are ranked in the order of the Hilbert curve. Every record
belongs to its nearest centre by the Euclidean distance, with each attribute (numbers, or the leaves of a taxonomy
numbered in order) scaled to [0, 1]. Its key is

    rank of the centre * bound + distance to the centre

where ``bound`` is the smallest number above every distance in the table, so that the rings around one centre end before
those around the next begin.

All numbers are integers. Attributes are scaled to a grid of 2 ** bits cells a side, centres are cells, squared
distances are sums of 32-bit integers, and their roots are rounded down to 2 ** -16 of a cell. So keys depend on neither
the machine nor the number of threads.

Differs from the paper, which leaves the clustering open: we use k-means (Lloyd's rounds) from the seeds of k-means++.
The 10% sample takes one record at random from every ten in the order of their codes, so that the order of the input
leaves no trace. It has at least as many records as there are centres, if the table has that many, and at most 100 for
each centre, which 512,000 records reach (the largest tables of the paper). If the sample has fewer distinct records
than centres, each of them becomes a centre.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.orderings.hilbert import positions_of_cells
from sfumato.orderings.ordering import Keys, KeysOf
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.sorting import bits_for, sort_rows

BATCH = 1 << 12  # records whose centres one thread finds at once
SAMPLED_SHARE = 10  # the sample has one record in this many
LARGEST_SAMPLE = 100  # records for each centre, at most
ROUNDS = 50  # of k-means, at most
CELL_BITS = 12
SQUARE_BITS = 30  # of a squared distance, measured in cells
FRACTION = 16  # fractional bits of a distance measured in cells


@dataclass(frozen=True, kw_only=True)
class IDistance:
    """Rings around at most ``centres`` centres."""

    centres: int = 512
    name = "idistance"
    title = "the rings of iDistance"
    needs_no_table = False  # the centres come from the table
    paper = "Ghinita, Karras, Kalnis, Mamoulis: Fast data anonymization with low information loss, VLDB 2007"

    def __post_init__(self) -> None:
        if self.centres < 1:
            raise ValueError("there must be at least one centre")

    def fitted(self, codes: Codes, weights: NDArray[np.int64], domains: Sequence[Domain], seed: int) -> KeysOf:
        """Find the centres and the bound. The keys are then defined for these records, all at once or in batches."""
        grid = CentreGrid.of(domains)
        total = int(weights.sum())
        size = min(max(-(-total // SAMPLED_SHARE), self.centres), LARGEST_SAMPLE * self.centres, total)
        # The raw numbers of a generator are the same in every version of NumPy; derived distributions may differ.
        draws = np.random.PCG64(seed).random_raw(size + self.centres)
        sampled, counts = _sample(weights, draws[:size])
        centres = _by_hilbert(_clusters(codes[sampled], counts, grid, draws[size:]), grid.bits)
        _, squares = _nearest(codes, grid, centres)
        return Rings(grid, centres, int(fixed_roots(squares.max(keepdims=True))[0]) + 1).keys


@dataclass(frozen=True)
class CentreGrid:
    """The cell of each code: cells[starts[q] + code] on attribute q, below ``2 ** bits``."""

    cells: NDArray[np.int32]
    starts: NDArray[np.int64]
    bits: int

    @classmethod
    def of(cls, domains: Sequence[Domain]) -> CentreGrid:
        # The largest number of bits for which the sum of d squares fits in SQUARE_BITS.
        bits = min(CELL_BITS, (SQUARE_BITS - bits_for(len(domains))) // 2)
        cells = [np.rint(domain.coordinates() * ((1 << bits) - 1)).astype(np.int32) for domain in domains]
        starts = np.cumsum([0, *(len(cell) for cell in cells[:-1])])
        return cls(np.concatenate(cells), starts.astype(np.int64), bits)


@dataclass(frozen=True)
class Rings:
    """The centres, int32[d, c], in the order of their ranks; and a bound on all distances, in 2 ** -16 of a cell."""

    grid: CentreGrid
    centres: NDArray[np.int32]
    bound: int

    def keys(self, codes: Codes) -> Keys:
        """Return the key of every record. codes: uint[n, d], C-order, not modified."""
        ranks, squares = _nearest(codes, self.grid, self.centres)
        keys = ranks.astype(np.uint64) * np.uint64(self.bound) + fixed_roots(squares)
        return Keys(keys[:, np.newaxis], bits_for(self.centres.shape[1] * self.bound))


def _sample(weights: NDArray[np.int64], draws: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct records in the sample and their counts: one record from each of ``len(draws)`` equal runs."""
    ends = np.cumsum(weights)
    edges = np.arange(len(draws) + 1) * int(ends[-1]) // len(draws)
    positions = edges[:-1] + (draws % np.diff(edges).astype(np.uint64)).astype(np.int64)
    return np.unique(np.searchsorted(ends, positions, side="right"), return_counts=True)


def _clusters(
    codes: Codes, counts: NDArray[np.int64], grid: CentreGrid, draws: NDArray[np.uint64]
) -> NDArray[np.int32]:
    """Return the centres of a sample by k-means: int32[d, c]."""
    points = np.ascontiguousarray(grid.cells[grid.starts + codes].T)
    centres = np.ascontiguousarray(points[:, draw_seeds(points, counts, draws)])
    for _ in range(ROUNDS):
        owner, _ = _nearest(codes, grid, centres)
        if not move_centres(points, counts, owner, centres):
            break
    return centres


def _by_hilbert(centres: NDArray[np.int32], bits: int) -> NDArray[np.int32]:
    """Return the centres in the order of the curve, keeping one of those that share a cell."""
    keys = positions_of_cells(np.ascontiguousarray(centres.T, np.uint16), bits)
    line = sort_rows(keys.fields(), centres.shape[1])
    return np.ascontiguousarray(centres[:, line.rows[line.starts[:-1]]])


def _nearest(codes: Codes, grid: CentreGrid, centres: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the nearest centre of every record, the first among equals, and its squared distance."""
    owner, squares = np.empty(len(codes), np.int32), np.empty(len(codes), np.int32)

    def fill(part: tuple[int, int]) -> None:
        rows = slice(*part)
        nearest_centres(codes[rows], grid.cells, grid.starts, centres, owner[rows], squares[rows])

    in_threads(fill, slices(len(codes), BATCH))
    return owner, squares


@kernel
def nearest_centres(codes, cells, starts, centres, owner, squares):
    """Write the nearest centre of each record, the first among equals, and the squared distance to it.

    codes: uint[n, d], C-order, not modified. cells, starts: see CentreGrid. centres: int32[d, c], C-order.
    owner, squares: int32[n].
    """
    n, d = codes.shape
    count = centres.shape[1]
    distances = np.empty(count, np.int32)
    for i in range(n):
        # Compare one record with all centres side by side: loops over whole arrays compile to vector instructions.
        distances[:] = 0
        for q in range(d):
            cell, centre_cells = cells[starts[q] + np.int64(codes[i, q])], centres[q]
            for c in range(count):
                offset = centre_cells[c] - cell
                distances[c] += offset * offset
        least = distances[0]
        for c in range(count):
            least = min(least, distances[c])
        centre = 0
        while distances[centre] != least:
            centre += 1
        owner[i] = centre
        squares[i] = least


@kernel
def draw_seeds(points, counts, draws):
    """Draw points far from each other (k-means++), with probability by squared distance to those already drawn.

    points: int32[d, n], C-order. counts: int64[n], above 0. draws: uint64[c]. Returns int64[at most c]: fewer than c
    where every point coincides with one that was drawn.
    """
    d, n = points.shape
    chosen = np.empty(len(draws), np.int64)
    nearest = np.ones(n, np.int64)  # the first draw favours no point
    squares = np.empty(n, np.int64)
    for step in range(len(draws)):
        total = np.int64(0)
        for i in range(n):
            total += counts[i] * nearest[i]
        if total == 0:
            return chosen[:step]
        left, point = np.int64(draws[step] % np.uint64(total)), 0
        while left >= counts[point] * nearest[point]:
            left -= counts[point] * nearest[point]
            point += 1
        chosen[step] = point
        squares[:] = 0
        for q in range(d):
            point_cells, cell = points[q], points[q, point]
            for i in range(n):
                offset = np.int64(point_cells[i] - cell)
                squares[i] += offset * offset
        for i in range(n):
            nearest[i] = squares[i] if step == 0 else min(nearest[i], squares[i])
    return chosen


@kernel
def move_centres(points, counts, owner, centres):
    """Move each centre to the mean of its points, rounded half up, and return whether any moved.

    A centre without points stays.

    points: int32[d, n], C-order. counts: int64[n], above 0. owner: int32[n]. centres: int32[d, c], updated.
    """
    d, n = points.shape
    count = centres.shape[1]
    members, sums = np.zeros(count, np.int64), np.empty(count, np.int64)
    for i in range(n):
        members[owner[i]] += counts[i]
    moved = False
    for q in range(d):
        sums[:] = 0
        for i in range(n):
            sums[owner[i]] += counts[i] * points[q, i]
        for c in range(count):
            if members[c] > 0:
                mean = (2 * sums[c] + members[c]) // (2 * members[c])
                moved |= mean != centres[q, c]
                centres[q, c] = mean
    return moved


@kernel
def fixed_roots(squares):
    """Return the square roots in units of 2 ** -FRACTION, rounded down: uint64[n]. squares: int32[n], below 2 ** 30."""
    roots = np.empty(len(squares), np.uint64)
    for i in range(len(squares)):
        scaled = np.int64(squares[i]) << (2 * FRACTION)
        # The floating-point root is off by at most one; integer arithmetic decides.
        root = np.int64(np.sqrt(np.float64(scaled)))
        while root * root > scaled:
            root -= 1
        while (root + 1) * (root + 1) <= scaled:
            root += 1
        roots[i] = root
    return roots
