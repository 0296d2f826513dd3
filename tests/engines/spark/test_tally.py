"""Counts of values and pairs of values, and what their sums say about columns, without a session."""

from __future__ import annotations

import math
import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from sfumato.engines.spark.row_chunks import opened
from sfumato.engines.spark.tally import ALONE, COUNT, GIVEN, VALUE, TableTally, _Sum, tallied

AGES = [30, 30, None, 41, 41, 41]
CITIES = ["Roma", "Roma", "Pisa", None, "Pisa", "Pisa"]


def people() -> pa.Table:
    return pa.table({"c0": pa.array(AGES).dictionary_encode(), "c1": pa.array(CITIES).dictionary_encode()})


def counts_of(table: pa.Table) -> dict[tuple[int, int], pa.Table]:
    packed = pickle.loads(tallied(table, [0, 1], [(0, 1)]))
    return {pair: opened(pa.scalar(counts, pa.binary())) for pair, counts in packed.items()}


def test_values_and_pairs_are_counted_and_null_is_a_value() -> None:
    counts = counts_of(people())
    alone = counts[0, ALONE]
    assert dict(zip(alone[VALUE].to_pylist(), alone[COUNT].to_pylist(), strict=True)) == Counter(AGES)
    pairs = counts[0, 1]
    found = zip(pairs[VALUE].to_pylist(), pairs[GIVEN].to_pylist(), strict=True)
    assert dict(zip(found, pairs[COUNT].to_pylist(), strict=True)) == Counter(zip(AGES, CITIES, strict=True))


@pytest.mark.parametrize("cuts", [[], [3], [1, 2, 5]])
def test_sums_of_parts_are_the_counts_of_the_table(cuts: list[int]) -> None:
    whole = counts_of(people())
    sums = {pair: _Sum() for pair in whole}
    for begin, end in zip([0, *cuts], [*cuts, 6], strict=True):
        for pair, counts in counts_of(people().slice(begin, end - begin)).items():
            sums[pair].add(counts)
    for pair, counts in whole.items():
        total = sums[pair].total()
        assert total is not None
        assert sorted(total.to_pylist(), key=repr) == sorted(counts.to_pylist(), key=repr)


def test_numbers_have_one_form() -> None:
    total = _Sum()
    for values in ([0.0, math.nan], [-0.0, float(np.float64(-np.nan)), None]):
        total.add(pa.table({VALUE: pa.array(values, pa.float64()), COUNT: pa.array([1] * len(values), pa.int64())}))
    counts = total.total()
    assert counts is not None
    assert sorted(zip(map(repr, counts[VALUE].to_pylist()), counts[COUNT].to_pylist(), strict=True)) == [
        ("0.0", 2),
        ("None", 1),
        ("nan", 2),
    ]


def test_a_sum_of_too_many_values_is_none_however_they_come() -> None:
    total = _Sum(most=3)
    for value in range(3):
        total.add(pa.table({VALUE: pa.array([value]), COUNT: pa.array([1])}))
    assert total.total() is not None
    total.add(pa.table({VALUE: pa.array([3]), COUNT: pa.array([1])}))
    assert total.total() is None
    total.add(pa.table({VALUE: pa.array([0]), COUNT: pa.array([1])}))
    assert total.total() is None


def test_facts_of_parts_join_to_those_of_the_table() -> None:
    counts = counts_of(people())
    city = counts[1, ALONE]
    parts = [TableTally.of_counts(1, ALONE, city.slice(row, 1)) for row in range(city.num_rows)]
    joined = TableTally()
    for part in parts:
        joined = joined.joined(part)
    assert (joined.known, joined.alone, joined.distinct) == ({1: 5}, {1: 0}, {1: 2})
    assert sorted(joined.samples[1].to_pylist()) == ["Pisa", "Roma"]
    # Of those in Pisa two are 41 and one has no age; both in Roma are 30; the one without a city is 41.
    assert TableTally.of_counts(0, 1, counts[0, 1]).right == {(0, 1): 5}
