"""The distinct texts of one column, and the position of each: collected batch by batch, in little memory.

Arrow builds a table of distinct values anew for every question, and holds several copies of them meanwhile. Here the
texts lie one after the other, and one table of slots finds them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.kernels.decorator import inner_kernel, kernel
from sfumato.tables.coding.row_hash import text_hashes

FILLED = 0.6  # of the slots, at most
GROWTH = 1.25
CHUNK = 1 << 16  # texts that are hashed at once
MOST_LETTERS = (1 << 31) - 1  # of an Arrow array of text


class TextIndex:
    """Distinct texts (or byte strings) in order of appearance. ``column`` is the name for errors."""

    def __init__(self, column: str, kind: pa.DataType) -> None:
        self._column, self._kind = column, kind
        self._bounds, self._letters = np.zeros(1024, np.int32), np.empty(1 << 13, np.uint8)
        self._slots = np.zeros(1024, np.uint32)  # one more than the position of a text; 0 if the slot is free
        self.count = 0

    @classmethod
    def of(cls, column: str, values: pa.Array) -> TextIndex:
        """Index distinct values where they are. Nothing can be added."""
        index = cls(column, values.type)
        index._bounds, index._letters = _buffers(values)
        index.count = len(values)
        index._rebuild()
        return index

    @property
    def nbytes(self) -> int:
        return self._bounds.nbytes + self._letters.nbytes + self._slots.nbytes

    @property
    def letters(self) -> int:
        """The bytes of all texts together."""
        return int(self._bounds[self.count])

    @property
    def bytes_to_grow(self) -> int:
        """The bytes that a larger table of slots takes beside the present one."""
        return 2 * self._slots.nbytes

    @property
    def bytes_to_sort(self) -> int:
        """The bytes that ``sorted_values`` takes, and an index of the result."""
        return self.count * (8 + 8 + 4) + self.letters + self._slots.nbytes

    def add(self, values: pa.Array) -> None:
        """Add those of some values that are not there yet. There is no null among them."""
        bounds, letters = _buffers(values)
        texts, size = len(values), int(bounds[-1]) - int(bounds[0])
        filled = self.letters
        if filled + size > MOST_LETTERS:
            raise UsageError(
                f"column {self._column!r} has more than 2 GB of different text. Drop the column, or shorten its texts."
            )
        _grow(self._bounds, self.count + texts + 1)
        _grow(self._letters, filled + size)
        if self.count + texts > FILLED * len(self._slots):
            self._rebuild(self.count + texts)
        hashes = text_hashes(bounds.astype(np.int64), letters)
        self.count = int(insert(self._bounds, self._letters, self._slots, self.count, bounds, letters, hashes))

    def positions(self, values: pa.Array) -> NDArray[np.uint32]:
        """Return the position of each value, or ``count`` if it is not there."""
        bounds, letters = _buffers(values)
        hashes = text_hashes(bounds.astype(np.int64), letters)
        positions = np.empty(len(values), np.uint32)
        look_up(self._bounds, self._letters, self._slots, self.count, bounds, letters, hashes, positions)
        return positions

    @property
    def values(self) -> pa.Array:
        """The texts in order of appearance. They share memory with the index, to which nothing may be added now."""
        buffers = [None, pa.py_buffer(self._bounds[: self.count + 1]), pa.py_buffer(self._letters)]
        return pa.Array.from_buffers(self._kind, self.count, buffers)

    def _rebuild(self, texts: int | None = None) -> None:
        """Make a table with enough slots for so many texts."""
        slots = len(self._slots)
        while (self.count if texts is None else texts) > FILLED * slots:
            slots *= 2
        self._slots = np.zeros(slots, np.uint32)
        for first in range(0, self.count, CHUNK):
            bounds = self._bounds[first : min(first + CHUNK, self.count) + 1]
            enter(self._slots, text_hashes(bounds.astype(np.int64), self._letters), first)


def _grow(array: NDArray[Any], size: int) -> None:
    """Make an array longer where it is: the system moves large blocks without a copy."""
    if size > len(array):
        array.resize(max(size, int(len(array) * GROWTH)), refcheck=False)


def _buffers(values: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return where the texts begin and end, and their letters: int32[n + 1] and uint8[m]."""
    _, bounds, letters = values.buffers()
    if not len(values):
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    return (
        np.frombuffer(bounds, np.int32, len(values) + 1, values.offset * 4),
        np.empty(0, np.uint8) if letters is None or not letters.size else np.frombuffer(letters, np.uint8),
    )


@kernel
def enter(slots, hashes, first):
    """Enter distinct texts into their slots. slots: uint32[2 ** m], changed; hashes: uint64[n], from ``first`` on."""
    mask = np.uint64(len(slots) - 1)
    for text in range(len(hashes)):
        slot = hashes[text] & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = first + text + 1


@inner_kernel
def slot_of(bounds, letters, slots, begin, end, others, code):
    """Return the slot of the text others[begin:end], or the free slot where it belongs. code: its hash."""
    mask = np.uint64(len(slots) - 1)
    slot = code & mask
    while slots[slot] != 0:
        known = slots[slot] - 1
        at, length = bounds[known], bounds[known + 1] - bounds[known]
        if length == end - begin:
            letter = 0
            while letter < length and letters[at + letter] == others[begin + letter]:
                letter += 1
            if letter == length:
                break
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel
def insert(bounds, letters, slots, count, new_bounds, new_letters, hashes):
    """Add the texts that are not there yet, and return how many there are then.

    bounds: int32[...], letters: uint8[...] and slots: uint32[2 ** m] have room for them, and are changed; new_bounds:
    int32[n + 1]; new_letters: uint8[...]; hashes: uint64[n], of the new texts.
    """
    for text in range(len(hashes)):
        begin, end = new_bounds[text], new_bounds[text + 1]
        slot = slot_of(bounds, letters, slots, begin, end, new_letters, hashes[text])
        if slots[slot] == 0:
            at = bounds[count]
            for letter in range(end - begin):
                letters[at + letter] = new_letters[begin + letter]
            count += 1
            bounds[count] = at + end - begin
            slots[slot] = count
    return count


@kernel
def look_up(bounds, letters, slots, count, wanted_bounds, wanted_letters, hashes, positions):
    """Write the position of each wanted text, or ``count``, to positions: uint32[n]. The rest is as in ``insert``."""
    for text in range(len(hashes)):
        begin, end = wanted_bounds[text], wanted_bounds[text + 1]
        known = slots[slot_of(bounds, letters, slots, begin, end, wanted_letters, hashes[text])]
        positions[text] = count if known == 0 else known - 1
