"""The workload of a policy: how it is written, what is refused, and how a release is measured for it."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

import sfumato
from sfumato.cli import main
from sfumato.methods.coded_workload import cells_of
from sfumato.policy import Policy, merge_flags
from sfumato.policy.workload import Selection, SelectionCondition, comparisons_of
from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain
from sfumato.tables.coding.selections import SelectionBoxes
from sfumato.taxonomies.derived_taxonomies import prefix

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

ROWS = 120
PEOPLE = pa.table(
    {
        "age": pa.array([None if row % 31 == 0 else 20 + row * 7 % 53 for row in range(ROWS)], pa.int64()),
        "sex": ["Male" if row % 3 else "Female" for row in range(ROWS)],
        "born": pa.array([f"19{50 + row % 40}-0{1 + row % 9}-11" for row in range(ROWS)]).cast(pa.date32()),
        "income": ["high" if row * 7 % 53 > 30 and row % 3 else "low" for row in range(ROWS)],
        "hours": [float(row * 7 % 53) + row % 2 / 2 for row in range(ROWS)],
        "name": [f"n{row}" for row in range(ROWS)],
    }
)
COLUMNS = {
    "age": {"role": "quasi-identifier"},
    "sex": {"role": "quasi-identifier"},
    "born": {"role": "quasi-identifier"},
    "income": {"role": "sensitive"},
    "hours": {"role": "other"},
    "name": {"role": "identifier"},
}


def policy_with(**workload: Any) -> Policy:
    return Policy.from_dict(
        {"columns": COLUMNS, "accept_linkable": ["hours"], "privacy": {"k": 6}, "workload": workload}
    )


def message_of(act: Any) -> str:
    with pytest.raises(sfumato.UsageError) as caught:
        act()
    return str(caught.value)


# ---- predicates ----


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("age > 40", [("age", ">", "40")]),
        ("age>40 and sex='Male'", [("age", ">", "40"), ("sex", "=", "Male")]),
        ("age >= -4.5 AND age<=1e3", [("age", ">=", "-4.5"), ("age", "<=", "1e3")]),
        ("age between 20 and 30 and sex == Male", [("age", ">=", "20"), ("age", "<=", "30"), ("sex", "=", "Male")]),
        ("born < 2001-02-03", [("born", "<", "2001-02-03")]),
        ("\"marital status\" = 'and > or'", [("marital status", "=", "and > or")]),
        ("\"a\"\"b\" = 'it''s'", [('a"b', "=", "it's")]),
        ("città = ''", [("città", "=", "")]),
    ],
)
def test_a_predicate_is_comparisons_joined_by_and(where: str, expected: list[tuple[Any, Any, Any]]) -> None:
    assert comparisons_of(where) == tuple(SelectionCondition(*one) for one in expected)


@pytest.mark.parametrize(
    "where",
    [
        "", "age", "age >", "age ! 4", "age != 4", "age > 40 or sex = 'Male'", "age > 40 and", "age in (1, 2)", "> 4",
        "not age > 4", "age > 4 4", "age = 'open", "(age > 4)", "age > 40 andsex = 'Male'", "1 < age",
    ],
)  # fmt: skip
def test_what_is_no_predicate_is_refused_with_an_example(where: str) -> None:
    with pytest.raises(ValueError, match="must be comparisons joined by and, such as age > 40 and sex = 'Male'"):
        comparisons_of(where)


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)


@pytest.mark.not_quick
@given(st.lists(st.tuples(TEXT, st.sampled_from(["=", "<", "<=", ">", ">="]), TEXT), min_size=1, max_size=4))
def test_any_name_and_value_can_be_quoted(conditions: list[tuple[str, Any, str]]) -> None:
    where = " and ".join(
        "\"{}\" {} '{}'".format(column.replace('"', '""'), operator, value.replace("'", "''"))
        for column, operator, value in conditions
    )
    assert comparisons_of(where) == tuple(SelectionCondition(*one) for one in conditions)


# ---- boxes of codes ----


@given(
    values=st.lists(st.integers(-9, 9), min_size=1, unique=True),
    null=st.booleans(),
    bounds=st.lists(st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), st.integers(-20, 20)), max_size=3),
)
def test_a_box_of_numbers_holds_what_the_predicate_is_true_of(
    values: list[int], null: bool, bounds: list[tuple[str, int]]
) -> None:
    domain = NumericDomain("n", np.array(sorted(values)) / 2, null)
    where = " and ".join(f"n {operator} {bound / 2}" for operator, bound in [*bounds, (">", -99)])
    box = SelectionBoxes.of([Selection(where=where)], [domain])
    meant = {"=": float.__eq__, "<": float.__lt__, "<=": float.__le__, ">": float.__gt__, ">=": float.__ge__}
    for code in range(domain.size):
        null_code = null and code == domain.size - 1
        true = not null_code and all(meant[op](float(domain.values[code]), bound / 2) for op, bound in bounds)
        assert bool(box.holds(0, np.array([[code]]))[0]) == true


def test_a_box_of_categories_is_a_value_or_a_group() -> None:
    domains = [
        CategoricalDomain("g", prefix(["aa", "ab", "ba"], [1], "g"), True),
        NumericDomain("n", np.arange(3), False),
    ]
    selections = [Selection(where="g = 'aa'"), Selection(where="g = 'a*'"), Selection(where="g = 'zz'", weight=2)]
    labels = domains[0].taxonomy.labels
    group = next(label for label in labels if label.startswith("a") and label not in ("aa", "ab"))
    selections[1] = Selection(where=f"g = '{group}' and n >= 1")
    boxes = SelectionBoxes.of(selections, domains)
    assert boxes.low.tolist()[:2] == [[0, 0], [0, 1]]
    assert boxes.high.tolist()[:2] == [[0, 2], [1, 2]]
    assert not boxes.holds(2, np.array([[code, 0] for code in range(4)])).any()
    assert boxes.weights.tolist() == [1.0, 1.0, 2.0]


def test_comparisons_that_a_column_cannot_make_are_refused() -> None:
    told = message_of(lambda: sfumato.anonymize(PEOPLE, policy_with(selection=[{"where": "sex > 'F'"}])))
    assert told.startswith("a selection compares the column 'sex' by >, but its values are categories.")
    told = message_of(lambda: sfumato.anonymize(PEOPLE, policy_with(selection=[{"where": "age > old"}])))
    assert told == (
        "a selection compares the column 'age' with 'old', which is not a number. Write numbers as 40 or 2.5 and dates "
        "as 2024-01-31."
    )
    with pytest.raises(sfumato.UsageError, match="which is not a date"):
        sfumato.anonymize(PEOPLE, policy_with(selection=[{"where": "born > 40"}]))


def test_a_selection_without_a_record_is_told() -> None:
    release = sfumato.anonymize(PEOPLE, policy_with(selection=[{"where": "sex = 'Male'"}, {"where": "age > 99"}]))
    assert [text for text in release.warnings if "selected" in text] == [
        "no record of this table is selected by 'age > 99'"
    ]


# ---- the policy ----


def test_a_workload_is_written_and_read_again(tmp_path: Path) -> None:
    policy = policy_with(
        classification=[{"target": "income", "weight": 2}],
        regression=[{"target": "hours"}],
        selection=[{"where": "age > 40 and sex = 'Male'"}],
    )
    policy.save(tmp_path / "p.toml")
    again = Policy.load(tmp_path / "p.toml")
    assert again == policy
    assert again.workload.classification[0].weight == 2.0
    assert again.workload.predicted == ("income", "hours")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[[workload.classification]]\ntarget = "age"', "line 9: the workload names the column 'age'"),
        ('[[workload.regression]]\ntarget = "name"', "line 9: the workload names the column 'name'"),
        ('[[workload.classification]]\ntarget = "x"\nweight = 0', "line 10: workload.classification.0.weight must be"),
        ('[[workload.classification]]\nweight = 1', "workload.classification.0.target is missing"),
        ('[[workload.selection]]\nwhere = "age"', "line 9: workload.selection.0.where must be comparisons"),
        ('[[workload.selection]]\nwhere = "hours > 3"', "line 9: a selection compares the column 'hours', which"),
        ('[workload]\nfeatures = ["hours"]', "line 9: the workload has features but nothing to predict."),
        ('[workload]\ntargets = ["income", "income"]', "line 9: the workload names the column 'income' twice."),
        ('[workload]\ntargets = "income"', "line 9: workload.targets must be a list of strings"),
        ('[workload]\ngoals = 1', "line 9: unknown key 'goals' in [workload]. Available: 'classification'"),
        ('[workload]\nselection = 1', "line 9: workload.selection must be a list of tables, each under"),
        ('[method]\nleast_gain = -1', "line 9: method.least_gain must be a finite number above 0"),
    ],
)  # fmt: skip
def test_a_wrong_workload_names_the_line(tmp_path: Path, text: str, expected: str) -> None:
    head = (
        '[privacy]\nk = 5\n[columns]\nage = { role = "quasi-identifier" }\nname = { role = "identifier" }\n'
        'income = { role = "sensitive" }\nhours = { role = "other" }\n'
    )
    (tmp_path / "p.toml").write_text(head + text + "\n")
    told = message_of(lambda: Policy.load(tmp_path / "p.toml").check_complete())
    assert expected in told


def test_a_target_that_would_not_be_released_is_refused() -> None:
    policy = Policy.from_dict(
        {"other": "drop", "columns": {"age": COLUMNS["age"]}, "privacy": {"k": 5}, "workload": {"targets": ["hours"]}}
    )
    assert "'hours', which would be dropped" in message_of(policy.check_complete)
    assert "Did you mean 'income'" in message_of(lambda: sfumato.anonymize(PEOPLE, policy_with(targets=["incom"])))


def test_a_flag_names_a_target_that_becomes_a_kept_column() -> None:
    policy = merge_flags(None, quasi_identifiers=["age"], other="drop", k=5, target="hours", select="age > 40")
    assert policy.columns["hours"].role == "other"
    assert policy.workload.targets == ("hours",)
    assert [one.where for one in policy.workload.selection] == ["age > 40"]
    over = merge_flags(policy_with(classification=[{"target": "income"}]), target=["hours"])
    assert over.workload.predicted == ("hours",)


@pytest.mark.not_quick
@pytest.mark.parametrize(
    ("method", "needed"),
    [
        ("mondrian:information-gain", "a column of classes to predict, but the workload has none. Add --target COLUMN"),
        ("mondrian:regression", "a column of numbers to predict, but the workload has none. Add --target COLUMN"),
        ("mondrian:selection", 'records to select, but the workload has none. Add --select "age > 40"'),
    ],
)
def test_a_rule_without_its_workload_says_what_to_add(method: str, needed: str) -> None:
    told = message_of(lambda: sfumato.anonymize(PEOPLE, policy_with(), method=method))
    assert told.startswith(f"{method} needs {needed}")
    assert method not in [row["method"] for row in sfumato.compare(PEOPLE, policy_with()).rows]


def test_a_rule_that_is_asked_for_says_what_a_target_is() -> None:
    for method, task in (("mondrian:information-gain", "classification"), ("mondrian:regression", "regression")):
        release = sfumato.anonymize(PEOPLE, policy_with(targets=["hours"]), method=method)
        assert [one.task for one in release.losses.tasks] == [task]
    with pytest.raises(sfumato.UsageError, match="'income' cannot be predicted as a number: some of its values"):
        sfumato.anonymize(PEOPLE, policy_with(targets=["income"]), method="mondrian:regression")
    with pytest.raises(sfumato.UsageError, match="'income' cannot be predicted as a number: some of its values"):
        sfumato.anonymize(PEOPLE, policy_with(regression=[{"target": "income"}]))


def test_methods_are_compared_and_traced_under_a_workload() -> None:
    policy = policy_with(classification=[{"target": "income"}], selection=[{"where": "sex = 'Male'"}])
    rows = sfumato.compare(PEOPLE, policy, methods="mondrian:median,mondrian:information-gain,mondrian:selection").rows
    assert [(row["method"], row["code"]) for row in rows] == [
        ("mondrian", 0),
        ("mondrian:information-gain", 0),
        ("mondrian:selection", 0),
    ]
    traced = sfumato.tradeoff(PEOPLE, policy, k=[3, 6], methods="mondrian:information-gain")
    assert [(step.k, step.error) for step in traced.steps] == [(3, None), (6, None)]


# ---- what is measured ----


def classes_of(release: Any) -> list[list[dict[str, Any]]]:
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in release.to_pylist():
        found.setdefault((row["age"], row["sex"], row["born"]), []).append(row)
    return list(found.values())


@pytest.mark.parametrize("method", ["mondrian", "hilbert", "auto"])
def test_measures_are_those_of_the_released_rows(method: str, tmp_path: Path) -> None:
    where = "age >= 40 and sex = 'Male'"
    policy = policy_with(
        classification=[{"target": "income"}], regression=[{"target": "hours"}], selection=[{"where": where}]
    )
    release = sfumato.anonymize(PEOPLE, policy, method=method)
    groups = classes_of(release.data)
    entropy = math.fsum(
        -count * math.log2(count / len(group))
        for group in groups
        for count in Counter(row["income"] for row in group).values()
    )
    error = math.fsum(
        (row["hours"] - math.fsum(one["hours"] for one in group) / len(group)) ** 2 for group in groups for row in group
    )
    wrong = sum(len(group) - max(Counter(row["income"] for row in group).values()) for group in groups)
    returned = sum(len(group) for group in groups if meets(group[0]))
    selected = sum(row["age"] is not None and row["age"] >= 40 and row["sex"] == "Male" for row in PEOPLE.to_pylist())
    tasks = {task.task: task.values for task in release.losses.tasks}
    assert tasks["classification"]["entropy"] == pytest.approx(entropy / ROWS)
    assert tasks["classification"]["cm"] == pytest.approx(wrong / ROWS)
    assert tasks["regression"]["wmse"] == pytest.approx(error / ROWS)
    assert tasks["regression"]["variance_of_table"] == pytest.approx(np.var(PEOPLE["hours"].to_numpy()))
    assert tasks["selection"] == {"selected": selected, "returned": returned, "imprecision": returned - selected}
    measured = sfumato.measure(PEOPLE, release.data, policy)
    assert measured.tasks == release.losses.tasks
    assert sfumato.measure(PEOPLE, release.data, policy, target="income").cm == tasks["classification"]["cm"]


def meets(row: dict[str, Any]) -> bool:
    """Whether somebody who looks for men of 40 or more has to take a released record."""
    if row["age"] is None:
        return False
    high = 99 if row["age"] == "*" else int(row["age"].strip("[]").split("..")[-1])
    return high >= 40 and row["sex"] in ("Male", "*")


def test_a_record_that_was_left_out_is_taken_by_every_selection() -> None:
    lonely = pa.concat_tables([PEOPLE, PEOPLE.slice(1, 1).set_column(0, "age", pa.array([999], pa.int64()))])
    policy = policy_with(selection=[{"where": "age < 99 and sex = 'Female'"}])
    release = sfumato.anonymize(lonely, policy, max_suppressed=0.02)
    assert release.losses.suppressed > 0
    values = release.losses.tasks[0].values
    inside = [group for group in classes_of(release.data) if group[0]["sex"] in ("Female", "*") and group[0]["age"]]
    assert values["returned"] == sum(map(len, inside)) + release.losses.suppressed


def test_null_targets_neither_help_nor_hinder() -> None:
    income = [None if row % 4 == 0 else value for row, value in enumerate(PEOPLE["income"].to_pylist())]
    hours = [None if row % 5 == 0 else value for row, value in enumerate(PEOPLE["hours"].to_pylist())]
    table = PEOPLE.set_column(3, "income", pa.array(income)).set_column(4, "hours", pa.array(hours))
    release = sfumato.anonymize(table, policy_with(targets=["income", "hours"]))
    tasks = {task.about: task for task in release.losses.tasks}
    known = Counter(value for value in income if value is not None)
    total = sum(known.values())
    whole = -math.fsum(count / total * math.log2(count / total) for count in known.values())
    assert tasks["income"].values["entropy_of_table"] == pytest.approx(whole)
    assert tasks["income"].values["entropy"] < whole
    assert tasks["hours"].task == "regression"
    nothing = PEOPLE.set_column(3, "income", pa.nulls(ROWS, pa.string()))
    empty = sfumato.anonymize(nothing, policy_with(classification=[{"target": "income"}]))
    assert empty.losses.tasks[0].values["entropy"] == 0.0
    plain = sfumato.anonymize(nothing, policy_with(), method="mondrian")
    assert empty.data.equals(plain.data)


def test_the_feature_space_is_divided_by_values_and_by_quarters() -> None:
    numbers = np.arange(40.0)
    codes = np.arange(40, dtype=np.uint32)
    cells = cells_of([(codes, numbers)])
    assert cells is not None
    assert cells.tolist() == [row // 10 for row in range(40)]
    text = np.array([0, 1, 2, 0], np.uint32)  # two values, and null
    both = cells_of([(text, np.full(2, np.nan)), (np.array([1, 1, 1, 0], np.uint32), np.array([1.0, 2.0]))])
    assert both is not None
    assert both.tolist() == [1, 2, 3, 0]
    assert cells_of([]) is None


# ---- the command line ----


def test_the_command_line_takes_targets_and_selections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    csv.write_csv(PEOPLE.drop_columns(["name", "born"]), "people.csv")
    flags = ["--quasi-identifiers", "age,sex", "--other", "drop", "-k", "5", "--accept-linkable", "hours"]
    workload = ["--target", "income,hours", "--select", "age > 40 and sex = 'Male'"]
    assert main(["anonymize", "people.csv", "-o", "out.csv", *flags, *workload]) == 0
    shown = capsys.readouterr()
    told = " ".join((shown.out + shown.err).split())
    assert "classification (inferred from its values) of 'income': conditional entropy" in told
    assert "regression (inferred from its values) of 'hours': WMSE" in told
    assert "selection age > 40 and sex = 'Male': returns" in told
    assert "method mondrian:selection" in told
    assert main(["anonymize", "people.csv", "-o", "out.csv", *flags, *workload, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert [one["task"] for one in summary["workload"]] == ["classification", "regression", "selection"]
    assert (summary["method"], summary["chosen"]) == ("auto", "mondrian:selection")
    assert main(["measure", "people.csv", "out.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["workload"] == summary["workload"]
    assert main(["anonymize", "people.csv", "-o", "out.csv", *flags, "--target", "age"]) == 2
    assert "which has the role 'quasi-identifier'" in " ".join(capsys.readouterr().err.split())
    assert main(["anonymize", "people.csv", "-o", "out.csv", *flags, "--select", "age >"]) == 2
    assert main(["anonymize", "people.csv", "-o", "out.csv", *flags, "--method", "mondrian:regression"]) == 2
    assert main(["anonymize", "people.csv", "--dry-run", *flags, *workload, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chosen"] == "mondrian:selection"


@pytest.mark.not_quick
def test_what_travels_with_a_release_has_no_count_of_the_original(tmp_path: Path) -> None:
    count = 397
    age = [20 + row % 41 for row in range(count)]
    table = pa.table({"age": age, "zip": [row % 7 for row in range(count)]})
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "k": 50, "select": "age >= 33 and zip = 3"}
    release = sfumato.anonymize(table, **asked)
    (told,) = release.summary()["workload"]
    assert 0 < told["selected"] < told["returned"] == told["selected"] + told["imprecision"]
    release.write(tmp_path / "release.csv")
    assert "workload" not in json.loads((tmp_path / "release.csv.sfumato.json").read_text("utf-8"))
    release.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert not any(word in page for word in ("imprecision", "returned", "&quot;selected&quot;", '"selected"'))
