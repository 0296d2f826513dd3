"""Records packed into rows of bytes, in files that are written once and read in batches.

A row has the codes of the quasi-identifiers, then one number for every column that rides along: a code into a
dictionary, or a number in unsigned order. NumPy's record type says where each of them stands.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.external.scratch import BytesMoved, Scratch, scratching

CODES = "codes"
ROW = "row"  # the number of a record in the input, where it is asked for
Rows = NDArray[np.void]  # packed records


def packed_file(scratch: Scratch, name: str, kind: np.dtype[Any]) -> PackedFile:
    """A new file in a scratch directory, which counts what is written and read."""
    return PackedFile(scratch.path(name), kind, tally=scratch.tally)


@dataclass
class PackedFile:
    """A file of packed records. Appending and reading are not mixed: it is read once it is finished."""

    path: Path
    kind: np.dtype[Any]
    count: int = 0
    tally: BytesMoved = field(default_factory=BytesMoved, repr=False)

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        with scratching(self.path.parent), self.path.open("ab") as file:
            file.write(np.ascontiguousarray(rows, self.kind).view(np.uint8).data)
        self.count += len(rows)
        self.tally.written += len(rows) * self.kind.itemsize

    def batches(self, rows: int) -> Iterator[NDArray[Any]]:
        """All records in their order, at most ``rows`` at a time."""
        for first in range(0, self.count, rows):
            yield self.read(first, min(first + rows, self.count))

    def read(self, first: int = 0, last: int | None = None) -> NDArray[Any]:
        """Some records, or all."""
        last = self.count if last is None else last
        with scratching(self.path.parent):
            if last == first:
                return np.empty(0, self.kind)
            found = np.fromfile(self.path, self.kind, last - first, offset=first * self.kind.itemsize)
            if len(found) != last - first:
                raise OSError(errno.EIO, os.strerror(errno.EIO))  # it is shorter than it was written
        self.tally.read += found.nbytes
        return found

    def remove(self) -> None:
        """It is no longer needed."""
        self.path.unlink(missing_ok=True)
