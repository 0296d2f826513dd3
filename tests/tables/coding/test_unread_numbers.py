"""Numbers that would be taken for text are said, with the flag or the line that changes it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import sfumato
from sfumato.errors import ReadingWarning
from sfumato.tables.coding.number_text import PLAIN, NumberForm
from sfumato.tables.coding.unread_numbers import unread_numbers

SECRET = "Zaphod"


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["1,5", "2", "3,25", "4,0", "7"], NumberForm(",")),
        (["1.234,5", "2", "3,25", "4,0", "7"], NumberForm(",", ".")),
        (["1,234.5", "2", "3.25", "4.0", "7"], NumberForm(".", ",")),
        (["1'234.5", "2", "3.25", "4.0", "7"], NumberForm(".", "'")),
    ],
)
def test_the_form_in_which_all_texts_are_numbers_is_found(texts: list[str], form: NumberForm) -> None:
    found = unread_numbers(texts, PLAIN)
    assert found is not None
    assert (found.form, found.numbers, found.others) == (form, 5, frozenset())


@pytest.mark.parametrize(
    "texts",
    [
        ["1", "2", "3", "4", "5"],  # they are read
        ["01234", "10115", "80331", "1", "2"],  # codes
        ["a", "b", "1", "2", "3", "c", "d", "e"],  # words
        ["1", "2", "3", "4"],  # too few
        ["1", "2", "3", "4", "5", "w", "x", "y", "z"],
    ],
)
def test_numbers_codes_and_words_are_passed_over(texts: list[str]) -> None:
    assert unread_numbers(texts, PLAIN) is None


def said(path: Path, **flags: Any) -> list[str]:
    """The warnings about reading of a run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sfumato.anonymize(path, **{"k": 2, "quasi_identifiers": ["age"], "other": "drop", **flags})
    return [str(warning.message) for warning in caught if warning.category is ReadingWarning]


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_the_first_line_that_is_not_a_number_is_said_by_its_true_number(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "t.csv"
    cells = [str(20 + row % 8) for row in range(40)]
    cells[9] = cells[30] = SECRET
    rows = "".join(f'{age},"two\nlines"\n' for age in cells)
    path.write_text(f"Report\nage,note\n\n{rows}")
    flags = {"engine": engine, "input": {"header_row": 2}}
    (text,) = said(path, **flags)
    # The title, the header and an empty line are above the first record, and a record has two lines.
    assert "8 of its distinct values are numbers, and 1 is not; the first that is not is in line 22." in text
    assert SECRET not in text
    assert said(path, **flags, column_nulls={"age": [SECRET]}) == []
    assert said(path, **flags, type={"age": "categorical"}) == []


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_forgotten_decimal_comma_is_said_with_its_flag(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age;x\n" + "".join(f"{20 + row % 8},5;y\n" for row in range(40)))
    (text,) = said(path, engine=engine, input={"separator": ";"})
    assert text.startswith("column 'age' holds numbers in another form and is read as text. Add --decimal \",\", or")
    assert said(path, engine=engine, input={"separator": ";", "decimal": ","}) == []


def test_thousands_are_read_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("cost;x\n" + "".join(f"{1 + row % 2}.{row % 4}00,5;y\n" for row in range(40)))
    flags: dict[str, Any] = {"k": 40, "quasi_identifiers": ["cost"], "other": "drop", "form": "bounds"}
    release = sfumato.anonymize(path, input={"separator": ";", "decimal": ",", "thousands": "."}, **flags)
    assert set(release.data["cost_min"].to_pylist()) == {1000.5}
    assert set(release.data["cost_max"].to_pylist()) == {2300.5}
