"""Means over several trials with their confidence intervals, and paired differences with their significance.

Trials are independent, or they are the folds of one table. The training parts of folds overlap, so their results vary
less than those of independent trials; a plain t-test would find differences where there are none. The correction of
Nadeau and Bengio (2003) adds the ratio of test to training records to 1/n in the variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95% confidence interval, whose ends are None if there is only one trial."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Difference:
    """The mean difference, first minus second, over the same trials, with its confidence interval and p-value."""

    value: float
    low: float | None
    high: float | None
    p: float | None
    """Two-sided."""


def estimate(values: Sequence[float], overlap: float = 0.0) -> Estimate:
    """The mean of trials. ``overlap``: for folds, the ratio of test records to training records."""
    mean, error = _mean_and_error(values, overlap)
    if error is None:
        return Estimate(mean, None, None)
    from scipy.special import stdtrit

    reach = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * error
    return Estimate(mean, mean - reach, mean + reach)


def difference(first: Sequence[float], second: Sequence[float], overlap: float = 0.0) -> Difference:
    """The mean of first minus second over the same trials."""
    values = [minuend - subtrahend for minuend, subtrahend in zip(first, second, strict=True)]
    interval = estimate(values, overlap)
    mean, error = _mean_and_error(values, overlap)
    if error is None:
        return Difference(mean, None, None, None)
    from scipy.special import stdtr

    if error == 0:  # the same in every trial
        return Difference(mean, interval.low, interval.high, 1.0 if mean == 0 else 0.0)
    p = 2 * float(stdtr(len(values) - 1, -abs(mean) / error))
    return Difference(mean, interval.low, interval.high, p)


def _mean_and_error(values: Sequence[float], overlap: float) -> tuple[float, float | None]:
    """The mean and its standard error, which is None for a single trial."""
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return mean, None
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return mean, math.sqrt(variance * (1 / count + overlap))
