"""Flags about reading: an export is released with flags alone, and warnings about reading are printed once."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from sfumato.cli import main

READ = ["--encoding", "cp1252", "--separator", ";", "--decimal", ",", "--thousands", ".", "--header-row", "3"]


@pytest.fixture
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{1 + row % 3}.{row % 4}50,5;{-999 if row % 5 == 0 else -99 if row % 5 == 1 else 70}" for row in range(40)]
    lines = ["Fälle", "", "Kosten;Gewicht", *rows]
    Path("export.csv").write_bytes("\r\n".join(lines).encode("cp1252"))
    return Path("export.csv")


def test_an_export_is_released_with_flags_alone(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cleared = ["--column-null", "Gewicht=-999", "--column-null", "Gewicht=-99"]
    asked = ["--quasi-identifiers", "Kosten", "--other", "Gewicht", "-k", "40", "--form", "Kosten=bounds"]
    assert main(["anonymize", str(export), "-o", "release.csv", *READ, *cleared, *asked]) == 0
    assert capsys.readouterr().err == ""
    with Path("release.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    assert {(row["Kosten_min"], row["Kosten_max"]) for row in rows} == {("1050.5", "3350.5")}
    assert sorted(row["Gewicht"] for row in rows) == [""] * 16 + ["70"] * 24


def test_a_warning_about_reading_is_printed_once_by_a_command(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = [flag for flag in READ if flag not in ("--decimal", ",", "--thousands", ".")]
    command = ["compare", str(export), *read, "--quasi-identifiers", "Kosten", "--other", "drop", "-k", "2,4",
               "--methods", "hilbert,mondrian"]  # fmt: skip
    for _ in range(2):
        assert main(command) == 0
        assert capsys.readouterr().err.count("column 'Kosten' holds numbers in another form") == 1


def test_a_dry_run_counts_what_means_missing_where_the_run_does(
    export: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Texts that mean "missing" in the input are no values of a sensitive column, and stay values of a kept one."""
    read = [*READ, "--null", "-999", "--null", "-99", "--quasi-identifiers", "Kosten", "-k", "2", "--dry-run", "--json"]
    found = {}
    for role in ("--sensitive", "--other"):
        assert main(["anonymize", str(export), *read, role, "Gewicht"]) == 0
        (found[role],) = (
            (column["distinct"], column["nulls"])
            for column in json.loads(capsys.readouterr().out)["columns"]
            if column["name"] == "Gewicht"
        )
    assert found == {"--sensitive": (1, 16), "--other": (3, 0)}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--thousands", ","], "is ',' and so is the decimal mark. Set the two to different characters"),
        (["--thousands", "x"], "must be a point, a comma, an apostrophe or a space"),
        (["--header-row", "0"], "must be a whole number of at least 1, not 0"),
        (["--column-null", "Gewicht"], "is not understood. Write it as --column-null COL=TOKEN."),
        (["--header-row", "99"], "has no line 99. Check header_row."),
    ],
)
def test_a_wrong_flag_is_said(export: Path, capsys: pytest.CaptureFixture[str], flags: list[str], said: str) -> None:
    assert main(["risk", str(export), *READ, "--quasi-identifiers", "Kosten", *flags]) in (2, 4)
    assert said in capsys.readouterr().err.replace("\n", " ")
