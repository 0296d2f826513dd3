"""Every source file, test or page that the documentation names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FOLDERS = ("src", "tests", "benchmarks", "reproduce", "scripts")
SOURCES = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
PYTHON_FILE = re.compile(r"(?<![\w/.-])((?:[\w-]+/)*\w+\.py)(?![\w/])")
FOLDER = re.compile(r"`((?:[a-z_]+/)+)`")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def exists(name: str) -> bool:
    """A path is read from the root or from the package; a name without a folder may stand anywhere."""
    return any((base / name).exists() for base in (ROOT, ROOT / "src" / "sfumato")) or name in SOURCES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_only_files_that_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [name for name in PYTHON_FILE.findall(text) if not exists(name)] == []
    assert [name for name in LINK.findall(text) if not (page.parent / name).exists()] == []


def test_the_map_and_the_vocabulary_name_only_folders_that_exist() -> None:
    for page in (ROOT / "CONTRIBUTING.md", ROOT / "docs" / "vocabulary.md"):
        assert [name for name in FOLDER.findall(page.read_text("utf-8")) if not exists(name)] == []
