"""Supervised discretisation (Fayyad and Irani 1993): divide numbers into intervals that separate the classes.

An interval is divided at the threshold that leaves the least entropy of the classes, as long as this shortens the
description of the classes, including the description of the threshold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.prediction import bits


def thresholds(numbers: NDArray[np.float64], classes: NDArray[np.integer], count: int) -> NDArray[np.float64]:
    """The thresholds between intervals, ascending: an interval ends before a threshold. ``classes`` are 0..count-1."""
    values, value_of_record = np.unique(numbers, return_inverse=True)
    table = np.bincount(value_of_record * count + classes, minlength=len(values) * count).reshape(len(values), count)
    cumulative = np.concatenate([np.zeros((1, count), np.int64), np.cumsum(table, axis=0)])
    chosen: list[float] = []
    pending = [(0, len(values))]
    while pending:
        begin, end = pending.pop()
        middle = _best_split(cumulative[begin : end + 1])
        if middle is not None:
            chosen.append(float(values[begin + middle]))
            pending += [(begin, begin + middle), (begin + middle, end)]
    return np.array(sorted(chosen))


def _best_split(cumulative: NDArray[np.int64]) -> int | None:
    """The index that divides the distribution (cumulative counts by value and class), or None if no split pays."""
    below = cumulative[1:-1] - cumulative[0]
    if not len(below):
        return None
    above, whole = cumulative[-1] - cumulative[1:-1], cumulative[-1] - cumulative[0]
    records = int(whole.sum())
    after = bits(below) + bits(above)
    best = int(np.argmin(after))
    kinds = [int(np.count_nonzero(counts)) for counts in (whole, below[best], above[best])]
    entropies = [bits(counts) / max(int(counts.sum()), 1) for counts in (whole, below[best], above[best])]
    price = np.log2(3.0 ** kinds[0] - 2) - (kinds[0] * entropies[0] - kinds[1] * entropies[1] - kinds[2] * entropies[2])
    gain = entropies[0] - after[best] / records
    return best + 1 if gain > (np.log2(records - 1) + price) / records else None
