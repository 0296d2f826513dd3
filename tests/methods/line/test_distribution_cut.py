"""The best consecutive partition under requirements on distributions, against all partitions of small lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from requirement_definitions import (
    Asked,
    alpha,
    basic_likeness,
    disclosure,
    distinct,
    enhanced_likeness,
    entropy,
    equal_closeness,
    frequency,
    ordered_closeness,
    recursive,
    variance,
)

from sfumato.losses.exact_costs import Costs, attribute_cost, exact_costs
from sfumato.methods.line.diverse_cut import diverse_cuts
from sfumato.methods.method import Records, SensitiveValues
from sfumato.requirements import KAnonymity, Requirements
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.taxonomies.derived_taxonomies import flat

ASKED: dict[str, list[Asked]] = {
    "entropy": [entropy(2), entropy(3)],
    "recursive": [recursive(Fraction(3, 2), 2), recursive(Fraction(3), 3)],
    "variance": [variance(Fraction(1, 2)), variance(Fraction(2))],
    "closeness, equal": [equal_closeness(Fraction(1, 4)), equal_closeness(Fraction(1, 2))],
    "closeness, ordered": [ordered_closeness(Fraction(1, 5)), ordered_closeness(Fraction(1, 3))],
    "alpha-k": [alpha(Fraction(1, 2)), alpha(Fraction(2, 3))],
    "likeness": [basic_likeness(Fraction(1, 2)), basic_likeness(Fraction(1))],
    "likeness, enhanced": [enhanced_likeness(Fraction(1, 2)), enhanced_likeness(Fraction(2))],
    "disclosure": [disclosure(Fraction(1, 2)), disclosure(Fraction(1))],
}
ALWAYS = entropy(1)  # a measured requirement that every class meets, so that the windows are taken
CONJUNCTIONS: dict[str, list[Asked]] = {
    "frequency": [frequency(2), ALWAYS],
    "distinct": [distinct(2), ALWAYS],
    "frequency and distinct": [frequency(2), distinct(3), ALWAYS],
    "entropy and closeness": [entropy(2), equal_closeness(Fraction(1, 3))],
    "recursive, frequency and alpha": [recursive(Fraction(2), 2), frequency(2), alpha(Fraction(1, 2))],
    "variance and distinct": [variance(Fraction(1)), distinct(2)],
    "only k": [ALWAYS],
}


@dataclass(frozen=True)
class Line:
    """Records on a line with one sensitive value each (None is null), and what every run must meet."""

    codes: NDArray[np.uint8]
    values: Sequence[int | None]
    numbers: list[int]
    asked: list[Asked]
    k: int
    costs: Costs
    domains: list[Domain]

    def cuts(self) -> list[int]:
        n, null = len(self.values), len(self.numbers)
        codes = np.array([null if value is None else value for value in self.values], np.uint32)
        sensitive = {"s": SensitiveValues(codes, null, np.array(self.numbers, np.float64))}
        rows = np.arange(n, dtype=np.uint32)
        records = Records(self.codes, np.arange(n + 1), rows, self.domains, self.costs, sensitive)
        requirements = Requirements((KAnonymity(self.k), *(one.requirement for one in self.asked)))
        cuts, same_rows, at = diverse_cuts(records, requirements, np.arange(n), rows, rows)
        assert same_rows.tolist() == at.tolist() == rows.tolist()
        result: list[int] = cuts.tolist()
        return result

    @cached_property
    def reference(self) -> list[Fraction]:
        known = sum(value is not None for value in self.values)
        return [Fraction(self.values.count(value), known) for value in range(len(self.numbers))]

    def holds(self, begin: int, end: int) -> bool:
        counts = [self.values[begin:end].count(value) for value in range(len(self.numbers))]
        return end - begin >= self.k and all(one.holds(counts, self.reference, self.numbers) for one in self.asked)

    def cost(self, begin: int, end: int) -> int:
        """Every record pays for the box of its run."""
        box = self.codes[begin:end]
        low, high = box.min(axis=0).tolist(), box.max(axis=0).tolist()
        layout, units = self.costs.layout, self.costs.units
        return (end - begin) * sum(int(attribute_cost(layout, units, q, low[q], high[q])) for q in range(len(low)))

    def total(self, cuts: Sequence[int]) -> int:
        return sum(self.cost(begin, end) for begin, end in pairwise(cuts))

    def best_total(self) -> int | None:
        """Over all partitions into runs that hold; None where there is no such partition."""
        n = len(self.values)
        runs = {
            (begin, end): self.cost(begin, end)
            for begin in range(n)
            for end in range(begin + 1, n + 1)
            if self.holds(begin, end)
        }
        best = None
        for count in range(n):
            for inner in combinations(range(1, n), count):
                pieces = list(pairwise([0, *inner, n]))
                if all(piece in runs for piece in pieces):
                    total = sum(runs[piece] for piece in pieces)
                    best = total if best is None else min(best, total)
        return best


def random_line(generator: np.random.Generator, asked: list[Asked], n: int, k: int, *, likely: int = 5) -> Line:
    values: list[int | None] = generator.integers(0, generator.integers(1, likely), n).tolist()
    occurring = sorted({value for value in values if value is not None})
    values = [occurring.index(value) for value in values if value is not None]
    if generator.integers(0, 3) == 0 and n > len(occurring):
        spare = [place for place, value in enumerate(values) if values.count(value) > 1]
        if spare:
            values[int(generator.choice(spare))] = None
    numbers = sorted(generator.choice(np.arange(-6, 7), len(occurring), replace=False).tolist())
    domains: list[Domain] = [
        NumericDomain("a", np.arange(12), False),
        CategoricalDomain("b", flat(["x", "y", "z"], "b"), False),
    ]
    codes = np.column_stack([np.sort(generator.integers(0, 12, n)), generator.integers(0, 3, n)]).astype(np.uint8)
    return Line(codes, values, numbers, asked, k, exact_costs(domains, [1.0, 2.0], n), domains)


@pytest.mark.parametrize("kind", [*ASKED, *CONJUNCTIONS])
def test_cost_is_the_least_of_all_partitions(kind: str) -> None:
    generator = np.random.default_rng(len(kind))
    feasible, several = 0, 0
    for attempt in range(200):
        asked = [ASKED[kind][attempt % 2]] if kind in ASKED else CONJUNCTIONS[kind]
        line = random_line(generator, asked, int(generator.integers(1, 9)), int(generator.integers(1, 4)))
        if not line.holds(0, len(line.values)):
            continue
        cuts, expected = line.cuts(), line.best_total()
        assert cuts[0] == 0
        assert cuts[-1] == len(line.values)
        assert all(line.holds(begin, end) for begin, end in pairwise(cuts))
        assert line.total(cuts) == expected
        feasible += 1
        several += len(cuts) > 2
    assert feasible >= 10
    assert several >= 2


@pytest.mark.parametrize("kind", [*ASKED, *CONJUNCTIONS])
def test_a_short_reach_grows_until_there_is_a_partition(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.methods.line.distribution_cut.FIRST_REACH", 2)
    generator = np.random.default_rng(len(kind))
    feasible = 0
    for attempt in range(30):
        asked = [ASKED[kind][attempt % 2]] if kind in ASKED else CONJUNCTIONS[kind]
        line = random_line(generator, asked, int(generator.integers(20, 60)), 1, likely=7)
        if line.holds(0, len(line.values)):
            feasible += 1
            cuts = line.cuts()
            assert (cuts[0], cuts[-1]) == (0, len(line.values))
            assert all(line.holds(begin, end) for begin, end in pairwise(cuts))
    assert feasible >= 5


def test_a_reach_that_still_gains_is_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(3)
    for _ in range(20):
        line = random_line(generator, [entropy(2)], 40, 1)
        if not line.holds(0, 40):
            continue
        exact = line.total(line.cuts())
        with monkeypatch.context() as patch:
            patch.setattr("sfumato.methods.line.distribution_cut.FIRST_REACH", 2)
            patch.setattr(
                "sfumato.methods.line.distribution_cut.GAIN", 0
            )  # nothing is gain enough: stop at the first partition
            hasty = line.total(line.cuts())
            patch.setattr("sfumato.methods.line.distribution_cut.GAIN", 10**15)
            patient = line.total(line.cuts())
        assert exact <= patient <= hasty


def test_one_rare_value_keeps_the_line_in_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.methods.line.distribution_cut.FIRST_REACH", 4)
    domains: list[Domain] = [NumericDomain("a", np.arange(100), False)]
    codes = np.arange(100, dtype=np.uint8)[:, None]
    values = [0] * 70 + [1] + [0] * 29
    line = Line(codes, values, [0, 1], [disclosure(Fraction(5))], 1, exact_costs(domains, [1.0], 100), domains)
    assert line.cuts() == [0, 100]


def test_equal_records_are_cut_into_the_shortest_runs_that_hold() -> None:
    domains: list[Domain] = [NumericDomain("a", np.arange(1), False)]
    codes, values = np.zeros((12, 1), np.uint8), [place % 3 for place in range(12)]
    line = Line(codes, list(values), [0, 1, 2], [entropy(3)], 1, exact_costs(domains, [1.0], 12), domains)
    assert line.cuts() == [0, 3, 6, 9, 12]
    line = Line(codes, list(values), [0, 1, 2], [entropy(3)], 4, exact_costs(domains, [1.0], 12), domains)
    assert line.cuts() == [0, 6, 12]


def test_requirements_on_two_columns_hold_side_by_side() -> None:
    generator = np.random.default_rng(11)
    n, domains = 60, [NumericDomain("a", np.arange(60), False)]
    first, second = generator.integers(0, 3, n).astype(np.uint32), generator.integers(0, 9, n).astype(np.uint32)
    asked = (entropy(2).requirement, type(equal_closeness(Fraction(1, 2)).requirement)("t", 0.5))  # type: ignore[call-arg]
    sensitive = {
        "s": SensitiveValues(first, 3, np.full(3, np.nan)),
        "t": SensitiveValues(second, 9, np.arange(9.0)),
    }
    rows = np.arange(n, dtype=np.uint32)
    codes = np.arange(n, dtype=np.uint8)[:, None]
    records = Records(codes, np.arange(n + 1), rows, domains, exact_costs(domains, [1.0], n), sensitive)
    cuts, _, _ = diverse_cuts(records, Requirements((KAnonymity(2), *asked)), np.arange(n), rows, rows)
    reference = [Fraction(int(count), n) for count in np.bincount(second, minlength=9)]
    assert len(cuts) > 3
    for begin, end in pairwise(cuts.tolist()):
        assert end - begin >= 2
        assert entropy(2).holds(np.bincount(first[begin:end], minlength=3).tolist(), [], [])
        counts = np.bincount(second[begin:end], minlength=9).tolist()
        assert equal_closeness(Fraction(1, 2)).holds(counts, reference, [])
