"""Bounds under a limit on the share of a sensitive value, against all classes and all partitions of tiny tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from coded import asking, random_records
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import Case, cases
from test_bound import Optimum, costs_by_hand, ignored, never

import sfumato
from sfumato.bounds.bound import EFFORTS, Suppression, lower_bounds
from sfumato.bounds.box_pool import BoxPool
from sfumato.bounds.cheapest_boxes import nearest_boxes, search_cheapest
from sfumato.bounds.dual_prices import prove
from sfumato.bounds.price_ascent import climb
from sfumato.bounds.problem import BoundProblem, ShareLimit, share_limit
from sfumato.kernels.constants import NONE
from sfumato.methods.method import Records, SensitiveValues
from sfumato.progress import Progress
from sfumato.requirements import (
    AlphaAnonymity,
    DistinctDiversity,
    FrequencyDiversity,
    Joint,
    Requirement,
    Requirements,
)

VALUES = 3


def with_values(records: Records, generator: np.random.Generator, nulls: bool = False) -> Records:
    codes = generator.choice(VALUES + nulls, records.count, p=generator.dirichlet(np.ones(VALUES + nulls)))
    return replace(records, sensitive={"s": SensitiveValues(codes.astype(np.uint32), VALUES, np.zeros(VALUES))})


def asking_for(k: int, *parts: Requirement) -> Requirements:
    return Requirements((*asking(k).parts, *parts))


class Rows:
    """The rows of a tiny table: the distinct record and the position in the tree of each, and its sensitive value."""

    def __init__(self, records: Records, problem: BoundProblem) -> None:
        self.record = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
        codes = records.sensitive["s"].codes[records.rows].astype(np.int64)
        self.value = np.where(codes < VALUES, codes, NONE)
        place = {
            (tuple(problem.tree.codes[position].tolist()), int(problem.diversity.value[position])): position
            for position in range(problem.count)
        }
        self.position = np.array(
            [
                place[tuple(records.codes[record].tolist()), int(value) if problem.limits_shares else int(NONE)]
                for record, value in zip(self.record, self.value, strict=True)
            ]
        )
        self._cost = costs_by_hand(records)

    def cost(self, rows: Sequence[int]) -> int:
        return self._cost(sorted({int(self.record[row]) for row in rows}))

    def most_equal(self, rows: Sequence[int]) -> int:
        known = Counter(int(self.value[row]) for row in rows if self.value[row] != NONE)
        return max(known.values(), default=0)

    def known(self, rows: Sequence[int]) -> int:
        return sum(int(self.value[row] != NONE) for row in rows)

    def classes(self, k: int, l: int) -> Iterator[tuple[int, ...]]:
        """Every set of at least k rows with frequency l-diversity."""
        for size in range(k, len(self.record) + 1):
            for rows in combinations(range(len(self.record)), size):
                if self.most_equal(rows) * l <= self.known(rows):
                    yield rows


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_no_diverse_class_costs_less_than_its_prices(seed: int, nulls: bool) -> None:
    generator = np.random.default_rng(seed)
    records = with_values(random_records(generator, int(generator.integers(5, 11)), grids=True), generator, nulls)
    k, l = int(generator.integers(1, 6)), int(generator.integers(2, 4))
    problem = BoundProblem.of(records, asking_for(k, FrequencyDiversity("s", l)))
    if records.count < problem.k:
        return
    rows = Rows(records, problem)
    hoped = generator.integers(-records.costs.full, 2 * records.costs.full, problem.count)
    for parts in (0, 2, 1000):
        nearby = generator.integers(0, records.costs.full, problem.count)
        proven = prove(problem, hoped, parts, ignored, never, nearby).prices
        if parts == 1000:
            assert (prove(problem, hoped, parts, ignored, never).prices == proven).all()
        assert (proven <= hoped).all()
        assert (proven == hoped)[hoped <= 0].all()
        for members in rows.classes(k, l):
            assert int(proven[rows.position[list(members)]].sum()) <= len(members) * rows.cost(members)
    assert (prove(problem, proven, 1000, ignored, never).prices == proven).all()  # what holds already stays


def least_slack_by_hand(
    rows: Rows, problem: BoundProblem, own: int, prices: NDArray[np.int64], rank: NDArray[np.int64], base: int
) -> int:
    """Over all sets of k rows with the own ones in which no value is too frequent."""
    k, copies, found = problem.k, int(problem.copies[own]), []
    counted = np.where(rank < rank[own], prices - base, 0)
    for members in combinations(range(len(rows.record)), k):
        places = rows.position[list(members)]
        equal = int((places == own).sum())
        if equal and rows.most_equal(members) <= problem.diversity.most:
            left = k * (rows.cost(members) - base) - int(counted[places].sum())
            found.append(left // equal * copies)
    return min(found)


@pytest.mark.parametrize("seed", range(40))
def test_the_search_finds_the_least_slack_beside_different_values(seed: int) -> None:
    generator = np.random.default_rng(seed)
    records = with_values(random_records(generator, 9, grids=True), generator)
    l = int(generator.integers(2, 4))
    k = l * int(generator.integers(1, 3 if l == 2 else 2))
    problem = BoundProblem.of(records, asking_for(k, FrequencyDiversity("s", l)))
    if problem.k != k or len(np.unique(records.sensitive["s"].codes)) < l:
        return
    rows, full, count = Rows(records, problem), records.costs.full, problem.count
    base = -int(generator.integers(0, full))
    in_order, rank = np.sort(generator.integers(base, full, count)), generator.permutation(count)
    prices = in_order[rank]
    allowed = [
        own
        for own in range(count)
        if any(
            own in rows.position[list(members)] and rows.most_equal(members) <= problem.diversity.most
            for members in combinations(range(records.count), k)
        )
    ]
    targets = np.array(allowed, np.int64)
    found = problem.least_slacks(targets, prices, rank, np.full(len(targets), 3 * k * full), 10_000, base)
    for place, own in enumerate(allowed):
        expected = least_slack_by_hand(rows, problem, own, prices, rank, base)
        assert found.slack[place] == found.box_slack[place] == expected


@pytest.mark.parametrize("seed", range(8))
def test_prices_that_climbed_are_feasible_for_the_pool(seed: int) -> None:
    generator = np.random.default_rng(seed)
    records = with_values(random_records(generator, 50, [0, 2, 3]), generator)
    counts = np.bincount(records.sensitive["s"].codes)
    if counts.max() * 2 > counts.sum():
        return
    problem = BoundProblem.of(records, asking_for(3, FrequencyDiversity("s", 2)))
    cheapest = nearest_boxes(problem, ignored)
    search_cheapest(problem, cheapest, 1000, ignored, never)
    pool = BoxPool.of(problem, cheapest.low, cheapest.high)
    everybody, start = np.ones(problem.count, np.bool_), cheapest.least.astype(np.float64)
    reached = climb(
        problem, pool, start, everybody, stride=0.1, steps=100, highest=1e15, trust=np.inf, out_of_time=never
    )
    most, value = problem.diversity.most, problem.diversity.value
    for box, (first, last) in enumerate(zip(pool.starts[:-1], pool.starts[1:], strict=True)):
        dearest: list[float] = []
        for one in np.unique(value[pool.members[first:last]]):
            inside = pool.members[first:last][value[pool.members[first:last]] == one]
            dearest += sorted(np.repeat(reached[inside], problem.tree.weights[inside]).tolist())[-most:]
        assert sum(sorted(dearest)[-3:]) <= 3 * pool.cost[box] + 1e-6 * records.costs.full
    assert (reached * problem.tree.weights).sum() >= problem.sum(cheapest.least)


# ---- against all partitions ----


@st.composite
def diverse(draw: st.DrawFn) -> tuple[Case, list[str | None], str]:
    case = draw(cases(rows=8, columns=2, others=False))
    values = st.sampled_from(draw(st.sampled_from([["a", "b"], ["a", "b", "c"], ["a", "b", "c", None]])))
    column = draw(st.lists(values, min_size=case.table.num_rows, max_size=case.table.num_rows))
    return case, column, draw(st.sampled_from(["frequency(s, l=2)", "frequency(s, l=3)", "alpha-k(s, alpha=0.5)"]))


def allowing(requirement: str) -> Any:
    share = Fraction(1, 3) if "l=3" in requirement else Fraction(1, 2)

    def allowed(rows: Sequence[oracle.Row]) -> bool:
        known = Counter(row["s"] for row in rows if row["s"] is not None)
        return max(known.values(), default=0) <= share * sum(known.values())

    return allowed


@pytest.mark.not_quick
@settings(max_examples=examples(1))
@given(asked=diverse(), left_out=st.integers(0, 2))
def test_no_partition_costs_less_than_the_bound(
    asked: tuple[Case, list[str | None], str], left_out: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    case, column, requirement = asked
    table = case.table.append_column("s", pa.array(column, pa.string()))
    rows, allowed = table.to_pylist(), allowing(requirement)
    left_out = min(left_out, table.num_rows - 1)
    if not allowed(rows):
        return
    flags = {**case.settings(tmp_path_factory.mktemp("t")), "sensitive": ["s"], "require": [requirement]}
    found = sfumato.bound(table, effort="best", max_suppressed=left_out / table.num_rows, **flags)
    best = Optimum(rows, case.columns, case.weights, case.k, allowed)
    assert found.simple <= found.gcp <= best.gcp(most_left_out=left_out)


def bound_of(ages: Sequence[int], values: str, *, k: int = 1, require: str) -> float:
    table = pa.table({"age": ages, "s": list(values)})
    flags: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["s"], "effort": "best"}
    return float(sfumato.bound(table, k=k, require=[require], **flags).gcp)


def test_equal_values_do_not_share_a_class() -> None:
    # Each of the two far records needs an "a" of its own; different values alone would let them share one.
    ages, values = [0, 0, 0, 0, 8, 8], "aaabbb"
    assert bound_of(ages, values, require="distinct(s, l=2)") == pytest.approx(2 / 6, rel=1e-3)
    assert bound_of(ages, values, require="frequency(s, l=2)") == pytest.approx(4 / 6, rel=1e-3)
    assert bound_of(ages, values, require="alpha-k(s, alpha=0.5)") == pytest.approx(4 / 6, rel=1e-3)


def test_scarce_values_have_prices_below_zero() -> None:
    # The one "b" in the middle cannot serve all three "a" around it: the others go to those far away.
    ages, values = [4, 5, 6, 5, 0, 10], "aaabbb"
    columns: dict[str, oracle.Column] = {"age": oracle.NumberColumn(ages)}
    rows = [{"age": age, "s": value} for age, value in zip(ages, values, strict=True)]
    best = Optimum(rows, columns, {}, 2, allowing("l=2")).gcp()
    assert bound_of(ages, values, require="frequency(s, l=2)") == pytest.approx(float(best), rel=1e-2)


@pytest.mark.parametrize("l", [2, 3])
def test_a_limit_on_shares_proves_more_than_different_values(l: int) -> None:
    generator = np.random.default_rng(l)
    table = pa.table(
        {
            "a": generator.integers(0, 30, 200),
            "b": generator.integers(0, 5, 200),
            "s": generator.choice(list("uvwxyz"), 200, p=[1 / 3, 0.2, 0.2, 0.1, 0.1, 0.2 / 3]),
        }
    )
    counts = Counter(table.column("s").to_pylist())
    assert max(counts.values()) * l <= 200
    flags: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "k": 1}
    different = sfumato.bound(table, require=[f"distinct(s, l={l})"], **flags)
    shares = sfumato.bound(table, require=[f"frequency(s, l={l})"], **flags)
    release = sfumato.anonymize(table, require=[f"frequency(s, l={l})"], effort="balanced", **flags)
    assert 1.2 * different.gcp < shares.gcp <= release.losses.gcp
    assert shares.distinct == different.distinct


# ---- what follows from requirements ----


def test_limits_follow_from_requirements() -> None:
    records = with_values(random_records(np.random.default_rng(1), 30), np.random.default_rng(1))
    even = SensitiveValues(np.arange(30, dtype=np.uint32) % 3, 3, np.zeros(3))
    records = replace(records, sensitive={**records.sensitive, "t": even})
    for parts, k, expected in (
        ((FrequencyDiversity("s", 3),), 3, ShareLimit("s", 1)),
        ((FrequencyDiversity("s", 3),), 4, ShareLimit("s", 2)),
        ((FrequencyDiversity("s", 3),), 12, ShareLimit("s", 4)),
        ((FrequencyDiversity("s", 5),), 3, ShareLimit("s", 1)),
        ((AlphaAnonymity("s", 0.4),), 5, ShareLimit("s", 2)),
        ((AlphaAnonymity("s", 0.5),), 5, ShareLimit("s", 3)),
        ((AlphaAnonymity("s", 1.0),), 5, None),
        ((FrequencyDiversity("s", 2), FrequencyDiversity("t", 3)), 6, ShareLimit("t", 2)),
        ((FrequencyDiversity("t", 2), FrequencyDiversity("s", 2)), 6, ShareLimit("s", 3)),  # of them the more frequent
        ((Joint(FrequencyDiversity("s", 2)),), 6, ShareLimit("s", 3)),
        ((DistinctDiversity("s", 3),), 6, None),
        ((FrequencyDiversity("s", 1),), 6, None),
    ):
        assert share_limit(asking_for(k, *parts), records, k) == expected
        counted = replace(records, persons=np.arange(30, dtype=np.uint32))
        assert share_limit(asking_for(k, *parts), counted, k) is None


def test_any_number_of_threads_proves_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = SensitiveValues(np.arange(300, dtype=np.uint32) % VALUES, VALUES, np.zeros(VALUES))
    records = replace(random_records(np.random.default_rng(8), 300, [0, 2, 4]), sensitive={"s": values})
    wanted = asking_for(2, FrequencyDiversity("s", 2))

    def steps() -> list[Any]:
        return list(
            lower_bounds(
                records,
                wanted,
                suppression=Suppression(),
                effort=EFFORTS["balanced"],
                seconds=None,
                progress=Progress(),
            )
        )

    monkeypatch.setattr("sfumato.kernels.threads.LEAST_OF_PART", 50)  # a small table too is divided among threads
    alone = steps()
    monkeypatch.setattr("sfumato.kernels.threads.thread_count", lambda: 3)
    assert steps() == alone
