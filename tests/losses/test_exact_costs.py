"""Exact costs: the normalised certainty penalty, rounded once."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import quoted, taxonomy_rows

from sfumato.errors import UsageError
from sfumato.losses import exact_costs as costs_module
from sfumato.losses.exact_costs import CLIMB, DIFFERENCE, TABLE, UNIT, Costs, attribute_cost, exact_costs
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.taxonomies.derived_taxonomies import flat
from sfumato.taxonomies.taxonomy_file import read_taxonomy
from sfumato.taxonomies.widening import Calendar, Intervals, RoundingGrid, Snap


def every_cost(costs: Costs, attribute: int, size: int) -> dict[tuple[int, int], int]:
    return {
        (low, high): int(attribute_cost(costs.layout, costs.units, attribute, low, high))
        for low in range(size)
        for high in range(low, size)
    }


def is_monotone(found: dict[tuple[int, int], int], size: int) -> bool:
    """A box within another never costs more."""
    return all(
        found[low, high] <= found[max(low - 1, 0), high] and found[low, high] <= found[low, min(high + 1, size - 1)]
        for low, high in found
    )


def taxonomy_domain(rows: Sequence[Sequence[str]], folder: Path, has_null: bool) -> CategoricalDomain:
    path = folder / "taxonomy.csv"
    path.write_text("".join(",".join(map(quoted, row)) + "\n" for row in rows), "utf-8")
    return CategoricalDomain("place", read_taxonomy(path, "place"), has_null)


WEIGHTS = st.lists(st.floats(0.01, 100), min_size=2, max_size=2)


@given(
    values=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=12, unique=True),
    has_null=st.booleans(),
    weights=WEIGHTS,
)
def test_costs_of_numbers_are_their_penalty(values: list[int], has_null: bool, weights: list[float]) -> None:
    values.sort()
    domain = NumericDomain("age", np.array(values, np.int64), has_null)
    costs = exact_costs([NumericDomain("other", np.arange(3), False), domain], weights, 100)
    share = Fraction(weights[1]) / (Fraction(weights[0]) + Fraction(weights[1]))
    found = every_cost(costs, 1, domain.size)
    column = oracle.NumberColumn(values)
    assert costs.layout[1, 0] == DIFFERENCE
    for (low, high), units in found.items():
        if low == len(values):
            penalty = Fraction(0)
        elif high == len(values):
            penalty = Fraction(1)
            assert units == costs.layout[1, 3]
        else:
            penalty = column.penalty(f"[{values[low]}..{values[high]}]")
        assert abs(units - share * UNIT * penalty) <= 2
    assert is_monotone(found, domain.size)


@given(rows=taxonomy_rows(), has_null=st.booleans(), weights=WEIGHTS)
def test_costs_of_categories_are_their_penalty_in_both_forms(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], has_null: bool, weights: list[float]
) -> None:
    domain = taxonomy_domain(rows, tmp_path_factory.getbasetemp(), has_null)
    domains: list[Domain] = [domain, NumericDomain("other", np.arange(3), False)]
    share = Fraction(weights[0]) / (Fraction(weights[0]) + Fraction(weights[1]))
    column = oracle.CategoryColumn([row[:-1] for row in rows])
    tabled = exact_costs(domains, weights, 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs_module, "TABLE_LIMIT", 0)
        climbed = exact_costs(domains, weights, 100)
    assert (tabled.layout[0, 0], climbed.layout[0, 0]) == (TABLE, CLIMB)
    found = every_cost(tabled, 0, domain.size)
    assert found == every_cost(climbed, 0, domain.size)
    leaves = domain.taxonomy.leaves
    groups = {frozenset(row[0] for row in rows if name in row[1:]) for one in rows for name in one[1:]}
    for (low, high), units in found.items():
        if high == len(leaves):
            penalty = Fraction(low != high)
        elif low == high:
            penalty = Fraction(0)
        else:
            smallest = min((group for group in groups if set(leaves[low : high + 1]) <= group), key=len)
            penalty = Fraction(len(smallest), len(column.rows))
        assert abs(units - share * UNIT * penalty) <= 1
    assert is_monotone(found, domain.size)


WHOLE_SNAPS: list[Snap] = [
    Intervals((5,)),
    Intervals((5, 10, 40)),
    Intervals((1000,)),
    RoundingGrid(7),
    RoundingGrid(5000),
]
SNAPS: list[Snap] = [Intervals((0.5, 2.5)), Intervals((0.1,)), RoundingGrid(0.3), RoundingGrid(1e6)]
PERIODS: list[Snap] = [Calendar(("week",)), Calendar(("month", "year")), Calendar(("quarter", "decade"))]
WIDENED = st.one_of(
    st.tuples(st.lists(st.integers(-200, 200), min_size=1, max_size=12, unique=True), st.sampled_from(WHOLE_SNAPS)),
    st.tuples(st.lists(st.floats(-9, 9), min_size=1, max_size=12, unique=True), st.sampled_from(SNAPS)),
    st.tuples(st.lists(st.integers(-4_000, 4_000), min_size=1, max_size=12, unique=True), st.sampled_from(PERIODS)),
    st.tuples(
        st.lists(st.integers(2**63 - 60, 2**63 - 1), min_size=1, max_size=9, unique=True), st.just(WHOLE_SNAPS[1])
    ),
)


@given(widened=WIDENED, has_null=st.booleans(), weights=WEIGHTS)
def test_a_class_costs_what_it_shows(widened: tuple[list[float], Snap], has_null: bool, weights: list[float]) -> None:
    """Released labels, read by plain rules, have the penalty that methods reckon with, in every form of costs."""
    values, how = sorted(widened[0]), widened[1]
    kind = "date" if isinstance(how, Calendar) else "numeric"
    domain = NumericDomain("age", np.array(values), has_null, kind, how)
    domains: list[Domain] = [NumericDomain("other", np.arange(3), False), domain]
    share = Fraction(weights[1]) / (Fraction(weights[0]) + Fraction(weights[1]))
    costs = exact_costs(domains, weights, 100)
    found = every_cost(costs, 1, domain.size)
    assert costs.layout[1, 0] == (DIFFERENCE if isinstance(how, RoundingGrid) else TABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs_module, "TABLE_LIMIT", 0)
        assert found == every_cost(exact_costs(domains, weights, 100), 1, domain.size)
    boxes = np.array(list(found), np.uint32)
    released = domain.release(boxes[:, 0], boxes[:, 1])
    labels = [released.labels[int(entry)].as_py() for entry in released.index]
    days = [datetime.date(1970, 1, 1) + datetime.timedelta(days=day) for day in values] if kind == "date" else values
    column = oracle.NumberColumn(days)
    for label, units in zip(labels, found.values(), strict=True):
        assert abs(units - share * UNIT * column.penalty(label)) <= 2
    assert is_monotone(found, domain.size)


def test_null_with_anything_costs_everything_and_alone_nothing() -> None:
    domains: list[Domain] = [
        NumericDomain("age", np.array([1, 2, 9]), True),
        CategoricalDomain("city", flat(["a", "b"], "city"), True),
        CategoricalDomain("one", flat(["a"], "one"), True),
        NumericDomain("constant", np.array([4]), True),
    ]
    costs = exact_costs(domains, [1, 1, 1, 1], 10)
    for attribute, domain in enumerate(domains):
        null = domain.size - 1
        found = every_cost(costs, attribute, domain.size)
        assert found[null, null] == 0
        assert {found[low, null] for low in range(null)} == {UNIT // 4}
    assert costs.full == UNIT


def test_column_without_any_value_costs_nothing() -> None:
    domains: list[Domain] = [
        NumericDomain("age", np.empty(0, np.int64), True),
        CategoricalDomain("city", flat([], "city"), True),
    ]
    with np.errstate(all="raise"):
        costs = exact_costs(domains, [1, 1], 10)
    assert [every_cost(costs, attribute, 1) for attribute in (0, 1)] == [{(0, 0): 0}, {(0, 0): 0}]


def test_weights_are_shares() -> None:
    domains: list[Domain] = [NumericDomain(name, np.array([0, 1]), False) for name in "ab"]
    costs = exact_costs(domains, [3.0, 1.0], 10)
    assert costs.layout[:, 3].tolist() == [3 * UNIT // 4, UNIT // 4]
    assert exact_costs(domains, [300.0, 100.0], 10).units.tolist() == costs.units.tolist()


def test_costs_do_not_move_with_the_origin() -> None:
    values = np.array([0, 1, 3, 7, 12])
    one, other = (
        exact_costs([NumericDomain("age", values + shift, False)], [1.0], 10).units.tolist() for shift in (0, 10**9)
    )
    assert one == other


def test_more_records_than_64_bits_can_sum_are_refused() -> None:
    domains: list[Domain] = [NumericDomain("age", np.array([0, 1]), False)]
    assert exact_costs(domains, [1.0], 2**30 - 1).full == UNIT
    with pytest.raises(UsageError, match="too many for exact 64-bit costs"):
        exact_costs(domains, [1.0], 2**30)
