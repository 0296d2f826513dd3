"""The shell of compare, evaluate and tradeoff: one order of checks, and what an interruption leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sfumato.cli.main import Stopped
from sfumato.cli.study import StudyOptions, StudyRun, run_study
from sfumato.errors import UsageError
from sfumato.pictures.picture import Picture
from sfumato.report.result_files import Results


class Fake(Results):
    """Results of nothing, which are written as CSV."""

    def __init__(self, *, empty: bool = False) -> None:
        super().__init__(None)
        self._empty = empty

    @property
    def has_results(self) -> bool:
        return not self._empty

    @property
    def exit_code(self) -> int:
        return 3 if self._empty else 0

    def summary(self) -> dict[str, Any]:
        return {"rows": 1}

    def picture(self, theme: str = "light") -> Picture:
        raise NotImplementedError

    def page(self) -> str:
        raise NotImplementedError

    def table(self) -> str:
        return "row\n1\n"


def options(tmp_path: Path, **changes: Any) -> StudyOptions:
    given = {"table": "table.csv", "policy": None, "flags": {"k": 2, "quasi_identifiers": ["age"]}}
    return StudyOptions(
        **{**given, "output": tmp_path / "out.csv", "theme": "light", "force": False, "json": True, **changes}
    )


def show(*_: object) -> None:
    print("shown")


def test_results_are_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = StudyRun(run=lambda: None, results=Fake)
    assert run_study(options(tmp_path), lambda *_: study, show) == 0
    assert json.loads(capsys.readouterr().out) == {"rows": 1}
    assert (tmp_path / "out.csv").read_text() == "row\n1\n"
    with pytest.raises(UsageError, match="exists"):
        run_study(options(tmp_path), lambda *_: study, show)
    capsys.readouterr()
    assert run_study(options(tmp_path, json=False, force=True), lambda *_: study, show) == 0
    assert capsys.readouterr() == (f"shown\nwrote   {tmp_path / 'out.csv'}\n", f"replaced {tmp_path / 'out.csv'}\n")


def test_a_study_without_results_writes_no_file(tmp_path: Path) -> None:
    study = StudyRun(run=lambda: None, results=lambda: Fake(empty=True))
    assert run_study(options(tmp_path), lambda *_: study, show) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("first_result, printed", [(None, ""), (Fake(), "shown\n")])
def test_an_interrupted_study_prints_what_it_has_and_writes_no_file(
    first_result: Fake | None, printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop() -> None:
        raise Stopped(2)

    study = StudyRun(run=stop, results=lambda: first_result)
    with pytest.raises(Stopped):
        run_study(options(tmp_path, json=False), lambda *_: study, show)
    assert capsys.readouterr().out == printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("changes", [{"theme": "blue"}, {"output": Path("out.gif")}, {"flags": {"k": 0}}])
def test_wrong_options_are_refused_before_the_study_runs(changes: dict[str, Any], tmp_path: Path) -> None:
    def run() -> None:
        raise AssertionError("nothing is measured")

    with pytest.raises(UsageError):
        run_study(options(tmp_path, **changes), lambda *_: StudyRun(run=run, results=lambda: None), show)
