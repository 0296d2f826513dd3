"""iDistance: rings around centres (Ghinita 2007, section 5, after Zhang, Kalnis, Ooi, Tan, TODS 2005).

A sample of the records is clustered around centres, which stand in the order of the Hilbert curve. Every record belongs
to its nearest centre by the Euclidean distance, each attribute (numbers, or the leaves of a taxonomy numbered in order)
scaled to [0, 1]. Its key is

    rank of the centre * bound + distance to the centre

where ``bound`` is the smallest number above every distance in the table: the ring around one centre ends before that
around the next begins.

All of it is whole numbers. Attributes are scaled to a grid of 2 ** bits cells a side, centres are cells, squared
distances are sums of 32-bit integers, and their roots are rounded down to 2 ** -16 of a cell. So keys depend on neither
the machine nor the number of threads.

Differs from the paper, which leaves the clustering open: it is k-means (Lloyd's rounds) from the seeds of k-means++.
The 10% sample takes one record at random from every ten in the order of their codes, so that the order of the input
leaves no trace. It has at least as many records as there are centres, where the table has them, and at most 100 for
each, which is reached at 512,000 records (the paper's tables end there). A sample with fewer distinct records than
centres makes each of them a centre.
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
SAMPLED_SHARE = 10  # one record of so many is in the sample
LARGEST_SAMPLE = 100  # records for each centre
ROUNDS = 50  # of k-means, at most
CELL_BITS = 12
SQUARE_BITS = 30  # of squared distances, in cells
FRACTION = 16  # bits of a distance below one cell


@dataclass(frozen=True, kw_only=True)
class IDistance:
    """Rings around at most so many centres."""

    centres: int = 512
    name = "idistance"
    title = "the rings of iDistance"
    needs_no_table = False  # the centres are those of the table
    paper = "Ghinita, Karras, Kalnis, Mamoulis: Fast data anonymization with low information loss, VLDB 2007"

    def __post_init__(self) -> None:
        if self.centres < 1:
            raise ValueError("there must be at least one centre")

    def fitted(self, codes: Codes, weights: NDArray[np.int64], domains: Sequence[Domain], seed: int) -> KeysOf:
        """Find the centres and the bound. Keys are then defined for these records, whole or in batches."""
        grid = CentreGrid.of(domains)
        total = int(weights.sum())
        size = min(max(-(-total // SAMPLED_SHARE), self.centres), LARGEST_SAMPLE * self.centres, total)
        # The raw numbers of a generator are the same in every version of NumPy; what is made of them need not be.
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
        # As many bits as keep the sum of d squares within SQUARE_BITS.
        bits = min(CELL_BITS, (SQUARE_BITS - bits_for(len(domains))) // 2)
        cells = [np.rint(domain.coordinates() * ((1 << bits) - 1)).astype(np.int32) for domain in domains]
        starts = np.cumsum([0, *(len(cell) for cell in cells[:-1])])
        return cls(np.concatenate(cells), starts.astype(np.int64), bits)


@dataclass(frozen=True)
class Rings:
    """Centres, int32[d, c], in the order of their ranks, and what all distances are below, in 2 ** -16 of a cell."""

    grid: CentreGrid
    centres: NDArray[np.int32]
    bound: int

    def keys(self, codes: Codes) -> Keys:
        """The key of every record. codes: uint[n, d], C-order, not modified."""
        ranks, squares = _nearest(codes, self.grid, self.centres)
        keys = ranks.astype(np.uint64) * np.uint64(self.bound) + fixed_roots(squares)
        return Keys(keys[:, np.newaxis], bits_for(self.centres.shape[1] * self.bound))


def _sample(weights: NDArray[np.int64], draws: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which distinct records are in the sample, and how often: one record from each of ``len(draws)`` equal runs."""
    ends = np.cumsum(weights)
    edges = np.arange(len(draws) + 1) * int(ends[-1]) // len(draws)
    places = edges[:-1] + (draws % np.diff(edges).astype(np.uint64)).astype(np.int64)
    return np.unique(np.searchsorted(ends, places, side="right"), return_counts=True)


def _clusters(
    codes: Codes, counts: NDArray[np.int64], grid: CentreGrid, draws: NDArray[np.uint64]
) -> NDArray[np.int32]:
    """The centres of a sample, int32[d, c], by k-means."""
    points = np.ascontiguousarray(grid.cells[grid.starts + codes].T)
    centres = np.ascontiguousarray(points[:, draw_seeds(points, counts, draws)])
    for _ in range(ROUNDS):
        owner, _ = _nearest(codes, grid, centres)
        if not move_centres(points, counts, owner, centres):
            break
    return centres


def _by_hilbert(centres: NDArray[np.int32], bits: int) -> NDArray[np.int32]:
    """The centres in the order of the curve; of those that met in one cell, one."""
    keys = positions_of_cells(np.ascontiguousarray(centres.T, np.uint16), bits)
    line = sort_rows(keys.fields(), centres.shape[1])
    return np.ascontiguousarray(centres[:, line.rows[line.starts[:-1]]])


def _nearest(codes: Codes, grid: CentreGrid, centres: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Of every record the nearest centre, the first of equally near ones, and its squared distance."""
    owner, squares = np.empty(len(codes), np.int32), np.empty(len(codes), np.int32)

    def fill(part: tuple[int, int]) -> None:
        these = slice(*part)
        nearest_centres(codes[these], grid.cells, grid.starts, centres, owner[these], squares[these])

    in_threads(fill, slices(len(codes), BATCH))
    return owner, squares


@kernel
def nearest_centres(codes, cells, starts, centres, owner, squares):
    """Write each record's nearest centre, the first of equally near ones, and the squared distance to it.

    codes: uint[n, d], C-order, not modified. cells, starts: see Grid. centres: int32[d, c], C-order.
    owner, squares: int32[n].
    """
    n, d = codes.shape
    count = centres.shape[1]
    distances = np.empty(count, np.int32)
    for i in range(n):
        # One record and all centres side by side: loops over whole arrays become vector instructions.
        distances[:] = 0
        for q in range(d):
            cell, line = cells[starts[q] + np.int64(codes[i, q])], centres[q]
            for c in range(count):
                away = line[c] - cell
                distances[c] += away * away
        least = distances[0]
        for c in range(count):
            least = min(least, distances[c])
        place = 0
        while distances[place] != least:
            place += 1
        owner[i] = place
        squares[i] = least


@kernel
def draw_seeds(points, counts, draws):
    """Points far from each other (k-means++): each is drawn with a chance by its squared distance to those before.

    points: int32[d, n], C-order. counts: int64[n], above 0. draws: uint64[c]. int64[at most c]: fewer where no further
    point is away from all that were drawn.
    """
    d, n = points.shape
    chosen = np.empty(len(draws), np.int64)
    nearest = np.ones(n, np.int64)  # at first all points are alike
    squares = np.empty(n, np.int64)
    for step in range(len(draws)):
        total = np.int64(0)
        for i in range(n):
            total += counts[i] * nearest[i]
        if total == 0:
            return chosen[:step]
        left, place = np.int64(draws[step] % np.uint64(total)), 0
        while left >= counts[place] * nearest[place]:
            left -= counts[place] * nearest[place]
            place += 1
        chosen[step] = place
        squares[:] = 0
        for q in range(d):
            line, cell = points[q], points[q, place]
            for i in range(n):
                away = np.int64(line[i] - cell)
                squares[i] += away * away
        for i in range(n):
            nearest[i] = squares[i] if step == 0 else min(nearest[i], squares[i])
    return chosen


@kernel
def move_centres(points, counts, owner, centres):
    """Move each centre to the mean of its points, rounded half up; one without points stays. Did any move?

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
    """The square roots in units of 2 ** -FRACTION, rounded down. squares: int32[n], below 2 ** 30; uint64[n]."""
    roots = np.empty(len(squares), np.uint64)
    for i in range(len(squares)):
        scaled = np.int64(squares[i]) << (2 * FRACTION)
        # A floating root is within one of the true one; whole numbers decide.
        root = np.int64(np.sqrt(np.float64(scaled)))
        while root * root > scaled:
            root -= 1
        while (root + 1) * (root + 1) <= scaled:
            root += 1
        roots[i] = root
    return roots
