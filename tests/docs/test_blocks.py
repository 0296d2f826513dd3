"""What README and docs show is what happens: every block is run, and what it prints is compared.

`make docs` (`--write-docs`) rewrites what the pages show. The comments that say what a block is are explained in
tests/doc_blocks.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from doc_blocks import Block, blocks_of, check_page, run_page, shown_output

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = {path.relative_to(ROOT).as_posix(): path for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])}
# README is pasted into a shell, and tests/docs/test_tutorial.py looks at what the tutorial makes.
RUN_ELSEWHERE = ("README.md", "docs/tutorial-hospital.md")
RUN_HERE = [
    name
    for name, path in PAGES.items()
    if name not in RUN_ELSEWHERE and re.search("^(    |```)", path.read_text(), re.M)
]

# How many blocks of each page are not run. The comment above each says why.
NOT_RUN = {
    "CONTRIBUTING.md": 1,
    "README.md": 2,
    "docs/anatomy.md": 2,
    "docs/app.md": 1,
    "docs/benchmarks.md": 1,
    "docs/bound.md": 4,
    "docs/decisions/public-figures.md": 1,
    "docs/first-policy.md": 1,
    "docs/learning.md": 1,
    "docs/papers.md": 1,
    "docs/queries.md": 2,
    "docs/recoding.md": 1,
    "docs/risk.md": 1,
    "docs/spark.md": 4,
    "docs/tables.md": 1,
}

pytestmark = [pytest.mark.compiled, pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory of a user who has released nothing yet."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "here"


@pytest.mark.not_quick
@pytest.mark.parametrize("name", RUN_HERE)
def test_every_block_of_a_page_does_what_it_shows(name: str, directory: Path, pytestconfig: pytest.Config) -> None:
    shown = list(run_page(blocks_of(PAGES[name], name), directory))
    check_page(PAGES[name], shown, write=pytestconfig.getoption("write_docs"))


@pytest.mark.not_quick
def test_readme_can_be_pasted_into_a_shell(directory: Path, pytestconfig: pytest.Config) -> None:
    blocks = blocks_of(README, "README.md")
    assert not [block.place for block in blocks if block.hidden or "shortened" in block.marks]
    script = [line for block in blocks for line in pasted(block)]
    binaries = Path(sys.executable).parent
    assert shutil.which("sfumato", path=binaries), "sfumato is not installed beside this Python"
    environment = {**os.environ, "PATH": os.pathsep.join([str(binaries), os.environ["PATH"]])}
    done = subprocess.run(
        ["bash", "-e"],
        check=False,
        input="\n".join(script),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stdout
    printed = dict(part.split("\n", 1) for part in done.stdout.split(SEPARATOR)[1:])
    before = {block.start: blocks[number - 1] for number, block in enumerate(blocks) if "output" in block.marks}
    shown = [
        shown_output(block, printed[before[block.start].place], directory)
        for block in blocks
        if "output" in block.marks
    ]
    check_page(README, shown, write=pytestconfig.getoption("write_docs"))


SEPARATOR = "-- what follows is printed by "


def pasted(block: Block) -> list[str]:
    """Return what a user pastes into a shell for a block, with lines around the last command that say whose it is."""
    if "output" in block.marks or "not run" in block.marks:
        return []
    commands = ["python - <<'PYTHON'\n" + block.text + "PYTHON"] if block.kind == "python" else block.commands
    return [*commands[:-1], f"echo '{SEPARATOR}{block.place}'", commands[-1], f"echo '{SEPARATOR}nothing'"]


def test_what_is_not_run_is_known() -> None:
    skipped = [block for name, path in PAGES.items() for block in blocks_of(path, name) if "not run" in block.marks]
    assert all(block.mark("not run") for block in skipped)
    assert Counter(block.page for block in skipped) == NOT_RUN
    installing = [line for block in skipped if block.page == "README.md" for line in block.text.splitlines()]
    assert all(line.startswith(("make ", "pip ")) for line in installing)


def page_with(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    return page


@pytest.mark.parametrize(
    "text",
    [
        "# A page\n\n    what is this?\n",
        "```\nwhat is this?\n```\n",
        '```toml\nother = "keep"\n```\n',
        "```json\n{}\n```\n",
    ],
)
def test_a_block_that_nothing_explains_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(AssertionError, match=r"page\.md, line \d: say in a comment above what this block is"):
        blocks_of(page_with(tmp_path, text), "page.md")


@pytest.mark.parametrize("text", ["<!-- output -->\n\nNo block.\n", "<!-- output: -->\n\n    text\n"])
def test_a_comment_without_its_block_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(AssertionError, match=r"page\.md, line \d"):
        blocks_of(page_with(tmp_path, text), "page.md")


EXAMPLE = """# A page

<!-- file: few.csv -->

    age
    30
    31

Too few:

<!-- exit code: 3 -->

    sfumato anonymize few.csv -o out.csv \\
        --quasi-identifiers age -k 5   # more than there are

```python
answer = 40
answer + 2
# 42
print("done")
```

<!-- output -->

    done
"""


def test_a_page_is_run_from_top_to_bottom(tmp_path: Path, directory: Path) -> None:
    shown = list(run_page(blocks_of(page_with(tmp_path, EXAMPLE), "page.md"), directory))
    assert [each.differs for each in shown] == [False, False]
    assert (directory / "few.csv").read_text() == "age\n30\n31\n"


@pytest.mark.parametrize(
    ("old", "new", "lines"), [("# 42", "# 41", [19]), ("\n    done", "\n    finished", [25]), ("# 42", "# 42.0", [19])]
)
def test_a_page_that_shows_something_else_is_noticed_and_rewritten(
    tmp_path: Path, directory: Path, old: str, new: str, lines: list[int]
) -> None:
    page = page_with(tmp_path, EXAMPLE.replace(old, new))
    shown = list(run_page(blocks_of(page, "page.md"), directory))
    assert [each.start + 1 for each in shown if each.differs] == lines
    with pytest.raises(AssertionError, match=f"line {lines[0]} shows something else"):
        check_page(page, shown, write=False)
    check_page(page, shown, write=True)
    assert page.read_text() == EXAMPLE


@pytest.mark.parametrize(
    ("old", "new"), [("exit code: 3", "exit code: 2"), ("-k 5", "-k 1"), ("answer + 2", "question")]
)
def test_a_page_that_does_not_run_is_noticed(tmp_path: Path, directory: Path, old: str, new: str) -> None:
    page = page_with(tmp_path, EXAMPLE.replace(old, new))
    with pytest.raises((AssertionError, NameError)):
        list(run_page(blocks_of(page, "page.md"), directory))
