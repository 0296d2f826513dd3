"""The risk of re-identification, before and after anonymization, against plain counting."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.cli import main
from sfumato.evaluation.risk import exposure
from sfumato.policy import Policy

Row = tuple[object, ...]
BOUNDS = {"unique": 2, "below_3": 3, "below_5": 5, "below_10": 10}


def in_small_classes(rows: list[Row], places: tuple[int, ...], persons: list[int] | None = None) -> dict[str, int]:
    """Records in classes of fewer than 2, 3, 5 and 10 records, or persons."""
    records = Counter(tuple(row[place] for place in places) for row in rows)
    sizes: dict[Row, int] = dict(records)
    if persons is not None:
        members = defaultdict(set)
        for row, person in zip(rows, persons, strict=True):
            members[tuple(row[place] for place in places)].add(person)
        sizes = {shown: len(one) for shown, one in members.items()}
    return {name: sum(records[one] for one in records if sizes[one] < bound) for name, bound in BOUNDS.items()}


def table_of(rows: list[Row], **more: list[Any]) -> pa.Table:
    columns = {name: [row[place] for row in rows] for place, name in enumerate("abcd"[: len(rows[0])])}
    return pa.table({**{name: pa.array(values, pa.string()) for name, values in columns.items()}, **more})


values = st.sampled_from(["x", "y", "z", None])
tables = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[values] * width), min_size=1, max_size=40))


@given(tables)
def test_small_classes_are_counted_for_every_set_of_columns(rows: list[Row]) -> None:
    names = "abcd"[: len(rows[0])]
    found = sfumato.risk(table_of(rows), quasi_identifiers=list(names)).as_dict()
    wanted = {
        chosen: in_small_classes(rows, tuple(map(names.index, chosen)))
        for size in range(1, min(3, len(names)) + 1)
        for chosen in combinations(names, size)
    }
    sets = {tuple(one.pop("columns")): one for one in found["sets"]}  # type: ignore[attr-defined]
    assert {name: {key: one[key] for key in BOUNDS} for name, one in sets.items()} == wanted
    assert {key: found[key] for key in BOUNDS} == in_small_classes(rows, tuple(range(len(names))))
    assert found["left_out"] == []


@given(tables)
def test_prosecutor_and_marketer_risk_are_what_counting_gives(rows: list[Row]) -> None:
    sizes = Counter(rows)
    found = sfumato.risk(table_of(rows), quasi_identifiers=list("abcd"[: len(rows[0])]))
    assert found.prosecutor.highest == 1 / min(sizes.values())
    assert found.prosecutor.mean == pytest.approx(len(sizes) / len(rows), rel=1e-12)
    assert found.marketer == found.prosecutor.mean
    assert found.journalist is None
    assert (found.whole.classes, found.smallest_class) == (len(sizes), min(sizes.values()))


def test_the_repr_of_a_risk_is_one_line_without_values() -> None:
    found = sfumato.risk(pa.table({"a": ["secret", "secret", "hidden"]}), quasi_identifiers=["a"])
    assert repr(found) == "<Risk: 3 records, 1 unique, smallest class 1, highest prosecutor risk 1>"
    assert repr(exposure.Exposures(found.sets)) == "<Exposures: 1 sets of columns>"


@given(tables, st.integers(0, 60))
def test_a_population_of_known_size_lowers_the_risk_by_the_sampling_fraction(rows: list[Row], more: int) -> None:
    names = list("abcd"[: len(rows[0])])
    fraction = Fraction(len(rows), len(rows) + more)
    sizes = Counter(rows)
    by_size = sfumato.risk(table_of(rows), quasi_identifiers=names, population=len(rows) + more)
    by_share = sfumato.risk(table_of(rows), quasi_identifiers=names, sampling_fraction=float(fraction))
    for found in (by_size, by_share):
        assert found.journalist is not None
        assert found.journalist.highest == pytest.approx(float(fraction / min(sizes.values())), rel=1e-12)
        assert found.journalist.mean == pytest.approx(float(fraction * len(sizes) / len(rows)), rel=1e-12)
        assert found.marketer == found.journalist.mean
        assert found.prosecutor.highest == 1 / min(sizes.values())


@given(tables, st.data())
def test_a_table_of_the_population_is_counted_class_by_class(rows: list[Row], data: st.DataObject) -> None:
    names = list("abcd"[: len(rows[0])])
    population = rows + data.draw(st.lists(st.tuples(*[values] * len(names)), max_size=40))
    inside, outside = Counter(rows), Counter(population)
    found = sfumato.risk(table_of(rows), quasi_identifiers=names, population=table_of(population))
    assert found.journalist is not None
    assert found.journalist.highest == pytest.approx(1 / min(outside[one] for one in inside), rel=1e-12)
    mean = sum(Fraction(count, outside[one]) for one, count in inside.items()) / len(rows)
    assert found.journalist.mean == pytest.approx(float(mean), rel=1e-12)
    assert found.remarks == ()


@given(st.lists(st.tuples(values, values, st.integers(0, 4)), min_size=1, max_size=30))
def test_with_a_person_key_persons_are_counted(rows: list[tuple[Any, Any, int]]) -> None:
    persons = [row[2] for row in rows]
    found = sfumato.risk(
        table_of([row[:2] for row in rows], person=persons), quasi_identifiers=["a", "b"], person="person"
    )
    sizes: dict[Row, set[int]] = defaultdict(set)
    for a, b, person in rows:
        sizes[a, b].add(person)
    assert found.counted == "persons"
    assert found.whole.counts() == in_small_classes([row[:2] for row in rows], (0, 1), persons)
    assert found.sets[-1].counts() == in_small_classes(
        [row[:2] for row in rows], tuple("ab".index(name) for name in found.sets[-1].columns), persons
    )
    assert found.prosecutor.highest == 1 / min(map(len, sizes.values()))
    mean = sum(Fraction(1, len(sizes[a, b])) for a, b, _ in rows) / len(rows)
    assert found.prosecutor.mean == pytest.approx(float(mean), rel=1e-12)


def test_a_population_of_persons_is_compared_with_the_persons_of_the_table() -> None:
    table = pa.table({"a": ["x", "x", "x", "y"], "person": [1, 1, 2, 2]})
    found = sfumato.risk(table, quasi_identifiers=["a"], person="person", population=20)
    assert found.journalist is not None
    assert found.journalist.highest == pytest.approx(2 / 20)  # y has one of the two persons


def test_an_empty_person_key_is_an_error_with_its_count() -> None:
    table = pa.table({"a": ["x", "x"], "person": [1, None]})
    with pytest.raises(sfumato.InputError, match="'person' is empty in 1 records"):
        sfumato.risk(table, quasi_identifiers=["a"], person="person")


def test_a_class_that_the_population_lacks_counts_as_large_as_in_the_table() -> None:
    table = pa.table({"a": ["x", "x", "y"]})
    found = sfumato.risk(table, quasi_identifiers=["a"], population=pa.table({"a": ["y", "y", "y", "y", "z"]}))
    assert found.journalist is not None
    assert found.journalist.highest == 1 / 2
    assert found.journalist.mean == pytest.approx((2 / 2 + 1 / 4) / 3)
    assert found.remarks == (
        "1 classes, 2 records, are larger in the table than in the population: they count as large as in the table",
    )


def test_a_population_of_another_type_and_with_other_nulls_is_compared_as_text(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("age,city\n30,?\n30,\n41,x\n")
    population = pa.table({"age": [30, 30, 30, 41, 41], "city": [None, None, None, "x", "x"]})
    found = sfumato.risk(
        tmp_path / "table.csv", quasi_identifiers=["age", "city"], input={"nulls": ["", "?"]}, population=population
    )
    assert (found.whole.classes, found.whole.unique) == (2, 1)
    assert found.journalist is not None
    assert found.journalist.highest == 1 / 2
    assert found.journalist.mean == pytest.approx((2 / 3 + 1 / 2) / 3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"population": 0}, "at least 1"),
        ({"population": 2}, "the population is 2, but the table has 3"),
        ({"sampling_fraction": 0.0}, "above 0 and at most 1"),
        ({"sampling_fraction": 1.5}, "above 0 and at most 1"),
        ({"sampling_fraction": float("nan")}, "above 0 and at most 1"),
        ({"sampling_fraction": 0.5, "population": 9}, "given twice"),
        ({"largest_set": 0}, "at least 1 column"),
        ({"population": pa.table({"b": ["x"]})}, "'a'"),
        ({"population": pa.table({"a": ["q"]})}, "no record of the population has the quasi-identifiers"),
        ({"quasi_identifiers": ["z"]}, "'z', which the table does not have"),
        ({"quasi_identifiers": []}, "nothing says which columns"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(sfumato.UsageError, match=says):
        sfumato.risk(pa.table({"a": ["x", "x", "y"]}), **{"quasi_identifiers": ["a"], **arguments})


def test_a_release_is_read_by_its_certificate_and_its_risk_is_that_of_k(tmp_path: Path) -> None:
    ages = [20 + number * 7 % 40 for number in range(60)]
    table = pa.table({"age": ages, "city": [f"c{number % 5}" for number in range(60)]})
    before = sfumato.risk(table, quasi_identifiers=["age", "city"])
    release = sfumato.anonymize(table, quasi_identifiers=["age", "city"], k=4)
    release.write(tmp_path / "release.csv")
    after = sfumato.risk(tmp_path / "release.csv")
    assert before.prosecutor.highest > after.prosecutor.highest
    assert after.prosecutor.highest == 1 / after.smallest_class
    assert after.smallest_class == release.audit.smallest_class >= 4
    assert after.marketer == pytest.approx(release.audit.classes / 60)
    assert all(one.counts()["below_3"] == 0 for one in after.sets)
    frame = sfumato.risk(release.data, release.policy)
    assert (frame.whole, frame.prosecutor) == (after.whole, after.prosecutor)


def test_a_release_with_bounds_has_the_sets_of_its_quasi_identifiers() -> None:
    table = pa.table({"age": list(range(20)), "size": list(range(20))})
    release = sfumato.anonymize(table, quasi_identifiers=["age", "size"], k=5, form="bounds")
    found = sfumato.risk(release.data, release.policy)
    assert found.smallest_class >= 5
    assert {one.columns for one in found.sets} == {("age",), ("size",), ("age", "size")}


def test_columns_to_decide_are_not_counted_and_that_is_said() -> None:
    policy = Policy.from_dict({"columns": {"a": {"role": "quasi-identifier"}, "b": {"role": "decide"}}})
    found = sfumato.risk(pa.table({"a": ["x", "y"], "b": ["x", "y"]}), policy)
    assert found.whole.columns == ("a",)
    assert "1 columns are still to decide" in found.remarks[0]


def test_a_release_that_does_not_say_whose_its_records_are_says_so() -> None:
    policy = {"columns": {"a": {"role": "quasi-identifier"}, "p": {"role": "identifier"}}, "privacy": {"person": "p"}}
    found = sfumato.risk(pa.table({"a": ["x", "y"]}), Policy.from_dict(policy))
    assert found.counted == "records"
    assert "records were counted, not persons" in found.remarks[0]


def test_too_many_sets_are_bounded_and_what_is_left_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposure, "MOST_SETS", 10)
    # a tells most apart, then b, c, d and e.
    table = pa.table(
        {name: [row % width for row in range(60)] for name, width in zip("abcde", (20, 16, 12, 8, 4), strict=True)}
    )
    found = sfumato.risk(table, quasi_identifiers=list("abcde"))
    assert {one.columns for one in found.sets if len(one.columns) == 2} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert {one.columns for one in found.sets if len(one.columns) == 3} == {("a", "b", "c")}
    assert found.left_out == (
        "sets of 2 columns were looked at among 3 of 5, without 'd', 'e'",
        "sets of 3 columns were looked at among 3 of 5, without 'd', 'e'",
    )
    monkeypatch.setattr(exposure, "MOST_SETS", 5)
    assert sfumato.risk(table, quasi_identifiers=list("abcde")).left_out == (
        "no set of 2 columns was looked at: there are too many records",
    )


def test_the_most_dangerous_sets_come_first_and_of_equals_the_smaller() -> None:
    table = pa.table({"id": list(range(9)), "two": [0, 1] * 4 + [0], "one": [0] * 9})
    found = sfumato.risk(table, quasi_identifiers=["one", "two", "id"])
    assert [one.columns for one in found.sets][:2] == [("id",), ("one", "id")]
    assert found.sets[-1].columns == ("one",)
    assert [one.columns for one in exposure.more_revealing_sets(found.sets)] == [("id",), ("two",), ("one",)]


def test_the_command_prints_json_without_a_value_of_a_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "table.csv"
    file.write_text("age,city\n" + "".join(f"zz{row % 7}zz,qq{row % 3}qq\n" for row in range(42)) + "zzonezz,qq0qq\n")
    arguments = ["risk", str(file), "--quasi-identifiers", "age,city", "--population", "430", "--largest-set", "1"]
    assert main([*arguments, "--json"]) == 0
    printed = capsys.readouterr()
    content = json.loads(printed.out)
    assert (content["unique"], content["below_3"], content["records"]) == (1, 43, 43)
    assert content["journalist"]["highest"] == pytest.approx(0.1)
    assert [one["columns"] for one in content["sets"]] == [["age"], ["city"]]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "43 records in 22 classes by 2 quasi-identifiers, the smallest of 1" in shown.out
    assert not any(cell in text for cell in ("zz", "qq") for text in (*printed, *shown))


def test_the_command_takes_a_file_as_population(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "table.csv").write_text("age\n30\n40\n")
    (tmp_path / "all.csv").write_text("age\n30\n30\n40\n40\n40\n")
    files = [str(tmp_path / name) for name in ("table.csv", "all.csv")]
    assert main(["risk", files[0], "--quasi-identifiers", "age", "--population", files[1], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["journalist"]["highest"] == 0.5
    assert found["marketer"] == pytest.approx((1 / 2 + 1 / 3) / 2)


@pytest.mark.parametrize("asked", [["--population", "11610"], ["--sampling-fraction", "0.000861326"]])
def test_an_estimated_population_never_comes_without_its_caveat(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every record is unique in the table, so each of them may be unique in the population."""
    (tmp_path / "table.csv").write_text("age\n" + "".join(f"{age}\n" for age in range(30, 40)))
    arguments = ["risk", str(tmp_path / "table.csv"), "--quasi-identifiers", "age", *asked]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["journalist"]["highest"] == pytest.approx(1 / 1161, rel=1e-3)
    assert found["sampling_fraction"] == pytest.approx(1 / 1161, rel=1e-3)
    for words in (
        "averages",
        "the table is an even sample of the population",
        "on average 1,161 persons of the population stand behind one of the records",
        "A record that is unique in the population has a risk of 100%",
        "how many such records there are is not estimated",
    ):
        assert words in found["caveat"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if line.strip().startswith("journalist"))
    assert "1 in 1,161" in line
    assert "(see caveat)" in line
    assert f"caveat {' '.join(found['caveat'].split())}" in " ".join(shown.split())


def test_no_caveat_is_needed_where_nothing_is_estimated() -> None:
    table = pa.table({"age": [30, 30, 40]})
    for asked in ({}, {"population": pa.table({"age": [30] * 4 + [40] * 2})}, {"population": 3}):
        assert sfumato.risk(table, quasi_identifiers=["age"], **asked).caveat is None


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["table.csv"], 2, "nothing says which columns are quasi-identifiers"),
        (["none.csv", "--quasi-identifiers", "age"], 4, "does not exist"),
        (["table.csv", "--quasi-identifiers", "age", "--population", "none.csv"], 4, "does not exist"),
        (["table.csv", "--quasi-identifiers", "age", "--population", "9" * 30], 2, "too many digits"),
        (["table.csv", "--quasi-identifiers", "age", "--population", "9", "--sampling-fraction", "1"], 2, "twice"),
    ],
)
def test_wrong_use_of_the_command_has_its_exit_code(
    arguments: list[str], code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("age\n30\n40\n")
    assert main(["risk", *arguments]) == code
    assert says in capsys.readouterr().err
