"""The levels that a proposal gives to quasi-identifiers: which, why, and that the policy runs with them."""

from __future__ import annotations

import datetime
import json
import random
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proposal_tables import Make, choice, csv_file, day, decided, latitude, table_with, whole, zip_code
from strategies import Case, cases

import sfumato
from sfumato.cli import main
from sfumato.policy import Policy
from sfumato.proposal import Proposal
from sfumato.proposal.propose import ProposedColumn

QUASI = "quasi-identifier"


def proposed(name: str, make: Make, records: int = 300) -> ProposedColumn:
    """The proposal for one column of a table."""
    return sfumato.propose_policy(table_with({name: make, "other": whole(0, 3)}, records)).columns[0]


def codes(prefixes: str, numbers: int) -> Make:
    """Codes of five digits: so many with each of these beginnings."""
    return lambda chance, _: f"{chance.choice(prefixes.split())}{chance.randrange(numbers):02d}"


def dates(*units: str) -> dict[str, Any]:
    """The settings of dates with these units, of which the first is the finest."""
    return {"type": "date", "taxonomy": {"calendar": list(units)}, "finest": units[0]}


@pytest.mark.parametrize(
    ("name", "make", "settings"),
    [
        ("age", whole(0, 96), {"type": "numeric", "top": 90}),
        ("age", whole(0, 90), {"type": "numeric"}),
        ("age", choice("30 60 90"), {"type": "numeric", "top": 90}),
        ("weeks", whole(0, 96), {"type": "numeric"}),
        ("children", whole(0, 9), {"type": "numeric"}),
        ("pay", whole(20_000, 90_000), {"type": "numeric", "round": 1000}),
        ("pay", lambda chance, _: chance.randrange(9000) / 100, {"type": "numeric", "round": 1}),
        ("height", lambda chance, _: f"{chance.randrange(150, 200) / 100:.2f}", {"type": "numeric"}),
        ("latitude", latitude, {"type": "numeric", "round": 0.1}),
        ("zip", codes("101 102 203", 4), {"type": "categorical", "taxonomy": {"prefix": [1, 3]}}),
        ("zip", codes("101 102 103", 15), {"type": "categorical", "taxonomy": {"prefix": [3, 4]}}),
        ("zip", lambda *_: "10115", {"type": "categorical"}),
        ("zip", zip_code, {"type": "categorical", "taxonomy": {"prefix": [1, 2, 3, 4]}, "finest": 3}),
        ("visit", day(2019, 2024), dates("month", "quarter", "year")),
        ("visit", day(2023, 2024), dates("month", "quarter")),
        ("visit", lambda chance, _: f"2024-0{chance.randrange(4, 7)}-11", dates("month")),
        ("visit", day(1990, 2024), dates("month", "quarter", "year", "decade")),
        ("visit", lambda _, row: "0001-01-01" if row == 0 else "2024-05-01", dates("month", "quarter", "year")),
        ("dob", day(1930, 2010), dates("year", "decade")),
        ("dob", day(2020, 2024), dates("month", "quarter", "year")),
        ("sex", choice("m f"), {"type": "categorical"}),
        ("smoker", choice("yes no"), {"type": "categorical"}),
        ("country", choice("France Peru Japan"), {"type": "categorical", "taxonomy": {"ready": "countries"}}),
        ("country", choice("FR PE JP"), {"type": "categorical", "taxonomy": {"ready": "countries"}}),
        ("nationality", choice("FRA PER JPN"), {"type": "categorical", "taxonomy": {"ready": "countries"}}),
        ("country", choice("France Peru Atlantis"), {"type": "categorical"}),
        ("province", choice("CA IN DE"), {"type": "categorical"}),
        ("month", choice("January March May"), {"type": "categorical", "taxonomy": {"ready": "months"}}),
        ("month", choice("Januar Mai Juli"), {"type": "categorical"}),
        ("c7", choice("Monday Tuesday Sunday"), {"type": "categorical", "taxonomy": {"ready": "weekdays"}}),
        ("diagnosis", choice("E11.9 I10 J45.0"), {"type": "categorical", "taxonomy": {"ready": "icd-10"}}),
        ("diagnosis", choice("flu asthma"), {"type": "categorical"}),
    ],
)  # fmt: skip
def test_levels_follow_from_what_a_column_is_about(name: str, make: Make, settings: dict[str, Any]) -> None:
    assert proposed(name, make).settings == settings


@pytest.mark.parametrize(
    ("name", "make", "says"),
    [
        ("age", whole(0, 96), "few people are older than 89, so they are one value, 90+, as HIPAA's Safe Harbor asks"),
        ("weeks", whole(0, 96), "ranges are as narrow as a class allows"),
        ("pay", whole(20_000, 90_000), "an exact number may single a person out"),
        ("birth_year", whole(1920, 2010), "set bottom to the last year of birth of such people"),
        ("zip", codes("101 102 203", 4), "the beginning of a code stands for a larger area"),
        ("zip", zip_code, "no more than the first 2 characters of a code is ever shown"),
        ("visit", day(2023, 2024), "a day with one other fact may single a person out, so dates are never finer"),
        ("visit", day(2023, 2024), 'coarsest = "quarter" would keep every record within its quarter, if enough'),
        ("dob", day(1930, 2010), "never finer than a year"),
        ("country", choice("France Peru Japan"), "the groups come from ISO 3166-1"),
        ("country", choice("France Peru Japan Atlantis"), "does not have 1 of the 4 values"),
        ("city", lambda _, row: "abcdefghij"[row % 10] * (1 + row % 50), "a class with two of its 50 values shows *"),
    ],
)  # fmt: skip
def test_every_limit_has_its_reason_in_the_file(name: str, make: Make, says: str) -> None:
    proposal = sfumato.propose_policy(table_with({name: make, "other": whole(0, 3)}))
    assert says in proposal.columns[0].levels_reason
    comments = [line.removeprefix("# ") for line in proposal.to_toml().splitlines() if line.startswith("# ")]
    assert says in " ".join(comments)


@pytest.mark.parametrize(("name", "make"), [("sex", choice("m f")), ("children", whole(0, 9))])
def test_columns_that_are_shown_as_they_are_need_no_reason(name: str, make: Make) -> None:
    assert proposed(name, make).levels_reason == ""


def test_codes_that_few_records_share_are_shown_up_to_groups_of_two_codes() -> None:
    """Of 300 codes of nine digits, 60 groups of about five share the first three characters, and 285 share six."""
    chance = random.Random(7)
    starts = [f"{number:03d}" for number in range(100, 160)]
    values = [f"{chance.choice(starts)}{chance.randrange(10**6):06d}" for _ in range(300)]
    column = sfumato.propose_policy(pa.table({"postcode": values})).columns[0]
    lengths = column.settings["taxonomy"]["prefix"]
    shown = list(reversed(lengths))[column.settings["finest"] - 1]
    groups = {length: len({value[:length] for value in values}) for length in lengths}
    assert groups[shown] <= len(set(values)) / 2
    assert all(groups[length] > len(set(values)) / 2 for length in lengths if length > shown)


def test_a_release_shows_what_the_levels_allow(tmp_path: Path) -> None:
    table = table_with(
        {
            "age": whole(20, 99),
            "visit": day(2023, 2024),
            "dob": day(1930, 2005),
            "zip": zip_code,
            "pay": whole(0, 9000),
        },
        600,
    )
    release = sfumato.anonymize(table, decided(sfumato.propose_policy(table), "identifier"))
    shown = {name: set(release.data[name].to_pylist()) - {"*"} for name in ("age", "visit", "dob", "zip")}
    assert all(len(label) == len("2023-01") for label in shown["visit"])  # a month or a quarter
    assert all(len(label) in (len("1964"), len("1960s")) for label in shown["dob"])
    assert all(label[2:] == "***" for label in shown["zip"])
    ends = {end for label in shown["age"] for end in label.strip("[]").split("..")}
    assert "90+" in ends
    assert all(int(end) < 90 for end in ends - {"90+"})


@given(st.floats(1e-6, 1e9), st.floats(-1e9, 1e9), st.booleans())
def test_rounding_of_numbers_is_accepted_by_a_run(span: float, low: float, whole_numbers: bool) -> None:
    numbers = [low + span * step / 30 for step in range(31)]
    values = [round(number) for number in numbers] if whole_numbers else numbers
    column = sfumato.propose_policy(pa.table({"income": values})).columns[0].described
    assert column is not None
    policy = Policy(columns={"income": column}, privacy={"k": 2})  # type: ignore[arg-type]
    assert sfumato.anonymize(pa.table({"income": values}), policy).audit.holds


def with_all_columns(proposal: Proposal) -> Policy:
    """The policy once somebody has made every open column a quasi-identifier, as the proposal describes it."""
    content = proposal.policy.to_dict()
    for column in proposal.columns:
        if column.role == "decide":
            content["columns"][column.name] = {"role": QUASI, **column.settings}
    return Policy.from_dict({**content, "privacy": {"k": 2}})


NAMED = ("age", "zip", "visit", "dob", "country", "pay", "city", "month", "c7")


@given(cases(rows=30), st.lists(st.sampled_from(NAMED), min_size=6, max_size=6, unique=True))
def test_what_is_proposed_runs_for_any_table_under_any_name(case: Case, names: list[str]) -> None:
    table = case.table.rename_columns(names[: case.table.num_columns])
    proposal = sfumato.propose_policy(table)
    assert Policy.from_dict(tomllib.loads(proposal.to_toml())) == proposal.policy
    policy = with_all_columns(proposal)
    if table.num_rows < 2 or not policy.quasi_identifiers:
        return
    assert sfumato.anonymize(table, policy).audit.holds


@pytest.mark.parametrize("kind", ["census", "hospital", "agrawal", "normal"])
def test_the_proposal_for_a_generated_table_passes_the_dry_run(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "table.csv"
    sfumato.generate(kind, 200, file)
    policy = with_all_columns(sfumato.propose_policy(file))
    policy.save(tmp_path / "policy.toml")
    assert main(["anonymize", str(file), "--policy", str(tmp_path / "policy.toml"), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_the_hospital_export_shows_months_regions_and_ages_up_to_90(tmp_path: Path) -> None:
    file = tmp_path / "patients.csv"
    sfumato.generate("hospital", 2000, file)
    columns = sfumato.propose_policy(file).policy.to_dict()["columns"]
    assert columns["age"] == {"role": QUASI, "type": "numeric", "top": 90}
    assert columns["zip"] == {"role": QUASI, "type": "categorical", "taxonomy": {"prefix": [2, 3, 4]}}
    assert columns["country"] == {"role": QUASI, "type": "categorical", "taxonomy": {"ready": "countries"}}
    assert columns["admission"] == {"role": QUASI, **dates("month", "quarter")}


@pytest.mark.not_quick
def test_proposed_levels_lose_less_than_fixed_intervals_and_no_groups(tmp_path: Path) -> None:
    file = tmp_path / "patients.csv"
    sfumato.generate("hospital", 2000, file)
    policy = decided(sfumato.propose_policy(file), "identifier")
    content = policy.to_dict()
    content["columns"]["age"] = {"role": QUASI, "type": "numeric", "taxonomy": {"intervals": [5, 10, 20]}}
    content["columns"]["country"] = {"role": QUASI, "type": "categorical"}
    content["columns"]["admission"].pop("finest")
    without = sfumato.anonymize(file, Policy.from_dict(content))
    assert sfumato.anonymize(file, policy).losses.gcp < without.losses.gcp


def test_the_command_shows_levels_and_json_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = csv_file(
        tmp_path / "t.csv", table_with({"age": whole(0, 96), "visit": day(2023, 2024), "pay": whole(0, 9000)})
    )
    assert main(["policy", str(file)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "numeric; top 90" in printed
    assert "numeric; round 100" in printed
    assert main(["policy", str(file), "--json"]) == 0
    columns = {column["name"]: column for column in json.loads(capsys.readouterr().out)["columns"]}
    assert (columns["age"]["top"], columns["age"]["finest"], columns["age"]["round"]) == (90, None, None)
    assert columns["visit"]["finest"] == "month"
    assert columns["pay"]["round"] == 100
    assert "Safe Harbor" in columns["age"]["levels_reason"]


def test_dates_with_times_are_never_finer_than_a_month() -> None:
    start = datetime.datetime(2024, 3, 1)
    moments = [start + datetime.timedelta(hours=31 * row) for row in range(300)]
    column = sfumato.propose_policy(pa.table({"seen": moments})).columns[0]
    assert column.settings == dates("month", "quarter", "year")
