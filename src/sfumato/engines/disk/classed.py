"""Records class after class in a file: what a method on disk hands to the release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.packed import PackedFile, Rows
from sfumato.tables.scratch import Scratch

SIZE = np.dtype(np.uint32)


@dataclass(frozen=True)
class ClassedFile:
    """The records of every class together, and how many each class has."""

    rows: PackedFile
    sizes: PackedFile

    @classmethod
    def empty(cls, scratch: Scratch, kind: np.dtype[Any]) -> ClassedFile:
        return cls(PackedFile(scratch.path("classed"), kind), PackedFile(scratch.path("sizes"), SIZE))

    def add(self, rows: Rows, sizes: NDArray[np.integer]) -> None:
        """Some more classes: their records, class after class, and the size of each."""
        self.rows.append(rows)
        self.sizes.append(sizes)

    def batches(self, rows: int) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
        """Whole classes, about so many records at a time: the records, and where each class begins, with their end."""
        first = 0
        for sizes in self.sizes.batches(max(rows // 4, 1)):
            ends = np.cumsum(sizes, dtype=np.int64)
            done = 0
            while done < len(sizes):
                before = int(ends[done - 1]) if done else 0
                last = max(int(np.searchsorted(ends, before + rows, side="right")), done + 1)
                starts = np.append(before, ends[done:last]) - before
                yield self.rows.read(first, first + int(starts[-1])), starts
                first, done = first + int(starts[-1]), last
