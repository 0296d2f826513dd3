"""Requirements on the distribution of a sensitive attribute that no whole-number threshold can say.

They are data to one kernel, ``distribution_holds``: a kind and two parameters. The kernel is a hair stricter than the
audit, so that rounding never makes a method promise what the audit then denies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels import kernel
from sfumato.requirements.requirement import ClassCounts, Histogram

EXACT = 1e-12  # the audit's allowance for rounding
STRICT = 9e-13  # the kernel's
BELOW = 1 - EXACT  # strictly below a product: 1.1 * 10 is more than 11 in floating point
EXACT_SHARE, STRICT_SHARE = 1e-9, 9e-10  # the same for variances, which have a scale

ENTROPY, RECURSIVE, ALPHA, VARIANCE, CLOSENESS_EQUAL, CLOSENESS_ORDERED, BETA, BETA_ENHANCED, DELTA = range(9)


@dataclass(frozen=True)
class MeasuredTest:
    """What the kernel is told of a requirement."""

    kind: int
    bound: float
    rank: int = 0


class MeasuredRequirement(ABC):
    """What these requirements have in common; each adds its test for the kernel and its verdict for the audit."""

    closed_under_union = True
    closed_under_addition = False

    attribute: str

    def thresholds(self, _: int) -> NDArray[np.int64]:
        return np.empty((0, 4), np.int64)

    @abstractmethod
    def test(self) -> MeasuredTest:
        """What the kernel is told."""


def by_class(classes: ClassCounts, histogram: Histogram, amounts: NDArray[np.number]) -> NDArray[np.float64]:
    """The sum over the values of each class."""
    weights = amounts.astype(np.float64)
    return np.bincount(histogram.owner, weights=weights, minlength=len(classes.sizes)).astype(np.float64)


def largest_by_class(classes: ClassCounts, histogram: Histogram, amounts: NDArray[np.number]) -> NDArray[np.float64]:
    """The largest over the values of each class, 0 for a class without one."""
    result = np.zeros(len(classes.sizes))
    np.maximum.at(result, histogram.owner, amounts)
    return result


@kernel
def all_hold(values, starts, reference, numbers, kind, bound, rank):  # type: ignore[no-untyped-def]
    """Whether every class meets one requirement.

    values: uint32[n], those of the records class after class, ``len(reference)`` for null; starts: int64[c + 1].
    """
    count = np.zeros(len(reference) + 1, np.int64)
    for i in range(len(starts) - 1):
        for place in range(starts[i], starts[i + 1]):
            count[values[place]] += 1
        known = starts[i + 1] - starts[i] - count[-1]
        if not distribution_holds(kind, bound, rank, count[:-1], known, reference, numbers):
            return False
        for place in range(starts[i], starts[i + 1]):
            count[values[place]] = 0
    return True


@kernel
def distribution_holds(kind, bound, rank, count, known, reference, numbers):  # type: ignore[no-untyped-def]
    """Whether a class meets one requirement. count: int64[m]; known: their sum; reference, numbers: float64[m]."""
    m = len(reference)
    if kind == ENTROPY:
        weighted = 0.0
        for v in range(m):
            if count[v] > 0:
                weighted += count[v] * np.log(count[v])
        entropy = np.log(known) - weighted / known if known > 0 else 0.0
        return entropy >= bound - STRICT
    if kind == RECURSIVE:
        if rank == 1:
            return True
        descending = np.sort(count)[::-1]
        rest = 0
        for v in range(rank - 1, m):
            rest += descending[v]
        return m > 0 and descending[0] < bound * rest * BELOW
    if kind == VARIANCE:
        mean = 0.0
        for v in range(m):
            mean += count[v] * numbers[v]
        mean /= max(known, 1)
        variance = 0.0
        for v in range(m):
            variance += count[v] * (numbers[v] - mean) ** 2
        return variance / max(known, 1) >= bound * (1 - STRICT_SHARE)
    if known == 0:
        return kind != DELTA or not np.any(reference > 0)
    total, cumulated, margin = 0.0, 0.0, min(STRICT, bound / 2)
    for v in range(m):
        p, q = count[v] / known, reference[v]
        if kind == ALPHA:
            if p > bound + STRICT:
                return False
        elif kind == CLOSENESS_EQUAL:
            total += max(p - q, 0.0)
        elif kind == CLOSENESS_ORDERED:
            cumulated += p - q
            total += abs(cumulated)
        elif q > 0 and kind == DELTA:
            if count[v] == 0 or abs(np.log(p / q)) >= bound - margin:
                return False
        elif q > 0 and p > q:
            limit = min(bound, -np.log(q)) if kind == BETA_ENHANCED else bound
            gain = p / q - 1
            if gain > STRICT and gain > limit + STRICT:
                return False
    if kind == CLOSENESS_ORDERED:
        total /= max(m - 1, 1)
    if kind in (CLOSENESS_EQUAL, CLOSENESS_ORDERED):
        return total <= bound + STRICT
    return True
