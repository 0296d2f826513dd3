"""``sfumato taxonomy`` on the command line: what it prints, writes and returns."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from sfumato.cli import main

SECRETS = ("zzsecret", "yysecret")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + n % 40},{SECRETS[n % 15 % 2]}{n % 15:02},{10100 + n % 30},DE" for n in range(90)]
    Path("table.csv").write_text("\n".join(["age,city,zip,country", *rows]) + "\n")
    Path("city.csv").write_text("zzsecret00,north,*\nkiel,north,*\nulm,south,*\n")
    return tmp_path


class Command:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        found = main(["taxonomy", "table.csv", *arguments])
        captured = self._capsys.readouterr()
        printed = captured.out + captured.err
        assert found == code, printed
        assert not any(secret in printed for secret in SECRETS)
        return printed

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        content = json.loads(self(*arguments, "--json", code=code))
        assert isinstance(content, dict)
        return content


@pytest.fixture
def command(directory: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def test_without_more_it_says_what_the_column_is_and_what_fits(command: Command) -> None:
    text = command("zip")
    assert text.startswith("zip: numeric, 30 different values in 90 records\nwhat fits\n  --prefix 4 ")
    assert text.endswith("next    sfumato taxonomy table.csv zip --prefix 4\n")
    # A command that has to say how the table is read is not complete without these flags.
    assert command("zip", "--separator", ",").endswith("next    run the same command with --prefix 4\n")
    assert "categorical, 15 different values" in command("city")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["age", "--intervals", "5, 10"], "policy  taxonomy = { intervals = [5, 10] }"),
        (["zip", "--prefix", "4,3"], "policy  taxonomy = { prefix = [3, 4] }"),
        (["country", "--ready", "countries"], 'policy  taxonomy = { ready = "countries" }'),
        (["city", "--frequent", "3"], "next    write it with -o FILE"),
        (["city", "--groups", "4", "-o", "out.csv"], 'policy  taxonomy = "out.csv"'),
        (["city", "-o", "out.csv"], 'policy  taxonomy = "out.csv"'),
    ],
)
def test_it_ends_with_what_the_policy_has_to_say(command: Command, arguments: list[str], line: str) -> None:
    assert command(*arguments).splitlines()[-1] == line


def test_all_outputs_are_private_and_hold_the_values(command: Command) -> None:
    outputs = {"-o": "out.csv", "--missing": "missing.csv", "--counts": "counts.csv", "--draw": "tree.svg"}
    text = command("city", "--check", "city.csv", *(word for pair in outputs.items() for word in pair))
    assert "lacks 14 of the values, which 84 records have; they stand directly under * in the file" in text
    for name in outputs.values():
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600
    assert len(Path("missing.csv").read_text().splitlines()) == 14
    assert len(Path("out.csv").read_text().splitlines()) == 17
    assert Path("counts.csv").read_text().startswith("value,records\nyysecret01,6\n")
    assert "north" in Path("tree.svg").read_text()


def test_a_check_ends_with_the_code_of_taxonomy_errors_if_a_value_is_missing(command: Command) -> None:
    text = command("city", "--check", "city.csv", code=4)
    assert "warning the file city.csv lacks 14 of the values, which 84 records have" in text
    assert "unused  2 leaves that no record has" in text
    assert "next    list them with --missing FILE" in text
    command("city", "-o", "whole.csv")
    assert "the file whole.csv has every value of the column" in command("city", "--check", "whole.csv")


def test_a_ready_made_taxonomy_that_lacks_values_would_be_refused_by_anonymize(command: Command) -> None:
    text = command("city", "--ready", "countries", "--missing", "missing.csv", code=4)
    assert "ready countries lacks 15 of the values, which 90 records have; the column was read as" in text
    assert len(Path("missing.csv").read_text().splitlines()) == 15


def test_json_has_counts_and_no_values(command: Command) -> None:
    found = command.json("city", "--check", "city.csv", "--counts", "counts.csv", code=4)
    assert (found["distinct"], found["outside"], found["outside_records"], found["unused"]) == (15, 14, 84, 2)
    assert found["levels"][1] == {"level": 1, "groups": 2, "used": 1, "smallest": [6]}
    assert found["files"] == ["counts.csv"]


def test_reading_flags_and_the_policy_say_how_the_table_is_read(command: Command) -> None:
    Path("table.csv").write_text("age;city\n1;a\n;b\n-;b\n")
    Path("policy.toml").write_text('[input]\nseparator = ";"\n')
    found = command.json("age", "--policy", "policy.toml", "--null", "-", "--null", "")
    assert (found["records"], found["missing"], found["distinct"]) == (3, 2, 1)


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["city", "-o", "city.csv"], 2, "city.csv exists"),
        (["city", "-o", "table.csv", "--force"], 2, "the output is the input"),
        (["city", "-o", "a.csv", "--counts", "a.csv"], 2, "two outputs have the same name"),
        (["city", "--missing", "a.csv"], 2, "Name the taxonomy with --check or --ready"),
        (["city", "--draw", "a.txt"], 2, "no suffix that names a picture format"),
        (["city", "--groups", "x"], 2, "Give whole numbers, such as --groups 3,2"),
        (["city", "--intervals", "x"], 2, "Give numbers, such as --intervals 5,10,20"),
        (["city", "--check", "none.csv"], 4, "there is no such file"),
        (["none"], 2, "which the table does not have"),
        (["city", "--calendar", "month"], 4, "15 distinct values are not dates"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is_written(
    command: Command, arguments: list[str], code: int, problem: str
) -> None:
    before = sorted(path.name for path in Path.cwd().iterdir())
    assert problem in command(*arguments, code=code)
    assert sorted(path.name for path in Path.cwd().iterdir()) == before


def test_with_force_an_existing_file_is_replaced_and_that_is_said(command: Command) -> None:
    assert "replaced city.csv" in command("city", "-o", "city.csv", "--force")
    assert stat.S_IMODE(Path("city.csv").stat().st_mode) == 0o600
