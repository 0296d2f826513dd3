"""The decorators of compiled kernels.

Kernels take arrays and numbers, never frames, files or policies. They release the interpreter's lock, so that plain
threads run them side by side.

A kernel's machine code contains that of every kernel it calls. A function that is large and called from everywhere is
therefore compiled once as an ``entrance``, and kernels take it as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

import numba
from numba.core import event
from numba.core.ccallback import CFunc

from sfumato.kernels.cache import KernelCache
from sfumato.kernels.cache_directory import cache_directory
from sfumato.kernels.numba_import import load_numba_functions

# Checks make code longer. No kernel relies on an exception for a division by zero.
CHECKS: dict[str, Any] = {"boundscheck": False, "error_model": "numpy"}
OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, **CHECKS}
INNER: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True}
INLINED: dict[str, Any] = {**OPTIONS, "inline": "always"}

load_numba_functions()


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that Python calls, on first use, and keep the machine code for later processes."""
    compiled: Any = numba.njit(**OPTIONS)(function)
    without_jit = compiled is function
    if not without_jit:
        _keep_machine_code(compiled, function)
    return cast(Callable[..., Any], compiled)


def inner_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only kernels call: it becomes a part of them, and Python cannot call it."""
    return cast(Callable[..., Any], numba.njit(**INNER)(function))


def inlined_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put the statements of a function where a kernel calls it: for one that is called in a single place.

    An inner kernel is compiled by itself and then once more as a part of each kernel that reaches it; this one is not.
    """
    return cast(Callable[..., Any], numba.njit(**INLINED)(function))


class Entrance:
    """A function that is compiled by itself, on first use, as a value that kernels take and call."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self._function, self._signature = function, signature

    @cached_property
    def value(self) -> Any:
        """What kernels take: its type is the signature alone, so their machine code is kept like any other's."""
        if numba.njit(self._function) is self._function:  # without a JIT
            return self._function
        signature = (self._signature.args, self._signature.return_type)
        compiled: Any = CFunc(self._function, signature, locals={}, options={"nopython": True, **CHECKS})
        _keep_machine_code(compiled, self._function)
        compiled.compile()
        return compiled


def entrance(signature: Any) -> Callable[[Callable[..., Any]], Entrance]:
    """Compile a function for arguments of the given types, as a value that kernels can take and call."""
    return lambda function: Entrance(function, signature)


def _keep_machine_code(compiled: Any, function: Any) -> None:
    compiled._cache = KernelCache(function, cache_directory())
    compiled.compile = compiled._cache.compiling(compiled.compile)


class _CompilationListener(event.Listener):
    def __init__(self, started: Callable[[], None]) -> None:
        self._started = started

    def on_start(self, _: event.Event) -> None:
        self._started()

    def on_end(self, _: event.Event) -> None:
        return


@contextmanager
def on_compilation(started: Callable[[], None]) -> Iterator[None]:
    """Call ``started`` whenever a kernel has to be compiled. A user waits for that only on first use."""
    listener = _CompilationListener(started)
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)  # type: ignore[no-untyped-call]
