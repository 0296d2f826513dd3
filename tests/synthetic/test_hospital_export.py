"""The export with flaws: what it holds, that it is reproducible, and that text and workbook say the same."""

from __future__ import annotations

import csv
import datetime
import hashlib
import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import fastexcel
import pytest

from sfumato.cli import main
from sfumato.errors import UsageError
from sfumato.synthetic import Hospital, HospitalExport, generate

NAMES = [
    *("Fall-Nr", "Patienten-Nr", "Name", "Geburtsdatum", "Geschlecht", "PLZ", "Versicherung", "Aufnahme", "Entlassung"),
    *("Hauptdiagnose", "Größe", "Gewicht", "Kosten", "Wiederaufnahme", "Bemerkung"),
]
Rows = list[dict[str, str]]


def read_text(path: Path) -> Rows:
    with path.open(encoding="cp1252", newline="") as file:
        return list(csv.DictReader(file, delimiter=";", strict=True))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "export.csv"
    assert generate("hospital", 5_000, path, seed=3, flaws=True) == [path]
    return path


@pytest.fixture(scope="module")
def rows(path: Path) -> Rows:
    return read_text(path)


def german_number(text: str) -> float:
    return float(text.replace(".", "").replace(",", "."))


def german_date(text: str) -> datetime.date:
    return datetime.datetime.strptime(text, "%d.%m.%Y").date()


def test_the_text_is_that_of_windows_in_germany(path: Path, rows: Rows) -> None:
    content = path.read_bytes()
    assert content.startswith(b"Fall-Nr;Patienten-Nr;Name;Geburtsdatum;")
    assert b"Gr\xf6\xdfe" in content.splitlines()[0]
    assert content.count(b"\r\n") == 5_001
    with pytest.raises(UnicodeDecodeError):
        content.decode("utf-8")
    assert list(rows[0]) == NAMES
    assert len(rows) == 5_000
    assert {re.sub(r"\d+", "9", row["Kosten"]) for row in rows} == {"9,9", "9.9,9"}
    assert all(re.fullmatch(r"(\d{1,3}|\d{1,2}\.\d{3}),\d\d", row["Kosten"]) for row in rows)
    assert {len(row["PLZ"]) for row in rows} == {5}
    assert {row["PLZ"][:2] for row in rows} == {"01"}


@pytest.mark.parametrize(
    ("column", "token", "form", "share"),
    [
        ("Geburtsdatum", "?", r"\d\d\.\d\d\.\d{4}", 0.004),
        ("Geschlecht", "?", "[mw]", 0.003),
        ("Versicherung", "?", "gesetzlich|privat|selbst", 0.02),
        ("Hauptdiagnose", "?", r"[A-Z]\d\d(\.\d{1,2})?", 0.004),
        ("Größe", "NA", r"[12],\d\d", 0.06),
        ("Gewicht", "-999", r"\d{2,3},[05]", 0.05),
        ("Bemerkung", "", r"(?s).{10,100}", 0.2),
    ],
)
def test_a_missing_value_has_the_token_of_its_column(
    rows: Rows, column: str, token: str, form: str, share: float
) -> None:
    missing = [row for row in rows if row[column] == token]
    assert len(missing) / len(rows) == pytest.approx(share, rel=0.6)
    assert all(re.fullmatch(form, row[column]) for row in rows if row[column] != token)


def test_notes_hold_what_makes_text_hard_to_read(rows: Rows) -> None:
    notes = [row["Bemerkung"] for row in rows]
    for mark in (";", '"', "\n", "\N{EN DASH}", ","):
        assert sum(mark in note for note in notes) > 100


def test_the_stays_of_a_patient_agree_about_the_patient(rows: Rows) -> None:
    counts = Counter(row["Patienten-Nr"] for row in rows)
    assert len(rows) / len(counts) == pytest.approx(1.42, abs=0.05)
    further = [(one, two) for one, two in pairwise(rows) if one["Patienten-Nr"] == two["Patienten-Nr"]]
    assert len(further) == len(rows) - len(counts)
    for one, two in further:
        shared = ("Name", "Geburtsdatum", "Geschlecht", "PLZ", "Versicherung", "Größe")
        assert all(one[name] == two[name] for name in shared)
        assert german_date(one["Entlassung"]) < german_date(two["Aufnahme"])


def test_the_stays_are_those_of_the_hospital(rows: Rows) -> None:
    batch = next(Hospital(stays=2).batches(5_000, seed=3)).to_pylist()
    assert len({row["Fall-Nr"] for row in rows}) == 5_000
    for row, stay in zip(rows, batch, strict=True):
        admission = german_date(row["Aufnahme"])
        assert (int(row["Patienten-Nr"]), admission) == (stay["patient_id"], stay["admission"])
        assert (german_date(row["Entlassung"]) - admission).days == stay["days"]
        assert row["Geschlecht"] in ("?", {"female": "w", "male": "m"}[stay["sex"]])
        assert row["Wiederaufnahme"] == {"no": "nein", "yes": "ja"}[stay["readmitted"]]
    firsts = {row["Patienten-Nr"]: (row, stay) for row, stay in reversed(list(zip(rows, batch, strict=True)))}
    for row, stay in firsts.values():
        if row["Geburtsdatum"] != "?":
            born, seen = german_date(row["Geburtsdatum"]), stay["admission"]
            assert seen.year - born.year - ((seen.month, seen.day) < (born.month, born.day)) == stay["age"]
    pairs = {(stay["diagnosis"], row["Hauptdiagnose"][:1]) for row, stay in zip(rows, batch, strict=True)}
    assert ("diabetes", "E") in pairs
    assert ("stroke", "I") in pairs
    assert ("stroke", "J") not in pairs


def test_a_workbook_holds_the_same_below_a_title(tmp_path: Path) -> None:
    text, *_ = generate("hospital", 300, tmp_path / "export.csv", flaws=True)
    book, *_ = generate("hospital", 300, tmp_path / "export.xlsx", flaws=True)
    sheet = fastexcel.read_excel(book).load_sheet("Fälle", header_row=None, skip_rows=0, dtypes="string").to_arrow()
    cells = [list(row.values()) for row in sheet.to_pylist()]
    assert [cell for cell in cells[0] if cell is not None] == [
        "Fälle der Klinik, Auszug aus dem Krankenhausinformationssystem"
    ]
    assert set(cells[1]) == {None}
    assert cells[2] == NAMES
    assert len(cells) == 303

    def as_in_sheet(name: str, cell: str) -> str | None:
        if name in ("Größe", "Gewicht", "Kosten") and cell != "NA":
            return f"{german_number(cell):g}" if name != "Kosten" else f"{german_number(cell):.2f}".rstrip("0")
        if name in ("Geburtsdatum", "Aufnahme", "Entlassung") and cell != "?":
            return german_date(cell).isoformat()
        return cell.replace("\r\n", "\n") or None

    for row, found in zip(read_text(text), cells[3:], strict=True):
        for name, cell in zip(NAMES, found, strict=True):
            wanted = as_in_sheet(name, row[name])
            assert (cell or "").removesuffix(" 00:00:00") == (wanted or "").removesuffix(".")


@pytest.mark.not_quick
def test_the_first_records_do_not_depend_on_how_many_are_asked_for() -> None:
    export = HospitalExport()
    many = list(export.rows(70_000, seed=1))
    assert len(many) == 70_000
    assert list(export.rows(500, seed=1)) == many[:500]
    assert list(export.rows(65_537, seed=1)) == many[:65_537]
    assert list(export.rows(500, seed=2)) != many[:500]


def test_the_values_are_those_of_the_version() -> None:
    """If this fails, the values have changed: raise the version, since figures name it."""
    rows = json.dumps(list(HospitalExport().rows(1_000, seed=7)), default=str)
    assert HospitalExport.version == "1"
    assert hashlib.sha256(rows.encode()).hexdigest()[:16] == "07ce21a78d36681c"


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    one, two, other = (
        generate("hospital", 50, tmp_path / f"{number}{suffix}", seed=seed, flaws=True)[0].read_bytes()
        for number, seed in enumerate([1, 1, 2])
    )
    assert one == two != other


def test_the_command_writes_the_export_alone_and_names_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "export.csv")
    arguments = ["generate", "hospital", "-n", "20", "--flaws", "-o", target]
    assert main(arguments) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["export.csv"]
    assert capsys.readouterr().out.splitlines() == [
        "20 synthetic records by hospital with flaws, version 1",
        f"wrote   {target}",
        f"next    sfumato policy {target} -o policy.toml",
    ]
    assert main(arguments) == 2
    assert "exists. Name another file, or add --force to replace it." in capsys.readouterr().err.replace(
        "\n        ", " "
    )
    assert main([*arguments, "--stays", "1", "--force", "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("replaced ")
    content = json.loads(printed.out)
    assert content["options"] == {"stays": 1, "flaws": True}
    assert content["files"] == [target]


@pytest.mark.parametrize(
    ("name", "file", "records", "options", "message"),
    [
        ("census", "t.csv", 10, {}, "the table of census has no flaws. Leave out --flaws, or generate hospital."),
        ("hospitel", "t.csv", 10, {}, "unknown generator 'hospitel'. Did you mean 'hospital'?"),
        ("hospital", "t.parquet", 10, {}, "Choose a name that ends in .csv or .xlsx."),
        ("hospital", ".csv", 10, {}, "Choose a name that ends in .csv or .xlsx."),
        ("hospital", "t.csv", 10, {"function": "C2"}, "the generator hospital has no option 'function'."),
        ("hospital", "t.csv", 10, {"stays": 0}, "stays must be a whole number of at least 1, not 0."),
        ("hospital", "t.csv", 0, {}, "the number of records must be a whole number of at least 1, not 0."),
        ("hospital", "t.xlsx", 1_048_575, {}, "too few for 1,048,575 records with a title."),
    ],
)
def test_what_cannot_be_exported_is_refused(
    tmp_path: Path, name: str, file: str, records: int, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        generate(name, records, tmp_path / file, flaws=True, **options)
    assert list(tmp_path.iterdir()) == []
