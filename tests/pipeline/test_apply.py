"""Rules on further records: what fails is left out and counted, what is written was audited."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from recoding_tables import ASKED, people
from strategies import Diverse, diverse_cases

import sfumato
from sfumato.cli import main
from sfumato.errors import PolicyError, UnmetError, UsageError
from sfumato.policy import Policy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
Row = dict[str, Any]


def key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ASKED["quasi_identifiers"])


def test_the_table_that_was_learnt_from_gives_the_file_of_its_release(tmp_path: Path) -> None:
    pq.write_table(people(), tmp_path / "people.parquet")
    recoding = sfumato.fit(people(), **ASKED)
    recoding.write(tmp_path / "rules.json")
    sfumato.anonymize(people(), **ASKED, boxes="regions").write(tmp_path / "release.csv")
    command = ["apply", tmp_path / "rules.json", tmp_path / "people.parquet", "-o", tmp_path / "applied.csv"]
    assert main(list(map(str, command))) == 0
    assert (tmp_path / "applied.csv").read_bytes() == (tmp_path / "release.csv").read_bytes()


def test_records_of_regions_that_fail_and_records_outside_are_left_out_and_counted() -> None:
    recoding = sfumato.fit(people(), **ASKED)
    new = people(300, seed=5)
    old = pa.table({**{name: new[name] for name in new.column_names}, "age": [200, 300, *new["age"].to_pylist()[2:]]})
    release = sfumato.apply(recoding, old, max_suppressed=0.9)
    # By hand: what transform shows, without what fewer than 5 records show.
    regions = recoding.regions_of(old)
    shown = [row for row, region in zip(recoding.transform(old).to_pylist(), regions, strict=True) if region >= 0]
    sizes = Counter(map(key, shown))
    expected = Counter(tuple(row.values()) for row in shown if sizes[key(row)] >= 5)
    assert Counter(tuple(row.values()) for row in release.data.to_pylist()) == expected
    summary = release.summary()
    outside = int((regions < 0).sum())
    assert outside >= 2
    assert (summary["outside"], summary["failing"]) == (outside, len(shown) - sum(expected.values()))
    assert summary["suppressed"] == summary["outside"] + summary["failing"] == 300 - summary["released"]
    assert summary["smallest_class"] >= 5
    assert summary["regions"] == len(recoding)


def test_more_left_out_than_the_policy_allows_is_exit_1_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sfumato.fit(people(), **ASKED, max_suppressed=0.01).write(tmp_path / "rules.json")
    pq.write_table(people(100, seed=5), tmp_path / "new.parquet")
    command = ["apply", str(tmp_path / "rules.json"), str(tmp_path / "new.parquet"), "-o", str(tmp_path / "out.csv")]
    assert main(command) == 1
    complaint = capsys.readouterr().err
    assert "max_suppressed_fraction allows 1.00%" in complaint
    assert complaint.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"rules.json", "new.parquet"}
    assert main([*command, "--max-suppressed", "0.95", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["failing"] > 1
    certificate = json.loads((tmp_path / "out.csv.sfumato.json").read_text())
    assert certificate["suppressed"] == summary["suppressed"]
    assert certificate["policy"]["release"] == {"boxes": "regions", "max_suppressed_fraction": 0.95}
    assert main(["audit", str(tmp_path / "out.csv")]) == 0


def test_a_smaller_table_can_be_held_to_a_smaller_k_than_the_rules_were_learnt_with() -> None:
    recoding = sfumato.fit(people(1200), **{**ASKED, "k": 40})
    new = people(500, seed=5)
    with pytest.raises(UnmetError):
        sfumato.apply(recoding, new, max_suppressed=0.1)
    release = sfumato.apply(recoding, new, max_suppressed=0.1, k=5)
    assert 5 <= release.audit.smallest_class < 40
    assert release.policy.privacy.k == 5
    with pytest.raises(UnmetError):
        sfumato.apply(recoding, new, max_suppressed=0.1, k=5, l=4)


@pytest.mark.parametrize("column", ["weight", "ward"])
def test_tokens_of_a_column_are_null_in_a_further_table_too(column: str, tmp_path: Path) -> None:
    """The rules have a region for null, so a table in which a tenth has none is released whole."""
    path = tmp_path / "t.csv"
    cells = [(-999 if row % 10 == 3 else 40 + row % 7, "x" if row % 10 == 4 else "abc"[row % 3]) for row in range(200)]
    path.write_text("weight,ward\n" + "".join(f"{weight},{ward}\n" for weight, ward in cells))
    tokens = {"weight": ["-999"], "ward": ["x"]}[column]
    recoding = sfumato.fit(path, quasi_identifiers=[column], other="drop", k=10, column_nulls={column: tokens})
    recoding.write(tmp_path / "rules.json")
    release = sfumato.apply(tmp_path / "rules.json", path)
    assert release.summary()["outside"] == 0
    assert release.data[column].null_count == 20
    assert not {*tokens} & {*release.data[column].to_pylist()}


def test_the_columns_with_values_that_the_rules_do_not_know_are_named() -> None:
    recoding = sfumato.fit(people(), **ASKED)
    changed = {name: people()[name].to_pylist() for name in people().column_names}
    changed["age"][0], changed["sex"][1] = 200, "Atlantis"
    with pytest.raises(UnmetError, match=r"outside the domain: 2 \('age', 'sex'\)\.") as caught:
        sfumato.apply(recoding, pa.table(changed))
    assert "Atlantis" not in str(caught.value)


def test_a_table_of_which_nothing_is_left_is_refused() -> None:
    recoding = sfumato.fit(people(), **ASKED, max_suppressed=0.99)
    with pytest.raises(UnmetError, match="4 of the 4 records"):
        sfumato.apply(recoding, people(4, seed=3))


@given(diverse_cases(rows=24))
def test_what_is_released_meets_every_requirement_by_hand(
    tmp_path_factory: pytest.TempPathFactory, diverse: Diverse
) -> None:
    case, folder = diverse.case, tmp_path_factory.mktemp("case")
    settings = {**case.settings(folder), "accept_linkable": []}
    recoding = sfumato.fit(case.table, Policy.from_dict(diverse.policy), **settings)
    part = case.table.slice(case.table.num_rows // 3)
    regions = recoding.regions_of(part)
    assert (regions >= 0).all()  # all of it was there
    try:
        release = sfumato.apply(recoding, part, max_suppressed=0.999999)
    except UnmetError:
        released: list[Row] = []
    else:
        released = release.data.to_pylist()
        assert release.audit.holds
    by_class: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in recoding.transform(part).to_pylist():
        by_class[tuple(row[name] for name in case.quasi)].append(row)
    holding = [rows for rows in by_class.values() if len(rows) >= case.k and meets(rows, diverse.requirements)]
    assert len(released) == sum(map(len, holding))


def meets(rows: list[Row], requirements: list[dict[str, Any]]) -> bool:
    for asked in requirements:
        name = asked["attribute"]
        counts = Counter(row[name] for row in rows if oracle.has_value(row, name))
        if asked["kind"] == "distinct" and len(counts) < asked["l"]:
            return False
        if asked["kind"] == "frequency" and max(counts.values(), default=0) * asked["l"] > sum(counts.values()):
            return False
    return True


def test_requirements_that_compare_with_the_whole_release_are_tested_on_what_is_left() -> None:
    table = people(600, seed=4)
    recoding = sfumato.fit(table, **{**ASKED, "k": 20}, require="t-closeness(diagnosis, t=0.25)")
    new = people(500, seed=9)
    release = sfumato.apply(recoding, new, max_suppressed=0.95)
    whole = Counter(row["diagnosis"] for row in release.data.to_pylist())
    for rows in classes_of(release.data.to_pylist()).values():
        here = Counter(row["diagnosis"] for row in rows)
        distance = sum(abs(here[one] / len(rows) - whole[one] / whole.total()) for one in whole) / 2
        assert distance <= 0.25 + 1e-12
        assert len(rows) >= 20


def classes_of(rows: list[Row]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def test_persons_are_counted_where_the_rules_count_them() -> None:
    asked = {**ASKED, "identifiers": ["name", "person"], "person": "person", "k": 4}
    table = people(600).append_column("person", pa.array([row // 2 for row in range(600)]))
    recoding = sfumato.Recoding.from_json(sfumato.fit(table, **asked).to_json())
    one = people(600).append_column("person", pa.array([0] * 600))
    with pytest.raises(UnmetError, match="600 of the 600"):
        sfumato.apply(recoding, one, max_suppressed=0.9)
    assert sfumato.apply(recoding, table).audit.holds


def test_a_kept_column_that_would_undo_the_release_is_refused_here_too() -> None:
    recoding = sfumato.fit(people().drop_columns(["name"]), **{**ASKED, "identifiers": []}, other="keep")
    with pytest.raises(PolicyError, match="'name'"):
        sfumato.apply(recoding, people(300, seed=2), max_suppressed=0.9)


def test_columns_that_the_rules_do_not_know_are_refused_unless_the_policy_drops_them() -> None:
    more = people().append_column("phone", pa.array([str(row % 9) for row in range(400)]))
    with pytest.raises(PolicyError, match="no role is given for 'phone'"):
        sfumato.apply(sfumato.fit(people(), **ASKED), more)
    release = sfumato.apply(sfumato.fit(people(), **ASKED, other="drop"), more)
    assert "phone" not in release.data.column_names


def test_columns_that_nothing_is_asked_of_need_not_be_there() -> None:
    recoding = sfumato.fit(people(), **ASKED)
    assert sfumato.apply(recoding, people().drop_columns(["name"])).data.equals(sfumato.apply(recoding, people()).data)
    bare = sfumato.apply(recoding, people().drop_columns(["name", "diagnosis"]))
    assert bare.data.column_names == ASKED["quasi_identifiers"]
    diverse = sfumato.fit(people(), **ASKED, l=2)
    with pytest.raises(UsageError, match="'diagnosis', which the table does not have"):
        sfumato.apply(diverse, people().drop_columns(["diagnosis"]))


def test_rules_made_for_a_target_apply_to_records_whose_target_is_not_known() -> None:
    asked = {**ASKED, "sensitive": (), "target": "diagnosis", "k": 20}
    recoding = sfumato.Recoding.from_json(sfumato.fit(people(), **asked).to_json())
    assert recoding.method == "mondrian:information-gain"
    release = sfumato.apply(recoding, people(300, seed=6).drop_columns(["diagnosis"]), max_suppressed=0.5, k=5)
    assert release.data.column_names == ASKED["quasi_identifiers"]


def test_that_persons_released_twice_can_be_compared_is_warned_of() -> None:
    with pytest.warns(sfumato.SfumatoWarning, match="in this table and in another release"):
        sfumato.apply(sfumato.fit(people(), **ASKED), people())


def test_the_same_table_under_other_rules_is_warned_of_and_under_the_same_it_is_not(tmp_path: Path) -> None:
    first, second = sfumato.fit(people(500, seed=7), **ASKED), sfumato.fit(people(500, seed=8), **ASKED)
    new = people(450, seed=21)
    before = "this table was released 1 time before under another policy"
    sfumato.apply(first, new, max_suppressed=0.9).write(tmp_path / "a.csv")
    assert not any(before in text for text in sfumato.apply(first, new, max_suppressed=0.9).warnings)
    assert any(before in text for text in sfumato.apply(second, new, max_suppressed=0.9).warnings)


def test_a_frame_gives_the_same_kind_of_frame(frame_kind: Any) -> None:
    recoding = sfumato.fit(people(), **ASKED)
    data = sfumato.apply(recoding, frame_kind.make(people())).data
    assert type(data) is type(frame_kind.make(people()))
    assert frame_kind.read(data).num_rows == 400


# ---- the command line ----


def csv_of(table: pa.Table, path: Path) -> Path:
    pyarrow.csv.write_csv(table, path)
    return path


FLAGS = [
    *("--quasi-identifiers", "age,weight,born,zip,sex", "--identifiers", "name", "--sensitive", "diagnosis", "-k", "5"),
    *("--type", "zip=categorical"),
]


def test_fit_writes_rules_and_a_query_and_says_what_is_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = csv_of(people(), tmp_path / "people.csv")
    rules, query = tmp_path / "rules.json", tmp_path / "rules.sql"
    command = ["fit", str(table), "-o", str(rules), "--sql", str(query), "--table", "patients", *FLAGS]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "regions over age, weight, born, zip, sex, learnt by mondrian" in told
    assert f"sfumato apply {rules} NEW -o RELEASE" in told
    assert 'FROM "patients"' in query.read_text()
    assert rules.stat().st_mode & 0o777 == query.stat().st_mode & 0o777 == 0o600
    assert main([*command, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["regions"] == len(sfumato.Recoding.load(rules))
    assert summary["chosen"] == "mondrian"


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda flags: [*flags, "--method", "hilbert"], "hilbert has no regions"),
        (lambda flags: [*flags, "--sql", "x.sql", "--dialect", "oracle"], "unknown dialect"),
        (lambda flags: [*flags, "--sql", "rules.json"], "the same name"),
        (lambda flags: flags[2:8], "no column is a quasi-identifier"),
    ],
)
def test_wrong_use_of_fit_is_told_before_any_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[list[str]], list[str]],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    csv_of(people(), tmp_path / "people.csv")
    assert main(["fit", "people.csv", "-o", "rules.json", *change(FLAGS)]) == 2
    assert says in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv"}


def test_apply_reads_text_as_its_flags_say(tmp_path: Path) -> None:
    table = csv_of(people(), tmp_path / "people.csv")
    assert main(["fit", str(table), "-o", str(tmp_path / "rules.json"), *FLAGS]) == 0
    options = pyarrow.csv.WriteOptions(delimiter=";")
    pyarrow.csv.write_csv(people(), tmp_path / "other.csv", options)
    command = ["apply", str(tmp_path / "rules.json"), str(tmp_path / "other.csv"), "-o", str(tmp_path / "out.csv")]
    assert main(command) == 2
    assert main([*command, "--separator", ";"]) == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 401


def test_the_output_is_neither_the_input_nor_the_rules(tmp_path: Path) -> None:
    table = csv_of(people(), tmp_path / "people.csv")
    rules = str(tmp_path / "rules.csv")
    assert main(["fit", str(table), "-o", rules, *FLAGS]) == 0
    for output in (str(table), rules):
        assert main(["apply", rules, str(table), "-o", output]) == 2
    assert main(["fit", str(table), "-o", str(table), *FLAGS]) == 2
