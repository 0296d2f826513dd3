"""The multiples of a decimal step among floating-point numbers.

A step such as 0.1 has no exact double, and neither does 3 * 0.1. A multiple is therefore the double nearest to the
exact decimal product, which is also how its shortest text reads back: 0.3, never 0.30000000000000004.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

# Integers up to this are exact doubles, and quotients of two of them are further apart than adjacent doubles.
EXACT = 2**52


@dataclass(frozen=True)
class Multiples:
    """All whole multiples of a positive step, negative ones included."""

    step: Fraction

    def around(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the nearest multiples with start <= value < end; infinite beyond the largest double.

        values: float64[n], finite, not modified.
        """
        start = np.empty(values.shape, dtype=np.float64)
        end = np.empty(values.shape, dtype=np.float64)
        quick = np.abs(values) < self._reach()
        if quick.any():
            start[quick], end[quick] = self._around_quickly(values[quick])
        if not quick.all():
            pairs = [self._around_exactly(value) for value in values[~quick].tolist()]
            start[~quick], end[~quick] = np.array(pairs).T
        return start, end

    def _reach(self) -> float:
        """Return the magnitude below which double arithmetic rounds a multiple only once."""
        numerator, denominator = self.step.as_integer_ratio()
        if max(numerator, denominator) > EXACT:
            return 0.0
        # A whole step needs one product, rounded once. Otherwise the quotient rounds, so the product must be exact.
        count = EXACT if denominator == 1 else EXACT // numerator
        return count * numerator / denominator

    def _around_quickly(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        numerator, denominator = (float(part) for part in self.step.as_integer_ratio())

        def multiple(count: NDArray[np.float64]) -> NDArray[np.float64]:
            return count * numerator / denominator + 0.0  # no negative zero

        count = np.floor(values / (numerator / denominator))
        # The quotient is rounded, so the count may be slightly wrong.
        while (above := multiple(count) > values).any():
            count[above] -= 1.0
        while (below := multiple(count + 1.0) <= values).any():
            count[below] += 1.0
        return multiple(count), multiple(count + 1.0)

    def _around_exactly(self, value: float) -> tuple[float, float]:
        count = math.floor(Fraction(value) / self.step)
        # The exact product may be above the value although its double equals the value. That may happen for this
        # multiple but not for the next, unless multiples are denser than doubles. Then every double is a multiple.
        for start in (count, count + 1):
            if self._multiple(start + 1) > value:
                return self._multiple(start), self._multiple(start + 1)
        return value, math.nextafter(value, math.inf)

    def _multiple(self, count: int) -> float:
        product = count * self.step
        try:
            return product.numerator / product.denominator
        except OverflowError:
            return math.inf if count > 0 else -math.inf


def decimal_places(number: Fraction) -> int:
    """Return how many decimal places a decimal fraction needs."""
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    return places
