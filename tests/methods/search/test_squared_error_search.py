"""The search for the least sum of squares: against all partitions of tiny tables, and what its classes are like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import oracle
import pytest
from coded import asking, groups_of, records_of
from numpy.typing import NDArray

from sfumato.losses.squared_errors import standard_points
from sfumato.methods.clustering.mdav import Mdav
from sfumato.methods.method import Effort, Records
from sfumato.methods.search.squared_error_moves import LOGARITHMS, anneal, nearest_rows, summed_classes
from sfumato.methods.search.squared_error_search import SquaredErrorSearch
from sfumato.progress import Progress
from sfumato.tables.coding.domains import NumericDomain


def coded(numbers: NDArray[np.float64], seed: int = 0) -> Records:
    """Numbers as records, row by row."""
    domains, columns = [], []
    for q in range(numbers.shape[1]):
        values, codes = np.unique(numbers[:, q], return_inverse=True)
        domains.append(NumericDomain(f"n{q}", values, False))
        columns.append(codes)
    return records_of(np.stack(columns, axis=1).astype(np.uint16), domains, seed=seed)


def classes_of(method: SquaredErrorSearch | Mdav, records: Records, k: int) -> list[list[int]]:
    batch = next(method.classes(records, asking(k), Progress()))
    return [batch.rows[start:end].tolist() for start, end in zip(batch.starts[:-1], batch.starts[1:], strict=True)]


def loss(numbers: NDArray[np.float64], groups: Sequence[Sequence[int]]) -> float:
    return oracle.information_loss(numbers.tolist(), groups)


def cost_of(points: list[list[int]]) -> int:
    """The sum of squares around the mean, in whole numbers, rounded up."""
    squares = sum(x * x for point in points for x in point)
    return squares - sum(sum(values) ** 2 for values in zip(*points, strict=True)) // len(points)


@pytest.mark.not_quick
def test_tiny_tables_reach_the_optimum() -> None:
    generator = np.random.default_rng(1)
    reached = 0
    for _ in range(12):
        numbers = np.round(generator.normal(0, 9, (int(generator.integers(6, 10)), int(generator.integers(1, 4)))), 1)
        k = int(generator.integers(2, 4))
        least = oracle.least_information_loss(numbers.tolist(), k)
        found = loss(numbers, classes_of(SquaredErrorSearch(), coded(numbers), k))
        assert found >= least - 1e-6
        reached += found <= least + 1e-6
    assert reached >= 11


@pytest.mark.parametrize("k", [2, 3, 6])
def test_no_class_is_below_k_and_none_loses_more_than_mdav(k: int) -> None:
    numbers = np.random.default_rng(k).lognormal(0, 1, (150, 4))
    records = coded(numbers)
    groups = groups_of(SquaredErrorSearch(), records, k)
    assert all(k <= group.total() < 2 * k for group in groups)
    improved = loss(numbers, classes_of(SquaredErrorSearch(), records, k))
    assert improved < 0.97 * loss(numbers, classes_of(Mdav(), records, k))


def test_more_effort_loses_no_more() -> None:
    numbers = np.random.default_rng(5).lognormal(0, 1, (120, 3))
    records = coded(numbers)
    losses = [
        loss(numbers, classes_of(SquaredErrorSearch(), replace(records, effort=effort), 4))
        for effort in (Effort("fast"), Effort("normal"), Effort("balanced"))
    ]
    assert losses[2] <= losses[0] + 1e-9
    assert losses[1] <= losses[0] * 1.01


def test_a_search_by_the_clock_ends_and_keeps_k() -> None:
    records = replace(coded(np.random.default_rng(6).normal(0, 1, (90, 3))), effort=Effort("fast", 0.2))
    progress = Progress()
    batch = next(SquaredErrorSearch().classes(records, asking(3), progress))
    assert np.diff(batch.starts).min() >= 3
    assert "the time was over" in progress.decisions["choice"]["ended"]


def test_an_interruption_keeps_whole_classes() -> None:
    progress = Progress()
    progress.stopped = True
    records = replace(coded(np.random.default_rng(7).normal(0, 1, (90, 3))), effort=Effort("best"))
    batch = next(SquaredErrorSearch().classes(records, asking(3), progress))
    assert np.diff(batch.starts).min() >= 3
    assert progress.decisions["choice"]["ended"] == "interrupted in annealing 1"


@pytest.mark.not_quick
def test_a_table_of_several_parts_is_the_same_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(8).normal(0, 1, (6000, 3))
    records = coded(numbers)
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("SFUMATO_THREADS", threads)
        found.append(classes_of(SquaredErrorSearch(), records, 5))
    assert found[0] == found[1]
    assert min(map(len, found[0])) >= 5
    assert sorted(row for group in found[0] for row in group) == list(range(6000))


def test_costs_of_annealed_classes_are_those_of_their_rows() -> None:
    records = coded(np.random.default_rng(9).normal(0, 1, (80, 3)))
    k = 3
    copies = np.diff(records.starts)
    points = standard_points(records.codes, copies, records.domains, records.costs.shares, 2 * k).points
    classes = summed_classes(points, np.minimum(np.arange(80) // k, 80 // k - 1), k)
    before = int(classes.cost.sum())
    near = np.empty((80, 20), np.int64)
    nearest_rows(points, near)
    gained = 0
    for temperature in (10**12, 10**9, 0):
        state = np.array([temperature + 1], np.uint64)
        gained += int(anneal(points, near, k, classes, np.int64(temperature), LOGARITHMS, 20_000, state))
        assert int(classes.cost.sum()) == before - gained
        for group in range(len(classes.size)):
            members = np.flatnonzero(classes.owner == group)
            assert sorted(classes.members[group, : classes.size[group]].tolist()) == members.tolist()
            if len(members):
                assert k <= len(members) < 2 * k
                assert classes.cost[group] == cost_of(points[members].tolist())


def test_near_rows_are_the_nearest() -> None:
    points = np.random.default_rng(2).integers(-9, 9, (30, 2))
    near = np.empty((30, 5), np.int64)
    nearest_rows(points, near)
    for row in range(30):
        others = [other for other in range(30) if other != row]
        others.sort(key=lambda other: (int(np.square(points[row] - points[other]).sum()), other))
        assert near[row].tolist() == others[:5]
