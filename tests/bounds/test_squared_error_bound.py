"""The bound on sums of squares: never above the best of all partitions of tiny tables, and close to good ones."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import oracle
import pytest
from coded import asking, records_of
from numpy.typing import NDArray

from sfumato.bounds.bound import EFFORTS, BoundEffort
from sfumato.bounds.pair_sum_search import lower_prices, pair_distances
from sfumato.bounds.squared_error_bound import SquaredErrorBound, squared_error_bounds
from sfumato.methods.method import Records
from sfumato.progress import Progress
from sfumato.tables.coding.domains import NumericDomain


def coded(numbers: NDArray[np.float64]) -> Records:
    domains, columns = [], []
    for q in range(numbers.shape[1]):
        values, codes = np.unique(numbers[:, q], return_inverse=True)
        domains.append(NumericDomain(f"n{q}", values, False))
        columns.append(codes)
    return records_of(np.stack(columns, axis=1).astype(np.uint16), domains)


def proven(numbers: NDArray[np.float64], k: int, effort: BoundEffort) -> list[SquaredErrorBound]:
    return list(squared_error_bounds(coded(numbers), asking(k), effort=effort, seconds=None, progress=Progress()))


@pytest.mark.not_quick
@pytest.mark.parametrize("parts", [1, 5000])
def test_no_bound_is_above_the_best_partition(parts: int) -> None:
    generator = np.random.default_rng(parts)
    effort, close = BoundEffort(parts=parts, steps=100, rounds=5, gain=0.001), 0
    for _ in range(10):
        numbers = np.round(generator.normal(0, 3, (int(generator.integers(4, 10)), int(generator.integers(1, 4)))))
        if len(np.unique(numbers, axis=0)) == 1:
            continue
        k = int(generator.integers(2, 4))
        least = oracle.least_information_loss(numbers.tolist(), k)
        bounds = proven(numbers, k, effort)
        for before, after in pairwise(bounds):
            assert after.il >= before.il
        assert all(0 <= bound.simple <= bound.il <= least + 1e-6 for bound in bounds)
        close += bounds[-1].il > 0.8 * least
    assert close >= (6 if parts > 1 else 0)


def test_lowered_prices_are_below_every_class() -> None:
    generator = np.random.default_rng(3)
    k, count = 2, 9
    for most in (0, 3, 1000):
        points = generator.integers(-50, 50, (count, 2))
        distances = np.empty((count, count), np.int64)
        pair_distances(points, distances)
        shortest = np.sort(distances + np.diag(np.full(count, 1 << 40)), axis=1)[:, : 2 * k - 2]
        half = np.concatenate([np.zeros((count, 1), np.int64), np.cumsum(shortest, axis=1) // 2], axis=1)
        prices = generator.integers(0, 900, count)
        order = np.argsort(prices, kind="stable")
        tight, state = np.empty((100, 2 * k - 1), np.int64), np.array([0, 10**6], np.int64)
        lower_prices(0, count, order, k, distances, half, prices, most, tight, state)
        slacks = []
        for size in (2, 3):
            for members in combinations(range(count), size):
                pairs = sum(int(distances[i, j]) for i, j in combinations(members, 2))
                slacks.append(pairs - size * int(prices[list(members)].sum()))
        assert min(slacks) >= 0
        if most == 1000:
            assert min(slacks) < 3  # exact, up to the rounding of a price


def test_prices_prove_more_than_neighbours() -> None:
    numbers = np.random.default_rng(4).lognormal(0, 1, (90, 3))
    bounds = proven(numbers, 3, EFFORTS["balanced"])
    assert bounds[0].kind == "neighbours"
    assert bounds[-1].kind == "prices"
    assert bounds[-1].complete
    assert bounds[-1].il > 1.2 * bounds[0].il
    assert "3 to 5 records" in bounds[-1].method
    assert [bound.kind for bound in proven(numbers, 3, EFFORTS["fast"])] == ["neighbours"]


def test_equal_records_and_classes_of_one_have_no_loss() -> None:
    assert [bound.il for bound in proven(np.repeat([[1.0], [2.0]], 6, axis=0), 3, EFFORTS["balanced"])] == [0.0]
    assert proven(np.arange(9.0)[:, None], 1, EFFORTS["balanced"])[-1].il == 0.0


def test_a_table_that_is_one_class_is_bounded() -> None:
    bound = proven(np.arange(5.0)[:, None], 5, EFFORTS["balanced"])[-1]
    assert 0 < bound.il <= 100


def test_ratios_are_those_of_the_release() -> None:
    bound = SquaredErrorBound(10.0, 8.0, "prices", True, 9, 3, release_il=12.0, release_holds=True)
    assert bound.release_ratio == pytest.approx(1.2)
    assert SquaredErrorBound(0.0, 0.0, "prices", True, 9, 3, release_il=1.0).release_ratio == float("inf")
    assert SquaredErrorBound(2.0, 1.0, "prices", True, 9, 3, release_il=1.0, release_holds=False).release_ratio is None
