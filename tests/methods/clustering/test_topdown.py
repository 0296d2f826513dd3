"""TopDown against a slow version of it, and what its classes are like."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from coded import Group, groups_of, random_records, records_of
from numpy.typing import NDArray

import sfumato
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.clustering import topdown as module
from sfumato.methods.clustering.topdown import TopDown, divide, far_records
from sfumato.methods.method import Records
from sfumato.progress import Progress
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.taxonomies.derived_taxonomies import flat

Reading = Literal["least-growth", "lower-ncp"]

# ---- tables ----


def classes_of(
    records: Records, k: int, progress: Progress | None = None, reading: Reading = "least-growth"
) -> list[Group]:
    return groups_of(TopDown(reading=reading), records, k, progress)


def numbers(values: NDArray[Any] | list[int], seed: int = 0) -> Records:
    """One numeric attribute."""
    distinct, codes = np.unique(np.asarray(values), return_inverse=True)
    return records_of(codes[:, None].astype(np.uint8), [NumericDomain("n", distinct, False)], seed=seed)


# ---- the slow version ----


@dataclass(frozen=True)
class Slow:
    """TopDown as it is written down, on lists and counters."""

    records: Records
    k: int
    reading: Reading = "least-growth"

    def cost(self, members: Any) -> int:
        """The NCP of the box around some distinct records."""
        codes = self.records.codes[sorted(members)]
        costs = self.records.costs
        low, high = codes.min(axis=0).tolist(), codes.max(axis=0).tolist()
        return sum(int(attribute_cost(costs.layout, costs.units, q, low[q], high[q])) for q in range(len(low)))

    def weight(self, members: Any) -> int:
        return sum(int(self.records.starts[one + 1] - self.records.starts[one]) for one in members)

    def classes(self) -> list[Group]:
        draws = np.random.PCG64(self.records.seed or 0).random_raw(len(self.records.codes)).tolist()
        line = sorted(range(len(draws)), key=lambda record: draws[record])
        groups = [Counter({record: self.weight([record]) for record in part}) for part in self.divided(line)]
        for place in range(len(groups)):
            while 0 < groups[place].total() < self.k:
                self.mend(groups, place)
        return [group for group in groups if group]

    def divided(self, line: list[int], begin: int = 0) -> list[list[int]]:
        if self.weight(line) < 2 * self.k or len(np.unique(self.records.codes[line], axis=0)) == 1:
            return [line]
        if self.reading == "lower-ncp":
            line = self.shuffled(line, begin)
            one, other = self.far(line)
            first, second = map(set, self.assigned(line, one, other, by_size=False))
            lower, upper = ([record for record in line if record in side] for side in (first, second))
            return [*self.divided(lower, begin), *self.divided(upper, begin + len(lower))]
        one, other = self.far(line)
        sides = self.assigned(line, one, other, by_size=True)
        if any(len(side) == 1 and self.weight(side) < self.k for side in sides):
            sides = self.assigned(line, one, other, by_size=False)
        return [leaf for side in sides for leaf in self.divided([record for record in line if record in side])]

    def shuffled(self, line: list[int], begin: int) -> list[int]:
        """Fisher and Yates, with the numbers of splitmix64 from where the records begin and end."""
        line, state, bits = list(line), begin << 32 | begin + len(line), 2**64 - 1
        for place in range(len(line) - 1, 0, -1):
            state = state + 0x9E3779B97F4A7C15 & bits
            drawn = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & bits
            drawn = (drawn ^ drawn >> 27) * 0x94D049BB133111EB & bits
            other = (drawn ^ drawn >> 31) % (place + 1)
            line[place], line[other] = line[other], line[place]
        return line

    def far(self, line: list[int]) -> tuple[int, int]:
        one, other, distance = line[0], line[0], -1
        for _ in range(6):
            farthest = min((record for record in line if record != one), key=lambda r: (-self.cost({one, r}), r))
            if self.cost({one, farthest}) <= distance:
                break
            one, other, distance = farthest, one, self.cost({one, farthest})
        return one, other

    def assigned(self, line: list[int], one: int, other: int, *, by_size: bool) -> tuple[list[int], list[int]]:
        sides = ([one], [other])
        for record in line:
            if record in (one, other):
                continue

            def burden(side: list[int], record: int = record) -> int:
                grown = self.cost([*side, record])
                return self.weight([*side, record]) * grown - self.weight(side) * self.cost(side) if by_size else grown

            chosen = min(sides, key=lambda side: (burden(side), self.weight(side)))
            chosen.append(record)
        return sides

    def mend(self, groups: list[Group], place: int) -> None:
        group = groups[place]
        options = []
        for candidate, other in enumerate(groups):
            if candidate == place or not other:
                continue
            if group.total() + other.total() < 2 * self.k:
                joined = self.cost(group | other) * (group.total() + other.total())
                paid = self.cost(group) * group.total() + self.cost(other) * other.total()
                moved = other
            else:
                moved = self.chosen(group, other)
                joined = self.cost(group | moved) * self.k
                paid = self.cost(group) * group.total() + self.cost(other) * moved.total()
            options.append((joined - paid if self.reading == "least-growth" else joined, candidate, moved))
        _, candidate, moved = min(options, key=lambda option: option[:2])
        groups[place] = group + moved
        groups[candidate] = groups[candidate] - moved

    def chosen(self, group: Group, lender: Group) -> Group:
        lent: Group = Counter()
        while group.total() + lent.total() < self.k:
            left = [record for record in lender if record not in lent]
            best = min(left, key=lambda record: (self.cost([*group, *lent, record]), record))
            lent[best] = min(lender[best], self.k - group.total() - lent.total())
        return lent


@pytest.mark.parametrize("seed", range(4))
def test_classes_are_those_of_the_slow_version(seed: int) -> None:
    generator = np.random.default_rng(seed)
    mended = 0
    for _ in range(60):
        records = random_records(generator, int(generator.integers(1, 60)))
        k = int(generator.integers(1, min(records.count, 7) + 1))
        slow = Slow(records, k)
        assert classes_of(records, k) == slow.classes()
        mended += any(slow.weight(part) < k for part in slow.divided(list(range(len(records.codes)))))
    assert mended > 10


@pytest.mark.not_quick
def test_classes_by_lower_ncp_are_those_of_the_slow_version_on_single_records() -> None:
    generator = np.random.default_rng(9)
    several = 0
    for _ in range(25):
        records = random_records(generator, int(generator.integers(1, 40)))
        k = int(generator.integers(1, min(records.count, 6) + 1))
        codes = np.repeat(records.codes, np.diff(records.starts), axis=0)
        single = replace(records, codes=codes, starts=np.arange(len(codes) + 1))
        record_of = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
        expected = [Counter(record_of[list(group)].tolist()) for group in Slow(single, k, "lower-ncp").classes()]
        assert classes_of(records, k, reading="lower-ncp") == expected
        several += len(expected) > 2
    assert several > 10


def test_the_side_of_lower_ncp_loses_more_than_that_of_least_growth() -> None:
    generator = np.random.default_rng(4)
    table = pa.table({name: generator.normal(0, 1, 900).round(1) for name in "xyz"})
    loss = {
        name: sfumato.anonymize(table, quasi_identifiers=list("xyz"), k=5, method=name).losses.gcp
        for name in ("topdown", "topdown:lower-ncp")
    }
    assert loss["topdown"] < loss["topdown:lower-ncp"]


@pytest.mark.not_quick
def test_the_cheapest_of_many_classes_is_found() -> None:
    records = random_records(np.random.default_rng(77), 500, (0, 3, 2, 0))
    assert len(records.codes) > 150
    for k in (3, 8):
        found = classes_of(records, k)
        assert len(found) > 20
        assert found == Slow(records, k).classes()


# ---- what classes are like ----


@pytest.mark.parametrize("k", [1, 2, 5, 40, 300])
def test_a_class_has_k_to_2k_minus_1_records_or_equal_ones(k: int) -> None:
    generator = np.random.default_rng(k)
    for count in (600, 1500, 3000):
        for group in classes_of(random_records(generator, count), k):
            assert group.total() >= k
            assert group.total() < 2 * k or len(group) == 1


def test_fewer_than_2k_records_are_one_class() -> None:
    for count in (5, 9):
        assert classes_of(numbers(list(range(count))), 5) == [Counter(range(count))]


def test_a_gap_is_where_classes_part() -> None:
    records = numbers([*range(8), *range(1000, 1009), *range(5000, 5007)])
    for seed in range(20):
        found = classes_of(replace(records, seed=seed), 5)
        assert sorted(sorted(group) for group in found) == [[*range(8)], [*range(8, 17)], [*range(17, 24)]]


def test_a_class_that_lacks_records_borrows_them_and_leaves_the_others_as_they_are() -> None:
    # Twenty equal records and one that is not: it takes four of them along.
    assert sorted(classes_of(numbers([3] * 20 + [7]), 5), key=len) == [Counter({0: 16}), Counter({0: 4, 1: 1})]


def test_a_class_that_lacks_records_is_joined_where_nobody_can_spare_any() -> None:
    values = [0] * 6 + [50] * 6 + [54] * 2
    assert sorted(map(dict, classes_of(numbers(values), 6)), key=len) == [{0: 6}, {1: 6, 2: 2}]


def test_what_borrowing_costs_decides_where_records_are_borrowed() -> None:
    # Both neighbours could spare four; those of the right one are nearer.
    values = [0] * 10 + [10] + [13] * 10
    assert sorted(map(dict, classes_of(numbers(values), 5)), key=len) == [{0: 10}, {2: 6}, {1: 1, 2: 4}]


def test_seeds_are_the_ends_of_one_attribute() -> None:
    records = numbers(np.random.default_rng(1).integers(0, 10_000, 200))
    line = np.random.default_rng(2).permutation(len(records.codes)).astype(np.uint32)
    for begin in range(0, 150, 30):
        part = line[begin : begin + 40]
        pair = far_records(records.codes, line, begin, begin + 40, records.costs.layout, records.costs.units)
        assert sorted(pair) == [part.min(), part.max()]


def test_categories_that_are_equally_far_from_each_other_are_halved_and_not_taken_off_one_by_one() -> None:
    count = 200
    domain = CategoricalDomain("c", flat([f"{code:03}" for code in range(count)], "c"), False)
    records = records_of(np.arange(count, dtype=np.uint8)[:, None], [domain])
    line, ones = np.arange(count, dtype=np.uint32), np.ones(count, np.int64)
    costs = records.costs
    spare = np.empty_like(line)
    reading, is_other = module.LEAST_GROWTH, np.zeros(count, np.bool_)
    middle = divide(reading, records.codes, ones, line, 0, count, 5, costs.layout, costs.units, is_other, spare)
    assert middle == count // 2
    assert sorted(line.tolist()) == list(range(count))


def test_records_that_differ_by_less_than_costs_can_tell_are_divided_all_the_same() -> None:
    domain = NumericDomain("n", np.append(np.arange(60) * 1e-12, 1e6), False)
    codes = np.repeat(np.arange(61, dtype=np.uint8), 4)[:, None]
    for seed in range(20):
        records = records_of(codes, [domain], seed=seed)
        found = classes_of(records, 5)
        assert max(group.total() for group in found) <= 9
        assert found == Slow(records, 5).classes()  # of many that cost nothing, the first is taken


# ---- the same everywhere ----


def test_neither_threads_nor_shares_nor_batches_change_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(np.random.default_rng(4), 3000, (0, 3, 0, 2))
    expected = classes_of(records, 4)
    assert len(expected) > 100
    for threads, share in ((1, 10), (5, 10), (2, 1), (1, 1 << 20)):
        monkeypatch.setattr("sfumato.kernels.threads.thread_count", lambda threads=threads: threads)
        monkeypatch.setattr(module, "thread_count", lambda threads=threads: threads)
        monkeypatch.setattr(module, "SHARE", share)
        monkeypatch.setattr(module, "STEP", share)
        monkeypatch.setattr(module, "BATCH_CLASSES", share)
        assert classes_of(records, 4) == expected


def test_classes_are_these_on_every_machine() -> None:
    # Codes from a formula, so that no generator but that of the method stands between machines.
    codes = np.array([[place**2 % 31, place**3 % 17] for place in range(400)], np.uint8)
    domains: list[Domain] = [NumericDomain("a", np.arange(31), False), NumericDomain("b", np.arange(17), False)]
    found = classes_of(records_of(codes, domains, seed=7), 6)
    assert [sorted(group) for group in found[:3]] == [[8, 20, 21, 37, 38], [6, 7, 19, 20, 36], [53, 54, 55, 70, 71, 72]]
    assert (len(found), sum(group.total() ** 2 for group in found)) == (52, 3212)


def test_the_seed_decides_the_order() -> None:
    records = random_records(np.random.default_rng(12), 500, (0, 2, 0))
    first, again, other = (classes_of(replace(records, seed=seed), 5) for seed in (5, 5, 6))
    assert first == again
    assert first != other
    assert classes_of(replace(records, seed=None), 5) == classes_of(replace(records, seed=0), 5)


def test_progress_is_told_of_every_record_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Told(Progress):
        steps = 0

        def advance(self, steps: int) -> None:
            assert steps >= 0
            self.steps += steps

    monkeypatch.setattr(module, "SHARE", 20)
    monkeypatch.setattr(module, "STEP", 7)
    for count in (1, 2, 999, 2000):
        records, told = random_records(np.random.default_rng(count), count), Told()
        classes_of(records, min(count, 4), told)
        assert told.steps == count


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_loss_is_below_that_of_the_hilbert_curve_where_categories_matter() -> None:
    generator = np.random.default_rng(9)
    region = generator.integers(0, 6, 4000)
    table = pa.table(
        {
            "age": generator.integers(18, 80, 4000),
            "place": [f"{one}{other}" for one, other in zip(region, generator.integers(0, 8, 4000), strict=True)],
            "work": [f"{one % 3}{other}" for one, other in zip(region, generator.integers(0, 5, 4000), strict=True)],
        }
    )
    asks: dict[str, Any] = {"quasi_identifiers": table.column_names, "taxonomy": {"place": {"prefix": [1]}}, "k": 8}
    loss = {name: sfumato.anonymize(table, method=name, **asks).losses.gcp for name in ("topdown", "hilbert")}
    assert loss["topdown"] < 0.9 * loss["hilbert"]
