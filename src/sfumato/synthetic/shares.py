"""Draw categories by their shares, through tables that turn a random number into a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

CHANCES = 2**16
"""The number of different random numbers that decide a value. Every share is a multiple of 1 / CHANCES."""

Codes = NDArray[np.uint8]
Chances = NDArray[np.uint16]
TaxonomyRows = tuple[tuple[str, ...], ...]


def draw_chances(numbers: np.random.Generator, records: int) -> Chances:
    """Return one random number for each record."""
    return numbers.integers(0, CHANCES, records, dtype=np.uint16)


def by_chance(shares: ArrayLike) -> Codes:
    """Repeat the values 0, 1, ... of the last axis in proportion to their shares, ``CHANCES`` values in all."""
    sums = np.cumsum(np.asarray(shares, np.float64), axis=-1)
    *situations, values = sums.shape
    ends = np.asarray(np.rint(sums / sums[..., -1:] * CHANCES), np.int64)
    counts = np.diff(ends, axis=-1, prepend=0).reshape(-1, values)
    return np.stack([np.repeat(np.arange(values, dtype=np.uint8), row) for row in counts]).reshape(*situations, CHANCES)


def between(values: NDArray[np.int64], anchors: Mapping[int, float]) -> NDArray[np.float64]:
    """Interpolate linearly between the given values, and return a number for every value."""
    return np.interp(values, list(anchors), list(anchors.values()))


def bands(values: NDArray[np.int64], starts: Sequence[int]) -> Codes:
    """Return the number of the band of each value. starts: the first value of each band."""
    return (np.searchsorted(starts, values, side="right") - 1).astype(np.uint8)


def grouped(groups: Mapping[str, Sequence[str]]) -> TaxonomyRows:
    """Return the rows of a taxonomy with one level of groups."""
    return tuple((value, group, "*") for group, values in groups.items() for value in values)


def leaves(taxonomy: TaxonomyRows) -> list[str]:
    """Return the values of a taxonomy, in the order of its rows."""
    return [row[0] for row in taxonomy]


def categories(codes: NDArray[np.integer], names: Sequence[str]) -> pa.DictionaryArray:
    """Return the column of the named values."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names))
