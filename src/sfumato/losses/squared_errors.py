"""Squared distances from the means of classes: points in whole numbers for methods, and IL for releases.

Each quasi-identifier is standardised to mean 0 and deviation 1 and multiplied by the root of its weight. SSE is the sum
of the squared distances of the records from the mean of their class, SST that from the mean of the table, and
IL = 100 SSE / SST (Domingo-Ferrer and Mateo-Sanz 2002, section 2). A column with one value has no deviation and does
not count.

Methods take the points in units of ``1 / scale``, rounded once, here. The cost of a class of n points with the sum S
and the sum of squares Q is Q - S S / n, rounded up: a whole number, so totals are exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.losses.loss import ClassTable, Extent, Sum
from sfumato.tables.coding.domains import Codes, Domain, NumericDomain

LARGEST_SUM = 1 << 61  # of n Q, over all points and the largest class
FINEST, COARSEST = 1 << 26, 1 << 10  # units of a deviation


@dataclass(frozen=True)
class StandardPoints:
    """The distinct records as points. points: int64[m, d], C-order, without columns that have one value.

    scale: units of the root of all weights together, which sum to 1; the SST of the table is count * scale ** 2, up to
    the rounding of the points.
    """

    points: NDArray[np.int64]
    scale: int
    count: int

    def information_loss(self, cost: float) -> float:
        """Return the share of SST that a cost is."""
        return cost / (self.count * float(self.scale) ** 2)


def standard_points(
    codes: Codes, weights: NDArray[np.int64], domains: Sequence[Domain], shares: NDArray[np.float64], largest: int
) -> StandardPoints:
    """Return the records as points, fine enough for classes of up to ``largest`` records.

    weights: int64[m], the copies of each record. shares: float64[d], how much each column counts.
    """
    check_numeric(domains)
    count = int(weights.sum())
    scale = min(math.isqrt(LARGEST_SUM // (count * max(largest, 1))), FINEST)
    if scale < COARSEST:
        raise UsageError(f"{count:,} records in classes of up to {largest:,} are too many for exact sums of squares.")
    columns, counted = [], []
    for q, domain in enumerate(domains):
        assert isinstance(domain, NumericDomain)
        standard = standard_values(domain.numbers(), np.bincount(codes[:, q], weights, domain.size).astype(np.float64))
        if standard is not None:
            columns.append((q, standard))
            counted.append(shares[q])
    total = math.fsum(counted)
    points = np.zeros((len(codes), len(columns)), np.int64)
    for j, (q, standard) in enumerate(columns):
        points[:, j] = np.rint(standard * (math.sqrt(counted[j] / total) * scale)).astype(np.int64)[codes[:, q]]
    return StandardPoints(points, scale, count)


def standard_values(numbers: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the values of a column with mean 0 and deviation 1; None if only one occurs. counts: how often each does.

    Sums are rounded once, so that they are the same on every machine.
    """
    count = counts.sum()
    largest = float(np.abs(numbers).max(initial=0.0)) or 1.0
    scaled = numbers / largest  # squares of moments, or of very large numbers, would overflow
    mean = math.fsum(counts * scaled) / count
    deviation = math.sqrt(math.fsum(counts * np.square(scaled - mean)) / count)
    return (scaled - mean) / deviation if np.count_nonzero(counts) > 1 and deviation > 0 else None


def has_means(domains: Sequence[Domain]) -> bool:
    """Return whether all columns hold plain numbers or dates, and none is missing."""
    return all(isinstance(domain, NumericDomain) and domain.tree is None and not domain.has_null for domain in domains)


def check_numeric(domains: Sequence[Domain]) -> None:
    """Refuse columns that have no mean: categories, intervals, and columns in which a value is missing."""
    for domain in domains:
        if not isinstance(domain, NumericDomain) or domain.tree is not None:
            raise UsageError.column_without_mean(domain.name)
        if domain.has_null:
            raise UsageError(
                f"column {domain.name!r} has missing values, and sums of squares need numbers. Fill them in, leave "
                'these records out, or choose loss = "ncp" and another method.'
            )


def class_errors(codes: Codes, owner: NDArray[np.integer], domains: Sequence[Domain]) -> NDArray[np.float64] | None:
    """Return the SSE of classes on each column, in squared deviations: float64[d]; NaN for a column with one value.

    codes: uint[n, d], all records of the table. owner: int[n], the class of each. None if a column has no mean.
    """
    if not has_means(domains):
        return None
    sizes = np.bincount(owner)
    errors = np.full(len(domains), np.nan)
    for q, domain in enumerate(domains):
        assert isinstance(domain, NumericDomain)
        counts = np.bincount(codes[:, q], minlength=domain.size).astype(np.float64)
        standard = standard_values(domain.numbers(), counts)
        if standard is not None:
            values = standard[codes[:, q]]
            means = np.bincount(owner, values) / np.maximum(sizes, 1)
            errors[q] = float(np.square(values - means[owner]).sum())
    return errors


class InformationLoss(Sum):
    """IL. Totals are SSE by column, in squared deviations, so that the SST of each is the number of records."""

    name = "il"
    summary = "100 SSE / SST: what classes of numbers lose of the variance if each shows its means"

    def total(self, classes: ClassTable) -> NDArray[np.float64] | None:
        return classes.errors

    def value(self, total: NDArray[np.float64], release: Extent) -> float | None:
        counted = ~np.isnan(total)
        if release.suppressed or not counted.any():
            return None
        shares = release.weights[counted]
        return float(100 * (total[counted] @ shares) / (release.records * shares.sum()))
