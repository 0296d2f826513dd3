"""Supervised discretisation (Fayyad and Irani 1993): numbers in intervals that tell the classes apart.

An interval is divided at the threshold after which the classes have the least entropy, as long as that makes the
description of the classes shorter, the description of the threshold included.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.prediction import bits


def thresholds(numbers: NDArray[np.float64], classes: NDArray[np.integer], count: int) -> NDArray[np.float64]:
    """Where numbers are divided, ascending: an interval ends before a threshold. ``classes`` are 0..count-1."""
    values, place = np.unique(numbers, return_inverse=True)
    table = np.bincount(place * count + classes, minlength=len(values) * count).reshape(len(values), count)
    upto = np.concatenate([np.zeros((1, count), np.int64), np.cumsum(table, axis=0)])
    found: list[float] = []
    waiting = [(0, len(values))]
    while waiting:
        begin, end = waiting.pop()
        middle = _cut(upto[begin : end + 1])
        if middle is not None:
            found.append(float(values[begin + middle]))
            waiting += [(begin, begin + middle), (begin + middle, end)]
    return np.array(sorted(found))


def _cut(upto: NDArray[np.int64]) -> int | None:
    """Where the distribution ``upto`` (cumulative, by value and class) is divided; none where that does not pay."""
    below = upto[1:-1] - upto[0]
    if not len(below):
        return None
    above, whole = upto[-1] - upto[1:-1], upto[-1] - upto[0]
    records = int(whole.sum())
    after = bits(below) + bits(above)
    best = int(np.argmin(after))
    kinds = [int(np.count_nonzero(counts)) for counts in (whole, below[best], above[best])]
    entropies = [bits(counts) / max(int(counts.sum()), 1) for counts in (whole, below[best], above[best])]
    price = np.log2(3.0 ** kinds[0] - 2) - (kinds[0] * entropies[0] - kinds[1] * entropies[1] - kinds[2] * entropies[2])
    gain = entropies[0] - after[best] / records
    return best + 1 if gain > (np.log2(records - 1) + price) / records else None
