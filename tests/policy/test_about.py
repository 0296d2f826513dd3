"""``[about]``: what readers are told about a release. It is kept and shown, and decides nothing about the rows."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import get_args

import pytest

import sfumato
from sfumato.errors import PolicyError
from sfumato.policy import LanguageCode, Policy, merge_flags
from sfumato.releases.run_record import ClassRecipe
from sfumato.texts import LANGUAGES

ABOUT = '[about]\ntitle = " Stays "\nauthor = "Office"\npurpose = "Research"\ndate = 2026-03-31\nlanguage = "de"\n'


def test_every_key_is_read_and_written_again(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(ABOUT, "utf-8")
    policy = Policy.load(tmp_path / "policy.toml")
    assert policy.about.title == "Stays"
    assert policy.about.date == datetime.date(2026, 3, 31)
    policy.save(tmp_path / "again.toml")
    again = Policy.load(tmp_path / "again.toml")
    assert again == policy
    assert again.to_dict()["about"] == {
        "title": "Stays",
        "author": "Office",
        "purpose": "Research",
        "date": "2026-03-31",
        "language": "de",
    }


def test_a_policy_without_it_is_what_it_was() -> None:
    assert "about" not in Policy.from_dict({"privacy": {"k": 3}}).to_dict()
    assert Policy().about.language == "en"


def test_the_languages_of_a_policy_are_those_of_the_catalogues() -> None:
    assert set(get_args(LanguageCode)) == set(LANGUAGES)


@pytest.mark.parametrize(
    "about, message",
    [
        ({"title": ""}, "title must be text of at most 2,000 characters."),
        ({"purpose": "x" * 2001}, "purpose must be text of at most 2,000 characters."),
        ({"author": 5}, "author must be text of at most 2,000 characters."),
        ({"date": "31.3.2026"}, "date must be a day, such as 2026-03-31, not '31.3.2026'."),
        ({"date": datetime.datetime(2026, 3, 31)}, "date must be a day, such as 2026-03-31"),
        ({"language": "fr"}, "language must be one of 'en', 'de', not 'fr'."),
        ({"titel": "x"}, "unknown key 'titel' in [about]. Did you mean 'title'?"),
    ],
)
def test_what_cannot_be_shown_is_refused(about: dict[str, object], message: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(message)):
        Policy.from_dict({"about": about})


def test_a_flag_sets_the_language_and_keeps_the_rest() -> None:
    merged = merge_flags({"about": {"title": "Stays"}}, language="de")
    assert merged.to_dict() == {"about": {"title": "Stays", "language": "de"}}


def test_it_changes_no_row_and_no_class_and_the_certificate_has_it(tmp_path: Path) -> None:
    rows = "age,sex\n" + "".join(f"{20 + n % 7},{'fm'[n % 2]}\n" for n in range(40))
    (tmp_path / "table.csv").write_text(rows)
    base = {"columns": {"age": {"role": "quasi-identifier"}, "sex": {"role": "quasi-identifier"}}, "privacy": {"k": 3}}
    about = {"title": "Stays", "date": datetime.date(2026, 3, 31)}
    plain, told = Policy.from_dict(base), Policy.from_dict({**base, "about": about})
    assert ClassRecipe(plain).digest == ClassRecipe(told).digest
    for name, policy in (("plain", plain), ("told", told)):
        sfumato.anonymize(tmp_path / "table.csv", policy).write(tmp_path / f"{name}.csv")
    assert (tmp_path / "plain.csv").read_bytes() == (tmp_path / "told.csv").read_bytes()
    certificate = json.loads((tmp_path / "told.csv.sfumato.json").read_text("utf-8"))
    assert certificate["policy"]["about"] == {"title": "Stays", "date": "2026-03-31"}
    assert certificate["format"] == 2
