"""Records class after class in a file: what a method on disk hands to the release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.external.packed_records import PackedFile, Rows, packed_file
from sfumato.tables.external.scratch import Scratch

SIZE = np.dtype(np.uint32)


@dataclass(frozen=True)
class ClassedFile:
    """The records of every class together, and how many each class has."""

    rows: PackedFile
    sizes: PackedFile

    @classmethod
    def empty(cls, scratch: Scratch, kind: np.dtype[Any]) -> ClassedFile:
        return cls(packed_file(scratch, "classed", kind), packed_file(scratch, "sizes", SIZE))

    def add(self, rows: Rows, sizes: NDArray[np.integer]) -> None:
        """Some more classes: their records, class after class, and the size of each."""
        self.rows.append(rows)
        self.sizes.append(sizes)

    def runs(self, rows: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Whole classes, about so many records at a time: the place of the first record, and where each class begins.

        Places of classes count from that record; their end comes last. A class of more records comes alone.
        """
        first = 0
        for sizes in self.sizes.batches(rows):
            ends = np.cumsum(sizes, dtype=np.int64)
            done, before = 0, 0
            while done < len(sizes):
                last = max(int(np.searchsorted(ends, before + rows, side="right")), done + 1)
                yield first + before, np.append(before, ends[done:last]) - before
                done, before = last, int(ends[last - 1])
            first += int(ends[-1])
