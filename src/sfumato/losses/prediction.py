"""How well the class of a record predicts a column (LeFevre 2008, eq. 1 and 2).

The arrays have one entry for every value that occurs in a class: the class, ``owner``, and the number of its records
that have the value, ``count``. Records without a value do not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def conditional_entropy(owner: NDArray[np.int64], count: NDArray[np.int64]) -> float:
    """Return H(C | R*), the entropy of a record's value once its class is known, in bits."""
    records = int(count.sum())
    if not records:
        return 0.0
    class_sizes = np.bincount(owner, weights=count)
    class_sizes = class_sizes[class_sizes > 0]
    return max(float(class_sizes @ np.log2(class_sizes) - count @ np.log2(count)) / records, 0.0)


def bits(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the entropy of each distribution along the last axis, in bits, times its number of records."""
    totals = counts.sum(axis=-1)
    of_values = (counts * np.log2(np.maximum(counts, 1))).sum(axis=-1)
    return np.asarray(totals * np.log2(np.maximum(totals, 1)) - of_values, np.float64)


def weighted_squared_error(owner: NDArray[np.int64], value: NDArray[np.float64], count: NDArray[np.int64]) -> float:
    """Return WMSE, the mean squared distance of a record's number from the mean of its class."""
    records = int(count.sum())
    if not records:
        return 0.0
    sizes = np.bincount(owner, weights=count)
    means = np.bincount(owner, weights=count * value) / np.maximum(sizes, 1)
    return float(count @ np.square(value - means[owner]) / records)
