"""The decimal commas of a CSV release: every number is written with a comma, and no two labels become one."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tables.decimal_commas import read_with_points, shows_commas, texts_with_exchanged_marks

numbers = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers().map(str)
ranges = st.tuples(numbers, numbers).map(lambda ends: f"[{ends[0]}..{ends[1]}]")
labels = numbers | ranges | st.text("0123456789.,[]-+e*a", max_size=8)


def exchanged(*texts: str | None) -> list[str | None]:
    return texts_with_exchanged_marks(texts)


@given(numbers | ranges)
def test_numbers_and_ranges_have_commas_where_they_had_points(label: str) -> None:
    commas = re.sub(r"(?<=\d)\.(?=\d)", ",", label)
    assert exchanged(label) == [commas]
    assert exchanged(commas) == [label]


@given(st.lists(labels, unique=True, max_size=6))
def test_no_two_labels_become_one_and_all_come_back(texts: list[str]) -> None:
    written = exchanged(*texts)
    assert len(set(written)) == len(texts)
    assert exchanged(*written) == texts


@pytest.mark.parametrize(
    "label", ["*", "2024-Q1", "E11.-", "1.2.3", "a.5", "[1..2]", "18-", "", "3.", ".5", "a, b", None]
)
def test_what_is_no_number_with_places_stays_as_it_is(label: str | None) -> None:
    assert exchanged(label) == [label]


def test_open_ends_keep_their_signs() -> None:
    assert exchanged("[1.5..90.5+]", "2.5-", "90.25+") == ["[1,5..90,5+]", "2,5-", "90,25+"]


def test_only_the_named_columns_are_read_with_points() -> None:
    column = pa.array(["3,5", None, "*"]).dictionary_encode()
    batch = pa.RecordBatch.from_arrays([column, column], names=["size", "code"])
    assert read_with_points(batch, {"size"}).to_pydict() == {"size": ["3.5", None, "*"], "code": ["3,5", None, "*"]}


@pytest.mark.parametrize(
    ("texts", "commas"), [(["3,5", "4"], True), (["3,5", "3.5"], False), (["3", "*"], False), (["a,b"], False)]
)
def test_a_column_shows_commas_if_some_numbers_have_them_and_none_a_point(texts: list[str], commas: bool) -> None:
    assert shows_commas(pa.array(texts).dictionary_encode()) is commas
