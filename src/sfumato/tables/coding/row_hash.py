"""A hash of what the rows of a table hold beside their quasi-identifiers: it orders rows whose codes are equal.

A method may put one of two records with equal quasi-identifiers into one class and the other into another. If the order
of the input decided which, releases of one table in different orders could be intersected. The hash depends on the
values of a row alone, and it is the same in every engine and on every machine. Rows with equal hashes are equal, except
with a chance of one in 2**64, and nobody can tell equal rows apart.

The hash has no key: with a key, every machine would release other classes of the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.tables.coding.arrow_arrays import to_numpy
from sfumato.tables.coding.passthrough import PassthroughColumn

Hashes = NDArray[np.uint64]
# Returns the hash of the value that a column has in each row of a range.
ColumnHashes = Callable[[slice], Hashes]

START = np.uint64(0x9E3779B97F4A7C15)
NULL = np.uint64(0x632BE59BD9B4E019)
CHUNK = 1 << 16  # rows that a thread takes at once: they stay in a core's cache


def hashed_columns(names: Iterable[str], sensitive: Collection[str]) -> list[str]:
    """Return the columns in the order in which they are hashed: sensitive ones first, each group by name."""
    return sorted(names, key=lambda name: (name not in sensitive, name))


def row_hashes(columns: Sequence[ColumnHashes], count: int) -> Hashes:
    """Return the hash of every row: uint64[count]."""
    hashes = np.full(count, START)

    def fill(bounds: tuple[int, int]) -> None:
        part = slice(*bounds)
        for hashes_of in columns:
            mix_in(hashes[part], hashes_of(part))

    in_threads(fill, slices(count, CHUNK))
    return hashes


def hashes_of_column(column: PassthroughColumn) -> ColumnHashes:
    """Return the hashes of a passthrough column in memory."""
    if column.codes is None:
        return lambda part: value_hashes(column.array[part])
    return hashes_of_codes(column.codes, column.array)


def hashes_of_array(array: pa.Array) -> ColumnHashes:
    """Return the hashes of an Arrow column, which may be a dictionary."""
    if not pa.types.is_dictionary(array.type):
        return lambda part: value_hashes(array[part])
    return hashes_of_codes(to_numpy(array.indices, len(array.dictionary)), array.dictionary)


def hashes_of_codes(codes: NDArray[np.integer], values: pa.Array) -> ColumnHashes:
    """Return the hashes of a column in codes. values: those of the codes from 0 on; the code after the last is null."""
    hash_of_code = np.append(value_hashes(values), NULL)
    return lambda part: hash_of_code[codes[part]]


def value_hashes(values: pa.Array) -> Hashes:
    """Return the hash of each value. It is that of its text: the number 12 has the hash of 12 in a CSV file."""
    texts = _texts(values)
    _, ends, data = texts.buffers()
    bounds = np.frombuffer(ends, np.int64, len(texts) + 1, texts.offset * 8) if len(texts) else np.zeros(1, np.int64)
    letters = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    hashes: Hashes = text_hashes(bounds, letters)
    if texts.null_count:
        hashes[to_numpy(texts.is_null())] = NULL
    return hashes


def _texts(values: pa.Array) -> pa.Array:
    types, kind = pa.types, values.type
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return values.cast(pa.large_binary())
    return (values.cast(pa.int64()) if types.is_duration(kind) else values).cast(pa.large_string())


@kernel
def mix_in(hashes, numbers):
    """Mix a number into each hash, which spreads every bit over all 64. hashes: uint64[n], changed; numbers: uint64[n].

    The multiplier and the shifts are those of a common finaliser: a change of one bit changes half of the others.
    """
    for row in range(len(hashes)):
        mixed = hashes[row] ^ numbers[row]
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        hashes[row] = mixed ^ (mixed >> np.uint64(32))


@kernel
def text_hashes(bounds, letters):
    """Return the hash of each text: uint64[n]. bounds: int64[n + 1], where texts begin and end in letters: uint8[m]."""
    hashes = np.empty(len(bounds) - 1, np.uint64)
    for text in range(len(hashes)):
        number = np.uint64(bounds[text + 1] - bounds[text])
        for letter in range(bounds[text], bounds[text + 1]):
            number = (number ^ np.uint64(letters[letter])) * np.uint64(0x9E3779B97F4A7C15)
            number = number ^ (number >> np.uint64(29))
        hashes[text] = number
    return hashes
