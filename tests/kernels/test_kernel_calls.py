"""How kernels call each other decides what is compiled: each of these rules keeps first use short."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import sfumato

PACKAGE = Path(sfumato.__file__).parent
KINDS = ("kernel", "inner_kernel", "inlined_kernel", "entrance")
Name = tuple[str, str]  # a module and a name in it


class Use(NamedTuple):
    """One place where a kernel is named. caller: None outside kernels; call: None where it is not called."""

    kernel: Name
    caller: Name | None
    call: ast.Call | None


def modules() -> dict[str, ast.Module]:
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): ast.parse(path.read_text("utf-8"))
        for path in PACKAGE.rglob("*.py")
    }


def kinds(trees: dict[str, ast.Module]) -> dict[Name, str]:
    """The decorator of each kernel."""
    return {
        (module, function.name): name.id
        for module, tree in trees.items()
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for decorator in function.decorator_list
        for name in [decorator.func if isinstance(decorator, ast.Call) else decorator]
        if isinstance(name, ast.Name) and name.id in KINDS
    }


def uses(trees: dict[str, ast.Module], kernels: dict[Name, str]) -> Iterator[Use]:
    for module, tree in trees.items():
        meaning = {name: (module, name) for where, name in kernels if where == module}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                meaning |= {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}
        for part in tree.body:
            own = (module, getattr(part, "name", ""))
            calls = {id(node.func): node for node in ast.walk(part) if isinstance(node, ast.Call)}
            names = [node for node in ast.walk(part) if isinstance(node, ast.Name)]
            local = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            for node in names:
                if node.id not in local and meaning.get(node.id) in kernels and meaning[node.id] != own:
                    yield Use(meaning[node.id], own if own in kernels else None, calls.get(id(node)))


def is_constant(argument: ast.expr) -> bool:
    value = argument.operand if isinstance(argument, ast.UnaryOp) else argument
    return isinstance(value, ast.Constant)


def test_a_kernel_without_a_form_for_python_is_named_by_kernels_alone() -> None:
    trees = modules()
    kernels = kinds(trees)
    assert len(kernels) > 150
    for use in uses(trees, kernels):
        assert use.caller is not None or kernels[use.kernel] in ("kernel", "entrance"), use.kernel


def test_an_entrance_is_never_called_by_its_name() -> None:
    """Kernels take it as an argument: called by its name, it would be compiled into them."""
    trees = modules()
    kernels = kinds(trees)
    assert sum(kind == "entrance" for kind in kernels.values()) >= 2
    for use in uses(trees, kernels):
        assert kernels[use.kernel] != "entrance" or (use.call is None and use.caller is None), use.kernel


def test_only_a_kernel_with_one_caller_is_inlined() -> None:
    """Statements that are put into several places are compiled in each."""
    trees = modules()
    kernels = kinds(trees)
    places = Counter(use.kernel for use in uses(trees, kernels))
    for kernel, kind in kernels.items():
        assert kind != "inlined_kernel" or places[kernel] == 1, kernel


def test_no_kernel_is_compiled_once_more_for_a_constant() -> None:
    """To numba a number in the source is a type of its own; a number of NumPy's is not."""
    trees = modules()
    kernels = kinds(trees)
    places: dict[Name, list[ast.Call]] = defaultdict(list)
    for use in uses(trees, kernels):
        if use.caller is not None and use.call is not None and kernels[use.kernel] != "inlined_kernel":
            places[use.kernel].append(use.call)
    for kernel, calls in places.items():
        for call in calls:
            assert len(calls) == 1 or not any(map(is_constant, call.args)), (kernel, ast.unparse(call))
