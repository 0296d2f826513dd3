"""The Hilbert curve: many dimensions to one (Ghinita 2007, section 5).

Each attribute is scaled to a grid of 2 ** bits cells a side. The curve visits every cell of the grid and steps from
each to a neighbour, so records that are close on the curve are close in space. Skilling's transposition (2004) gives
the position on the curve in O(d * bits) for any d.

Differs from the paper: a key has d * bits bits, which may be more than 64; it then takes several words, the most
significant first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.orderings.ordering import Keys, KeysOf
from sfumato.tables.coding.domains import Codes, Domain

WORD = 64
BATCH = 1 << 16
LANES = 256  # records that a kernel processes side by side


@dataclass(frozen=True, kw_only=True)
class Hilbert:
    """The position on the Hilbert curve through the attributes, each with ``2 ** bits`` cells."""

    bits: int = 12
    name = "hilbert"
    title = "the Hilbert curve"
    needs_no_table = True
    paper = "Ghinita, Karras, Kalnis, Mamoulis: Fast data anonymization with low information loss, VLDB 2007"

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 31:
            raise ValueError("bits must be between 1 and 31")

    def fitted(self, codes: Codes, weights: NDArray[np.int64], domains: Sequence[Domain], seed: int) -> KeysOf:
        """Return the keys of the curve, which needs nothing but the domains."""
        return partial(self.keys, domains=domains)

    def keys(self, codes: Codes, domains: Sequence[Domain]) -> Keys:
        """Return the key of every record. codes: uint[n, d], C-order, not modified."""
        top = (1 << self.bits) - 1
        return _positions(
            codes, [np.floor(domain.coordinates() * top).astype(np.int32) for domain in domains], self.bits
        )


def positions_of_cells(cells: NDArray[np.unsignedinteger], bits: int) -> Keys:
    """Return the positions on the curve of grid cells. cells: uint[n, d], C-order, below ``2 ** bits``."""
    return _positions(cells, [np.arange(1 << bits, dtype=np.int32)] * cells.shape[1], bits)


def _positions(codes: Codes, cells: Sequence[NDArray[np.int32]], bits: int) -> Keys:
    """Return the positions of records on the curve. cells: for each attribute, the grid cell of each code."""
    starts = np.cumsum([0, *(len(cell) for cell in cells)])
    length = len(cells) * bits
    words = np.zeros((len(codes), -(-length // WORD)), np.uint64)
    flat, begin = np.concatenate(cells), starts[:-1].astype(np.int64)

    def fill(part: tuple[int, int]) -> None:
        coordinates, values = np.empty((len(cells) + 1, LANES), np.int32), np.empty(LANES, np.uint64)
        curve_positions(codes[part[0] : part[1]], flat, begin, bits, coordinates, values, words[part[0] : part[1]])

    in_threads(fill, slices(len(codes), BATCH))
    return Keys(words, length)


@kernel
def curve_positions(codes, cells, starts, bits, coordinates, values, words):
    """Write the position of each record on the curve into ``words``.

    codes: uint[n, d], C-order, not modified. cells: int32[...], the grid cell of each code; those of attribute q begin
    at ``starts[q]``. coordinates: int32[d + 1, LANES], values: uint64[LANES]: overwritten. words: uint64[n, w],
    C-order; the last word holds the remaining bits of the key in its low bits.
    """
    n, d = codes.shape
    flips, one = coordinates[d], np.uint64(1)
    for begin in range(0, n, LANES):
        # Each step handles many records side by side, without branches, so that it compiles to vector instructions.
        count = min(LANES, n - begin)
        for q in range(d):
            x = coordinates[q]
            for t in range(count):
                x[t] = cells[starts[q] + np.int64(codes[begin + t, q])]
        # Undo the rotations and reflections of the curve from the coarsest level down: where the bit of a coordinate is
        # set, invert the lower bits of the first; elsewhere exchange them with those of the coordinate ...
        first = coordinates[0]
        for level in range(bits - 1, 0, -1):
            lower = np.int32((1 << level) - 1)
            for t in range(count):
                first[t] ^= lower & -((first[t] >> level) & np.int32(1))
            for q in range(1, d):
                x = coordinates[q]
                for t in range(count):
                    is_set = -((x[t] >> level) & np.int32(1))
                    exchanged = (first[t] ^ x[t]) & lower & ~is_set
                    first[t] ^= (lower & is_set) | exchanged
                    x[t] ^= exchanged
        # ... then Gray-code across the dimensions.
        for q in range(1, d):
            x, before = coordinates[q], coordinates[q - 1]
            for t in range(count):
                x[t] ^= before[t]
        last = coordinates[d - 1]
        for t in range(count):
            flips[t] = 0
            values[t] = 0
        for level in range(bits - 1, 0, -1):
            lower = np.int32((1 << level) - 1)
            for t in range(count):
                flips[t] ^= lower & -((last[t] >> level) & np.int32(1))
        word, filled = 0, 0
        for level in range(bits - 1, -1, -1):
            for q in range(d):
                x = coordinates[q]
                for t in range(count):
                    values[t] = (values[t] << one) | np.uint64(((x[t] ^ flips[t]) >> level) & np.int32(1))
                filled += 1
                if filled == WORD:
                    for t in range(count):
                        words[begin + t, word] = values[t]
                        values[t] = 0
                    word, filled = word + 1, 0
        if filled > 0:
            for t in range(count):
                words[begin + t, word] = values[t]
