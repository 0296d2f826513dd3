"""What a steward gets wrong with a hospital's export is said with what to do, and without a cell."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

import sfumato
from sfumato.cli import main

READ = ["--encoding", "cp1252", "--separator", ";"]
NUMBERS = ["--decimal", ",", "--thousands", "."]
DATES = ["--date-format", "%d.%m.%Y"]
ASKED = ["anonymize", "export.csv", "-o", "release.csv", "-k", "5", *READ]
DROP = ["--other", "drop"]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("errors") / "export.csv"
    sfumato.generate("hospital", 300, path, flaws=True)
    return path


@pytest.fixture(scope="module")
def cells(export: Path) -> list[str]:
    """Everything that a message must not show. Shorter texts may be parts of words."""
    with export.open(encoding="cp1252", newline="") as file:
        return sorted({cell for row in csv.DictReader(file, delimiter=";") for cell in row.values() if len(cell) > 4})


@pytest.mark.parametrize(
    ("code", "said", "command"),
    [
        (4, "add --encoding cp1252", ["risk", "export.csv", "--quasi-identifiers", "PLZ"]),
        (4, "1 distinct value is not a number; the first is in line",
         [*ASKED, *DROP, *NUMBERS, "--quasi-identifiers", "Größe", "--type", "Größe=numeric"]),
        (4, 'Add --decimal "," --thousands "."',
         [*ASKED, *DROP, "--quasi-identifiers", "Kosten", "--type", "Kosten=numeric"]),
        (4, "Set --date-format, or date_format in [input]; `sfumato policy` finds it",
         [*ASKED, *DROP, "--quasi-identifiers", "Aufnahme", "--type", "Aufnahme=date"]),
        (4, "1 distinct value is not a date of the form %d.%m.%Y; the first is in line",
         [*ASKED, *DROP, *DATES, "--quasi-identifiers", "Geburtsdatum", "--type", "Geburtsdatum=date"]),
        (4, "is not a date of the form %d.%m.%Y; the first is in line",
         [*ASKED, *DROP, *DATES, "--derive", "Alter=years(Geburtsdatum, Aufnahme)", "--quasi-identifiers", "Alter"]),
        (4, "'Aufnahme' lies before 'Entlassung'; the first is in line 2. Exchange from and to",
         [*ASKED, *DROP, *DATES, "--derive", "Tage=days(Entlassung, Aufnahme)", "--quasi-identifiers", "Tage"]),
        (4, "is not in the ready-made taxonomy 'icd-10'; the first is in line",
         [*ASKED, *DROP, "--derive", "Gruppe=ready(Hauptdiagnose, icd-10, block)", "--quasi-identifiers", "Gruppe"]),
        (4, 'write taxonomy = { ready = "icd-10" } into the policy',
         [*ASKED, *DROP, "--quasi-identifiers", "Hauptdiagnose", "--taxonomy", "Hauptdiagnose=icd-10"]),
        (2, "Did you mean 'Größe'?", [*ASKED, *DROP, "--quasi-identifiers", "Groesse"]),
        (2, "accept_linkable", [*ASKED, "--other", "keep", "--quasi-identifiers", "PLZ"]),
        (3, "persons", [*ASKED, *DROP, "--quasi-identifiers", "PLZ", "--person", "Patienten-Nr", "-k", "290"]),
        (2, "Did you mean 'Gewicht'?", ["policy", "export.csv", "--column-null", "Gewich=-999"]),
        (4, "name the line or row that holds it with --header-row", ["policy", "export.csv", "--header-row", "7"]),
        (2, "unknown ready-made taxonomy", ["taxonomy", "export.csv", "Hauptdiagnose", *READ, "--ready", "icd10"]),
    ],
)  # fmt: skip
def test_an_error_says_what_to_do_and_shows_no_cell(
    export: Path,
    cells: list[str],
    code: int,
    said: str,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(export.parent)
    assert main(command) == code
    printed = capsys.readouterr()
    message = re.sub(r"\s+", " ", printed.err)
    assert said in message
    assert [cell for cell in cells if cell in printed.out + printed.err] == []
    assert [path.name for path in export.parent.iterdir()] == ["export.csv"]
