"""Records packed into rows of bytes, in files that are written once and read in batches.

A row holds the codes of the quasi-identifiers, then one number for every passthrough column: a code into a dictionary,
or the value as an unsigned number of the same order. NumPy's record type describes the layout.
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

from sfumato.tables.external.scratch import BytesMoved, Scratch, scratch_errors

CODES = "codes"
ROW = "row"  # the number of a record in the input, for callers that need it
Rows = NDArray[np.void]  # packed records


def packed_file(scratch: Scratch, name: str, kind: np.dtype[Any]) -> PackedFile:
    """Create a file in a scratch directory, which counts the bytes written and read."""
    return PackedFile(scratch.path(name), kind, tally=scratch.tally)


@dataclass
class PackedFile:
    """A file of packed records. It is read only after the last record was appended."""

    path: Path
    kind: np.dtype[Any]
    count: int = 0
    tally: BytesMoved = field(default_factory=BytesMoved, repr=False)

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows to the file."""
        with scratch_errors(self.path.parent), self.path.open("ab") as file:
            file.write(np.ascontiguousarray(rows, self.kind).view(np.uint8).data)
        self.count += len(rows)
        self.tally.written += len(rows) * self.kind.itemsize

    def batches(self, rows: int) -> Iterator[NDArray[Any]]:
        """Yield all records in order, at most ``rows`` at a time."""
        for first in range(0, self.count, rows):
            yield self.read(first, min(first + rows, self.count))

    def read(self, first: int = 0, last: int | None = None) -> NDArray[Any]:
        """Return records ``first`` to ``last - 1``, by default all."""
        last = self.count if last is None else last
        with scratch_errors(self.path.parent):
            if last == first:
                return np.empty(0, self.kind)
            records = np.fromfile(self.path, self.kind, last - first, offset=first * self.kind.itemsize)
            if len(records) != last - first:
                raise OSError(errno.EIO, os.strerror(errno.EIO))  # the file is shorter than what was written
        self.tally.read += records.nbytes
        return records

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)
