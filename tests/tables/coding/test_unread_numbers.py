"""Numbers that would be taken for text are said, with the flag or the line that changes it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from source_kinds import write_xlsx

import sfumato
from sfumato.errors import InputError, ReadingWarning
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


def test_a_policy_that_wants_numbers_says_which_mark_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age;x\n" + "".join(f"{20 + row % 8},5;y\n" for row in range(40)))
    with pytest.raises(InputError) as caught:
        said(path, input={"separator": ";"}, type={"age": "numeric"})
    assert '8 distinct values are not numbers; the first is in line 2. Add --decimal ",". Correct' in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "flags", "expected"),
    [
        (["20", "21", "22", "23", "24"], {}, "holds numbers as text. Set its type to numeric; if they are codes"),
        (["2,5", "3,5", "4,5", "5,5", "6,5"], {}, 'as text. Set its type to numeric, and add --decimal ","; if they'),
        ([20, 21, 22, 23, 24, "?"], {"input": {"nulls": ["", "?"]}}, "holds numbers as text. Set its type"),
        ([20, 21, 22, 23, 24, SECRET], {}, "5 of its distinct values are numbers, and 1 is not; the first that is not"),
        (["01067", "10115", "20095", "80331", "12345"], {}, None),
        ([20, 21, 22, 23, 24], {}, None),
    ],
)
def test_numbers_that_are_text_in_a_sheet_are_said(
    tmp_path: Path, cells: list[object], flags: dict[str, Any], expected: str | None
) -> None:
    rows = [["age", "x"], *([cell, "y"] for cell in cells for _ in range(2))]
    path = write_xlsx(tmp_path / "t.xlsx", {"one": rows})
    found = said(path, **flags)
    assert len(found) == (expected is not None)
    assert expected is None or expected in found[0]
    assert SECRET not in "".join(found)
