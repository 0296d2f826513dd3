"""Batches in as little memory as their values need: what was read is in memory until it has become codes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

WIDTHS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


def compact(array: pa.Array, *, numbers: bool) -> pa.Array:
    """Return a column with the narrowest codes into its dictionary, and with ``numbers`` in the narrowest integers."""
    if types.is_dictionary(array.type):
        # One more than the last code stands for null in many places.
        width = _narrowest(0, len(array.dictionary))
        return pa.DictionaryArray.from_arrays(array.indices.cast(width), array.dictionary)
    if not numbers or not types.is_signed_integer(array.type):
        return array
    ends = pc.min_max(array)
    return array.cast(_narrowest(ends["min"].as_py() or 0, ends["max"].as_py() or 0))


def one_type(arrays: Sequence[pa.Array]) -> pa.ChunkedArray:
    """Return compact batches of a column as one, in the type of the widest of them."""
    widest = max((array.type for array in arrays), key=_width)
    return pa.chunked_array([array if array.type == widest else _widened(array, widest) for array in arrays], widest)


def _narrowest(least: int, most: int) -> pa.DataType:
    return next(width for width in WIDTHS if -(1 << width.bit_width - 1) <= least and most < 1 << width.bit_width - 1)


def _width(kind: pa.DataType) -> int:
    if types.is_dictionary(kind):
        return int(kind.index_type.bit_width)
    return int(kind.bit_width) if types.is_integer(kind) else 0


def _widened(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not types.is_dictionary(kind):
        return array.cast(kind)
    return pa.DictionaryArray.from_arrays(array.indices.cast(kind.index_type), array.dictionary)
