"""Every function says its types. Only kernels do not, because numba types their arguments."""

from __future__ import annotations

import ast
from pathlib import Path

import sfumato

PACKAGE = Path(sfumato.__file__).parent


def test_functions_without_annotations_stand_beside_kernels() -> None:
    bare = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if "from sfumato.kernels.decorator import" not in path.read_text("utf-8")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.returns is None
    ]
    assert bare == []
