"""The sections ``[derive.NAME]`` of a policy: what they hold, and how they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.cli.flag_values import derivations
from sfumato.errors import PolicyError, UsageError
from sfumato.policy import Policy, merge_flags

TEXT = """\
[derive.age]
from = "birth_date"
to = "admission"
unit = "years"

[derive.chapter]
from = "icd"
groups = "codes/icd.csv"
level = 2
"""


def loaded(text: str, folder: Path) -> Policy:
    (folder / "p.toml").write_text(text)
    return Policy.load(folder / "p.toml")


def test_a_policy_file_says_how_columns_are_made(tmp_path: Path) -> None:
    policy = loaded(TEXT, tmp_path)
    age, chapter = policy.derive["age"], policy.derive["chapter"]
    assert (age.source, age.to, age.unit, age.columns) == (
        "birth_date", "admission", "years", ("birth_date", "admission")
    )  # fmt: skip
    assert (chapter.columns, chapter.groups, chapter.level) == (("icd",), "codes/icd.csv", 2)
    assert policy.groups_path("chapter") == tmp_path / "codes/icd.csv"


def test_a_saved_policy_leads_to_the_same_taxonomy(tmp_path: Path) -> None:
    policy = loaded(TEXT, tmp_path)
    (tmp_path / "deep").mkdir()
    policy.save(tmp_path / "deep" / "q.toml")
    again = Policy.load(tmp_path / "deep" / "q.toml")
    assert again.derive["chapter"].groups == "../codes/icd.csv"
    assert again == policy


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('to = "b"\nunit = "years"', "line 1: from of the derived column 'x' is missing."),
        ('from = ""\nfirst = 1', "line 2: from of the derived column 'x' must be a name, not ''."),
        ('from = "a"', "line 1: derive.x must have one of the keys unit, first, part, groups and ready."),
        ('from = "a"\nto = "b"', "line 1: unit of the derived column 'x' is missing: choose one of 'years', 'months', "
         "'days'."),
        ('from = "a"\nunit = "days"', "line 1: to of the derived column 'x' is missing: a time needs a second column "
         "of dates."),
        ('from = "a"\nto = "b"\nunit = "weeks"', "line 4: unit of the derived column 'x' must be one of 'years', "
         "'months', 'days', not 'weeks'."),
        ('from = "a"\nfirst = 0', "line 3: first of the derived column 'x' must be a whole number of at least 1, "
         "not 0."),
        ('from = "a"\npart = "hour"', "line 3: part of the derived column 'x' must be one of 'year', 'quarter', "
         "'month', 'weekday', 'year-quarter', 'year-month', not 'hour'."),
        ('from = "a"\nfirst = 2\npart = "year"', "line 4: part of the derived column 'x' does not go with first. "
         "Remove one of the two."),
        ('from = "a"\nfirst = 2\nlevel = 1', "line 4: level of the derived column 'x' is only for groups. Remove it."),
        ('from = "a"\ngroups = "f.csv"\nlevel = 0', "line 4: level of the derived column 'x' is 0, which has no "
         "groups. The levels with groups are those from 1 on."),
        ('from = "a"\ngroups = "f.csv"\nlevel = "block"', "line 4: level of the derived column 'x' is a name, but only "
         "the levels of calendars and ready-made taxonomies have names. Write its number."),
        ('from = "a"\nready = "icd-10"\nlevel = "code"', "line 4: level of the derived column 'x' is 'code', which has "
         "no groups. The levels with groups are 'category', 'block', 'chapter'."),
        ('from = "a"\nready = "icd-10"\nlevel = 4', "line 4: level of the derived column 'x' is 4, which has no "
         "groups. The levels with groups are 'category', 'block', 'chapter'."),
        ('from = "a"\nfist = 2', "line 3: unknown key 'fist' in [derive.x]. Did you mean 'first'?"),
    ],
)  # fmt: skip
def test_a_wrong_section_names_its_line(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        loaded(f"[derive.x]\n{text}\n", tmp_path)
    assert str(caught.value).partition("p.toml, ")[2] == says


def test_a_flag_replaces_the_rule_of_a_file_and_is_not_blamed_on_it(tmp_path: Path) -> None:
    policy = loaded(TEXT, tmp_path)
    merged = merge_flags(policy, derive={"age": {"from": "year", "first": 2}})
    assert merged.to_dict()["derive"]["age"] == {"from": "year", "first": 2}
    assert merged.derive["chapter"] == policy.derive["chapter"]
    with pytest.raises(PolicyError, match=r"^unit of the derived column 'age' is missing"):
        merge_flags(policy, derive={"age": {"from": "year", "to": "b"}})


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("years(born, seen)", {"from": "born", "to": "seen", "unit": "years"}),
        ("days(a,b)", {"from": "a", "to": "b", "unit": "days"}),
        ("first(zip code, 3)", {"from": "zip code", "first": 3}),
        ("year-month(seen)", {"from": "seen", "part": "year-month"}),
        ("groups(icd, icd.csv)", {"from": "icd", "groups": "icd.csv"}),
        ("ready(icd, icd-10, chapter)", {"from": "icd", "ready": "icd-10", "level": "chapter"}),
        ("groups(icd, icd.csv, 2)", {"from": "icd", "groups": "icd.csv", "level": 2}),
    ],
)
def test_a_flag_is_written_like_a_function(text: str, rule: dict[str, object]) -> None:
    assert derivations([f"new={text}"]) == {"new": rule}


@pytest.mark.parametrize("text", ["x", "new=", "new=years", "new=years(a)", "new=first(a,b)", "new=year()", "=year(a)"])
def test_a_flag_that_is_not_understood_says_how_to_write_it(text: str) -> None:
    with pytest.raises((UsageError, PolicyError)) as caught:
        merge_flags(None, derive=derivations([text]))
    assert "Write it as --derive COL=RULE, where RULE is years(FROM,TO), first(COL,N)" in str(caught.value) or (
        "must be one of 'year', 'quarter'" in str(caught.value)
    )
