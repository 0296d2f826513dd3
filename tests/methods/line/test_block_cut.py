"""The best partition of a line of blocks, against all partitions of small lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.losses.exact_costs import Costs, attribute_cost, exact_costs
from sfumato.methods.line.block_cut import best_runs, nearest_starts
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.taxonomies.derived_taxonomies import flat, prefix


@dataclass(frozen=True)
class Line:
    """Records on a line, cut into blocks, and what every run of blocks must have."""

    codes: NDArray[np.uint8]
    at: NDArray[np.uint32]
    starts: list[int]
    values: NDArray[np.uint32]
    distinct: list[int]
    least_size: int
    least_distinct: list[int]
    costs: Costs

    def cuts(self) -> list[int]:
        arrays = [np.array(one, np.int64) for one in (self.starts, self.distinct, self.least_distinct)]
        starts, distinct, least_distinct = arrays
        found = best_runs(
            self.codes, self.at, starts, self.values, distinct, self.least_size, least_distinct, self.costs
        )
        assert found.dtype == np.int64
        result: list[int] = found.tolist()
        return result

    def satisfies(self, begin: int, end: int) -> bool:
        """Whether the places begin to end - 1 may be a class, by counting."""
        if end - begin < self.least_size:
            return False
        for line, null, least in zip(self.values.tolist(), self.distinct, self.least_distinct, strict=True):
            if len(set(line[begin:end]) - {null}) < least:
                return False
        return True

    def cost(self, cuts: Sequence[int]) -> int:
        """Every record pays for the box of its run."""
        total = 0
        for begin, end in pairwise(cuts):
            box = self.codes[self.at[begin:end]]
            low, high = box.min(axis=0).tolist(), box.max(axis=0).tolist()
            for q in range(len(low)):
                total += (end - begin) * int(attribute_cost(self.costs.layout, self.costs.units, q, low[q], high[q]))
        return total

    def best(self) -> list[int] | None:
        """Of all partitions the cheapest; of equally cheap ones that with the shortest last run, and so on."""
        inner = self.starts[1:-1]
        allowed = [
            [0, *chosen, self.starts[-1]] for count in range(len(inner) + 1) for chosen in combinations(inner, count)
        ]
        allowed = [cuts for cuts in allowed if all(self.satisfies(begin, end) for begin, end in pairwise(cuts))]
        return min(allowed, key=lambda cuts: (self.cost(cuts), [-cut for cut in reversed(cuts)]), default=None)


def random_line(generator: np.random.Generator) -> Line:
    """Up to nine blocks of one to four records, none to two sensitive attributes with nulls."""
    makers: list[Domain] = [
        NumericDomain("a", np.unique(generator.integers(-50, 50, 6)), bool(generator.integers(2))),
        CategoricalDomain("b", flat(["x", "y", "z"], "b"), bool(generator.integers(2))),
        CategoricalDomain("c", prefix(["aa", "ab", "ba", "bb", "bc"], [1], "c"), bool(generator.integers(2))),
    ]
    domains = [makers[place] for place in generator.permutation(3)[: generator.integers(1, 4)]]
    longest = int(generator.choice([1, 1, 4]))
    sizes = generator.integers(1, longest + 1, generator.integers(1, 10))
    places = int(sizes.sum())
    records = int(generator.integers(1, places + 1))
    codes = np.stack([generator.integers(0, domain.size, records) for domain in domains], axis=1).astype(np.uint8)
    distinct = generator.integers(1, 5, generator.integers(0, 3))
    values = [generator.integers(0, null + 1, places) for null in distinct]
    return Line(
        codes=codes,
        at=generator.integers(0, records, places).astype(np.uint32),
        starts=np.append(0, np.cumsum(sizes)).tolist(),
        values=np.array(values, np.uint32).reshape(len(distinct), places),
        distinct=distinct.tolist(),
        least_size=int(generator.integers(1, 6)),
        least_distinct=generator.integers(1, 4, len(distinct)).tolist(),
        costs=exact_costs(domains, generator.uniform(0.1, 3, len(domains)).tolist(), places),
    )


@pytest.mark.parametrize("seed", range(4))
def test_runs_are_the_optimum_over_all_partitions_and_ties_go_to_the_shorter_run(seed: int) -> None:
    generator = np.random.default_rng(seed)
    feasible = several = 0
    while feasible < 250:
        line = random_line(generator)
        expected = line.best()
        if expected is None:
            continue
        feasible += 1
        several += len(expected) > 2
        found = line.cuts()
        assert line.cost(found) == line.cost(expected)
        assert found == expected
    assert several > 80


def test_nearest_start_is_the_last_one_with_which_a_run_may_begin() -> None:
    generator = np.random.default_rng(7)
    for _ in range(500):
        line = random_line(generator)
        starts = line.starts
        arrays = [np.array(one, np.int64) for one in (starts, line.distinct, line.least_distinct)]
        found = nearest_starts(arrays[0], line.values, arrays[1], line.least_size, arrays[2])
        expected = [
            max((begin for begin in range(end + 1) if line.satisfies(starts[begin], starts[end + 1])), default=-1)
            for end in range(len(starts) - 1)
        ]
        assert found.tolist() == expected


def one_attribute(codes: Sequence[int], values: Sequence[int], null: int, least_size: int, least: int) -> Line:
    domain = NumericDomain("a", np.arange(max(codes) + 1), False)
    return Line(
        codes=np.array(codes, np.uint8)[:, None],
        at=np.arange(len(codes), dtype=np.uint32),
        starts=list(range(len(codes) + 1)),
        values=np.array([values], np.uint32),
        distinct=[null],
        least_size=least_size,
        least_distinct=[least],
        costs=exact_costs([domain], [1.0], len(codes)),
    )


def test_a_thousand_equal_records_are_cut_into_the_shortest_runs() -> None:
    line = one_attribute([0] * 1000, [place % 2 for place in range(1000)], 2, 1, 2)
    assert line.cuts() == list(range(0, 1001, 2))
    assert one_attribute([0] * 1000, [0] * 1000, 1, 7, 1).cuts() == [0, *range(13, 1001, 7)]


def test_one_rare_value_keeps_the_line_in_one_run() -> None:
    line = one_attribute([place // 100 for place in range(1000)], [0] * 500 + [1] + [0] * 499, 2, 1, 2)
    assert line.cuts() == [0, 1000]


def test_null_is_none_of_the_different_values() -> None:
    null = 2
    assert one_attribute([0, 1, 2, 3], [0, 1, 0, 1], null, 1, 2).cuts() == [0, 2, 4]
    assert one_attribute([0, 1, 2, 3], [0, null, 0, 1], null, 1, 2).cuts() == [0, 4]
    assert one_attribute([0, 1, 2, 3], [0, null, null, 1], null, 1, 2).cuts() == [0, 4]


def test_a_block_is_never_cut() -> None:
    line = one_attribute([0, 9, 0, 9, 0, 9], [0] * 6, 1, 1, 1)
    blocks = Line(**{**line.__dict__, "starts": [0, 2, 6]})
    assert line.cuts() == [0, 1, 2, 3, 4, 5, 6]
    assert blocks.cuts() == [0, 2, 6]
