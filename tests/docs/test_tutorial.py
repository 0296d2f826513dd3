"""The tutorial, typed by a steward: it shows what happens, what it publishes is safe, and its steps are counted."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import Block, Shown, blocks_of, check_page, run_page

from sfumato.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-hospital.md"
NAME = "docs/tutorial-hospital.md"
DECIDED = ("-k", "--column-null", "--derive", "--max-suppressed")
"""The flags whose values a steward has to choose."""
QUASI_IDENTIFIERS = ("Geschlecht", "Region", "Entlassung", "Gewicht", "Kosten", "Alter")
Row = dict[str, str]

pytestmark = [
    pytest.mark.not_quick,
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning"),
]


@dataclass(frozen=True)
class Walk:
    """The directory after the steward has typed everything, and what the page shows beside what was printed."""

    directory: Path
    shown: list[Shown]

    def rows(self, name: str) -> list[Row]:
        """A file as a spreadsheet reads it: the mark at its beginning names the encoding."""
        content = (self.directory / name).read_bytes()
        text = content.decode("utf-8-sig" if content.startswith(codecs.BOM_UTF8) else "cp1252")
        return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=";", strict=True))


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    home = tmp_path_factory.mktemp("tutorial")
    (home / "here").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home / "here")
        patch.setenv("SFUMATO_STATE_DIR", str(home / "state"))
        patch.setenv("COLUMNS", "120")
        yield Walk(home / "here", list(run_page(blocks_of(PAGE, NAME), home / "here")))


@pytest.fixture(scope="module")
def stays(walk: Walk) -> list[Row]:
    return walk.rows("export.csv")


@pytest.fixture(scope="module")
def released(walk: Walk) -> list[Row]:
    return walk.rows("release.csv")


def test_the_tutorial_shows_what_happens(walk: Walk, pytestconfig: pytest.Config) -> None:
    check_page(PAGE, walk.shown, write=pytestconfig.getoption("write_docs"))


def test_what_is_published_names_nobody(walk: Walk, stays: list[Row]) -> None:
    published = ["release.csv", "release.csv.sfumato.json", "release.csv.codebook.html", "report.html"]
    secrets = {row[name] for row in stays for name in ("Fall-Nr", "Patienten-Nr", "Name", "Geburtsdatum", "Bemerkung")}
    secrets |= {german_date(row["Geburtsdatum"]).isoformat() for row in stays if row["Geburtsdatum"] != "?"}
    secrets = {line for text in secrets for line in text.splitlines()} - {"?"}
    assert len(secrets) > 3_000
    for name in published:
        text = (walk.directory / name).read_text("utf-8")
        assert [secret for secret in secrets if secret in text] == []
    assert not {"Name", "Patienten-Nr", "PLZ", "Geburtsdatum", "Größe"} & {*walk.rows("release.csv")[0]}


def test_every_class_has_the_persons_that_the_policy_asks_for(
    walk: Walk, released: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial under the same policy with pseudonyms of the patients has the same classes, and shows who is in them."""
    monkeypatch.chdir(walk.directory)
    assert main(["key", "hospital.key"]) == 0
    flags = ["--pseudonyms", "Patienten-Nr", "--pseudonym-key", "hospital.key", "--accept-linkable", "Patienten-Nr"]
    assert main(["anonymize", "export.csv", "--policy", "policy.toml", "-o", "who.csv", "--trial", *flags]) == 0
    who = walk.rows("who.csv")
    assert Counter(map(class_of, who)) == Counter(map(class_of, released))
    persons, groups = defaultdict(set), defaultdict(set)
    for row in who:
        persons[class_of(row)].add(row["Patienten-Nr"])
        groups[class_of(row)].add(row["Diagnosegruppe"])
    assert min(map(len, persons.values())) == 5
    assert min(len(group - {"", "?"}) for group in groups.values()) >= 3


def class_of(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in QUASI_IDENTIFIERS)


def test_the_release_shows_every_stay_as_it_was_written(stays: list[Row], released: list[Row]) -> None:
    """Numbers with decimal commas and points, dates and tokens were read: each stay is within a row that shows it."""
    rows = defaultdict(list)
    for row in released:
        rows[kept(row)].append(row)
    assert Counter(map(kept, released)) == Counter(kept_of_stay(stay) for stay in stays)
    for stay in stays:
        assert any(covers(row, stay) for row in rows[kept_of_stay(stay)])


def kept(row: Row) -> tuple[str, ...]:
    return row["Versicherung"], row["Wiederaufnahme"], row["Liegetage"]


def kept_of_stay(stay: Row) -> tuple[str, ...]:
    days = (german_date(stay["Entlassung"]) - german_date(stay["Aufnahme"])).days
    return stay["Versicherung"].replace("?", ""), stay["Wiederaufnahme"], str(days)


def covers(row: Row, stay: Row) -> bool:
    left = german_date(stay["Entlassung"])
    quarter = f"{left.year}-Q{(left.month + 2) // 3}"
    return (
        row["Geschlecht"] in ("*", stay["Geschlecht"].replace("?", ""))
        and row["Region"] in ("*", stay["PLZ"][:3])
        and (row["Entlassung"] in ("*", str(left.year), quarter) or quarter in quarters(row["Entlassung"]))
        and within(row["Gewicht"], None if stay["Gewicht"] == "-999" else german_number(stay["Gewicht"]))
        and within(row["Kosten"], min(german_number(stay["Kosten"]), 15_000))
        and within(row["Alter"], age(stay))
    )


def within(label: str, value: float | None) -> bool:
    """Whether a released label covers a number; an empty one stands for what is missing."""
    if label in ("", "*"):
        return label == "*" or value is None
    low, _, high = label.strip("[]").partition("..")
    numbers = [german_number(end.rstrip("+")) for end in (low, high or low)]
    return value is not None and numbers[0] <= value and (value <= numbers[1] or label.rstrip("]").endswith("+"))


def quarters(label: str) -> list[str]:
    """The quarters from the first day to the last of a range of dates."""
    first, _, last = label.strip("[]").partition("..")
    if not last:
        return []
    numbers = [4 * day.year + (day.month - 1) // 3 for day in (date.fromisoformat(first), date.fromisoformat(last))]
    return [f"{number // 4}-Q{number % 4 + 1}" for number in range(numbers[0], numbers[1] + 1)]


def age(stay: Row) -> float | None:
    if stay["Geburtsdatum"] == "?":
        return None
    born, seen = german_date(stay["Geburtsdatum"]), german_date(stay["Aufnahme"])
    return min(seen.year - born.year - ((seen.month, seen.day) < (born.month, born.day)), 90)


def german_number(text: str) -> float:
    return float(text.replace(".", "").replace(",", "."))


def german_date(text: str) -> date:
    return datetime.strptime(text, "%d.%m.%Y").date()


def test_no_token_for_a_missing_value_is_released(stays: list[Row], released: list[Row]) -> None:
    cells = Counter(cell for row in released for cell in row.values())
    assert not {"-999", "?", "NA"} & cells.keys()
    assert all(within(row["Gewicht"], None) or not within(row["Gewicht"], -999) for row in released)
    assert Counter(row["Versicherung"] for row in released)[""] == Counter(row["Versicherung"] for row in stays)["?"]


def test_a_german_spreadsheet_opens_the_release(walk: Walk, released: list[Row]) -> None:
    content = (walk.directory / "release.csv").read_bytes()
    assert content.startswith(codecs.BOM_UTF8 + b"Geschlecht;Versicherung;Entlassung;Gewicht;")
    assert {name for row in released for name in row} == {
        *QUASI_IDENTIFIERS,
        *("Versicherung", "Wiederaufnahme", "Liegetage", "Diagnosegruppe"),
    }
    ends = [end for row in released for end in row["Gewicht"].strip("[]").split("..") if "," in end]
    assert len(ends) > 100
    assert all(re.fullmatch(r"\d+,5", end) for end in ends)
    assert not any("." in row["Gewicht"].replace("..", "") for row in released)


def test_the_run_record_has_the_releases_and_no_trial(walk: Walk) -> None:
    record = Path(os.environ["SFUMATO_STATE_DIR"]) / "runs.jsonl"
    outputs = [Path(json.loads(line)["output"]).name for line in record.read_text("utf-8").splitlines()]
    assert outputs == ["release.csv", "next-release.csv"]


def test_the_commands_and_decisions_are_as_many_as_the_page_says() -> None:
    text = PAGE.read_text("utf-8")
    whole_story = text[: text.index("## The same from a workbook")].count("\n")
    blocks = [block for block in blocks_of(PAGE, NAME) if "output" not in block.marks and block.end <= whole_story]
    assert {block.kind for block in blocks if "merged into" not in block.marks} == {"shell"}
    assert not [block for block in blocks if block.hidden or "not run" in block.marks]
    commands = [command for block in blocks if block.kind == "shell" for command in block.commands]
    typed = [command for command in commands if not command.startswith("sfumato generate ")]
    flags = sum(len(re.findall(rf"(?<= ){flag}(?= )", command)) for command in typed for flag in DECIDED)
    settings = sum(settings_of(tomllib.loads(block.text)) for block in blocks if "merged into" in block.marks)
    said = re.search(r"(\d+) commands and (\d+) decisions", text.replace("\n", " "))
    assert said is not None
    assert (int(said[1]), int(said[2])) == (len(typed), flags + settings)


def settings_of(part: Any) -> int:
    """How many settings a part of a policy has."""
    if isinstance(part, dict):
        return sum(map(settings_of, part.values()))
    nested = isinstance(part, list) and any(isinstance(item, dict) for item in part)
    return sum(map(settings_of, part)) if nested else 1


def test_no_block_of_the_tutorial_is_a_script() -> None:
    assert not [block.place for block in blocks_of(PAGE, NAME) if is_script(block)]


def is_script(block: Block) -> bool:
    return block.kind == "python" or "file" in block.marks
