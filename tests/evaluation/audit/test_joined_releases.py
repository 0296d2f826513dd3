"""The joint check: every figure is the one of the definition, and each attack has its own line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import oracle_linked as oracle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_linked import ReleasedRow

from sfumato.evaluation.audit import narrowed_classes
from sfumato.evaluation.audit.joined_releases import JointReport, check_jointly
from sfumato.evaluation.audit.personal_release import PersonalRelease
from sfumato.policy import InputOptions, merge_flags
from sfumato.tables.sources.source import open_source

K = 2
Row = tuple[int, str, str, str]
"""A person, a released quasi-identifier, a ward, a diagnosis."""

ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("du")),
    min_size=1,
    max_size=9,
)


def release(
    name: str,
    rows: Sequence[Row],
    *,
    kept: Sequence[str] = (),
    pseudonyms: bool = False,
    quasi_identifier: str = "age",
    **flags: Any,
) -> PersonalRelease:
    """A finished release in memory. kept: which of ward and diagnosis it shows."""
    persons, ages, wards, diagnoses = zip(*rows, strict=True)
    columns: dict[str, Sequence[str]] = {quasi_identifier: ages, "ward": wards, "diagnosis": diagnoses}
    shown = {column: list(columns[column]) for column in (quasi_identifier, *kept)}
    if pseudonyms:
        shown["patient"] = [f"P{person}" for person in persons]
    policy = merge_flags(
        quasi_identifiers=[quasi_identifier],
        other=[column for column in kept if column != flags.get("sensitive")],
        **({"pseudonyms": "patient", "accept_linkable": "patient"} if pseudonyms else {"identifiers": "patient"}),
        **{"k": K, **flags},
    )
    source = open_source(pa.table(shown), InputOptions())
    return PersonalRelease(name, source, np.array(persons), "patient", policy, policy.requirements())


def seen(rows: Sequence[Row], kept: Sequence[str] = ()) -> list[ReleasedRow]:
    """The same for the oracle."""
    return [
        ReleasedRow(person, age, {name: value for name, value in (("ward", ward), ("diagnosis", ill)) if name in kept})
        for person, age, ward, ill in rows
    ]


def values(report: JointReport, attack: str) -> list[Any]:
    return [line.verdict.value for line in report.lines if line.attack == attack]


def outcomes(report: JointReport, attack: str) -> list[bool | None]:
    return [line.verdict.holds for line in report.lines if line.attack == attack]


@given(st.lists(ROWS, min_size=2, max_size=3))
def test_pseudonyms_leave_the_persons_with_the_same_classes(tables: list[list[Row]]) -> None:
    report = check_jointly([release(f"t{n}", rows, pseudonyms=True) for n, rows in enumerate(tables)])
    judged = [seen(rows) for rows in tables]
    alike, counted = (oracle.fewest_alike(judged, counted=counted) for counted in (False, True))
    assert values(report, "pseudonyms") == [alike]
    assert values(report, "records-per-person") == [counted]
    assert outcomes(report, "pseudonyms") == [alike >= K]
    assert outcomes(report, "records-per-person") == [counted >= K]
    assert report.persons_if_joined == alike


@given(st.lists(ROWS, min_size=2, max_size=3), st.booleans())
def test_shared_columns_leave_those_whose_values_occur_elsewhere(tables: list[list[Row]], both: bool) -> None:
    kept = ("ward", "diagnosis") if both else ("ward",)
    report = check_jointly([release(f"t{n}", rows, kept=kept) for n, rows in enumerate(tables)])
    judged = [seen(rows, kept) for rows in tables]
    for number, value in enumerate(values(report, "shared-columns")):
        others = [rows for other, rows in enumerate(judged) if other != number]
        expected = oracle.fewest_left(judged[number], others, K)
        assert value == (K if expected is None else expected)
        assert outcomes(report, "shared-columns")[number] is (expected is None or expected >= K)
    assert len(values(report, "shared-columns")) == len(tables)


@given(ROWS, ROWS)
def test_sensitive_values_are_counted_among_the_records_that_are_left(one: list[Row], other: list[Row]) -> None:
    first = release("first", one, kept=("ward", "diagnosis"), sensitive="diagnosis", require="distinct(diagnosis, l=2)")
    report = check_jointly([first, release("second", other, kept=("ward",))])
    expected = oracle.fewest_different(seen(one, ("ward", "diagnosis")), [seen(other, ("ward",))], "diagnosis")
    (line,) = [line for line in report.lines if "diversity" in line.verdict.requirement]
    assert (line.verdict.value, line.verdict.holds) == (expected, expected >= 2)


@given(ROWS, ROWS)
def test_a_pseudonym_in_some_tables_and_a_shared_column_in_others_are_used_together(
    one: list[Row], other: list[Row]
) -> None:
    # The third table shows no pseudonyms. In the first two, persons are told apart by all classes that they are in.
    third = [(person, "a", ward, ill) for person, _, ward, ill in one]
    tables = [release("one", one, kept=("ward",), pseudonyms=True), release("other", other, pseudonyms=True)]
    report = check_jointly([*tables, release("third", third, kept=("ward",))])
    joined = [seen(one, ("ward",)), seen(other)]
    rows = joined[0]
    for counted in (True, False):
        if oracle.fewest_alike(joined, counted=counted) >= K:
            rows = [
                ReleasedRow(row.person, (row.group, oracle.signature(row.person, joined, counted=counted)), row.kept)
                for row in rows
            ]
            break
    expected = oracle.fewest_left(rows, [seen(third, ("ward",))], K)
    assert values(report, "shared-columns")[0] == (K if expected is None else expected)


def test_a_join_by_pseudonyms_is_narrowed_further_by_a_shared_column() -> None:
    # Pseudonyms leave 1 and 2, or 3 and 4. The third release shows that 1 and 3 were in ward x. So 1 is alone.
    one = [(person, "a", ward, "d") for person, ward in ((1, "x"), (2, "y"), (3, "x"), (4, "y"))]
    other = [(person, age, "x", "d") for person, age in ((1, "a"), (2, "a"), (3, "b"), (4, "b"))]
    third = [(person, "a" if ward == "x" else "b", ward, "d") for person, _, ward, _ in one]
    kept = {"kept": ("ward",)}
    by_ward = check_jointly([release("one", one, **kept), release("other", other), release("third", third, **kept)])
    assert values(by_ward, "shared-columns") == [2, 2]
    both = check_jointly(
        [
            release("one", one, **kept, pseudonyms=True),
            release("other", other, pseudonyms=True),
            release("third", third, **kept),
        ]
    )
    assert (values(both, "pseudonyms"), values(both, "shared-columns")) == ([2], [1, 2])
    assert outcomes(both, "shared-columns") == [False, True]


def test_releases_that_pseudonyms_join_gain_nothing_from_a_shared_column() -> None:
    rows = [(1, "a", "x", "d"), (2, "a", "y", "d")]
    report = check_jointly([release(name, rows, kept=("ward",), pseudonyms=True) for name in ("one", "other")])
    assert report.open_lines(set()) == []
    (line,) = [line for line in report.lines if line.attack == "shared-columns"]
    assert line.verdict.requirement == "no column is kept in two releases that pseudonyms do not join"


def test_a_diagnosis_that_two_classes_have_in_common_is_the_persons() -> None:
    # Person 1 is in class a of both releases. Only one diagnosis is in both classes, so it is that of person 1.
    one = [(1, "a", "x", "flu"), (2, "a", "x", "cold"), (3, "b", "x", "flu"), (4, "b", "x", "cold")]
    other = [(1, "a", "x", "flu"), (3, "a", "x", "burn"), (2, "b", "x", "cold"), (4, "b", "x", "burn")]
    report = check_jointly(
        [release(name, rows, kept=("diagnosis",)) for name, rows in (("one", one), ("other", other))]
    )
    assert outcomes(report, "shared-columns") == [False, False]
    assert values(report, "shared-columns") == [1, 1]
    assert [line.verdict.requirement for line in report.open_lines({"pseudonyms"})] == [
        "k = 2 persons remain for the records of one, joined by the kept columns 'diagnosis'",
        "k = 2 persons remain for the records of other, joined by the kept columns 'diagnosis'",
    ]
    assert report.open_lines({"shared-columns"}) == []


def test_values_that_differ_for_a_person_mislead_and_narrow_nothing() -> None:
    one = [(1, "a", "x", "d"), (2, "a", "y", "d")]
    other = [(1, "a", "y", "d"), (2, "a", "x", "d")]  # the wards of another year
    report = check_jointly([release(name, rows, kept=("ward",)) for name, rows in (("one", one), ("other", other))])
    assert values(report, "shared-columns") == [2, 2]


def test_overlapping_boxes_alone_join_nothing_and_the_figure_says_what_they_would_leave() -> None:
    one = [(1, "a", "x", "d"), (2, "a", "x", "d"), (3, "b", "x", "d"), (4, "b", "x", "d")]
    other = [(1, "a", "x", "d"), (3, "a", "x", "d"), (2, "b", "x", "d"), (4, "b", "x", "d")]
    report = check_jointly([release("one", one, kept=("ward",)), release("other", other, kept=("diagnosis",))])
    assert [(line.attack, line.verdict.holds) for line in report.lines] == [
        ("pseudonyms", True),
        ("shared-columns", True),
        ("kept-quasi-identifiers", True),
    ]
    assert report.persons_if_joined == 1


def test_a_quasi_identifier_that_is_kept_elsewhere_fails() -> None:
    rows = [(1, "a", "x", "d"), (2, "a", "y", "d")]
    report = check_jointly([release("one", rows, quasi_identifier="ward"), release("other", rows, kept=("ward",))])
    assert outcomes(report, "kept-quasi-identifiers") == [False]
    (line,) = report.open_lines(set())
    assert line.verdict.requirement == "'ward', a quasi-identifier of one, is not kept as it is in other"


def test_parts_of_too_many_records_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrowed_classes, "MOST_ROWS", 1)
    one = [(1, "a", "x", "flu"), (2, "a", "x", "cold"), (3, "a", "y", "flu"), (4, "a", "y", "cold")]
    other = [(1, "a", "x", "flu"), (2, "a", "x", "burn"), (3, "b", "y", "cold"), (4, "b", "y", "burn")]
    first = release("first", one, kept=("ward", "diagnosis"), sensitive="diagnosis", require="distinct(diagnosis, l=2)")
    report = check_jointly([first, release("second", other, kept=("ward",))])
    (line,) = [line for line in report.lines if "diversity" in line.verdict.requirement]
    assert line.verdict.holds is None
    assert line.verdict.reason == narrowed_classes.UNTESTED
    assert line in report.open_lines(set())
