"""Columns as codes into a dictionary of their distinct values in ascending order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy


def dictionary_array(
    codes: NDArray[Any], dictionary: pa.Array, occurring: NDArray[Any] | None = None
) -> pa.DictionaryArray:
    """Build a column from codes into a sorted dictionary, and keep only the values that occur.

    The code ``len(dictionary)`` is null. ``occurring`` holds every code that occurs, at least once, if the caller knows
    them in a shorter form than the codes themselves.
    """
    size = len(dictionary)
    counts = np.bincount(codes if occurring is None else occurring, minlength=size + 1)
    if not counts[:size].all():
        used = np.flatnonzero(counts[:size])
        new_code = np.full(size + 1, len(used), np.min_scalar_type(len(used)))
        new_code[used] = np.arange(len(used))
        codes, dictionary = new_code[codes], dictionary.take(from_numpy(used))
    missing = codes == len(dictionary) if counts[size] else None
    return pa.DictionaryArray.from_arrays(from_numpy(codes, missing), dictionary)


def sorted_codes(column: pa.ChunkedArray) -> tuple[pa.Array, NDArray[Any]]:
    """Return the distinct values of a column in ascending order, and the code of each record; null is the last code."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if any(chunk.dictionary.null_count for chunk in encoded.chunks):
        # Arrow allows null among the values of a dictionary; encoding again leaves nulls only among the records.
        encoded = encoded.cast(encoded.type.value_type).dictionary_encode()
    if not encoded.num_chunks:
        return pa.nulls(0, encoded.type.value_type), np.empty(0, np.uint8)
    encoded = encoded.unify_dictionaries()
    values = encoded.chunk(0).dictionary
    if pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
    indices = [chunk.indices for chunk in encoded.chunks]
    known = len(values)
    used = to_numpy(pa.chunked_array(indices).unique().drop_null())
    order = to_numpy(pc.array_sort_indices(values))
    order = order[np.isin(order, used)]  # drops categories that no record has
    code = np.full(known + 1, len(order), np.min_scalar_type(len(order)))
    code[order] = np.arange(len(order))
    codes = []
    for chunk in indices:
        chunk_indices = to_numpy(chunk.cast(pa.int64()), null=known) if chunk.null_count else to_numpy(chunk)
        codes.append(code[chunk_indices])
    return values.take(from_numpy(order)), np.concatenate(codes)
