"""Privacy against loss: the points, what they share, the dual problem, and what is written."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naming import hiding_methods
from strategies import Case, cases

import sfumato
from sfumato.cli import main
from sfumato.cli.flag_values import many_ranges
from sfumato.engines.engine import Draft
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.memory.released_rows import shown_classes_of
from sfumato.errors import AuditError, InputError, PolicyError, UsageError
from sfumato.evaluation import dual_problem as module
from sfumato.evaluation.dual_problem import BEYOND, TradeoffQuestion, TradeoffStep, largest_within, latest
from sfumato.evaluation.parameter_values import MOST, ParameterValues, runs_of
from sfumato.methods import _makers, methods
from sfumato.methods.line import optimal_cut
from sfumato.methods.method import ClassBatch, Records
from sfumato.orderings import Hilbert
from sfumato.pipeline.prepare import read_table, table_for
from sfumato.pipeline.release import Release
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.releases.local_recoding import Recoded, RecodedColumn
from sfumato.report.tradeoff import Tradeoff
from sfumato.requirements import Requirements
from sfumato.studies import tradeoff as tradeoff_study
from sfumato.studies.trial import sketch

SECRET = "zzsecretzz"
COUNT = 240
PEOPLE = pa.table(
    {
        "age": [20 + (number * 7) % 53 for number in range(COUNT)],
        "city": [f"c{number * number % 11}" for number in range(COUNT)],
        "diagnosis": [f"d{number % 5}" for number in range(COUNT)],
        "patient": [f"p{number // 2}" for number in range(COUNT)],
    }
)
ROLES: dict[str, Any] = {
    "quasi_identifiers": ["age", "city"],
    "sensitive": "diagnosis",
    "identifiers": "patient",
}
FLAGS = ["--quasi-identifiers", "age,city", "--sensitive", "diagnosis", "--identifiers", "patient"]

HIDING = [name for name in methods() if name in hiding_methods()]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the table in it, and a place for run records that nothing should use."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    return tmp_path


class Shell:
    """Runs ``sfumato tradeoff`` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str, code: int = 0, table: str = "people.parquet") -> str:
        found = main(["tradeoff", table, *FLAGS, *arguments])
        captured = self._capsys.readouterr()
        assert found == code, captured.err
        self.err = captured.err
        return captured.out

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self(*arguments, "--json", code=code))
        return content


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], place: Path) -> Shell:
    return Shell(capsys)


class Strange:
    """A method that does what a test wants when it is to form classes."""

    paper = summary = use = "of a test"
    name = "strange"
    separates = False

    def __init__(self, act: Callable[[Records, Requirements], Iterator[ClassBatch]]) -> None:
        self._act = act

    def check(self, requirements: Requirements) -> None:
        """Anything is accepted."""

    def meets(self, requirements: Requirements) -> bool:
        return True

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        return self._act(records, requirements)


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Iterator[ClassBatch]]], None]:
    """Adds a method named ``strange`` to those that there are."""

    def add(act: Callable[[Records, Requirements], Iterator[ClassBatch]]) -> None:
        monkeypatch.setitem(_makers(), "strange", lambda: Strange(act))

    return add


def same_as_single(point: dict[str, Any], data: object, **settings: Any) -> None:
    """The point has the figures of the release that ``anonymize`` makes."""
    release = sfumato.anonymize(data, method=point["method"], k=point["k"], l=point["l"], effort="fast", **settings)
    # Sums differ in their last digit with the order of the classes.
    assert point["gcp"] == pytest.approx(release.losses.gcp, rel=1e-12, abs=1e-15)
    assert point["classes"] == release.audit.classes
    assert point["smallest_class"] == release.audit.smallest_class
    assert point["suppressed"] == release.losses.suppressed
    assert point["code"] == 0


# The points


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
@pytest.mark.parametrize("method", HIDING)
def test_every_point_is_what_a_single_run_comes_to(method: str) -> None:
    found = sfumato.tradeoff(PEOPLE, k=[1, 2, 5, 17, 120, 240], methods=[method], **ROLES)
    assert [point["k"] for point in found.points] == [1, 2, 5, 17, 120, 240]
    for point in found.points:
        assert (point["method"], point["l"], point["records"]) == (method, None, COUNT)
        same_as_single(point, PEOPLE, **ROLES)


def test_points_have_the_effort_fast_unless_the_policy_names_another(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("[method]\neffort = 'normal'\n")
    table = pa.table({name: np.random.default_rng(seed).integers(0, 99, 150) for seed, name in enumerate("ab")})
    asks: dict[str, Any] = {"quasi_identifiers": ["a", "b"]}
    usual = sfumato.tradeoff(table, k=[6], **asks)
    asked = sfumato.tradeoff(table, k=[6], effort="normal", **asks)
    written = sfumato.tradeoff(table, tmp_path / "policy.toml", k=[6], **asks)
    assert [found.summary()["effort"] for found in (usual, asked, written)] == ["fast", "normal", "normal"]
    fast, normal = (sfumato.anonymize(table, k=6, effort=effort, **asks).losses.gcp for effort in ("fast", "normal"))
    assert normal < fast
    gcp = [found.points[0]["gcp"] for found in (usual, asked, written)]
    assert gcp == pytest.approx([fast, normal, normal], rel=1e-12)


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_the_points_of_a_method_with_two_tables_are_audited_releases() -> None:
    found = sfumato.tradeoff(PEOPLE, k=1, l=[2, 3], methods="anatomy", **ROLES)
    for point in found.points:
        same_as_single(point, PEOPLE, **ROLES)
        assert (point["audited"], point["hides_identity"]) == (True, False)


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
@pytest.mark.parametrize("method", ["hilbert", "mondrian"])
@pytest.mark.parametrize(
    "settings",
    [
        {"max_suppressed": 0.1},
        {"round": {"age": 5}},
        {"taxonomy": {"age": {"intervals": [5, 10]}, "city": {"prefix": [1]}}, "weight": {"age": 3.0}},
        {"form": "bounds"},
        {"person": "patient"},
        {"person": "patient", "require": "distinct(diagnosis, l=2)"},
        {"require": "t-closeness(diagnosis, t=0.4)", "max_suppressed": 0.05},
        {"require": "entropy(diagnosis, l=2)"},
    ],
    ids=["suppression", "round", "taxonomies", "bounds", "persons", "values of persons", "t-closeness", "entropy"],
)
def test_points_are_single_runs_under_any_policy(method: str, settings: dict[str, Any]) -> None:
    found = sfumato.tradeoff(PEOPLE, k=[3, 8, 30], methods=method, **ROLES, **settings)
    for point in found.points:
        same_as_single(point, PEOPLE, **ROLES, **settings)


@given(case=cases(rows=20, columns=3), method=st.sampled_from(["hilbert", "hilbert-fast", "idistance", "mondrian"]))
def test_points_of_any_table_are_single_runs(case: Case, method: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = case.settings(tmp_path_factory.mktemp("taxonomies"))
    del settings["k"]
    found = sfumato.tradeoff(case.table, k=range(1, case.k + 1), methods=method, **settings)
    assert [point["k"] for point in found.points] == list(range(1, case.k + 1))
    for point in (found.points[0], found.points[-1]):
        same_as_single(point, case.table, **settings)


def test_k_and_l_together_give_every_pair() -> None:
    found = sfumato.tradeoff(PEOPLE, k=[3, 10], l=[2, 3], methods=["hilbert", "mondrian"], **ROLES)
    assert [(point["k"], point["l"], point["method"]) for point in found.points] == [
        (k, diversity, method) for k in (3, 10) for diversity in (2, 3) for method in ("hilbert", "mondrian")
    ]
    for point in found.points:
        same_as_single(point, PEOPLE, **ROLES)
    assert found.answer is None


def test_without_a_limit_nothing_is_released_and_no_answer_is_given() -> None:
    found = sfumato.tradeoff(PEOPLE, k=[3, 4], **ROLES)
    assert [point["audited"] for point in found.points] == [False, False]
    assert (found.answer, found.answers, found.verdict()) == (None, [], [])


def test_without_k_it_goes_from_2_to_100_or_to_the_records_of_the_table() -> None:
    found = sfumato.tradeoff(PEOPLE, **ROLES)
    ks = [point["k"] for point in found.points]
    assert (ks[0], ks[-1], len(ks)) == (2, 100, MOST)
    found = sfumato.tradeoff(PEOPLE.slice(0, 30), **ROLES)
    ks = [point["k"] for point in found.points]
    assert (ks[0], ks[-1], {point["code"] for point in found.points}) == (2, 30, {0})
    assert "no k above the 30 records of the table can be met" in found.remarks()[0]


def test_where_l_varies_k_is_the_policys() -> None:
    policy = merge_flags(None, k=7, **ROLES)
    found = sfumato.tradeoff(PEOPLE, policy, l=range(2, 5))
    assert [(point["k"], point["l"]) for point in found.points] == [(7, 2), (7, 3), (7, 4)]


def test_methods_that_are_not_named_are_the_policys() -> None:
    policy = merge_flags(None, method="mondrian", **ROLES)
    assert {point["method"] for point in sfumato.tradeoff(PEOPLE, policy, k=5).points} == {"mondrian"}
    assert {point["method"] for point in sfumato.tradeoff(PEOPLE, k=5, **ROLES).points} == {"auto"}


# What the points share


def test_the_table_is_read_and_put_in_a_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(owner: Any, verb: str) -> None:
        before = getattr(owner, verb)

        def count(*arguments: Any, **named: Any) -> Any:
            calls.append(verb)
            return before(*arguments, **named)

        monkeypatch.setattr(owner, verb, count)

    for verb in ("read", "profile", "encode", "recode"):
        counted(MemoryEngine, verb)
    counted(Hilbert, "fitted")
    sfumato.tradeoff(PEOPLE, k=range(2, 12), methods=["hilbert", "hilbert-fast"], **ROLES)
    assert sorted(calls) == ["encode", "fitted", "profile", "read"]
    calls.clear()
    sfumato.tradeoff(PEOPLE, k=range(2, 12), max_loss=0.3, **ROLES)
    assert calls.count("recode") == 1


@pytest.mark.parametrize("method", ["hilbert", "hilbert-fast"])
def test_the_line_is_cut_for_all_sampled_k_at_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[list[int]] = []
    before = optimal_cut.best_cuts

    def counted(count: int, many_k: Sequence[int], *others: Any) -> dict[int, Any]:
        together.append(list(many_k))
        return before(count, many_k, *others)

    monkeypatch.setattr(optimal_cut, "best_cuts", counted)
    sfumato.tradeoff(PEOPLE, k=[2, 3, 5, 60, 500], methods=method, **ROLES)
    assert together == [[2, 3, 5], [60]]


def test_a_line_is_not_kept_for_fewer_records_nor_by_a_single_run() -> None:
    policy = merge_flags(None, k=4, method="hilbert", **ROLES)
    table = read_table(PEOPLE, policy, Progress())
    sketch(table_for(table, policy))
    assert table.records.lines is None
    kept = table.shared()
    sketch(table_for(kept, policy))
    assert list(kept.records.lines or {}) == ["hilbert"]
    assert kept.records.without(np.array([3], np.uint32)).lines is None


def test_classes_that_fail_once_they_show_the_same_are_not_told_of() -> None:
    policy = merge_flags(None, k=3, quasi_identifiers=["age"], other="drop")
    table = read_table(PEOPLE.slice(0, 5), policy, Progress())
    labels = pa.array(["a", "b"])
    column = RecodedColumn(table.encoded.domains[0], np.array([0, 1], np.uint32), labels, labels, labels)

    def shown(sizes: list[int], classes: list[int]) -> object:
        recoded = Recoded(5, np.argsort(classes).astype(np.uint32), np.array(sizes), [column], np.array(sizes))
        return shown_classes_of(table.records, recoded, policy.requirements(), Progress())

    assert shown([3, 2], [0, 0, 0, 1, 1]) is None
    assert shown([5], [0, 0, 0, 0, 0]) is not None


def test_a_requirement_on_values_is_counted_in_the_classes_that_are_shown() -> None:
    policy = merge_flags(None, k=1, l=2, quasi_identifiers=["age"], sensitive="diagnosis", other="drop")
    four = PEOPLE.slice(0, 4).set_column(2, "diagnosis", pa.array(["x", "x", "y", "z"]))
    table = read_table(four, policy, Progress())
    labels = pa.array(["a", "b"])
    column = RecodedColumn(table.encoded.domains[0], np.array([0, 1], np.uint32), labels, labels, labels)
    for classes, holds in ([0, 0, 1, 1], False), ([0, 1, 0, 1], True):
        rows = np.argsort(classes, kind="stable").astype(np.uint32)
        recoded = Recoded(4, rows, np.array([2, 2]), [column], np.array([2, 2]))
        assert (shown_classes_of(table.records, recoded, policy.requirements(), Progress()) is not None) is holds


# Which values are computed


@given(st.integers(1, 500), st.integers(0, 10**9))
def test_a_sample_has_both_ends_and_ascends_in_steps_that_grow(first: int, more: int) -> None:
    values = ParameterValues((range(first, first + more + 1),))
    sample = values.sample()
    assert (sample[0], sample[-1]) == (first, first + more)
    assert len(sample) == min(more + 1, MOST)
    assert sample == sorted(set(sample))
    if more < MOST:
        assert sample == list(range(first, first + more + 1))


def test_the_usual_sample_is_dense_where_k_is_small() -> None:
    expected = [2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33, 40, 48, 58, 70, 84, 100]
    assert ParameterValues((range(2, 101),)).sample() == expected


PIECES = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 30)), min_size=1, max_size=5)


@given(PIECES)
def test_values_are_numbered_in_ascending_order(pieces: list[tuple[int, int]]) -> None:
    values = ParameterValues.of("k", [range(low, low + more + 1) for low, more in pieces])
    expected = sorted({number for low, more in pieces for number in range(low, low + more + 1)})
    assert len(values) == len(expected)
    assert [values[place] for place in range(len(values))] == expected
    assert [values.index(value) for value in expected] == list(range(len(expected)))
    assert set(values.sample()) <= set(expected)


def test_values_are_taken_as_numbers_lists_and_ranges() -> None:
    assert ParameterValues.of("k", 7).sample() == [7]
    assert ParameterValues.of("k", [30, 5, 5]).sample() == [5, 30]
    assert len(ParameterValues.of("k", list(range(1, 200))).sample()) == 199  # what is listed is computed
    assert len(ParameterValues.of("k", range(1, 200)).sample()) == MOST
    assert ParameterValues.of("k", range(10, 101, 10)).sample() == list(range(10, 101, 10))
    assert str(ParameterValues.of("k", many_ranges("-k", "5, 10..20,7"))) == "5,10..20,7"


@pytest.mark.parametrize("given_values", [0, [], [5, 0], range(5, 5), range(-1, 3), 2.5, [True], "5", [None]])
def test_what_are_no_values_is_refused_before_the_table_is_read(given_values: Any) -> None:
    with pytest.raises(UsageError, match=r"k (must be at least|takes whole numbers)|values for k is empty"):
        sfumato.tradeoff("not-there.csv", k=given_values, **ROLES)


def test_values_of_a_range_that_no_table_can_meet_are_left_out_and_single_ones_are_told() -> None:
    values = ParameterValues.of("k", [5, range(2, 10**15), 300]).up_to(240)
    assert (len(values), values[len(values) - 2], values[len(values) - 1]) == (240, 240, 300)
    assert ParameterValues.of("k", range(500, 600)).up_to(240).sample() == [500]


@pytest.mark.parametrize(
    "numbers, text",
    [([2], "2"), ([2, 3], "2, 3"), ([2, 3, 4, 8, 10, 11, 12], "2..4, 8, 10..12"), ([5, 2000], "5, 2,000")],
)
def test_runs_of_numbers_are_told_shortly(numbers: list[int], text: str) -> None:
    assert runs_of(numbers) == text


# The dual problem


@given(PIECES, st.integers(0, 100))
def test_the_search_is_exact_where_loss_grows(pieces: list[tuple[int, int]], limit: int) -> None:
    values = ParameterValues.of("k", [range(low, low + more + 1) for low, more in pieces])
    every = [values[place] for place in range(len(values))]
    sample = {value: value <= limit for value in values.sample()}
    looked: list[int] = []

    def allows(value: int) -> bool:
        looked.append(value)
        return value <= limit

    found = largest_within(values, sample, allows, beyond=0)
    assert found == max((value for value in every if value <= limit), default=None)
    assert len(looked) == len(set(looked))
    assert not set(looked) & set(sample)
    if found is not None:
        at = values.index(found)
        beside = {values[place] for place in (at - 1, at + 1) if 0 <= place < len(values)}
        assert beside <= {*looked, *sample}


@given(st.lists(st.booleans(), min_size=1, max_size=80), st.integers(0, 30), st.integers(1, 9))
def test_a_search_beyond_the_answer_finds_what_lies_there(goods: list[bool], beyond: int, first: int) -> None:
    values = ParameterValues((range(first, first + len(goods)),))
    by_value = {first + place: good for place, good in enumerate(goods)}
    sample = {value: by_value[value] for value in values.sample()}
    found = largest_within(values, sample, by_value.__getitem__, beyond=beyond)
    if found is None:
        assert not any(goods[: max(beyond, 1)])
        assert not any(sample.values())
        return
    assert by_value[found]
    above = [value for value in by_value if value > found]
    assert not any(by_value[value] for value in above[: max(beyond, 1)])
    assert not any(sample[value] for value in above if value in sample)
    if beyond >= len(goods):
        assert not any(by_value[value] for value in above)


@pytest.mark.not_quick
@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
@pytest.mark.parametrize("method", ["hilbert", "hilbert-fast", "mondrian", "close-k"])
def test_the_answer_is_that_of_brute_force_over_k(method: str) -> None:
    ks = range(2, 46)
    losses = {k: sfumato.anonymize(PEOPLE, k=k, method=method, **ROLES).losses.gcp for k in ks}
    in_order = sorted(set(losses.values()))
    # Limits that a release has exactly are the hardest; others lie between.
    limits = [in_order[0], in_order[len(in_order) // 3], (in_order[5] + in_order[6]) / 2, 0.0]
    for limit in limits:
        found = sfumato.tradeoff(PEOPLE, k=ks, methods=method, max_loss=limit, **ROLES)
        expected = max((k for k, loss in losses.items() if loss <= limit), default=None)
        if expected is None:
            assert found.answer is None
            continue
        assert found.answer is not None
        assert (found.answer["k"], found.answer["gcp"], found.answer["exact"]) == (expected, losses[expected], True)


@pytest.mark.parametrize("method", ["hilbert", "mondrian"])
def test_the_largest_l_is_that_of_brute_force(method: str) -> None:
    losses = {
        diversity: sfumato.anonymize(PEOPLE, k=4, l=diversity, method=method, **ROLES).losses.gcp
        for diversity in range(2, 6)
    }
    for limit in (losses[2], losses[3], losses[4] + 1e-6, 1.0):
        found = sfumato.tradeoff(PEOPLE, k=4, l=range(2, 21), methods=method, max_loss=limit, **ROLES)
        assert found.answer is not None
        assert found.answer["l"] == max(diversity for diversity, loss in losses.items() if loss <= limit)
        assert found.answer["k"] == 4


@given(case=cases(rows=14, columns=3, others=False))
def test_along_a_line_a_larger_k_never_costs_less(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = case.settings(tmp_path_factory.mktemp("taxonomies"))
    del settings["k"]
    for method in ("hilbert", "idistance"):
        count = case.table.num_rows
        found = sfumato.tradeoff(case.table, k=list(range(1, count + 1)), methods=method, **settings)
        losses = [point["gcp"] for point in found.points]
        assert all(after >= before - 1e-8 for before, after in pairwise(losses))


@given(
    ages=st.lists(st.integers(0, 60), min_size=4, max_size=14),
    widened=st.sampled_from([{"round": {"age": 7}}, {"taxonomy": {"age": {"intervals": [5, 20]}}}]),
)
def test_along_a_line_a_larger_k_never_costs_less_where_ranges_are_widened(
    ages: list[int], widened: dict[str, Any]
) -> None:
    table = pa.table({"age": ages, "city": [age % 3 for age in ages]})
    many_k = list(range(1, len(ages) + 1))
    found = sfumato.tradeoff(table, quasi_identifiers=["age", "city"], k=many_k, methods="hilbert", **widened)
    losses = [point["gcp"] for point in found.points]
    assert all(after >= before - 1e-8 for before, after in pairwise(losses))


@pytest.mark.parametrize(
    "settings, steady",
    [
        ({}, True),
        ({"methods": "idistance"}, True),
        ({"taxonomy": {"city": {"prefix": [1]}}}, True),
        ({"methods": "hilbert-fast"}, False),
        ({"methods": "mondrian"}, False),
        ({"l": 2}, False),
        ({"person": "patient"}, False),
        ({"max_suppressed": 0.1}, False),
        ({"round": {"age": 5}}, True),
        ({"taxonomy": {"age": {"intervals": [5]}}}, True),
        ({"require": "entropy(diagnosis, l=2)"}, False),
    ],
)
def test_it_is_known_when_a_larger_k_may_cost_less(settings: dict[str, Any], steady: bool) -> None:
    chosen, diversity = settings.pop("methods", "hilbert"), settings.pop("l", None)
    question = TradeoffQuestion.of(merge_flags(None, **ROLES, **settings), chosen, range(2, 101), diversity, 0.1)
    assert question.never_falls(chosen) is steady
    assert question.beyond(chosen, 10**9) == (0 if steady else BEYOND)
    assert question.beyond(chosen, 100) == (0 if steady else len(question.values))


def test_on_a_large_table_the_answer_says_what_was_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFFORDABLE", 0)
    found = sfumato.tradeoff(PEOPLE, k=range(2, 121), methods="mondrian", max_loss=0.3, **ROLES)
    assert found.answer is not None
    k = found.answer["k"]
    assert found.answer["exact"] is False
    assert f"the next {BEYOND} larger k and" in found.answer["because"]
    assert "may cost less" in found.answer["because"]
    computed = {point["k"]: point["gcp"] for point in found.points}
    assert {k - 1, *range(k + 1, k + 1 + BEYOND)} <= set(computed)
    assert len(computed) < 119
    assert all(loss > 0.3 for other, loss in computed.items() if other > k)
    assert "It may not be the largest" in found.verdict()[0]


def test_the_answer_alone_is_released_and_audited() -> None:
    found = sfumato.tradeoff(PEOPLE, k=range(2, 101), methods="hilbert", max_loss=0.3, **ROLES)
    assert found.answer is not None
    assert [point["k"] for point in found.points if point["audited"]] == [found.answer["k"]]
    assert found.answer["because"] == "with hilbert a larger k never costs less"
    assert found.answer["gcp"] <= 0.3


@pytest.mark.not_quick
def test_an_answer_that_does_not_pass_its_audit_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    good = sfumato.tradeoff(PEOPLE, k=range(2, 31), max_loss=0.3, **ROLES)
    assert good.answer is not None
    before = tradeoff_study.kept

    def refuse(draft: Draft) -> Release:
        if draft.job.policy.k == good.answer["k"]:
            raise AuditError("it did not pass")
        return before(draft)

    monkeypatch.setattr(tradeoff_study, "kept", refuse)
    found = sfumato.tradeoff(PEOPLE, k=range(2, 31), max_loss=0.3, **ROLES)
    assert found.answer is not None
    assert found.answer["k"] == good.answer["k"] - 1
    assert found.exit_code == 70
    failed = next(point for point in found.points if point["k"] == good.answer["k"])
    assert (failed["gcp"], failed["error"]) == (None, "it did not pass")


def test_of_several_methods_the_one_with_the_largest_k_answers() -> None:
    found = sfumato.tradeoff(PEOPLE, k=range(2, 41), methods=["hilbert", "mondrian"], max_loss=0.3, **ROLES)
    by_method = {answer.method: answer for answer in found.answers}
    assert set(by_method) == {"hilbert", "mondrian"}
    assert found.found == max(found.answers, key=lambda answer: (answer.k, -answer.gcp))


def test_a_method_that_hides_nobody_does_not_answer_for_the_others() -> None:
    found = sfumato.tradeoff(PEOPLE, k=1, l=range(2, 6), methods=["anatomy", "hilbert"], max_loss=0.35, **ROLES)
    assert {answer.method for answer in found.answers} == {"anatomy", "hilbert"}
    assert found.found is not None
    assert found.found.method == "hilbert"


@pytest.mark.parametrize("limit", [-0.1, 1.5, 10, float("nan"), True])
def test_a_limit_that_is_no_share_is_refused_before_the_table_is_read(limit: float) -> None:
    with pytest.raises(UsageError, match=r"Write 0\.1 for an information loss of 10%"):
        sfumato.tradeoff("not-there.csv", max_loss=limit, **ROLES)


def test_the_largest_of_two_things_at_once_is_refused() -> None:
    with pytest.raises(UsageError, match="Give a single value for the other"):
        sfumato.tradeoff("not-there.csv", k=[2, 3], l=[2, 3], max_loss=0.1, **ROLES)


# Failures


def test_a_point_that_is_infeasible_does_not_lose_the_others(shell: Shell) -> None:
    found = shell.json("-k", "5,240,241")
    assert [(point["k"], point["code"]) for point in found["points"]] == [(5, 0), (240, 0), (241, 3)]
    assert found["points"][2]["gcp"] is None
    text = shell("-k", "5,240,241")
    assert "auto at k = 241: k = 241 needs at least 241 records" in text
    assert re.search(r"241\s+infeasible", text)


def test_without_any_result_it_ends_with_the_code_of_the_first_error(shell: Shell, place: Path) -> None:
    text = shell("-k", "300..400", "--max-loss", "0.1", "-o", "out.html", code=3)
    assert "no computed k loses at most 10%." in text
    assert not (place / "out.html").exists()


def test_a_fault_in_one_method_tells_its_kind_only(shell: Shell, strange: Any) -> None:
    def a_bug(_: Records, __: Requirements) -> Iterator[ClassBatch]:
        raise KeyError(SECRET)

    strange(a_bug)
    found = shell.json("-k", "5", "--methods", "strange,hilbert", code=70)
    assert found["points"][0]["error"].startswith("unexpected KeyError. This is a fault in Sfumato")
    assert found["points"][1]["code"] == 0
    assert SECRET not in json.dumps(found) + shell.err


def test_a_method_whose_classes_fail_has_no_figures(strange: Any) -> None:
    def each_alone(records: Records, _: Requirements) -> Iterator[ClassBatch]:
        yield ClassBatch(records.rows, records.starts, records.codes, records.codes)

    strange(each_alone)
    found = sfumato.tradeoff(PEOPLE, k=[5, 6], methods=["strange", "hilbert"], **ROLES)
    assert [(point["method"], point["gcp"] is None) for point in found.points] == [
        ("strange", True),
        ("hilbert", False),
        ("strange", True),
        ("hilbert", False),
    ]
    assert found.exit_code == 70


def test_a_method_that_loses_records_has_no_figures(strange: Any) -> None:
    def all_but_ten(records: Records, _: Requirements) -> Iterator[ClassBatch]:
        rows = records.rows[10:]
        low, high = records.codes.min(axis=0), records.codes.max(axis=0)
        yield ClassBatch(rows, np.array([0, len(rows)]), low[None, :], high[None, :])

    strange(all_but_ten)
    found = sfumato.tradeoff(PEOPLE, k=5, methods="strange", **ROLES)
    assert "leave out more than it allows" in found.points[0]["error"]
    assert found.points[0]["code"] == 70


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_interruption_prints_what_is_there_and_writes_nothing(
    form: tuple[str, ...], shell: Shell, strange: Any, place: Path
) -> None:
    def stop(records: Records, requirements: Requirements) -> Iterator[ClassBatch]:
        if requirements.least_class == 7:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
            raise AssertionError("the signal was not noticed")
        return methods()["hilbert"].classes(records, requirements, Progress())

    strange(stop)
    before = sorted(place.rglob("*"))
    arguments = ("--methods", "strange", "-k", "5,6,7", "--max-loss", "0.9", "-o", "out.csv", *form)
    text = shell(*arguments, code=130)
    if form:
        found = json.loads(text)
        assert ([point["k"] for point in found["points"]], found["complete"]) == ([5, 6], False)
        assert found["answer"] is None
    else:
        assert "Interrupted after 2 points." in text
        assert "largest k" not in text
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["-k", "ten"], "-k 'ten' is not understood"),
        (["-k", "9..2"], "a range that ends before it starts"),
        (["--max-loss", "5"], "Write 0.1 for an information loss of 10%"),
        (["--methods", "nothing"], "unknown method 'nothing'"),
        (["--queries", "3"], "there is no level 3 in the datacube of 2 quasi-identifiers"),
        (["-o", "out.txt"], "Use one of .html, .svg, .png, .pdf, .csv, .json"),
        (["--theme", "blue", "-o", "out.svg"], "'blue'"),
    ],
)
def test_wrong_flags_are_refused_before_the_table_is_read(arguments: list[str], message: str, shell: Shell) -> None:
    assert shell(*arguments, table="not-there.csv", code=2) == ""
    assert message in shell.err


def test_a_table_that_is_not_there_is_told(shell: Shell) -> None:
    assert shell("-k", "5", table="not-there.csv", code=4) == ""
    with pytest.raises(InputError):
        sfumato.tradeoff("not-there.csv", k=5, **ROLES)
    with pytest.raises(PolicyError):
        sfumato.tradeoff(PEOPLE, k=5, l=2, quasi_identifiers=["age"], other="drop")


def test_a_range_may_be_as_long_as_it_likes(shell: Shell) -> None:
    found = shell.json("-k", "2..999999999999")
    assert found["asked"]["k"] == "2..999999999999"
    assert found["computed"]["k"][-1] == COUNT
    assert len(found["points"]) == MOST


# Queries


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_the_query_error_is_that_of_the_released_file(place: Path) -> None:
    found = sfumato.tradeoff(PEOPLE, k=[4, 20], queries=2, **ROLES)
    for point in found.points:
        sfumato.anonymize(PEOPLE, k=point["k"], effort="fast", **ROLES).write("release.parquet")
        measured = sfumato.measure(PEOPLE, "release.parquet", queries=2)
        assert point["kl"] == pytest.approx(measured.queries[0].kl, rel=1e-12)
        assert (point["audited"], point["kl"] > 0) == (True, True)


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_the_query_error_of_anatomy_is_that_of_its_two_tables(place: Path) -> None:
    point = sfumato.tradeoff(PEOPLE, k=1, l=[3], methods="anatomy", queries=1, seed=5, **ROLES).points[0]
    sfumato.anonymize(PEOPLE, k=1, l=3, method="anatomy", seed=5, **ROLES).write("release.parquet")
    assert point["kl"] == pytest.approx(sfumato.measure(PEOPLE, "release.parquet", queries=1).queries[0].kl, rel=1e-12)


def test_of_several_sensitive_columns_the_mean_error_is_told(place: Path) -> None:
    roles = {**ROLES, "sensitive": ["diagnosis", "ward"]}
    table = PEOPLE.append_column("ward", pa.array([number % 3 for number in range(COUNT)]))
    with pytest.warns(sfumato.SfumatoWarning):
        sfumato.anonymize(table, k=6, effort="fast", **roles).write("release.parquet")
    each = [one.kl for one in sfumato.measure(table, "release.parquet", queries=1).queries]
    point = sfumato.tradeoff(table, k=6, queries=1, **roles).points[0]
    assert point["kl"] == pytest.approx(sum(filter(None, each)) / 2, rel=1e-12)


def test_queries_need_a_sensitive_column() -> None:
    with pytest.raises(UsageError, match="queries count the values of a sensitive column"):
        sfumato.tradeoff(PEOPLE, k=5, queries=1, quasi_identifiers=["age", "city"], other="drop")


# What is said and written


@pytest.mark.not_quick
def test_json_has_what_programs_are_promised(shell: Shell) -> None:
    found = shell.json("-k", "2..100", "--max-loss", "0.3")
    assert {"points", "answer", "answers", "asked", "computed", "records", "max_loss", "complete"} <= set(found)
    assert {"method", "k", "l", "gcp", "records", "classes", "suppressed", "seconds"} <= set(found["points"][0])
    assert {"k", "l", "gcp"} <= set(found["answer"])
    assert found["answer"]["gcp"] <= 0.3
    assert found["computed"]["k"] == [point["k"] for point in found["points"]]
    assert found["max_loss"] == 0.3


@pytest.mark.not_quick
def test_people_are_told_which_values_were_computed_and_the_answer(shell: Shell) -> None:
    text = shell("-k", "2..100", "--max-loss", "0.3")
    found = shell.json("-k", "2..100", "--max-loss", "0.3")
    k = found["answer"]["k"]
    assert f"{COUNT} records" in text
    assert "no release is kept" in text
    assert f"Requested: k = 2..100. Computed: {runs_of(found['computed']['k'])}. A range" in text
    assert "A range of more than 20 values is sampled in growing steps" in text
    assert f"auto: the largest k that loses at most 30% is {k} " in text
    assert f"next    sfumato anonymize people.parquet -o OUTPUT ... --method auto -k {k}\n" in text
    assert re.search(rf"\n\s*{k}\s+\d+\.\d\d%.*passed", text)


@pytest.mark.not_quick
def test_of_many_points_people_see_the_sampled_and_those_beside_the_answer(shell: Shell) -> None:
    text = shell("-k", "2..100", "--max-loss", "0.3", "--methods", "mondrian")
    found = shell.json("-k", "2..100", "--max-loss", "0.3", "--methods", "mondrian")
    shown = [int(k) for k in re.findall(r"^\s*(\d+)\s+\d+\.\d\d%", text, re.MULTILINE)]
    k = found["answer"]["k"]
    near = {*range(k - 2, k + 3)} & {*found["computed"]["k"]}
    assert {k - 1, k, k + 1, k + 2} <= near
    assert set(shown) == {*ParameterValues((range(2, 101),)).sample()} | near
    assert f"{len(found['points']) - len(shown)} more points are in --json" in text


def test_methods_stand_beside_each_other(shell: Shell) -> None:
    text = shell("-k", "5,10", "--methods", "hilbert,mondrian")
    assert re.search(r"k\s+hilbert\s+mondrian", text)
    assert re.search(r"\n\s*5\s+\d+\.\d\d%\s+\d+\.\d\d%", text)
    text = shell("-k", "5,300", "--methods", "hilbert,mondrian", "--queries", "1")
    assert re.search(r"\n\s*5\s+\d+\.\d\d%\s+\d\.\d{4}\s+\d+\.\d\d%\s+\d\.\d{4}", text)
    assert re.search(r"\n\s*300\s+infeasible\s+infeasible", text)


def test_csv_has_a_line_for_every_point(shell: Shell, place: Path) -> None:
    shell("-k", "5,300", "-o", "points.csv")
    rows = list(csv.DictReader(io.StringIO((place / "points.csv").read_text())))
    assert [row["k"] for row in rows] == ["5", "300"]
    assert float(rows[0]["gcp"]) > 0
    assert (rows[1]["gcp"], rows[1]["error"][:7]) == ("", "k = 300")


@pytest.mark.parametrize("suffix", [".html", ".svg", ".png", ".pdf", ".json"])
def test_every_kind_of_file_is_written_and_nothing_else(suffix: str, shell: Shell, place: Path) -> None:
    before = set(place.rglob("*"))
    text = shell("-k", "2..30", "--max-loss", "0.3", "-o", f"out{suffix}")
    assert f"wrote   out{suffix}" in text
    assert set(place.rglob("*")) - before == {place / f"out{suffix}"}
    assert (place / f"out{suffix}").stat().st_size > 500


@pytest.mark.not_quick
def test_the_page_asks_no_address_and_escapes_names() -> None:
    name = '<script>alert("x")</script>'
    table = PEOPLE.rename_columns([name, "city", "diagnosis", "patient"])
    roles = {**ROLES, "quasi_identifiers": [name, "city"]}
    found = sfumato.tradeoff(table, k=range(2, 31), max_loss=0.3, queries=1, **roles)
    text = found.page()
    assert "<script" not in text
    assert re.findall(r"https?://[^\"' <]+", re.sub(r'xmlns(:\w+)?="[^"]+"', "", text)) == []
    assert "at most 30%" in text
    assert "Query error by k" in text
    assert "Information loss by k" in found._repr_html_()
    assert len(text) < 2_000_000


def test_the_picture_shows_the_limit_and_the_answer() -> None:
    found = sfumato.tradeoff(PEOPLE, k=range(2, 31), max_loss=0.3, **ROLES)
    assert found.answer is not None
    picture = found.loss()
    assert picture.description.endswith(f"at most 30%: k = {found.answer['k']}.")
    assert f">k = {found.answer['k']}<" in picture.svg
    none = sfumato.tradeoff(PEOPLE, k=[50], max_loss=0.0, **ROLES).loss()
    assert none.description.endswith("at most 0%: none.")


def test_a_later_step_stands_for_an_earlier_one() -> None:
    first = TradeoffStep(method="m", k=5, l=None, records=9, gcp=0.5)
    other = TradeoffStep(method="a", k=5, l=None, records=9, gcp=0.5)
    smaller = TradeoffStep(method="m", k=2, l=None, records=9, gcp=0.1)
    again = replace(first, audited=True)
    assert latest([first, other, smaller, again]) == [smaller, again, other]


def test_its_name_tells_how_many_points_there_are() -> None:
    found = sfumato.tradeoff(PEOPLE, k=[5, 300], **ROLES)
    assert isinstance(found, Tradeoff)
    assert repr(found) == "<Tradeoff of 2 points, 1 of them without a result>"


# ---- the share that is left out ----


FAR = pa.table({"age": [*range(20, 40), 300, 600, 1000]})
ONE = {"quasi_identifiers": "age", "other": "drop", "method": "hilbert"}


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_the_loss_falls_with_the_share_that_is_left_out_and_the_cost_has_its_least_value_in_between() -> None:
    shares = [0, 1 / 23, 2 / 23, 3 / 23, 6 / 23]
    found = sfumato.tradeoff(FAR, **ONE, k=5, suppressed=shares, suppression_cost=0.5)
    points = found.points
    assert [point["max_suppressed"] for point in points] == shares
    assert [point["suppressed"] for point in points] == [0, 1, 2, 3, 6]
    for point in points:
        alone = sfumato.anonymize(FAR, **ONE, k=5, max_suppressed=point["max_suppressed"], suppression_cost=0).losses
        assert (point["gcp"], point["gcp_released"]) == pytest.approx((alone.gcp, alone.gcp_released))
        stay = 23 - point["suppressed"]
        assert point["cost"] == pytest.approx((point["gcp_released"] * stay + 0.5 * point["suppressed"]) / 23)
    released = [point["gcp_released"] for point in points[:4]]
    assert released == sorted(released, reverse=True)
    costs = [point["cost"] for point in points]
    assert min(costs) == costs[3]
    summary = found.summary()
    assert (summary["asked"]["suppressed"], summary["suppression_cost"]) == (shares, 0.5)


def test_the_command_shows_and_draws_the_loss_by_the_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(FAR, "far.parquet")
    flags = ["--quasi-identifiers", "age", "-k", "5", "--suppression-cost", "0.5", "--suppressed", "0..0.1,0.2"]
    command = ["tradeoff", "far.parquet", *flags]
    assert main([*command, "--methods", "hilbert", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [point["max_suppressed"] for point in found["points"]] == pytest.approx([*np.linspace(0, 0.1, 11), 0.2])
    assert main([*command, "--methods", "hilbert", "-o", "shares.html"]) == 0
    text = capsys.readouterr().out
    assert "released" in text
    page = Path("shares.html").read_text()
    assert "records left out, %" in page
    assert "left out as 0.5" in page
    assert main([*command, "--methods", "hilbert,mondrian"]) == 0
    assert "mondrian" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("further", "message"),
    [
        (["--suppressed", "0..0.1", "-k", "2..5"], "at one k and one l"),
        (["--suppressed", "0..0.1", "-k", "5", "--max-loss", "0.1"], "not a share to leave out"),
        (["--suppressed", "0.1", "-k", "5", "--max-suppressed", "0.1"], "shares to compare are given"),
        (["--suppressed", "0.1..0", "-k", "5"], "ends before it starts"),
        (["--suppressed", "1", "-k", "5"], "is not understood"),
        (["--suppressed", "a", "-k", "5"], "is not understood"),
    ],
)
def test_shares_that_make_no_sense_are_refused(
    further: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tradeoff", "missing.csv", "--quasi-identifiers", "age", *further]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("shares", [[], [1.0], [-0.1], [float("nan")], [True]])
def test_a_share_to_leave_out_is_at_least_0_and_below_1(shares: list[float]) -> None:
    with pytest.raises(sfumato.UsageError, match="share"):
        sfumato.tradeoff(FAR, **ONE, k=5, suppressed=shares)
