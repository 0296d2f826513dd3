"""Every promise of these pages names the tests that hold it, and the tests are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Where each page makes promises: the lines from the first text to the second, and how a promise begins there.
PROMISES = {
    "SECURITY.md": [
        ("**What every release that Sfumato", "**What is not guaranteed", "bullets"),
        ("## What stays on the machine", "## Reporting", "bullets"),
    ],
    "docs/tables.md": [
        ("**Passwords.**", "## Reading", "paragraphs"),
        ("## Reading", "## Which tests", "paragraphs"),
    ],
    "docs/disk.md": [("`--memory` says", "    sfumato", "paragraphs"), ("- **The result**", "In Python", "bullets")],
}
DEFINITION = re.compile(r"^\[\^([\w-]+)\]:(.*(?:\n    .*)*)", re.MULTILINE)
REFERENCE = re.compile(r"\[\^([\w-]+)\](?!:)")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@cache
def functions_of(path: str) -> frozenset[str]:
    """The names of the test functions of a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def promises(text: str, first: str, last: str, kind: str) -> list[str]:
    """The bullets or paragraphs between two texts; tables, code and headings are none."""
    begin = text.index(first)
    part = text[begin : text.index(last, begin + len(first))]
    if kind == "bullets":
        return [bullet for bullet in re.split(r"^(?=- )", part, flags=re.MULTILINE) if bullet.startswith("- ")]
    return [one for one in part.split("\n\n") if one.strip() and one.lstrip("\n")[0] not in "|#- "]


@pytest.mark.parametrize("page", PROMISES)
def test_every_promise_names_a_test(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    found = [promise for part in PROMISES[page] for promise in promises(text, *part)]
    assert len(found) >= 6
    assert [promise[:80] for promise in found if not REFERENCE.search(promise)] == []


@pytest.mark.parametrize("page", [*PROMISES, "docs/exports.md", "docs/other-formats.md"])
def test_every_test_that_a_promise_names_is_there(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    defined = {name: TEST.findall(tests) for name, tests in DEFINITION.findall(text)}
    assert set(REFERENCE.findall(DEFINITION.sub("", text))) == set(defined)
    assert [name for name, tests in defined.items() if not tests] == []
    named = [pair for tests in defined.values() for pair in tests]
    assert [f"{path}::{test}" for path, test in named if not (ROOT / path).exists()] == []
    assert [f"{path}::{test}" for path, test in named if test not in functions_of(path)] == []
