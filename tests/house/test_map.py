"""The map in CONTRIBUTING.md: it has every package and every top-level module, nothing else, and what it promises."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import sfumato

PACKAGE = Path(sfumato.__file__).parent
TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")


def section(heading: str) -> str:
    """The text under a heading of the second level."""
    (text,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert isinstance(text, str)
    return text


def test_the_map_has_every_package_and_every_module_of_the_top_level() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \| (.*) \|$", section("The house"), re.MULTILINE)
    entries = [entry for cell, _ in rows for entry in re.findall(r"`([^`]+)`", cell)]
    packages = {f"{path.parent.relative_to(PACKAGE).as_posix()}/" for path in PACKAGE.glob("**/*/__init__.py")}
    modules = {path.name for path in PACKAGE.glob("*.py")}
    assert len(entries) == len(set(entries))
    assert set(entries) == packages | modules
    assert all(description for _, description in rows)


def test_the_walk_passes_only_through_files_that_exist() -> None:
    files = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", section("The walk of one record"))
    assert len(files) > 10
    assert [file for file in files if not (PACKAGE / file).exists()] == []


IMPORTS = re.findall(r"^from (sfumato[a-z_.]*) import ([A-Za-z_, ]+?)(?:  #.*)?$", section("How to add"), re.MULTILINE)


@pytest.mark.parametrize("module, names", IMPORTS, ids=[module for module, _ in IMPORTS])
def test_a_plug_in_finds_its_base_classes_where_the_map_says(module: str, names: str) -> None:
    assert [name for name in names.split(", ") if not hasattr(import_module(module), name)] == []


def test_every_kind_of_plug_in_has_an_import_path() -> None:
    groups = set(re.findall(r"entry point `(sfumato\.[a-z]+)`", section("How to add")))
    assert groups == {"sfumato.methods", "sfumato.orderings", "sfumato.requirements", "sfumato.losses"}
    assert groups <= {module for module, _ in IMPORTS}
