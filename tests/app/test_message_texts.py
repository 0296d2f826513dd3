"""Messages in German: every error of the page itself, every warning of a run, and why a policy cannot be met."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from english_words import english_words

import sfumato
from sfumato import errors
from sfumato.app.message_texts import message_text, part_of_sentence
from sfumato.app.preview import preview
from sfumato.errors import InfeasibleError, SfumatoError
from sfumato.evaluation.linkability.refusal import refuse_linkable
from sfumato.pipeline.prepare import policy_warnings
from sfumato.pipeline.recognition import _earlier_warnings
from sfumato.policy import Policy
from sfumato.releases.earlier_releases import EarlierReleases
from sfumato.texts import texts_in

GERMAN = texts_in("de")
PACKAGE = Path(sfumato.__file__).parent
# They are printed on the terminal, before there is a page.
TERMINAL = "server.py"


def german(text: str) -> str:
    """The message as the page says it, without its values and commands."""
    said = message_text(text, GERMAN)
    assert 'lang="en"' not in said, text
    return re.sub(r"&#x27;.*?&#x27;|„.*?“|[a-z]+_[a-z_]+|\[[a-z.]+\]|pip install|sfumato audit", " ", said)


# Whose errors the page can show: those of its own, and of what its runs do with files and policies.
SAID_ON_THE_PAGE = (
    "app",
    "engines/memory",
    "evaluation/risk/reidentification.py",
    "files/key_file.py",
    "losses/exact_costs.py",
    "methods",
    "pipeline/prepare.py",
    "policy/input_settings.py",
    "policy/policy_file.py",
    "requirements",
    "studies/taxonomy_wizards.py",
    "tables/coding",
    "tables/external/scratch.py",
    "tables/formulas.py",
    "tables/sources/csv_source.py",
    "tables/sources/derivation_rules.py",
    "tables/sources/derived_columns.py",
    "tables/sources/excel_source.py",
    "tables/sources/parquet_source.py",
    "tables/sources/pseudonyms.py",
    "tables/sources/source.py",
    "tables/sources/source_batches.py",
    "tables/sources/statistical_source.py",
    "tables/sources/text_stream.py",
    "tables/sources/unchanged_files.py",
    "tables/targets/csv_writer.py",
    "tables/targets/excel_writer.py",
    "tables/targets/file_publication.py",
    "tables/targets/file_writers.py",
    "tables/targets/replacement.py",
    "tables/targets/staging.py",
    "taxonomies",
)
# No screen leads to them: the page counts a population by its size alone, and its selections have no conditions.
NOT_ON_THE_PAGE = ("selections.py", "no record of the population has")
# They hold words that are chosen where they are raised. The tests below raise the first two.
VARIED = {
    "k = X needs at least": "",
    "column X: X; the first is in X.": "",
    "X of the quasi-identifiers meet": (
        "no levels of the quasi-identifiers meet the policy with at most 3 of the 9 records left out. Ask for less, or "
        "give the columns more general levels."
    ),
    "the coarsest levels of X divide": (
        "the coarsest levels of 'age' divide the table into 4 parts, and 2 of these cannot meet the requirements by "
        "themselves. 3 of the 9 records (33.33%) would have to be left out. Set coarser levels, or a smaller k or l."
    ),
}
VALUE = "X"


def errors_of_the_page() -> Iterator[str]:
    """The text of every error that the page can show, with a word in the place of every value."""
    for place in SAID_ON_THE_PAGE:
        found = PACKAGE / place
        assert found.exists(), place
        for path in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            if path.name in (TERMINAL, *NOT_ON_THE_PAGE):
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and _is_ours(node.func) and node.args:
                    text = "".join(_parts(node.args[0]))
                    # What is put together elsewhere has hardly a word of its own here.
                    if len(re.sub(rf"\b{VALUE}\b|\W", "", text)) > 10 and not text.startswith(NOT_ON_THE_PAGE):
                        yield text


def _is_ours(node: ast.expr) -> bool:
    kind = getattr(errors, node.id, None) if isinstance(node, ast.Name) else None
    return isinstance(kind, type) and issubclass(kind, SfumatoError)


def _parts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from _parts(part) if isinstance(part, ast.Constant) else [VALUE]


@pytest.mark.parametrize("text", sorted(set(errors_of_the_page())))
def test_every_error_of_the_page_is_said_in_german(text: str) -> None:
    varied = next((said for begin, said in VARIED.items() if text.startswith(begin)), text)
    assert not varied or english_words(german(varied)) == set()


def test_there_are_errors_to_look_at() -> None:
    assert len(set(errors_of_the_page())) > 150


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
    said = message_text(str(caught.value), GERMAN)
    assert "„mail“: ihre Werte sehen aus wie E-Mail-Adressen; „no“: sie legt den Quasi-Identifikator" in said


def test_names_have_the_quotes_of_the_language_inside_of_other_texts_too() -> None:
    text = "the sensitive column 'illness' is released as it is: k-anonymity hides who a record is, not what it says; "
    said = message_text(f"{text}a class whose records all share one value reveals it", GERMAN)
    assert said.startswith("Die sensible Spalte „illness“ wird veröffentlicht")


def test_what_was_counted_is_said_in_german() -> None:
    for counted, german in (("records", "Datensätze"), ("persons", "Personen")):
        text = "frequency l-diversity of 'a' with l = 40 allows the most frequent value 2.5% of the "
        said = message_text(f"{text}{counted}, but it has 6.7%. Choose an l of at most 14.", GERMAN)
        assert f"2,5\N{NO-BREAK SPACE}% der {german}, aber er hat 6,7\N{NO-BREAK SPACE}%." in said


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


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("kind", "text"), [("numeric", "x"), ("date", "x"), ("numeric", "*"), ("numeric", "2,5"), ("numeric", '"2,5"')]
)
def test_cells_that_do_not_fit_their_column_are_told_in_german(kind: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f"age\n1\n2\n{text}\n", "utf-8")
    policy = {"columns": {"age": {"role": "quasi-identifier", "type": kind}}, "privacy": {"k": 2}}
    with pytest.raises(SfumatoError) as caught:
        sfumato.anonymize(tmp_path / "table.csv", policy)
    said = message_text(str(caught.value), GERMAN)
    assert 'lang="en"' not in said
    assert "Zeile 4" in said or kind == "date"
    assert (
        english_words(german(str(caught.value)).replace("year-month-day", "").replace(str(tmp_path / "table.csv"), ""))
        == set()
    )


@pytest.mark.parametrize("several", [False, True])
def test_values_outside_a_hierarchy_are_told_in_german(several: bool, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("land,ort\n" + "Germany,Bonn\nPolska,Jena\n" * 5, "utf-8")
    (tmp_path / "o.csv").write_text("Bonn,west,*\n" if several else "Bonn,west,*\nJena,east,*\n", "utf-8")
    columns = {
        "land": {"role": "quasi-identifier", "taxonomy": {"ready": "countries"}},
        "ort": {"role": "quasi-identifier", "taxonomy": "o.csv"},
    }
    policy = Policy.from_dict({"columns": columns, "privacy": {"k": 2}}, tmp_path)
    with pytest.raises(SfumatoError) as caught:
        sfumato.anonymize(tmp_path / "t.csv", policy=policy)
    said = message_text(str(caught.value), GERMAN)
    assert said.startswith("Mehrere Spalten" if several else "Die Spalte „land“ hat Werte")
    assert english_words(german(str(caught.value))) == set()


@pytest.mark.parametrize(
    "text", ["a,,b\n1,2,3\n", "a,b,a\n1,2,3\n", "a,b\n1\n", "\na,b\n", f"a,b\n1,{'x' * 200_000}\n"]
)
def test_what_is_wrong_with_the_first_lines_is_told_in_german(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, "utf-8")
    fault = preview(tmp_path / "t.csv", {"separator": ","}).fault
    said = part_of_sentence(fault, GERMAN)
    assert said != fault
    assert english_words(said) == set()
