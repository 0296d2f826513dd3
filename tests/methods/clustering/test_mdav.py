"""MDAV against the published steps in plain Python, and its classes."""

from __future__ import annotations

import numpy as np
import oracle
import pytest

from sfumato.methods.clustering.mdav import mdav_classes
from sfumato.progress import Progress


@pytest.mark.parametrize("seed", range(3))
def test_classes_are_those_of_the_published_steps(seed: int) -> None:
    generator = np.random.default_rng(seed)
    for _ in range(20):
        count = int(generator.integers(1, 45))
        k = int(generator.integers(1, min(count, 7) + 1))
        points = np.rint(generator.normal(0, 1e6, (count, int(generator.integers(1, 5))))).astype(np.int64)
        owner = mdav_classes(points, k, lambda _: None)
        expected = oracle.mdav(points.tolist(), k)
        found = [np.flatnonzero(owner == group).tolist() for group in range(int(owner.max()) + 1)]
        assert sorted(found) == sorted(sorted(group) for group in expected)


def test_classes_have_k_records_but_for_the_last() -> None:
    points = np.rint(np.random.default_rng(4).normal(0, 1e6, (311, 3))).astype(np.int64)
    for k in (2, 5, 10):
        sizes = np.bincount(mdav_classes(points, k, lambda _: None))
        assert (sizes[:-1] == k).all()
        assert k <= sizes[-1] < 2 * k


def test_equal_records_are_divided_into_classes_of_k() -> None:
    owner = mdav_classes(np.zeros((20, 2), np.int64), 3, lambda _: None)
    assert sorted(np.bincount(owner).tolist()) == [3, 3, 3, 3, 3, 5]


def test_progress_counts_every_record_once() -> None:
    class Steps(Progress):
        total = 0

        def advance(self, steps: int) -> None:
            self.total += steps

    progress = Steps()
    mdav_classes(np.arange(3000)[:, None], 4, progress.advance)
    assert progress.total == 3000
