"""What executors and the driver compute without Spark: places, splitters, buckets, partitions."""

from __future__ import annotations

import pickle
from bisect import bisect_right
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from coded import random_records
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines.spark.bucket_counts import BucketCounts, ValueCounts
from sfumato.engines.spark.buckets import (
    NO_SPLITTERS,
    LineSample,
    Splitters,
    joined,
    splitters_of,
)
from sfumato.engines.spark.line_keys import LineEncoder, from_binary, to_binary
from sfumato.engines.spark.partition_numbers import partition_numbers, partition_of
from sfumato.methods.method import SensitiveValues
from sfumato.orderings import Hilbert, Snake
from sfumato.requirements import FrequencyDiversity, KAnonymity, Requirements

ORDERINGS = [Hilbert(), Snake(), Snake(curve=Hilbert())]


@pytest.mark.parametrize("ordering", ORDERINGS, ids=lambda one: str(one.name))
@pytest.mark.parametrize("seed", range(8))
def test_places_sort_as_keys_and_codes_do_and_hold_the_codes(ordering: Any, seed: int) -> None:
    records = random_records(np.random.default_rng(seed), 60)
    line_encoder = pickle.loads(pickle.dumps(LineEncoder(ordering, records.domains)))
    places = line_encoder.places(records.codes)
    words = ordering.keys(records.codes, records.domains).words
    whole = [(*map(int, key), *map(int, codes)) for key, codes in zip(words, records.codes, strict=True)]
    by_bytes = sorted(range(len(places)), key=lambda row: bytes(places[row]))
    assert by_bytes == sorted(range(len(places)), key=lambda row: whole[row])
    assert line_encoder.codes(places).tolist() == records.codes.tolist()
    column = to_binary(places)
    assert from_binary(column).tolist() == places.tolist()
    assert from_binary(column.slice(3, 5)).tolist() == places[3:8].tolist()
    assert pa.types.is_binary(column.type)


ENTRY = st.tuples(st.binary(min_size=2, max_size=2), st.integers(-3, 3), st.integers(0, 3))


def splitters_at(entries: list[tuple[bytes, int, int]]) -> Splitters:
    return Splitters(
        np.array([list(place) for place, _, _ in entries], np.uint8).reshape(len(entries), -1),
        np.array([tie for _, tie, _ in entries], np.int64),
        np.array([row for _, _, row in entries], np.int64),
    )


@given(records=st.lists(ENTRY, min_size=1, max_size=30), at=st.sets(ENTRY, max_size=8))
def test_bucket_of_a_record_is_the_number_of_splitters_at_or_before_it(records: Any, at: Any) -> None:
    ordered = sorted(at)
    whole = splitters_at(records)
    found = splitters_at(ordered).of(whole.places, whole.ties, whole.rows) if ordered else None
    expected = [bisect_right(ordered, record) for record in records]
    assert (NO_SPLITTERS.of(whole.places, whole.ties, whole.rows) if found is None else found).tolist() == expected


@given(one=st.sets(ENTRY, min_size=1, max_size=8), other=st.sets(ENTRY, min_size=1, max_size=8))
def test_merged_splitters_are_both_in_order_each_once(one: Any, other: Any) -> None:
    merged = splitters_at(sorted(one)).merged(splitters_at(sorted(other)))
    entries = zip(merged.places, merged.ties.tolist(), merged.rows.tolist(), strict=True)
    assert [(bytes(place), tie, row) for place, tie, row in entries] == sorted(one | other)


@given(weights=st.lists(st.integers(1, 50), min_size=1, max_size=60), buckets=st.integers(1, 9))
def test_splitters_cut_the_sample_into_parts_of_about_equal_weight(weights: list[int], buckets: int) -> None:
    count = len(weights)
    places = np.arange(count, dtype=np.uint8).reshape(count, 1)
    sample = LineSample(places, np.zeros(count, np.int64), np.array(weights, np.float64))
    found = splitters_of(sample, buckets)
    assert found.buckets <= buckets
    bucket = found.of(places, np.zeros(count, np.int64), np.zeros(count, np.int64))
    sizes = np.bincount(bucket, weights=weights)
    assert (np.diff(bucket) >= 0).all()
    assert (sizes > 0).all()
    assert sizes.max() <= sum(weights) / buckets + max(weights)


@given(sizes=st.lists(st.integers(0, 12), min_size=1, max_size=20), k=st.integers(1, 15))
def test_buckets_with_fewer_than_k_records_are_joined_with_a_neighbour(sizes: list[int], k: int) -> None:
    counts = BucketCounts(np.array(sizes, np.int64), {}, Requirements((KAnonymity(k),)))
    number = joined(counts.holds, counts.sizes)
    assert number[0] == 0
    assert set(np.diff(number).tolist()) <= {0, 1}
    merged = np.bincount(number, weights=sizes)
    assert merged.sum() == sum(sizes)
    assert (merged >= k).all() or len(merged) == 1
    if all(size >= k for size in sizes):
        assert number.tolist() == list(range(len(sizes)))


def test_buckets_that_are_not_diverse_are_joined_and_others_stay() -> None:
    # Bucket 0 has the value 0 alone, bucket 1 too many of the value 1, the others as many of both.
    bucket, code = np.array([0, 1, 1, 2, 2, 3, 3]), np.array([0, 0, 1, 0, 1, 0, 1])
    count = np.array([4, 5, 9, 6, 6, 3, 3])
    values = SensitiveValues(np.empty(0, np.uint32), 2, np.array([0.0, 1.0]), totals=np.array([18, 18]))
    asked = Requirements((KAnonymity(2), FrequencyDiversity("s", 2)))
    sizes = np.bincount(bucket, weights=count).astype(np.int64)
    counts = BucketCounts(sizes, {"s": ValueCounts(bucket, code, count, values)}, asked)
    assert counts.holds(np.arange(4), 4).tolist() == [False, False, True, True]
    number = joined(counts.holds, counts.sizes)
    assert number.tolist() == [0, 0, 1, 2]
    assert counts.holds(number, 3).all()


@pytest.mark.parametrize("count", [1, 2, 7, 200])
def test_every_partition_has_a_number_that_is_put_there(count: int) -> None:
    numbers = partition_numbers(count)
    assert partition_of(np.array(numbers, np.uint32), count).tolist() == list(range(count))
