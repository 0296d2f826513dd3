"""Tests on a sample: will the parts of a split meet the requirements (LeFevre 2008, section 5.2.1)?

The split is made if the hypothesis that it is not allowable can be rejected: with n of N records in the sample, at a
level of alpha / m for each of m parts, so that alpha bounds the probability that any of them was accepted wrongly. An
engine that grows a tree this way counts all records afterwards and undoes the wrong splits; the tests save work, and no
guarantee depends on them.

- records: the share of a part in the sample against k / N, by the normal approximation with finite population
  correction.
- recursive (c, l): c p_2 - p_1 against 0, the shares estimated from the n_i records of the part.
- variance: chi-square with n_i - 1 degrees of freedom, by the approximation of Wilson and Hilferty.
- distinct: a sample has no more values than all records, so there is nothing to test.
- frequency, alpha, beta, delta: each share with its standard error on the unfavourable side; entropy with its own
  standard error; closeness with the largest error that a share can have. The paper has no tests of these.

Differs from the paper: the correction uses (N - n) / N throughout, the variance has none and is used only where n < N.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from sfumato.kernels.decorator import inlined_kernel, kernel
from sfumato.requirements.conjunction import (
    ALPHA,
    BETA,
    BETA_ENHANCED,
    DELTA,
    DISTINCT,
    ENTROPY,
    FREQUENCY,
    RECURSIVE,
    SIZE,
    VARIANCE,
    Conjunction,
    class_holds,
    distribution_holds,
    largest_and_rest,
)

ALPHA_LEVEL = 0.05
LISTED = 1 << 10  # smaller numbers of parts have an entry of their own


class SampledTests(NamedTuple):
    """A conjunction that is tested on a sample.

    normal: float64[...], the required distance of a part from failing, in standard errors, by the number of parts from
    1; the last entry is for all larger numbers too; 0 where the sample is taken at face value. correction: the factor
    of the variance of an estimate because the population is finite.
    """

    kind: NDArray[np.int64]
    attribute: NDArray[np.int64]
    whole: NDArray[np.int64]
    bound: NDArray[np.float64]
    distinct: NDArray[np.int64]
    reference: NDArray[np.float64]
    numbers: NDArray[np.float64]
    nodes: NDArray[np.int64]
    weight: NDArray[np.float64]
    normal: NDArray[np.float64]
    correction: float

    @property
    def attributes(self) -> int:
        return len(self.distinct)


def sampled_tests(
    tests: Conjunction, sample: int, records: int, most_parts: int, alpha: float | None = ALPHA_LEVEL
) -> SampledTests:
    """Return the tests for ``sample`` of ``records`` records; with alpha None the sample is taken at face value."""
    return SampledTests(*tests, standard_errors(most_parts, alpha), (records - sample) / records)


def standard_errors(most_parts: int, alpha: float | None) -> NDArray[np.float64]:
    """Return ``SampledTests.normal`` for splits into up to ``most_parts`` parts."""
    parts = [*range(1, min(most_parts, LISTED)), max(most_parts, 1)]
    if alpha is None:
        return np.zeros(len(parts))
    return np.array([NormalDist().inv_cdf(1 - alpha / count) for count in parts])


def least_sampled(k: int, sample: int, records: int, normal: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many records of the sample a part needs so that k of all are plausible, by the number of parts."""
    share = k / records
    error = np.sqrt(share * (1 - share) / max(sample - 1, 1) * (records - sample) / records)
    least: NDArray[np.int64] = np.maximum(np.ceil(sample * (share + normal * error) - 1e-9), 1).astype(np.int64)
    return least


def part_holds(tests: Any, parts: Any, size: Any, count: Any, known: Any, largest: Any, different: Any) -> bool:
    """Return whether one of the parts of a split meets the requirements. See ``class_holds``."""
    if isinstance(tests, SampledTests):
        return bool(sample_holds(tests, parts, size, count, known, largest, different))
    return bool(class_holds(tests, size, count, known, largest, different))


@overload(part_holds)
def _part_holds(tests, parts, size, count, known, largest, different):
    """Choose the version of ``part_holds`` that a kernel compiles: for a sample or for all records."""

    def of_sample(tests, parts, size, count, known, largest, different):
        return sample_holds(tests, parts, size, count, known, largest, different)

    def of_records(tests, parts, size, count, known, largest, different):
        return class_holds(tests, size, count, known, largest, different)

    return of_sample if tests.instance_class is SampledTests else of_records


@kernel
def sample_holds(tests, parts, size, count, known, largest, different):
    """Return whether a part of a split, with ``size`` records in the sample, can be assumed to meet the requirements.

    See ``class_holds``. The number of records is not tested here.
    """
    z = tests.normal[min(parts, len(tests.normal)) - 1]
    for t in range(len(tests.kind)):
        kind, a, whole, bound = tests.kind[t], tests.attribute[t], tests.whole[t], tests.bound[t]
        if kind == SIZE or (kind == RECURSIVE and whole == 1):
            continue
        if kind == DISTINCT:
            if different[a] < whole:
                return False
            continue
        if known[a] == 0:
            return False
        m, n = tests.distinct[a], known[a]
        error = z * np.sqrt(tests.correction / max(n - 1, 1))  # times the deviation of one record
        if kind in (FREQUENCY, ALPHA):
            share = largest[a] / n
            if share + error * np.sqrt(share * (1 - share)) > (1.0 / whole if kind == FREQUENCY else bound):
                return False
        elif kind == RECURSIVE:
            most, rest = largest_and_rest(whole, count[a, :m], n)
            first, last = most / n, rest / n
            deviation = np.sqrt(bound * bound * last * (1 - last) + first * (1 - first))
            if bound * last - first <= error * deviation:
                return False
        elif kind == VARIANCE:
            if not variance_plausible(count[a, :m], tests.numbers[a, :m], n, bound, z):
                return False
        elif kind == ENTROPY:
            mean, squares = 0.0, 0.0
            for v in range(m):
                if count[a, v] > 0:
                    surprise = -np.log(count[a, v] / n)
                    mean += count[a, v] / n * surprise
                    squares += count[a, v] / n * surprise * surprise
            if mean - error * np.sqrt(max(squares - mean * mean, 0.0)) < bound:
                return False
        elif kind in (BETA, BETA_ENHANCED, DELTA):
            for v in range(m):
                share, usual = count[a, v] / n, tests.reference[a, v]
                margin = error * np.sqrt(share * (1 - share))
                if usual == 0:
                    continue
                if kind == DELTA:
                    if share <= margin or np.log((share + margin) / usual) >= bound:
                        return False
                    if np.log((share - margin) / usual) <= -bound:
                        return False
                elif share > usual:
                    limit = min(bound, -np.log(usual)) if kind == BETA_ENHANCED else bound
                    if (share + margin) / usual - 1 > limit:
                        return False
        elif not distribution_holds(
            kind, whole, bound - error / 2, count[a, :m], n, tests.reference[a, :m], tests.numbers[a, :m],
            tests.nodes[a], tests.weight[a],
        ):  # fmt: skip
            return False
    return True


@inlined_kernel
def variance_plausible(count, numbers, n, bound, z):
    """Return whether n values, given as counts, come from values whose variance is not below ``bound``."""
    if n < 2:
        return False
    mean = 0.0
    for v in range(len(count)):
        mean += count[v] * numbers[v]
    mean /= n
    squares = 0.0
    for v in range(len(count)):
        squares += count[v] * (numbers[v] - mean) ** 2
    degrees = n - 1
    if z == 0:
        return squares >= bound * degrees
    part = 2 / (9 * degrees)
    return squares >= bound * degrees * (1 - part + z * np.sqrt(part)) ** 3
