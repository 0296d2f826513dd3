"""Cells of CSV that a spreadsheet takes for formulas: they are counted, and disarmed if the policy says so."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.cli import main
from sfumato.errors import OutputError
from sfumato.policy import InputOptions, merge_flags
from sfumato.tables.formulas import FormulaCells, rearmed
from sfumato.tables.sources.source import open_source

FORMULAS = ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "-", "=", "-1-1", "+49 30 1"]
HARMLESS = ["a", "", "-5", "-5.25", "+3", "-1,5", "-1e-3", "-.5", "'a", "'", " =1", "a=1", "'-5", "'=1+1"]
NOTES = [*FORMULAS, *HARMLESS]
FLAGS: dict[str, Any] = {
    "quasi_identifiers": ["age", "town"],
    "sensitive": "diagnosis",
    "other": "keep",
    "accept_linkable": "note",
    "k": 4,
}
TOWNS = "=Ulm,@south,*\n=Bonn,@west,*\nEssen,@west,*\n"

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / ".state"))
    monkeypatch.chdir(tmp_path)


def people() -> pa.Table:
    count = 4 * len(NOTES)
    return pa.table(
        {
            "age": [-number % 40 - 10 for number in range(count)],
            "town": [["=Ulm", "=Bonn", "Essen"][number % 3] for number in range(count)],
            "diagnosis": [["-flu", "=cold", None][number // 3 % 3] for number in range(count)],
            "note": [NOTES[number % len(NOTES)] for number in range(count)],
        }
    )


def cells(path: str) -> dict[str, list[str]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[index] for row in rows] for index, name in enumerate(header)}


def begins_like_a_formula(cell: str) -> bool:
    """Without a regular expression: the first character, and whether Python reads a number."""
    if not cell or cell[0] not in "=+-@\t\r":
        return False
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return True
    return False


def passed(values: list[str | None], *, disarm: bool, encoded: bool = True) -> tuple[list[str | None], list[str]]:
    column = pa.array(values, pa.string())
    formulas = FormulaCells(disarm=disarm)
    table = formulas.passed(pa.table({"c": column.dictionary_encode() if encoded else column}))
    return table.column("c").to_pylist(), formulas.warnings()


@pytest.mark.parametrize("encoded", [True, False])
def test_formulas_are_counted_and_numbers_are_none(encoded: bool) -> None:
    values = [*NOTES, None, *FORMULAS]
    written, (warning,) = passed(values, disarm=False, encoded=encoded)
    assert written == values
    assert f": {2 * len(FORMULAS)} in 'c'." in warning
    assert "--formulas disarm" in warning
    assert passed([*HARMLESS, None], disarm=False, encoded=encoded) == ([*HARMLESS, None], [])


@given(st.lists(st.one_of(st.none(), st.text("'=+-@\t\r1.a", max_size=5)), min_size=1, max_size=30), st.booleans())
def test_disarmed_values_are_no_formulas_stay_different_and_come_back(values: list[str | None], encoded: bool) -> None:
    written, _ = passed(values, disarm=True, encoded=encoded)
    assert not any(begins_like_a_formula(value) for value in written if value is not None)
    assert len(set(written)) == len(set(values))
    changed = [(old, new) for old, new in zip(values, written, strict=True) if old != new]
    assert all(new == f"'{old}" for old, new in changed)
    batch = pa.record_batch({"c": pa.array(written, pa.string()).dictionary_encode()})
    assert rearmed(batch).column(0).to_pylist() == values


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv"])
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_csv_release_says_where_it_has_formulas_and_changes_none(engine: str, suffix: str) -> None:
    release = sfumato.anonymize(people(), **FLAGS, engine=engine, method="hilbert-fast")
    assert not any("formulas" in text for text in release.warnings)
    release.write(f"out.{suffix}")
    (warning,) = [text for text in release.warnings if "formulas" in text]
    assert f"{4 * len(FORMULAS)} in 'note'" in warning
    assert "in 'diagnosis'" in warning
    assert "'age'" not in warning
    assert "flu" not in warning
    written = open_source(f"out.{suffix}", InputOptions())
    notes = {note for batch in written.batches(["note"]) for note in batch.column(0).to_pylist()}
    assert notes == set(NOTES)


def test_the_command_says_it_in_the_summary_and_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    sfumato.anonymize(people(), **FLAGS).write("in.parquet")
    arguments = ["anonymize", "in.parquet", "--quasi-identifiers", "age,town", "--sensitive", "diagnosis", "-k", "4"]
    arguments += ["--other", "keep", "--accept-linkable", "note"]
    assert main([*arguments, "-o", "out.csv"]) == 0
    assert f"{4 * len(FORMULAS)} in 'note'" in capsys.readouterr().out
    assert main([*arguments, "-o", "out.csv", "--json", "--formulas", "disarm"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert any(text.startswith("cells that a spreadsheet would take for formulas were written") for text in warnings)
    assert main([*arguments, "-o", "out.parquet"]) == 0
    assert "formulas" not in capsys.readouterr().out


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_disarmed_release_has_no_formula_and_is_read_as_it_was_meant(engine: str) -> None:
    Path("towns.csv").write_text(TOWNS)
    table = people()
    flags = {**FLAGS, "formulas": "disarm", "taxonomy": {"town": "towns.csv"}, "engine": engine}
    release = sfumato.anonymize(table, **flags, method="hilbert-fast")
    release.write("out.csv")
    columns = cells("out.csv")
    assert not any(begins_like_a_formula(cell) for column in columns.values() for cell in column)
    assert {"'=1+1", "''=1+1", "-5", "'-5"} <= {*columns["note"]}
    assert any(cell.startswith("'@") or cell.startswith("'=") for cell in columns["town"])
    assert json.loads(Path("out.csv.sfumato.json").read_text())["policy"]["release"] == {"formulas": "disarm"}
    report = sfumato.audit("out.csv", original=table)
    assert report.holds
    assert report.remarks == ()
    assert sfumato.measure(table, "out.csv").values["gcp"] == pytest.approx(release.losses.gcp)
    # Another policy does not change how the release was written.
    kept = merge_flags(release.policy, formulas="keep")
    assert sfumato.measure(table, "out.csv", kept).values["gcp"] == pytest.approx(release.losses.gcp)
    # Whoever has no certificate reads the cells as they stand.
    assert {"'=cold", "'-flu"} <= {*columns["diagnosis"]}
    assert sfumato.audit("out.csv", quasi_identifiers=["age", "town"], k=4).holds


def test_disarming_decides_no_class_so_the_run_record_does_not_warn() -> None:
    sfumato.anonymize(people(), **FLAGS).write("a.csv")
    release = sfumato.anonymize(people(), **FLAGS, formulas="disarm")
    assert not any("intersect" in text or "earlier" in text for text in release.warnings)
    release.write("b.csv")
    assert cells("b.csv").keys() == cells("a.csv").keys()


def test_both_tables_of_anatomy_are_disarmed() -> None:
    table = pa.table({"age": [1, 2, 3, 4], "diagnosis": ["=a", "-b", "@c", "+d"]})
    flags = {"quasi_identifiers": "age", "sensitive": "diagnosis", "l": 2, "method": "anatomy", "seed": 0}
    release = sfumato.anonymize(table, **flags, formulas="disarm")
    release.write("out.csv")
    assert {*cells("out.sensitive.csv")["diagnosis"]} == {"'=a", "'-b", "'@c", "'+d"}
    assert sfumato.audit("out.csv").holds


def test_a_column_whose_name_is_a_formula_cannot_be_disarmed() -> None:
    table = pa.table({"=age": [1, 2, 3, 4]})
    release = sfumato.anonymize(table, quasi_identifiers="=age", k=2, formulas="disarm")
    with pytest.raises(OutputError, match="'=age' begins like a formula"):
        release.write("out.csv")
    release.write("out.parquet")


def test_excel_gets_text_and_never_formulas() -> None:
    release = sfumato.anonymize(people(), **FLAGS, formulas="disarm")
    release.write("out.xlsx")
    assert not any("formulas" in text for text in release.warnings)
    sheet = openpyxl.load_workbook("out.xlsx").active
    kinds = {cell.data_type for row in sheet.iter_rows(min_row=2) for cell in row if cell.value is not None}
    assert kinds == {"s"}
    assert "=1+1" in {cell.value for cell in sheet["D"]}
