"""Releases and studies of columns that the policy derives."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import oracle
import pandas
import pytest

import sfumato
from sfumato.errors import InputError, UsageError

DERIVE = {
    "age": {"from": "born", "to": "seen", "unit": "years"},
    "area": {"from": "zip", "first": 2},
    "chapter": {"from": "code", "groups": "icd.csv"},
}
FLAGS: dict[str, Any] = {
    "derive": DERIVE,
    "quasi_identifiers": ["age", "area"],
    "sensitive": "chapter",
    "drop": ["born", "seen", "zip", "code"],
    "k": 3,
}


def ages(folder: Path) -> list[dict[str, str]]:
    """Write a table of 60 visits, and return what should be derived."""
    chance, rows, expected = random.Random(4), [], []
    for _ in range(60):
        age, month, code = chance.randrange(20, 60), chance.randrange(1, 13), chance.choice(["A01", "A02", "B01"])
        zip_code = f"{chance.randrange(10**5):05d}"
        rows.append([f"{2020 - age}-{month:02d}-15", f"2020-{month:02d}-15", zip_code, code])
        expected.append({"age": str(age), "area": zip_code[:2], "chapter": code[0]})
    with (folder / "visits.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["born", "seen", "zip", "code"], *rows])
    (folder / "icd.csv").write_text("A01,A,*\nA02,A,*\nB01,B,*\n")
    return expected


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    monkeypatch.chdir(tmp_path)
    return ages(tmp_path)


@pytest.mark.parametrize("engine", ["memory", pytest.param("disk", marks=pytest.mark.not_quick)])
def test_a_release_of_derived_columns_holds(engine: str, visits: list[dict[str, str]], tmp_path: Path) -> None:
    release = sfumato.anonymize("visits.csv", **FLAGS, engine=engine, method="hilbert")
    release.write("out.csv")
    with (tmp_path / "out.csv").open() as file:
        shown = list(csv.DictReader(file))
    assert list(shown[0]) == ["age", "area", "chapter"]
    assert oracle.smallest_class(shown, ["age", "area"]) >= 3
    assert sorted(row["chapter"] for row in shown) == sorted(row["chapter"] for row in visits)
    policy = json.loads((tmp_path / "out.csv.sfumato.json").read_text())["policy"]
    assert policy["derive"]["chapter"] == {"from": "code", "groups": "icd.csv"}


def test_a_release_is_that_of_a_table_with_the_same_columns(visits: list[dict[str, str]]) -> None:
    derived = sfumato.anonymize("visits.csv", **FLAGS, method="hilbert").data.to_pydict()
    ready = pandas.DataFrame(visits).astype({"age": "int64"})
    plain = {key: value for key, value in FLAGS.items() if key not in ("derive", "drop")}
    assert sfumato.anonymize(ready, **plain, method="hilbert").data.to_dict("list") == derived


def test_a_frame_keeps_its_kind_with_derived_columns(visits: list[dict[str, str]]) -> None:
    frame = pandas.read_csv("visits.csv", parse_dates=["born", "seen"], dtype={"zip": str})
    flags = {**FLAGS, "sensitive": (), "other": ["chapter", "visit"], "accept_linkable": ["visit"]}
    flags["derive"] = {**DERIVE, "visit": {"from": "seen", "part": "month"}}
    shown = sfumato.anonymize(frame, **flags).data
    assert isinstance(shown, pandas.DataFrame)
    assert list(shown.columns) == ["age", "area", "chapter", "visit"]
    assert sorted(shown["visit"]) == sorted(frame["seen"].dt.month)


@pytest.mark.not_quick
def test_studies_and_rules_derive_the_columns_too(visits: list[dict[str, str]], tmp_path: Path) -> None:
    alone = {key: FLAGS[key] for key in ("derive", "quasi_identifiers")}
    found = sfumato.risk("visits.csv", **alone)
    assert (found.whole.records, found.whole.columns) == (60, ("age", "area"))
    compared = sfumato.compare("visits.csv", methods=["hilbert"], **FLAGS)
    release = sfumato.anonymize("visits.csv", **FLAGS, method="hilbert")
    assert [row["gcp"] for row in compared.rows] == [release.losses.gcp]
    release.write("out.csv")
    assert sfumato.measure("visits.csv", "out.csv").gcp == release.losses.gcp
    assert sfumato.audit("out.csv", original="visits.csv").holds
    (tmp_path / "rules").mkdir()
    sfumato.fit("visits.csv", **FLAGS, method="mondrian").write("rules/rules.json")
    (tmp_path / "icd.csv").rename(tmp_path / "rules" / "icd.csv")
    applied = sfumato.apply("rules/rules.json", "visits.csv", max_suppressed=0.9)
    assert applied.data.column_names == ["age", "area", "chapter"]
    with pytest.raises(UsageError, match="the policy derives columns, which a query does not do"):
        sfumato.Recoding.load("rules/rules.json").to_sql("duckdb", "visits")


def test_a_proposal_drops_what_others_are_derived_from_and_keeps_the_rules(
    visits: list[dict[str, str]], tmp_path: Path
) -> None:
    proposal = sfumato.propose_policy("visits.csv", derive=DERIVE, k=3)
    assert [(name, proposal.policy.columns[name].role) for name in ("born", "zip", "code", "age")] == [
        ("born", "drop"),
        ("zip", "drop"),
        ("code", "drop"),
        ("age", "quasi-identifier"),
    ]
    assert proposal.reasons["born"] == "the column 'age' is derived from it"
    (tmp_path / "sub").mkdir()
    proposal.save("sub/policy.toml")
    saved = sfumato.Policy.load("sub/policy.toml")
    assert saved.derive["chapter"].groups == "../icd.csv"
    assert saved.derive["age"] == proposal.policy.derive["age"]


def test_spark_and_estimators_refuse_derived_columns(visits: list[dict[str, str]]) -> None:
    with pytest.raises(UsageError, match="the spark engine does not support derive"):
        sfumato.anonymize("visits.csv", **FLAGS, engine="spark")
    policy = sfumato.Policy.from_dict({"derive": {"age": DERIVE["age"]}})
    with pytest.raises(UsageError, match="an estimator takes the columns of X as they are"):
        sfumato.Mondrian(policy=policy, k=2).fit(pandas.DataFrame({"a": [1, 2]}))


def test_a_fault_is_found_before_anything_is_written(visits: list[dict[str, str]], tmp_path: Path) -> None:
    text = (tmp_path / "visits.csv").read_text()
    (tmp_path / "visits.csv").write_text(text + "2021-05-05,2020-01-01,00000,A01\n")
    with pytest.raises(InputError, match=r"in 1 record, 'seen' lies before 'born'; the first is in line 62\."):
        sfumato.anonymize("visits.csv", **FLAGS).write("out.csv")
    assert not (tmp_path / "out.csv").exists()
