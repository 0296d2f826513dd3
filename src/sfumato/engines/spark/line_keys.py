"""The place of a record on the line, as bytes that sort in the order of the line: the words of its key, then its codes.

Records of equal place are ordered by ``TIE``, the hash of their other columns (``tables.coding.row_hash``), and then by
``ROW``, the number that the row got when it was read. The release is then a function of the rows alone, whatever their
partitions. Only rows that are equal in every column are ordered by their number, and nobody can tell those apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.orderings import Ordering
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.passthrough import SIGN
from sfumato.tables.coding.row_hash import Hashes

PLACE, CODES, TIE, ROW = "place", "codes", "tie", "row"
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class LineEncoder:
    """Encodes codes into places on the line, and decodes places into codes."""

    ordering: Ordering  # an ordering that needs no table
    domains: Sequence[Domain]

    @property
    def _widths(self) -> list[int]:
        """The width of each code in bytes."""
        return [np.min_scalar_type(max(domain.size - 1, 0)).itemsize for domain in self.domains]

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The type that holds every code."""
        return np.dtype(f"u{max(self._widths)}")

    def packed_codes(self, places: Bytes) -> Bytes:
        """Return the codes inside places, as bytes. Chunks hold only these, since codes determine the place."""
        return np.ascontiguousarray(places[:, places.shape[1] - sum(self._widths) :])

    def places(self, codes: Codes) -> Bytes:
        """Return the places of records: uint8[n, bytes], C order. codes: uint[n, d], C order."""
        words = self.ordering.fitted(codes[:0], np.empty(0, np.int64), self.domains, 0)(codes).words
        parts = [words.astype(">u8").view(np.uint8).reshape(len(codes), -1)]
        for q, width in enumerate(self._widths):
            parts.append(np.ascontiguousarray(codes[:, q]).astype(f">u{width}").view(np.uint8).reshape(-1, width))
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def codes(self, places: Bytes) -> Codes:
        """Return the codes of places, or of packed codes: uint[n, d], C order."""
        widths = self._widths
        begin = places.shape[1] - sum(widths)
        codes = np.empty((len(places), len(widths)), self.dtype)
        for q, width in enumerate(widths):
            codes[:, q] = np.ascontiguousarray(places[:, begin : begin + width]).view(f">u{width}")[:, 0]
            begin += width
        return codes


def tie_numbers(hashes: Hashes) -> NDArray[np.int64]:
    """Return hashes as signed numbers of the same order, which is what Spark has."""
    return (hashes ^ SIGN).view(np.int64)


def tie_hashes(numbers: NDArray[np.int64]) -> Hashes:
    """Return the hashes that ``tie_numbers`` turned into numbers."""
    return numbers.view(np.uint64) ^ SIGN


def to_binary(places: Bytes) -> pa.Array:
    """Return places as a binary column."""
    count, length = places.shape
    ends = np.arange(count + 1, dtype=np.int64) * length
    if ends[-1] >= 1 << 31:
        raise ValueError("the places take more bytes than one array can hold")
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(places))]
    )


def from_binary(column: pa.Array) -> Bytes:
    """Return the places of a binary column: uint8[n, bytes]. All values have the same length, and none is null."""
    if not len(column):
        return np.empty((0, 0), np.uint8)
    length = len(column[0].as_py())
    wide = pa.types.is_large_binary(column.type)
    first = np.frombuffer(column.buffers()[1], np.int64 if wide else np.int32, 1, column.offset * (8 if wide else 4))
    data = np.frombuffer(column.buffers()[2], np.uint8, len(column) * length, int(first[0]))
    return data.reshape(len(column), length)


@kernel
def ranges(places, ties, rows, at_places, at_ties, at_rows):
    """Count the splitters at or before each record: int64[n].

    places: uint8[n, b]. ties, rows: int64[n]. at_places, at_ties, at_rows: those of the splitters, ascending.
    """
    counts = np.empty(len(ties), np.int64)
    for record in range(len(ties)):
        low, high = 0, len(at_ties)
        while low < high:
            middle = (low + high) // 2
            order = 0  # 1 if the splitter comes after the record, -1 if before
            for byte in range(places.shape[1]):
                if at_places[middle, byte] != places[record, byte]:
                    order = 1 if at_places[middle, byte] > places[record, byte] else -1
                    break
            if order == 0 and at_ties[middle] != ties[record]:
                order = 1 if at_ties[middle] > ties[record] else -1
            if order == 0 and at_rows[middle] > rows[record]:
                order = 1
            if order > 0:
                high = middle
            else:
                low = middle + 1
        counts[record] = low
    return counts
