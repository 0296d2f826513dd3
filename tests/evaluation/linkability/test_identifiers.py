"""A kept column that is an identifier by its name or the form of its values is refused until it is accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato
from sfumato.cli import main
from sfumato.engines.disk import linkability as on_disk
from sfumato.engines.disk import passthrough_columns
from sfumato.errors import PolicyError

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

ROWS = 240
SURNAMES = [
    "Rossi",
    "Bianchi",
    "Verdi",
    "Smith",
    "Jones",
    "Meyer",
    "Fischer",
    "Weber",
    "Wagner",
    "Becker",
    "Koch",
    "Klein",
]
ASKED: dict[str, Any] = {"quasi_identifiers": ["age", "sex"], "sensitive": "diagnosis", "k": 5}


def table(**columns: list[Any]) -> pa.Table:
    """A table in which no kept column is nearly unique, or determines a quasi-identifier."""
    return pa.table(
        {
            "age": [20 + row % 30 for row in range(ROWS)],
            "sex": ["f" if row * 7 % 11 < 6 else "m" for row in range(ROWS)],
            "diagnosis": [f"d{row * 5 % 13 % 4}" for row in range(ROWS)],
            **columns,
        }
    )


def repeated(values: list[Any]) -> list[Any]:
    """Give every record one of the values, whatever its age and sex."""
    return [values[row * row * 31 % 997 % len(values)] for row in range(ROWS)]


IDENTIFIERS: dict[str, tuple[str, list[Any], str]] = {
    "name": ("surname", SURNAMES, "its name suggests the name of a person, and its values fit"),
    "name in German": ("Nachname", SURNAMES, "its name suggests the name of a person, and its values fit"),
    "phone": (
        "phone",
        [39055100000 + n for n in range(20)],
        "its name suggests a telephone number, and its values fit",
    ),
    "e-mail": ("contact", [f"{name}@example.org" for name in SURNAMES], "its values look like e-mail addresses"),
    "SSN": ("code", [f"{300 + n}-45-{6000 + n}" for n in range(30)], "social security numbers of the United States"),
    "person": ("patient_id", [900 + n for n in range(60)], "its name suggests that it numbers persons"),
}
HARMLESS: dict[str, tuple[str, list[Any]]] = {
    "a name of things": ("drug_name", [f"{name}ol" for name in SURNAMES]),
    "a name of few": ("name", ["yes", "no"]),
    "a count": ("number_of_visits", list(range(12))),
    "a measure": ("pressure", [90 + n for n in range(60)]),
    "a category": ("ward", ["A1", "A2", "B1"]),
    "nothing": ("surname", [None]),
}


def refusal(data: pa.Table, **asked: Any) -> str:
    with pytest.raises(PolicyError) as caught:
        sfumato.anonymize(data, **{**ASKED, "other": "keep", **asked})
    return str(caught.value)


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_a_kept_identifier_is_refused_by_name_or_form(kind: str, engine: str) -> None:
    name, values, reason = IDENTIFIERS[kind]
    message = refusal(table(**{name: repeated(values)}), engine=engine)
    assert f"{name!r}: " in message
    assert reason in message
    assert "role identifier" in message
    assert "accept_linkable" in message
    assert not any(str(value) in message for value in values)


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("kind", HARMLESS)
def test_other_columns_are_kept_without_a_word(kind: str, engine: str) -> None:
    name, values = HARMLESS[kind]
    data = table(**{name: repeated(values)})
    release = sfumato.anonymize(data, **ASKED, other="keep", engine=engine)
    assert sorted(release.data[name].to_pylist(), key=str) == sorted(data[name].to_pylist(), key=str)


def test_numbers_that_are_not_collected_on_disk_are_judged_from_their_first_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passthrough_columns, "FEW", 0)
    monkeypatch.setattr(passthrough_columns, "WAITING", 10)
    monkeypatch.setattr(on_disk, "DENSE", 0)
    name, values, reason = IDENTIFIERS["phone"]
    assert reason in refusal(table(**{name: repeated(values)}), engine="disk")


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_role_in_the_policy_does_not_accept_an_identifier_but_accept_linkable_does(engine: str) -> None:
    data = table(surname=repeated(SURNAMES))
    roles = {
        "age": {"role": "quasi-identifier"},
        "sex": {"role": "quasi-identifier"},
        "diagnosis": {"role": "sensitive"},
        "surname": {"role": "other"},
    }
    policy: dict[str, Any] = {"columns": roles, "privacy": {"k": 5}, "engine": {"name": engine}}
    with pytest.raises(PolicyError, match="'surname': its name suggests"):
        sfumato.anonymize(data, policy=policy)
    release = sfumato.anonymize(data, policy={**policy, "accept_linkable": ["surname"]})
    assert sorted(release.data["surname"].to_pylist()) == sorted(data["surname"].to_pylist())
    roles["surname"] = {"role": "sensitive"}
    assert "surname" in sfumato.anonymize(data, policy=policy).data.column_names


def test_rules_are_neither_learnt_nor_applied_with_a_kept_identifier() -> None:
    data = table(surname=repeated(SURNAMES))
    asked = {**ASKED, "other": "keep", "method": "mondrian"}
    with pytest.raises(PolicyError, match="'surname': its name suggests"):
        sfumato.fit(data, **asked)
    harmless = table(surname=repeated(["yes", "no"]))  # so few values are no names
    rules = sfumato.fit(harmless, **asked)
    assert sfumato.apply(rules, harmless).data.num_rows == ROWS
    with pytest.raises(PolicyError, match="'surname': its name suggests"):
        sfumato.apply(rules, data)


def test_the_command_line_refuses_a_forgotten_column_of_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyarrow.csv.write_csv(table(surname=repeated(SURNAMES)), tmp_path / "t.csv")
    asked = ["anonymize", str(tmp_path / "t.csv"), "-o", str(tmp_path / "r.csv"), "--quasi-identifiers", "age,sex"]
    asked += ["--sensitive", "diagnosis", "--other", "keep", "-k", "5"]
    assert main(asked) == 2
    assert "'surname': its name suggests the name of a person" in capsys.readouterr().err
    assert not (tmp_path / "r.csv").exists()
    assert main([*asked, "--accept-linkable", "surname"]) == 0


def test_what_is_refused_is_what_a_proposed_policy_calls_an_identifier() -> None:
    columns = {name: repeated(values) for name, values, _ in IDENTIFIERS.values()}
    columns |= {name: repeated(values) for name, values in HARMLESS.values() if name not in columns}
    data = table(**columns)
    proposed = {column.name for column in sfumato.propose_policy(data).columns if column.role == "identifier"}
    message = refusal(data)
    assert proposed == {name for name in data.column_names if f"{name!r}: " in message}


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_ranges_of_numbers_are_no_telephone_numbers(engine: str) -> None:
    wages = [f"{low}-{low + 3999}" for low in range(4000, 100_000, 4000)]
    table = pa.table({"age": [20 + number % 5 for number in range(120)], "wages": [wages[n % 24] for n in range(120)]})
    release = sfumato.anonymize(table, quasi_identifiers=["age"], other="keep", k=5, method="hilbert", engine=engine)
    assert set(release.data["wages"].to_pylist()) == set(wages)
