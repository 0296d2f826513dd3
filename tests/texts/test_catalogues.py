"""The catalogues: every language says the same with the same values, and nothing is in them that no page says."""

from __future__ import annotations

import ast
import re
import tomllib
from datetime import date
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import sfumato
from sfumato.errors import UsageError
from sfumato.texts import LANGUAGES, texts_in

PACKAGE = Path(sfumato.__file__).parent
FOLDERS = {path.name: path for path in (PACKAGE / "texts").iterdir() if path.is_dir() and path.name != "__pycache__"}
FORMS = {"one", "other"}
UNSAID = "unsaid"  # what an English sentence says there, other languages say in words of their own


def flattened(table: dict[str, Any], above: str) -> dict[str, dict[str, str]]:
    """The forms of every entry by its whole key, read without the code of the product."""
    found: dict[str, dict[str, str]] = {}
    for name, value in table.items():
        if isinstance(value, str):
            found[f"{above}.{name}"] = {"other": value}
        elif "one" in value:
            found[f"{above}.{name}"] = value
        else:
            found |= flattened(value, f"{above}.{name}")
    return found


def entries(language: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for path in sorted(FOLDERS[language].glob("*.toml")):
        found |= flattened(tomllib.loads(path.read_text("utf-8")), path.stem)
    return found


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def literals() -> set[str]:
    """Every text that stands as a literal in the code of the package."""
    trees = (ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_every_language_has_a_folder_and_every_folder_a_language() -> None:
    assert set(FOLDERS) == set(LANGUAGES)


@pytest.mark.parametrize("language", sorted(set(FOLDERS) - {"en"}))
def test_every_language_has_the_keys_of_english(language: str) -> None:
    assert sorted(entries(language)) == sorted(entries("en"))


@pytest.mark.parametrize("language", sorted(set(FOLDERS) - {"en"}))
def test_every_text_takes_the_values_of_the_english_one(language: str) -> None:
    english, others = entries("en"), entries(language)

    def values_of(forms: dict[str, str]) -> tuple[set[str], str]:
        taken = {name for form in FORMS & set(forms) for name in placeholders(forms[form])}
        taken = {name for name in taken if not name.startswith(UNSAID)}
        return taken | ({forms.get("by", "count")} if "one" in forms else set()), forms.get("by", "")

    different = {
        key: (values_of(forms), values_of(others[key]))
        for key, forms in english.items()
        if key in others and values_of(forms)[0] != values_of(others[key])[0]
    }
    assert different == {}


@pytest.mark.parametrize("language", sorted(FOLDERS))
def test_forms_are_complete_and_texts_have_no_formats_and_no_loose_ends(language: str) -> None:
    for key, forms in entries(language).items():
        assert set(forms) <= {*FORMS, "by"}, key
        assert "other" in forms, key
        for form in FORMS & set(forms):
            text = forms[form]
            assert text == text.strip(), key
            assert text, key
            assert "  " not in text, key
            assert all(not spec and conversion is None for _, _, spec, conversion in Formatter().parse(text)), key


def test_german_has_one_word_for_one_thing() -> None:
    """The words on the right were once used beside those on the left, which docs/decisions/texts.md lists."""
    given_up = {
        "Zertifikat": "Bescheinigung",
        "Klasse": "Äquivalenzklasse",
        "Stufe": r"Ebenen?\b",
        "Vergröberung": "nschärf|nscharf",
        "weggelassen": "nterdrück",
        "Probelauf": r"\bVersuche?s?\b",
        "fehlende Angabe": r"\bNull\b",
    }
    texts = {f"{key} {form}": text for key, forms in entries("de").items() for form, text in forms.items()}
    for word, others in given_up.items():
        assert any(word in text for text in texts.values()), word
        assert [key for key, text in texts.items() if re.search(others, text)] == [], word


def test_every_key_is_used_by_name_somewhere_in_the_package() -> None:
    written = literals()
    assert [key for key in entries("en") if key not in written] == []


def test_every_key_that_the_package_names_is_in_the_catalogue() -> None:
    known = entries("en")
    starts = tuple({f"{key.split('.')[0]}." for key in known})
    files = {path.stem for path in FOLDERS["en"].glob("*.toml")}
    words = {
        text
        for text in literals()
        if text.startswith(starts) and text.replace(".", "").replace("_", "").isalnum() and text.split(".")[0] in files
    }
    endings = (".toml", ".html", ".json", ".csv", ".py")
    assert [key for key in sorted(words) if key not in known and not key.endswith(endings)] == []


def test_numbers_follow_the_language() -> None:
    english, german = texts_in("en"), texts_in("de")
    assert (english.number(1234567), german.number(1234567)) == ("1,234,567", "1.234.567")
    assert (english.number(1234.5, ",.2f"), german.number(1234.5, ",.2f")) == ("1,234.50", "1.234,50")
    assert (english.percent(0.125), german.percent(0.125)) == ("12.5%", "12,5\N{NO-BREAK SPACE}%")
    assert (english.percent(0.25), german.percent(0.25)) == ("25%", "25\N{NO-BREAK SPACE}%")
    assert (english.percent(0), german.percent(1)) == ("0%", "100\N{NO-BREAK SPACE}%")
    assert english.percent(0.0001) == "less than 0.1%"
    assert german.percent(0.99999) == "mehr als 99,9\N{NO-BREAK SPACE}%"


def test_dates_and_lists_follow_the_language() -> None:
    english, german = texts_in("en"), texts_in("de")
    day = date(2026, 3, 5)
    assert (english.date(day), german.date(day)) == ("5 March 2026", "5. März 2026")
    assert (english.alternatives(["a", "b", "c"]), german.alternatives(["a", "b"])) == ("a, b or c", "a oder b")


def test_the_number_chooses_the_form() -> None:
    from sfumato.texts.catalogue import TextEntry

    entry = TextEntry("many", "one")
    assert [entry.form({"count": count}) for count in (0, 1, 2)] == ["many", "one", "many"]
    assert TextEntry("many", "one", by="classes").form({"count": 5, "classes": 1}) == "one"


def test_an_unknown_language_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="unknown language 'xx'"):
        texts_in("xx")
