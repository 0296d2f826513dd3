"""A hash of all that decides the machine code of a kernel, so that machine code never outlives its source.

Numba keeps machine code by the time stamp of the kernel's own file and does not notice an edit of a callee in another
file: a stricter requirement in a helper would then not be enforced. Hashing all files would be safe, but an edit of any
of them, even of a comment, would compile every kernel again.

A fingerprint therefore follows the kernel as the compiler does: its byte code and constants, the kernels that it calls,
the values of the globals that it names, and the types of its arguments, with the fields of named tuples. Comments,
docstrings and line numbers are no part of it. Where it meets something that it cannot hash exactly, it gives up, and
the kernel is compiled in every process: a miss costs seconds, while a false hit could break a promise.
"""

# mypy: disable-error-code="no-untyped-call, attr-defined, union-attr"
from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.core.typing import Signature

# What kernels take from these libraries changes with their version only; see ``cache_directory``.
LIBRARIES = frozenset({"builtins", "math", "numba", "numpy", "operator"})
PLAIN_TYPES = (types.Array, types.Boolean, types.NoneType, types.Number, types.Omitted)
PLAIN_VALUES = (bool, int, float, complex, str, bytes, type(None), np.generic)


class CannotHashError(TypeError):
    """Something decides the machine code of a kernel that the fingerprint does not know."""


def fingerprint(function: FunctionType, arguments: Any) -> str:
    """Hash all that decides the machine code of ``function`` for arguments of these types.

    arguments: numba's signature, or a tuple of numba's types. Raises CannotHashError.
    """
    hashed = _KernelHash()
    hashed.add_function(function)
    hashed.add_type(arguments)
    return hashed.digest.hexdigest()


class _KernelHash:
    """The hash of what was added so far."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._functions: dict[FunctionType, int] = {}

    def add_function(self, function: FunctionType) -> None:
        """Add a function and everything that its code can reach."""
        if function in self._functions:
            self._add("known function", self._functions[function])
            return
        self._functions[function] = len(self._functions)
        self._add("function", function.__module__, function.__qualname__)
        self._add_code(function.__code__, function.__doc__)
        self.add_value(function.__defaults__)
        self.add_value(tuple((function.__kwdefaults__ or {}).items()))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._add("closure", name)
            self.add_value(cell.cell_contents)
        for name in sorted(set(_names(function.__code__))):
            if name in function.__globals__:
                self._add("global", name)
                self.add_value(function.__globals__[name])

    def add_value(self, value: Any) -> None:
        """Add a value that a kernel can see: a constant, a callee, a class of tuples, a module."""
        if isinstance(value, PLAIN_VALUES):
            self._add(type(value).__name__, value)
        elif isinstance(value, tuple):
            self.add_value(type(value))
            self._add(len(value))
            for item in value:
                self.add_value(item)
        elif isinstance(value, Dispatcher):
            self._add("kernel", value.targetoptions)
            self.add_function(value.py_func)
        elif isinstance(value, FunctionType):
            for overload in _overloads(value):
                self.add_function(overload)
        elif isinstance(value, ModuleType):
            self._add_named("module", value.__name__, "")
        elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            self._add("named tuple", value.__module__, value.__qualname__, value._fields)
        elif isinstance(value, type | BuiltinFunctionType):
            self._add_named("builtin", value.__module__ or "", value.__qualname__)
        elif isinstance(value, types.Type):
            self.add_type(value)
        else:
            raise CannotHashError(f"a kernel refers to an object of type {type(value).__name__}")

    def add_type(self, kind: Any) -> None:
        """Add a type of numba's. Its name is not enough for named tuples: fields may change places."""
        if isinstance(kind, Signature):
            self.add_type((kind.return_type, *kind.args))
        elif isinstance(kind, tuple | types.BaseTuple):
            if isinstance(kind, types.BaseNamedTuple):
                self.add_value(kind.instance_class)
            self._add("types", len(kind))
            for part in kind:
                self.add_type(part)
        elif isinstance(kind, types.FunctionType):
            self._add("function type")
            self.add_type(kind.signature)
        elif isinstance(kind, types.Optional):
            self._add("optional")
            self.add_type(kind.type)
        elif isinstance(kind, PLAIN_TYPES):
            self._add("type", str(kind))
        else:
            raise CannotHashError(f"a kernel takes an argument of numba's type {type(kind).__name__}")

    def _add_named(self, kind: str, module: str, name: str) -> None:
        if module.partition(".")[0] not in LIBRARIES:
            raise CannotHashError(f"a kernel refers to {module} {name}")
        self._add(kind, module, name)

    def _add_code(self, code: CodeType, docstring: str | None = None) -> None:
        self._add("code", code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
        self._add(code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames, code.co_freevars)
        self._add(len(code.co_consts))
        for place, constant in enumerate(code.co_consts):
            if isinstance(constant, CodeType):
                self._add_code(constant)
            elif place > 0 or constant != docstring:
                self._add(constant)

    def _add(self, *parts: object) -> None:
        self.digest.update(repr(parts).encode() + b"\0")


def _names(code: CodeType) -> Iterator[str]:
    """Names of globals and attributes in the code and in functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _overloads(function: FunctionType) -> list[FunctionType]:
    """What stands for a plain function in kernels. Without ``numba.extending.overload`` no kernel can call it."""
    cpu_target.typing_context.refresh()
    try:
        known = cpu_target.typing_context.resolve_value_type(function)
    except TypingError:
        return []
    return [template._overload_func for template in known.templates]
