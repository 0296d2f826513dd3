"""What the guides show is what happens: their Python is run as it stands."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = [pytest.mark.compiled, pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")]


@pytest.mark.not_quick
def test_the_guide_to_scikit_learn_says_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DOCS / "scikit-learn.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    told = 0
    for block in blocks:
        for statement, expected in shown(block.replace("(10, 25, 50, 100)", "(25,)").replace("cv=10", "cv=4")):
            code = ast.parse(statement)
            if expected is None:
                exec(compile(code, "guide", "exec"), space)
                continue
            last = code.body.pop()
            assert isinstance(last, ast.Expr)
            exec(compile(code, "guide", "exec"), space)
            found = eval(compile(ast.Expression(last.value), "guide", "eval"), space)
            assert repr(round(found, 3) if isinstance(found, float) else found) == expected
            told += 1
    assert told == 8
    k, median, gain = map(float, capsys.readouterr().out.split())
    assert (k, median < 0.8, gain > 0.98) == (25, True, True)


def shown(block: str) -> list[tuple[str, str | None]]:
    """Pieces of a block, each with what the comment after it says that it gives."""
    pieces: list[tuple[str, str | None]] = []
    lines: list[str] = []
    for line in block.splitlines():
        if line.startswith("# "):
            pieces.append(("\n".join(lines), line[2:]))
            lines = []
        else:
            lines.append(line)
    return [*pieces, ("\n".join(lines), None)]
