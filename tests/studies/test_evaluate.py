"""Learning from releases: the protocol, what is reported, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle_learning as oracle
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from numpy.typing import NDArray

import sfumato
from sfumato.cli import main
from sfumato.errors import UsageError
from sfumato.evaluation.learning.learning_study import Study
from sfumato.evaluation.learning.results import ORIGINAL, Result, best_of, comparisons, figure_text, with_reach
from sfumato.pipeline.prepare import read_table
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.report.learning import chance
from sfumato.studies.cross_validation import CrossValidation

pytestmark = [pytest.mark.compiled, pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")]

COUNT = 600
DRAWN = np.random.default_rng(7)
AGE, PAY = DRAWN.integers(20, 80, COUNT), DRAWN.integers(0, 1000, COUNT)
CITY, SPOT = DRAWN.integers(0, 6, COUNT), DRAWN.integers(0, 50, COUNT)
PEOPLE = pa.table(
    {
        "age": AGE,
        "pay": PAY,
        "city": [f"c{number}" for number in CITY],
        "buys": np.where((AGE > 45) == (PAY > 400), "yes", "no").tolist(),
        "spends": (PAY * 2 + AGE).astype(float),
        "member": [f"m{number % 3}" for number in range(COUNT)],
        "patient": [f"p{number // 3}" for number in range(COUNT)],
    }
)
ROLES: dict[str, Any] = {"quasi_identifiers": ["age", "pay", "city"], "other": "drop", "k": 15}
CLASSES = {**ROLES, "target": "buys"}


def lesson_of(table: pa.Table = PEOPLE, **flags: Any) -> CrossValidation:
    """The table with its folds, prepared for one method."""
    policy = merge_flags(None, **{**CLASSES, "method": "mondrian:information-gain", **flags})
    study = Study(policy=policy, folds=4, models="tree")
    lesson = CrossValidation.of(read_table(table, study.for_reading, Progress()), study)
    return lesson.under(policy)


def input_rows(lesson: CrossValidation) -> NDArray[np.uint32]:
    """The number in the input of each row of the table, which has an order of its own."""
    rows = lesson.table.encoded.input_rows
    assert rows is not None
    return rows


def values_of(found: Any, method: str, metric: str = "accuracy") -> dict[str, float]:
    return {row["model"]: row["value"] for row in found.results if (row["method"], row["metric"]) == (method, metric)}


@pytest.mark.not_quick
def test_every_model_has_a_figure_with_the_original_and_with_every_method() -> None:
    found = sfumato.evaluate(PEOPLE, **CLASSES, folds=4)
    assert repr(found) == f"<Evaluation of buys: {len(found.rows):,} results, 0 failed>"
    methods = [ORIGINAL, "mondrian:information-gain", "mondrian", "tds"]
    assert list(dict.fromkeys(row["method"] for row in found.results)) == methods
    for method in methods:
        scores = values_of(found, method)
        assert list(scores) == ["tree", "bayes", "forest", "svm"]
        assert all(0 <= score <= 1 for score in scores.values())
    assert values_of(found, ORIGINAL)["tree"] > 0.9
    assert values_of(found, "mondrian:information-gain")["tree"] > values_of(found, "mondrian")["tree"]
    for row in found.results:
        assert row["low"] <= row["value"] <= row["high"]
        assert row["value"] == pytest.approx(sum(row["folds"]) / 4)
        assert (row["k"] is None) == (row["method"] == ORIGINAL)


def test_the_same_seed_gives_the_same_figures_and_another_seed_other_folds() -> None:
    first, second, third = (
        sfumato.evaluate(PEOPLE, **CLASSES, models="tree", methods="mondrian", folds=3, seed=seed).results
        for seed in (1, 1, 2)
    )
    assert first == second
    assert [row["folds"] for row in first] != [row["folds"] for row in third]


def test_regions_do_not_depend_on_the_records_that_are_tested_on() -> None:
    lesson = lesson_of()
    training = lesson.fold != 0
    here = lesson.recoding(training)
    changed = PEOPLE.to_pydict()
    for row in input_rows(lesson)[~training].tolist():
        # Other values of the same domains, and the other class.
        changed["age"][row], changed["city"][row] = changed["age"][(row + 1) % COUNT], "c0"
        changed["buys"][row] = "no" if changed["buys"][row] == "yes" else "yes"
    other = lesson_of(pa.table(changed))
    assert (lesson.table.encoded.domains[0].size, lesson.table.encoded.domains[1].size) == (
        other.table.encoded.domains[0].size,
        other.table.encoded.domains[1].size,
    )
    trained = np.isin(input_rows(other), input_rows(lesson)[training])
    there = other.recoding(trained)
    assert here.regions.region_low.tolist() == there.regions.region_low.tolist()
    assert here.regions.region_high.tolist() == there.regions.region_high.tolist()


@pytest.mark.parametrize("method", ["mondrian", "mondrian:information-gain", "tds"])
def test_training_records_are_k_anonymous_in_what_models_are_given(method: str) -> None:
    lesson = lesson_of(method=method)
    training = lesson.fold != 1
    recoding = lesson.recoding(training)
    region = recoding.regions.regions_of(lesson.table.encoded.codes, lesson.table.encoded.domains)
    features = lesson.features(recoding, region)
    shown = Counter(map(tuple, features.numbers[training].tolist()))
    assert min(shown.values()) >= 15
    assert features.numbers.shape[1] == (3 if method == "tds" else 6)  # the target is none of them


def test_regions_are_the_numbers_that_a_recoding_gives() -> None:
    lesson = lesson_of()
    everyone = np.ones(COUNT, np.bool_)
    recoding = lesson.recoding(everyone)
    region = recoding.regions.regions_of(lesson.table.encoded.codes, lesson.table.encoded.domains)
    assert lesson.features(recoding, region).numbers.tolist() == recoding.bounds(PEOPLE)[input_rows(lesson)].tolist()
    fitted = sfumato.fit(PEOPLE, **CLASSES, method="mondrian:information-gain")
    assert recoding.bounds(PEOPLE).tolist() == fitted.bounds(PEOPLE).tolist()


def test_other_columns_that_a_learner_has_are_features_as_they_are() -> None:
    asked = Policy.from_dict({"workload": {"features": ["member"]}, "columns": {"member": {"role": "other"}}})
    policy = merge_flags(asked, **CLASSES, method="mondrian:information-gain")
    study = Study(policy=policy, folds=4, models="tree")
    lesson = CrossValidation.of(read_table(PEOPLE, study.for_reading, Progress()), study)
    assert lesson.original.numbers.shape[1] == 4
    assert lesson.original.numbers[:, 3].tolist() == [number % 3 for number in input_rows(lesson).tolist()]
    assert lesson.original.nominal.tolist() == [False, False, True, True]


def test_a_number_is_learnt_by_models_of_numbers() -> None:
    found = sfumato.evaluate(PEOPLE, **ROLES, target="spends", accept_linkable=["spends"], folds=4)
    methods = list(dict.fromkeys(row["method"] for row in found.results))
    assert methods == [ORIGINAL, "mondrian:regression", "mondrian"]
    by_rule, by_median = (values_of(found, name, "mean-absolute-error") for name in methods[1:])
    assert list(by_rule) == ["linear", "regression-tree"]
    assert by_rule["regression-tree"] < by_median["regression-tree"]
    errors = values_of(found, "mondrian:regression", "weighted-mean-squared-error")
    assert errors[None] < values_of(found, "mondrian", "weighted-mean-squared-error")[None]


def test_several_targets_are_learnt_each_by_its_models() -> None:
    found = sfumato.evaluate(
        PEOPLE, **ROLES, target=["buys", "spends"], accept_linkable=["spends"], models="tree,linear", folds=3
    )
    learnt = {(row["target"], row["model"]) for row in found.results if row["model"] is not None}
    assert learnt == {("buys", "tree"), ("spends", "linear")}
    assert {row["method"] for row in found.results} == {ORIGINAL, "mondrian:information-gain", "mondrian", "tds"}
    assert found.kinds == {"buys": "classes", "spends": "numbers"}


def test_imprecision_is_counted_as_who_selects_from_regions_would() -> None:
    where = ["age > 40 and pay <= 300", "city = 'c2'"]
    lesson = lesson_of(select=where, method="mondrian:selection")
    training = lesson.fold != 2
    recoding = lesson.recoding(training)
    region = recoding.regions.regions_of(lesson.table.encoded.codes, lesson.table.encoded.domains)
    measured = lesson.measures(recoding, region, training)
    bounds = recoding.bounds(PEOPLE)
    rows = PEOPLE.to_pylist()
    chosen: list[Any] = [
        lambda row: row["age"] > 40 and row["pay"] <= 300,
        lambda row: row["city"] == "c2",
    ]
    # A region is given when on every column some value of the table is both in it and selected.
    columns = [[(row["age"], row["age"] > 40) for row in rows], [(row["pay"], row["pay"] <= 300) for row in rows]]
    cities = sorted({row["city"] for row in rows})
    for number, select in enumerate(chosen):
        given = 0
        for row in input_rows(lesson)[training]:
            if number == 0:
                ends = [(bounds[row, 0], bounds[row, 1]), (bounds[row, 2], bounds[row, 3])]
                some = [
                    any(low <= value <= high and good for value, good in column)
                    for (low, high), column in zip(ends, columns, strict=True)
                ]
                given += all(some)
            else:
                given += bounds[row, 4] <= cities.index("c2") <= bounds[row, 5]
        meant = sum(bool(select(rows[row])) for row in input_rows(lesson)[training])
        assert measured[where[number], None, "imprecision"] == given - meant


def test_entropy_and_squared_error_are_those_of_the_regions_of_training_records() -> None:
    lesson = lesson_of(target=["buys", "spends"], accept_linkable=["spends"], k=60)
    training = lesson.fold != 3
    recoding = lesson.recoding(training)
    region = recoding.regions.regions_of(lesson.table.encoded.codes, lesson.table.encoded.domains)
    found = lesson.measures(recoding, region, training)
    owners = region[training].tolist()
    classes, numbers = (PEOPLE[name].take(input_rows(lesson)[training]).to_pylist() for name in ("buys", "spends"))
    entropy = oracle.conditional_entropy(owners, classes)
    assert 0 < entropy < 1
    assert found["buys", None, "conditional-entropy"] == pytest.approx(entropy)
    assert found["spends", None, "weighted-mean-squared-error"] == pytest.approx(oracle.squared_error(owners, numbers))
    assert found[None, None, "average-class-size"] == pytest.approx(len(owners) / len(set(owners)))


def test_levels_are_learnt_on_the_other_folds_and_counted_by_their_cells() -> None:
    ages = [age for age in range(20, 60) for _ in range(6)]
    table = pa.table({"age": ages, "town": ["Pisa", "Roma"] * 120})
    taxonomy = {"age": {"intervals": [10]}}
    found = sfumato.evaluate(
        table,
        quasi_identifiers=["age", "town"],
        taxonomy=taxonomy,
        select="age > 44",
        methods=["global"],
        k=10,
    )
    values = {row["metric"]: row["value"] for row in found.results if row["method"] == "global"}
    # Whoever selects from cells of ten years gets those of 40 to 44 too. Nine tenths are learnt from each time.
    assert values["imprecision"] == pytest.approx(0.9 * 5 * 6)
    assert values["average-class-size"] == pytest.approx(0.9 * 240 / 8)


def test_selections_alone_need_no_model() -> None:
    found = sfumato.evaluate(PEOPLE, **ROLES, select="age > 40", folds=3)
    assert {row["method"] for row in found.results} == {"mondrian:selection", "mondrian"}
    by_method = {row["method"]: row["value"] for row in found.results if row["metric"] == "imprecision"}
    assert by_method["mondrian:selection"] <= by_method["mondrian"]


def test_records_without_a_target_are_recoded_but_not_learnt_from() -> None:
    lost = [None if number % 4 == 0 else value for number, value in enumerate(PEOPLE["buys"].to_pylist())]
    table = PEOPLE.set_column(3, "buys", pa.array(lost))
    found = sfumato.evaluate(table, **CLASSES, models="tree", methods="mondrian:information-gain", folds=4)
    assert values_of(found, "mondrian:information-gain")["tree"] > 0.8
    assert values_of(found, "mondrian:information-gain", "average-class-size")[None] >= 15


def test_the_records_of_a_person_are_in_one_fold() -> None:
    lesson = lesson_of(person="patient", k=5)
    folds: dict[int, set[int]] = {}
    for row, fold in zip(input_rows(lesson).tolist(), lesson.fold.tolist(), strict=True):
        folds.setdefault(row // 3, set()).add(fold)
    assert all(len(seen) == 1 for seen in folds.values())


def test_sensitive_requirements_hold_in_every_training_part() -> None:
    lesson = lesson_of(sensitive="member", require=["distinct(member, l=3)"], k=2)
    training = lesson.fold != 0
    recoding = lesson.recoding(training)
    region = recoding.regions.regions_of(lesson.table.encoded.codes, lesson.table.encoded.domains)
    members: dict[int, set[int]] = {}
    for row in np.flatnonzero(training).tolist():
        members.setdefault(int(region[row]), set()).add(int(input_rows(lesson)[row]) % 3)
    assert len(members) > 1
    assert all(len(seen) == 3 for seen in members.values())


def test_a_method_without_regions_says_so_and_the_others_go_on() -> None:
    found = sfumato.evaluate(PEOPLE, **CLASSES, methods="hilbert,mondrian", models="tree", folds=3)
    failed = [row for row in found.results if row["error"] is not None]
    assert [(row["method"], row["code"]) for row in failed] == [("hilbert", 2)]
    assert "no regions" in failed[0]["error"]
    assert values_of(found, "mondrian")["tree"] > 0
    assert found.exit_code == 0
    alone = sfumato.evaluate(PEOPLE, **CLASSES, methods="hilbert", models="tree", folds=3)
    assert alone.exit_code == 2


def test_a_k_that_training_parts_cannot_meet_is_infeasible() -> None:
    found = sfumato.evaluate(PEOPLE, **{**CLASSES, "k": 500}, methods="mondrian", models="tree", folds=3)
    assert found.exit_code == 3


@pytest.mark.parametrize(
    ("flags", "told_so"),
    [
        ({**ROLES}, "--target"),
        ({**ROLES, "target": "age"}, "quasi-identifier"),
        ({**CLASSES, "folds": 1}, "folds"),
        ({**CLASSES, "models": "boosting"}, "unknown model 'boosting'"),
        ({**CLASSES, "models": "linear"}, "none of the models linear suits"),
        ({**CLASSES, "methods": "mondrain"}, "Did you mean 'mondrian'"),
        ({**ROLES, "target": "nothing"}, "nothing"),
    ],
)
def test_what_cannot_be_learnt_is_refused(flags: dict[str, Any], told_so: str) -> None:
    with pytest.raises(UsageError, match=told_so):
        sfumato.evaluate(PEOPLE, **flags)


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(UsageError, match=r"pip install 'sfumato\[learning\]'"):
        sfumato.evaluate(PEOPLE, **CLASSES)


def row_of(method: str, folds: tuple[float, ...], metric: str = "accuracy") -> Result:
    value = sum(folds) / len(folds)
    k = None if method == ORIGINAL else 5
    return Result(method=method, k=k, l=None, target="t", model="tree", metric=metric, value=value, folds=folds)


def test_every_two_methods_are_compared_in_the_same_folds() -> None:
    rows = [row_of(ORIGINAL, (0.9, 0.8)), row_of("a", (0.8, 0.7)), row_of("b", (0.6, 0.7))]
    found = [one.as_dict() for one in comparisons(rows, 2)]
    assert [(one["first"], one["second"]) for one in found] == [(ORIGINAL, "a"), (ORIGINAL, "b"), ("a", "b")]
    assert [one["difference"] for one in found] == pytest.approx([0.1, 0.2, 0.1])
    assert {one["k"] for one in found} == {5}


def test_the_best_has_the_highest_accuracy_or_the_lowest_error_and_the_original_is_no_release() -> None:
    assert best_of([row_of(ORIGINAL, (0.9, 0.9)), row_of("a", (0.5, 0.6)), row_of("b", (0.7, 0.7))]).method == "b"  # type: ignore[union-attr]
    errors = [row_of("a", (5.0, 6.0), "mean-absolute-error"), row_of("b", (7.0, 7.0), "mean-absolute-error")]
    assert best_of(errors).method == "a"  # type: ignore[union-attr]
    assert best_of([row_of(ORIGINAL, (0.9, 0.9))]) is None


def test_figures_are_told_as_people_read_them() -> None:
    assert figure_text(0.8123, "accuracy") == "81.2%"
    assert figure_text(12345.6, "mean-absolute-error") == "12,346"
    assert figure_text(0.51234, "conditional-entropy") == "0.512"
    assert with_reach(replace(row_of("a", (0.8, 0.8)), low=0.78, high=0.82)) == "80.0% \N{PLUS-MINUS SIGN}2.0"
    assert (chance(0.0002), chance(0.012), chance(0.4)) == ("p < 0.001", "p = 0.012", "p = 0.40")


@pytest.fixture
def table_file(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    pa_csv.write_csv(PEOPLE, path)
    return path


FLAGS = [
    "--quasi-identifiers",
    "age,pay,city",
    "--other",
    "drop",
    "--target",
    "buys",
    "--models",
    "tree",
    "--folds",
    "3",
]


def test_the_command_prints_results_and_comparisons_as_json(
    table_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(table_file), *FLAGS, "-k", "15", "--methods", "mondrian,tds", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    first = printed["results"][0]
    assert {"method", "model", "metric", "value", "low", "high"} <= set(first)
    assert (first["method"], first["target"], first["metric"]) == (ORIGINAL, "buys", "accuracy")
    assert (printed["records"], printed["folds"], printed["kinds"]) == (COUNT, 3, {"buys": "classes"})
    assert {(one["first"], one["second"]) for one in printed["comparisons"]} == {
        (ORIGINAL, "mondrian"),
        (ORIGINAL, "tds"),
        ("mondrian", "tds"),
    }


@pytest.mark.not_quick
def test_the_command_shows_a_table_and_writes_what_the_suffix_says(
    table_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = {".csv": "method,k,l", ".svg": "<svg", ".html": "<!doctype html>", ".json": "{"}
    for suffix, begins in wanted.items():
        target = tmp_path / f"learning{suffix}"
        arguments = ["evaluate", str(table_file), *FLAGS, "-k", "15,60", "--methods", "mondrian:information-gain,tds"]
        assert main([*arguments, "-o", str(target)]) == 0
        text = target.read_text("utf-8")
        assert text.startswith(begins)
        out = capsys.readouterr().out
        assert f"{COUNT} records, 3 folds, buys as classes; no release was made" in out
        assert "buys by tree, k = 15: best mondrian:information-gain" in out
    rows = list(csv.DictReader(io.StringIO((tmp_path / "learning.csv").read_text("utf-8"))))
    assert {(row["method"], row["k"]) for row in rows if row["model"] == "tree"} == {
        (ORIGINAL, ""),
        ("mondrian:information-gain", "15"),
        ("mondrian:information-gain", "60"),
        ("tds", "15"),
        ("tds", "60"),
    }


def test_wrong_flags_of_the_command_end_with_exit_code_2(table_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(table_file), *FLAGS[:4], "-k", "15"]) == 2
    assert "nothing to learn" in capsys.readouterr().err
    assert main(["evaluate", str(table_file), *FLAGS, "-k", "15", "-o", "learning.txt"]) == 2
    assert main(["evaluate", str(table_file), *FLAGS, "-k", "15", "--methods", "hilbert"]) == 2


def test_a_picture_of_one_k_has_every_model_and_method() -> None:
    found = sfumato.evaluate(PEOPLE, **CLASSES, models="tree,bayes", methods="mondrian,tds", folds=3)
    picture = found.picture()
    assert picture.facts == {"groups": ["tree", "bayes"], "names": [ORIGINAL, "mondrian", "tds"]}
    for text in ("buys learnt from releases, k = 15", "tree", "bayes", "mondrian", "tds", ORIGINAL):
        assert text in picture.svg
    dark = found.picture("dark")
    assert "#151a21" in dark.svg


def test_a_trade_off_with_a_target_tells_what_is_learnt_at_every_point() -> None:
    found = sfumato.tradeoff(PEOPLE, **{**CLASSES, "k": [5, 50]}, methods="mondrian:information-gain,hilbert")
    by_point = {(point["method"], point["k"]): point for point in found.points}
    for k in (5, 50):
        assert 0.5 < by_point["mondrian:information-gain", k]["accuracy"] <= 1
        assert by_point["hilbert", k]["accuracy"] is None
    assert any("hilbert, not learnt from" in text for text in found.remarks())
    (original,) = found.summary()["original"]
    assert (original["metric"], original["target"]) == ("accuracy", "buys")
    assert "original" in found.picture().svg


def test_a_trade_off_without_a_target_learns_nothing() -> None:
    found = sfumato.tradeoff(PEOPLE, **{**ROLES, "k": [5, 50]}, methods="mondrian")
    assert [point["accuracy"] for point in found.points] == [None, None]
    assert found.summary()["original"] == []


def test_without_scikit_learn_a_trade_off_still_tells_the_loss_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    found = sfumato.tradeoff(PEOPLE, **{**CLASSES, "k": [5, 50]}, methods="mondrian")
    assert all(point["gcp"] > 0 and point["accuracy"] is None for point in found.points)
    assert any("pip install 'sfumato[learning]'" in text for text in found.remarks())
