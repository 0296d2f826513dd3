"""The order of the values of a column: the same whatever the file, and as people would put them."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tables.coding.value_order import ascending


def in_order(values: list[object]) -> list[object]:
    places, numbers = ascending(values)
    assert sorted(places.tolist()) == list(range(len(values)))
    assert len(numbers) == len(values)
    return [values[place] for place in places]


def numbers_of(values: list[object]) -> list[float] | None:
    """None where the values are not numbers."""
    numbers: list[float] = ascending(values)[1].tolist()
    if any(map(math.isnan, numbers)):
        assert all(map(math.isnan, numbers))
        return None
    return numbers


def test_numbers_are_in_numeric_order() -> None:
    assert in_order([10, 9, -3, 100]) == [-3, 9, 10, 100]
    assert numbers_of([10, 9, -3, 100]) == [10.0, 9.0, -3.0, 100.0]
    assert in_order([2.5, -1.0, 1e300]) == [-1.0, 2.5, 1e300]


def test_text_that_is_numbers_throughout_counts_as_numbers() -> None:
    assert in_order(["10", "9", "-3", "1e2"]) == ["-3", "9", "10", "1e2"]
    assert numbers_of(["10", "9", "-3", "1e2"]) == [10.0, 9.0, -3.0, 100.0]


def test_one_word_among_numbers_makes_all_of_them_words() -> None:
    assert in_order(["10", "9", "none"]) == ["10", "9", "none"]
    assert numbers_of(["10", "9", "none"]) is None


@pytest.mark.parametrize("word", ["1_000", "nan", "", "0x10", "1,5", "ten"])
def test_what_only_looks_like_a_number_is_a_word(word: str) -> None:
    assert numbers_of(["1", word]) is None


def test_decimals_are_numbers() -> None:
    values = [Decimal("10.50"), Decimal("9.25"), Decimal("-1.00")]
    assert in_order(list(values)) == [values[2], values[1], values[0]]
    assert numbers_of(list(values)) == [10.5, 9.25, -1.0]


def test_truth_values_are_words_in_every_file() -> None:
    assert in_order([True, False]) == [False, True]
    assert in_order(["true", "false"]) == ["false", "true"]
    assert numbers_of([True, False]) is None


def test_dates_are_in_the_order_of_time_and_are_no_numbers() -> None:
    days: list[object] = [datetime.date(2020, 10, 1), datetime.date(2020, 9, 30), datetime.date(987, 1, 1)]
    assert in_order(days) == [days[2], days[1], days[0]]
    assert in_order([str(day) for day in days]) == [str(day) for day in in_order(days)]
    assert numbers_of(days) is None


def test_no_values_have_an_empty_order() -> None:
    places, numbers = ascending([])
    assert places.tolist() == []
    assert numbers.tolist() == []


def test_mixed_kinds_stand_kind_by_kind() -> None:
    assert in_order([datetime.date(2020, 1, 1), "b", 3, "a"]) == [datetime.date(2020, 1, 1), 3, "a", "b"]


@given(values=st.lists(st.sampled_from(["1", "1.0", "01", "1e0", "2", "2.0"]), unique=True), data=st.data())
def test_different_texts_of_one_number_have_an_order_of_their_own(values: list[object], data: st.DataObject) -> None:
    assert in_order(data.draw(st.permutations(values))) == in_order(values)


def test_whole_numbers_beyond_floating_point_keep_their_order() -> None:
    large: list[object] = [2**53 + 1, 2**53]
    assert in_order(large) == in_order(large[::-1]) == [2**53, 2**53 + 1]


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), unique=True))
def test_numbers_and_their_text_have_the_same_order(values: list[int]) -> None:
    assert ascending(values)[0].tolist() == ascending([str(value) for value in values])[0].tolist()
    assert ascending(values)[1].tolist() == ascending([str(value) for value in values])[1].tolist()
