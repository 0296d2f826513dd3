"""The header of text files and workbooks: where it is, and what its errors may show."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from source_kinds import write_xlsx

from sfumato.errors import InputError, ReadingWarning
from sfumato.policy import InputOptions
from sfumato.tables.sources.source import open_source

SECRET = "Zaphod"


def write(folder: Path, kind: str, rows: Sequence[Sequence[Any]]) -> Path:
    """Write rows of cells, the first of which may be a header, to a file."""
    if kind == "xlsx":
        return write_xlsx(folder / "t.xlsx", {"one": [list(row) for row in rows]})
    path = folder / "t.csv"
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        open_source(path, InputOptions(**options))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_repeated_name_of_a_header_is_named(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind, [["age", "Wert", "Wert"], ["31", "Bonn", "Köln"]])
    assert "columns 2 and 3 of " in refusal(path)
    assert " have the same name 'Wert'. Rename one of them" in refusal(path)


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize(
    "first",
    [
        [SECRET, "31", SECRET],  # a number is no name
        [SECRET, "1980-01-31", SECRET],
        [SECRET, f"{SECRET}@example.org", SECRET],
        [SECRET, "Bonn", SECRET],  # a cell further down is equal
    ],
)
def test_a_repeated_cell_of_a_file_without_a_header_is_not_shown(tmp_path: Path, kind: str, first: list[str]) -> None:
    path = write(tmp_path, kind, [first, ["Ford", "Bonn", "Kiel"]])
    assert "columns 1 and 3 of " in refusal(path)
    assert " have the same name. Rename one of them, or add the header if it is missing." in refusal(path)


def read(path: Path, **options: Any) -> dict[str, list[object]]:
    source = open_source(path, InputOptions(**options))
    batches = list(source.batches(source.names))
    return {name: [value for batch in batches for value in batch.column(name).to_pylist()] for name in source.names}


TABLE = [["age", "city"], [31.0, "Bonn"], [22.0, "Kiel"]]
RECORDS = {"age": [31.0, 22.0], "city": ["Bonn", "Kiel"]}


@pytest.mark.parametrize(
    ("above", "said"),
    [
        ([["Export"]], "has a title: row 1 was skipped, and row 2 holds the names"),
        ([["Export"], [None, SECRET], []], "has a title: rows 1 to 3 were skipped, and row 4 holds the names"),
        ([[], ["Export"]], "has a title: rows 1 to 2 were skipped, and row 3 holds the names"),
    ],
)
def test_a_title_above_the_table_of_a_sheet_is_skipped_and_said(
    tmp_path: Path, above: list[list[object]], said: str
) -> None:
    path = write(tmp_path, "xlsx", [*above, *TABLE])
    with pytest.warns(ReadingWarning) as caught:
        assert read(path) == RECORDS
    assert said in str(caught[0].message)
    assert SECRET not in str(caught[0].message)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("above", [[], [[]], [[], []]])
def test_a_sheet_without_a_title_is_read_in_silence(tmp_path: Path, above: list[list[object]]) -> None:
    assert read(write(tmp_path, "xlsx", [*above, *TABLE])) == RECORDS
    assert read(write(tmp_path, "xlsx", [["age"], [31.0]])) == {"age": [31.0]}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "rows",
    [
        [["age"], ["a", "Bonn", None], ["b", None, 1.0]],  # a gap
        [["name"], [SECRET, 31.0], ["Ford", 22.0]],  # a record
        [["name"], [SECRET, "1980-01-31"], ["Ford", "1990-01-31"]],
        [["name"], [SECRET, "Bonn"], ["Ford", "Bonn"]],
    ],
)
def test_a_row_that_may_be_a_record_is_not_taken_for_names_below_a_title(
    tmp_path: Path, rows: list[list[object]]
) -> None:
    assert "column 2 of " in refusal(write(tmp_path, "xlsx", rows))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_the_row_of_the_header_may_be_named(tmp_path: Path, kind: str) -> None:
    rows = [["Report", SECRET], ["of", 2024], *TABLE]
    path = write(tmp_path, kind, rows)
    table = read(path, header_row=3)
    assert list(table) == ["age", "city"]
    assert table["city"] == ["Bonn", "Kiel"]
    assert [float(str(age)) for age in table["age"]] == [31.0, 22.0]
    assert "6. Check header_row." in refusal(path, header_row=6)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_bad_line_below_a_title_is_told_by_its_number_in_the_file(tmp_path: Path, line_end: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(line_end.join(["Report", "", "age,city", "31,Bonn", f'22,"{SECRET}', 'x"', "3"]).encode())
    source = open_source(path, InputOptions(header_row=3))
    with pytest.raises(InputError, match=r"the record at line 7 of .* has 1 fields, but the header has 2"):
        list(source.batches(["age"]))
