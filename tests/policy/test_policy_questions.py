"""What callers ask a policy: requirements, kept columns, weights, how files are read, how much may be left out."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from sfumato.errors import PolicyError
from sfumato.policy import InputOptions, Policy, WrittenText, merge_flags
from sfumato.requirements import (
    DistinctDiversity,
    FrequencyDiversity,
    Joint,
    KAnonymity,
    Requirements,
    WithoutPersons,
)


@dataclass(frozen=True)
class Column:
    name: str


def test_requirements_are_k_and_those_of_the_sensitive_columns() -> None:
    policy = merge_flags(None, quasi_identifiers=["age"], sensitive="ill", k=3, l=2, require="distinct(ill, l=4)")
    expected = (KAnonymity(3, "records"), FrequencyDiversity("ill", 2), DistinctDiversity("ill", 4))
    assert policy.requirements() == Requirements(expected)
    assert policy.requirements_without_persons() == Requirements(expected)


def test_without_persons_every_requirement_is_judged_by_records() -> None:
    policy = merge_flags(None, quasi_identifiers=["age"], sensitive="ill", k=3, l=2, person="patient")
    assert policy.requirements().person == "patient"
    assert policy.requirements().parts[0] == KAnonymity(3, "persons")
    assert policy.requirements_without_persons() == Requirements(
        (WithoutPersons(KAnonymity(3, "persons")), WithoutPersons(FrequencyDiversity("ill", 2)))
    )


def test_joint_requirements_name_every_sensitive_column() -> None:
    policy = merge_flags(
        None, quasi_identifiers=["age"], sensitive=["ill", "pay"], k=3, joint=True, require="distinct(ill, l=2)"
    )
    assert policy.requirements() == Requirements(
        (KAnonymity(3), Joint(DistinctDiversity("ill", 2))), joint=("ill", "pay")
    )


def test_an_incomplete_policy_has_no_requirements() -> None:
    with pytest.raises(PolicyError, match="k is absent"):
        merge_flags(None, quasi_identifiers=["age"]).requirements()


@pytest.mark.parametrize(
    ("other", "kept"),
    [("keep", ["note", "age", "ill", "more"]), ("drop", ["age", "ill"]), (None, ["age", "ill"])],
)
def test_kept_columns_follow_the_order_of_the_table(other: str | None, kept: list[str]) -> None:
    policy = merge_flags(None, quasi_identifiers="age", sensitive="ill", identifiers="name", other=other)
    assert policy.kept_columns(["note", "name", "age", "ill", "more"]) == kept


def test_a_dropped_column_is_neither_kept_nor_an_identifier() -> None:
    policy = merge_flags(None, quasi_identifiers="age", drop=["cost", "note"], other="keep", k=2)
    assert policy.kept_columns(["cost", "age", "note", "more"]) == ["age", "more"]
    assert policy.dropped == ("cost", "note")
    assert policy.identifiers == ()
    with pytest.raises(PolicyError, match="'cost' is not an identifier"):
        merge_flags(policy, person="cost").check_complete()


def test_weights_follow_the_order_of_the_domains() -> None:
    policy = merge_flags(None, quasi_identifiers=["a", "b", "c"], weight={"a": 2.0, "c": 0.5})
    assert policy.weights([Column("c"), Column("b"), Column("a")]) == [0.5, 1.0, 2.0]


def test_input_options_are_those_of_the_policy() -> None:
    settings = {"separator": ".", "encoding": "cp1252", "decimal": ",", "nulls": ["", "NA"], "sheet": "2024"}
    policy = Policy.from_dict({"input": settings})
    assert policy.input_options == InputOptions(
        separator=".", encoding="cp1252", decimal=",", nulls=("", "NA"), sheet="2024"
    )


@pytest.mark.parametrize(
    ("read", "written", "tabs", "separator"),
    [
        ({}, {}, False, ","),
        ({}, {}, True, "\t"),
        ({"separator": ";"}, {}, False, ";"),
        ({"separator": ";"}, {}, True, ";"),
        ({"separator": ";"}, {"separator": "|"}, False, "|"),
        ({}, {"decimal": ","}, False, ";"),
        ({}, {"decimal": ","}, True, "\t"),
        ({"separator": "|"}, {"decimal": ","}, False, "|"),
    ],
)
def test_a_release_has_the_separator_of_the_input_unless_the_policy_or_its_numbers_ask_for_another(
    read: dict[str, str], written: dict[str, str], tabs: bool, separator: str
) -> None:
    policy = Policy.from_dict({"input": {"encoding": "cp1252", **read}, "release": written})
    assert policy.written_text(tabs=tabs) == WrittenText(separator, "utf-8", written.get("decimal", "."))  # type: ignore[arg-type]


@pytest.mark.parametrize(("share", "records", "most"), [(0.07, 100, 7), (0.0, 100, 0), (0.1, 19, 1), (0.29, 100, 29)])
def test_most_suppressed_is_the_share_rounded_down(share: float, records: int, most: int) -> None:
    assert merge_flags(None, max_suppressed=share).most_suppressed(records) == most


def test_reading_a_policy_loads_nothing_heavy() -> None:
    code = (
        "import sys, sfumato.policy as policy\n"
        "asked = policy.merge_flags(None, quasi_identifiers='age', k=2)\n"
        "asked.input_options, asked.kept_columns(['age']), asked.most_suppressed(10)\n"
        "print(sorted({'numpy', 'numba', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
