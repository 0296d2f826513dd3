"""k-member clustering against a slow version of it, and what its classes are like."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from coded import Group, groups_of, random_records, records_of

from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.clustering.k_member import KMember
from sfumato.methods.method import Records
from sfumato.progress import Progress
from sfumato.tables.coding.domains import NumericDomain


def cost(records: Records, members: Any) -> int:
    """The NCP of the box around some distinct records."""
    codes, costs = records.codes[sorted(members)], records.costs
    low, high = codes.min(axis=0).tolist(), codes.max(axis=0).tolist()
    return sum(int(attribute_cost(costs.layout, costs.units, q, low[q], high[q])) for q in range(len(low)))


def slow(records: Records, k: int) -> list[Group]:
    """The pseudo-code on counters, one record at a time."""
    left: Group = Counter(np.repeat(np.arange(len(records.codes)), np.diff(records.starts)).tolist())
    rows = sorted(left.elements())
    last = rows[int(np.random.PCG64(records.seed or 0).random_raw()) % len(rows)]
    found: list[Group] = []
    while left.total() >= k:
        last = min(left, key=lambda record: (-cost(records, {last, record}), record))
        group = Counter([last])
        left -= group
        while group.total() < k:
            last = min(left, key=lambda record: (cost(records, {*group, record}), record))
            group[last] += 1
            left -= Counter([last])
        found.append(group)
    for record in sorted(left.elements()):

        def growth(group: Group, record: int = record) -> int:
            return (group.total() + 1) * cost(records, {*group, record}) - group.total() * cost(records, group)

        found[min(range(len(found)), key=lambda place: (growth(found[place]), place))][record] += 1
    return found


@pytest.mark.parametrize("seed", range(2))
def test_classes_are_those_of_the_slow_version(seed: int) -> None:
    generator = np.random.default_rng(seed)
    several, leftover = 0, 0
    for _ in range(25):
        records = random_records(generator, int(generator.integers(1, 40)))
        k = int(generator.integers(1, min(records.count, 7) + 1))
        expected = slow(records, k)
        found = groups_of(KMember(), records, k)
        assert sorted(map(sorted, map(Counter.elements, found))) == sorted(map(sorted, map(Counter.elements, expected)))
        several += len(expected) > 2
        leftover += records.count % k > 0
    assert several > 8
    assert leftover > 5


def test_all_classes_have_k_records_but_for_those_that_take_what_is_left() -> None:
    generator = np.random.default_rng(3)
    for k in (2, 5, 17):
        records = random_records(generator, 300)
        sizes = sorted(group.total() for group in groups_of(KMember(), records, k))
        assert len(sizes) == 300 // k
        assert sizes[0] == k
        assert sum(sizes) - k * len(sizes) == 300 % k


def test_a_class_begins_far_from_the_last() -> None:
    domain = NumericDomain("n", np.array([0, 1, 2, 50, 51, 52, 100, 101, 102]), False)
    found = groups_of(KMember(), records_of(np.arange(9, dtype=np.uint8)[:, None], [domain]), 3)
    assert sorted(map(sorted, found)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_progress_counts_every_record_once() -> None:
    class Steps(Progress):
        total = 0

        def advance(self, steps: int) -> None:
            self.total += steps

    progress = Steps()
    groups_of(KMember(), random_records(np.random.default_rng(1), 103), 4, progress)
    assert progress.total == 103
