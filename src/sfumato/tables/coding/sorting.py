"""Sort rows by many narrow columns.

Equal keys are ordered by row number, so the order is always total. Key bits and row number are packed into one 64-bit
integer and sorted as plain integers, digit by digit, which is many times faster than an indirect sort. If the key has
more bits than fit, rows that are still tied are sorted again by the next bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices, thread_count

Number = TypeVar("Number", bound=np.generic)

WORD = 64
SMALL_TABLE = 1 << 20
CHUNK = 1 << 16  # rows packed at once: they fit in a core's cache
DIGIT = 10  # bits by which integers are sorted at once
STRETCH = 16  # rows that are sorted by insertion before they are merged


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
    """Return the number of bits that the numbers 0 to ``count - 1`` need."""
    return max(count - 1, 0).bit_length()


def distinct_numbers(numbers: NDArray[np.int64], bound: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct numbers, ascending, and the index of each number among them.

    numbers: int64[n], from 0 to ``bound - 1``.
    """
    if bound > SMALL_TABLE:
        distinct, index = np.unique(numbers, return_inverse=True)
        return distinct, index
    occurs = np.zeros(bound, np.bool_)
    occurs[numbers] = True
    distinct = np.flatnonzero(occurs)
    index_of_number = np.empty(bound, np.int64)
    index_of_number[distinct] = np.arange(len(distinct))
    return distinct, index_of_number[numbers]


def sort_rows(fields: Sequence[Field], count: int, ties: NDArray[np.uint64] | None = None) -> SortedRows:
    """Order ``count`` rows by the fields, the most significant first, then by row number.

    ties: uint64[count]; rows of equal keys are ordered by as many of their first bits as fit, before the row number.
    """
    rows, begins = _rows_and_begins(fields, count, ties)

    def found(part: tuple[int, int]) -> NDArray[np.int64]:
        return np.flatnonzero(begins[slice(*part)]) + part[0]

    return SortedRows(rows, np.concatenate([*in_threads(found, slices(count, CHUNK)), [count]]))


def row_order(fields: Sequence[Field], count: int) -> NDArray[np.uint32]:
    """Return the row numbers in the order of ``sort_rows``, for callers to whom runs of equal keys mean nothing."""
    return _rows_and_begins(fields, count, None)[0]


def _rows_and_begins(
    fields: Sequence[Field], count: int, ties: NDArray[np.uint64] | None
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the row numbers in order, and whether a run of equal keys begins at each position; see ``sort_rows``."""
    row_bits = bits_for(count)
    offset, total = 0, sum(field.bits for field in fields)
    rows: NDArray[np.uint32] | None = None
    begins = np.zeros(count, np.bool_)
    begins[:1] = True
    tied: NDArray[np.int64] | None = None  # positions whose order is not decided yet; None for all
    while offset < total and count > 0:
        tied_rows, runs, run_bits = None, None, 0
        if rows is not None:
            tied_rows = rows[tied]
            runs = np.cumsum(begins[tied], dtype=np.uint64) - np.uint64(1)
            run_bits = bits_for(int(runs[-1]) + 1)
        width = min(WORD - row_bits - run_bits, total - offset)
        tie_bits = 0 if ties is None else WORD - row_bits - run_bits - width
        packed = _packed(fields, (offset, width), count, tied_rows, runs, ties, tie_bits, row_bits)
        sorted_rows, differs = _unpacked(_sorted(packed, row_bits), row_bits, row_bits + tie_bits)
        if rows is None:
            rows, begins = sorted_rows, differs
        else:
            rows[tied] = sorted_rows
            begins[tied] |= differs
        offset += width
        if offset < total:
            tied = np.flatnonzero(~(begins & np.append(begins[1:], True)))
            if not tied.size:
                break
    return np.arange(count, dtype=np.uint32) if rows is None else rows, begins


def _packed(
    fields: Sequence[Field],
    bits: tuple[int, int],
    count: int,
    rows: NDArray[np.uint32] | None,
    runs: NDArray[np.uint64] | None,
    ties: NDArray[np.uint64] | None,
    tie_bits: int,
    row_bits: int,
) -> NDArray[np.uint64]:
    """Return one integer for each of the rows: the number of its run, bits of its key, bits of its tie, its number.

    bits: see ``key_bits``. rows, runs: None for all ``count`` rows in their order, which are one run.
    """
    packed = np.zeros(count if rows is None else len(rows), np.uint64)

    def fill(part: tuple[int, int]) -> None:
        key, some = packed[slice(*part)], slice(*part) if rows is None else rows[slice(*part)]
        if runs is not None:
            key[:] = runs[slice(*part)]
        _append_bits(fields, *bits, some, key)
        if tie_bits:
            assert ties is not None
            key <<= np.uint64(tie_bits)
            key |= ties[some] >> np.uint64(WORD - tie_bits)
        key <<= np.uint64(row_bits)
        key |= np.arange(*part, dtype=np.uint64) if isinstance(some, slice) else some

    in_threads(fill, slices(len(packed), CHUNK))
    return packed


def _sorted(packed: NDArray[np.uint64], row_bits: int) -> NDArray[np.uint64]:
    """Sort integers whose last ``row_bits`` bits ascend wherever the others are equal. They may be changed.

    Radix sort: by their last bits first, each time without changing the order of integers that have equal ones. Every
    thread counts and moves a part of them.
    """
    if len(packed) <= CHUNK:
        packed.sort()
        return packed
    parts = [slice(*part) for part in slices(len(packed), -(-len(packed) // thread_count()))]
    used = int(np.bitwise_or.reduce(in_threads(lambda part: np.bitwise_or.reduce(packed[part]), parts))).bit_length()
    other = np.empty_like(packed)
    for shift in range(row_bits, used, DIGIT):
        _move_by_digit(packed, shift, parts, other)
        packed, other = other, packed
    return packed


def _move_by_digit(numbers: NDArray[np.uint64], shift: int, parts: Sequence[slice], target: NDArray[np.uint64]) -> None:
    """Sort numbers by the digit that begins ``shift`` bits from their end, into the target."""
    first = np.zeros((len(parts), 1 << DIGIT), np.int64)
    in_threads(lambda part: move(numbers[parts[part]], shift, first[part], target[:0]), range(len(parts)))
    # Where each part puts its first number with each digit: after those with smaller digits, then after earlier parts.
    counts = first.T.ravel()
    first[:] = (np.cumsum(counts) - counts).reshape(-1, len(parts)).T
    in_threads(lambda part: move(numbers[parts[part]], shift, first[part], target), range(len(parts)))


def _unpacked(packed: NDArray[np.uint64], row_bits: int, rest: int) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the row of each sorted integer, and whether it differs from the one before in more than its last bits.

    rest: the number of these last bits.
    """
    rows, differs = np.empty(len(packed), np.uint32), np.ones(len(packed), np.bool_)
    mask, least = np.uint64((1 << row_bits) - 1), np.uint64(1 << rest)

    def fill(part: tuple[int, int]) -> None:
        begin, end = part
        rows[begin:end] = packed[begin:end] & mask
        first = max(begin, 1)
        np.greater_equal(packed[first:end] ^ packed[first - 1 : end - 1], least, out=differs[first:end])

    in_threads(fill, slices(len(packed), CHUNK))
    return rows, differs


def collapse(
    codes: NDArray[np.unsignedinteger],
    sizes: Sequence[int],
    ties: NDArray[np.uint64] | None = None,
    *,
    shuffled: bool = False,
) -> tuple[NDArray[Any], SortedRows]:
    """Return the distinct rows in ascending order, and the row numbers that each stands for.

    codes: uint[n, d], not modified. sizes: the number of codes that each column may have. ties: uint64[n], which order
    rows of equal codes; without them row numbers do. shuffled: such rows are then put into an order that has nothing to
    do with their values, and is the same in every run. In the order of a hash, rows of equal values stand together, and
    methods that take neighbours find fewer different sensitive values there.
    """
    sorted_rows = sort_rows([Field(codes[:, q], bits_for(size)) for q, size in enumerate(sizes)], len(codes), ties)
    distinct = gathered(codes, sorted_rows.rows[sorted_rows.starts[:-1]])
    if ties is not None:
        _sort_runs(sorted_rows, lambda part: np.take(ties, sorted_rows.rows[part], mode="clip"))
    if shuffled:
        numbers = np.random.PCG64(0).random_raw(len(codes))
        _sort_runs(sorted_rows, lambda part: numbers[part])
    return distinct, sorted_rows


def _sort_runs(sorted_rows: SortedRows, keys_of: Callable[[slice], NDArray[np.uint64]]) -> None:
    """Sort the rows of every run by their keys, in place, and keep the order of rows with equal keys.

    keys_of: returns the keys of the rows at some positions; they may be changed.
    """
    rows, starts = sorted_rows.rows, sorted_rows.starts

    def sort(runs: tuple[int, int]) -> None:
        begins = starts[runs[0] : runs[1] + 1]
        part = slice(begins[0], begins[-1])
        sort_runs(rows[part], begins - begins[0], keys_of(part))

    in_threads(sort, _chunks_of_runs(starts))


def repeated(values: NDArray[Number], starts: NDArray[np.int64]) -> NDArray[Number]:
    """Return ``values[i]`` at the positions starts[i]..starts[i + 1]-1. No run is empty.

    ``np.repeat`` does the same, but other threads would wait for it.
    """
    result = np.empty((int(starts[-1]), *values.shape[1:]), values.dtype)

    def fill(runs: tuple[int, int]) -> None:
        begins = starts[runs[0] : runs[1] + 1] - starts[runs[0]]
        run = np.zeros(begins[-1], np.intp)
        run[begins[1:-1]] = 1
        np.cumsum(run, out=run)
        part = slice(starts[runs[0]], starts[runs[1]])
        np.take(values[runs[0] : runs[1]], run, axis=0, out=result[part], mode="clip")

    in_threads(fill, _chunks_of_runs(starts))
    return result


def _chunks_of_runs(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return half-open ranges of whole runs, of a chunk of rows each or a little more."""
    edges = np.searchsorted(starts, np.arange(0, starts[-1], CHUNK))
    return list(pairwise(dict.fromkeys([*edges.tolist(), len(starts) - 1])))


def gathered(values: NDArray[Number], rows: NDArray[np.uint32]) -> NDArray[Number]:
    """Return the values of the given rows. Chunks that fit in a core's cache make this several times faster."""
    result = np.empty((len(rows), *values.shape[1:]), values.dtype)

    def fill(part: tuple[int, int]) -> None:
        # Row numbers are right, and NumPy would copy everything once more to be sure ("raise").
        np.take(values, rows[slice(*part)], axis=0, out=result[slice(*part)], mode="clip")

    in_threads(fill, slices(len(rows), CHUNK))
    return result


def key_bits(
    fields: Sequence[Field], offset: int, width: int, rows: NDArray[np.uint32] | None = None
) -> NDArray[np.uint64]:
    """Return bits ``offset`` to ``offset + width`` of the key that the fields form, for all rows or the given ones."""
    key = np.zeros(len(fields[0].values) if rows is None else rows.size, np.uint64)

    def fill(part: tuple[int, int]) -> None:
        part_rows = slice(*part) if rows is None else rows[slice(*part)]
        _append_bits(fields, offset, width, part_rows, key[slice(*part)])

    in_threads(fill, slices(len(key), CHUNK))
    return key


def _append_bits(
    fields: Sequence[Field], offset: int, width: int, rows: slice | NDArray[np.uint32], key: NDArray[np.uint64]
) -> None:
    """Append bits of the key of some rows to the integers in ``key``."""
    position = 0
    for field in fields:
        start, end = max(position, offset), min(position + field.bits, offset + width)
        if start < end:
            part = field.values[rows].astype(np.uint64)
            later_bits = position + field.bits - end  # the field's bits that a later round sorts by
            if later_bits:
                part >>= np.uint64(later_bits)
            if start > position:
                part &= np.uint64((1 << (end - start)) - 1)
            key <<= np.uint64(end - start)
            key |= part
        position += field.bits


@kernel
def move(numbers, shift, first, target):
    """Move numbers to where their digits belong. numbers: uint64[n]; first: int64[2 ** DIGIT], the place of the next
    number with each digit, changed. Without a target, the digits are counted into ``first`` instead.
    """
    for place in range(len(numbers)):
        number = numbers[place]
        digit = (number >> np.uint64(shift)) & np.uint64((1 << DIGIT) - 1)
        if len(target) > 0:
            target[first[digit]] = number
        first[digit] += 1


@kernel
def sort_runs(rows, starts, keys):
    """Sort the rows of every run by their keys, stably. rows: uint32[n], keys: uint64[n], both changed.

    starts: int64[runs + 1], where each run begins.
    """
    longest = 0
    for run in range(len(starts) - 1):
        longest = max(longest, starts[run + 1] - starts[run])
    merged_rows, merged_keys = np.empty(longest, np.uint32), np.empty(longest, np.uint64)
    for run in range(len(starts) - 1):
        begin, end = starts[run], starts[run + 1]
        # Short stretches are sorted by insertion, then neighbouring stretches are merged.
        for left in range(begin, end, STRETCH):
            for position in range(left + 1, min(left + STRETCH, end)):
                key, row, free = keys[position], rows[position], position
                while free > left and keys[free - 1] > key:
                    keys[free], rows[free] = keys[free - 1], rows[free - 1]
                    free -= 1
                keys[free], rows[free] = key, row
        width = STRETCH
        while width < end - begin:
            for left in range(begin, end, 2 * width):
                middle, right = min(left + width, end), min(left + 2 * width, end)
                a, b = left, middle
                for position in range(right - left):
                    if b == right or (a < middle and keys[a] <= keys[b]):
                        merged_keys[position], merged_rows[position] = keys[a], rows[a]
                        a += 1
                    else:
                        merged_keys[position], merged_rows[position] = keys[b], rows[b]
                        b += 1
                for position in range(right - left):
                    keys[left + position], rows[left + position] = merged_keys[position], merged_rows[position]
            width *= 2


@kernel
def sort_numbers(numbers):
    """Sort an array in place, by Shell's method: numba's own sort takes seconds to compile wherever it is used."""
    gap = 1
    while gap < len(numbers) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(numbers)):
            number, position = numbers[i], i
            while position >= gap and numbers[position - gap] > number:
                numbers[position] = numbers[position - gap]
                position -= gap
            numbers[position] = number
        gap //= 3
