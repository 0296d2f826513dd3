"""Prices with penalties for triples, against all classes and all partitions of tiny tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from coded import asking, random_records, records_of
from hypothesis import given
from numpy.typing import NDArray
from strategies import Case, cases
from test_bound import costs_by_hand, ignored, never, optimum_of, steps_of

import sfumato
from sfumato.bounds.bound import EFFORTS, Suppression
from sfumato.bounds.problem import BoundProblem
from sfumato.bounds.triple_prices import ChosenClasses, TripleSearch, crowded_triples, takes_triples
from sfumato.kernels.constants import NONE
from sfumato.methods.method import Records, SensitiveValues
from sfumato.requirements import DistinctDiversity, FrequencyDiversity, Requirements
from sfumato.tables.coding.domains import NumericDomain


def with_copies(generator: np.random.Generator, records: Records, most: int) -> Records:
    starts = np.append(0, np.cumsum(generator.integers(1, most + 1, len(records.codes))))
    return replace(records, starts=starts, rows=np.arange(starts[-1], dtype=np.uint32))


def search_of(problem: BoundProblem) -> TripleSearch:
    return TripleSearch(problem, 1 << 50, np.ones(problem.count, np.bool_), ignored, never)


def random_triples(generator: np.random.Generator, count: int, size: int) -> NDArray[np.int64]:
    triples = np.sort([generator.choice(count, 3, replace=False) for _ in range(size)], axis=1)
    return np.unique(triples, axis=0)


def least_slack_by_hand(
    problem: BoundProblem,
    records: Records,
    prices: NDArray[np.int64],
    triples: NDArray[np.int64],
    penalties: NDArray[np.int64],
) -> int:
    """What classes of k to 2k - 1 records cost more than their records pay, at least: every class of the table."""
    cost, place = costs_by_hand(records), {int(record): at for at, record in enumerate(problem.tree.order)}
    position = [place[record] for record in range(len(records.codes))]
    rows = [record for record, count in enumerate(np.diff(records.starts)) for _ in range(count)]
    found = []
    for size in range(problem.k, min(2 * problem.k - 1, len(rows)) + 1):
        for some in set(combinations(rows, size)):
            times = Counter(position[record] for record in some)
            pairs = [sum(times[one] for one in triple) // 2 for triple in triples.tolist()]
            paid = sum(int(prices[one]) * count for one, count in times.items())
            penalty = sum(int(each) * count for each, count in zip(penalties, pairs, strict=True))
            found.append(size * cost(sorted(set(some))) + penalty - paid)
    return min(found)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("most_nodes", [0, 3, 5_000])
def test_proven_prices_hold_for_every_class_however_short_the_search(
    seed: int, most_nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.bounds.triple_prices.MAX_NODES", most_nodes)
    generator = np.random.default_rng(seed)
    k = int(generator.integers(2, 4))
    records = random_records(generator, int(generator.integers(2 * k, 9)), grids=True)
    if seed % 3 == 0:
        records = with_copies(generator, replace(records, codes=np.unique(records.codes, axis=0)[:5]), 2)
    problem = BoundProblem.of(records, asking(k))
    if problem.count < 3:
        return
    triples = random_triples(generator, problem.count, 6)
    penalties = generator.integers(0, records.costs.full, len(triples))
    hoped = generator.integers(0, 2 * records.costs.full, problem.count)
    proven, classes = search_of(problem).proven(hoped, triples, penalties)
    assert (proven <= hoped).all()
    slack = least_slack_by_hand(problem, records, proven, triples, penalties)
    assert slack >= 0
    if most_nodes == 5_000:
        # No more is taken than the classes ask for, and what holds stays.
        asked = least_slack_by_hand(problem, records, hoped, triples, penalties)
        assert (proven == hoped).all() == (asked >= 0) == (len(classes) == 0)
        again, others = search_of(problem).proven(proven, triples, penalties)
        assert (again == proven).all()
        assert len(others) == 0


@pytest.mark.parametrize("seed", range(10))
def test_a_lowered_price_is_the_highest_that_holds(seed: int) -> None:
    generator = np.random.default_rng(seed)
    k = 3
    records = random_records(generator, 8, grids=True)
    problem = BoundProblem.of(records, asking(k))
    if problem.tree.weights.max() > 1:
        return
    triples = random_triples(generator, problem.count, 6)
    penalties = generator.integers(0, records.costs.full // 2, len(triples))
    held = search_of(problem).proven(np.full(problem.count, records.costs.full // 8), triples, penalties)[0]
    own = int(np.argmax(held))
    raised = held.copy()
    raised[own] += 10 * records.costs.full
    lowered, classes = search_of(problem).proven(raised, triples, penalties)
    assert least_slack_by_hand(problem, records, lowered, triples, penalties) == 0
    assert (np.delete(lowered, own) == np.delete(held, own)).all()
    assert len(classes) > 0
    assert all((row == own).sum() == 1 and k <= (row != NONE).sum() < 2 * k for row in classes)


def test_the_classes_found_undercut_the_prices() -> None:
    generator = np.random.default_rng(4)
    records = random_records(generator, 60, grids=True)
    problem = BoundProblem.of(records, asking(4))
    triples = random_triples(generator, problem.count, 20)
    penalties = generator.integers(0, records.costs.full // 4, len(triples))
    hoped = generator.integers(0, records.costs.full, problem.count)
    found = search_of(problem).proven(hoped, triples, penalties)[1]
    assert len(found) > 10
    for row in found:
        members = row[row != NONE]
        codes = problem.tree.codes[members]
        cost = int(problem.box_costs(codes.min(axis=0)[None], codes.max(axis=0)[None])[0])
        times = Counter(members.tolist())
        pairs = np.array([sum(times[one] for one in triple) // 2 for triple in triples.tolist()])
        assert 4 <= len(members) <= 7
        assert len(members) * cost + int((pairs * penalties).sum()) < int(hoped[members].sum())
        assert all(times[one] <= problem.tree.weights[one] for one in times)


@pytest.mark.parametrize("seed", range(6))
def test_triples_with_too_many_pairs_are_found(seed: int) -> None:
    generator = np.random.default_rng(seed)
    records, copies = random_records(generator, 9, grids=True), seed % 2 > 0
    records = replace(records, codes=np.unique(records.codes, axis=0))
    records = with_copies(generator, records, 1 + copies)
    problem = BoundProblem.of(records, asking(2))
    width = 3
    members = np.full((25, width), NONE, np.int32)
    for row in members:
        size = int(generator.integers(2, width + 1)) if copies else 2
        some = np.sort(generator.choice(4 if copies else 3, size, replace=copies))
        row[width - len(some) :] = some
    times = generator.random(25)
    times /= max(times[(members == one).any(axis=1)].sum() for one in range(4))  # no record is in more than one class
    numbers = times * (members != NONE).sum(axis=1)
    classes = ChosenClasses(members, np.zeros(25, np.int64))
    expected = {}
    for triple in combinations(range(problem.count), 3):
        whole = int(problem.tree.weights[list(triple)].sum())
        held = np.isin(members, triple).sum(axis=1)
        pairs = float((times * (held // 2)).sum())
        if whole % 2 and pairs > whole // 2 + 0.02:
            expected[triple] = pairs
    found = crowded_triples(problem, classes, numbers, np.empty((0, 3), np.int64), 0.02)
    assert {tuple(triple) for triple in found.tolist()} <= set(expected)
    found_of_record = Counter(found.ravel().tolist())
    missing = set(expected) - {tuple(triple) for triple in found.tolist()}
    # A record has so many new triples at most. Of copies, pairs of the same record alone are not looked for.
    assert copies or all(max(found_of_record[one] for one in triple) == 6 for triple in missing)
    assert copies or len(found) > 0
    rest = crowded_triples(problem, classes, numbers, found, 0.02)
    assert not {tuple(triple) for triple in rest.tolist()} & {tuple(triple) for triple in found.tolist()}


def test_a_class_is_a_set_of_records_and_of_triples_below_zero() -> None:
    records = random_records(np.random.default_rng(1), 9, grids=True)
    problem = BoundProblem.of(records, asking(3))
    classes = ChosenClasses(np.array([[NONE, NONE, 0, 0, 2], [0, 1, 2, 3, 4]], np.int32), np.array([7, 9]))
    sets = classes.sets(problem, np.array([[0, 1, 2], [1, 2, 3], [0, 5, 6]]))
    first, m = int(sets.starts[1]), problem.count
    assert sets.cost.tolist() == [7, 9]
    assert dict(zip(sets.members[:first].tolist(), sets.shares[:first].tolist(), strict=True)) == pytest.approx(
        {0: 2 / 3, 2: 1 / 3, m: -1 / 3, m + 2: -1 / 3}
    )
    assert dict(zip(sets.members[first:].tolist(), sets.shares[first:].tolist(), strict=True)) == pytest.approx(
        {**dict.fromkeys(range(5), 0.2), m: -0.2, m + 1: -0.2}
    )


# ---- the bound ----


def test_three_equally_far_records_cannot_be_halved() -> None:
    # Pairs of a triangle cost a third of the domain; halves of three pairs would hold each of its records once.
    sides = {"a": ["x", "y", "z"] * 3, "b": [one for one in "pqr" for _ in range(3)]}
    flags: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "k": 2, "taxonomy": {"a": "flat", "b": "flat"}}
    found = sfumato.bound(pa.table(sides), effort="best", **flags)
    # Of nine records in a grid, three pairs of one side and one class of three are the best: all cost 1/2.
    assert found.gcp == pytest.approx(1 / 2, abs=1e-6)
    line = pa.table({"a": [0, 1, 2, 100, 101, 102]})
    halves = sfumato.bound(line, quasi_identifiers="a", k=2, effort="best")
    # 0, 1, 2 share a class, for 2 each: six times 2 / 102 in all. Halves of pairs would cost less.
    assert (halves.kind, halves.relaxation) == ("triples", pytest.approx(8 / 102 / 6, rel=1e-3))
    assert halves.gcp == pytest.approx(2 / 102, rel=1e-3)


@pytest.mark.not_quick
@given(case=cases(rows=9, columns=3, others=False))
def test_no_partition_costs_less_than_the_bound(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    flags = case.settings(tmp_path_factory.mktemp("t"))
    found = sfumato.bound(case.table, effort="best", **flags)
    assert found.gcp <= optimum_of(case).gcp()


@pytest.mark.not_quick
def test_triples_prove_more_than_prices_alone_can() -> None:
    generator = np.random.default_rng(8)
    domains = [NumericDomain(name, np.arange(40), False) for name in "ab"]
    crowd = records_of(generator.integers(0, 40, (300, 2)).astype(np.uint8), domains)
    found = steps_of(crowd, EFFORTS["best"])
    assert [one.gcp for one in found] == sorted(one.gcp for one in found)
    last = found[-1]
    assert (last.kind, last.complete) == ("triples", True)
    assert last.relaxation is not None
    assert last.gcp > last.relaxation * 1.005
    assert "with penalties for classes that hold two records of a triple, raised in" in last.method
    alone = steps_of(crowd, replace(EFFORTS["best"], triples=False))[-1]
    assert (alone.kind, alone.complete) == ("prices", True)
    assert alone.gcp <= last.relaxation < last.gcp


@pytest.mark.not_quick
def test_any_number_of_threads_proves_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(np.random.default_rng(3), 150)
    alone = steps_of(records, EFFORTS["best"])
    monkeypatch.setattr("sfumato.kernels.threads.thread_count", lambda: 3)
    monkeypatch.setattr("sfumato.bounds.triple_prices.SEARCHED", 4)
    assert steps_of(records, EFFORTS["best"]) == alone


def test_only_k_alone_on_small_tables_takes_triples(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(np.random.default_rng(3), 40)
    codes = (np.arange(records.count) % 4).astype(np.uint32)
    records = replace(records, sensitive={"s": SensitiveValues(codes, 4, np.zeros(4))})
    assert takes_triples(BoundProblem.of(records, asking(3)))
    for part in (DistinctDiversity("s", 2), FrequencyDiversity("s", 2)):
        assert not takes_triples(BoundProblem.of(records, Requirements((*asking(3).parts, part))))
    kinds = {one.kind for one in steps_of(records, EFFORTS["best"], suppression=Suppression(1))}
    assert kinds == {"neighbours", "simple", "prices"}
    monkeypatch.setattr("sfumato.bounds.triple_prices.MOST_RECORDS", 10)
    assert not takes_triples(BoundProblem.of(records, asking(3)))
