"""Annealing: every class holds after every round, the loss only falls, and it falls below that of the search."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from coded import asking, random_records
from searched_classes import KINDS, assert_classes, cost_of, feasible, first_classes, optimum

from sfumato.kernels import threads as kernel_threads
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search import annealed_improvement
from sfumato.methods.search.annealed_improvement import COLD_ROUNDS, AnnealedImprovement
from sfumato.methods.search.annealing import ONE, EqualRows, anneal
from sfumato.methods.search.improvement import Improvement, SearchLimits
from sfumato.progress import Progress


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_classes_hold_and_the_loss_falls_by_what_is_said_to_be_gained(kind: str, k: int) -> None:
    tables = feasible(kind, k, 3)
    for _ in range(8):
        records, requirements = next(tables)
        improvement = AnnealedImprovement(first_classes(records, requirements), records, requirements)
        cost = improvement.cost
        for number in (COLD_ROUNDS, COLD_ROUNDS + 1):
            gained = improvement._round(number, lambda: False, Progress())
            assert gained >= 0
            assert_classes(improvement.batch, records, requirements)
            assert cost_of(improvement.batch, records) == cost - gained
            cost -= gained


def test_annealing_alone_says_what_it_gains_and_keeps_no_loss() -> None:
    """Without rounds of search around it, and so hot that some parts would end with more loss."""
    generator, lost, gained_at_all = np.random.default_rng(4), 0, 0
    for _ in range(30):
        records = random_records(generator, 40)
        improvement = AnnealedImprovement(first_classes(records, asking(3)), records, asking(3))
        part, tests = improvement._part(0, 40)
        owner = np.repeat(np.arange(len(improvement._starts) - 1), np.diff(improvement._starts))
        before, cost = owner.copy(), improvement.cost
        kinds = EqualRows.of(improvement._record_of)
        near = np.empty((len(kinds.starts) - 1, 5), np.int64)
        state = generator.integers(1, 1 << 60, 1, dtype=np.uint64)
        tries, heat = int(generator.choice([0, 1, 100])), int(generator.choice([0.0, 1.0, 100.0]) * ONE)
        count, usual = int(owner[-1]) + 1, max(cost // 40, 1)
        gained = anneal(part, owner, count, improvement._rules, tests, kinds, near, tries, usual, heat, state)
        found = sum(
            len(rows) * _box_cost(part.codes[rows], improvement)
            for rows in (np.flatnonzero(owner == class_id) for class_id in np.unique(owner))
        )
        assert np.unique(owner, return_counts=True)[1].min() >= 3
        assert found == cost - gained
        assert gained >= 0
        gained_at_all += gained > 0
        lost += gained == 0 and tries > 0 and np.array_equal(owner, before)
    assert lost > 2
    assert gained_at_all > 5


def _box_cost(codes: np.ndarray, improvement: AnnealedImprovement) -> int:
    layout, units = improvement._rules.layout, improvement._rules.units
    ends = zip(codes.min(axis=0), codes.max(axis=0), strict=True)
    return sum(int(attribute_cost(layout, units, q, low, high)) for q, (low, high) in enumerate(ends))


def test_the_nearest_kinds_of_a_kind_cost_least_together_with_it() -> None:
    records = random_records(np.random.default_rng(9), 30)
    improvement = AnnealedImprovement(first_classes(records, asking(3)), records, asking(3))
    part, tests = improvement._part(0, 30)
    kinds, owner = EqualRows.of(improvement._record_of), np.zeros(30, np.int64)
    first, counts = kinds.rows[kinds.starts[:-1]], np.diff(kinds.starts)
    for kind, rows in enumerate(np.split(kinds.rows, kinds.starts[1:-1])):
        assert (kinds.kind[rows] == kind).all()
        assert (part.codes[rows] == part.codes[first[kind]]).all()
    assert len(np.unique(part.codes, axis=0)) == len(counts)
    assert set(counts) > {1}
    near = np.empty((len(counts), 4), np.int64)
    anneal(part, owner, 1, improvement._rules, tests, kinds, near, 0, 1, ONE, np.ones(1, np.uint64))
    together = np.zeros((len(counts), len(counts)), np.int64)
    for one, other in combinations(range(len(counts)), 2):
        codes = part.codes[[first[one], first[other]]]
        together[one, other] = together[other, one] = _box_cost(codes, improvement)
    for kind, count in enumerate(counts):
        assert len(set(near[kind])) == 4
        assert (kind in near[kind]) == (count > 1)
        others = together[kind] if count > 1 else np.delete(together[kind], kind)
        assert together[kind, near[kind]].tolist() == np.sort(others)[:4].tolist()


def test_small_tables_come_to_their_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annealed_improvement, "MOST_TRIES", 200)
    generator = np.random.default_rng(11)
    reached = 0
    for _ in range(40):
        records = random_records(generator, 9)
        k = int(generator.integers(2, 4))
        improvement = AnnealedImprovement(first_classes(records, asking(k)), records, asking(k))
        assert "settled" in improvement.improve(SearchLimits(1 << 20), Progress())
        found, best = cost_of(improvement.batch, records), optimum(records, asking(k))
        assert found >= best
        reached += found == best
    assert reached >= 30


def test_annealing_leads_out_of_where_the_search_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annealed_improvement, "MOST_TRIES", 200)
    records = random_records(np.random.default_rng(7), 500)
    costs = []
    for kind in (Improvement, AnnealedImprovement):
        improvement = kind(first_classes(records, asking(4)), records, asking(4))
        assert "settled" in improvement.improve(SearchLimits(1 << 20), Progress())
        costs.append(improvement.cost)
    assert costs[1] < costs[0] * 0.99


def test_the_same_seed_gives_the_same_classes_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(np.random.default_rng(5), 900)
    found = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(kernel_threads, "thread_count", lambda threads=threads: threads)
        improvement = AnnealedImprovement(first_classes(records, asking(3)), records, asking(3))
        improvement.improve(SearchLimits(COLD_ROUNDS + 3), Progress())
        found.append((improvement.batch.rows.tolist(), improvement.batch.starts.tolist()))
    assert found[0] == found[1] == found[2]
