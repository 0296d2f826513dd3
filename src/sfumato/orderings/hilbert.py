"""The Hilbert curve: many dimensions to one (Ghinita 2007, section 5).

Each attribute is scaled to a grid of 2 ** bits cells a side and the curve visits every cell of the grid, stepping from
each to a neighbour, so records that are close on the curve are close in space. Skilling's transposition (2004) gives
the position on the curve in O(d * bits) for any d.

Differs from the paper: the number of bits of a key, d * bits, may pass 64; keys are then several words, the most
significant first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.kernels import in_threads, kernel, slices
from sfumato.orderings.ordering import Keys
from sfumato.tables.domains import Codes, Domain

WORD = 64
BATCH = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Hilbert:
    """Position on the Hilbert curve through the attributes, each with ``2 ** bits`` cells."""

    bits: int = 12
    name = "hilbert"

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 31:
            raise ValueError("bits must be between 1 and 31")

    def keys(self, codes: Codes, domains: Sequence[Domain]) -> Keys:
        """The key of every record. codes: uint[n, d], C-order, not modified."""
        top = (1 << self.bits) - 1
        cells = [np.floor(domain.coordinates() * top).astype(np.int64) for domain in domains]
        starts = np.cumsum([0, *(len(cell) for cell in cells)])
        length = len(domains) * self.bits
        words = np.zeros((len(codes), -(-length // WORD)), np.uint64)
        flat, begin = np.concatenate(cells), starts[:-1].astype(np.int64)

        def fill(part: tuple[int, int]) -> None:
            curve_positions(codes[part[0] : part[1]], flat, begin, self.bits, words[part[0] : part[1]])

        in_threads(fill, slices(len(codes), BATCH))
        return Keys(words, length)


@kernel
def curve_positions(codes, cells, starts, bits, words):  # type: ignore[no-untyped-def]
    """Write each record's position on the curve into ``words``.

    codes: uint[n, d], C-order, not modified. cells: int64[...], the grid cell of each code, attribute after attribute
    from ``starts[q]``. words: uint64[n, w], C-order, zeros; the last word holds what is left in its low bits.
    """
    n, d = codes.shape
    x = np.zeros(d, np.int64)
    for row in range(n):
        for q in range(d):
            x[q] = cells[starts[q] + codes[row, q]]
        # Undo the rotations and reflections of the curve from the coarsest level down ...
        side = 1 << (bits - 1)
        while side > 1:
            mask = side - 1
            for q in range(d):
                if x[q] & side:
                    x[0] ^= mask
                else:
                    swap = (x[0] ^ x[q]) & mask
                    x[0] ^= swap
                    x[q] ^= swap
            side >>= 1
        # ... then Gray-code across the dimensions.
        for q in range(1, d):
            x[q] ^= x[q - 1]
        flip = 0
        side = 1 << (bits - 1)
        while side > 1:
            if x[d - 1] & side:
                flip ^= side - 1
            side >>= 1
        word, filled, value = 0, 0, np.uint64(0)
        for bit in range(bits - 1, -1, -1):
            for q in range(d):
                value = (value << np.uint64(1)) | np.uint64(((x[q] ^ flip) >> bit) & 1)
                filled += 1
                if filled == WORD:
                    words[row, word] = value
                    word += 1
                    filled = 0
                    value = np.uint64(0)
        if filled > 0:
            words[row, word] = value
