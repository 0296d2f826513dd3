"""Releases with pseudonyms: they join tables, and everything says what that costs."""

from __future__ import annotations

import csv
import json
import random
import re
from pathlib import Path
from typing import Any

import oracle
import pandas
import pytest

import sfumato
from sfumato.cli.main import main
from sfumato.errors import PolicyError, UsageError

FLAGS: dict[str, Any] = {
    "quasi_identifiers": ["age", "sex"],
    "sensitive": "ill",
    "pseudonyms": "patient",
    "accept_linkable": "patient",
    "k": 3,
    "method": "hilbert",
}
REMARK = (
    "the pseudonyms of 'patient' join the records of a person across classes: k holds in every class, but not per "
    "person, and whoever recognises one record of a person has all of them"
)
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Ninety visits of thirty patients in visits.csv, and a key in hospital.key."""
    monkeypatch.chdir(tmp_path)
    chance, rows = random.Random(5), []
    for _ in range(90):
        patient, age = f"patient-{chance.randrange(30):03d}", str(chance.randrange(20, 60))
        rows.append({"patient": patient, "age": age, "sex": chance.choice("mf"), "ill": chance.choice("ab")})
    with (tmp_path / "visits.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    sfumato.make_key("hospital.key")
    return rows


def read(file: str) -> list[dict[str, str]]:
    with Path(file).open() as opened:
        return list(csv.DictReader(opened))


@pytest.mark.parametrize("engine", ["memory", pytest.param("disk", marks=pytest.mark.not_quick)])
def test_a_person_has_one_pseudonym_in_all_records(engine: str, visits: list[dict[str, str]]) -> None:
    sfumato.anonymize("visits.csv", **FLAGS, pseudonym_key="hospital.key", engine=engine).write("out.csv")
    shown = read("out.csv")
    assert all(re.fullmatch("[A-Z2-7]{26}", row["patient"]) for row in shown)
    sizes = [sorted(len(group) for group in oracle.classes(rows, ["patient"]).values()) for rows in (visits, shown)]
    assert sizes[0] == sizes[1]
    assert oracle.smallest_class(shown, ["age", "sex"]) >= 3


def test_the_same_key_joins_another_table_of_another_kind(visits: list[dict[str, str]]) -> None:
    sfumato.anonymize("visits.csv", **FLAGS, pseudonym_key="hospital.key").write("out.csv")
    bills = pandas.DataFrame({"who": [row["patient"] for row in visits], "year": [2020] * 90, "cost": ["low"] * 90})
    asked: dict[str, Any] = {"quasi_identifiers": "year", "other": ["cost"], "pseudonyms": "who", "k": 3}
    joined = sfumato.anonymize(bills, **asked, accept_linkable=["who", "cost"], pseudonym_key="hospital.key").data
    assert set(joined["who"]) == {row["patient"] for row in read("out.csv")}
    sfumato.make_key("other.key")
    apart = sfumato.anonymize(bills, **asked, accept_linkable=["who", "cost"], pseudonym_key="other.key").data
    assert not set(apart["who"]) & set(joined["who"])


def test_audit_certificate_and_report_say_that_k_is_not_held_per_person(
    visits: list[dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    release = sfumato.anonymize("visits.csv", **FLAGS, pseudonym_key="hospital.key")
    assert release.audit.holds
    assert REMARK in release.audit.remarks
    assert REMARK in release.warnings
    release.write("out.csv")
    certificate = json.loads(Path("out.csv.sfumato.json").read_text())
    assert certificate["remarks"] == [REMARK]
    assert all(line["holds"] for line in certificate["audit"])
    assert main(["audit", "out.csv"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert REMARK in text
    assert "the release holds" not in text
    assert "it accepts that the records of a person are linked" in text
    page = release.report().page()
    assert "Meets its policy" not in page
    assert "Links the records of persons" in page
    assert "so k is not held per person" in page
    assert "pseudonym, kept unchanged" not in page
    assert "Whoever has the key can find the pseudonym of anybody" in page


def test_neither_key_nor_identifier_nor_path_leaves(
    visits: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    Path("keys").mkdir()
    Path("hospital.key").rename("keys/hospital.key")
    Path("policy.toml").write_text(
        'accept_linkable = ["patient"]\n[columns.patient]\nrole = "pseudonym"\n'
        '[columns.age]\nrole = "quasi-identifier"\n[columns.sex]\nrole = "quasi-identifier"\n'
        '[columns.ill]\nrole = "sensitive"\n[privacy]\nk = 3\npseudonym_key = "keys/hospital.key"\n'
    )
    flags = ["--policy", "policy.toml", "--report", "page.html", "--report-private", "private.html"]
    assert main(["anonymize", "visits.csv", "-o", "out.csv", *flags, "--json"]) == 0
    secret = Path("keys/hospital.key").read_text().strip()
    written = [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix not in (".key", ".toml")]
    assert any("state" in file.parts for file in written)
    for file in written:
        content = file.read_bytes()
        assert secret.encode() not in content
        assert bytes.fromhex(secret) not in content
        assert b"hospital.key" not in content
        assert file.name == "visits.csv" or b"patient-0" not in content


def test_errors_show_neither_key_nor_cell(visits: list[dict[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    secret = Path("hospital.key").read_text().strip()
    asked = ["anonymize", "visits.csv", "-o", "out.csv", "--quasi-identifiers", "age,sex", "--sensitive", "ill"]
    asked += ["-k", "3", "--pseudonyms", "patient"]
    accepted = [*asked, "--accept-linkable", "patient"]
    Path("broken.key").write_text(secret[:-1])
    Path("broken.key").chmod(0o600)
    Path("open.key").write_text(secret)
    Path("open.key").chmod(0o644)
    for arguments, code, says in (
        ([*asked, "--pseudonym-key", "hospital.key"], 2, "List the column in accept_linkable if that is meant"),
        (accepted, 2, "no key is named"),
        ([*accepted, "--pseudonym-key", "no.key"], 4, "does not exist"),
        ([*accepted, "--pseudonym-key", "broken.key"], 4, "is no key"),
        ([*accepted, "--pseudonym-key", "open.key"], 4, "chmod 600"),
        ([*accepted, "--pseudonym-key", "hospital.key", "--engine", "spark"], 2, "does not support pseudonym"),
        (
            [*accepted, "--pseudonym-key", "hospital.key", "--method", "anatomy", "-k", "1", "-l", "2"],
            2,
            "cannot be kept",
        ),
        (["key", "hospital.key"], 4, "cannot be made again"),
    ):
        assert main(arguments) == code
        shown = capsys.readouterr()
        assert says in " ".join(shown.err.split())
        assert secret[:-1] not in shown.err + shown.out
        assert "patient-0" not in shown.err + shown.out
    assert not Path("out.csv").exists()


def test_persons_are_counted_by_their_pseudonyms_also_in_the_finished_file(visits: list[dict[str, str]]) -> None:
    release = sfumato.anonymize("visits.csv", **FLAGS, person="patient", pseudonym_key="hospital.key")
    release.write("out.csv")
    persons = [
        len({row["patient"] for row in group}) for group in oracle.classes(read("out.csv"), ["age", "sex"]).values()
    ]
    assert min(persons) >= 3
    found = sfumato.audit("out.csv")
    assert found.holds
    assert [(line.requirement, line.value) for line in found.verdicts[:1]] == [
        ("k-anonymity, k = 3, in persons", min(persons))
    ]
    assert sfumato.audit("out.csv", k=min(persons) + 1).failed


def test_an_original_is_compared_by_the_key_alone(visits: list[dict[str, str]]) -> None:
    sfumato.anonymize("visits.csv", **FLAGS, pseudonym_key="hospital.key").write("out.csv")
    assert sfumato.audit("out.csv", original="visits.csv", pseudonym_key="hospital.key").holds
    without = sfumato.audit("out.csv", original="visits.csv")
    assert [line.requirement for line in without.unchecked] == ["the pseudonyms of 'patient' are those of the original"]
    assert not without.failed
    in_parts = sfumato.audit("out.csv", original="visits.csv", memory="1GB")
    assert (in_parts.unchecked, in_parts.failed) == (without.unchecked, ())
    sfumato.make_key("other.key")
    wrong = sfumato.audit("out.csv", original="visits.csv", pseudonym_key="other.key")
    assert [(line.requirement, line.value) for line in wrong.failed] == [
        ("the kept column 'patient' holds values of the original", 90)
    ]
    assert sfumato.measure("visits.csv", "out.csv").suppressed == 0


@pytest.mark.not_quick
def test_rules_have_no_key_and_are_applied_with_one(visits: list[dict[str, str]]) -> None:
    asked = {**FLAGS, "method": "mondrian"}
    rules = sfumato.fit("visits.csv", **asked, pseudonym_key="hospital.key")
    rules.write("rules.json")
    assert "hospital.key" not in Path("rules.json").read_text()
    with pytest.raises(PolicyError, match="no key is named"):
        sfumato.apply("rules.json", "visits.csv")
    applied = sfumato.apply("rules.json", "visits.csv", pseudonym_key="hospital.key").data
    released = sfumato.anonymize("visits.csv", **asked, pseudonym_key="hospital.key").data
    assert set(applied["patient"].to_pylist()) == set(released["patient"].to_pylist())
    with pytest.raises(UsageError, match="it would show the values themselves"):
        sfumato.Recoding.load("rules.json").to_sql("duckdb", "visits")
