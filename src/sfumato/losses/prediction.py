"""How much of a column can still be told from the class of a record (LeFevre 2008, eq. 1 and 2).

For every value that occurs in a class there are the class, ``owner``, and how many of its records have it, ``count``.
Records without a value do not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def conditional_entropy(owner: NDArray[np.int64], count: NDArray[np.int64]) -> float:
    """H(C | R*): the entropy of a record's value once its class is known, in bits."""
    records = int(count.sum())
    if not records:
        return 0.0
    of_class = np.bincount(owner, weights=count)
    of_class = of_class[of_class > 0]
    return max(float(of_class @ np.log2(of_class) - count @ np.log2(count)) / records, 0.0)


def bits(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The entropy of each distribution along the last axis, in bits, times its records."""
    totals = counts.sum(axis=-1)
    of_values = (counts * np.log2(np.maximum(counts, 1))).sum(axis=-1)
    return np.asarray(totals * np.log2(np.maximum(totals, 1)) - of_values, np.float64)


def weighted_squared_error(owner: NDArray[np.int64], value: NDArray[np.float64], count: NDArray[np.int64]) -> float:
    """WMSE: the mean squared distance of a record's number from the mean of its class."""
    records = int(count.sum())
    if not records:
        return 0.0
    sizes = np.bincount(owner, weights=count)
    means = np.bincount(owner, weights=count * value) / np.maximum(sizes, 1)
    return float(count @ np.square(value - means[owner]) / records)
