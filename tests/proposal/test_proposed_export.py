"""The first policy for a hospital's export: settings are found, also for what is derived, and tokens are no values."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import PolicyError
from sfumato.proposal import Proposal

AGE = {"Alter": {"from": "Geburtsdatum", "to": "Aufnahme", "unit": "years"}}
RECORDS = 400

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.ReadingWarning")


@pytest.fixture(scope="module", params=[".csv", ".xlsx"])
def export(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / f"export{request.param}"
    sfumato.generate("hospital", RECORDS, path, flaws=True)
    return path


@pytest.fixture(scope="module")
def proposal(export: Path) -> Proposal:
    return sfumato.propose_policy(export, derive=AGE, column_nulls={"Gewicht": "-999"})


def test_dates_are_found_in_the_form_in_which_ages_are_derived_from_them(export: Path, proposal: Proposal) -> None:
    settings = proposal.policy.to_dict()["input"]
    if export.suffix == ".csv":
        assert settings == {
            "separator": ";",
            "encoding": "cp1252",
            "decimal": ",",
            "thousands": ".",
            "nulls": ["", "?", "NA"],
            "date_format": "%d.%m.%Y",
        }
    else:
        assert settings == {"nulls": ["", "?"]}
    (age,) = (column for column in proposal.columns if column.name == "Alter")
    assert (age.role, age.settings) == ("quasi-identifier", {"type": "numeric", "top": 90})
    assert 0 < age.missing < 10  # those with ? for a date of birth


def test_every_role_of_the_export_is_right_or_left_to_decide(proposal: Proposal) -> None:
    roles = {column.name: column.role for column in proposal.columns}
    assert roles == {
        **dict.fromkeys(["Fall-Nr", "Patienten-Nr", "Name"], "identifier"),
        "Geburtsdatum": "drop",
        **dict.fromkeys(["Geschlecht", "PLZ", "Aufnahme", "Entlassung", "Alter"], "quasi-identifier"),
        **dict.fromkeys(["Versicherung", "Hauptdiagnose", "Größe", "Gewicht", "Kosten", "Wiederaufnahme"], "decide"),
        "Bemerkung": "decide",
    }
    assert proposal.policy.privacy.person == "Patienten-Nr"


def test_the_tokens_of_a_column_are_no_values_and_go_into_the_policy(export: Path, proposal: Proposal) -> None:
    without = sfumato.propose_policy(export)
    assert [remark for remark in without.remarks if "have -999" in remark]
    assert not proposal.remarks
    weights = {name: weight_of(each) for name, each in {"read": without, "cleared": proposal}.items()}
    assert weights["cleared"].settings["round"] < weights["read"].settings["round"]
    assert weights["cleared"].missing > weights["read"].missing
    saved = tomllib.loads(proposal.to_toml())
    assert saved["columns"]["Gewicht"] == {"role": "decide", "nulls": ["-999"]}
    assert saved == proposal.policy.to_dict()
    assert weights["cleared"].as_dict()["nulls"] == ["-999"]


def weight_of(proposal: Proposal) -> Any:
    (weight,) = (column for column in proposal.columns if column.name == "Gewicht")
    return weight


def test_tokens_of_an_identifier_are_not_written_and_those_of_an_unknown_column_are_refused(export: Path) -> None:
    proposal = sfumato.propose_policy(export, column_nulls={"Name": ["?"], "Geschlecht": ["?", "x"]})
    assert proposal.policy.columns["Name"].nulls is None
    assert proposal.policy.columns["Geschlecht"].nulls == ("?", "x")
    with pytest.raises(PolicyError, match=r"names the column 'Gewichte', which the table does not have\. Did you mean"):
        sfumato.propose_policy(export, column_nulls={"Gewichte": ["-999"]})
    with pytest.raises(PolicyError, match="the derived column 'Alter' names the column 'Geburt', which the table"):
        sfumato.propose_policy(export, derive={"Alter": {**AGE["Alter"], "from": "Geburt"}})


def test_the_next_step_keeps_what_the_command_was_given(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", str(export)]) == 0
    assert capsys.readouterr().out.endswith(f"next    sfumato policy {export} -o export.policy.toml\n")
    assert main(["policy", str(export), "--column-null", "Gewicht=-999"]) == 0
    assert capsys.readouterr().out.endswith("next    run the same command with -o export.policy.toml\n")


@pytest.mark.not_quick
def test_text_and_workbook_of_one_export_have_the_same_release(tmp_path: Path) -> None:
    releases = []
    for suffix in (".csv", ".xlsx"):
        path, *_ = sfumato.generate("hospital", RECORDS, tmp_path / f"export{suffix}", flaws=True)
        proposal = sfumato.propose_policy(path, derive=AGE, column_nulls={"Gewicht": "-999"}, k=5)
        policy = proposal.policy.to_dict()
        for name in proposal.undecided:
            policy["columns"][name]["role"] = "drop"
        policy["columns"]["Gewicht"] = {"role": "quasi-identifier", "round": 2.5, "nulls": ["-999"]}
        policy["columns"]["Größe"] = {"role": "quasi-identifier", "round": 0.05}
        releases.append(sfumato.anonymize(path, policy=policy, method="hilbert").data.to_pylist())
    assert releases[0] == releases[1]
    assert {len(row) for row in releases[0]} == {7}


@pytest.mark.not_quick
def test_what_a_command_says_about_reading_is_in_its_json_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("export.xlsx", "export.csv"):
        sfumato.generate("hospital", 60, name, flaws=True)
    one = ["--quasi-identifiers", "PLZ"]
    reading = ["--encoding", "cp1252", "--separator", ";"]
    for command in (
        ["risk", "export.xlsx", *one],
        ["policy", "export.xlsx"],
        ["anonymize", "export.xlsx", "-o", "release.csv", *one, "-k", "2", "--other", "drop"],
        ["anonymize", "export.xlsx", "--dry-run", *one, "-k", "2", "--other", "drop"],
        ["taxonomy", "export.xlsx", "PLZ"],
    ):
        assert main([*command, "--json"]) == 0
        printed = capsys.readouterr()
        warnings = json.loads(printed.out)["warnings"]
        assert [text for text in warnings if "has a title: rows 1 to 2 were skipped, and row 3 holds" in text]
        assert "has a title: rows 1 to 2 were skipped" in printed.err
    assert main(["anonymize", "export.csv", "--dry-run", "--quasi-identifiers", "Kosten", "-k", "2", "--other", "drop",
                 *reading, "--json"]) == 0  # fmt: skip
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert warning.startswith("column 'Kosten' holds numbers in another form and is read as text.")
    assert main(["risk", "export.csv", "--quasi-identifiers", "PLZ", *reading, "--json"]) == 0
    assert "warnings" not in json.loads(capsys.readouterr().out)
