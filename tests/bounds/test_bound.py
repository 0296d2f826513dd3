"""The bound on GCP against true optima by brute force, and against the releases of every method."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.csv
import pytest
from coded import asking, random_records, records_of
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from naming import hiding_methods
from numpy.typing import NDArray
from strategies import Case, cases

import sfumato
from sfumato.bounds import bound as module
from sfumato.bounds.bound import EFFORTS, Bound, BoundEffort, Suppression, lower_bounds
from sfumato.bounds.box_pool import BoxPool
from sfumato.bounds.cheapest_boxes import nearest_boxes, search_cheapest
from sfumato.bounds.dual_prices import PART, prove, try_out
from sfumato.bounds.price_ascent import climb
from sfumato.bounds.problem import BoundProblem, values_needed
from sfumato.cli import main
from sfumato.methods.method import Records, SensitiveValues
from sfumato.progress import Progress
from sfumato.requirements import (
    AlphaAnonymity,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Joint,
    RecursiveDiversity,
    Requirements,
    TCloseness,
)
from sfumato.tables.coding.domains import NumericDomain

NEAR = 2e-8  # what rounding costs, a few units of 2 ** -32 for each attribute
CLIMBED = 1e-3  # prices come near to the best ones, no nearer than is worth it
RELEASING = hiding_methods()
NOBODY = Suppression()


def ignored(steps: int) -> None:
    """Progress that nobody looks at."""


def never() -> bool:
    """Time is not over."""
    return False


# ---- true optima ----


class Optimum:
    """Every class of a tiny table, and the least loss of all partitions; in exact fractions."""

    def __init__(
        self,
        rows: Sequence[oracle.Row],
        columns: Mapping[str, oracle.Column],
        weights: Mapping[str, float],
        k: int,
        allowed: Callable[[Sequence[oracle.Row]], bool] = lambda rows: True,
    ) -> None:
        self._rows, self._columns, self._k, self._allowed = rows, columns, k, allowed
        self._weights = {name: Fraction(weights.get(name, 1.0)) for name in columns}
        self._cost = cache(self._cost_of)

    def _cost_of(self, members: tuple[int, ...]) -> Fraction:
        total = sum(self._weights.values())
        found = Fraction(0)
        for name, column in self._columns.items():
            values = [self._rows[row][name] for row in members]
            found += self._weights[name] * oracle.tight_penalty(column, values)
        return found / total

    def gcp(self, most_left_out: int = 0, each: float = 1.0) -> Fraction:
        """The least loss with up to so many records left out, each of which counts ``each``."""
        count = len(self._rows)

        @cache
        def best(left: frozenset[int], may_go: int) -> Fraction | None:
            if not left:
                return Fraction(0)
            first = min(left)
            found = []
            if may_go:
                rest = best(left - {first}, may_go - 1)
                if rest is not None:
                    found.append(rest + Fraction(each))
            others = sorted(left - {first})
            for size in range(self._k - 1, len(others) + 1):
                for chosen in combinations(others, size):
                    members = (first, *chosen)
                    if self._allowed([self._rows[row] for row in members]):
                        rest = best(left - set(members), may_go)
                        if rest is not None:
                            found.append(rest + len(members) * self._cost(members))
            return min(found, default=None)

        total = best(frozenset(range(count)), most_left_out)
        assert total is not None
        return total / count

    def cheapest(self) -> Fraction:
        """The mean cost of the cheapest class that each record could be in."""
        everybody = range(len(self._rows))
        total = Fraction(0)
        for row in everybody:
            others = [other for other in everybody if other != row]
            total += min(
                self._cost(tuple(sorted((row, *chosen))))
                for size in range(self._k - 1, len(others) + 1)
                for chosen in combinations(others, size)
                if self._allowed([self._rows[one] for one in (row, *chosen)])
            )
        return total / len(self._rows)


def optimum_of(case: Case, **asked: Any) -> Optimum:
    return Optimum(case.table.to_pylist(), case.columns, case.weights, case.k, **asked)


@pytest.mark.not_quick
@given(case=cases(rows=8, columns=3, others=False))
def test_simple_bound_bound_and_optimum_ascend(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = sfumato.bound(case.table, effort="best", **case.settings(tmp_path_factory.mktemp("t")))
    best = optimum_of(case)
    assert found.simple == pytest.approx(float(best.cheapest()), abs=NEAR)
    assert found.exact
    assert found.simple <= found.gcp <= best.gcp()


@pytest.mark.not_quick
@settings(max_examples=examples(0.4))
@given(case=cases(rows=7, columns=2, others=False), left_out=st.integers(1, 4))
def test_leaving_records_out_does_not_undercut_the_bound(
    case: Case, left_out: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    flags = case.settings(tmp_path_factory.mktemp("t"))
    share = left_out / case.table.num_rows
    if share >= 1:
        return
    found = sfumato.bound(case.table, effort="best", max_suppressed=share, **flags)
    assert found.gcp <= optimum_of(case).gcp(most_left_out=left_out)
    assert found.simple <= found.gcp


@pytest.mark.not_quick
@settings(max_examples=25)
@given(
    case=cases(rows=7, columns=2, others=False),
    left_out=st.integers(1, 4),
    each=st.sampled_from([0.0, 0.125, 0.5, 0.875]),
)
def test_no_release_costs_less_than_the_bound_on_the_cost(
    case: Case, left_out: int, each: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    flags = case.settings(tmp_path_factory.mktemp("t"))
    left_out = min(left_out, case.table.num_rows - 1)
    flags |= {"max_suppressed": left_out / case.table.num_rows, "suppression_cost": each}
    best = optimum_of(case)
    for effort in ("fast", "best"):
        found = sfumato.bound(case.table, effort=effort, **flags)
        assert found.simple <= found.cost <= best.gcp(left_out, each)
        assert found.cost <= found.gcp <= best.gcp(left_out)


def test_only_as_many_records_as_allowed_pay_less_than_their_cheapest_box() -> None:
    # Each of the three far records costs 1 in any class of two; the others cost nothing.
    table = pa.table({"a": ["x"] * 5 + ["p", "q", "r"]})
    flags: dict[str, Any] = {"quasi_identifiers": "a", "other": "drop", "k": 2, "taxonomy": {"a": "flat"}}
    found = {}
    for allowed in (0, 1, 2, 5):
        found[allowed] = sfumato.bound(table, **flags, max_suppressed=allowed / 8, suppression_cost=0.25)
    assert {allowed: bound.cost for allowed, bound in found.items()} == pytest.approx(
        {0: 3 / 8, 1: 2.25 / 8, 2: 1.5 / 8, 5: 0.75 / 8}, abs=NEAR
    )
    assert all(bound.gcp == pytest.approx(3 / 8, abs=NEAR) for bound in found.values())
    release = sfumato.anonymize(table, **flags, max_suppressed=3 / 8, suppression_cost=0.25)
    assert (release.losses.suppressed, release.losses.cost) == (3, 0.75 / 8)
    assert sfumato.bound(table, release=release).release_ratio == pytest.approx(1, abs=1e-6)


@st.composite
def diverse(draw: st.DrawFn) -> tuple[Case, list[str | None], str, int]:
    case = draw(cases(rows=7, columns=2, others=False))
    values = st.sampled_from(["a", "b", "c"]) if draw(st.booleans()) else st.sampled_from(["a", "b", None])
    column = draw(st.lists(values, min_size=case.table.num_rows, max_size=case.table.num_rows))
    return (
        case,
        column,
        draw(st.sampled_from(["distinct", "frequency", "entropy", "recursive"])),
        draw(st.integers(1, 3)),
    )


@given(asked=diverse())
def test_requirements_on_sensitive_columns_only_raise_the_bound(
    asked: tuple[Case, list[str | None], str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    case, column, kind, l = asked
    table = case.table.append_column("s", pa.array(column, pa.string()))
    parameters: dict[str, Any] = {"l": l, **({"c": Fraction(2)} if kind == "recursive" else {})}
    required = oracle.Asked(kind, "s", parameters)
    counting = oracle.Counting()

    def allowed(rows: Sequence[oracle.Row]) -> bool:
        some = counting.counts(rows, "s")
        return required.holds(some, some)

    rows = table.to_pylist()
    if not allowed(rows):
        return
    text = f"{kind}(s, {'c=2, ' if kind == 'recursive' else ''}l={l})"
    flags = {**case.settings(tmp_path_factory.mktemp("t")), "sensitive": ["s"], "require": [text]}
    found = sfumato.bound(table, effort="best", **flags)
    best = Optimum(rows, case.columns, case.weights, case.k, allowed)
    assert found.simple <= found.gcp <= best.gcp()
    assert found.simple <= float(best.cheapest()) + NEAR
    flags["require"] = []
    flags["sensitive"] = []
    flags["identifiers"] = ["s"]
    assert found.simple >= sfumato.bound(table, effort="fast", **flags).simple - NEAR


def test_different_sensitive_values_far_away_raise_the_simple_bound() -> None:
    table = pa.table({"age": [0, 1, 2, 3, 10], "s": list("aaaab")})
    flags: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["s"], "effort": "fast"}
    assert sfumato.bound(table, k=2, **flags).simple == pytest.approx((4 * 0.1 + 0.7) / 5, abs=NEAR)
    # Whoever is at 0 needs a box up to 10, at 1 from 1 to 10, and so on.
    diverse_bound = sfumato.bound(table, k=2, require=["distinct(s, l=2)"], **flags)
    assert diverse_bound.simple == pytest.approx((1.0 + 0.9 + 0.8 + 0.7 + 0.7) / 5, abs=NEAR)


# ---- the search by itself ----


def costs_by_hand(records: Records) -> Callable[[Sequence[int]], int]:
    """The cost of the smallest box of some distinct records, in the units of the product."""
    from sfumato.losses.exact_costs import attribute_cost

    def cost(members: Sequence[int]) -> int:
        codes = records.codes[list(members)].astype(np.int64)
        low, high = codes.min(axis=0), codes.max(axis=0)
        costs = records.costs
        return sum(int(attribute_cost(costs.layout, costs.units, q, low[q], high[q])) for q in range(len(low)))

    return cost


def least_slack_by_hand(records: Records, k: int, own: int, prices: NDArray[np.int64], rank: NDArray[np.int64]) -> int:
    """Over all sets of distinct records with the own one, whose box then holds k records at least."""
    weights = np.diff(records.starts)
    cost = costs_by_hand(records)
    codes = records.codes.astype(np.int64)
    found = []
    for size in range(len(weights)):
        for chosen in combinations([one for one in range(len(weights)) if one != own], size):
            some = codes[[own, *chosen]]
            inside = np.flatnonzero(((codes >= some.min(axis=0)) & (codes <= some.max(axis=0))).all(axis=1))
            if weights[inside].sum() < k:
                continue
            counted = [
                price
                for one in inside
                for price in [int(prices[one]) if rank[one] < rank[own] else 0] * int(weights[one])
                if one != own
            ]
            others = k - min(int(weights[own]), k)
            found.append(k * cost((own, *chosen)) - sum(sorted(counted, reverse=True)[:others]))
    return min(found)


@pytest.mark.parametrize("seed", range(30))
def test_the_search_finds_the_least_slack_of_all_boxes(seed: int) -> None:
    generator = np.random.default_rng(seed)
    records = random_records(generator, int(generator.integers(4, 14)), grids=True)
    while len(records.codes) > 8:
        records = random_records(generator, int(generator.integers(4, 12)), grids=True)
    k = int(generator.integers(1, records.count + 1))
    problem = BoundProblem.of(records, asking(k))
    count, full = problem.count, records.costs.full
    in_order = np.sort(generator.integers(0, full, count) * generator.integers(0, 2, count))
    rank = generator.permutation(count)
    prices = in_order[rank]  # dearer ones have a higher rank
    rank_of_record, price_of_record = np.empty(count, np.int64), np.empty(count, np.int64)
    rank_of_record[problem.tree.order], price_of_record[problem.tree.order] = rank, prices
    goals = np.full(count, 2 * k * full)
    # The search may take the own price as the largest that counts, so all boxes are within reach of the goal.
    found = problem.least_slacks(np.arange(count), prices, rank, goals, 10_000)
    for place, own in enumerate(problem.tree.order):
        expected = least_slack_by_hand(records, k, int(own), price_of_record, rank_of_record)
        assert found.slack[place] == found.box_slack[place] == expected
        inside = (problem.tree.codes >= found.low[place]) & (problem.tree.codes <= found.high[place])
        assert problem.tree.weights[inside.all(axis=1)].sum() >= k
        assert inside[place].all()
    nearby = generator.integers(0, full, count)
    first = problem.least_slacks(np.arange(count), prices, rank, goals, 10_000, 0, nearby)
    assert (first.slack == found.slack).all()
    assert (first.box_slack == found.slack).all()
    for most in (0, 1, 3):
        short = problem.least_slacks(np.arange(count), prices, rank, goals, most)
        assert (short.slack <= found.slack).all()
        assert (short.box_slack >= found.slack).all()


def holds_everywhere(problem: BoundProblem, prices: NDArray[np.int64], records: Records) -> bool:
    """Whether any k records cost at least as much as their prices, by looking at all of them."""
    cost = costs_by_hand(records)
    by_record = np.empty(problem.count, np.int64)
    by_record[problem.tree.order] = prices
    copies = [record for record, weight in enumerate(np.diff(records.starts)) for _ in range(min(weight, problem.k))]
    return all(
        sum(int(by_record[one]) for one in some) <= problem.k * cost(sorted(set(some)))
        for some in set(combinations(copies, problem.k))
    )


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("most", [0, 2, 1000])
def test_proven_prices_hold_for_any_k_records_however_short_the_search(seed: int, most: int) -> None:
    generator = np.random.default_rng(seed)
    records = random_records(generator, int(generator.integers(5, 12)), grids=True)
    k = int(generator.integers(2, 5))
    problem = BoundProblem.of(records, asking(k))
    hoped = generator.integers(0, 2 * records.costs.full, problem.count) * (problem.tree.weights < k)
    proven = prove(problem, hoped, most, ignored, never).prices
    assert (proven <= hoped).all()
    assert (proven >= 0).all()
    assert holds_everywhere(problem, proven, records)
    if most == 1000:  # what holds already stays
        assert (prove(problem, proven, most, ignored, never).prices == proven).all()


@pytest.mark.parametrize("seed", range(60))
def test_proven_prices_hold_for_some_copies_of_a_record_beside_dearer_records(seed: int) -> None:
    generator = np.random.default_rng(seed)
    records, k = random_records(generator, 8, grids=True), int(generator.integers(3, 8))
    copies = generator.integers(1, k, len(records.codes))
    starts = np.append(0, np.cumsum(copies))
    records = replace(records, starts=starts, rows=np.arange(starts[-1], dtype=np.uint32))
    if records.count < k:
        return
    problem = BoundProblem.of(records, asking(k))
    hoped = (generator.integers(0, 2 * records.costs.full, problem.count) * generator.random(problem.count)).astype(int)
    proven = prove(problem, hoped, 1000, ignored, never).prices
    assert holds_everywhere(problem, proven, records)
    assert (prove(problem, proven, 1000, ignored, never).prices == proven).all()


@pytest.mark.parametrize("seed", range(60))
def test_a_first_search_without_cheap_records_proves_the_same(seed: int) -> None:
    generator = np.random.default_rng(seed)
    records = random_records(generator, int(generator.integers(20, 120)), grids=True)
    k = int(generator.integers(2, 9))
    problem = BoundProblem.of(records, asking(k))
    hoped = (generator.integers(0, records.costs.full, problem.count) * generator.random(problem.count) ** 2).astype(
        int
    )
    plain = prove(problem, hoped, 10_000, ignored, never)
    for nearby in (plain.prices // 2, generator.integers(0, records.costs.full, problem.count), hoped * 3):
        first = prove(problem, hoped, 10_000, ignored, never, nearby)
        assert (first.prices == plain.prices).all()
        assert (first.low == plain.low).all()
        assert (first.high == plain.high).all()


@pytest.mark.parametrize("seed", range(40))
def test_a_proof_loses_no_more_than_trials_of_all_parts_say(seed: int) -> None:
    generator = np.random.default_rng(seed)
    records = random_records(generator, int(generator.integers(20, 120)), grids=True)
    problem = BoundProblem.of(records, asking(int(generator.integers(2, 9))))
    hoped = (generator.integers(0, records.costs.full, problem.count) * generator.random(problem.count)).astype(int)
    proven = prove(problem, hoped, 10_000, ignored, never)
    trials = [try_out(problem, hoped, 10_000, ignored, never, None, first) for first in range(PART)]
    lost = problem.sum(hoped) - problem.sum(proven.prices)
    assert lost <= sum(trial.loss for trial in trials) / PART  # each record beside others that are no cheaper
    assert all((len(trial.low) > 0) == (trial.loss > 0) for trial in trials)
    assert (lost > 0) == any(trial.loss > 0 for trial in trials)


def test_prices_that_climbed_are_feasible_for_the_pool() -> None:
    records = random_records(np.random.default_rng(5), 60, [0, 2, 3])
    problem = BoundProblem.of(records, asking(4))
    cheapest = nearest_boxes(problem, ignored)
    search_cheapest(problem, cheapest, 1000, ignored, never)
    free = cheapest.least > 0
    pool = BoxPool.of(problem, cheapest.low[free], cheapest.high[free])
    start = cheapest.least.astype(np.float64)
    reached = climb(problem, pool, start, free, stride=0.1, steps=100, highest=1e15, trust=math.inf, out_of_time=never)
    for box, (first, last) in enumerate(zip(pool.starts[:-1], pool.starts[1:], strict=True)):
        inside = pool.members[first:last]
        copies = np.repeat(reached[inside], np.minimum(problem.tree.weights[inside], 4))
        assert np.sort(copies)[-4:].sum() <= 4 * pool.cost[box] * (1 + 1e-9)
        within = (problem.tree.codes >= pool.low[box]) & (problem.tree.codes <= pool.high[box])
        assert sorted(inside) == np.flatnonzero(within.all(axis=1)).tolist()
    assert (reached * problem.tree.weights).sum() > problem.sum(cheapest.least)


@pytest.mark.parametrize("seed", range(8))
def test_the_dearest_records_of_a_box_are_found_whatever_was_dear_before(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.kernels.threads.LEAST_OF_PART", 10)
    generator = np.random.default_rng(seed)
    records = random_records(generator, 80, grids=True)
    problem = BoundProblem.of(records, asking(5))
    cheapest = nearest_boxes(problem, ignored)
    half = problem.count // 2
    pool = BoxPool.of(problem, cheapest.low[:half], cheapest.high[:half])
    for turn in range(4):
        prices = generator.integers(0, 6, problem.count).astype(np.float64)  # many are equal
        found = pool.dearest(problem, prices)
        assert len(pool.parts) > 1
        assert pool.parts == [*pairwise([0, *(end for _, end in pool.parts)])]
        sets = found.sets(np.arange(len(pool)))
        for box, (first, last) in enumerate(pairwise(pool.starts)):
            inside = pool.members[first:last]
            within = (problem.tree.codes >= pool.low[box]) & (problem.tree.codes <= pool.high[box])
            assert sorted(inside) == np.flatnonzero(within.all(axis=1)).tolist()
            dearest = np.sort(np.repeat(prices[inside], problem.tree.weights[inside]))[::-1][:5]
            assert found.means[box] == pytest.approx(dearest.sum() / 5)
            chosen, size = slice(sets.starts[box], sets.starts[box + 1]), found.sizes[box]
            assert sets.members[chosen].tolist() == inside[:size].tolist()
            copies = np.rint(sets.shares[chosen] * 5).astype(np.int64)
            assert np.repeat(prices[sets.members[chosen]], copies).tolist() == dearest.tolist()
        if turn == 1:
            before = pool
            pool = pool.with_boxes(problem, cheapest.low, cheapest.high)
            assert len(before) < len(pool) == len(np.unique(np.hstack([cheapest.low, cheapest.high]), axis=0))
            assert pool.cost[: len(before)].tolist() == before.cost.tolist()


# ---- cases that are known ----


def bound_of(values: Sequence[Any], k: int, **flags: Any) -> Bound:
    return sfumato.bound(pa.table({"a": values}), quasi_identifiers=["a"], k=k, effort="best", **flags)


@pytest.mark.parametrize(
    ("values", "k", "expected"),
    [
        ([1, 1, 5, 5, 9, 9], 2, 0.0),  # equal records are classes
        ([0, 1, 9, 10], 2, 0.1),  # two pairs
        ([0, 2, 3, 10], 4, 1.0),  # k = N: one class
        ([7, 7, 7], 3, 0.0),  # a constant
        (["x", "y", "z"], 2, 1.0),  # a flat taxonomy: any two are anything
        ([None, None, 1, 2], 2, 0.5),  # null by itself costs nothing
        ([None, 1, 2, 3], 2, 0.75),  # null with anything costs 1, for two records; the others are a half apart
    ],
)
def test_bounds_that_are_the_optimum(values: Sequence[Any], k: int, expected: float) -> None:
    found = bound_of(values, k)
    columns: dict[str, oracle.Column] = {
        "a": oracle.CategoryColumn(oracle.flat_rows(values))
        if isinstance(values[0], str)
        else oracle.NumberColumn(values)
    }
    best = Optimum([{"a": value} for value in values], columns, {}, k).gcp()
    assert best == Fraction(expected).limit_denominator(100)
    assert found.gcp <= best
    assert found.gcp == pytest.approx(expected, rel=CLIMBED, abs=NEAR)


def test_an_outlier_draws_others_into_its_class() -> None:
    """The cheapest boxes of 0 cost nothing and that of 8 costs 1; but two of the 0 have to go with 8."""
    found = bound_of([0, 0, 0, 0, 0, 8], 3)
    assert found.simple == pytest.approx(1 / 6, abs=NEAR)
    assert found.gcp == pytest.approx(3 / 6, rel=CLIMBED)


def test_more_copies_are_another_table() -> None:
    once = bound_of([0, 1, 2, 3, 4, 8], 2)
    twice = bound_of([0, 1, 2, 3, 4, 8] * 2, 4)
    assert once.gcp == pytest.approx(twice.gcp, rel=1e-3)
    assert once.distinct == twice.distinct == 6
    assert bound_of([0, 1, 2, 3, 4, 8] * 2, 2).gcp == 0


def test_weights_count_as_in_the_loss() -> None:
    table = pa.table({"a": [0, 1, 2, 3], "b": [0, 0, 9, 9]})
    flags: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "k": 2}
    assert sfumato.bound(table, **flags).gcp == pytest.approx(1 / 6, abs=NEAR)
    assert sfumato.bound(table, weight={"b": 3.0}, **flags).gcp == pytest.approx(1 / 12, abs=NEAR)


@pytest.mark.not_quick
def test_a_random_table_is_bounded_well_above_the_simple_bound() -> None:
    generator = np.random.default_rng(0)
    table = pa.table({"a": generator.normal(size=400), "b": generator.integers(0, 9, 400)})
    found = sfumato.bound(table, quasi_identifiers=["a", "b"], k=5)
    release = sfumato.anonymize(table, quasi_identifiers=["a", "b"], k=5, method="topdown")
    assert 1.3 * found.simple < found.gcp <= release.losses.gcp
    assert found.ratio(release.losses.gcp) == release.losses.gcp / found.gcp
    assert sfumato.bound(table, quasi_identifiers=["a", "b"], k=5, release=release).release_ratio == found.ratio(
        release.losses.gcp
    )


# ---- releases ----


@pytest.mark.not_quick
@settings(max_examples=examples(1 / 3))
@given(case=cases(rows=24, columns=4, others=False), step=st.sampled_from([None, 7]))
def test_no_method_is_below_the_bound(case: Case, step: int | None, tmp_path_factory: pytest.TempPathFactory) -> None:
    flags = case.settings(tmp_path_factory.mktemp("t"))
    numbers = [name for name, one in case.quasi.items() if one.type == pa.int64() and one.taxonomy is None]
    if step is not None and numbers:
        flags["round"] = {numbers[0]: step}
    found = sfumato.bound(case.table, effort="best", **flags)
    for method in RELEASING:
        assert sfumato.anonymize(case.table, method=method, **flags).losses.gcp >= found.gcp
    suppressing = {**flags, "max_suppressed": 0.2}
    found = sfumato.bound(case.table, effort="best", **suppressing)
    assert sfumato.anonymize(case.table, method="hilbert", **suppressing).losses.gcp >= found.gcp


def test_counting_persons_keeps_the_bound() -> None:
    generator = np.random.default_rng(3)
    table = pa.table({"a": generator.integers(0, 50, 60), "person": generator.integers(0, 40, 60)})
    flags: dict[str, Any] = {"quasi_identifiers": ["a"], "person": "person", "k": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        release = sfumato.anonymize(table, **flags)
    assert 0 < sfumato.bound(table, **flags).gcp <= release.losses.gcp


# ---- what is asked of a class ----


def test_different_values_follow_from_requirements() -> None:
    whole = SensitiveValues(np.array([0, 1, 2, 0], np.uint32), 3, np.zeros(3))
    gaps = SensitiveValues(np.array([0, 1, 2, 3], np.uint32), 3, np.zeros(3))
    sensitive = {"s": whole, "t": gaps}
    for part, expected in (
        (FrequencyDiversity("s", 3), {"s": 3}),
        (FrequencyDiversity("t", 3), {}),  # a class of nothing but missing values would meet it
        (DistinctDiversity("t", 2), {"t": 2}),
        (EntropyDiversity("s", 2), {"s": 2}),
        (EntropyDiversity("s", 1.5), {"s": 2}),  # 1.5 equally frequent values are more than one
        (EntropyDiversity("s", 2.001), {"s": 3}),
        (EntropyDiversity("s", 1), {}),
        (RecursiveDiversity("t", 1.5, 3), {"t": 3}),
        (AlphaAnonymity("s", 0.4), {"s": 3}),
        (AlphaAnonymity("s", 0.5), {"s": 2}),
        (Joint(DistinctDiversity("s", 3)), {"s": 3}),
        (TCloseness("s", 0.1), {}),
        (DistinctDiversity("s", 1), {}),
    ):
        assert values_needed(Requirements((*asking(2).parts, part)), sensitive) == expected


# ---- how a search ends ----


def steps_of(
    records: Records, effort: BoundEffort, seconds: float | None = None, suppression: Suppression = NOBODY
) -> list[Bound]:
    return list(
        lower_bounds(
            records,
            asking(5),
            suppression=suppression,
            effort=effort,
            seconds=seconds,
            progress=Progress(),
        )
    )


@pytest.fixture(scope="module")
def crowd() -> Records:
    generator = np.random.default_rng(8)
    domains = [NumericDomain(name, np.arange(40), False) for name in "ab"]
    return records_of(generator.integers(0, 40, (900, 2)).astype(np.uint8), domains)


def test_bounds_ascend_and_only_the_last_is_complete(crowd: Records) -> None:
    found = steps_of(crowd, EFFORTS["balanced"])
    assert [one.kind for one in found[:2]] == ["neighbours", "simple"]
    assert {one.kind for one in found[2:]} == {"prices"}
    assert [one.gcp for one in found] == sorted(one.gcp for one in found)
    assert [one.complete for one in found] == [False] * (len(found) - 1) + [True]
    assert found[-1].rounds == len(found) - 2
    assert found[1].simple == found[-1].simple < found[-1].gcp
    assert [one.kind for one in steps_of(crowd, EFFORTS["fast"])] == ["neighbours", "simple"]


def test_no_bound_exceeds_what_prices_can_prove_and_the_longest_search_comes_close(crowd: Records) -> None:
    found = steps_of(crowd, replace(EFFORTS["best"], triples=False))[-1]
    assert found.relaxation is not None
    assert found.gcp <= found.relaxation <= 1.02 * found.gcp


def test_seconds_end_the_search_with_what_is_proven(crowd: Records) -> None:
    found = steps_of(crowd, EFFORTS["best"], seconds=1e-9)
    whole = steps_of(crowd, EFFORTS["fast"])
    assert [one.kind for one in found] == ["neighbours", "simple"]
    assert not found[-1].complete
    assert not found[-1].exact
    assert whole[0].gcp <= found[-1].gcp <= whole[1].gcp


def test_a_table_beyond_the_limit_is_bounded_by_neighbours(crowd: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 100)
    (found,) = steps_of(crowd, EFFORTS["balanced"])
    assert (found.kind, found.complete) == ("neighbours", True)
    assert found.method == "the distance of every record to its 4 nearest neighbours"


def test_searches_that_are_cut_short_give_less_and_say_so(crowd: Records) -> None:
    short = steps_of(crowd, BoundEffort(parts=0, steps=0, rounds=0, gain=1.0))[-1]
    whole = steps_of(crowd, EFFORTS["fast"])[-1]
    assert short.gcp < whole.gcp
    assert (short.exact, whole.exact) == (False, True)
    assert "bounded from below" in short.method


def test_any_number_of_threads_proves_the_same(crowd: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.kernels.threads.LEAST_OF_PART", 50)  # a small table too is divided among threads
    alone = steps_of(crowd, EFFORTS["balanced"])
    monkeypatch.setattr("sfumato.kernels.threads.thread_count", lambda: 3)
    assert steps_of(crowd, EFFORTS["balanced"]) == alone


def test_progress_reaches_every_record(crowd: Records) -> None:
    told: dict[str, int] = {}

    class Told(Progress):
        def began(self, name: str, total: int | None) -> None:
            self.name = name
            told[name] = 0
            self.total = total

        def advance(self, steps: int) -> None:
            told[self.name] += steps
            if self.name == "prices":  # how often they are tried out is not known before
                assert self.total is None
            else:
                assert self.total is not None
                assert told[self.name] <= self.total

    bounds = lower_bounds(
        crowd, asking(5), suppression=NOBODY, effort=EFFORTS["balanced"], seconds=None, progress=Told()
    )
    assert len(list(bounds)) > 2
    distinct = len(crowd.codes)
    assert told == {"neighbours": 900, "boxes": distinct, "prices": distinct}


# ---- the command line ----


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(1)
    table = pa.table({"age": generator.integers(18, 80, 200), "zip": generator.integers(0, 12, 200)})
    pa.csv.write_csv(table, "table.csv")
    return tmp_path


FLAGS = ("--quasi-identifiers", "age,zip", "-k", "5")


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(list(arguments)) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def test_the_command_tells_the_bound_and_the_ratio(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(told(capsys, "bound", "table.csv", *FLAGS, "--json"))
    assert set(found) == {
        "records", "distinct", "k", "suppression_cost", "gcp", "cost", "simple", "kind", "method", "exact",
        "complete", "rounds", "relaxation", "release", "version", "seconds",
    }  # fmt: skip
    assert (found["records"], found["k"], found["release"], found["complete"]) == (200, 5, None, True)
    text = told(capsys, "bound", "table.csv", *FLAGS)
    floor = math.floor(found["gcp"] * 10_000) / 100
    assert f"no release of these 200 records has an information loss (GCP) below {floor:.2f}%" in text
    made = json.loads(told(capsys, "anonymize", "table.csv", "-o", "release.csv", *FLAGS, "--json"))
    # The certificate says what is asked for.
    compared = json.loads(told(capsys, "bound", "table.csv", "--release", "release.csv", "--json"))
    ratio = made["gcp"] / found["gcp"]
    assert compared["release"] == {
        "gcp": pytest.approx(made["gcp"]),
        "cost": pytest.approx(made["gcp"]),
        "holds": True,
        "ratio": pytest.approx(ratio),
    }
    text = told(capsys, "bound", "table.csv", "--release", "release.csv")
    assert f"at most {math.ceil(ratio * 1000) / 1000:.3f} times the best possible" in text


def test_a_release_that_does_not_meet_the_policy_has_no_ratio(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "anonymize", "table.csv", "-o", "release.csv", "--quasi-identifiers", "age,zip", "-k", "2")
    arguments = ("bound", "table.csv", *FLAGS, "--release", "release.csv", "--effort", "fast")
    assert "it does not meet the policy" in told(capsys, *arguments)
    release = json.loads(told(capsys, *arguments, "--json"))["release"]
    assert (release["holds"], release["ratio"]) == (False, None)


def test_a_release_that_leaves_out_too_much_has_no_ratio(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "anonymize", "table.csv", "-o", "release.csv", *FLAGS)
    lines = Path("release.csv").read_text().splitlines(keepends=True)
    label = lines[-1]
    kept = [line for line in lines if line != label]
    Path("some.csv").write_text("".join(kept))
    arguments = ("bound", "table.csv", *FLAGS, "--release", "some.csv", "--effort", "fast", "--json")
    assert json.loads(told(capsys, *arguments))["release"]["holds"] is False
    allowed = json.loads(told(capsys, *arguments, "--max-suppressed", "0.5"))["release"]
    assert allowed["holds"] is True
    assert allowed["ratio"] >= 1


def test_a_bound_of_nothing_says_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("same.csv").write_text("a\n" + "1\n" * 5 + "2\n" * 5)
    Path("coarse.csv").write_text("a\n" + "*\n" * 10)
    arguments = ("bound", "same.csv", "--quasi-identifiers", "a", "-k", "5", "--release", "coarse.csv")
    assert "the bound is 0" in told(capsys, *arguments)
    assert json.loads(told(capsys, *arguments, "--json"))["release"] == {
        "gcp": 1.0,
        "cost": 1.0,
        "holds": True,
        "ratio": None,
    }


def test_an_interruption_tells_what_is_proven_by_then(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.cli.main import Stopped

    def stopped(*_: Any, **__: Any) -> Iterator[Bound]:
        yield Bound(0.12399, 0.12399, 0.1, "simple", True, False, 200, 150, 5)
        raise Stopped(2)

    monkeypatch.setattr("sfumato.api.proven_bounds", stopped)
    assert main(["bound", "table.csv", *FLAGS]) == 130
    out = capsys.readouterr().out
    assert "below 12.39%" in out  # never rounded up
    assert "interrupted: a longer search may prove more" in out


def test_what_cannot_be_bounded_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quasi = ("--quasi-identifiers", "age,zip")
    assert "k = 201 needs at least 201 records" in told(capsys, "bound", "table.csv", *quasi, "-k", "201", code=3)
    assert "unknown effort 'huge'" in told(capsys, "bound", "missing.csv", *FLAGS, "--effort", "huge", code=2)
    assert "above 0" in told(capsys, "bound", "missing.csv", *FLAGS, "--seconds", "0", code=2)
    assert "above 0" in told(capsys, "bound", "missing.csv", *FLAGS, "--seconds", "nan", code=2)
    assert "does not exist" in told(capsys, "bound", "missing.csv", *FLAGS, code=4)
    Path("policy.toml").write_text(
        '[columns.age]\nrole = "quasi-identifier"\n[columns.zip]\nrole = "sensitive"\n'
        '[[privacy.sensitive]]\nattribute = "zip"\nkind = "frequency"\nl = 2\n[method]\nname = "anatomy"\n'
    )
    refused = told(capsys, "bound", "table.csv", "--policy", "policy.toml", code=2)
    assert "anatomy releases the quasi-identifiers as they are" in refused


@pytest.mark.not_quick
@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_a_release_can_say_how_far_from_the_least_possible_it_is(
    effort: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("table.csv", *FLAGS, "--effort", effort)
    made = json.loads(told(capsys, "anonymize", *asked, "-o", "release.csv", "--bound", "--report", "r.html", "--json"))
    alone = json.loads(told(capsys, "bound", "table.csv", *FLAGS, "--effort", effort, "--json"))
    assert made["bound"] == math.floor(alone["gcp"] * 10_000) / 10_000
    assert 0 < made["bound"] <= made["gcp"]
    assert "bound" in made["private_figures"]
    assert "bound" not in json.loads(Path("release.csv.sfumato.json").read_text("utf-8"))
    ratio = math.ceil(made["gcp"] / made["bound"] * 10) / 10
    verdict = f"at most {ratio:g} times the least possible"
    assert "least possible" not in Path("r.html").read_text("utf-8")
    assert main(["anonymize", *asked, "-o", "release.csv", "--bound"]) == 0
    assert verdict in " ".join(capsys.readouterr().out.split())


def test_no_bound_is_asked_for_where_nothing_is_lost(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("table.csv", "--quasi-identifiers", "age", "--sensitive", "zip", "-l", "2", "--method", "anatomy")
    assert "has no bound" in told(capsys, "anonymize", *asked, "-o", "release.csv", "--bound", code=2)
    assert not Path("release.csv").exists()
