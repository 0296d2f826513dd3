"""Cell peeling against a slow version of it, and its levels against what they are said to be."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from coded import asking, groups_of, random_records, records_of

from sfumato.losses.exact_costs import attribute_cost, total_cost
from sfumato.methods import methods
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice import cell_peeling as module
from sfumato.methods.lattice import level_choices
from sfumato.methods.lattice.cell_peeling import CellPeeling, peel
from sfumato.methods.lattice.level_choices import Levels, choices_of, levels_of
from sfumato.methods.method import Records
from sfumato.methods.search.mutable_classes import SearchPart, SearchRules
from sfumato.methods.search.shortfall import shortfall_tests
from sfumato.progress import Progress
from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain


def spans(levels: Levels, q: int, size: int) -> list[list[int]]:
    """The group of each code, level by level."""
    return [levels.group[start : start + size].tolist() for start in levels.start[q, : levels.depth[q]]]


def test_levels_go_from_single_values_to_the_whole_and_each_holds_the_one_below() -> None:
    generator = np.random.default_rng(1)
    for _ in range(40):
        records = random_records(generator, 30)
        levels = levels_of(records.domains, records.costs)
        for q, domain in enumerate(records.domains):
            found = spans(levels, q, domain.size)
            assert found[0] == list(range(domain.size))
            assert set(found[-1]) == {0}
            for fine, coarse in pairwise(found):
                assert len(set(coarse)) < len(set(fine))
                assert len(set(zip(fine, coarse, strict=True))) == len(set(fine))  # no group is torn apart
            for start, groups in zip(levels.start[q], found, strict=False):
                for code, group in enumerate(groups):
                    last = max(other for other in range(domain.size) if groups[other] == group)
                    cost = attribute_cost(records.costs.layout, records.costs.units, q, group, last)
                    assert levels.cost[start + code] == cost


def test_levels_of_a_category_are_those_of_its_taxonomy_and_null_joins_at_the_last() -> None:
    records = random_records(np.random.default_rng(4), 60)
    seen = 0
    for q, domain in enumerate(records.domains):
        if not isinstance(domain, CategoricalDomain):
            continue
        found = spans(levels_of(records.domains, records.costs), q, domain.size)
        tree = domain.taxonomy
        allowed = {(int(tree.first[node]), int(tree.last[node])) for node in range(len(tree.first))}
        for groups in found[:-1]:
            for group in set(groups):
                codes = [code for code, one in enumerate(groups) if one == group]
                if domain.has_null and codes == [domain.size - 1]:
                    continue
                assert (codes[0], codes[-1]) in allowed
                seen += 1
    assert seen > 5


def test_numbers_are_banded_by_their_values() -> None:
    domain = NumericDomain("n", np.array([0, 1, 2, 3, 32, 33, 63, 64]), False)
    records = records_of(np.arange(8, dtype=np.uint8)[:, None], [domain])
    halves = spans(levels_of([domain], records.costs), 0, 8)[-2]
    assert halves == [0, 0, 0, 0, 4, 4, 4, 4]


def slow_choices(records: Records, weights: list[int], levels: Levels) -> list[tuple[float, int, int, tuple[int, ...]]]:
    """Mean, least and greatest cost of a record's cell, and the levels, for every choice."""
    rows, found = records.codes.astype(int).tolist(), []
    kept = []
    for q, depth in enumerate(levels.depth):
        groups = [len({int(levels.group[levels.start[q, one] + row[q]]) for row in rows}) for one in range(depth)]
        kept.append([one for one in range(depth) if one == 0 or groups[one] < groups[one - 1]])
    for choice in product(*kept):
        costs = [sum(int(levels.cost[levels.start[q, one] + row[q]]) for q, one in enumerate(choice)) for row in rows]
        mean = sum(cost * weight for cost, weight in zip(costs, weights, strict=True)) / sum(weights)
        lowest = sum(
            min(int(levels.cost[levels.start[q, one] + row[q]]) for row in rows) for q, one in enumerate(choice)
        )
        highest = sum(
            max(int(levels.cost[levels.start[q, one] + row[q]]) for row in rows) for q, one in enumerate(choice)
        )
        found.append((mean, lowest, highest, choice))
    return found


def slow_peel(
    records: Records, k: int, weights: list[int], levels: Levels, choices: list[tuple[int, ...]], top: int
) -> list[int]:
    """The class of each record: cells in dictionaries, looked at in the order of bands and choices."""
    rows = records.codes.astype(int).tolist()
    owner, made, above = [-1] * len(rows), 0, -1
    for band in range(1, module.BANDS + 1):
        limit = top if band == module.BANDS else int(top * (band / module.BANDS) ** 2)
        for choice in choices:
            cells: dict[tuple[int, ...], list[int]] = {}
            for record, row in enumerate(rows):
                places = [int(levels.start[q, one]) + row[q] for q, one in enumerate(choice)]
                if owner[record] < 0 and above < sum(int(levels.cost[place]) for place in places) <= limit:
                    cells.setdefault(tuple(int(levels.group[place]) for place in places), []).append(record)
            for members in cells.values():
                if sum(weights[record] for record in members) >= k:
                    for record in members:
                        owner[record] = made
                    made += 1
        above = limit
    return owner


def test_cells_are_taken_in_the_order_of_the_slow_version() -> None:
    generator = np.random.default_rng(7)
    several = 0
    for _ in range(30):
        records = random_records(generator, int(generator.integers(3, 70)))
        k = int(generator.integers(1, 7))
        weights = np.diff(records.starts)
        levels = levels_of(records.domains, records.costs)
        part = SearchPart(records.codes.astype(np.int64), np.empty((0, 0), np.uint32))
        choices, least, most = choices_of(part.codes, weights, levels, k)
        told = sorted(slow_choices(records, weights.tolist(), levels), key=lambda one: one[0])
        plain = [tuple(level for _, level in sorted(choice)) for choice in choices.tolist()]
        assert sorted(plain) == sorted(one[3] for one in told)
        by_levels = {one[3]: one for one in told}
        means = [by_levels[choice][0] for choice in plain]
        assert means == pytest.approx(sorted(means))
        assert [(low, high) for low, high in zip(least.tolist(), most.tolist(), strict=True)] == [
            by_levels[choice][1:3] for choice in plain
        ]
        tests = Counting(records, asking(k)).conjunction()
        asked = SearchRules(records.costs.layout, records.costs.units, k)
        found = peel(part, weights, levels, asked, shortfall_tests(0, tests)).tolist()
        assert found == slow_peel(records, k, weights.tolist(), levels, plain, int(most.max()))
        several += max(found) > 1
    assert several > 10


def test_of_too_many_choices_the_cheapest_of_each_size_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(np.random.default_rng(3), 300, kinds_of=[0, 2, 3, 3])
    levels, weights = levels_of(records.domains, records.costs), np.diff(records.starts)
    everything, _, _ = choices_of(records.codes.astype(np.int64), weights, levels, 5)
    monkeypatch.setattr(level_choices, "CHOICES", 24)
    some, _, most = choices_of(records.codes.astype(np.int64), weights, levels, 5)
    assert 8 <= len(some) <= 24 < len(everything)
    assert {tuple(map(tuple, one)) for one in some.tolist()} < {tuple(map(tuple, one)) for one in everything.tolist()}
    whole = sum(int(levels.cost[levels.start[q, levels.depth[q] - 1]]) for q in range(4))
    assert int(most.max()) == whole  # all records in one cell is always there
    assert min(group.total() for group in groups_of(CellPeeling(), records, 5)) >= 5
    monkeypatch.setattr(level_choices, "MOST_CHOICES", 16)
    drawn, _, most = choices_of(records.codes.astype(np.int64), weights, levels, 5)
    assert 8 <= len(drawn) <= 24
    assert {tuple(map(tuple, one)) for one in drawn.tolist()} < {tuple(map(tuple, one)) for one in everything.tolist()}
    assert int(most.max()) == whole
    assert min(group.total() for group in groups_of(CellPeeling(), records, 5)) >= 5


def test_blocks_are_peeled_by_themselves_and_the_same_by_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(np.random.default_rng(9), 300)
    whole = groups_of(CellPeeling(), records, 4)
    monkeypatch.setattr(module, "BLOCK", 40)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr("sfumato.kernels.threads.thread_count", lambda threads=threads: threads)
        found.append(groups_of(CellPeeling(), records, 4))
    assert found[0] == found[1]
    assert found[0] != whole


def test_it_loses_less_than_a_curve_on_categories() -> None:
    generator = np.random.default_rng(2)
    records = random_records(generator, 600, kinds_of=[2, 3, 2, 3])

    def cost(name: str) -> int:
        layout, units = records.costs.layout, records.costs.units
        batches = methods()[name].classes(records, asking(20), Progress())
        return sum(int(total_cost(one.starts, one.low, one.high, layout, units)) for one in batches)

    assert cost("cell-peeling") < cost("hilbert")
