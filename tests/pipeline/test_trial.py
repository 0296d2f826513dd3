"""Trials: audited like a release, marked by their certificate, unknown to the run record, with no page to share."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import UsageError
from sfumato.releases.run_record import state_directory

DRAWN = np.random.default_rng(11)
TABLE = pa.table(
    {
        "age": DRAWN.integers(20, 70, 90),
        "height": DRAWN.integers(150, 200, 90),
        "ill": DRAWN.choice(["flu", "cold", "none"], 90),
    }
)
ASKED: dict[str, Any] = {"quasi_identifiers": ["age", "height"], "other": "keep", "method": "mondrian"}
FLAGS = ("--quasi-identifiers", "age,height", "--other", "keep", "--method", "mondrian", "-k", "5")


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    pa.csv.write_csv(TABLE, "in.csv")


def made(k: int = 5, **asked: Any) -> sfumato.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sfumato.anonymize(TABLE, k=k, **ASKED, **asked)


def write(release: sfumato.Release, target: str | Path, *, force: bool = False) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release.write(target, force=force)


def test_a_trial_has_the_rows_of_a_release_and_a_certificate_that_says_trial() -> None:
    release, trial = made(), made(trial=True)
    write(release, "release.csv")
    write(trial, "trial.csv")
    assert Path("trial.csv").read_bytes() == Path("release.csv").read_bytes()
    assert (release.trial, trial.trial, trial.audit.trial) == (False, True, True)
    certified = {name: json.loads(Path(f"{name}.csv.sfumato.json").read_text()) for name in ("release", "trial")}
    assert certified["trial"].pop("trial") is True
    for content in certified.values():
        content["files"][0].pop("name")
    assert certified["trial"] == certified["release"]
    assert repr(trial).startswith("<Trial of 90 records")


def test_no_later_release_is_warned_of_a_trial_and_no_trial_of_a_release() -> None:
    write(made(trial=True), "trial.csv")
    assert not state_directory().exists()
    write(made(6), "release.csv")
    record = (state_directory() / "runs.jsonl").read_bytes()
    assert made(7, trial=True).warnings == ()
    write(made(7, trial=True), "again.csv")
    assert (state_directory() / "runs.jsonl").read_bytes() == record
    assert made(7).warnings[0].startswith("this table was released 1 time before under another policy")


def test_the_audit_says_that_it_is_a_trial_beside_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    write(made(trial=True), "trial.csv")
    assert main(["audit", "trial.csv"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["a trial: not to be published", "the trial holds"]
    assert main(["audit", "trial.csv", "-k", "60", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["trial"], found["holds"]) == (True, False)
    write(made(), "release.csv")
    assert main(["audit", "release.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trial"] is False
    assert (sfumato.audit("trial.csv").trial, sfumato.audit("release.csv").trial) == (True, False)


def test_a_file_without_its_certificate_cannot_be_told_from_a_release() -> None:
    write(made(trial=True), "trial.csv")
    Path("trial.csv.sfumato.json").unlink()
    report = sfumato.audit("trial.csv", quasi_identifiers=["age", "height"], k=5)
    assert not report.trial
    assert any("there is no certificate" in remark for remark in report.remarks)


def test_a_trial_has_no_report_but_a_private_page_that_says_trial(capsys: pytest.CaptureFixture[str]) -> None:
    trial = made(trial=True)
    write(trial, "trial.csv")
    for ask in (lambda: trial.report("page.html"), lambda: sfumato.report_release("in.csv", "trial.csv", "page.html")):
        with pytest.raises(UsageError, match="a trial has no report"):
            ask()
    trial.report_private("one.html")
    assert "the trial, which is not to be published, has 90." in Path("one.html").read_text()
    for extra in ((), ("--private", "two.html", "-o", "page.html")):
        assert main(["report", "in.csv", "trial.csv", *extra]) == 2
        assert "a trial has no report" in capsys.readouterr().err
    assert main(["report", "in.csv", "trial.csv", "--private", "two.html", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["trial"], found["private"], "file" in found) == (True, "two.html", False)
    assert "the trial, which is not to be published, has 90." in Path("two.html").read_text()
    assert not Path("page.html").exists()


@pytest.mark.parametrize("extra", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_a_report_with_a_trial_is_refused_before_the_table_is_looked_for(
    capsys: pytest.CaptureFixture[str], extra: tuple[str, ...]
) -> None:
    assert main(["anonymize", "none.csv", "-o", "out.csv", "--trial", "--report", "page.html", *FLAGS, *extra]) == 2
    assert "a trial has no report" in capsys.readouterr().err


def test_the_summary_and_its_json_say_trial(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anonymize", "in.csv", "-o", "trial.csv", "--trial", *FLAGS]) == 0
    text = capsys.readouterr().out
    assert "\ntrial   not to be published, and not in the run record\n" in text
    assert text.endswith("next    run the same command without --trial to make the release\n")
    assert main(["anonymize", "in.csv", "-o", "trial.csv", "--trial", *FLAGS, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["trial"] is True
    assert "trial" not in found["private_figures"]
    assert found["replaced"] == ["the earlier trial trial.csv"]
    assert main(["anonymize", "in.csv", "-o", "release.csv", *FLAGS, "--json"]) == 0
    assert "trial" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "target", ["out.csv", "out/", pytest.param("out.duckdb#data", marks=pytest.mark.not_quick), "out.sqlite#data"]
)
def test_a_trial_replaces_trials_alone_unless_it_is_forced(target: str) -> None:
    write(made(trial=True), target)
    write(made(6, trial=True), target)
    release = made()
    write(release, target)
    assert release.replaced == (f"the earlier trial {target}",)
    assert not sfumato.audit(target).trial
    trial = made(trial=True)
    with pytest.raises(UsageError, match="is a release, and a trial would replace it"):
        write(trial, target)
    assert not sfumato.audit(target).trial
    write(trial, target, force=True)
    assert trial.replaced == (f"the earlier release {target}",)
    assert sfumato.audit(target).trial


def test_a_trial_in_the_place_of_a_release_is_refused_before_any_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anonymize", "in.csv", "-o", "out.csv", *FLAGS]) == 0
    before = Path("out.csv").read_bytes()
    Path("in.csv").write_text("age\n1\n")  # it would be refused too, but later
    for extra in ((), ("--dry-run",)):
        assert main(["anonymize", "in.csv", "-o", "out.csv", "--trial", *FLAGS, *extra]) == 2
        assert "out.csv is a release, and a trial would replace it" in capsys.readouterr().err
    assert Path("out.csv").read_bytes() == before


def test_rules_are_tried_in_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "in.csv", "-o", "rules.json", *FLAGS]) == 0
    capsys.readouterr()
    assert main(["apply", "rules.json", "in.csv", "-o", "trial.csv", "--trial", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trial"] is True
    assert sfumato.audit("trial.csv").trial
    assert not (state_directory() / "runs.jsonl").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sfumato.apply("rules.json", TABLE, trial=True).trial
        assert not sfumato.apply("rules.json", TABLE).trial
    assert main(["apply", "rules.json", "in.csv", "-o", "release.csv"]) == 0
    assert main(["apply", "rules.json", "in.csv", "-o", "release.csv", "--trial"]) == 2


def test_the_disk_engine_makes_trials_too() -> None:
    assert main(["anonymize", "in.csv", "-o", "trial.csv", "--trial", "--engine", "disk", *FLAGS]) == 0
    assert sfumato.audit("trial.csv").trial
    assert not state_directory().exists()
