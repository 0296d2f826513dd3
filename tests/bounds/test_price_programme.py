"""The linear programme of prices, against the simplex method of HiGHS."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.bounds.price_programme import PriceProgramme, RecordSets

COUNT = 40
highspy = pytest.importorskip("highspy")


def never() -> bool:
    return False


def random_sets(generator: np.random.Generator, count: int) -> RecordSets:
    """Return sets of five copies of up to five records, so many that every record is in one."""
    members, shares, starts = [], [], [0]
    for number in range(count):
        drawn = np.append(generator.integers(0, COUNT, 4), number % COUNT)
        record, copies = np.unique(drawn, return_counts=True)
        members.append(record)
        shares.append(copies / 5)
        starts.append(starts[-1] + len(record))
    cost = generator.integers(1, 1000, count).astype(np.float64)
    return RecordSets(
        np.array(starts), np.concatenate(members).astype(np.int32), np.concatenate(shares).astype(np.float32), cost
    )


def largest_sum(weights: NDArray[np.int64], highest: float, sets: RecordSets) -> float:
    """Return the optimum, found by a solver that shares nothing with the programme."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    prices = [solver.addVariable(0.0, highest, -float(weight)) for weight in weights]
    for c in range(len(sets)):
        inside = range(sets.starts[c], sets.starts[c + 1])
        solver.addConstr(sum(float(sets.shares[at]) * prices[sets.members[at]] for at in inside) <= sets.cost[c])
    solver.run()
    return -float(solver.getInfo().objective_function_value)


def programme_of(weights: NDArray[np.int64], highest: float, sets: RecordSets) -> PriceProgramme:
    return PriceProgramme(weights, np.zeros(COUNT), np.full(COUNT, highest), sets)


def settled(programme: PriceProgramme) -> NDArray[np.float64]:
    for _ in range(30):
        prices, _ = programme.raised(2000, never)
    return prices


@pytest.mark.parametrize("seed", range(4))
def test_prices_reach_the_optimum_also_when_sets_are_added(seed: int) -> None:
    generator = np.random.default_rng(seed)
    weights, first, more = generator.integers(1, 4, COUNT), random_sets(generator, 60), random_sets(generator, 60)
    programme = programme_of(weights, 5000.0, first)
    prices = settled(programme)
    assert (prices * weights).sum() == pytest.approx(largest_sum(weights, 5000.0, first), rel=1e-3)
    programme.add(more)
    prices = settled(programme)
    both = first.with_sets(more)
    optimum = largest_sum(weights, 5000.0, both)
    assert (prices * weights).sum() == pytest.approx(optimum, rel=1e-3)
    paid = np.bincount(both.set_of, both.shares * prices[both.members], len(both))
    assert (paid <= both.cost + 0.01 * both.cost.mean()).all()
    programme.forget_idle()
    assert (settled(programme) * weights).sum() == pytest.approx(optimum, rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_limit_is_never_below_the_optimum_and_meets_it_in_the_end(seed: int) -> None:
    generator = np.random.default_rng(seed)
    weights, sets = generator.integers(1, 4, COUNT), random_sets(generator, 120)
    optimum = largest_sum(weights, 1e9, sets)
    programme = programme_of(weights, 1e9, sets)
    alone = np.full(COUNT, 5.0 * sets.cost.max())
    for _ in range(30):
        programme.raised(200, never)
        assert programme.limit(alone) >= optimum * (1 - 1e-6)
    assert programme.limit(alone) == pytest.approx(optimum, rel=1e-2)


def test_no_price_exceeds_what_is_allowed() -> None:
    generator = np.random.default_rng(1)
    weights, sets = generator.integers(1, 4, COUNT), random_sets(generator, 60)
    programme = programme_of(weights, 1e9, sets)
    programme.allow(np.full(COUNT, 3.0))
    assert settled(programme).max() <= 3.0
