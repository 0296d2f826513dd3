"""The list of recorded releases, and what the user says of them: never published, or withdrawn."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.cli import main
from sfumato.releases.run_record import recorded_runs, state_directory

NOBODY = 65534
DRAWN = np.random.default_rng(5)
TABLE = pa.table({"age": DRAWN.integers(20, 70, 200), "height": DRAWN.integers(150, 200, 200)})
LARGER = pa.concat_tables([TABLE, pa.table({"age": [30] * 4, "height": [170] * 4})])


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))


def release(k: int, target: str | None = None, table: pa.Table = TABLE, **asked: Any) -> list[str]:
    """Anonymize, write, and return what is said of earlier releases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = sfumato.anonymize(
            table, quasi_identifiers=["age", "height"], other="drop", k=k, method="mondrian", **asked
        )
        if target is not None:
            made.write(target)
    return [text for text in made.warnings if "released" in text or "withdrawn" in text]


def record() -> Path:
    return state_directory() / "runs.jsonl"


def test_the_list_has_every_written_release_and_what_it_required() -> None:
    assert sfumato.runs() == []
    release(5)
    release(5, "one.csv")
    release(6, "two.csv", LARGER, max_suppressed=0.05)
    first, second = sfumato.runs()
    assert (first.number, first.input, first.requirements) == (1, "pyarrow", ("k = 5 records",))
    assert (first.method, first.engine, first.version, first.mark) == ("mondrian", "memory", sfumato.__version__, None)
    assert (first.records, first.released) == (200, 200)
    assert (second.number, second.records, second.requirements) == (2, 204, ("k = 6 records",))
    assert second.output == str(Path("two.csv").absolute())
    assert first.time is not None
    assert first.time.utcoffset() is not None
    assert list(first.as_dict()) == [
        *("number", "time", "input", "output", "requirements", "records", "released", "method", "engine", "version"),
        "mark",
    ]


def test_requirements_are_listed_without_the_names_of_columns() -> None:
    table = TABLE.append_column(
        "illness", pa.array(["flu", "flu", "cold", "cold", "none", "none", "gout", "gout"] * 25)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sfumato.anonymize(
            table.append_column("patient", pa.array([f"P{row // 2}" for row in range(200)])),
            quasi_identifiers="age",
            sensitive="illness",
            other="drop",
            person="patient",
            k=4,
            l=2,
        ).write("out.csv")
    (run,) = sfumato.runs()
    assert run.requirements == ("k = 4 persons", "frequency, l = 2")
    assert "illness" not in record().read_text()


def test_a_release_that_was_never_published_warns_no_more() -> None:
    release(5, "one.csv")
    release(6, "two.csv")
    assert "(runs 1, 2)" in release(7)[0]
    sfumato.mark_run(1, "never-published")
    (warning,) = release(7)
    assert warning.startswith("this table was released 1 time before under another policy")
    assert "(run 2)" in warning
    sfumato.mark_run(2, "never-published")
    assert release(7) == []
    assert [run.mark for run in sfumato.runs()] == ["never-published"] * 2


def test_a_release_that_was_withdrawn_warns_in_other_words() -> None:
    release(5, "one.csv")
    sfumato.mark_run(1, "withdrawn")
    (warning,) = release(7)
    assert warning.startswith("a release of this table, or of one that shares its records, was withdrawn (run 1 of ")
    assert "whoever still has a copy can intersect its classes" in warning
    (warning,) = release(5, table=LARGER)
    assert "was withdrawn (run 1 of " in warning
    assert release(5) == []  # the classes are the same


def test_a_mark_can_be_changed_and_taken_back() -> None:
    release(5, "one.csv")
    before = record().read_bytes()
    for mark in ("withdrawn", "never-published", None):
        sfumato.mark_run(1, mark)  # type: ignore[arg-type] - the loop hides the literals
        assert sfumato.runs()[0].mark == mark
    assert release(7)[0].startswith("this table was released 1 time before")
    assert record().read_bytes().startswith(before)
    assert len(record().read_bytes().splitlines()) == 4


def test_many_earlier_releases_are_not_all_numbered() -> None:
    for k in range(2, 9):
        release(k, f"{k}.csv")
    (warning,) = release(9)
    assert "was released 7 times before" in warning
    assert "(runs ..., 3, 4, 5, 6, 7)" in warning


def test_numbers_and_marks_stay_when_a_line_is_damaged() -> None:
    for k in (5, 6, 7):
        release(k, f"{k}.csv")
    sfumato.mark_run(3, "withdrawn")
    lines = record().read_bytes().splitlines(keepends=True)
    lines[1] = lines[1][:30] + b"\n"
    record().write_bytes(b"".join(lines) + b'{"run": "no such line", "mark": "withdrawn"}\n{"run": []}\n')
    assert [(run.number, run.mark) for run in sfumato.runs()] == [(1, None), (2, "withdrawn")]


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_half_a_mark_is_no_mark_and_does_not_spoil_the_next(cut: int) -> None:
    release(5, "one.csv")
    sfumato.mark_run(1, "withdrawn")
    record().write_bytes(record().read_bytes()[:-cut])
    sfumato.mark_run(1, "never-published")
    assert sfumato.runs()[0].mark == "never-published"
    assert len(recorded_runs()) == 1


def test_values_of_other_types_are_not_shown() -> None:
    release(5, "one.csv")
    line = json.loads(record().read_text())
    line |= {"time": 3, "input": None, "requirements": "k", "records": True, "released": "many", "engine": ["memory"]}
    record().write_text(json.dumps(line) + "\n")
    (run,) = sfumato.runs()
    assert (run.time, run.input, run.requirements, run.records, run.released, run.engine) == (
        None,
        None,
        (),
        *[None] * 3,
    )


def test_the_command_lists_runs_and_marks_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == 0
    assert capsys.readouterr().out == "no release is recorded\n"
    for k in (5, 6, 7):
        release(k, f"{k}.csv")
    assert main(["runs", "--never-published", "1,3", "--withdrawn", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["run", "when", "(UTC)", "table", "release", "requirements", "records", "engine", "mark"]
    shown = [line.split() for line in lines if line.split()[0].isdecimal()]
    assert [line[0] for line in shown] == ["1", "2", "3"]
    assert main(["runs", "--unmark", "2..3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["mark"] for run in found["runs"]] == ["never-published", None, None]
    assert found["runs"][1]["requirements"] == ["k = 6 records"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--withdrawn", "1,7"], "the run record has no run 7: it has the runs 1 to 1."),
        (["--withdrawn", "0"], "has a number below 1"),
        (["--withdrawn", "first"], "--withdrawn 'first' is not understood"),
        (["--withdrawn", "1", "--unmark", "1"], "--unmark names the run 1, which another flag names too"),
    ],
)
def test_what_cannot_be_marked_is_refused_and_nothing_is_marked(
    flags: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    release(5, "one.csv")
    before = record().read_bytes()
    assert main(["runs", *flags]) == 2
    assert says in capsys.readouterr().err
    assert record().read_bytes() == before


def test_an_unknown_mark_is_refused() -> None:
    release(5, "one.csv")
    with pytest.raises(sfumato.UsageError, match="marked as 'never-published' or 'withdrawn', or as None"):
        sfumato.mark_run(1, "lost")  # type: ignore[arg-type]
    record().unlink()
    with pytest.raises(sfumato.UsageError, match="it has no runs"):
        sfumato.mark_run(1, None)


def test_a_record_that_is_no_file_is_an_error_of_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    record().mkdir(parents=True)
    assert main(["runs"]) == 4
    assert "the run record in " in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user and back")
def test_a_mark_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    release(5, "one.csv")
    above = [path for path in tmp_path.parents if path.name.startswith(("pytest-", "popen-"))]
    for path in (*above, tmp_path, state_directory()):
        path.chmod(0o755)
    record().chmod(0o644)
    os.seteuid(NOBODY)
    try:
        with pytest.raises(sfumato.OutputError, match="the mark was not written"):
            sfumato.mark_run(1, "withdrawn")
    finally:
        os.seteuid(0)
    assert sfumato.runs()[0].mark is None
