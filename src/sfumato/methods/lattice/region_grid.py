"""A grid of regions: every attribute is cut into the same intervals everywhere (single-dimensional global recoding).

The regions also form a tree, which divides the domain on one attribute after the other. A grid may have many more cells
than there are records. In that case empty cells are not separated from their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.trees.region_tree import RegionTree
from sfumato.tables.coding.domains import Codes

MOST_CELLS = 1 << 17
"""A grid with more cells is divided only where there are records."""


@dataclass(frozen=True)
class RegionGrid:
    """A grid. starts: by attribute, the first code of every interval, int64, ascending from 0; sizes: of domains."""

    starts: tuple[NDArray[np.int64], ...]
    sizes: tuple[int, ...]

    def intervals_of(self, codes: Codes) -> NDArray[np.int64]:
        """Return the interval that each value is in: int64[n, d]."""
        intervals = np.empty(codes.shape, np.int64)
        for attribute, (starts, size) in enumerate(zip(self.starts, self.sizes, strict=True)):
            interval_of_code = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, size)))
            intervals[:, attribute] = interval_of_code[codes[:, attribute]]
        return intervals

    def line(self, codes: Codes) -> NDArray[np.uint32]:
        """Return the records in the order of their cells, by the first attribute first."""
        return np.lexsort(self.intervals_of(codes).T[::-1]).astype(np.uint32)

    def tree(self, codes: Codes, line: NDArray[np.uint32], weights: NDArray[np.int64]) -> RegionTree:
        """Return the regions as a tree over the records in ``line``; weights: the rows of each record."""
        in_line, intervals = codes[line], self.intervals_of(codes)[line]
        everywhere = prod(len(starts) for starts in self.starts) <= MOST_CELLS
        levels = [_Level.whole(self.sizes, len(line), codes.dtype)]
        count = 1
        for attribute, starts in enumerate(self.starts):
            if len(starts) > 1:
                ends = np.append(starts[1:], self.sizes[attribute]) - 1
                level = levels[-1].divided(attribute, starts, ends, intervals[:, attribute], count, everywhere)
                levels.append(level)
                count += len(level.parent)
        for level in levels:
            level.find_boxes(in_line)
        positions = np.append(0, np.cumsum(weights[line]))
        return RegionTree(
            parent=np.concatenate([level.parent for level in levels]),
            attribute=np.concatenate([level.attribute for level in levels]),
            first_child=np.concatenate([level.first_child for level in levels]),
            low=np.concatenate([level.low for level in levels]),
            high=np.concatenate([level.high for level in levels]),
            box_low=np.concatenate([level.box_low for level in levels]),
            box_high=np.concatenate([level.box_high for level in levels]),
            begin=positions[np.concatenate([level.begin for level in levels])],
            end=positions[np.concatenate([level.end for level in levels])],
        )


@dataclass
class _Level:
    """The nodes that result from dividing on one attribute; ``first`` is the number of the first of them.

    For the other fields see RegionTree, but ``begin`` and ``end`` count records. The nodes with records follow each
    other in their order and hold all of them.
    """

    first: int
    parent: NDArray[np.int64]
    attribute: NDArray[np.int64]
    first_child: NDArray[np.int64]
    low: Codes
    high: Codes
    box_low: Codes
    box_high: Codes
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    @classmethod
    def whole(cls, sizes: tuple[int, ...], records: int, dtype: np.dtype[np.unsignedinteger]) -> _Level:
        low = np.zeros((1, len(sizes)), dtype)
        high = (np.array([sizes]) - 1).astype(dtype)
        return cls._of(0, np.array([-1]), low, high, np.array([0]), np.array([records]))

    @classmethod
    def _of(
        cls,
        first: int,
        parent: NDArray[np.int64],
        low: Codes,
        high: Codes,
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
    ) -> _Level:
        none = np.full((2, len(parent)), -1, np.int64)
        return cls(first, parent, none[0], none[1], low, high, np.zeros_like(low), np.zeros_like(high), begin, end)

    def divided(
        self,
        attribute: int,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        interval: NDArray[np.int64],
        first: int,
        everywhere: bool,
    ) -> _Level:
        """Divide all nodes (``everywhere``) or those with records. interval: int64[m], of the records in line."""
        parts = len(starts)
        divided = np.flatnonzero((self.begin < self.end) | everywhere)
        owner = np.repeat(np.arange(len(self.begin)), self.end - self.begin)
        counts = np.bincount(owner * parts + interval, minlength=len(self.begin) * parts)
        after = np.cumsum(counts).reshape(-1, parts)[divided].ravel()
        self.attribute[divided] = attribute
        self.first_child[divided] = first + parts * np.arange(len(divided))
        low, high = np.repeat(self.low[divided], parts, axis=0), np.repeat(self.high[divided], parts, axis=0)
        low[:, attribute], high[:, attribute] = np.tile(starts, len(divided)), np.tile(ends, len(divided))
        before = after - counts.reshape(-1, parts)[divided].ravel()
        return self._of(first, np.repeat(self.first + divided, parts), low, high, before, after)

    def find_boxes(self, in_line: Codes) -> None:
        """Compute the smallest box around the records of each node."""
        occupied = self.begin < self.end
        begins = self.begin[occupied]
        self.box_low[occupied] = np.minimum.reduceat(in_line, begins, axis=0)
        self.box_high[occupied] = np.maximum.reduceat(in_line, begins, axis=0)
