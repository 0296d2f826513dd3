"""Tables about the same persons: released together if they hold together, and not at all otherwise."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import oracle_linked as oracle
import pytest
from linked_tables import ROLES, read_rows, with_pseudonyms, write_hospital, write_policy, write_rows, write_tables
from oracle_linked import ReleasedRow

import sfumato
from sfumato.cli.main import main
from sfumato.errors import InfeasibleError, InputError, PolicyError, SfumatoError, UnmetError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a hospital, with a key."""
    monkeypatch.chdir(tmp_path)
    write_hospital(tmp_path)
    sfumato.make_key("hospital.key")
    return tmp_path


def quasi_identifiers(table: str) -> list[str]:
    return [name for name, role in ROLES[table].items() if role == "quasi-identifier"]


def released(folder: Path, table: str) -> list[ReleasedRow]:
    """A release with pseudonyms, as the oracle takes it: they say whose the rows are."""
    return [
        ReleasedRow(row["patient_id"], tuple(row[name] for name in quasi_identifiers(table)), {})
        for row in read_rows(folder / "out" / f"{table}.csv")
    ]


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_all_tables_are_published_with_certificates_that_name_each_other(hospital: Path) -> None:
    linked = sfumato.anonymize_linked(hospital)
    assert linked.holds
    assert sorted(os.listdir("out")) == sorted(f"{name}.csv{end}" for name in ROLES for end in ("", ".sfumato.json"))
    files = {name: f"{name}.csv" for name in ROLES}
    for name in ROLES:
        section = json.loads(Path(f"out/{name}.csv.sfumato.json").read_text())["linked"]
        assert section == {
            "table": name,
            "files": files,
            "together": False,
            "holds": [
                "no release shows the pseudonyms of persons",
                "no column is kept in two releases",
                "no quasi-identifier of one table is kept as it is in another",
            ],
            "accepted": [],
            "remarks": [],
        }
        assert "patient_id" not in read_rows(Path(f"out/{name}.csv"))[0]


def test_every_release_is_the_one_that_anonymize_makes_of_its_table(hospital: Path) -> None:
    sfumato.anonymize_linked(hospital)
    for name in ROLES:
        sfumato.anonymize(f"{name}.csv", f"{name}.toml").write(f"{name}-alone.csv")
        assert Path(f"out/{name}.csv").read_bytes() == Path(f"{name}-alone.csv").read_bytes()
        assert sfumato.audit(f"out/{name}.csv").failed == ()


def test_pseudonyms_that_single_persons_out_keep_everything_from_being_published(hospital: Path) -> None:
    with_pseudonyms(hospital)
    write_tables(hospital, pseudonym_key="hospital.key")
    with pytest.raises(UnmetError) as caught:
        sfumato.anonymize_linked(hospital)
    text = str(caught.value)
    assert (
        "k = 3 persons are in the same classes of patients, stays and lab, which pseudonyms join (reached: 1)" in text
    )
    assert 'accept_linked = ["pseudonyms", "records-per-person"]' in text
    assert os.listdir("out") == []
    assert "patient-0" not in text
    assert caught.value.exit_code == 1


def test_a_refusal_leaves_the_earlier_releases_alone(hospital: Path) -> None:
    sfumato.anonymize_linked(hospital)
    before = files_in(hospital / "out")
    with_pseudonyms(hospital)
    write_tables(hospital, pseudonym_key="hospital.key")
    with pytest.raises(UnmetError):
        sfumato.anonymize_linked(hospital)
    assert files_in(hospital / "out") == before


def test_what_is_accepted_is_published_with_a_remark_and_without_a_figure(hospital: Path) -> None:
    with_pseudonyms(hospital)
    write_tables(hospital, pseudonym_key="hospital.key", accept_linked=["pseudonyms"])
    linked = sfumato.anonymize_linked(hospital)
    persons = {name: {row["patient_id"] for row in read_rows(Path(f"out/{name}.csv"))} for name in ROLES}
    assert persons["lab"] < persons["stays"] == persons["patients"]
    expected = oracle.fewest_alike([released(hospital, name) for name in ROLES], counted=False)
    lines = {line["attack"]: line for line in linked.summary()["joint"]}
    assert (lines["pseudonyms"]["value"], lines["pseudonyms"]["holds"]) == (expected, False)
    assert lines["pseudonyms"]["accepted"]
    assert lines["records-per-person"]["accepted"]
    section = json.loads(Path("out/lab.csv.sfumato.json").read_text())["linked"]
    assert section["accepted"] == ["pseudonyms"]
    assert section["remarks"] == [
        "pseudonyms join the records of a person across these tables: k holds in every class of each, and not for "
        "somebody who joins them"
    ]
    assert not any("persons are in the same" in line for line in section["holds"])
    assert section["remarks"][0] in sfumato.audit("out/lab.csv").remarks
    assert "checked jointly with patients.csv, stays.csv" in " ".join(sfumato.audit("out/lab.csv").remarks)


def test_no_figure_that_needs_the_person_key_is_in_a_certificate(hospital: Path) -> None:
    sfumato.anonymize_linked(hospital)
    figures = {name: json.loads(Path(f"out/{name}.csv.sfumato.json").read_text())["linked"] for name in ROLES}
    numbers = re.findall(r"\d+", json.dumps(figures))
    assert numbers == []  # not even k, since nothing is joined here
    summary = sfumato.anonymize_linked(hospital).summary()
    assert {"joint", "persons_if_joined"} <= set(summary["private_figures"])


@pytest.mark.parametrize("seed", range(4))
def test_together_makes_every_line_hold(seed: int, hospital: Path) -> None:
    shutil.rmtree("out")
    write_hospital(hospital, 80, seed)
    with_pseudonyms(hospital)
    for name in ROLES:
        path = Path(f"{name}.toml")
        path.write_text(path.read_text() + "\n[release]\nmax_suppressed_fraction = 0.4\n")
    write_tables(hospital, pseudonym_key="hospital.key", together=True)
    linked = sfumato.anonymize_linked(hospital)
    assert all(line.verdict.holds for line in linked.joint.lines)
    rows = [released(hospital, name) for name in ROLES]
    alike, counted = (oracle.fewest_alike(rows, counted=counted) for counted in (False, True))
    assert min(alike, counted) >= 3
    lines = {line["attack"]: line["value"] for line in linked.summary()["joint"]}
    assert (lines["pseudonyms"], lines["records-per-person"]) == (alike, counted)
    assert linked.joint.persons_if_joined == alike
    assert json.loads(Path("out/lab.csv.sfumato.json").read_text())["linked"]["together"] is True


def test_together_covers_every_value_of_every_table(hospital: Path) -> None:
    write_tables(hospital, together=True)
    sfumato.anonymize_linked(hospital)
    for name in ROLES:
        original, shown = read_rows(Path(f"{name}.csv")), read_rows(Path(f"out/{name}.csv"))
        assert len(shown) == len(original)
        for column in quasi_identifiers(name):
            if column != "sex":
                bounds = [re.findall(r"\d+", row[column]) for row in shown if row[column] != "*"]
                values = {int(row[column]) for row in original}
                assert all(int(each) in values for pair in bounds for each in pair)
        assert sfumato.audit(f"out/{name}.csv").failed == ()


def test_together_meets_what_is_required_of_sensitive_columns(hospital: Path) -> None:
    edit(Path("stays.toml"), 'person = "patient_id"', 'person = "patient_id"\n[[privacy.sensitive]]\n'
         'attribute = "diagnosis"\nkind = "distinct"\nl = 3')  # fmt: skip
    write_tables(hospital, together=True)
    sfumato.anonymize_linked(hospital)
    found = defaultdict(set)
    for row in read_rows(Path("out/stays.csv")):
        found[row["age"], row["month"]].add(row["diagnosis"])
    assert min(map(len, found.values())) >= 3


def test_together_gives_the_same_bytes_whatever_the_order_of_the_rows(hospital: Path) -> None:
    # Only what is kept tells most persons apart. Two of the others need a third one in their group.
    for name in ROLES:
        rows = []
        for row in read_rows(Path(f"{name}.csv")):
            age = str(50 + (row["patient_id"] >= "patient-0058"))
            alike = {"born": age, "age": age, "sex": "f", "month": "1"}
            if name != "lab" or row["patient_id"] < "patient-0030":
                rows.append({key: alike.get(key, value) for key, value in row.items()})
        write_rows(Path(f"{name}.csv"), rows)
    write_tables(hospital, together=True)
    sfumato.anonymize_linked(hospital)
    before = {name: Path(f"out/{name}.csv").read_bytes() for name in ROLES}
    for name in ROLES:
        write_rows(Path(f"{name}.csv"), read_rows(Path(f"{name}.csv"))[::-1])
    again = sfumato.anonymize_linked(hospital)
    assert {name: Path(f"out/{name}.csv").read_bytes() for name in ROLES} == before
    assert [
        text
        for release in again.releases.values()
        for text in release.warnings
        if "released" in text and "before" in text
    ] == []


def test_together_leaves_out_only_what_policies_allow(hospital: Path) -> None:
    rows = read_rows(Path("stays.csv"))
    write_rows(Path("stays.csv"), [*rows, {**rows[0], "patient_id": "nobody's"}])
    write_tables(hospital, together=True)
    with pytest.raises(
        InfeasibleError, match="1 records of 'stays' are of persons who are not in the table of persons"
    ):
        sfumato.anonymize_linked(hospital)
    Path("stays.toml").write_text(Path("stays.toml").read_text() + "\n[release]\nmax_suppressed_fraction = 0.1\n")
    assert sfumato.anonymize_linked(hospital).releases["stays"].audit.records == len(rows)


def test_a_column_that_two_releases_keep_is_compared(hospital: Path) -> None:
    # Every laboratory result tells the ward, and every ward of a class elsewhere is another one.
    rows = [
        {"patient_id": f"p{n}", "born": 1950 + 10 * (n // 3), "sex": "f", "payer": "state", "room": f"r{n}"}
        for n in range(12)
    ]
    write_rows(Path("patients.csv"), rows)
    lab = [{"patient_id": f"p{n}", "age": 10 * (n % 3), "test": "CRP", "room": f"r{n}"} for n in range(12)]
    write_rows(Path("lab.csv"), lab)
    for name in ("patients", "lab"):
        privacy = {"k": 3, "person": "patient_id"}
        write_policy(Path(f"{name}.toml"), {**ROLES[name], "room": "other"}, accept_linkable=["room"], privacy=privacy)
    write_tables(hospital, ["patients", "lab"])
    with pytest.raises(UnmetError, match="joined by the kept columns 'room' \\(reached: 1\\)") as caught:
        sfumato.anonymize_linked(hospital)
    assert "r1" not in str(caught.value)
    write_tables(hospital, ["patients", "lab"], accept_linked=["shared-columns"])
    assert sfumato.anonymize_linked(hospital).holds


def test_a_quasi_identifier_of_one_table_is_not_kept_in_another(hospital: Path) -> None:
    edit(Path("lab.toml"), '[columns.age]\nrole = "quasi-identifier"', '[columns.age]\nrole = "other"')
    edit(Path("lab.toml"), '[columns.test]\nrole = "other"', '[columns.test]\nrole = "quasi-identifier"')
    with pytest.raises(UnmetError, match="'age', a quasi-identifier of stays, is not kept as it is in lab"):
        sfumato.anonymize_linked(hospital)
    assert os.listdir("out") == []


def test_a_table_that_counts_records_is_warned_of(hospital: Path) -> None:
    edit(Path("stays.toml"), 'person = "patient_id"', "")
    with pytest.warns(sfumato.SfumatoWarning, match="'stays' has several records per person, and its policy counts"):
        sfumato.anonymize_linked(hospital)


def test_persons_are_the_same_ones_in_files_of_any_kind(hospital: Path) -> None:
    import pandas

    for name in ROLES:
        frame = pandas.read_csv(f"{name}.csv")
        frame["patient_id"] = frame["patient_id"].str.removeprefix("patient-").astype(int)
        frame.to_csv(f"{name}.csv", index=False)
    pandas.read_csv("stays.csv").to_parquet("stays.parquet")
    pandas.read_csv("lab.csv").to_excel("lab.xlsx", index=False)
    with_pseudonyms(hospital)
    write_tables(hospital, pseudonym_key="hospital.key", accept_linked=["pseudonyms"])
    plain = sfumato.anonymize_linked(hospital, write=False).joint
    edit(Path("tables.toml"), '"stays.csv"', '"stays.parquet"')
    edit(Path("tables.toml"), '"lab.csv"', '"lab.xlsx"')
    assert sfumato.anonymize_linked(hospital, write=False).joint == plain


def test_a_table_may_have_another_name_for_the_person_key(hospital: Path) -> None:
    with_pseudonyms(hospital)
    write_tables(hospital, pseudonym_key="hospital.key", accept_linked=["pseudonyms"])
    plain = sfumato.anonymize_linked(hospital).joint
    pseudonyms = {row["patient_id"] for row in read_rows(Path("out/lab.csv"))}
    for file in ("lab.csv", "lab.toml"):
        path = Path(file)
        path.write_text(path.read_text().replace("patient_id", "number"))
    edit(Path("tables.toml"), 'file = "lab.csv"', 'file = "lab.csv"\nperson = "number"')
    assert sfumato.anonymize_linked(hospital).joint == plain
    assert {row["number"] for row in read_rows(Path("out/lab.csv"))} == pseudonyms


def test_a_dry_run_writes_nothing_and_says_what_fails(hospital: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_pseudonyms(hospital)
    write_tables(hospital, pseudonym_key="hospital.key")
    assert main(["linked", ".", "--dry-run"]) == 1
    shown = capsys.readouterr().out
    assert "FAILS   k = 3 persons are in the same classes of patients, stays and lab" in shown
    assert "the releases do not hold together; nothing was written" in shown
    assert main(["linked", "tables.toml", "--dry-run", "--json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert (content["holds"], content["dry_run"]) == (False, True)
    assert set(content["tables"]) == set(ROLES)
    assert os.listdir("out") == []


def test_the_command_publishes_and_says_what_it_replaced(hospital: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["linked", "."]) == 0
    assert "out/stays.csv.sfumato.json" in capsys.readouterr().out
    assert main(["linked", ".", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["tables"]["lab"]["replaced"] == ["the earlier release out/lab.csv"]
    with_pseudonyms(hospital)
    write_tables(hospital, pseudonym_key="hospital.key", accept_linked=["pseudonyms"])
    assert main(["linked", "."]) == 0
    shown = capsys.readouterr()
    assert "replaced the earlier release out/lab.csv" in shown.err
    assert "FAILS   accepted: k = 3 persons are in the same classes" in shown.out
    assert "\nwarning the pseudonyms of 'patient_id' join" in shown.out  # of all tables, and said once
    assert shown.out.count("the pseudonyms of 'patient_id' join") == 1
    assert "\nwarning lab: this table was released 2 times before" in shown.out


def mistakes() -> Mapping[str, tuple[type[SfumatoError], str, Any]]:
    """What is wrong with a folder: the error, a part of its text, and what to change."""

    def tables(**settings: Any) -> Any:
        return lambda folder: write_tables(folder, **settings)

    def table(old: str, new: str, file: str = "tables.toml") -> Any:
        return lambda folder: edit(folder / file, old, new)

    def without_person(folder: Path) -> None:
        rows = read_rows(folder / "lab.csv")
        write_rows(folder / "lab.csv", [{**rows[0], "patient_id": ""}, *rows[1:]])

    def same_key_elsewhere(folder: Path) -> None:
        with_pseudonyms(folder)
        sfumato.make_key(folder / "other.key")
        edit(folder / "lab.toml", "k = 3", 'k = 3\npseudonym_key = "other.key"')
        edit(folder / "stays.toml", "k = 3", 'k = 3\npseudonym_key = "hospital.key"')
        edit(folder / "patients.toml", "k = 3", 'k = 3\npseudonym_key = "hospital.key"')

    def two_keys(folder: Path) -> None:
        same_key_elsewhere(folder)
        write_tables(folder, pseudonym_key="hospital.key")

    return {
        "one table": (PolicyError, "must name at least two tables", tables(names=["patients"])),
        "unknown key": (PolicyError, "unknown key 'togehter'. Did you mean 'together'?", tables(togehter=True)),
        "unknown attack": (
            PolicyError,
            "line 2: accept_linked may hold 'pseudonyms', 'records-per-person', 'shared-columns', "
            "'kept-quasi-identifiers', not 'everything'",
            tables(accept_linked=["everything"]),
        ),
        "no output": (PolicyError, "line 13: tables.lab.output is missing", table('output = "out/lab.csv"\n', "")),
        "no person": (PolicyError, "person is missing: it is the column", table('person = "patient_id"\n', "")),
        "no file": (InputError, "tables.toml cannot be read", lambda folder: (folder / "tables.toml").unlink()),
        "no table": (InputError, "lab.csv", lambda folder: (folder / "lab.csv").unlink()),
        "person is released": (
            PolicyError,
            "the policy of 'lab' does not withhold 'patient_id', which identifies persons",
            table('role = "identifier"', 'role = "other"', "lab.toml"),
        ),
        "persons are others": (
            PolicyError,
            "counts persons by 'test', and the tables are linked by 'patient_id'",
            table('person = "patient_id"', 'person = "test"', "lab.toml"),
        ),
        "unknown person": (
            UsageError,
            "the person key of 'lab' names the column 'number', which the table does not have",
            lambda folder: (
                edit(folder / "tables.toml", 'file = "lab.csv"', 'file = "lab.csv"\nperson = "number"'),
                edit(folder / "lab.toml", "[columns.patient_id]", "[columns.number]"),
                edit(folder / "lab.toml", 'person = "patient_id"', 'person = "number"'),
            ),
        ),
        "empty person": (InputError, "the person key 'patient_id' of 'lab' is empty in 1 records", without_person),
        "two folders": (PolicyError, "the outputs are in different folders", table('"out/lab.csv"', '"lab-out.csv"')),
        "same output": (PolicyError, "two tables have the same output", table('"out/lab.csv"', '"out/stays.csv"')),
        "database": (PolicyError, "linked tables are released as files", table('"out/lab.csv"', '"out/a.sqlite#lab"')),
        "output is an input": (
            UsageError,
            "the output is the input",
            lambda folder: [
                edit(folder / "tables.toml", f'"out/{name}.csv"', f'"{other}.csv"')
                for name, other in (("patients", "stays"), ("stays", "lab"), ("lab", "patients"))
            ],
        ),
        "another engine": (
            UsageError,
            "the disk engine does not support linked",
            table("[privacy]", '[engine]\nname = "disk"\n\n[privacy]', "patients.toml"),
        ),
        "two keys": (PolicyError, "a policy names another key for pseudonyms", two_keys),
        "keys of policies": (PolicyError, "the policies name different keys for pseudonyms", same_key_elsewhere),
        "no key": (PolicyError, "is to have pseudonyms, and no key is named", with_pseudonyms),
        "two tables of a release": (
            UsageError,
            "the method of 'stays' releases two tables",
            table(
                "[privacy]",
                '[method]\nname = "anatomy"\n\n[[privacy.sensitive]]\nattribute = "diagnosis"\nkind = "frequency"\n'
                "l = 2\n\n[privacy]",
                "stays.toml",
            ),
        ),
        "levels together": (
            UsageError,
            "the method global in the policy of 'lab' does not go with together",
            lambda folder: (
                write_tables(folder, together=True),
                edit(folder / "lab.toml", "[privacy]", '[method]\nname = "global"\n\n[privacy]'),
            ),
        ),
        "nobody once": (
            UsageError,
            "every table has a person with several",
            lambda folder: (
                write_tables(folder, ["stays", "twice"], together=True)
                or [shutil.copy(folder / f"stays.{end}", folder / f"twice.{end}") for end in ("csv", "toml")]
            ),
        ),
        "something else is there": (
            UsageError,
            "add --force",
            lambda folder: (folder / "out" / "lab.csv").write_text("mine"),
        ),
    }


MISTAKES = mistakes()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_error_without_a_cell_and_leaves_nothing(mistake: str, hospital: Path) -> None:
    kind, text, change = MISTAKES[mistake]
    change(hospital)
    before = files_in(hospital / "out")
    with pytest.raises(kind) as caught:
        sfumato.anonymize_linked(hospital)
    assert text in str(caught.value)
    assert type(caught.value) is kind
    assert not re.search("patient-0|asthma|CRP", str(caught.value))
    assert files_in(hospital / "out") == before


def test_a_release_that_fails_its_own_audit_keeps_all_from_being_published(
    hospital: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.pipeline import linked

    checked = linked.examined
    calls = []

    def failing(draft: Any, written: Any) -> Any:
        calls.append(draft)
        if len(calls) == len(ROLES):
            raise sfumato.AuditError("the last one fails")
        return checked(draft, written)

    monkeypatch.setattr(linked, "examined", failing)
    with pytest.raises(sfumato.AuditError, match="the last one fails"):
        sfumato.anonymize_linked(hospital)
    assert os.listdir("out") == []
