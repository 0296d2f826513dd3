"""Names and sizes: a class name means one thing, the top level is short, and files stay readable."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import sfumato

PACKAGE = Path(sfumato.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
FRAME = {"__init__", "__main__", "_version"}
MOST_MODULES = 8
LONG = 400
MOST_LONG_FILES = 6
ONE_SCREEN = 120
VAGUE = {"utils", "util", "helpers", "helper", "misc", "common"}


def test_every_class_name_occurs_once() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_the_top_level_is_what_users_call_and_everybody_uses() -> None:
    modules = {path.stem for path in PACKAGE.glob("*.py")} - FRAME
    assert len(modules) <= MOST_MODULES, sorted(modules)


def test_no_module_is_named_after_nothing_in_particular() -> None:
    parts = {path: {*path.relative_to(PACKAGE).parent.parts, path.stem} for path in FILES}
    assert [path.relative_to(PACKAGE).as_posix() for path, names in parts.items() if names & VAGUE] == []


def test_few_files_are_long() -> None:
    lengths = {path.relative_to(PACKAGE).as_posix(): len(path.read_text("utf-8").splitlines()) for path in FILES}
    long = {name: length for name, length in lengths.items() if length > LONG}
    assert len(long) <= MOST_LONG_FILES, long


def test_the_story_of_a_release_fits_on_one_screen() -> None:
    assert len((PACKAGE / "pipeline" / "run.py").read_text("utf-8").splitlines()) <= ONE_SCREEN
