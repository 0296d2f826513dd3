"""Messages in German: every error of the page itself, every warning of a run, and why a policy cannot be met."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from english_words import english_words

import sfumato.app
from sfumato.app.message_texts import message_text
from sfumato.errors import InfeasibleError, SfumatoError
from sfumato.evaluation.linkability.refusal import refuse_linkable
from sfumato.pipeline.prepare import policy_warnings
from sfumato.pipeline.recognition import _earlier_warnings
from sfumato.policy import Policy
from sfumato.releases.earlier_releases import EarlierReleases
from sfumato.taxonomies import group_tree
from sfumato.texts import texts_in

GERMAN = texts_in("de")
APP = Path(sfumato.app.__file__).parent
# They are printed on the terminal, before there is a page.
TERMINAL = "server.py"


def german(text: str) -> str:
    """The message as the page says it, without its values and commands."""
    said = message_text(text, GERMAN)
    assert 'lang="en"' not in said, text
    return re.sub(r"&#x27;.*?&#x27;|„sfumato runs“|[a-z]+_[a-z_]+|\[[a-z.]+\]|pip install", " ", said)


def errors_of_the_page() -> Iterator[str]:
    """The text of every error of the page and of its trees of groups, with a word in the place of every value."""
    for path in (*sorted(APP.rglob("*.py")), Path(group_tree.__file__)):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and _name(node.func).endswith("Error")
                and node.args
                and path.name != TERMINAL
            ):
                yield "".join(_parts(node.args[0]))


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _parts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from _parts(part) if isinstance(part, ast.Constant) else ["X"]


@pytest.mark.parametrize("text", sorted(set(errors_of_the_page())))
def test_every_error_of_the_page_is_said_in_german(text: str) -> None:
    assert len(text) > 10
    assert english_words(german(text)) == set()


def test_there_are_errors_to_look_at() -> None:
    assert len(set(errors_of_the_page())) > 35


EVERY_WARNING = {
    "columns": {
        "age": {"role": "quasi-identifier", "form": "mean"},
        "height": {"role": "quasi-identifier", "form": "bounds"},
        "ill": {"role": "sensitive", "nulls": ["?"]},
        "key": {"role": "pseudonym"},
    },
    "privacy": {"k": 2, "pseudonym_key": "private/key"},
    "release": {"keep_order": True},
    "method": {"seconds": 3.0},
    "accept_linkable": ["key"],
}


def test_every_warning_about_a_policy_is_said_in_german() -> None:
    warnings = policy_warnings(Policy.from_dict(EVERY_WARNING, Path()))
    assert len(warnings) >= 6
    for text in warnings:
        assert english_words(german(text)) == set(), text


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("part", [None, 0.25])
@pytest.mark.parametrize("runs", [(3,), (1, 2, 3)])
def test_warnings_of_earlier_releases_are_said_in_german(anew: bool, part: float | None, runs: tuple[int, ...]) -> None:
    earlier = EarlierReleases(runs, runs, part, runs)
    warnings = _earlier_warnings(earlier, anew=anew)
    assert len(warnings) == 3
    for text in warnings:
        assert english_words(german(text)) == set(), text


PEOPLE = pa.table({"age": [1, 2, 3, 4] * 5, "ill": ["a"] * 19 + ["b"], "cost": [1.0] * 20})
INFEASIBLE = [
    {"k": 50},
    *({"k": 2, "sensitive": [{"attribute": "ill", **demand}]} for demand in (
        {"kind": "distinct", "l": 5}, {"kind": "frequency", "l": 3}, {"kind": "entropy", "l": 3},
        {"kind": "recursive", "c": 1.0, "l": 2}, {"kind": "recursive", "c": 1.0, "l": 9},
        {"kind": "alpha-k", "alpha": 0.1},
    )),
    {"k": 2, "sensitive": [{"attribute": "cost", "kind": "variance", "v": 5.0}]},
]  # fmt: skip


@pytest.mark.compiled
@pytest.mark.parametrize("fraction", [0.0, 0.01])
@pytest.mark.parametrize("privacy", INFEASIBLE)
def test_why_a_table_cannot_meet_a_policy_is_said_in_german(privacy: dict[str, object], fraction: float) -> None:
    columns = {"age": {"role": "quasi-identifier"}, "ill": {"role": "sensitive"}, "cost": {"role": "sensitive"}}
    release = {"max_suppressed_fraction": fraction}
    policy = Policy.from_dict({"columns": columns, "privacy": privacy, "release": release}, Path())
    with pytest.raises(InfeasibleError) as caught:
        sfumato.anonymize(PEOPLE, policy)
    said = german(str(caught.value))
    assert english_words(said) == set()


@pytest.mark.parametrize(
    "data",
    [
        {"privacy": {"k": 0}},
        {"release": {"max_suppressed_fraction": 1.5}},
        {"about": {"date": "tomorrow"}},
        {"about": {"title": "x" * 9000}},
        {"input": {"encoding": "nothing"}},
        {"input": {"date_format": "day"}},
        {"columns": {"age": {"role": "quasi-identifier", "taxonomy": {"intervals": [5, 3]}}}},
        {"columns": {"age": {"role": "quasi-identifier", "round": -1}}},
    ],
)
def test_what_a_field_of_the_page_may_hold_is_said_in_german(data: dict[str, object]) -> None:
    with pytest.raises(SfumatoError) as caught:
        Policy.from_dict(data, Path())
    said = german(str(caught.value))
    assert said.startswith("Verlangt wird bei ")
    assert english_words(said.partition(": ")[2]) == set()


def test_a_refusal_of_kept_columns_names_them_with_reasons_in_german() -> None:
    with pytest.raises(SfumatoError) as caught:
        refuse_linkable({"mail": "its values look like e-mail addresses", "no": "it nearly determines the "
                         "quasi-identifier 'age'"})  # fmt: skip
    said = german(str(caught.value))
    assert "„mail“: ihre Werte sehen aus wie E-Mail-Adressen; „no“: sie legt den Quasi-Identifikator" in said


def test_figures_have_the_marks_of_the_language_and_settings_those_of_a_policy() -> None:
    text = (
        "k = 9,000 needs at least 9,000 records, but the table has 1,500. Choose a k of at most 1,500, or add records. "
        "Or leave out 2 of the 1,500 records (0.13%): max_suppressed_fraction = 0.0014 would be enough."
    )
    said = message_text(text, GERMAN)
    assert "mindestens 9.000 Datensätze, aber die Tabelle hat 1.500." in said
    assert "2 der 1.500 Datensätze (0,13\N{NO-BREAK SPACE}%)" in said
    assert "max_suppressed_fraction = 0.0014" in said


def test_what_is_not_known_is_shown_as_it_is_and_marked_as_english() -> None:
    assert message_text("a <later> version", GERMAN) == '<span lang="en">a &lt;later&gt; version</span>'
    assert message_text("a <later> version", texts_in("en")) == "a &lt;later&gt; version"
