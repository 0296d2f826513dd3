"""iDistance: rings around centres in the order of the Hilbert curve, the same keys everywhere."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sfumato
from sfumato.orderings import IDistance
from sfumato.orderings import idistance as module
from sfumato.orderings.idistance import CentreGrid, Rings, draw_seeds, fixed_roots, move_centres, nearest_centres
from sfumato.tables.coding.domains import Domain, NumericDomain

FRACTION = 1 << 16


def domains_of(*sizes: int, nulls: bool = False) -> list[Domain]:
    return [NumericDomain(f"q{place}", np.arange(size - nulls), nulls) for place, size in enumerate(sizes)]


def distinct(codes: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct records in ascending order, and how often each occurs."""
    found, weights = np.unique(np.asarray(codes), axis=0, return_counts=True)
    return np.ascontiguousarray(found), weights.astype(np.int64)


def some_table(seed: int, count: int, sizes: Sequence[int]) -> tuple[NDArray[Any], NDArray[np.int64], list[Domain]]:
    generator = np.random.default_rng(seed)
    drawn = np.stack([np.minimum(generator.geometric(2 / (size + 1), count), size) - 1 for size in sizes], axis=1)
    codes, weights = distinct(drawn.astype(np.uint8))
    return codes, weights, domains_of(*sizes)


def rings_of(ordering: IDistance, table: tuple[NDArray[Any], NDArray[np.int64], list[Domain]], seed: int = 0) -> Rings:
    keys_of: Any = ordering.fitted(*table, seed)
    rings: Rings = keys_of.__self__
    return rings


def cells_of(codes: NDArray[Any], domains: Sequence[Domain], bits: int = 12) -> list[tuple[int, ...]]:
    top = (1 << bits) - 1
    places = [[round(float(share) * top) for share in domain.coordinates()] for domain in domains]
    return [tuple(places[q][code] for q, code in enumerate(row)) for row in codes.tolist()]


def squared(one: Sequence[int], other: Sequence[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def whole(keys: Any) -> list[int]:
    values: list[int] = keys.words[:, 0].tolist()
    return values


tables = st.builds(
    some_table,
    st.integers(0, 10_000),
    st.integers(1, 300),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
)


@given(table=tables, centres=st.integers(1, 20), seed=st.integers(0, 50))
def test_keys_are_the_rank_of_the_nearest_centre_and_the_distance_to_it(table: Any, centres: int, seed: int) -> None:
    codes, _, domains = table
    rings = rings_of(IDistance(centres=centres), table, seed)
    middle = [tuple(column) for column in rings.centres.T.tolist()]
    ranks, distances = [], []
    for cell in cells_of(codes, domains):
        squares = [squared(cell, centre) for centre in middle]
        ranks.append(squares.index(min(squares)))
        distances.append(math.isqrt(min(squares) * FRACTION**2))
    assert rings.bound == max(distances) + 1
    expected = [rank * rings.bound + distance for rank, distance in zip(ranks, distances, strict=True)]
    keys = rings.keys(codes)
    assert whole(keys) == expected
    assert max(expected) < 1 << keys.length <= 2 * max(len(middle) * rings.bound - 1, 1)
    assert keys.leading(62).tolist() == expected


@given(table=tables, centres=st.integers(1, 20))
def test_rings_do_not_overlap_and_ascend_by_distance(table: Any, centres: int) -> None:
    codes, _, domains = table
    rings = rings_of(IDistance(centres=centres), table)
    keys = whole(rings.keys(codes))
    cells = cells_of(codes, domains)
    line = sorted(range(len(codes)), key=lambda place: keys[place])
    owners = [keys[place] // rings.bound for place in line]
    assert owners == sorted(owners)
    distances: dict[int, list[int]] = {}
    for place, owner in zip(line, owners, strict=True):
        distances.setdefault(owner, []).append(squared(cells[place], rings.centres[:, owner].tolist()))
    assert all(ring == sorted(ring) for ring in distances.values())


@given(table=tables, centres=st.integers(1, 20))
def test_centres_are_distinct_cells_in_the_order_of_the_hilbert_curve(table: Any, centres: int) -> None:
    codes, _, domains = table
    rings = rings_of(IDistance(centres=centres), table)
    assert 1 <= rings.centres.shape[1] <= min(centres, len(set(cells_of(codes, domains))))
    positions = [oracle.hilbert_position(cell, 12) for cell in rings.centres.T.tolist()]
    assert positions == sorted(set(positions))


@given(table=tables, seed=st.integers(0, 1000))
def test_with_a_centre_for_every_record_the_order_is_that_of_hilbert(table: Any, seed: int) -> None:
    codes, _, domains = table
    rings = rings_of(IDistance(), table, seed)
    positions = [oracle.hilbert_position(cell, 12) for cell in cells_of(codes, domains)]
    assert rings.bound == 1
    assert whole(rings.keys(codes)) == [sorted(positions).index(position) for position in positions]


def test_keys_are_these_on_every_machine() -> None:
    # Codes from a formula, so that no generator stands between machines.
    codes, weights = distinct(np.array([[place**2 % 31, place**3 % 17] for place in range(400)], np.uint8))
    keys = IDistance(centres=4).fitted(codes, weights, domains_of(31, 17), 7)(codes)
    some = [85660741, 414240169, 39303464, 390551268, 24664532, 374147341, 604554149, 90467338, 589719865, 642123210]
    assert whole(keys)[:250:25] == some
    assert (len(codes), sum(whole(keys)), keys.length) == (254, 82991426982, 30)


def test_keys_do_not_depend_on_threads_or_on_the_batch_a_record_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    table = some_table(1, 5000, (90, 12, 50))
    ordering = IDistance(centres=32)
    keys_of = ordering.fitted(*table, 0)
    expected = whole(keys_of(table[0]))
    assert len(set(expected)) > 1000
    parts = [table[0][first : first + 61] for first in range(0, len(table[0]), 61)]
    assert [key for part in parts for key in whole(keys_of(part))] == expected
    assert [whole(keys_of(table[0][place : place + 1]))[0] for place in range(0, 100, 9)] == expected[:100:9]
    for threads in (1, 7):
        monkeypatch.setattr("sfumato.kernels.threads.thread_count", lambda threads=threads: threads)
        monkeypatch.setattr(module, "BATCH", 13)
        assert whole(ordering.fitted(*table, 0)(table[0])) == expected


def test_what_was_fitted_can_be_sent_to_another_process() -> None:
    table = some_table(2, 200, (30, 30))
    keys_of = IDistance(centres=5).fitted(*table, 3)
    sent = pickle.loads(pickle.dumps(keys_of))
    assert whole(sent(table[0])) == whole(keys_of(table[0]))


def test_seed_decides_the_centres() -> None:
    table = some_table(3, 3000, (90, 90))
    first, again, other = (rings_of(IDistance(centres=16), table, seed).centres.tolist() for seed in (5, 5, 6))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("records", "centres", "expected"),
    [(1, 512, 1), (300, 512, 300), (4000, 512, 512), (30_162, 512, 3017), (9_000_000, 512, 51_200), (2000, 3, 200)],
)
def test_sample_is_a_tenth_within_what_the_centres_need(
    records: int, centres: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    sample = module._sample

    def noted(weights: Any, draws: Any) -> Any:
        taken.append(len(draws))
        return sample(weights, draws)

    monkeypatch.setattr(module, "_sample", noted)
    codes = np.arange(2, dtype=np.uint8)[: min(records, 2), None]
    weights = np.array([records - records // 2, records // 2][: len(codes)])
    IDistance(centres=centres).fitted(codes, weights, domains_of(2), 0)
    assert taken == [expected]


def test_sample_is_of_records_and_not_of_distinct_ones() -> None:
    weights = np.array([700, 1, 299, 0, 1000])
    draws = np.random.PCG64(1).random_raw(200)
    places, counts = module._sample(weights, draws)
    taken = dict(zip(places.tolist(), counts.tolist(), strict=True))
    # One from every ten in the order of codes: only runs that hold several distinct records leave a choice.
    assert taken[0] == 70
    assert taken[4] == 100
    assert taken.get(1, 0) + taken[2] == 30
    assert 3 not in taken
    everything, all_counts = module._sample(weights, np.random.PCG64(1).random_raw(2000))
    assert (everything.tolist(), all_counts.tolist()) == ([0, 1, 2, 4], [700, 1, 299, 1000])


def test_every_record_of_a_run_can_be_drawn() -> None:
    seen: Counter[int] = Counter()
    for seed in range(300):
        places, _ = module._sample(np.ones(20, np.int64), np.random.PCG64(seed).random_raw(4))
        assert [place // 5 for place in places.tolist()] == [0, 1, 2, 3]
        seen.update(places.tolist())
    assert sorted(seen) == list(range(20))
    assert min(seen.values()) > 30


@settings(max_examples=examples(2 / 3))
@given(data=st.data(), count=st.integers(1, 40), dimensions=st.integers(1, 4), centres=st.integers(1, 8))
def test_one_round_moves_each_centre_to_the_rounded_mean_of_its_records(
    data: st.DataObject, count: int, dimensions: int, centres: int
) -> None:
    generator = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    points = generator.integers(0, 50, (dimensions, count)).astype(np.int32)
    counts = generator.integers(1, 9, count)
    before = generator.integers(0, 50, (dimensions, centres)).astype(np.int32)
    owner = generator.integers(0, centres, count).astype(np.int32)
    expected = before.copy()
    for centre in range(centres):
        members = [point for point in range(count) if owner[point] == centre]
        total = sum(int(counts[point]) for point in members)
        for q in range(dimensions):
            if members:
                mean = sum(int(counts[point]) * int(points[q, point]) for point in members) / total
                expected[q, centre] = math.floor(mean + 0.5)
    moved = before.copy()
    assert move_centres(points, counts, owner, moved) == (not np.array_equal(expected, before))
    assert moved.tolist() == expected.tolist()


def test_centres_come_to_rest_in_the_middle_of_clusters_that_lie_apart() -> None:
    corners = [(10, 10), (10, 90), (90, 10), (90, 90)]
    around = [(0, 0), (-2, 0), (2, 0), (0, -3), (0, 3)]
    codes, weights = distinct(np.array([(x + a, y + b) for x, y in corners for a, b in around] * 40, np.uint8))
    rings = rings_of(IDistance(centres=4), (codes, weights, domains_of(101, 101)))
    scale = 4095 / 100
    assert sorted(rings.centres.T.tolist()) == [[round(x * scale), round(y * scale)] for x, y in corners]
    assert rings.bound // FRACTION in (round(3 * scale), round(3 * scale) - 1)


def test_seeds_are_drawn_by_weight_and_squared_distance() -> None:
    points = np.array([[0, 0, 3, 10]], np.int32)
    counts = np.array([2, 1, 4, 1])

    def drawn(*draws: int) -> list[int]:
        found: list[int] = draw_seeds(points, counts, np.array(draws, np.uint64)).tolist()
        return found

    # First by weight alone: 2 + 1 + 4 + 1 chances.
    assert [drawn(draw)[0] for draw in range(8)] == [0, 0, 1, 2, 2, 2, 2, 3]
    # From 0 on: nothing for what lies there too, 4 * 9 chances for the third, 100 for the fourth.
    seconds = Counter(drawn(0, draw)[1] for draw in range(136))
    assert seconds == {2: 36, 3: 100}
    # When every point is a centre no further one is drawn.
    assert drawn(0, 36, 0, 5, 5) == [0, 3, 2]


def test_nearest_centre_is_the_first_of_equally_near_ones() -> None:
    codes = np.array([[0], [2], [4], [3]], np.uint8)
    owner, squares = np.empty(4, np.int32), np.empty(4, np.int32)
    cells = np.arange(5, dtype=np.int32)
    nearest_centres(codes, cells, np.zeros(1, np.int64), np.array([[1, 3, 1]], np.int32), owner, squares)
    assert owner.tolist() == [0, 0, 1, 1]
    assert squares.tolist() == [1, 1, 1, 0]


@given(st.lists(st.integers(0, (1 << 30) - 1), min_size=1, max_size=50))
def test_roots_are_exact(squares: list[int]) -> None:
    edges = [0, 1, 2, (1 << 30) - 1, (1 << 15) ** 2 - 1, 32767**2, 32767**2 - 1]
    found = fixed_roots(np.array(squares + edges, np.int32)).tolist()
    assert found == [math.isqrt(square << 32) for square in squares + edges]


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 12), (64, 12), (65, 11), (300, 10)])
def test_distances_fit_for_any_number_of_attributes(dimensions: int, bits: int) -> None:
    domains = domains_of(*[2] * dimensions)
    codes = np.array([[0] * dimensions, [1] * dimensions], np.uint8)
    assert CentreGrid.of(domains).bits == bits
    rings = rings_of(IDistance(centres=1), (codes, np.array([1, 0]), domains))
    assert rings.bound == math.isqrt((dimensions * ((1 << bits) - 1) ** 2) << 32) + 1
    assert whole(rings.keys(codes)) == [0, rings.bound - 1]


def test_one_record_and_equal_records_have_the_key_zero() -> None:
    for weight in (1, 1000):
        codes = np.zeros((1, 3), np.uint8)
        keys = IDistance().fitted(codes, np.array([weight]), domains_of(1, 1, 1), 0)(codes)
        assert whole(keys) == [0]
        assert keys.leading(62).tolist() == [0]


def test_null_lies_at_the_end_of_its_attribute() -> None:
    domains = domains_of(6, nulls=True)
    codes = np.arange(6, dtype=np.uint8)[:, None]
    rings = rings_of(IDistance(centres=1), (codes, np.array([9, 0, 0, 0, 0, 0]), domains))
    assert [key // FRACTION for key in whole(rings.keys(codes))] == [0, 1024, 2048, 3071, 4095, 4095]


def test_centres_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one centre"):
        IDistance(centres=0)


def hospital(count: int = 3000) -> pa.Table:
    generator = np.random.default_rng(4)
    age = generator.integers(0, 95, count)
    visits = generator.geometric(0.2, count)
    return pa.table(
        {
            "age": pa.array([None if place % 97 == 0 else int(value) for place, value in enumerate(age)], pa.int64()),
            "city": [f"city {value}" for value in (age // 7 + generator.integers(0, 4, count)) % 12],
            "visits": visits,
            "illness": [f"illness {value}" for value in generator.integers(0, 9, count)],
        }
    )


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_another_seed_gives_another_release_of_the_same_quality() -> None:
    asks: dict[str, Any] = {"quasi_identifiers": ["age", "city", "visits"], "sensitive": "illness", "k": 5}
    releases = [sfumato.anonymize(hospital(), method="idistance", seed=seed, **asks) for seed in (0, 0, 1)]
    assert releases[0].data.equals(releases[1].data)
    assert not releases[0].data.equals(releases[2].data)
    assert releases[0].losses.gcp == pytest.approx(releases[2].losses.gcp, rel=0.1)


@pytest.mark.parametrize("method", ["idistance", "idistance-fast"])
@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_rings_serve_diversity_as_well(method: str) -> None:
    key = ["age", "city", "visits"]
    release = sfumato.anonymize(hospital(), quasi_identifiers=key, sensitive="illness", k=6, l=4, method=method)
    rows = release.data.to_pylist()
    assert oracle.smallest_class(rows, key) >= 6
    reached = oracle.reached_frequency(rows, key, "illness")
    assert reached is not None
    assert reached >= 4
    assert release.losses.gcp < 0.5
