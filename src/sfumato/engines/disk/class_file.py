"""The classes of a table on disk: the records of each class together in a file, and the size of each class."""

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
class ClassFile:
    """The records of every class together, and the number of records of each class."""

    rows: PackedFile
    sizes: PackedFile

    @classmethod
    def empty(cls, scratch: Scratch, kind: np.dtype[Any]) -> ClassFile:
        return cls(packed_file(scratch, "class_file", kind), packed_file(scratch, "sizes", SIZE))

    def add(self, rows: Rows, sizes: NDArray[np.integer]) -> None:
        """Append classes: their records, class after class, and the size of each class."""
        self.rows.append(rows)
        self.sizes.append(sizes)

    def runs(self, rows: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield runs of whole classes with about ``rows`` records: the position of the first record, and the starts.

        starts: int64[classes + 1], counted from that record; the last is the end of the run. A class with more records
        than ``rows`` is a run of its own.
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
