"""The gain tree against a slow version of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from coded import groups_of, random_records, records_of

from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods import methods
from sfumato.methods.method import Records
from sfumato.methods.trees import gain_tree as module
from sfumato.methods.trees.gain_tree import GainTree, gain_order
from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain
from sfumato.tables.coding.sorting import sort_numbers


class Slow:
    """The tree as it is written down, on lists."""

    def __init__(self, records: Records, least: int, block: int = 1 << 14) -> None:
        self.records, self.least, self.block = records, least, block
        self.weights = np.diff(records.starts).tolist()
        self.rows = records.codes.astype(int).tolist()

    def cost(self, part: Sequence[int]) -> int:
        costs, total = self.records.costs, 0
        for q in range(len(self.rows[0])):
            codes = [self.rows[record][q] for record in part]
            total += int(attribute_cost(costs.layout, costs.units, q, min(codes), max(codes)))
        return total * self.weight(part)

    def weight(self, part: Sequence[int]) -> int:
        return sum(self.weights[record] for record in part)

    def order(self, part: list[int]) -> list[int]:
        step = -(-len(part) // self.block) if len(part) > self.block else 1
        some, least = part[::step], max(self.least // step, 1)  # what is looked at in a large part
        best: tuple[int, list[int], list[int]] | None = None
        for q, domain in enumerate(self.records.domains):
            codes = sorted({self.rows[record][q] for record in some})
            for place, code in enumerate(codes[:-1]):
                alone = isinstance(domain, CategoricalDomain) and place > 0
                for test in ([lambda c, code=code: c == code] if alone else []) + [lambda c, code=code: c <= code]:
                    one = [record for record in some if test(self.rows[record][q])]
                    other = [record for record in some if not test(self.rows[record][q])]
                    if min(self.weight(one), self.weight(other)) < least:
                        continue
                    cost = self.cost(one) + self.cost(other)
                    if best is None or cost < best[0]:
                        first = [record for record in part if test(self.rows[record][q])]
                        best = cost, first, [record for record in part if not test(self.rows[record][q])]
        return part if best is None else self.order(best[1]) + self.order(best[2])


def order_of(records: Records, least: int) -> list[int]:
    categorical = np.array([isinstance(domain, CategoricalDomain) for domain in records.domains])
    weights = np.diff(records.starts)
    found: list[int] = gain_order(records.codes, weights, categorical, records.costs, least).tolist()
    return found


@pytest.mark.parametrize("block", [1 << 14, 5])
def test_leaves_stand_in_the_order_of_the_slow_version(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", block)
    generator = np.random.default_rng(block)
    for _ in range(60):
        records = random_records(generator, int(generator.integers(1, 60)))
        least = int(generator.integers(1, 6))
        assert order_of(records, least) == Slow(records, least, block).order(list(range(len(records.codes))))


def test_codes_far_apart_are_sorted_instead_of_counted() -> None:
    values = np.array([0, 1, 2, 3, 40_000, 40_001, 59_998, 59_999], np.uint16)
    domain = NumericDomain("n", np.arange(60_000), False)
    records = records_of(values[:, None], [domain])
    assert order_of(records, 2) == Slow(records, 2).order(list(range(8)))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50, 1000])
def test_numbers_are_sorted(count: int) -> None:
    numbers = np.random.default_rng(count).integers(0, 100, count).astype(np.uint64)
    expected = np.sort(numbers)
    sort_numbers(numbers)
    assert (numbers == expected).all()


def test_classes_hold_and_lose_no_more_than_the_leaves() -> None:
    generator = np.random.default_rng(7)
    for _ in range(30):
        records = random_records(generator, int(generator.integers(4, 80)))
        k = int(generator.integers(1, min(6, records.count + 1)))
        groups = groups_of(GainTree(), records, k)
        assert min(group.total() for group in groups) >= k
        assert max(group.total() for group in groups) < 2 * k or len(groups) == 1


def test_it_is_known_by_name() -> None:
    assert isinstance(methods()["gain-tree"], GainTree)
