"""How figures are recorded: on a quiet machine, and from the worst of three runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import pages, recording
from benchmarks.machine_watch import Watched
from benchmarks.markdown import table as markdown_table
from benchmarks.process_usage import ROOT
from benchmarks.recording import NotRecordedError, record, recorded, rows_by_table
from benchmarks.section import Section, Table
from benchmarks.tables import Options

NAME = "pace"
Runs = Callable[..., None]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "results"
    monkeypatch.setattr(recording, "RESULTS", directory)
    return directory


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(tmp_path)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, results: Path) -> Runs:
    """Let the runs of a section give these tables, one after the other, beside these shares of other processes."""

    def give(runs: Sequence[Mapping[str, Any]], shares: Sequence[float], exit_code: int = 0) -> None:
        found: Iterator[tuple[Mapping[str, Any], float]] = iter(zip(runs, shares, strict=True))

        def run_watched(arguments: Sequence[str]) -> Watched:
            tables, share = next(found)
            Path(arguments[-1]).write_text(json.dumps(tables), "utf-8")
            return Watched(exit_code, 1.0, share)

        monkeypatch.setattr(recording, "run_watched", run_watched)

    return give


def ratios(*values: float) -> dict[str, Any]:
    rows = [{"records": 10**size, "ratio": value} for size, value in enumerate(values)]
    return {"ratios": {"title": "Ratios", "rows": rows, "notes": ["k = 10"], "worst": "ratio"}}


def section(timed: bool = True, **settings: Any) -> Section:
    def run(_: Options) -> Mapping[str, Table]:
        raise AssertionError("a run is a process of its own")

    return Section(run, timed=timed, parameters={"k": 10}, **settings)


def test_the_worst_of_three_runs_is_shown_row_by_row_and_all_are_kept(
    measured: Runs, options: Options, results: Path
) -> None:
    measured([ratios(2.5, 1.7), ratios(2.9, 1.6), ratios(2.7, 1.9)], [0.01, 0.05, 0.002])
    record(NAME, section(), options)
    kept = json.loads((results / "pace.json").read_text("utf-8"))
    assert kept["others"] == [0.01, 0.05, 0.002]
    assert [[row["ratio"] for row in rows] for rows in kept["tables"]["ratios"]["runs"]] == [
        [2.5, 1.7],
        [2.9, 1.6],
        [2.7, 1.9],
    ]
    assert rows_by_table(kept) == {"ratios": [{"records": 1, "ratio": 2.9}, {"records": 10, "ratio": 1.9}]}
    assert set(kept) == {"section", "timed", "parameters", "environment", "data", "others", "tables"}


def test_for_some_columns_the_smallest_value_is_the_worst(measured: Runs, options: Options) -> None:
    runs = [ratios(40.0), ratios(30.0), ratios(50.0)]
    for run in runs:
        run["ratios"]["worst_is_smallest"] = True
    measured(runs, [0, 0, 0])
    assert rows_by_table(record(NAME, section(), options))["ratios"][0]["ratio"] == 30.0


@pytest.mark.parametrize("shares", [(0.051, 0, 0), (0, 0, 0.4)])
def test_a_busy_machine_is_refused_with_the_share_that_others_took(
    measured: Runs, options: Options, results: Path, shares: Sequence[float]
) -> None:
    measured([ratios(2.5)] * 3, shares)
    with pytest.raises(NotRecordedError, match=f"took {max(shares):.1%} of the cores"):
        record(NAME, section(), options)
    assert not results.exists()


def test_a_refusal_leaves_what_was_recorded_before(measured: Runs, options: Options) -> None:
    measured([ratios(2.5)] * 3, [0, 0, 0])
    before = record(NAME, section(), options)
    measured([ratios(1.5)], [0.5])
    with pytest.raises(NotRecordedError):
        record(NAME, section(), options)
    assert recorded(NAME) == before


@pytest.mark.parametrize("other", [{"trial": True}, {"records": (1000,)}])
def test_other_sizes_are_shown_on_a_busy_machine_too_and_never_recorded(
    measured: Runs, results: Path, tmp_path: Path, other: dict[str, Any]
) -> None:
    measured([ratios(2.5)], [0.9])
    shown = record(NAME, section(), Options(tmp_path, **other))
    assert rows_by_table(shown)["ratios"][0]["ratio"] == 2.5
    assert not results.exists()


def test_losses_are_recorded_from_one_run_on_a_busy_machine(measured: Runs, options: Options) -> None:
    measured([{"gcp": {"title": "GCP", "rows": [{"k": 5, "GCP": 0.0502123456}]}}], [0.9])
    kept = record(NAME, section(timed=False), options)
    assert rows_by_table(kept) == {"gcp": [{"k": 5, "GCP": 0.0502123}]}
    assert "others" not in kept


@pytest.mark.parametrize("column", ["seconds", "CPU s"])
def test_a_section_that_is_not_timed_has_no_seconds(
    measured: Runs, options: Options, results: Path, column: str
) -> None:
    measured([{"gcp": {"title": "GCP", "rows": [{"k": 5, column: 1.5}]}}], [0])
    with pytest.raises(NotRecordedError, match=column):
        record(NAME, section(timed=False), options)
    assert not results.exists()


def test_a_table_that_differs_from_run_to_run_names_the_column_that_counts(measured: Runs, options: Options) -> None:
    runs = [ratios(2.5), ratios(2.5), ratios(2.6)]
    for run in runs:
        run["ratios"]["worst"] = None
    measured(runs, [0, 0, 0])
    with pytest.raises(NotRecordedError, match="differs from run to run"):
        record(NAME, section(), options)


def test_a_section_that_fails_or_lacks_its_table_is_not_recorded(
    measured: Runs, options: Options, results: Path, tmp_path: Path
) -> None:
    measured([ratios(2.5)], [0], exit_code=3)
    with pytest.raises(NotRecordedError, match="exit code 3"):
        record(NAME, section(), options)
    for data in (None, tmp_path):
        with pytest.raises(NotRecordedError, match="needs the table 'adult'"):
            record(NAME, section(tables=("adult",)), Options(tmp_path, data))
    assert not results.exists()


def test_a_real_table_is_recorded_by_its_name_and_hash(measured: Runs, tmp_path: Path) -> None:
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "data.csv").write_bytes(b"age\n37\n")
    measured([ratios(2.5)] * 3, [0, 0, 0])
    kept = record(NAME, section(tables=("adult",)), Options(tmp_path, tmp_path))
    assert kept["data"] == {"adult": "1beee8e10b7d61d29a6869f03c73e9dd7403c4e6a5c1bb7c20cda588e480a2bc"}


def test_options_reach_the_process_of_a_run_unchanged(tmp_path: Path) -> None:
    for options in (Options(tmp_path), Options(tmp_path, tmp_path / "data", tmp_path / "python", (5, 6), True)):
        assert Options.from_json(options.to_json()) == options


def test_a_refused_section_does_not_stop_the_others_but_is_an_error_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], results: Path
) -> None:
    def record_or_refuse(name: str, _: Section, __: Options) -> dict[str, Any]:
        if name == "busy":
            raise NotRecordedError("other processes took 9.9% of the cores")
        return {"tables": {}, "others": [0.01]}

    monkeypatch.setattr(command, "SECTIONS", {"busy": section(), "quiet": section()})
    monkeypatch.setattr(command, "record", record_or_refuse)
    monkeypatch.setattr(command, "fill", list)
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    assert command.main() == 1
    shown = capsys.readouterr()
    assert "error: busy: other processes took 9.9% of the cores" in shown.err
    assert "not recorded: busy" in shown.err
    assert "quiet: 0 seconds, other processes took 1.0% of the cores." in shown.out


def test_only_missing_sections_are_measured_if_so_asked(monkeypatch: pytest.MonkeyPatch, results: Path) -> None:
    results.mkdir()
    (results / "old.json").write_text("{}", "utf-8")
    asked: list[str] = []
    monkeypatch.setattr(command, "SECTIONS", {"old": section(), "new": section()})
    monkeypatch.setattr(command, "record", lambda name, *_: asked.append(name) or {"tables": {}})
    monkeypatch.setattr(command, "fill", list)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--missing"])
    assert command.main() == 0
    assert asked == ["new"]


def test_pages_get_tables_and_phrases_and_say_what_is_not_recorded(
    measured: Runs, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = section(phrases=lambda rows: {"last": f"{rows['ratios'][-1]['ratio']:.1f} times"})
    monkeypatch.setattr(pages, "SECTIONS", {NAME: timed, "other": timed})
    text = "Takes <!-- figures: pace.last -->?<!-- end -->.\n\n<!-- figures: pace.ratios -->\n<!-- end -->\n"
    assert (
        "Takes <!-- figures: pace.last -->(not recorded yet: `make bench BENCH=pace`)<!-- end -->."
        in pages.filled_text(text)
    )
    measured([ratios(2.5, 1.7)] * 3, [0, 0.012, 0])
    kept = record(NAME, timed, options)
    filled = pages.filled_text(text)
    shown = markdown_table(kept["tables"]["ratios"]["runs"][0])
    assert filled == (
        "Takes <!-- figures: pace.last -->1.7 times<!-- end -->.\n\n"
        f"<!-- figures: pace.ratios -->\n\n{shown}\n\n<!-- end -->\n"
    )
    assert pages.filled_text(filled) == filled
    assert pages.figure_text(NAME, "quiet").endswith("other processes took at most 1.2% of the cores.")
    assert f"{kept['environment']['cores']} cores (" in pages.figure_text(NAME, "machine")
    for unknown in ("pace.nothing", "nobody.last"):
        with pytest.raises(ValueError, match=r"there is no section 'nobody'|no table and no phrase 'nothing'"):
            pages.filled_text(f"<!-- figures: {unknown} --><!-- end -->")


def watched(program: str) -> list[float]:
    """Run a program under the watch, in a process of its own; return the cores that others took and our CPU seconds."""
    code = (
        "import sys\nfrom benchmarks import machine_watch\n"
        "found = machine_watch.run_watched([sys.executable, '-c', sys.argv[1]])\nassert found.exit == 0\n"
        "print(found.others * machine_watch._cores(), found.own_seconds)"
    )
    shown = subprocess.run([sys.executable, "-c", code, program], cwd=ROOT, check=True, capture_output=True, text=True)
    return list(map(float, shown.stdout.split()))


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="figures are recorded on Linux")
@pytest.mark.not_quick
def test_what_another_process_takes_is_counted() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            cores, _ = watched("import time; time.sleep(2)")
        finally:
            other.kill()
    assert cores > 0.5


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="figures are recorded on Linux")
@pytest.mark.not_quick
def test_a_process_that_outlives_its_parent_counts_as_our_own() -> None:
    burn = "import time\nwhile time.process_time() < 1: pass"
    _, own = watched(f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {burn!r}])")
    assert own > 0.9


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="figures are recorded on Linux")
@pytest.mark.not_quick
def test_a_process_that_no_parent_waits_for_counts_as_our_own() -> None:
    """The daemon of Spark's Python workers ignores the end of its children, so nobody is charged with their time."""
    burn = "import time\nwhile time.process_time() < 2: pass"
    daemon = (
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nworker = os.fork()\n"
        f"if worker == 0:\n    exec({burn!r})\n    os._exit(0)\n"
        "try:\n    os.waitpid(worker, 0)\nexcept ChildProcessError:\n    pass"
    )
    _, own = watched(daemon)
    assert own > 1.2
