"""Files that version 0.1 wrote: policies, rules, certificates and run records are read by every later version.

``tests/golden/0.1`` was written before certificates had format 2 and run records named their version, and
``tests/golden/0.1-format-2`` after that. ``tests/golden/0.1-levels`` has the first rules of levels, which have format
2 of rules. ``tests/golden/0.1-written`` has the first certificate that says how its CSV file was written.
``tests/golden/0.1-about`` has the first policy with ``[about]``, and the certificate of its release.
``tests/golden/0.1-marked-runs`` has a trial, and a run record that says what was required and what became of the
releases. A golden file is never edited. A change that cannot read one is mended, not the file; a new format adds a
folder.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.csv
import pytest

import sfumato
from sfumato.cli import main
from sfumato.policy import Policy
from sfumato.releases.certificate import read_certificate

GOLDEN = Path(__file__).parents[1] / "golden"
FORMATS = {"0.1": 1, "0.1-format-2": 2}
FOLDERS = [GOLDEN / name for name in FORMATS]
LABELS = [
    ["[20..60]", "*", "101**", "Tuscany"],
    ["[55..90]", "*", "101**", "Tuscany"],
    ["*", "*", "200**", "Tuscany"],
    ["*", "*", "200**", "Tuscany"],
    ["*", "*", "*", "Roma"],
    ["*", "*", "101**", "Viterbo"],
    ["*", "*", "200**", "Viterbo"],
    ["*", "*", "200**", "Viterbo"],
]
# The first 12 digits of the SHA-256 of each file.
DIGESTS = {
    "0.1/applied.csv": "1a3664206f9a",
    "0.1/applied.csv.sfumato.json": "09f6fdfcae31",
    "0.1/every-key.toml": "e0d2ae70873f",
    "0.1/patients.csv": "927304d196fd",
    "0.1/policy.toml": "fbb6dce586b0",
    "0.1/release.csv": "f93220a9b55f",
    "0.1/release.csv.sfumato.json": "39ea4de7c574",
    "0.1/rules.json": "24219ddd9e93",
    "0.1/state/runs.jsonl": "d06ec4925f08",
    "0.1/state/secret": "ed1eb2ea2211",
    "0.1/towns.csv": "8dca20deaf08",
    "0.1-format-2/applied.csv": "1a3664206f9a",
    "0.1-format-2/applied.csv.sfumato.json": "021bab110f13",
    "0.1-format-2/every-key.toml": "e0d2ae70873f",
    "0.1-format-2/patients.csv": "927304d196fd",
    "0.1-format-2/policy.toml": "fbb6dce586b0",
    "0.1-format-2/release.csv": "f93220a9b55f",
    "0.1-format-2/release.csv.sfumato.json": "f5d28eb8a092",
    "0.1-format-2/rules.json": "025a43b7ec19",
    "0.1-format-2/state/runs.jsonl": "10ec7bd06446",
    "0.1-format-2/state/secret": "4a9839799c4b",
    "0.1-format-2/towns.csv": "8dca20deaf08",
    "0.1-levels/applied.csv": "74b7137a7c24",
    "0.1-levels/patients.csv": "927304d196fd",
    "0.1-levels/rules.json": "ad34391047cb",
    "0.1-written/policy.toml": "1c4b7f4a8a86",
    "0.1-written/release.csv": "22b20314ecac",
    "0.1-written/release.csv.sfumato.json": "8e7d2716d95e",
    "0.1-written/table.csv": "32f1cc647b09",
    "0.1-about/patients.csv": "927304d196fd",
    "0.1-about/policy.toml": "2929ef6c071c",
    "0.1-about/release.csv": "35d887304703",
    "0.1-about/release.csv.sfumato.json": "73f6f45956d9",
    "0.1-about/towns.csv": "8dca20deaf08",
    "0.1-marked-runs/patients.csv": "927304d196fd",
    "0.1-marked-runs/policy.toml": "fbb6dce586b0",
    "0.1-marked-runs/state/runs.jsonl": "b74e0d065633",
    "0.1-marked-runs/state/secret": "23554da679df",
    "0.1-marked-runs/towns.csv": "8dca20deaf08",
    "0.1-marked-runs/trial.csv": "35d887304703",
    "0.1-marked-runs/trial.csv.sfumato.json": "96f547c0a5a2",
}


@pytest.fixture(params=FOLDERS, ids=[path.name for path in FOLDERS])
def golden(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of one folder as the working directory, with the run record of its time."""
    folder: Path = shutil.copytree(request.param, tmp_path / request.param.name)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(folder / "state"))
    return folder


def rows(path: Path) -> Counter[tuple[str, ...]]:
    table = pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter=";"))
    return Counter(tuple(map(str, row.values())) for row in table.to_pylist())


def test_no_golden_file_was_edited() -> None:
    files = [path for path in GOLDEN.rglob("*") if path.is_file()]
    digests = {
        path.relative_to(GOLDEN).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in files
    }
    assert digests == DIGESTS


def test_a_policy_with_every_key_asks_for_the_same(golden: Path) -> None:
    policy = Policy.load("every-key.toml")
    policy.check_complete()
    assert policy.other == "keep"
    assert policy.accept_linkable == ("visit_time",)
    assert policy.quasi_identifiers == ("age", "height", "born", "zip", "sex", "country")
    assert policy.identifiers == ("patient_id",)
    assert policy.sensitive == ("diagnosis", "salary")
    assert policy.others == ("income",)
    assert policy.input.model_dump(exclude_unset=True) == {
        "separator": ";",
        "encoding": "cp1252",
        "decimal": ",",
        "nulls": ("", "NA", "?"),
        "date_format": "%d.%m.%Y",
        "sheet": "2024",
    }
    columns = {name: column.model_dump(exclude_unset=True, exclude={"role"}) for name, column in policy.columns.items()}
    assert columns["age"] == {
        "type": "numeric",
        "round": 5,
        "statistic_round": 0.5,
    }  # mean_round, until there were medians
    assert columns["height"] == {"taxonomy": {"intervals": (5, 10, 20)}}
    assert columns["born"] == {"taxonomy": {"calendar": ("month", "quarter", "year", "decade")}}
    assert columns["zip"] == {"taxonomy": {"prefix": (2, 3)}}
    assert columns["sex"] == {"taxonomy": "flat"}
    assert columns["country"] == {"taxonomy": "taxonomies/country.csv", "weight": 2.0}
    assert (policy.k, policy.privacy.person, policy.privacy.null_sensitive) == (10, "patient_id", "missing")
    assert [(part.kind, part.requirement().attribute) for part in policy.privacy.sensitive] == [
        ("frequency", "diagnosis"),
        ("distinct", "diagnosis"),
        ("entropy", "diagnosis"),
        ("recursive", "diagnosis"),
        ("alpha-k", "diagnosis"),
        ("variance", "salary"),
        ("t-closeness", "diagnosis"),
        ("beta-likeness", "diagnosis"),
        ("delta-disclosure", "diagnosis"),
    ]
    assert policy.workload.predicted == ("income",)
    assert [selection.where for selection in policy.workload.selection] == ["age > 40 and sex = 'F'"]
    assert (policy.method.name, policy.method.effort, policy.method.seconds) == ("auto", "balanced", 60)
    assert (policy.engine.name, policy.engine.memory, policy.engine.sampled) == ("auto", 2 * 10**9, False)
    assert policy.release.model_dump(exclude_unset=True) == {
        "seed": 0,
        "keep_order": False,
        "max_suppressed_fraction": 0.05,
        "form": "labels",
        "boxes": "smallest",
    }


@pytest.mark.parametrize("name, classes, smallest", [("release.csv", 8, 5), ("applied.csv", 6, 7)])
def test_a_release_holds_by_the_certificate_beside_it(golden: Path, name: str, classes: int, smallest: int) -> None:
    certificate = read_certificate(name)
    assert certificate is not None
    assert certificate["format"] == FORMATS[golden.name]
    assert (certificate["records"], certificate["classes"], certificate["smallest_class"]) == (60, classes, smallest)
    policy = Policy.from_dict(certificate["policy"], golden)
    if name == "release.csv":
        assert policy == Policy.load("policy.toml")
    report = sfumato.audit(name)
    assert report.holds
    assert (report.records, report.classes, report.smallest_class) == (60, classes, smallest)
    assert [verdict.requirement for verdict in report.verdicts] == [
        "k-anonymity, k = 5",
        "distinct l-diversity of 'illness', l = 2",
        "the file is the one that was certified",
    ]


def test_a_release_is_read_as_its_certificate_says_that_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(GOLDEN / "0.1-written", tmp_path / "written"))
    report = sfumato.audit("release.csv", original="table.csv")
    assert report.holds
    assert (report.records, report.classes, report.smallest_class) == (40, 7, 5)
    assert round(sfumato.measure("table.csv", "release.csv").gcp, 3) == 0.211
    shutil.move("release.csv", "bare.csv")
    assert sfumato.audit("bare.csv", "policy.toml").holds


def test_what_a_release_was_called_is_read_from_its_policy_and_its_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(GOLDEN / "0.1-about", tmp_path / "about"))
    about = {
        "title": "Patients of the region",
        "author": "Statistics Office",
        "purpose": "Research on illnesses",
        "date": "2026-03-31",
        "language": "de",
    }
    certificate = read_certificate("release.csv")
    assert certificate is not None
    assert certificate["policy"]["about"] == Policy.load("policy.toml").to_dict()["about"] == about
    assert sfumato.audit("release.csv").holds
    page = sfumato.report_release("patients.csv", "release.csv").page()
    assert "Patients of the region</h1>" in page
    assert "31. März 2026" in page


def test_an_edited_release_does_not_hold_by_its_old_certificate(golden: Path) -> None:
    release = golden / "release.csv"
    release.write_text(release.read_text().replace("cold", "gout", 1))
    assert main(["audit", "release.csv"]) == 1


@pytest.mark.compiled
def test_rules_recode_a_table_as_they_did(golden: Path) -> None:
    recoding = sfumato.Recoding.load("rules.json")
    assert recoding.labels() == LABELS
    assert main(["apply", "rules.json", "patients.csv", "-o", "again.csv"]) == 0
    assert rows(golden / "again.csv") == rows(golden / "applied.csv")


def test_rules_of_levels_recode_a_table_as_they_did(tmp_path: Path) -> None:
    folder = GOLDEN / "0.1-levels"
    recoding = sfumato.Recoding.load(folder / "rules.json")
    assert recoding.levels == {"age": 1, "born": 4, "zip": 1, "town": 0}
    assert (
        main(["apply", str(folder / "rules.json"), str(folder / "patients.csv"), "-o", str(tmp_path / "again.csv")])
        == 0
    )
    assert rows(tmp_path / "again.csv") == rows(folder / "applied.csv")


@pytest.mark.compiled
def test_a_table_of_the_run_record_is_recognised(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["anonymize", "patients.csv", "-o", "again.csv", "--policy", "policy.toml", "-k", "6"]
    assert main(arguments) == 0
    assert "this table was released 2 times before" in capsys.readouterr().out
    assert len((golden / "state" / "runs.jsonl").read_text().splitlines()) == 3
    old = json.loads((golden / "state" / "runs.jsonl").read_text().splitlines()[0])
    assert old["output"] == "/data/release.csv"


@pytest.mark.compiled
def test_marks_of_the_run_record_and_trials_are_what_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(GOLDEN / "0.1-marked-runs", tmp_path / "golden")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(folder / "state"))
    assert [(run.output, run.mark) for run in sfumato.runs()] == [
        ("/data/release-5.csv", "never-published"),
        ("/data/release-6.csv", "withdrawn"),
        ("/data/release-7.csv", None),
    ]
    assert sfumato.runs()[2].requirements == ("k = 7 records", "distinct, l = 2")
    assert sfumato.audit("trial.csv").trial
    assert main(["anonymize", "patients.csv", "-o", "again.csv", "--policy", "policy.toml", "-k", "8"]) == 0
    text = capsys.readouterr().out
    assert "this table was released 1 time before" in text
    assert "was withdrawn (run 2 of 'sfumato runs')" in text
