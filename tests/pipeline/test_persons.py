"""Persons instead of records: what is counted, what is shown of them (nothing), and what a file can still tell."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import FrameKind
from hypothesis import given
from hypothesis import strategies as st
from naming import hiding_methods, methods_on_levels

import sfumato
from sfumato.api import anonymize_to_file
from sfumato.cli import main
from sfumato.methods import ClassBatch, Records
from sfumato.policy import EffortName, Policy, merge_flags
from sfumato.progress import Progress
from sfumato.requirements import Requirements

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
by_method = pytest.mark.parametrize("method", hiding_methods())
PERSONS = oracle.Counting(person="pid")
CANNOT_BE_CHECKED = "the policy counts persons, and a release does not say whose its records are"


def visits(ages: Sequence[int | None], persons: Sequence[Any], illness: Sequence[Any] = (), **more: Any) -> pa.Table:
    """One record for each visit of a person to a doctor."""
    columns = {
        "age": ages,
        "pid": persons,
        "row": range(len(ages)),
        **({"illness": illness} if illness else {}),
        **more,
    }
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def asks(**more: Any) -> dict[str, Any]:
    return {"quasi_identifiers": ["age"], "other": "keep", "accept_linkable": ["row"], "person": "pid", **more}


def with_persons(release: sfumato.Release, table: pa.Table) -> list[dict[str, Any]]:
    """The released rows with the person of each, found by the number of the record."""
    persons = dict(zip(table["row"].to_pylist(), table["pid"].to_pylist(), strict=True))
    assert "pid" not in release.data.column_names
    return [{**row, "pid": persons[row["row"]]} for row in release.data.to_pylist()]


def values_by_name(release: sfumato.Release) -> dict[str, float | int]:
    return {one.requirement: one.value for one in release.audit.verdicts}


# ---- k ----


@by_method
def test_one_person_with_k_records_is_not_hidden_among_them(method: str) -> None:
    table = visits([20] * 4 + [60] * 4, list("aaaabbbb"))
    by_records = sfumato.anonymize(table.drop(["pid"]), **asks(k=2, person=None), method=method)
    assert sorted(by_records.data["age"].to_pylist()) == ["20"] * 4 + ["60"] * 4
    by_persons = sfumato.anonymize(table, **asks(k=2), method=method)
    assert by_persons.data["age"].to_pylist() == ["*"] * 8
    assert values_by_name(by_persons) == {"k-anonymity, k = 2, in persons": 2}
    assert by_persons.audit.smallest_class == 8


@by_method
def test_persons_of_classes_that_show_the_same_are_counted_once(method: str) -> None:
    # Widened to tens, both ages show [0..10], where there are three persons and not four.
    table = visits([1, 1, 8, 8, 51, 58], list("abacde"))
    release = sfumato.anonymize(table, **asks(k=2, round={"age": 10}), method=method)
    rows = with_persons(release, table)
    assert oracle.smallest_membership(rows, ["age"], PERSONS) == release.audit.verdicts[0].value == 2
    if method == "hilbert":
        assert [row["age"] for row in sorted(rows, key=lambda row: row["row"])] == ["[0..10]"] * 4 + ["[50..60]"] * 2


EFFORTS: tuple[EffortName, ...] = ("fast", "normal")


@given(data=st.data())
def test_classes_of_k_persons_are_the_best_cut_of_one_column(data: st.DataObject) -> None:
    ages = sorted(data.draw(st.sets(st.integers(0, 60), min_size=2, max_size=9)))
    persons = data.draw(st.lists(st.sampled_from("abcd"), min_size=len(ages), max_size=len(ages)))
    k = data.draw(st.integers(1, len(set(persons))))
    possible = [
        cuts
        for cuts in oracle.runs(len(ages), k)
        if all(len(set(persons[start:end])) >= k for start, end in pairwise(cuts))
    ]
    least = min(oracle.total_cost(cuts, lambda start, end: ages[end - 1] - ages[start]) for cuts in possible)
    best = least / (ages[-1] - ages[0]) / len(ages)
    cut, searched = (sfumato.anonymize(visits(ages, persons), **asks(k=k), effort=effort) for effort in EFFORTS)
    assert cut.losses.gcp == pytest.approx(best, abs=1e-9)
    assert searched.losses.gcp <= best + 1e-9  # a class need not be a run of the records
    assert searched.audit.holds


@by_method
def test_persons_with_one_record_each_are_as_good_as_records(method: str) -> None:
    generator = np.random.default_rng(3)
    table = visits(generator.integers(0, 90, 60).tolist(), generator.permutation(60).tolist())
    by_persons = sfumato.anonymize(table, **asks(k=4), method=method)
    by_records = sfumato.anonymize(table.drop(["pid"]), **asks(k=4, person=None), method=method)
    assert by_persons.audit.verdicts[0].value == oracle.smallest_membership(
        with_persons(by_persons, table), ["age"], PERSONS
    )
    if method in ("hilbert", "idistance"):  # exact along the line, both times
        assert by_persons.losses.gcp == pytest.approx(by_records.losses.gcp)


def test_fewer_persons_than_k_are_refused_although_there_are_enough_records() -> None:
    with pytest.raises(sfumato.InfeasibleError) as caught:
        sfumato.anonymize(visits([20, 30, 40, 50], list("abab")), **asks(k=3))
    assert str(caught.value) == (
        "k = 3 needs at least 3 persons, but the table has 2. Choose a k of at most 2, or add persons."
    )
    assert caught.value.exit_code == 3


# ---- sensitive values ----

# One class. Flu: p and q; cold: p; gout: r; nobody knows what s had, nor what r had the second time.
SEVEN = visits(
    [40] * 7, list("pppqrrs"), ["flu", "flu", "cold", "flu", "gout", None, None], pay=[10, 10, 30, 10, 50, None, None]
)


@pytest.mark.parametrize(
    "require, reached",
    [
        ("frequency(illness, l=1)", Fraction(3, 2)),
        ("distinct(illness, l=3)", 3),
        ("alpha-k(illness, alpha=0.7)", Fraction(2, 3)),
        ("entropy(illness, l=2)", 4 / math.sqrt(2)),
        ("recursive(illness, c=1.1, l=2)", 1),
        ("variance(pay, v=200)", 275),
        ("t-closeness(illness, t=0.1)", 0),
        ("beta-likeness(illness, beta=0.1)", 0),
        ("delta-disclosure(illness, delta=0.1)", 0),
    ],
)
def test_a_value_counts_the_persons_that_have_it(require: str, reached: float) -> None:
    release = sfumato.anonymize(SEVEN, **asks(k=4, sensitive=["illness", "pay"], require=require))
    k, verdict = release.audit.verdicts
    assert (k.requirement, k.value) == ("k-anonymity, k = 4, in persons", 4)
    assert verdict.holds
    assert verdict.value == pytest.approx(float(reached))


@pytest.mark.parametrize(
    "require", ["frequency(illness, l=2)", "alpha-k(illness, alpha=0.6)", "distinct(illness, l=4)"]
)
def test_what_persons_do_not_reach_is_refused(require: str) -> None:
    with pytest.raises(sfumato.InfeasibleError, match="'illness'"):
        sfumato.anonymize(SEVEN, **asks(k=1, sensitive=["illness", "pay"], require=require))


def test_what_is_said_of_a_table_that_is_not_eligible_is_said_of_persons() -> None:
    table = visits([30] * 6, list("aabcde"), ["flu", "flu", "flu", "flu", "cold", "cold"])
    with pytest.raises(sfumato.InfeasibleError) as caught:
        sfumato.anonymize(table, **asks(sensitive="illness", require="frequency(illness, l=2)"))
    assert str(caught.value).startswith(
        "frequency l-diversity of 'illness' with l = 2 allows the most frequent value 50.0% of the persons, but it has "
        "60.0%. Choose an l of at most 1."
    )


@by_method
def test_many_records_of_one_person_neither_protect_nor_harm(method: str) -> None:
    # By records flu has 5 of 6 and nothing would do; one person has it.
    table = visits([30] * 6, list("aaaaab"), ["flu"] * 5 + ["cold"])
    release = sfumato.anonymize(table, **asks(sensitive="illness", require="frequency(illness, l=2)"), method=method)
    assert release.audit.verdicts[1].value == 2
    with pytest.raises(sfumato.InfeasibleError, match=r"it has 83\.3%"):
        sfumato.anonymize(
            table.drop(["pid"]),
            **asks(sensitive="illness", require="frequency(illness, l=2)", person=None),
            method=method,
        )


@by_method
def test_a_person_with_every_value_hides_nobody(method: str) -> None:
    # By records each value has a half; but the one person that is there has each of them.
    table = visits([30] * 4, list("aaaa"), ["flu", "cold"] * 2)
    with pytest.raises(sfumato.InfeasibleError, match=r"it has 100\.0%. Choose an l of at most 1\."):
        sfumato.anonymize(table, **asks(sensitive="illness", require="frequency(illness, l=2)"), method=method)


@by_method
def test_the_reference_counts_a_person_once_for_each_value_in_the_whole_release(method: str) -> None:
    # Pairs: flu a, c; cold a, b, c. The person a has flu in both classes.
    table = visits([20, 20, 20, 80, 80, 80], list("aabacc"), ["flu", "flu", "cold", "flu", "cold", "flu"])
    table = pa.concat_tables([table, visits([20], ["a"], ["cold"]).set_column(2, "row", pa.array([6]))])
    release = sfumato.anonymize(
        table, **asks(k=2, sensitive="illness", require="t-closeness(illness, t=1)"), method=method
    )
    rows = with_persons(release, table)
    everything = PERSONS.counts(rows, "illness")
    assert everything.of == {"flu": 2, "cold": 3}
    asked = oracle.Asked("t-closeness", "illness", {})
    parts = [PERSONS.counts(part, "illness") for part in oracle.classes(rows, ["age"]).values()]
    farthest = max(asked.distance(part, everything, "equal") for part in parts)
    assert release.audit.verdicts[1].value == pytest.approx(float(farthest))
    if method == "hilbert":
        # At 20: flu a, cold a, b; at 80: flu a, c, cold c. In all: flu a, c, cold a, b, c.
        assert (release.audit.classes, farthest) == (2, Fraction(2, 3) - Fraction(2, 5))


@by_method
@pytest.mark.parametrize("more", [{"round": {"age": 10}}, {}], ids=["widened alike", "equal records"])
def test_classes_with_equal_boxes_and_persons_in_both_hold_as_one(method: str, more: dict[str, Any]) -> None:
    # Two classes of two persons and two values, each diverse; as one, two of its three persons have each value.
    ages = [1, 1, 8, 8] if more else [5, 5, 5, 5]
    table = visits(
        [*ages, 51, 52, 53, 54], list("abacdefg"), ["flu", "cold", "cold", "flu", "gout", "rash", "ague", "acne"]
    )
    release = sfumato.anonymize(
        table, **asks(sensitive="illness", require="frequency(illness, l=2)", **more), method=method
    )
    rows = with_persons(release, table)
    asked = oracle.Asked("frequency", "illness", {"l": 2})
    assert oracle.is_met(asked, rows, ["age"], PERSONS)
    assert oracle.is_met(asked, [row for row in rows if row["row"] in (0, 1)], [], PERSONS)
    assert oracle.is_met(asked, [row for row in rows if row["row"] in (2, 3)], [], PERSONS)
    assert not oracle.is_met(asked, [row for row in rows if row["row"] < 4], [], PERSONS)
    together = {row["age"] for row in rows if row["row"] < 4}
    assert len([row for row in rows if row["age"] in together]) > 4


@by_method
@pytest.mark.parametrize("keep_order", [False, True])
def test_the_audit_gets_each_rows_own_person_in_either_order(method: str, keep_order: bool) -> None:
    generator = np.random.default_rng(8)
    table = visits(
        generator.integers(0, 50, 80).tolist(),
        generator.integers(0, 30, 80).tolist(),
        generator.choice(["flu", "cold", "gout", "ague"], 80).tolist(),
    )
    release = sfumato.anonymize(
        table, **asks(k=3, sensitive="illness", require="distinct(illness, l=2)", keep_order=keep_order), method=method
    )
    rows = with_persons(release, table)
    assert len(rows) == 80
    assert release.audit.verdicts[0].value == oracle.smallest_membership(rows, ["age"], PERSONS) >= 3
    assert release.audit.verdicts[1].value == oracle.fewest_values(rows, ["age"], "illness") >= 2
    assert release.audit.classes > 3 or method in methods_on_levels()  # there, all or nothing of a number is shown


# ---- the person key ----


KEYS: dict[str, list[Any]] = {
    "text": [f"Person {number:02}" for number in range(12)],
    "whole": list(range(900, 912)),
    "decimal": [number + 0.25 for number in range(12)],
    "date": [datetime.date(1950, 1, 1) + datetime.timedelta(number) for number in range(12)],
}


@pytest.mark.parametrize("kind", KEYS)
def test_persons_are_told_apart_by_keys_of_any_type_and_leave_no_trace(
    kind: str, frame_kind: FrameKind, tmp_path: Path
) -> None:
    keys = KEYS[kind]
    # Two persons near each other, and two records of each.
    table = visits([place // 4 * 10 + place // 2 % 2 for place in range(24)], [keys[place // 2] for place in range(24)])
    release = sfumato.anonymize(frame_kind.make(table), **asks(k=2, seed=1))
    expected = [f"[{first}..{first + 1}]" for first in range(0, 60, 10) for _ in range(4)]
    rows = sorted(frame_kind.read(release.data).to_pylist(), key=lambda row: row["row"])
    assert [row["age"] for row in rows] == expected
    target = release.write(tmp_path / "release.parquet")
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert pq.read_schema(target).names == ["age", "row"]
    if kind in ("text", "date"):
        assert not any(str(key).encode() in content for key in keys)


def test_categories_of_pandas_tell_persons_apart() -> None:
    table = visits([1, 2, 3, 4], list("aabb")).to_pandas().astype({"pid": "category"})
    assert sfumato.anonymize(table, **asks(k=2)).data["age"].tolist() == ["*"] * 4


@pytest.mark.parametrize("persons", [["a", None, "b", None], [1.0, math.nan, 2.0, None]], ids=["null", "NaN"])
def test_a_record_without_a_person_is_refused(persons: list[Any]) -> None:
    with pytest.raises(sfumato.InputError) as caught:
        sfumato.anonymize(visits([1, 2, 3, 4], persons), **asks(k=2))
    assert str(caught.value) == (
        "the person key 'pid' is empty in 2 records, so nobody can say whose they are. Fill it in, or leave these "
        "records out."
    )
    assert caught.value.exit_code == 4


def test_an_empty_person_in_a_csv_file_is_refused_and_nothing_is_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "visits.csv").write_text("age,pid\n20,secret1\n30,\n40,secret2\n")
    flags = ["--quasi-identifiers", "age", "--person", "pid", "-k", "2"]
    code = main(["anonymize", str(tmp_path / "visits.csv"), "-o", str(tmp_path / "release.csv"), *flags])
    output = capfd.readouterr()
    assert code == 4
    assert "the person key 'pid' is empty in 1 records" in output.err.replace("\n", " ")
    assert "secret" not in output.out + output.err
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]


# ---- the policy ----

POLICY = """\
[columns.age]
role = "quasi-identifier"
[columns.pid]
role = "ROLE"
[privacy]
k = 2
person = "pid"
"""


def test_a_policy_with_a_person_key_comes_back_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY.replace("ROLE", "identifier"))
    policy = Policy.load(tmp_path / "policy.toml")
    assert policy.privacy.person == "pid"
    policy.save(tmp_path / "again.toml")
    again = Policy.load(tmp_path / "again.toml")
    assert again == policy
    assert again.privacy.person == "pid"
    table = visits([20, 20, 60, 60], list("aabb")).drop(["row"])
    assert sfumato.anonymize(table, again).data["age"].to_pylist() == ["*"] * 4


@pytest.mark.parametrize("role", ["other", "sensitive", "quasi-identifier"])
def test_a_person_key_that_would_be_released_is_refused_with_its_line(role: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY.replace("ROLE", role))
    with pytest.raises(sfumato.PolicyError) as caught:
        sfumato.anonymize(visits([20, 60], list("ab")).drop(["row"]), Policy.load(tmp_path / "policy.toml"))
    assert "line 7" in str(caught.value)
    assert "the person key 'pid' is not an identifier, so it would be released. Give it the role identifier, or" in str(
        caught.value
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("value", ["3", '""', "true", "[]"])
def test_a_person_key_is_a_name(value: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY.replace("ROLE", "identifier").replace('"pid"', value))
    with pytest.raises(sfumato.PolicyError, match=r"line 7.*person.*must be a name"):
        Policy.load(tmp_path / "policy.toml")


def test_a_person_key_without_a_role_becomes_an_identifier_and_one_with_a_role_keeps_it() -> None:
    merged = merge_flags(None, quasi_identifiers=["age"], k=2, person="pid")
    assert merged.identifiers == ("pid",)
    with pytest.raises(sfumato.PolicyError, match="the person key 'age' is not an identifier"):
        merge_flags(None, quasi_identifiers=["age"], k=2, person="age").check_complete()
    with pytest.raises(sfumato.PolicyError, match="the column 'nobody', which the table does not have"):
        sfumato.anonymize(visits([20, 60], list("ab")), **asks(k=1, person="nobody"))


# ---- the finished file ----


VISITS = visits([20, 20, 20, 60, 60, 70], list("aabccd"), ["flu", "cold", "cold", "flu", "cold", "gout"])
K_IN_PERSONS = "k-anonymity, k = 2, in persons"
FREQUENCY = "frequency l-diversity of 'illness', l = 1"
DISTINCT = "distinct l-diversity of 'illness', l = 2"
CERTIFIED = "the file is the one that was certified"


def visits_released(folder: Path, suffix: str = "csv") -> Path:
    required = ["frequency(illness, l=1)", "distinct(illness, l=2)"]
    release = sfumato.anonymize(VISITS, **asks(k=2, sensitive="illness", require=required))
    assert release.audit.holds
    assert [(one.requirement, one.reason) for one in release.audit.verdicts] == [
        (K_IN_PERSONS, ""),
        (FREQUENCY, ""),
        (DISTINCT, ""),
    ]
    return Path(release.write(folder / f"release.{suffix}"))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_says_of_every_requirement_whether_it_holds_fails_or_was_not_checked(
    suffix: str, tmp_path: Path
) -> None:
    target = visits_released(tmp_path, suffix)
    report = sfumato.audit(target)
    assert [(one.requirement, one.holds) for one in report.verdicts] == [
        (K_IN_PERSONS, None),
        (FREQUENCY, None),
        (DISTINCT, True),
        (CERTIFIED, True),
    ]
    assert not report.holds
    assert (report.failed, report.unchecked) == ((), report.verdicts[:2])
    assert {one.reason for one in report.unchecked} == {CANNOT_BE_CHECKED}
    assert report.verdicts[0].value == report.smallest_class
    assert report.remarks == (
        "the certificate states what held when the release was made and its persons were counted: "
        f"{K_IN_PERSONS}; {FREQUENCY}; {DISTINCT}",
    )
    certificate = json.loads((tmp_path / f"release.{suffix}.sfumato.json").read_text())
    assert certificate["audit"][0] == {"requirement": K_IN_PERSONS, "holds": True}
    assert certificate["policy"]["privacy"]["person"] == "pid"


def test_a_certificate_of_another_file_says_nothing_of_its_persons(tmp_path: Path) -> None:
    target = visits_released(tmp_path)
    lines = target.read_text().splitlines(keepends=True)
    target.write_text("".join([lines[0], *reversed(lines[1:])]))
    report = sfumato.audit(target)
    assert [one.requirement for one in report.failed] == [CERTIFIED]
    assert report.remarks == ()
    (tmp_path / "release.csv.sfumato.json").unlink()
    report = sfumato.audit(target, **asks(k=2, sensitive="illness", require="distinct(illness, l=2)"))
    assert report.remarks == ("there is no certificate beside the release: it is incomplete, or was made elsewhere",)


@pytest.mark.parametrize("memory", [[], ["--memory", "256MB"]], ids=["in memory", "in parts"])
def test_the_command_ends_with_five_while_something_is_not_checked(
    memory: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = visits_released(tmp_path)
    command = ["audit", str(target), *memory]
    assert main([*command, "--json"]) == 5
    found = json.loads(capfd.readouterr().out)
    assert found["holds"] is None
    assert found["audit"][0] == {
        "requirement": K_IN_PERSONS,
        "holds": None,
        "value": found["smallest_class"],
        "counted": "records",
        "reason": CANNOT_BE_CHECKED,
    }
    assert (found["audit"][1]["holds"], found["audit"][1]["reason"]) == (None, CANNOT_BE_CHECKED)
    assert [line["holds"] for line in found["audit"]][2:] == [True, True]
    assert main([*command, "--json", "--accept-unchecked"]) == 0
    assert json.loads(capfd.readouterr().out)["holds"] is None
    assert main(command) == 5
    text = " ".join(capfd.readouterr().out.split())
    assert f"NOT CHECKED {K_IN_PERSONS} (in records: {found['smallest_class']})" in text
    assert f"why not checked: {CANNOT_BE_CHECKED}" in text
    assert "nothing fails, but 2 of 4 requirements were not checked: the release may not hold" in text
    assert "the release holds" not in text
    assert main([*command, "--accept-unchecked"]) == 0
    assert "the release may not hold" in " ".join(capfd.readouterr().out.split())


def test_a_policy_that_records_decide_is_checked_in_full(tmp_path: Path) -> None:
    target = visits_released(tmp_path)
    flags = {"quasi_identifiers": ["age"], "sensitive": "illness", "person": "pid"}
    report = sfumato.audit(target, Policy.from_dict({}), **flags, require="distinct(illness, l=2)")
    assert [(one.requirement, one.holds) for one in report.verdicts] == [
        ("k-anonymity, k = 1, in persons", True),
        (DISTINCT, True),
        (CERTIFIED, True),
    ]
    assert report.holds


@pytest.mark.parametrize("memory", [[], ["--memory", "256MB"]], ids=["in memory", "in parts"])
def test_forty_equal_diagnoses_fail_whoever_they_belong_to(
    memory: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = ["age,illness", *["[20..40],flu"] * 20, *["[41..90],flu"] * 20]
    (tmp_path / "release.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "policy.toml").write_text(
        '[columns.age]\nrole = "quasi-identifier"\n[columns.illness]\nrole = "sensitive"\n'
        '[columns.pid]\nrole = "identifier"\n[privacy]\nk = 5\nperson = "pid"\n'
        '[[privacy.sensitive]]\nattribute = "illness"\nkind = "frequency"\nl = 2\n'
    )
    command = ["audit", str(tmp_path / "release.csv"), "--policy", str(tmp_path / "policy.toml"), *memory]
    for accept in ([], ["--accept-unchecked"]):
        assert main([*command, *accept, "--json"]) == 1
        found = json.loads(capfd.readouterr().out)
        assert found["holds"] is False
        assert [line["holds"] for line in found["audit"]] == [None, False]
    assert main(command) == 1
    text = capfd.readouterr().out
    assert "FAILS       frequency l-diversity of 'illness', l = 2 (in records: 1)" in text
    assert "the release does not hold: do not share it" in text


def test_measure_and_bound_leave_open_what_a_file_does_not_show(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = visits_released(tmp_path)
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    assert main(["measure", str(tmp_path / "visits.parquet"), str(target), "--json"]) == 0
    assert [line["holds"] for line in json.loads(capfd.readouterr().out)["audit"]] == [None, None, True, True]
    bound = ["bound", str(tmp_path / "visits.parquet"), "--release", str(target)]
    assert main([*bound, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["release"]["holds"] is None
    assert main(bound) == 0
    said = "if it meets the policy: not all of that can be checked from the release"
    assert said in " ".join(capfd.readouterr().out.split())


def test_a_file_with_too_few_records_or_with_the_person_key_fails(tmp_path: Path) -> None:
    released = pa.table({"age": ["20", "20", "60"], "pid": ["a", "b", "c"]})
    report = sfumato.audit(released, quasi_identifiers=["age"], person="pid", k=2)
    assert [(one.requirement, one.holds, one.value) for one in report.verdicts] == [
        (K_IN_PERSONS, False, 1),
        ("the identifier 'pid' is not released", False, 1),
    ]
    pq.write_table(released, tmp_path / "release.parquet")
    flags = ["--quasi-identifiers", "age", "--identifiers", "pid", "-k", "1"]
    assert main(["audit", str(tmp_path / "release.parquet"), *flags]) == 1


def test_the_command_line_counts_persons(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(visits([20, 20, 60, 60], list("aabb")).drop(["row"]), tmp_path / "visits.parquet")
    command = ["anonymize", str(tmp_path / "visits.parquet"), "--quasi-identifiers", "age", "--person", "pid", "--json"]
    target = ["-o", str(tmp_path / "release.csv")]
    assert main([*command, *target, "-k", "2"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["audit"] == [{"requirement": "k-anonymity, k = 2, in persons", "holds": True, "value": 2}]
    assert (found["records"], found["released"], found["suppressed"], found["classes"]) == (4, 4, 0, 1)
    assert (tmp_path / "release.csv").read_text().split() == ["age", "*", "*", "*", "*"]
    assert main([*command, *target, "-k", "3"]) == 3
    assert "k = 3 needs at least 3 persons, but the table has 2" in capfd.readouterr().err


# ---- a method that counts records ----


class CountsRecords:
    """A method that makes classes of two records, whose persons it does not look at."""

    name = "hilbert"
    paper = summary = use = ""
    separates = False

    def check(self, requirements: Requirements) -> None:
        return

    def meets(self, requirements: Requirements) -> bool:
        return True

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        at = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
        codes = records.codes[at].reshape(records.count // 2, 2, -1)
        yield ClassBatch(records.rows, np.arange(0, records.count + 1, 2), codes.min(axis=1), codes.max(axis=1))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_release_with_too_few_persons_in_a_class_is_withheld(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.engines.memory.classes.method_named", lambda name: CountsRecords())
    table = visits([1, 2, 3, 4, 5, 6], list("aabbcc"))
    with pytest.raises(AssertionError, match="does not meet the requirements"):
        sfumato.anonymize(table, **asks(k=2))
    # The audit finds it by itself too.
    monkeypatch.setattr(Requirements, "holds", lambda self, classes: np.ones(len(classes.sizes), np.bool_))
    with pytest.raises(sfumato.AuditError, match="k-anonymity, k = 2, in persons"):
        sfumato.anonymize(table, **asks(k=2))
    with pytest.raises(sfumato.AuditError, match="k-anonymity, k = 2, in persons"):
        anonymize_to_file(table, merge_flags(None, **asks(k=2)), tmp_path / f"release.{suffix}", Progress())
    assert list(tmp_path.iterdir()) == []
    # Persons who stand two by two are what it can do.
    in_turn = visits([1, 2, 3, 4, 5, 6], list("ababab"))
    assert sfumato.anonymize(in_turn, **asks(k=2)).audit.classes == 3


def test_a_person_key_that_means_missing_is_nobody() -> None:
    table = pa.table({"age": [1] * 11, "s": ["a"] * 10 + ["b"], "pid": ["NA"] * 10 + ["p"]})
    with pytest.raises(sfumato.InputError, match="the person key 'pid' is empty in 10 records"):
        sfumato.anonymize(
            table, quasi_identifiers=["age"], sensitive="s", l=2, person="pid", input={"nulls": ["", "NA"]}
        )
