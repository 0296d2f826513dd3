"""Nearest-neighbour groups against a slow version of them, their guarantee, and the bounds of MAXSIZE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from coded import Group, groups_of, random_records, records_of

import sfumato
from sfumato.kernels.constants import NONE
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.clustering import kd_tree as neighbours_module
from sfumato.methods.clustering import nearest_neighbour_groups as module
from sfumato.methods.clustering.kd_tree import LEAF, build_kd_tree, nearest_neighbours
from sfumato.methods.clustering.nearest_neighbour_groups import (
    LARGE_CLASS,
    NearestNeighbourGroups,
    perimeter_bound,
    perimeter_bounds,
)
from sfumato.methods.method import Records
from sfumato.pipeline.prepare import prepare
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.taxonomies.derived_taxonomies import flat, prefix

Box = tuple[list[int], list[int]]


# ---- tables ----


def classes_of(records: Records, k: int, progress: Progress | None = None) -> list[Group]:
    return groups_of(NearestNeighbourGroups(), records, k, progress)


def points(*columns: Sequence[int]) -> Records:
    """Records of numbers."""
    found = [np.unique(np.asarray(column), return_inverse=True) for column in columns]
    codes = np.stack([index for _, index in found], axis=1).astype(np.uint16)
    return records_of(codes, [NumericDomain(f"q{q}", values, False) for q, (values, _) in enumerate(found)])


def values_of(records: Records, groups: Iterable[Group], q: int = 0) -> list[list[int]]:
    """Classes of numbers, by what their records are on one attribute."""
    domain = records.domains[q]
    assert isinstance(domain, NumericDomain)
    values = domain.values[records.codes[:, q]].tolist()
    return sorted(sorted(values[record] for record in group.elements()) for group in groups)


# ---- the slow version ----


@dataclass(frozen=True)
class Slow:
    """The steps as they are written down, on lists and counters."""

    records: Records
    k: int

    @cached_property
    def codes(self) -> list[list[int]]:
        return self.records.codes.tolist()  # type: ignore[no-any-return]

    @cached_property
    def weights(self) -> list[int]:
        return np.diff(self.records.starts).tolist()  # type: ignore[no-any-return]

    def side(self, q: int, one: int, other: int) -> int:
        costs = self.records.costs
        return int(attribute_cost(costs.layout, costs.units, q, min(one, other), max(one, other)))

    def box(self, members: Iterable[int]) -> Box:
        columns = list(zip(*(self.codes[record] for record in members), strict=True))
        return [min(column) for column in columns], [max(column) for column in columns]

    def cost(self, box: Box) -> int:
        return sum(self.side(q, low, high) for q, (low, high) in enumerate(zip(*box, strict=True)))

    def neighbours(self, record: int) -> tuple[int, list[int]]:
        """How far they reach, and which they are."""
        away = {other: self.cost(self.box([record, other])) for other in range(len(self.codes))}
        found, held, reach = [], 0, 0
        for other in sorted(away, key=lambda one: (away[one], one)):
            if held < self.k:
                found.append(other)
                held += self.weights[other]
                reach = away[other]
        return reach, found

    def gaps(self, record: int, box: Box) -> list[int]:
        return [
            0 if low <= code <= high else self.side(q, code, low if code < low else high)
            for q, (code, low, high) in enumerate(zip(self.codes[record], *box, strict=True))
        ]

    def classes(self) -> list[Group]:
        everything = range(len(self.codes))
        if sum(self.weights) < 2 * self.k:
            return [Counter({record: self.weights[record] for record in everything})]
        found = [self.neighbours(record) for record in everything]
        reach = [one for one, _ in found]
        boxes = [self.box(members) for _, members in found]
        members: dict[int, list[int]] = {}
        for record in sorted(everything, key=lambda one: (self.cost(boxes[one]), one)):
            if not any(overlap(boxes[record], boxes[other]) for other in members):
                inside = [one for one in everything if overlap(boxes[record], (self.codes[one], self.codes[one]))]
                members[record] = inside
        level = max([*reach, *(self.cost(boxes[record]) for record in members)])
        left = set(everything) - {record for inside in members.values() for record in inside}
        for record in sorted(left, key=lambda one: (-reach[one], one)):
            choices = []
            for other, inside in members.items():
                gaps = self.gaps(record, boxes[other])
                if max(gaps) <= 2 * reach[record]:
                    grown = self.cost(self.box([*inside, record]))
                    choices.append((max(grown, level), sum(gaps), other))
            level, _, chosen = min(choices)
            members[chosen].append(record)
        groups = [Counter({record: self.weights[record] for record in inside}) for inside in members.values()]
        few = [self.cost(self.box(group)) for group in groups if group.total() < 2 * self.k]
        level = max([*reach, *few])
        return [part for group in groups for part in self.cut(group, level)]

    def cut(self, group: Group, level: int) -> list[Group]:
        if group.total() < 2 * self.k or len(group) == 1:
            return [group]
        choices = []
        for q in range(len(self.codes[0])):
            line = sorted(group.elements(), key=lambda record: (self.codes[record][q], record))
            if self.codes[line[0]][q] < self.codes[line[-1]][q]:
                for left in range(self.k, len(line) - self.k + 1):
                    costs = self.cost(self.box(line[:left])), self.cost(self.box(line[left:]))
                    loss = left * costs[0] + (len(line) - left) * costs[1]
                    choices.append((max(*costs, level), loss, q, left, line))
        *_, left, line = min(choices)
        return [part for half in (line[:left], line[left:]) for part in self.cut(Counter(half), level)]


def overlap(one: Box, other: Box) -> bool:
    return all(low <= high for low, high in [*zip(one[0], other[1], strict=True), *zip(other[0], one[1], strict=True)])


def as_lists(groups: Iterable[Group]) -> list[list[tuple[int, int]]]:
    return sorted(sorted(group.items()) for group in groups)


@pytest.mark.parametrize("seed", range(40))
def test_classes_are_those_of_the_slow_version(seed: int) -> None:
    generator = np.random.default_rng(seed)
    for count in (1, 2, 5, 12, 40, 70):
        records = random_records(generator, count)
        k = int(generator.integers(1, min(count, 9) + 1))
        assert as_lists(classes_of(records, k)) == as_lists(Slow(records, k).classes())


@pytest.mark.not_quick
@pytest.mark.parametrize("seed", range(3))
def test_classes_of_numbers_far_and_wide_are_those_of_the_slow_version(seed: int) -> None:
    generator = np.random.default_rng(seed)
    columns = [np.rint(generator.standard_t(2, 100) * 100).astype(np.int64).tolist() for _ in range(2)]
    records = points(*columns)
    for k in (3, 8):
        assert as_lists(classes_of(records, k)) == as_lists(Slow(records, k).classes())


# ---- neighbours ----


@pytest.mark.parametrize("seed", range(5))
def test_neighbours_and_their_boxes_are_those_of_all_pairs(seed: int) -> None:
    generator = np.random.default_rng(seed)
    records = random_records(generator, 120)
    weights = np.diff(records.starts)
    tree = build_kd_tree(records.codes, weights, records.costs)
    for k in (1, 2, 7, 40, 120):
        slow = Slow(records, k)
        found = nearest_neighbours(tree, k, records.costs, lambda _: None)
        for place, record in enumerate(tree.order.tolist()):
            reach, members = slow.neighbours(record)
            assert found.reach[place] == reach
            assert (found.low[place].tolist(), found.high[place].tolist()) == slow.box(members)


@pytest.mark.parametrize("count", [1, LEAF, LEAF + 1, 500])
def test_tree_holds_every_record_once_in_boxes_that_fit(count: int) -> None:
    records = random_records(np.random.default_rng(count), count, (0, 3, 0))
    tree = build_kd_tree(records.codes, np.diff(records.starts), records.costs)
    assert sorted(tree.order.tolist()) == list(range(len(records.codes)))
    assert tree.codes.tolist() == records.codes[tree.order].tolist()
    assert tree.weights.sum() == count
    assert tree.spans[0, :2].tolist() == [0, len(records.codes)]
    for node, (begin, end, half) in enumerate(tree.spans.tolist()):
        assert tree.low[node].tolist() == tree.codes[begin:end].min(axis=0).tolist()
        assert tree.high[node].tolist() == tree.codes[begin:end].max(axis=0).tolist()
        assert tree.least[node] == tree.order[begin:end].min()
        assert (half == NONE) == (end - begin <= LEAF)
        if half != NONE:
            middle = (begin + end) // 2
            assert tree.spans[node + 1, :2].tolist() == [begin, middle]
            assert tree.spans[half, :2].tolist() == [middle, end]


# ---- what classes are like ----


def test_fewer_than_2k_records_are_one_class() -> None:
    table = points([1, 2, 3, 50, 51, 90])
    assert values_of(table, classes_of(table, 4)) == [[1, 2, 3, 50, 51, 90]]


def test_clusters_that_lie_apart_are_classes() -> None:
    table = points([10, 11, 12, 40, 41, 43, 90, 91, 92, 93])
    assert values_of(table, classes_of(table, 3)) == [[10, 11, 12], [40, 41, 43], [90, 91, 92, 93]]


def test_a_record_between_two_groups_joins_the_nearer_one() -> None:
    table = points([0, 1, 2, 8, 100, 101, 102])
    assert values_of(table, classes_of(table, 3)) == [[0, 1, 2, 8], [100, 101, 102]]


def test_a_record_in_several_classes_lends_only_as_many_of_its_equals_as_are_lacking() -> None:
    # 20 equal records and two lone ones: these take three of the equal ones, and the others show what they are.
    table = points([50] * 20 + [60, 61])
    assert values_of(table, classes_of(table, 5)) == [[50] * 17, [50] * 3 + [60, 61]]


def test_an_outlier_does_not_widen_the_class_that_another_one_widened_already() -> None:
    # Both lone records are nearest to the group in the middle; there the second would double the largest box.
    table = points([0, 0, 0, 40, 100, 100, 100, 160, 200, 200, 200])
    assert values_of(table, classes_of(table, 3)) == [[0, 0, 0, 40], [100, 100, 100], [160, 200, 200, 200]]


@pytest.mark.parametrize("k", [2, 5, 11])
def test_a_class_has_k_to_2k_minus_1_records_or_equal_ones(k: int) -> None:
    generator = np.random.default_rng(k)
    for kinds in ((0, 0), (0, 2, 3), (3, 0, 1, 2)):
        groups = classes_of(random_records(generator, 2000, kinds), k)
        assert len(groups) > 10
        assert all(k <= group.total() and (len(group) == 1 or group.total() < 2 * k) for group in groups)


def test_a_class_of_very_many_records_is_cut_near_its_middle_first() -> None:
    # Categories that are all equally far from each other: all boxes overlap, so all records are one class at first.
    count = 3 * LARGE_CLASS
    domain = CategoricalDomain("c", flat([f"c{place:04}" for place in range(count)], "c"), False)
    records = records_of(np.arange(count, dtype=np.uint16)[:, None], [domain])
    groups = classes_of(records, 4)
    assert all(4 <= group.total() < 8 for group in groups)
    assert len(groups) > count // 8


def test_records_that_differ_by_less_than_costs_can_tell_are_cut_all_the_same() -> None:
    values = np.append(np.arange(300) * 1e-12, 1.0)
    records = records_of(np.arange(301, dtype=np.uint16)[:, None], [NumericDomain("n", values, False)])
    groups = classes_of(records, 10)
    assert max(group.total() for group in groups) < 20


def test_an_attribute_without_much_weight_hardly_counts() -> None:
    codes = np.array([(x, y) for x in range(6) for y in range(6)], np.uint8)
    domains = [NumericDomain(name, np.arange(6), False) for name in "xy"]
    for heavy in (0, 1):
        weights = [100.0 if q == heavy else 1.0 for q in range(2)]
        for group in classes_of(records_of(codes, domains, weights), 6):
            assert len({codes[record][heavy] for record in group}) == 1


def test_neither_column_of_one_value_nor_of_null_changes_classes() -> None:
    # Steps of 1/32, so that costs are not rounded: each attribute counts for less beside two more.
    columns = np.random.default_rng(3).integers(0, 33, (200, 2)).astype(np.uint8)
    domains: list[Domain] = [NumericDomain(name, np.arange(33), False) for name in "xy"]
    more: list[Domain] = [NumericDomain("one", np.array([7]), False), NumericDomain("none", np.empty(0), True)]
    alone = as_lists(classes_of(records_of(columns, domains), 5))
    beside = np.hstack([columns, np.zeros((200, 2), np.uint8)])
    assert as_lists(classes_of(records_of(beside, [*domains, *more]), 5)) == alone


# ---- the guarantee and the bounds ----


def largest_perimeter(records: Records, partition: Iterable[Iterable[int]]) -> float:
    """MAXSIZE as it is measured from what is shown. Partitions are of the numbers of distinct records."""
    largest = 0.0
    for members in partition:
        codes, total = records.codes[list(members)], 0.0
        for q, domain in enumerate(records.domains):
            shown = domain.release(codes[:, q].min(keepdims=True), codes[:, q].max(keepdims=True))
            total += float(domain.penalties(shown.labels.to_pylist())[shown.index[0]])
        largest = max(largest, 2 * total)
    return largest


@pytest.mark.parametrize("seed", range(40))
def test_largest_box_is_within_6d_of_the_best_and_no_partition_is_below_the_bounds(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count, k = int(generator.integers(4, 9)), int(generator.integers(2, 4))
    records = random_records(generator, count)
    records = records_of(np.repeat(records.codes, np.diff(records.starts), axis=0), records.domains)
    expanded = np.repeat(np.arange(len(records.codes)), np.diff(records.starts)).tolist()
    sizes: dict[tuple[int, ...], float] = {}
    for size in range(k, count + 1):
        for rows in combinations(range(count), size):
            sizes[rows] = largest_perimeter(records, [[expanded[row] for row in rows]])
    partitions = [[tuple(sorted(block)) for block in blocks] for blocks in oracle.set_partitions(range(count), k)]
    best = min(max(sizes[block] for block in blocks) for blocks in partitions)
    smallest = min(size for rows, size in sizes.items() if len(rows) == k)
    bounds = perimeter_bounds(records, k)
    assert perimeter_bound(records, k) == bounds.reach <= best
    assert bounds.smallest_box[0] <= smallest <= bounds.smallest_box[1]
    assert bounds.smallest_box[0] <= bounds.reach
    found = largest_perimeter(records, classes_of(records, k))
    assert best <= found + 1e-12
    assert found <= 6 * len(records.domains) * best + 1e-9


def test_bound_is_twice_the_distance_of_the_loneliest_record() -> None:
    table = points([0, 1, 2, 3, 10], [0, 0, 0, 0, 5])
    # From (10, 5) to (2, 0): 8 / 10 and 5 / 5. The nearest three are (0..2, 0).
    bounds = perimeter_bounds(table, 3)
    assert bounds.reach == pytest.approx(2 * 1.8, abs=1e-8)
    assert bounds.smallest_box == pytest.approx((2 * 0.1, 2 * 0.2), abs=1e-8)
    assert perimeter_bounds(points([0, 4, 4, 4, 9]), 3).smallest_box == (0, 0)


def test_bound_of_categories_is_that_of_what_is_shown() -> None:
    domain = CategoricalDomain("d", prefix(["aa", "ab", "ba", "bb", "bc", "ca"], [1], "d"), True)
    codes = np.array([[0], [1], [2], [3], [3]], np.uint8)
    assert perimeter_bound(records_of(codes, [domain]), 2) == pytest.approx(2 * 3 / 6, abs=1e-8)
    assert perimeter_bound(records_of(codes[3:], [domain]), 2) == 0
    lone_null = np.array([[3], [3], [6]], np.uint8)
    assert perimeter_bound(records_of(lone_null, [domain]), 2) == pytest.approx(2, abs=1e-8)


def test_bound_knows_no_weights_since_the_largest_perimeter_knows_none() -> None:
    codes = np.random.default_rng(5).integers(0, 20, (100, 2)).astype(np.uint8)
    domains = [NumericDomain(name, np.arange(20), False) for name in "xy"]
    even, uneven = records_of(codes, domains), records_of(codes, domains, [1.0, 9.0])
    assert perimeter_bounds(even, 4) == perimeter_bounds(uneven, 4)


@pytest.mark.parametrize("k", [0, 6])
def test_bound_of_a_k_that_cannot_be_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match="between 1 and the number of records"):
        perimeter_bound(points([1, 2, 3, 4, 5]), k)


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
@pytest.mark.parametrize("k", [5, 25])
def test_largest_perimeter_of_a_release_stays_near_the_bound_where_that_of_hilbert_does_not(k: int) -> None:
    generator = np.random.default_rng(8)
    table = pa.table({f"q{q}": np.rint(generator.standard_t(3, 4000) * 20).astype(np.int64) for q in range(3)})
    asks: dict[str, Any] = {"quasi_identifiers": table.column_names, "k": k}
    bound = perimeter_bound(prepare(table, merge_flags(None, **asks), Progress()).records, k)
    ratio = {}
    for method in ("hilbert", "nng"):
        losses = sfumato.anonymize(table, method=method, **asks).losses
        ratio[method] = losses.max_size / bound
    assert 1 <= ratio["nng"] < 1.2 < ratio["hilbert"]


# ---- the same everywhere ----


@pytest.mark.not_quick
def test_neither_threads_nor_shares_nor_batches_change_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(np.random.default_rng(4), 3000, (0, 3, 0, 2))
    expected, bounds = classes_of(records, 4), perimeter_bounds(records, 4)
    assert len(expected) > 100
    for threads, share in ((1, 10), (5, 10), (2, 1), (1, 1 << 20)):
        monkeypatch.setattr("sfumato.kernels.threads.thread_count", lambda threads=threads: threads)
        monkeypatch.setattr(module, "SHARE", share)
        monkeypatch.setattr(module, "BATCH_CLASSES", share)
        monkeypatch.setattr(neighbours_module, "SEARCHED", share)
        monkeypatch.setattr(neighbours_module, "ROUND", 3 * share)
        assert classes_of(records, 4) == expected
        assert perimeter_bounds(records, 4) == bounds


def test_classes_are_these_on_every_machine() -> None:
    # Codes from a formula, so that no generator stands between machines.
    codes = np.array([[place**2 % 31, place**3 % 17] for place in range(400)], np.uint8)
    domains = [NumericDomain("a", np.arange(31), False), NumericDomain("b", np.arange(17), False)]
    found = classes_of(records_of(codes, domains), 6)
    assert [sorted(group) for group in found[:3]] == [
        [0, 1, 13, 14, 30, 31, 47, 48],
        [4, 17, 33, 34],
        [2, 3, 15, 16, 32],
    ]
    assert (len(found), sum(group.total() ** 2 for group in found)) == (49, 3436)


def test_progress_is_told_of_every_record_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Told(Progress):
        steps = 0

        def advance(self, steps: int) -> None:
            assert steps >= 0
            self.steps += steps

    monkeypatch.setattr(neighbours_module, "ROUND", 20)
    for count in (1, 2, 999, 2000):
        records, told = random_records(np.random.default_rng(count), count), Told()
        classes_of(records, min(count, 4), told)
        assert told.steps == count
