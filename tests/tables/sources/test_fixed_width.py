"""Text files in columns of fixed width: a layout says where the columns are, and what does not fit it is refused."""

from __future__ import annotations

import csv
import gzip
import traceback
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato import Policy
from sfumato.cli import main
from sfumato.errors import InputError, UsageError
from sfumato.policy import InputOptions, merge_flags
from sfumato.tables.sources import csv_blocks
from sfumato.tables.sources.source import Source, open_source, place_of

SECRET = "Zaphod"
LAYOUT = "name,start,width,decimals\nname,1,8,\nage,9,3,0\nweight,12,4,1\n"
LINES = ["Müller  0310705", "Weiß    102 612", "         -9    "]
TABLE = {"name": ["Müller", "Weiß", None], "age": ["31", "102", "-9"], "weight": ["70.5", "61.2", None]}


def write(folder: Path, lines: list[str], layout: str = LAYOUT, end: str = "\n", name: str = "table.dat") -> Path:
    (folder / "layout.csv").write_text(layout, "utf-8")
    path = folder / name
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def opened(path: Path, **options: Any) -> Source:
    return open_source(path, InputOptions(layout=path.parent / "layout.csv", **options))


def values(source: Source) -> dict[str, list[Any]]:
    batches = list(source.batches(source.names))
    return {name: [value for batch in batches for value in batch.column(name).to_pylist()] for name in source.names}


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        values(opened(path, **options))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["table.dat", "table.TXT", "table.fwf", "table.asc"])
def test_cells_are_cut_by_positions_and_numbers_get_their_decimals(tmp_path: Path, end: str, name: str) -> None:
    source = opened(write(tmp_path, [*LINES, ""], end=end, name=name))
    assert (source.kind, source.text, source.rows) == ("fixed-width", True, None)
    assert values(source) == TABLE


def test_a_layout_may_have_ends_semicolons_types_and_descriptions(tmp_path: Path) -> None:
    layout = '\ufeffName;Start;End;Type;Description\nage;9;11;number;"Age; in years"\nname;1;8;text;\n;12;15;;\n'
    source = opened(write(tmp_path, LINES, layout))
    assert values(source) == {"age": ["31", "102", "-9"], "name": TABLE["name"]}
    assert source.descriptions == {"age": "Age; in years"}  # type: ignore[attr-defined]


def test_other_encodings_compressions_and_lines_above_the_records(tmp_path: Path) -> None:
    write(tmp_path, [])
    path = tmp_path / "table.dat.gz"
    path.write_bytes(gzip.compress("\r\n".join(["Export", "", *LINES]).encode("cp1252")))
    source = opened(path, encoding="cp1252", header_row=2)
    assert values(source) == TABLE
    assert place_of(source, 2) == "line 4"


@pytest.mark.parametrize(
    "cell, decimals, read",
    [
        ("00123", "2", "1.23"),
        ("    5", "2", "0.05"),
        ("-0050", "1", "-5.0"),
        ("+0050", "1", "5.0"),
        ("  1.5", "2", "1.5"),  # a mark that is written counts
        ("00000", "0", "0"),
        ("  n/a", "2", "n/a"),
        ("00123", "", "00123"),
    ],
)
def test_implied_decimals(tmp_path: Path, cell: str, decimals: str, read: str) -> None:
    path = write(tmp_path, [cell], f"name,start,width,decimals\nx,1,5,{decimals}\n")
    assert values(opened(path)) == {"x": [read]}
    assert values(opened(path, decimal=",")) == {"x": [read if read == "1.5" else read.replace(".", ",")]}


def test_the_nulls_of_a_column_are_written_as_they_stand_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, ["9999", "0705"], "name,start,width,decimals\nweight,1,4,1\n")
    assert values(opened(path, column_nulls={"weight": ("9999",)})) == {"weight": [None, "70.5"]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(0.4))
@given(data=st.data())
def test_any_table_comes_back_from_its_padded_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    widths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    letters = st.characters(codec="utf-8", exclude_categories=("C", "Z"))
    row = st.tuples(*(st.text(letters, max_size=width) for width in widths))
    rows = data.draw(st.lists(row, min_size=1, max_size=12))
    starts = [1 + sum(widths[:column]) for column in range(len(widths))]
    layout = "name,start,width\n" + "".join(
        f"c{column},{start},{width}\n" for column, (start, width) in enumerate(zip(starts, widths, strict=True))
    )
    lines = ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", data.draw(st.integers(1, 64)))
    read = values(opened(write(tmp_path, lines, layout, end=data.draw(st.sampled_from(["\n", "\r\n", "\r"])))))
    assert list(zip(*read.values(), strict=True)) == [tuple(cell or None for cell in row) for row in rows]


@pytest.mark.parametrize(
    "lines, said",
    [
        ([LINES[0], SECRET], "line 2 of {} has 6 characters, but the layout has columns up to position 15. Check the"),
        ([LINES[0], "", LINES[1], LINES[0] + "  " + SECRET], "line 4 of {} has characters beyond position 15, where"),
        ([LINES[0][:-1]], "line 1 of {} has 14 characters, but the layout has columns up to position 15."),
    ],
)
def test_a_line_that_does_not_fit_is_refused_by_its_number(tmp_path: Path, lines: list[str], said: str) -> None:
    path = write(tmp_path, lines)
    assert said.format(f"the file {str(path)!r}") in refusal(path)


def test_spaces_and_declared_positions_beyond_the_columns_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path, [LINES[0] + "     ", LINES[1] + SECRET, LINES[2]], LAYOUT + ",16,6,\n")
    assert values(opened(path)) == TABLE


def test_a_file_without_records_is_refused(tmp_path: Path) -> None:
    assert "has no records. Give a file with at least one." in refusal(write(tmp_path, ["", ""]))


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 16)
    monkeypatch.setattr(csv_blocks, "RECORD_BYTES", 32)
    path = write(tmp_path, [LINES[0], LINES[0] + " " * 99, LINES[0]])
    assert "Check that it is a text file with line ends." in refusal(path)


@pytest.mark.parametrize(
    "layout, said",
    [
        ("", ", line 1: its first line must name its columns: name, start and width (or end), and optionally type"),
        ("name,start\nx,1\n", ", line 1: its first line must name its columns"),
        ("name,start,width,colour\n", ", line 1: unknown column 'colour'. A layout has name, start and width"),
        ("name,start,width,start\n", ", line 1: the column 'start' is there twice. Remove one of the two."),
        ("name,start,width\n", ": it names no column. Write a row for each column: its name, start and width."),
        ("name,start,width\n,1,2\n", ": it names no column."),
        ("name,start,width\nx,1\n", ", line 2: this row has 2 cells, and the header has 3."),
        ("name,start,width\nx,0,1\n", ", line 2: the start must be a whole number of at least 1."),
        ("name,start,width\n\nx,1,1.5\n", ", line 3: the width must be a whole number of at least 1."),
        ("name,start,width\nx,1,²\n", ", line 2: the width must be a whole number of at least 1."),
        ("name,start,width\nx,,1\n", ", line 2: the start is missing. Write a whole number, counted from 1."),
        ("name,start,end\nx,2,\n", ", line 2: the end is missing. Write a whole number, counted from 1."),
        ("name,start,end\nx,2,1\n", ", line 2: start, width and end do not fit together."),
        ("name,start,width,end\nx,2,3,5\n", ", line 2: start, width and end do not fit together."),
        ("name,start,width,type\nx,2,3,date\n", ", line 2: unknown type 'date'. Write text or number."),
        ("name,start,width,type,decimals\nx,2,3,text,1\n", ", line 2: a column of text has no decimals."),
        ("name,start,width\nx,1,3\ny,4,2\nz,3,1\n", ", line 4: position 3 belongs to the column of line 2 too."),
        ("name,start,width\nx,1,3\nx,4,2\n", ", line 3: the column 'x' is in line 2 too. Rename one of them."),
        ('name,start,width\n"x,1,3\n', ", line 2: a quotation mark is not closed or not doubled."),
    ],
)
def test_a_wrong_layout_is_said_with_its_line(tmp_path: Path, layout: str, said: str) -> None:
    path = write(tmp_path, LINES, layout)
    assert refusal(path).startswith(f"the layout {str(tmp_path / 'layout.csv')!r}{said}")


def test_a_layout_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, LINES)
    (tmp_path / "layout.csv").write_bytes("name,start,width\nGröße,1,3\n".encode("cp1252"))
    assert ", line 2: it is not UTF-8 text. Save the file in that encoding." in refusal(path)
    (tmp_path / "layout.csv").unlink()
    assert ": there is no such file. Paths in a policy are relative to its directory." in refusal(path)
    (tmp_path / "layout.csv").mkdir()
    assert ": it is a directory. Name the CSV file in it." in refusal(path)


def test_a_missing_layout_and_a_superfluous_one_are_said(tmp_path: Path) -> None:
    path = write(tmp_path, LINES)
    with pytest.raises(InputError, match=r"Add --layout FILE, or layout to \[input\]: a CSV file with name, start"):
        open_source(path, InputOptions())
    with pytest.raises(UsageError, match=r"whose name says that its cells are separated. Remove the layout, or let"):
        opened(write(tmp_path, LINES, name="table.csv"))


@pytest.fixture
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file and its layout in a folder of their own."""
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    lines = [f"{20 + row % 40:03}{'Köln' if row % 2 else 'Bonn'}{600 + row:04}" for row in range(80)]
    layout = "name,start,width,decimals,description\nage,1,3,0,Age in years\ncity,4,4,,\nweight,8,4,1,\n"
    return write(tmp_path / "data", lines, layout).relative_to(tmp_path)


def test_a_first_policy_leads_to_the_layout_from_where_it_lies(export: Path) -> None:
    layout = str(export.parent / "layout.csv")
    assert main(["policy", str(export), "--layout", layout, "-o", "policy.toml"]) == 0
    assert Policy.load("policy.toml").to_dict()["input"] == {"layout": "data/layout.csv"}
    assert main(["policy", str(export), "--layout", layout, "-o", "data/policy.toml"]) == 0
    text = Path("data/policy.toml").read_text("utf-8")
    assert 'layout = "layout.csv"  # the positions of the columns' in text
    assert "[columns.age]\n# Age in years\n" in text
    merged = merge_flags("data/policy.toml", input={"layout": "elsewhere.csv"})
    assert merged.input_options.layout == Path("data").absolute() / "../elsewhere.csv"


@pytest.mark.not_quick
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_file_is_released_and_measured_with_its_layout(
    export: Path, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--quasi-identifiers", "age,weight", "--other", "city", "-k", "5", "--engine", engine, "--form", "bounds"]
    read = ["--layout", str(export.parent / "layout.csv")]
    assert main(["anonymize", str(export), "-o", "release.csv", *asked, *read]) == 0
    with Path("release.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["city"] for row in rows) == ["Bonn"] * 40 + ["Köln"] * 40
    assert min(float(row["weight_min"]) for row in rows) == 60.0
    assert max(float(row["weight_max"]) for row in rows) == 67.9
    assert {int(row["age_min"]) >= 20 and int(row["age_max"]) <= 59 for row in rows} == {True}
    Path("layout.csv").write_bytes((export.parent / "layout.csv").read_bytes())
    assert main(["measure", str(export), "release.csv"]) == 0  # the certificate names the layout, not its folder
    assert "data/layout" not in Path("release.csv.sfumato.json").read_text("utf-8")
    capsys.readouterr()
