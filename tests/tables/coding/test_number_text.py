"""Numbers as text in the forms of several countries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tables.coding.number_text import NumberForm

GERMAN, ENGLISH, SWISS = NumberForm(",", "."), NumberForm(".", ","), NumberForm(".", "'")


@pytest.mark.parametrize(
    ("form", "text", "number"),
    [
        (GERMAN, "1.234,5", 1234.5),
        (GERMAN, "1.234.567", 1234567.0),
        (GERMAN, "-12.345,00", -12345.0),
        (GERMAN, "1234,5", 1234.5),
        (GERMAN, " 7 ", 7.0),
        (GERMAN, "0,5", 0.5),
        (ENGLISH, "1,234.5", 1234.5),
        (ENGLISH, "1.5e3", 1500.0),
        (SWISS, "12'345.60", 12345.6),
        (NumberForm(",", "\u202f"), "1\u202f234,5", 1234.5),
    ],
)
def test_a_number_is_read_with_its_marks(form: NumberForm, text: str, number: float) -> None:
    assert form.is_number(text)
    assert float(form.plain(text)) == number


@pytest.mark.parametrize(
    "text",
    ["1.5", "1.23", "12.34.567", "1234.567", "0.123", "1.2345", "1.234.5", "1..234", ".234", "1,234,5", "1.234,5.6"],
)
def test_a_text_that_is_not_grouped_by_threes_is_no_number(text: str) -> None:
    assert not GERMAN.is_number(text)


@pytest.mark.parametrize("text", ["007", "00.123", "-01", "1,5x", ""])
def test_codes_and_words_are_no_numbers(text: str) -> None:
    assert not GERMAN.is_number(text)


@given(st.integers(-(10**15), 10**15))
def test_every_whole_number_is_read_as_python_groups_it(number: int) -> None:
    assert int(ENGLISH.plain(f"{number:,}")) == number
    assert int(GERMAN.plain(f"{number:,}".replace(",", "."))) == number
    assert ENGLISH.is_grouped(f"{number:,}") == (abs(number) >= 1000)
