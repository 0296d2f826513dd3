"""An error about a cell names the line of a text file, whatever is above it or inside quotes, and never the cell."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato
from sfumato.errors import SfumatoError

SECRET = "Zaphod"
FAULT = {"cost": SECRET, "seen": SECRET, "land": SECRET, "born": "2030-01-01"}
"""What is wrong in the third record, by column."""
FLAGS: dict[str, Any] = {"other": "drop", "k": 2}
ASKED: dict[str, dict[str, Any]] = {
    "cost": {"quasi_identifiers": ["cost"], "type": {"cost": "numeric"}},
    "seen": {"quasi_identifiers": ["seen"], "type": {"seen": "date"}},
    "land": {"quasi_identifiers": ["land"], "taxonomy": {"land": {"ready": "countries"}}},
    "born": {"quasi_identifiers": ["age"], "derive": {"age": {"from": "born", "to": "seen", "unit": "years"}}},
}


def rows(column: str) -> list[dict[str, str]]:
    good = {"note": "a\nb", "cost": "12", "seen": "2024-02-03", "land": "Germany", "born": "2000-01-01", "person": "7"}
    return [good, good, {**good, column: FAULT[column]}, good]


def refusal(data: object, **flags: Any) -> str:
    with pytest.raises(SfumatoError) as caught:
        sfumato.anonymize(data, **FLAGS, **flags)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    sfumato.make_key(tmp_path / "key")
    return tmp_path / "key"


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("column", list(FAULT))
def test_the_line_of_a_text_file_is_named(column: str, engine: str, tmp_path: Path, key: Path) -> None:
    # A title takes two lines, the header is the third, and every record takes two.
    lines = ["a title", "", ";".join(rows(column)[0]), *(_line(row) for row in rows(column))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    reading: dict[str, Any] = {"input": {"separator": ";", "header_row": 3}, "engine": engine}
    assert "the first is in line 8. " in refusal(path, **reading, **ASKED[column])
    # Tokens of a column and pseudonyms are put into place between the file and what reads its cells.
    pseudonyms = {"pseudonyms": ["person"], "pseudonym_key": key, "accept_linkable": ["person"]}
    tokens = {"column_nulls": {ASKED[column]["quasi_identifiers"][0]: ["-999"]}} if column != "born" else {}
    assert "the first is in line 8. " in refusal(path, **reading, **ASKED[column], **pseudonyms, **tokens)


def _line(row: dict[str, str]) -> str:
    return ";".join(f'"{cell}"' for cell in row.values())


@pytest.mark.parametrize("column", list(FAULT))
def test_the_record_of_a_frame_is_named(column: str) -> None:
    table = pa.Table.from_pylist(rows(column))
    assert "the first is in record 3. " in refusal(table, **ASKED[column])
