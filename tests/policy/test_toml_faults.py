"""A policy that is not TOML: the error names the line, and says what to write there."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.errors import PolicyError
from sfumato.policy import Policy

NAME = "a name with anything but the letters a to z, digits, - and _ stands between quotation marks. Write "
QUOTE = "a quotation mark is missing: a text must end on the line on which it begins. "
LIST = "a list is not closed, or a comma between two of its items is missing. "


def said(tmp_path: Path, text: str) -> str:
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        Policy.load(tmp_path / "p.toml")
    return str(caught.value).removeprefix(f"{tmp_path / 'p.toml'}, ")


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ('[columns.a]\nrole = "identifier\n', 2, QUOTE + 'Write role = "identifier".'),
        ("[columns.a]\nrole = 'identifier", 2, QUOTE + "Write role = 'identifier'."),
        ('other = "keep\n[columns.a]\n', 1, QUOTE + 'Write other = "keep".'),
        ('[input]\nnulls = ["", "NA]\n', 2, QUOTE + "Close every text in the value of nulls."),
        ('[columns."Größe]\nrole = "other"\n', 1, QUOTE + 'Close it before the bracket. Write [columns."Größe"].'),
        ('[columns.Größe]\nrole = "other"\n', 1, NAME + '[columns."Größe"].'),
        ('[columns.äöü]\nrole = "other"\n', 1, NAME + '[columns."äöü"].'),
        ('[columns.birth date]\nrole = "other"\n', 1, NAME + '[columns."birth date"].'),
        ('[columns]\nGröße = { role = "other" }\n', 2, NAME + '"Größe" = { role = "other" }.'),
        ("[columns]\nÖl = 1\n", 2, NAME + '"Öl" = 1.'),
        ("[columns.a\nk = 1\n", 1, "a bracket is missing at the end of the section's name. Write [columns.a]."),
        ("[columns.a]\nrole = other\n", 2, 'a text stands between quotation marks. Write role = "other".'),
        ("[columns.a]\nrole: 5\n", 2, "a key and its value are separated by =, not by a colon. Write role = 5."),
        ("[release]\nkeep_order = True\n", 2,
         "true and false are written in small letters. Write keep_order = true."),
        ("[columns.a]\nweight = 1,5\n", 2, "a number has a decimal point, not a comma. Write weight = 1.5."),
        ("other = “keep”\n", 1, '“ is not a quotation mark of TOML. Write other = "keep" with the plain marks " ".'),
        ("[input]\nnulls = [\n", 2, LIST + 'Write it as [1, 2] or ["a", "b"].'),
        ('[input]\nnulls = ["a, "b"]\n', 2, "a quotation mark is missing in a list. Close every text in it."),
        ('[input]\nnulls = ["a",\n\n[columns.a]\n', 4,
         "a list that begins above this line is not closed. Write ] at its end."),
        ("[columns.a]\ntaxonomy = { prefix = [2]\n", 2,
         "a table between { and } must end on the line on which it begins. Close it, or write it on one line."),
        ("[columns.a]\n[columns.a]\n", 2,
         "the section [columns.a] is there twice. Write all its keys into the first one."),
        ("other = 'keep'\nother = 'drop'\n", 2, "this key is there twice. Remove one of the two."),
    ],
)  # fmt: skip
def test_a_syntax_error_says_what_to_write(tmp_path: Path, text: str, line: int, sentence: str) -> None:
    assert said(tmp_path, text) == f"line {line}: not valid TOML: {sentence}"


def test_what_an_error_says_to_write_is_valid(tmp_path: Path) -> None:
    sentence = said(tmp_path, '[columns.Größe (cm)]\nrole = "other"\n')
    header = sentence.partition("Write ")[2].removesuffix(".")
    (tmp_path / "p.toml").write_text(f'{header}\nrole = "other"\n', encoding="utf-8")
    assert Policy.load(tmp_path / "p.toml").others == ("Größe (cm)",)
