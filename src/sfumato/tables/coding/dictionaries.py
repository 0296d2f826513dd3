"""Columns as codes into a dictionary of their distinct values in ascending order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads, slices
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy

CHUNK = 1 << 16  # codes counted at once: they fit in a core's cache


def dictionary_array(
    codes: NDArray[Any], dictionary: pa.Array, occurring: NDArray[Any] | None = None
) -> pa.DictionaryArray:
    """Build a column from codes into a sorted dictionary, and keep only the values that occur.

    The code ``len(dictionary)`` is null. ``occurring`` holds every code that occurs, at least once, if the caller knows
    them in a shorter form than the codes themselves.
    """
    size = len(dictionary)
    occurs = _occurs(codes if occurring is None else occurring, size + 1)
    if not occurs[:size].all():
        used = np.flatnonzero(occurs[:size])
        new_code = np.full(size + 1, len(used), np.min_scalar_type(len(used)))
        new_code[used] = np.arange(len(used))
        codes, dictionary = new_code[codes], dictionary.take(from_numpy(used))
    missing = codes == len(dictionary) if occurs[size] else None
    return pa.DictionaryArray.from_arrays(from_numpy(codes, missing), dictionary)


def _occurs(codes: NDArray[Any], size: int) -> NDArray[np.bool_]:
    """Return whether each of the codes below ``size`` occurs."""
    if size > CHUNK:
        return np.bincount(codes, minlength=size) > 0
    # NumPy would turn all codes into 64-bit integers at once.
    parts = in_threads(
        lambda part: np.bincount(codes[slice(*part)], minlength=size) > 0, slices(len(codes), CHUNK) or [(0, 0)]
    )
    occurs: NDArray[np.bool_] = np.logical_or.reduce(parts)
    return occurs


def sorted_codes(column: pa.ChunkedArray) -> tuple[pa.Array, NDArray[Any]]:
    """Return the distinct values of a column in ascending order, and the code of each record; null is the last code."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if any(chunk.dictionary.null_count for chunk in encoded.chunks):
        # Arrow allows null among the values of a dictionary; encoding again leaves nulls only among the records.
        encoded = encoded.cast(encoded.type.value_type).dictionary_encode()
    if not encoded.num_chunks:
        return pa.nulls(0, encoded.type.value_type), np.empty(0, np.uint8)
    # The values of all dictionaries, and the index among them of each value of each dictionary.
    dictionaries = [chunk.dictionary for chunk in encoded.chunks]
    filled = pa.chunked_array([values for values in dictionaries if len(values)], encoded.type.value_type)
    joined = filled.dictionary_encode().unify_dictionaries()
    values = joined.chunk(0).dictionary if joined.num_chunks else dictionaries[0]
    if pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
    known, index = len(values), iter(to_numpy(chunk.indices) for chunk in joined.chunks)
    nothing = np.empty(0, np.int32)
    index_of_value = [np.append(next(index) if len(each) else nothing, np.int32(known)) for each in dictionaries]
    indices = [_indices(chunk) for chunk in encoded.chunks]
    occurs = np.zeros(known + 1, np.bool_)
    for position, chunk in zip(index_of_value, indices, strict=True):
        occurs[position[_occurs(chunk, len(position))]] = True
    order = to_numpy(pc.array_sort_indices(values))
    order = order[occurs[order]]  # drops categories that no record has
    code = np.full(known + 1, len(order), np.min_scalar_type(len(order)))
    code[order] = np.arange(len(order))
    codes = in_threads(lambda pair: code[pair[0]][pair[1]], list(zip(index_of_value, indices, strict=True)))
    return values.take(from_numpy(order)), np.concatenate(codes)


def _indices(column: pa.DictionaryArray) -> NDArray[Any]:
    """Return the codes of a column into its dictionary; the code after the last is null."""
    known = len(column.dictionary)
    if not column.indices.null_count:
        return to_numpy(column.indices)
    return to_numpy(column.indices.cast(pa.int64()), null=known)
