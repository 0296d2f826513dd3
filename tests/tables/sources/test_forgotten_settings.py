"""A forgotten separator or encoding is noticed by every reader, with the flag to add."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from sfumato.cli import main
from sfumato.errors import InputError, ReadingWarning
from sfumato.policy import InputOptions
from sfumato.tables.sources.source import open_source

SECRET = "Zaphod"


def read(path: Path, options: InputOptions) -> None:
    source = open_source(path, options)
    list(source.batches(source.names))


def refusal(path: Path, content: str, encoding: str = "utf-8", options: InputOptions | None = None) -> str:
    path.write_bytes(content.encode(encoding))
    with pytest.raises(InputError) as caught:
        read(path, options or InputOptions())
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def warned(path: Path, content: str, options: InputOptions | None = None) -> str:
    path.write_text(content)
    with pytest.warns(ReadingWarning) as caught:
        open_source(path, options or InputOptions())
    (warning,) = caught
    assert SECRET not in str(warning.message)
    return str(warning.message)


@pytest.mark.parametrize(("separator", "shown"), [(";", "';'"), ("\t", "'tab'"), ("|", "'|'")])
def test_a_forgotten_separator_is_said_with_its_flag(tmp_path: Path, separator: str, shown: str) -> None:
    content = f"age;sex;city\n31;m;{SECRET}\n2,5;f;x\n".replace(";", separator)
    message = warned(tmp_path / "t.csv", content)
    assert f"has one column by the separator ',', and 3 by {separator!r}. Add --separator {shown}, or" in message


def test_a_forgotten_separator_between_quoted_cells_is_said(tmp_path: Path) -> None:
    message = warned(tmp_path / "t.csv", f'"age";"sex"\n"31";"{SECRET};,"\n')
    assert "has one column by the separator ',', and 2 by ';'." in message


def test_a_comma_that_is_the_separator_after_all_is_said(tmp_path: Path) -> None:
    message = warned(tmp_path / "t.csv", f"age,sex\n31,{SECRET}\n", InputOptions(separator=";"))
    assert "one column by the separator ';', and 2 by ','. Add --separator ','" in message


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("content", ["a;b\n1\n2;3\n", "note\na;b\n", "a\n1\n", '"a;b"\n"1;2"\n'])
def test_a_table_of_one_column_is_read(tmp_path: Path, content: str) -> None:
    (tmp_path / "t.csv").write_text(content)
    assert len(open_source(tmp_path / "t.csv", InputOptions()).names) == 1


def test_a_forgotten_encoding_is_said_with_its_flag(tmp_path: Path) -> None:
    message = refusal(tmp_path / "t.csv", f"Größe,b\n1,{SECRET}\n", "cp1252")
    assert "It is probably cp1252, the encoding of Windows: add --encoding cp1252, or" in message


def test_a_title_above_the_header_of_a_text_file_is_said_with_its_flag(tmp_path: Path) -> None:
    message = refusal(tmp_path / "t.csv", f"Report of {SECRET}\n\nage,sex\n31,m\n")
    assert "If the lines above it are a title, add --header-row 3, or header_row = 3 to [input]" in message


@pytest.mark.parametrize(
    "command",
    [
        ["risk", "t.csv", "--quasi-identifiers", "age"],
        ["anonymize", "t.csv", "-o", "o.csv", "--quasi-identifiers", "age", "-k", "2"],
        ["compare", "t.csv", "--quasi-identifiers", "age", "-k", "2"],
        ["bound", "t.csv", "--quasi-identifiers", "age", "-k", "2"],
        ["measure", "t.csv", "t.csv", "--quasi-identifiers", "age", "-k", "2"],
    ],
)
def test_every_command_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(f"age;sex\n31;{SECRET}\n")
    assert main(command) == 2  # the table has no such column
    assert "Add --separator ';'" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("bad", [2, 5, 60])
def test_policy_reports_a_bad_line_by_its_true_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], bad: int
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["age;cost;city", *(f"{20 + row};1,5;Köln" for row in range(80))]
    lines[bad - 1] += f";{SECRET}"
    Path("t.csv").write_bytes("\n".join(lines).encode("cp1252"))
    assert main(["policy", "t.csv"]) == 4
    said = capsys.readouterr().err
    assert f"the record at line {bad} of the file 't.csv' has 4 fields, but the header has 3." in said
    assert SECRET not in said
