"""Keyed samples: the same for any parts of a table, and what two of them say about shared records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.releases import keyed_sample
from sfumato.releases.keyed_sample import MOST, KeyedSample, sampled, shared_part
from sfumato.tables.coding.domains import NumericDomain
from sfumato.tables.coding.keyed_hashes import RecordHashes

SIZE = 100_000
DOMAIN = NumericDomain("record", np.arange(SIZE), False)
HASHES = RecordHashes.of(bytes(32), [DOMAIN], [np.ones(SIZE, np.int64)])

# How often each kind of record is drawn: no two alike; the most common ones very common; all of them common.
POPULATIONS = {
    "unlike": np.full(SIZE, 1 / SIZE),
    "skewed": 1 / np.arange(1, 20_001),
    "alike": np.full(300, 1 / 300),
    "coarse": np.full(12, 1 / 12),
    "two": np.array([0.3, 0.7]),
}


def sample_of(records: NDArray[np.int64]) -> KeyedSample:
    return sampled(HASHES, [(records.astype(np.uint32)[:, None], None)])


def drawn(chance: np.random.Generator, population: str, count: int) -> NDArray[np.int64]:
    ends = np.cumsum(POPULATIONS[population])
    return np.searchsorted(ends, chance.random(count) * ends[-1], side="right")


def two_tables(
    chance: np.random.Generator, population: str, sizes: tuple[int, int], shared: int
) -> tuple[KeyedSample, KeyedSample]:
    """Sample two tables of one population that have ``shared`` records in common."""
    common = drawn(chance, population, shared)
    one, other = (sample_of(np.append(common, drawn(chance, population, size - shared))) for size in sizes)
    return one, other


def test_a_sample_has_the_records_with_the_smallest_hashes_and_their_counts() -> None:
    records = np.random.default_rng(1).integers(0, 5000, 20_000)
    _, every = HASHES.least(np.arange(5000, dtype=np.uint32)[:, None], np.uint64((1 << 64) - 1))
    counts = np.bincount(records, minlength=5000)
    order = np.argsort(every[counts > 0])[:MOST]
    sample = sample_of(records)
    assert sample.hashes.tolist() == every[counts > 0][order].tolist()
    assert sample.counts.tolist() == counts[counts > 0][order].tolist()


@given(st.lists(st.integers(0, 40), max_size=80), st.randoms(use_true_random=False), st.integers(1, 9))
def test_any_order_and_any_parts_of_a_table_give_the_same_sample(records: list[int], chance: object, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_sample, "MOST", 10)
        patch.setattr(keyed_sample, "BATCH", 7)
        whole = sample_of(np.array(records, np.int64))
        chance.shuffle(records)  # type: ignore[attr-defined]
        parts = [sample_of(np.array(records[begin : begin + size])) for begin in range(0, len(records), size)]
        assert KeyedSample.together(parts).same_as(whole)
        distinct, counts = np.unique(np.array(records, np.uint32), return_counts=True)
        assert sampled(HASHES, [(distinct[:, None], counts)]).same_as(whole)
        assert KeyedSample.from_dict(whole.to_dict()).same_as(whole)


@pytest.mark.parametrize("population", ["unlike", "skewed", "alike"])
@pytest.mark.parametrize("sizes", [(1000, 1000), (5000, 6000), (20_000, 20_001)], ids=str)
@pytest.mark.parametrize("part", [0.5, 0.7, 0.9, 1.0])
def test_the_estimate_is_near_the_part_that_two_tables_share(
    population: str, sizes: tuple[int, int], part: float
) -> None:
    chance = np.random.default_rng(7)
    estimates = [shared_part(*two_tables(chance, population, sizes, int(part * sizes[0]))) for _ in range(4)]
    assert np.mean(estimates) == pytest.approx(part, abs=0.12 if population == "alike" else 0.05)


@pytest.mark.parametrize("sizes", [(3000, 30_000), (30_000, 3000)], ids=str)
def test_a_small_table_is_found_in_a_large_one(sizes: tuple[int, int]) -> None:
    chance = np.random.default_rng(8)
    estimates = [shared_part(*two_tables(chance, "unlike", sizes, 3000)) for _ in range(4)]
    assert np.mean(estimates) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("sizes", [(8, 8), (30, 30), (1000, 1000), (1000, 5000), (20_000, 20_000)], ids=str)
def test_what_tables_of_one_population_have_in_common_by_chance_does_not_count(
    population: str, sizes: tuple[int, int]
) -> None:
    chance = np.random.default_rng(9)
    alarms = sum(shared_part(*two_tables(chance, population, sizes, 0)) > 0 for _ in range(40))
    assert alarms <= 1  # one of a thousand is expected


@pytest.mark.parametrize("population", ["coarse", "alike"])
def test_few_new_records_are_noticed_among_many_alike(population: str) -> None:
    chance = np.random.default_rng(10)
    assert shared_part(*two_tables(chance, population, (20_000, 20_020), 20_000)) > 0.95


@pytest.mark.parametrize("part", [0.0, 0.2])
def test_less_than_half_is_not_noted(part: float) -> None:
    chance = np.random.default_rng(11)
    assert shared_part(*two_tables(chance, "unlike", (5000, 5000), int(5000 * part))) == 0


def test_two_counts_that_are_equal_by_chance_are_not_enough() -> None:
    same = sample_of(np.repeat([1, 2], [300, 700]))
    assert shared_part(same, same) == 0


def test_more_records_than_can_be_divided_at_random() -> None:
    hashes = np.arange(1, 41, dtype=np.uint64)
    counts = np.random.default_rng(12).integers(10**8, 10**9, 40)
    one, other = KeyedSample(hashes, counts), KeyedSample(hashes, counts + 3)
    assert shared_part(one, other) > 0.99
    assert shared_part(one, KeyedSample(hashes, counts[::-1])) == 0


@pytest.mark.parametrize("other", [KeyedSample.empty(), sample_of(np.arange(50_000, 50_100))])
def test_tables_without_a_common_record_share_nothing(other: KeyedSample) -> None:
    one = sample_of(np.arange(100))
    assert shared_part(one, other) == shared_part(other, one) == 0
