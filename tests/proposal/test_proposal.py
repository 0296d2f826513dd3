"""A first policy: what is proposed, why, and that nothing is decided silently."""

from __future__ import annotations

import json
import random
import re
import tomllib
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import FrameKind
from hypothesis import given
from hypothesis import strategies as st
from proposal_tables import (
    FIRST,
    LAST,
    RECORDS,
    Make,
    choice,
    csv_file,
    day,
    decided,
    latitude,
    person,
    table_with,
    whole,
    zip_code,
)

import sfumato
from sfumato.cli import main
from sfumato.evaluation.linkability.column_names import hints_of
from sfumato.policy import Policy
from sfumato.proposal import propose

IDENTIFIER, QUASI, DECIDE = "identifier", "quasi-identifier", "decide"


def iban(chance: random.Random, _: int) -> str:
    account = "".join(chance.choice("0123456789") for _ in range(18))
    return f"DE{98 - int(account + '131400') % 97:02d}{account}"


def spanish(chance: random.Random, _: int) -> str:
    number = chance.randrange(10_000_000, 99_999_999)
    return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"


def french(chance: random.Random, _: int) -> str:
    number = int(f"{chance.randrange(1, 3)}{chance.randrange(10**11, 10**12)}")
    return f"{number}{97 - number % 97:02d}"


def card(chance: random.Random, _: int) -> str:
    digits = [chance.randrange(10) for _ in range(15)]
    doubled = sum(
        sum(divmod(2 * digit, 10)) if place % 2 == 0 else digit for place, digit in enumerate(reversed(digits))
    )
    return "".join(map(str, digits)) + str(-doubled % 10)


def role_of(name: str, make: Make, records: int = RECORDS) -> tuple[str, str]:
    found = sfumato.propose_policy(table_with({name: make, "other": whole(0, 3)}, records))
    return found.policy.columns[name].role, found.reasons[name]


# ---- roles ----


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda _, row: f"user{row}@example.org", "e-mail addresses"),
        (lambda chance, _: uuid.UUID(int=chance.getrandbits(128)), "UUIDs"),
        (lambda chance, _: f"{chance.getrandbits(256):064x}", "hashes"),
        (lambda chance, _: f"+49 {chance.randrange(100, 999)} {chance.randrange(10**6, 10**7)}", "telephone numbers"),
        (lambda chance, _: f"({chance.randrange(200, 999)}) 555-{chance.randrange(1000, 9999)}", "telephone numbers"),
        (lambda chance, _: f"{chance.randrange(100, 999)}-{chance.randrange(10, 99)}-4321", "social security"),
        (lambda chance, _: ".".join(str(chance.randrange(256)) for _ in range(4)), "network addresses"),
        (lambda _, row: f"https://example.org/{row}", "web addresses"),
        (iban, "IBAN"),
        (spanish, "Spanish"),
        (french, "French"),
        (card, "card numbers"),
        (lambda chance, _: f"{chance.choice(['Main Street', 'Oak Lane'])} {chance.randrange(1, 999)}", "addresses"),
    ],
)  # fmt: skip
def test_values_of_the_form_of_an_identifier_decide_whatever_the_name(make: Make, says: str) -> None:
    role, reason = role_of("c7", make)
    assert role == IDENTIFIER
    assert says in reason


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("name", person), ("full_name", person), ("Vorname", choice(" ".join(FIRST))),
        ("nachname", choice(" ".join(LAST))), ("prénom", choice(" ".join(FIRST))),
        ("Apellidos", choice(" ".join(LAST))),
        ("patientName", person), ("Straße", person), ("dirección", person),
        ("patient_id", whole(0, 200)), ("Kundennummer", whole(0, 250)), ("encounter-id", lambda _, row: row),
        ("id", lambda _, row: row), ("passport", lambda chance, _: f"C{chance.randrange(10**7)}"),
        ("mobile", lambda chance, _: f"0{chance.randrange(10**9, 10**10)}"),
    ],
)  # fmt: skip
def test_names_of_identifiers_are_known_in_several_languages(name: str, make: Make) -> None:
    assert role_of(name, make)[0] == IDENTIFIER


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("age", whole(0, 95)), ("Alter", whole(0, 95)), ("edad", whole(0, 95)), ("wife-age", whole(18, 60)),
        ("sex", choice("1 2")), ("Geschlecht", choice("m w d")), ("sexe", choice("H F")), ("género", choice("h m")),
        ("zip", zip_code), ("PLZ", whole(10000, 99999)),
        ("code_postal", zip_code), ("códigoPostal", whole(10000, 99999)),
        ("dateOfBirth", day(1930, 2010)), ("Geburtsdatum", day(1930, 2010)), ("date_naissance", day(1930, 2010)),
        ("fecha de nacimiento", day(1930, 2010)), ("birth_year", whole(1930, 2010)), ("Geburtsjahr", whole(1930, 2010)),
        ("maritalStatus", choice("a b c")), ("Familienstand", choice("a b c")), ("état civil", choice("a b")),
        ("estado_civil", choice("a b")), ("Staatsangehoerigkeit", choice("a b")), ("nationalité", choice("a b")),
        ("city", choice("Ulm Jena Köln")), ("Wohnort", choice("Ulm Jena Köln")), ("ville", choice("Lyon Nice")),
        ("race", choice("a b c")), ("latitude", latitude),
        ("c7", day(2020, 2024)), ("c7", choice("male female")), ("c7", choice("Montag Dienstag Mittwoch")),
        ("c7", choice("January March May June")), ("c7", choice("Texas Ohio Utah")),
        ("c7", choice("France Peru Japan")),
        ("c7", lambda chance, _: f"SW{chance.randrange(1, 9)} {chance.randrange(1, 9)}A{chance.choice('BCDEF')}"),
        ("state", choice("Texas Ohio Utah")),
    ],
)  # fmt: skip
def test_demographic_geographic_and_date_columns_are_quasi_identifiers(name: str, make: Make) -> None:
    role, reason = role_of(name, make)
    assert role == QUASI, reason


@pytest.mark.parametrize(
    ("name", "make", "says"),
    [
        ("diagnosis", choice("a b"), "health"), ("Gehalt", whole(0, 99), "money"),
        ("religion", choice("a b"), "belief"),
        ("occupation", choice("a b"), "occupation"), ("state", choice("open closed"), "a state"),
        ("hospital_name", choice("a b c"), "neither"), ("vehicle_age", whole(0, 20), "neither"),
        ("email_opt_in", choice("yes no"), "an e-mail address, but its values do not"),
        ("number_of_patients", whole(0, 60), "neither"), ("education_code", whole(0, 250), "education, but"),
        ("age", choice("1000 2000 3000"), "age, but its values do not"),
        ("hours-per-week", whole(0, 60), "neither"), ("salary_band", choice("10000-14999 15000-19999"), "money"),
        ("measure", lambda chance, _: f"{chance.gauss(0, 1):.6f}", "exact measures"),
        ("c7", person, "may be names of persons"), ("c7", lambda *_: "x", "the same in every record"),
        ("c7", lambda *_: "", "no record has a value"),
        ("c7", lambda chance, _: f"{chance.randrange(50):03d}", "codes of one length"),
        ("c7", choice("ask:eva@example.org none nothing"), "contain e-mail addresses"),
        ("c7", lambda chance, _: chance.choice("xyz") * 60, "long texts"),
    ],
)  # fmt: skip
def test_what_nothing_settles_is_left_to_decide_with_a_reason(name: str, make: Make, says: str, tmp_path: Path) -> None:
    file = csv_file(tmp_path / "table.csv", table_with({name: make, "other": whole(0, 3)}))
    found = sfumato.propose_policy(file)
    assert found.policy.columns[name].role == DECIDE
    assert says in found.reasons[name]
    assert name in found.undecided


def test_a_value_of_its_own_for_every_record_is_an_identifier_unless_the_records_are_few() -> None:
    assert role_of("c7", lambda _, row: f"k{row:x}") == (
        IDENTIFIER,
        "all records have a value that no other record has",
    )
    assert role_of("c7", lambda _, row: f"k{row:x}", records=10)[0] == DECIDE


def test_sentences_of_which_every_record_has_its_own_are_dropped() -> None:
    role, reason = role_of("c7", lambda _, row: f"seen on day {row} because of a cough")
    assert role == "drop"
    assert reason == (
        "all records have a value that no other record has, and the values are sentences: nothing can be counted by "
        "them"
    )


def test_a_prefix_that_all_names_have_says_nothing() -> None:
    hints = hints_of(["iage", "irace", "isex", "iinjury"])
    assert [one.meaning.kind for one in hints.values() if one.meaning] == ["age", "ethnicity", "sex", "health"]
    assert hints_of(["iage", "irace"])["iage"].meaning is None


def test_a_column_that_tells_a_quasi_identifier_says_so() -> None:
    chance = random.Random(1)
    ages = [chance.randrange(20, 60) for _ in range(RECORDS)]
    table = pa.table({"age": ages, "c7": [f"g{age}" for age in ages], "c8": [chance.randrange(5) for _ in ages]})
    reasons = sfumato.propose_policy(table).reasons
    assert "nearly reveals the quasi-identifier 'age'" in reasons["c7"]
    assert "nearly reveals" not in reasons["c8"]


# ---- a policy that runs ----


def people(records: int = RECORDS) -> pa.Table:
    return table_with(
        {
            "name": person,
            "email": lambda _, row: f"p{row}@example.org",
            "patient_id": whole(0, 250),
            "born": day(1930, 2010),
            "zip": lambda chance, _: f"{chance.randrange(3000):05d}",
            "sex": choice("m f"),
            "diagnosis": choice("flu asthma none"),
            "score": whole(0, 1000),
        },
        records,
    )


def test_a_proposal_is_refused_until_every_role_and_k_is_decided(tmp_path: Path) -> None:
    file = csv_file(tmp_path / "people.csv", people())
    proposal = sfumato.propose_policy(file)
    with pytest.raises(sfumato.PolicyError, match="the role is still to decide for 'diagnosis', 'score'"):
        sfumato.anonymize(file, proposal.policy)
    proposal.save(tmp_path / "policy.toml")
    with pytest.raises(sfumato.PolicyError, match="still to decide"):
        sfumato.anonymize(file, Policy.load(tmp_path / "policy.toml"))
    text = (tmp_path / "policy.toml").read_text().replace('"decide"', '"identifier"')
    (tmp_path / "policy.toml").write_text(text)
    with pytest.raises(sfumato.PolicyError, match="k is absent"):
        sfumato.anonymize(file, Policy.load(tmp_path / "policy.toml"))
    release = sfumato.anonymize(file, Policy.load(tmp_path / "policy.toml"), k=5)
    assert release.data.column_names == ["born", "zip", "sex"]
    assert release.audit.holds


@pytest.mark.parametrize("role", [IDENTIFIER, QUASI])
def test_what_is_proposed_runs_for_every_kind_of_frame_and_file(
    role: str, frame_kind: FrameKind, tmp_path: Path
) -> None:
    table = people()
    table = table.set_column(3, "born", table["born"].cast(pa.date32())).set_column(
        7, "score", table["score"].cast(pa.int64())
    )
    file = csv_file(tmp_path / "people.csv", table)
    for data in (frame_kind.make(table), file):
        proposal = sfumato.propose_policy(data)
        assert proposal.policy.quasi_identifiers == ("born", "zip", "sex")
        assert proposal.policy.identifiers == ("name", "email", "patient_id")
        assert proposal.policy.columns["born"].type == "date"
        assert sfumato.anonymize(data, decided(proposal, role)).audit.holds


def test_persons_with_several_records_are_counted() -> None:
    proposal = sfumato.propose_policy(people())
    assert proposal.policy.privacy.person == "patient_id"
    once = people().set_column(2, "patient_id", pa.array(map(str, range(RECORDS))))
    assert sfumato.propose_policy(once).policy.privacy.person is None
    missing = people().set_column(2, "patient_id", pa.array([None, *["a1", "a2", "a3"] * 100][:RECORDS]))
    assert sfumato.propose_policy(missing).policy.privacy.person is None


# ---- how a file is written ----


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le"])
def test_separator_and_encoding_are_found(separator: str, encoding: str, tmp_path: Path) -> None:
    table = table_with({"größe": choice("weiß grün,blau"), "alter": whole(0, 95), "ort": choice("Köln Ulm")})
    proposal = sfumato.propose_policy(csv_file(tmp_path / "table.csv", table, separator, encoding))
    found = proposal.policy.to_dict().get("input", {})
    wanted = {"separator": separator} if separator != "," else {}
    if not encoding.startswith("utf-8"):
        wanted["encoding"] = encoding
    assert found == wanted
    assert list(proposal.policy.columns) == ["größe", "alter", "ort"]


def test_the_separator_of_a_tsv_file_goes_without_saying(tmp_path: Path) -> None:
    table = table_with({"age": whole(0, 95), "city": choice("Ulm Jena")})
    assert "input" not in sfumato.propose_policy(csv_file(tmp_path / "t.tsv", table, "\t")).policy.to_dict()


def test_what_is_given_is_not_looked_for(tmp_path: Path) -> None:
    file = csv_file(tmp_path / "table.csv", table_with({"age": choice("30 40 NA"), "c": choice("? x")}), ";")
    found = sfumato.propose_policy(file, input={"nulls": ["", "x"]})
    assert found.policy.input.nulls == ("", "x")
    assert found.policy.columns["age"].type == "categorical"
    with pytest.raises(sfumato.PolicyError, match="unknown key 'null'"):
        sfumato.propose_policy(file, input={"null": [""]})


def test_the_decimal_comma_is_found_unless_something_speaks_against_it(tmp_path: Path) -> None:
    comma = table_with(
        {"latitude": lambda chance, _: f"{chance.uniform(1, 9):.2f}".replace(".", ","), "b": whole(0, 9)}
    )
    found = sfumato.propose_policy(csv_file(tmp_path / "a.csv", comma, ";"))
    assert found.policy.input.decimal == ","
    assert found.policy.columns["latitude"].type == "numeric"
    found = sfumato.propose_policy(csv_file(tmp_path / "b.csv", comma, ","))
    assert found.policy.input.decimal == "."
    assert "the comma also separates the cells" in found.remarks[0]
    both = comma.append_column("c", pa.array([f"{row}.5" for row in range(RECORDS)]))
    found = sfumato.propose_policy(csv_file(tmp_path / "c.csv", both, ";"))
    assert found.policy.input.decimal == "."
    assert "others have a decimal point" in found.remarks[0]
    thousands = table_with({"pay": lambda chance, _: f"{chance.randrange(1000, 9999):,}", "b": whole(0, 9)})
    found = sfumato.propose_policy(csv_file(tmp_path / "d.csv", thousands, ";"))
    assert found.policy.input.decimal == "."
    assert "may separate thousands" in found.remarks[0]


@pytest.mark.parametrize(
    ("form", "remark"),
    [
        ("%d.%m.%Y", None), ("%m/%d/%Y", None), ("%d/%m/%Y", None), ("%d-%b-%Y", None), ("%d.%m.%Y %H:%M", None),
        ("%d.%m.%y", "two digits"),
    ],
)  # fmt: skip
def test_the_form_of_dates_is_found(form: str, remark: str | None, tmp_path: Path) -> None:
    file = csv_file(tmp_path / "table.csv", table_with({"visit": day(2010, 2024, form), "c": whole(0, 9)}))
    found = sfumato.propose_policy(file)
    assert found.policy.input.date_format == form
    assert found.policy.columns["visit"].type == "date"
    assert [remark in text for text in found.remarks] == ([] if remark is None else [True])
    assert sfumato.anonymize(file, decided(found, IDENTIFIER)).audit.holds


def test_dates_that_can_be_read_in_two_ways_are_said_to_be(tmp_path: Path) -> None:
    table = table_with({"visit": lambda chance, _: f"{chance.randrange(1, 13):02d}/{chance.randrange(1, 13):02d}/2023"})
    found = sfumato.propose_policy(csv_file(tmp_path / "table.csv", table))
    assert found.policy.input.date_format == "%d/%m/%Y"
    assert "can be read as %d/%m/%Y and as %m/%d/%Y" in found.remarks[0]


def test_dates_in_a_second_form_are_text_and_still_quasi_identifiers(tmp_path: Path) -> None:
    table = table_with({"a": day(2010, 2024), "b": day(2010, 2024), "c": day(2010, 2024, "%d.%m.%Y")})
    found = sfumato.propose_policy(csv_file(tmp_path / "table.csv", table))
    assert found.policy.input.date_format is None
    assert found.policy.columns["c"].model_dump(exclude_none=True) == {
        "role": QUASI,
        "type": "categorical",
        "weight": 1,
    }
    assert "column 'c': dates in another format than ISO 8601" in found.remarks[0]


def test_texts_for_null_are_found_where_they_can_mean_nothing_else(tmp_path: Path) -> None:
    table = table_with({"age": choice("30 41 52 NA"), "city": choice("Ulm Jena ?"), "country": choice("NA DE FR")})
    found = sfumato.propose_policy(csv_file(tmp_path / "a.csv", table))
    assert found.policy.input.nulls == ("", "?", "NA")
    assert found.policy.columns["age"].type == "numeric"
    found = sfumato.propose_policy(csv_file(tmp_path / "b.csv", table.drop_columns(["age"])))
    assert found.policy.input.nulls == ("", "?")
    assert found.remarks == ("column 'country': 'NA' is read as a value; add it to nulls if it means missing",)


def test_a_file_without_a_header_is_refused_before_its_cells_are_shown(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("eva@example.org,30\nben@example.org,40\n")
    with pytest.raises(sfumato.InputError, match="Add a header to the table") as raised:
        sfumato.propose_policy(tmp_path / "table.csv")
    assert "eva" not in str(raised.value)


def test_a_record_that_is_taken_for_the_header_is_refused_before_its_cells_are_shown(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("Zaphod,1952-03-11,m\nFord,1962-05-25,m\nTrillian,1970-01-01,w\n")
    with pytest.raises(
        sfumato.InputError, match=r"Add a header to the table, or name the line .* --header-row"
    ) as raised:
        sfumato.propose_policy(tmp_path / "table.csv")
    assert not {"Zaphod", "1952"} & set(re.split(r"[^\w]", str(raised.value)))
    # A year is a name that people give to a column.
    years = pa.table({"region": ["north", "south"], "2023": ["12", "14"], "2024": ["11", "15"]})
    assert [column.name for column in sfumato.propose_policy(years).columns] == ["region", "2023", "2024"]


def test_unreadable_and_unusable_columns_are_left_to_decide() -> None:
    table = pa.table({"list": [[1], [2]], "span": pa.array([1, 2], pa.duration("s")), "age": [30, 40]})
    found = sfumato.propose_policy(table)
    assert {name: column.role for name, column in found.policy.columns.items()} == {
        "list": DECIDE, "span": DECIDE, "age": QUASI
    }  # fmt: skip
    assert "not a single value" in found.reasons["list"]
    assert "cannot have its type" in found.reasons["span"]


# ---- sets ----


def test_the_sets_that_single_people_out_are_counted_over_candidates_only() -> None:
    table = pa.table(
        {
            "mail": [f"p{row}@example.org" for row in range(40)],
            "age": [row % 10 for row in range(40)],
            "sex": ["m", "f"] * 20,
            "c7": [row // 10 for row in range(40)],
        }
    )
    found = sfumato.propose_policy(table)
    shares = {one.columns: one.unique_share for one in found.sets}
    assert shares[("age",)] == 0
    assert shares[("age", "c7")] == 1
    assert all("mail" not in columns for columns in shares)
    assert [one.columns for one in found.dangerous(decided=False)] == [("age", "c7")]
    assert found.dangerous(decided=True) == []
    assert "#   age + c7: 100% of the records are unique" in found.to_toml().splitlines()


def test_a_wide_table_is_bounded_and_what_was_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propose, "MOST_CANDIDATES", 3)
    monkeypatch.setattr(propose, "MOST_COMPARED", 10)
    chance = random.Random(5)
    columns = {f"c{place}": [chance.randrange(4) for _ in range(50)] for place in range(6)}
    found = sfumato.propose_policy(pa.table({"sex": ["m", "f"] * 25, **columns}))
    assert len({name for one in found.sets for name in one.columns}) == 3
    assert {"sex"} < {name for one in found.sets for name in one.columns}
    assert "among 3 columns; 4 others were left out" in found.left_out[0]
    assert "was not examined" in found.left_out[1]
    assert "# Note: sets of columns were examined among 3 columns" in found.to_toml()


# ---- the file ----


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)


@given(st.lists(names, min_size=1, max_size=5, unique=True), st.integers(0, 4))
def test_the_file_is_the_policy_whatever_the_columns_are_called(columns: list[str], seed: int) -> None:
    chance = random.Random(seed)
    makes: list[Make] = [whole(0, 99), day(1990, 2020), choice("a b"), person, lambda _, row: f"k{row}"]
    table = table_with({name: chance.choice(makes) for name in columns}, 25)
    try:
        proposal = sfumato.propose_policy(table)
    except sfumato.InputError:
        return  # a name that looks like an identifier
    assert Policy.from_dict(tomllib.loads(proposal.to_toml())) == proposal.policy


def test_a_name_cannot_break_out_of_a_comment() -> None:
    name = 'age\n[privacy]\nk = 1\u202e"'
    proposal = sfumato.propose_policy(pa.table({name: list(range(30)), "sex": ["m", "f"] * 15}))
    text = proposal.to_toml()
    assert tomllib.loads(text)["privacy"] == {}
    assert not any("\u202e" in line for line in text.splitlines() if line.startswith("#"))


def test_no_value_of_a_cell_is_shown_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = ["zz", "qq", "43217", "1977-03"]
    table = table_with(
        {
            "name": lambda _, row: f"zz{'abcdefghij'[row % 10]} zz{'klmnopqrst'[row // 30]}",
            "note": lambda _, row: f"qq{row % 9}",
            "zip": lambda _, row: f"{43217 + row % 3}",
            "born": lambda _, row: f"1977-03-{1 + row % 9:02d}",
            "pay": lambda _, row: f"43217{row % 40:02d}",
        }
    )
    file = csv_file(tmp_path / "table.csv", table)
    proposal = sfumato.propose_policy(file)
    assert main(["policy", str(file), "-o", str(tmp_path / "p.toml")]) == 0
    assert main(["policy", str(file), "--json"]) == 0
    printed = capsys.readouterr()
    texts = [printed.out, printed.err, (tmp_path / "p.toml").read_text(), proposal.to_toml(), repr(proposal)]
    assert not [cell for cell in cells for text in texts if cell in text]


# ---- the command ----


def test_the_command_writes_a_policy_and_never_over_one_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv_file(Path("people.csv"), people(), ";")
    assert main(["policy", "people.csv"]) == 0
    shown = capsys.readouterr().out
    assert "300 records, 8 columns; check this proposal" in shown
    assert "nothing was written" in shown
    assert "sfumato policy people.csv -o people.policy.toml" in shown
    assert sorted(path.name for path in Path().iterdir()) == ["people.csv"]
    assert main(["policy", "people.csv", "-o", "p.toml", "-k", "7"]) == 0
    assert Policy.load("p.toml").privacy.k == 7
    assert Policy.load("p.toml").input.separator == ";"
    assert main(["policy", "people.csv", "-o", "p.toml"]) == 2
    assert "p.toml exists. Name another file for the policy, or add --force" in capsys.readouterr().err
    assert Policy.load("p.toml").privacy.k == 7
    assert main(["policy", "people.csv", "-o", "p.toml", "--force"]) == 0
    assert Policy.load("p.toml").privacy.k is None
    assert main(["anonymize", "people.csv", "--policy", "p.toml", "-o", "r.csv", "-k", "5"]) == 2
    assert "still to decide" in capsys.readouterr().err
    assert main(["risk", "people.csv", "--policy", "p.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counted"] == "persons"


def test_the_json_of_the_command_holds_the_policy_with_its_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = csv_file(tmp_path / "people.csv", people())
    assert main(["policy", str(file), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    proposal = sfumato.propose_policy(file)
    assert Policy.from_dict(content["policy"]) == proposal.policy
    assert {one["name"]: one["reason"] for one in content["columns"]} == proposal.reasons
    assert content["undecided"] == ["diagnosis", "score"]
    assert [tuple(one["columns"]) for one in content["sets"]] == [one.columns for one in proposal.sets]
    assert content["file"] is None


@pytest.mark.parametrize(
    ("content", "says"),
    [("", "is empty"), ("a,b\n", "no records"), ("a,b\n1\n2,3\n", "1 fields"), (None, "does not exist")],
)
def test_a_file_that_cannot_be_read_is_exit_4(
    content: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "table.csv"
    if content is not None:
        file.write_text(content)
    assert main(["policy", str(file), "-o", str(tmp_path / "p.toml")]) == 4
    assert says in capsys.readouterr().err
    assert not (tmp_path / "p.toml").exists()
