"""The one decorator for compiled kernels.

Kernels take arrays and numbers, never frames, files or policies. They release the interpreter's lock, so that plain
threads run them side by side.

A kernel's machine code contains that of every kernel it calls. A function that is large and called from everywhere is
therefore compiled once as an ``entrance``, and kernels take it as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, cast

import numba
from numba.core import compiler, event, types
from numba.core.ccallback import CFunc

from sfumato.kernels.cache import KernelCache
from sfumato.kernels.cache_directory import cache_directory

# The compiler class relies on numba's internals, so it is used only with versions that all tests were run with. Other
# versions compile kernels in numba's own way: the results are the same, the wait on first use is longer.
TRIED = ("0.68",)

# Checks make code longer. No kernel relies on an exception for a division by zero.
CHECKS: dict[str, Any] = {"boundscheck": False, "error_model": "numpy"}
OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, **CHECKS}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first use and keep the machine code for later processes.

    A kernel that another kernel calls becomes part of that kernel and is not compiled by itself.
    """
    compilers = _compilers()
    compiled: Any = numba.njit(**OPTIONS, pipeline_class=compilers.whole)(function)
    without_jit = compiled is function
    if without_jit:
        return function
    _keep_machine_code(compiled, function)
    if compilers.part is None:
        return cast(Callable[..., Any], compiled)
    part: Any = numba.njit(**OPTIONS, pipeline_class=compilers.part)(function)
    # Numba gives every constant a type of its own, which must not lead to a version of its own.
    compiled.get_call_template = lambda arguments, keywords: part.get_call_template(
        [types.unliteral(argument) for argument in arguments],  # type: ignore[no-untyped-call]
        keywords,
    )
    compiled.get_overload = part.get_overload
    return cast(Callable[..., Any], compiled)


def entrance(function: Callable[..., Any], signature: Any) -> Any:
    """Compile ``function`` for arguments of the given types, as a value that kernels can take and call.

    Its type is the signature alone, so the machine code of a kernel that takes it is kept like any other.
    """
    if numba.njit(function) is function:  # without a JIT
        return function
    options = {"nopython": True, **CHECKS}
    compiled: Any = CFunc(function, signature, locals={}, options=options, pipeline_class=_compilers().whole)
    _keep_machine_code(compiled, function)
    compiled.compile()
    return compiled


def _keep_machine_code(compiled: Any, function: Any) -> None:
    directory = cache_directory()
    if directory is not None:
        compiled._cache = KernelCache(function, directory)
        compiled.compile = compiled._cache.compiling(compiled.compile)


class _Compilers(NamedTuple):
    """whole: compiles kernels that Python calls. part: those that other kernels call; None if ``whole`` does both."""

    whole: Any
    part: Any


@cache
def _compilers() -> _Compilers:
    if not numba.__version__.startswith(tuple(f"{version}." for version in TRIED)):
        return _Compilers(compiler.Compiler, None)
    from sfumato.kernels.compiler import KernelCompiler, PartCompiler

    return _Compilers(KernelCompiler, PartCompiler)


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
