"""What the records of a class say of its persons, when nobody knows whose the records are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import sfumato
from sfumato.cli.output import TextConsole
from sfumato.cli.summaries import show_audit
from sfumato.evaluation.audit.audit import AuditReport, audit_classes, class_key, require_pass
from sfumato.parameters import Parameter, whole_number
from sfumato.policy import InputOptions, Policy, merge_flags
from sfumato.requirements import ClassCounts, Requirement, Verdict, WithoutPersons, all_hold, kinds
from sfumato.requirements.without_persons import REASONS
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import open_source

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
KINDS = [
    ("frequency", {"l": 2}),
    ("frequency", {"l": 3}),
    ("distinct", {"l": 2}),
    ("distinct", {"l": 3}),
    ("entropy", {"l": 2}),
    ("entropy", {"l": 3}),
    ("recursive", {"c": 2, "l": 1}),
    ("recursive", {"c": 2, "l": 2}),
    ("recursive", {"c": 1, "l": 3}),
    ("variance", {"v": 1}),
    ("t-closeness", {"t": 0.25}),
    ("t-closeness", {"t": 0.25, "distance": "ordered"}),
    ("alpha-k", {"alpha": 0.5}),
    ("beta-likeness", {"beta": 1}),
    ("delta-disclosure", {"delta": 1}),
]
OTHERS = ("variance", "t-closeness", "alpha-k", "beta-likeness", "delta-disclosure")
by_kind = pytest.mark.parametrize("kind, parameters", KINDS, ids=str)


def policy_of(kind: str, parameters: dict[str, Any], k: int = 2, **privacy: Any) -> Policy:
    asked = {"attribute": "pay", "kind": kind, **parameters}
    roles = {"age": "quasi-identifier", "pay": "sensitive", "ward": "sensitive", "pid": "identifier"}
    columns = {name: {"role": role} for name, role in roles.items()}
    return Policy.from_dict({"columns": columns, "privacy": {"k": k, "person": "pid", "sensitive": [asked], **privacy}})


def audited(rows: Sequence[dict[str, Any]], policy: Policy, *, persons: bool) -> tuple[Verdict, ...]:
    """The lines on k and on the sensitive column: with the person of each row, or as of a file without them."""
    table = pa.table({"age": [row["age"] for row in rows], "pay": pa.array([row["pay"] for row in rows], pa.int64())})
    source = open_source(table.append_column("ward", pa.array([row["ward"] for row in rows])), InputOptions())
    classes = find_classes(source, class_key(policy, source.names), by_row=True)
    if not persons:
        return audit_classes(source, classes, policy, policy.requirements_without_persons(), {}).verdicts
    keys = np.array([row["pid"] for row in rows], np.uint32)
    return audit_classes(source, classes, policy, policy.requirements(), {}, keys).verdicts


def visits(classes: Sequence[Sequence[int | None]], persons: Sequence[int]) -> list[dict[str, Any]]:
    """One row for each value of each class, with the person whose it is."""
    cells = [(str(age), pay) for age, pays in enumerate(classes) for pay in pays]
    return [{"age": age, "pay": pay, "ward": "a", "pid": pid} for (age, pay), pid in zip(cells, persons, strict=True)]


def assignments(records: int) -> Iterator[list[int]]:
    """Every way to say which records belong to the same person."""

    def of(first: list[int]) -> Iterator[list[int]]:
        if len(first) == records:
            yield first
            return
        for person in range(max(first, default=-1) + 2):
            yield from of([*first, person])

    return of([])


@given(data=st.data())
def test_what_is_said_without_persons_is_so_whoever_they_are(data: st.DataObject) -> None:
    kind, parameters = data.draw(st.sampled_from(KINDS))
    null = data.draw(st.sampled_from(["missing"] if kind == "variance" else ["missing", "value"]))
    joint = data.draw(st.booleans())
    policy = policy_of(kind, parameters, data.draw(st.integers(1, 3)), joint=joint, null_sensitive=null)
    row = st.fixed_dictionaries(
        {
            "age": st.sampled_from("123"),
            "pay": st.sampled_from([1, 2, 3, 4, None]),
            "ward": st.sampled_from("ab"),
            "pid": st.integers(0, 5),
        }
    )
    rows = data.draw(st.lists(row, min_size=1, max_size=20))
    in_file, in_run = (audited(rows, policy, persons=persons) for persons in (False, True))
    exact = oracle.Counting("pid", ("pay", "ward") if joint else (), null_is_value=null == "value")
    met = [
        oracle.smallest_membership(rows, ["age"], exact) >= policy.k,
        oracle.is_met(oracle.Asked(kind, "pay", parameters), rows, ["age"], exact),
    ]
    assert [verdict.holds for verdict in in_run] == met
    for verdict, counted, true in zip(in_file, in_run, met, strict=True):
        assert verdict.requirement == counted.requirement
        assert verdict.holds in (true, None)
        assert (verdict.reason, verdict.counted) == (REASONS[verdict.holds], "records")
    if kind == "distinct":
        assert in_file[1].holds is met[1]
    # The figure is the one of records: of persons with one record each.
    alone = [{**row, "pid": number} for number, row in enumerate(rows)]
    assert [verdict.value for verdict in in_file] == [verdict.value for verdict in audited(alone, policy, persons=True)]


@by_kind
def test_every_class_of_three_records_is_judged_by_every_choice_of_persons(
    kind: str, parameters: dict[str, Any]
) -> None:
    policy = policy_of(kind, parameters)
    for values in combinations_with_replacement([1, 2, 9, None], 3):
        said = [verdict.holds for verdict in audited(visits([values], range(3)), policy, persons=False)]
        found = [
            [verdict.holds for verdict in audited(visits([values], persons), policy, persons=True)]
            for persons in assignments(3)
        ]
        for line, holds in enumerate(said):
            outcomes = {each[line] for each in found}
            assert holds is None or outcomes == {holds}
            if kind in ("frequency", "distinct", "entropy") and outcomes == {False}:
                assert holds is False  # nothing that must fail is called unchecked


@pytest.mark.parametrize("l", [2, 3])
@pytest.mark.parametrize("kind, more", [("frequency", {}), ("entropy", {}), ("recursive", {"c": 9})])
def test_fewer_than_l_different_values_fail_and_as_many_are_not_checked(
    kind: str, more: dict[str, Any], l: int
) -> None:
    policy = policy_of(kind, {"l": l, **more})
    for different, holds in ((l - 1, False), (l, None), (l + 1, None)):
        classes = [list(range(l + 1)), [number % different for number in range(40)]]
        verdict = audited(visits(classes, range(41 + l)), policy, persons=False)[1]
        assert (verdict.holds, verdict.reason) == (holds, REASONS[holds])


@pytest.mark.parametrize("values, holds", [([1, 2, None], None), ([1, 1, None], False), ([None] * 3, None)])
def test_nulls_are_no_values_and_a_class_of_nothing_else_has_nothing_to_guess(
    values: list[int | None], holds: bool | None
) -> None:
    verdict = audited(visits([values, [1, 2]], range(5)), policy_of("frequency", {"l": 2}), persons=False)[1]
    assert verdict.holds is holds


@pytest.mark.parametrize("kind, parameters", [each for each in KINDS if each[0] in OTHERS])
def test_other_kinds_are_not_checked_and_show_the_figure_of_the_records(kind: str, parameters: dict[str, Any]) -> None:
    policy, rows = policy_of(kind, parameters), visits([[1, 2, 3], [1, 1, 2, 3]], range(7))
    verdict = audited(rows, policy, persons=False)[1]
    assert (verdict.holds, verdict.reason) == (None, REASONS[None])
    assert verdict.value == audited(rows, policy, persons=True)[1].value


def test_one_person_in_every_class_needs_no_persons() -> None:
    rows = visits([[1], [2, 3]], range(3))
    assert audited(rows, policy_of("distinct", {"l": 1}, k=1), persons=False)[0].holds is True
    assert audited(rows, policy_of("distinct", {"l": 1}, k=2), persons=False)[0].holds is False


def test_joint_requirements_are_judged_in_every_part() -> None:
    rows = [
        {"age": "1", "pay": pay, "ward": ward, "pid": number}
        for number, (pay, ward) in enumerate([(1, "a"), (2, "a"), (1, "b"), (1, "b")])
    ]
    alone, jointly = (policy_of("frequency", {"l": 2}, joint=joint) for joint in (False, True))
    assert audited(rows, alone, persons=False)[1].holds is None
    verdict = audited(rows, jointly, persons=False)[1]
    assert (verdict.requirement, verdict.holds) == ("frequency l-diversity of 'pay', l = 2, jointly", False)
    assert audited(rows[:2], jointly, persons=False)[1].holds is None
    exact = policy_of("distinct", {"l": 2}, joint=True)
    assert [audited(some, exact, persons=False)[1].holds for some in (rows[:2], rows)] == [True, False]


# ---- kinds of other packages ----


@dataclass(frozen=True)
class Span(Requirement):
    """At least ``least`` between the smallest and the largest number of a class; declares nothing of persons."""

    attribute: str
    least: int
    kind = "span"
    parameters = {"least": Parameter(whole_number(1))}  # noqa: RUF012
    closed_under_union = True
    closed_under_addition = True

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        histogram = classes.histograms[self.attribute]
        low, high = np.full(len(classes.sizes), np.inf), np.full(len(classes.sizes), -np.inf)
        np.minimum.at(low, histogram.owner, histogram.numbers[histogram.value])
        np.maximum.at(high, histogram.owner, histogram.numbers[histogram.value])
        result: NDArray[np.bool_] = high - low >= self.least
        return result

    def verdict(self, classes: ClassCounts) -> Verdict:
        return Verdict(f"span of {self.attribute!r}, least = {self.least}", bool(self.holds(classes).all()), 0)


@dataclass(frozen=True)
class DeclaredSpan(Span):
    """The same, and says that records decide it."""

    kind = "declared-span"

    def possible_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self.holds(classes)

    certain_in_persons = possible_in_persons


@pytest.mark.parametrize("kind, wide, narrow", [(Span, None, None), (DeclaredSpan, True, False)])
def test_a_kind_of_another_package_is_checked_as_far_as_it_declares(
    kind: type[Span], wide: bool | None, narrow: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {**kinds(), kind.kind: kind}
    monkeypatch.setattr("sfumato.requirements.kinds", lambda: known)
    policy = policy_of(kind.kind, {"least": 3})
    assert audited(visits([[1, 4], [2, 9]], range(4)), policy, persons=False)[1].holds is wide
    assert audited(visits([[1, 4], [2, 3]], range(4)), policy, persons=False)[1].holds is narrow


# ---- verdicts of three kinds ----


@pytest.mark.parametrize(
    "verdicts, together",
    [([], True), ([True], True), ([True, None], None), ([None, False, True], False), ([None, None], None)],
)
def test_what_fails_outweighs_what_is_not_checked(verdicts: list[bool | None], together: bool | None) -> None:
    assert all_hold(verdicts) is together


def test_the_worse_of_two_parts_has_the_reason_of_what_it_says() -> None:
    asked = WithoutPersons(policy_of("frequency", {"l": 2}).requirements().parts[1])
    line = Verdict("", True, 3.0)
    held, open_, failed = (replace(line, holds=holds, reason=REASONS[holds]) for holds in (True, None, False))
    for one, other, worst in [(held, open_, None), (open_, failed, False), (held, failed, False), (held, held, True)]:
        for joined in (asked.worse(one, other), asked.worse(other, one)):
            assert (joined.holds, joined.reason) == (worst, REASONS[worst])


def test_a_verdict_still_takes_what_it_took() -> None:
    assert Verdict("k", True, 2) == Verdict("k", True, 2, False, "", "")


def report_of(*verdicts: bool | None) -> AuditReport:
    return AuditReport(tuple(Verdict(str(holds), holds, 1) for holds in verdicts), 6, 2, 3)


def test_a_report_tells_what_failed_from_what_was_not_checked() -> None:
    report = report_of(True, None, False)
    assert ([each.holds for each in report.failed], [each.holds for each in report.unchecked]) == ([False], [None])
    assert not report.holds
    assert repr(report).startswith("<AuditReport: 1 of 3 requirements fail, 1 not checked; ")
    unchecked = report_of(True, None)
    assert (unchecked.holds, unchecked.failed) == (False, ())
    assert repr(unchecked).startswith("<AuditReport: 0 of 2 requirements fail, 1 not checked; ")


def test_a_kind_may_leave_a_line_open_without_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    lines = report_of(None).as_dict()
    assert lines == [{"requirement": "None", "holds": None, "value": 1, "reason": ""}]
    show_audit(TextConsole(), lines)
    assert capsys.readouterr().out == "NOT CHECKED None\n"


def test_a_kind_may_judge_with_the_truth_values_of_numpy() -> None:
    report = AuditReport(tuple(Verdict("kind", holds, 1) for holds in (np.False_, np.True_, None)), 6, 2, 3)
    assert (report.failed, report.unchecked) == (report.verdicts[:1], report.verdicts[2:])
    assert [line["holds"] for line in report.as_dict()] == [False, True, None]
    assert json.dumps(report.as_dict()).count("null") == 1


def test_a_release_of_our_own_must_be_checked_in_full() -> None:
    require_pass(report_of(True))
    with pytest.raises(sfumato.AuditError, match=r"did not pass its audit \(None\)"):
        require_pass(report_of(True, None))


def test_the_release_of_forty_equal_diagnoses_fails() -> None:
    released = pa.table({"age": ["[20..40]"] * 20 + ["[41..90]"] * 20, "illness": ["flu"] * 40})
    asked = merge_flags(None, quasi_identifiers=["age"], sensitive="illness", k=5, l=2, person="pid")
    report = sfumato.audit(released, asked)
    assert [(line.requirement, line.holds, line.value) for line in report.verdicts] == [
        ("k-anonymity, k = 5, in persons", None, 20),
        ("frequency l-diversity of 'illness', l = 2", False, 1.0),
    ]
