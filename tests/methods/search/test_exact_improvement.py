"""Exact solutions: the optimum of small tables, every class holds, the same bytes again, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from coded import asking, random_records
from searched_classes import KINDS, assert_classes, cost_of, feasible, first_classes, optimum, with_values

import sfumato
from sfumato.kernels import threads as kernel_threads
from sfumato.methods.search import exact_improvement
from sfumato.methods.search.exact_improvement import ExactImprovement
from sfumato.methods.search.improvement import Improvement, SearchLimits
from sfumato.progress import Progress
from sfumato.requirements import FrequencyDiversity, KAnonymity, Requirements

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@pytest.mark.not_quick
@pytest.mark.parametrize("kind", ["k", "frequency"])
def test_small_tables_come_to_their_optimum(kind: str) -> None:
    generator = np.random.default_rng(11)
    reached = 0
    while reached < 12:
        records = with_values(random_records(generator, 8), generator)
        requirements = Requirements((KAnonymity(int(generator.integers(2, 4))), *KINDS[kind]))
        best = optimum(records, requirements)
        if best is not None:
            start = first_classes(records, requirements)
            improvement = ExactImprovement(start, records, requirements)
            improvement._exact_round(0, Progress())
            assert cost_of(improvement.batch, records) == best
            reached += 1


@pytest.mark.not_quick
@pytest.mark.parametrize("most", [0, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_classes_hold_and_the_loss_falls_by_what_is_said_to_be_gained(
    kind: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_improvement, "ALL_PLACES", most)
    tables, gained_at_all = feasible(kind, 3, 1), 0
    for _ in range(4):
        records, requirements = next(tables)
        improvement = ExactImprovement(first_classes(records, requirements), records, requirements)
        cost = improvement.cost
        for number in range(2):
            gained = improvement._exact_round(number, Progress())
            assert_classes(improvement.batch, records, requirements)
            assert improvement.cost == cost - gained
            cost -= gained
            gained_at_all += gained
    assert gained_at_all > 0


def test_it_has_less_loss_than_the_search_alone() -> None:
    records = random_records(np.random.default_rng(3), 100, [0, 2, 3, 4])
    start = first_classes(records, asking(3))
    search, exact = Improvement(start, records, asking(3)), ExactImprovement(start, records, asking(3))
    search.improve(SearchLimits(20), Progress())
    assert exact.improve(SearchLimits(20), Progress()).startswith("settled after")
    assert exact.cost < search.cost


@pytest.mark.not_quick
@pytest.mark.parametrize("kind", ["k", "entropy"])
def test_the_same_seed_gives_the_same_classes_whatever_the_threads(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    records = with_values(random_records(generator, 120, [0, 2, 3]), generator)
    requirements, found = Requirements((KAnonymity(3), *KINDS[kind])), []
    for threads in (1, 2):
        monkeypatch.setattr(kernel_threads, "thread_count", lambda threads=threads: threads)
        improvement = ExactImprovement(first_classes(records, requirements), records, requirements)
        improvement.improve(SearchLimits(2), Progress())
        found.append((improvement.batch.rows.tolist(), improvement.batch.starts.tolist()))
    assert found[0] == found[1]


def test_it_ends_with_what_it_has_when_the_time_is_over() -> None:
    records = random_records(np.random.default_rng(6), 200)
    improvement = ExactImprovement(first_classes(records, asking(4)), records, asking(4))
    assert "the time was over" in improvement.improve(SearchLimits(50, 0.0), Progress())
    assert_classes(improvement.batch, records, asking(4))


def test_a_solution_that_is_none_leaves_the_classes_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(2)
    records = with_values(random_records(generator, 40, [0, 2]), generator)
    requirements = Requirements((KAnonymity(3), FrequencyDiversity("s", 2)))
    improvement = ExactImprovement(first_classes(records, requirements), records, requirements)
    cost = improvement.cost

    def wrong(self: object, start: tuple[np.ndarray, np.ndarray], nodes: int, seconds: float | None) -> object:
        counts, _ = start
        return np.vstack([counts[:1] - 1, counts[1:]]), start[1]

    monkeypatch.setattr(exact_improvement.PartitionProgramme, "solve", wrong)
    improvement._in_neighbourhoods(40, improvement._solved, lambda: False, Progress())
    assert improvement.cost == cost
    assert_classes(improvement.batch, records, requirements)


@pytest.mark.not_quick
def test_an_effort_of_its_own_reaches_it(tmp_path: Path) -> None:
    table = tmp_path / "patients.parquet"
    sfumato.generate("hospital", 40, table)
    policy = sfumato.Policy.load(tmp_path / "patients.policy.toml")
    best = sfumato.anonymize(table, policy, effort="best")
    exact = sfumato.anonymize(table, policy, effort="exact")
    assert exact.losses.gcp <= best.losses.gcp
    assert exact.data.equals(sfumato.anonymize(table, policy, effort="exact").data)


@pytest.mark.parametrize("method", ["auto", "mondrian"])
def test_without_the_solver_it_is_refused_before_the_table_is_read(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(sfumato.UsageError, match=r"sfumato\[exact\]"):
        sfumato.anonymize(tmp_path / "missing.csv", quasi_identifiers="a", k=2, method=method, effort="exact")


def test_the_disk_engine_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(sfumato.UsageError, match="effort exact"):
        sfumato.anonymize(tmp_path / "missing.csv", quasi_identifiers="a", k=2, effort="exact", engine="disk")
