"""Sorting rows by many narrow columns.

Equal keys are ordered by row number, so the order is always total. Key bits and row number are packed into one 64-bit
integer and sorted as plain integers, which is several times faster than an indirect sort. Keys that need more bits than
fit are refined: rows that are still tied are sorted again by the next bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices

WORD = 64
SMALL_TABLE = 1 << 20
CHUNK = 1 << 16  # rows that are packed at once: they stay within a core's cache


@dataclass(frozen=True)
class Field:
    """One column of a sort key: unsigned values below ``2 ** bits``."""

    values: NDArray[np.unsignedinteger]
    bits: int


@dataclass(frozen=True)
class SortedRows:
    """Row numbers in order, and where each run of equal keys starts (with the total as the last entry)."""

    rows: NDArray[np.uint32]
    starts: NDArray[np.int64]


def bits_for(count: int) -> int:
    """How many bits the numbers 0 to ``count - 1`` need."""
    return max(count - 1, 0).bit_length()


def distinct_numbers(numbers: NDArray[np.int64], bound: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct numbers, ascending, and each number's place among them. All are from 0 to ``bound - 1``."""
    if bound > SMALL_TABLE:
        found, index = np.unique(numbers, return_inverse=True)
        return found, index
    occurs = np.zeros(bound, np.bool_)
    occurs[numbers] = True
    found = np.flatnonzero(occurs)
    place = np.empty(bound, np.int64)
    place[found] = np.arange(len(found))
    return found, place[numbers]


def sort_rows(fields: Sequence[Field], count: int) -> SortedRows:
    """Order ``count`` rows by the fields, the most significant first, then by row number."""
    if count == 0:
        return SortedRows(np.empty(0, np.uint32), np.zeros(1, np.int64))
    row_bits = bits_for(count)
    offset, total = 0, sum(field.bits for field in fields)
    rows = np.arange(count, dtype=np.uint32)
    begins = np.zeros(count, np.bool_)  # does a run of equal keys begin at this position?
    begins[0] = True
    open_places: slice | NDArray[np.int64] = slice(None)  # the positions whose order is not decided yet
    while offset < total:
        run_bits = 0
        if offset:
            runs = np.cumsum(begins[open_places], dtype=np.uint64) - np.uint64(1)
            run_bits = bits_for(int(runs[-1]) + 1)
        width = min(WORD - row_bits - run_bits, total - offset)
        open_rows = rows[open_places]
        packed = key_bits(fields, offset, width, open_rows if offset else None)
        packed <<= np.uint64(row_bits)
        packed |= open_rows
        if run_bits:
            packed |= runs << np.uint64(width + row_bits)
        packed.sort()
        rows[open_places] = packed & np.uint64((1 << row_bits) - 1)
        packed >>= np.uint64(row_bits)
        begins[open_places] |= np.append(True, packed[1:] != packed[:-1])
        offset += width
        if offset < total:
            open_places = np.flatnonzero(~(begins & np.append(begins[1:], True)))
            if not open_places.size:
                break
    return SortedRows(rows, np.append(np.flatnonzero(begins), count))


def collapse(codes: NDArray[np.unsignedinteger], sizes: Sequence[int]) -> tuple[NDArray[Any], SortedRows]:
    """Equal rows made one: the distinct rows of uint[n, d] in their order, and the rows that each stands for.

    sizes: how many codes each column may have.
    """
    line = sort_rows([Field(codes[:, q], bits_for(size)) for q, size in enumerate(sizes)], len(codes))
    return np.take(codes, line.rows[line.starts[:-1]], axis=0), line


def key_bits(
    fields: Sequence[Field], offset: int, width: int, rows: NDArray[np.uint32] | None = None
) -> NDArray[np.uint64]:
    """Bits ``offset`` to ``offset + width`` of the key that the fields make, for all rows or the given ones."""
    key = np.zeros(len(fields[0].values) if rows is None else rows.size, np.uint64)

    def fill(part: tuple[int, int]) -> None:
        these = slice(*part) if rows is None else rows[slice(*part)]
        _fill_bits(fields, offset, width, these, key[slice(*part)])

    in_threads(fill, slices(len(key), CHUNK))
    return key


def _fill_bits(
    fields: Sequence[Field], offset: int, width: int, rows: slice | NDArray[np.uint32], key: NDArray[np.uint64]
) -> None:
    position = 0
    for field in fields:
        start, end = max(position, offset), min(position + field.bits, offset + width)
        if start < end:
            part = field.values[rows].astype(np.uint64)
            below = position + field.bits - end  # the field's bits that are left for a later round
            if below:
                part >>= np.uint64(below)
            if start > position:
                part &= np.uint64((1 << (end - start)) - 1)
            key <<= np.uint64(end - start)
            key |= part
        position += field.bits


@kernel
def sort_numbers(numbers):
    """Sort an array in place, by Shell's method: numba's own sort takes seconds to compile wherever it is used."""
    gap = 1
    while gap < len(numbers) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(numbers)):
            number, place = numbers[i], i
            while place >= gap and numbers[place - gap] > number:
                numbers[place] = numbers[place - gap]
                place -= gap
            numbers[place] = number
        gap //= 3
