"""The one decorator for compiled kernels, and where their machine code is kept.

Numba caches a kernel by the time stamp of its own file and keeps an old callee when another file changes: a stricter
requirement in a helper would then not be enforced. Sfumato therefore keeps its machine code in the user's cache
directory under a hash of *all* sources of the package, so that any edit, of a callee or of a constant, makes a new one.

Kernels take arrays and numbers, never frames, files or policies. They release the interpreter's lock, so that plain
threads run them side by side.

Whatever a kernel calls becomes part of its machine code, and of that of every kernel which calls it in turn. What is
large and called from everywhere is therefore compiled once as an ``entrance`` and given to kernels as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, cast

import numba
from numba.core import compiler, event, types
from numba.core.ccallback import CFunc

from sfumato.kernels.cache import KernelCache, cache_directory

# How kernels are compiled goes deep into numba, so it is done in versions alone that all tests were run with. In others
# numba compiles them in its own way: the same results, after a longer wait on first use.
TRIED = ("0.68",)

# Checks make code longer. Nothing here relies on an exception for a division by zero.
CHECKS: dict[str, Any] = {"boundscheck": False, "error_model": "numpy"}
OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, **CHECKS}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first use and keep the machine code for later processes.

    Called by another kernel it becomes a part of that one, and is not compiled by itself.
    """
    compilers = _compilers()
    compiled: Any = numba.njit(**OPTIONS, pipeline_class=compilers.whole)(function)
    without_jit = compiled is function
    if without_jit:
        return function
    if cache_directory() is not None:
        compiled._cache = KernelCache(function)  # type: ignore[no-untyped-call]
    if compilers.part is None:
        return cast(Callable[..., Any], compiled)
    part: Any = numba.njit(**OPTIONS, pipeline_class=compilers.part)(function)
    # To numba every constant has a type of its own; it must not lead to a version of its own.
    compiled.get_call_template = lambda given, named: part.get_call_template(
        [types.unliteral(one) for one in given],  # type: ignore[no-untyped-call]
        named,
    )
    compiled.get_overload = part.get_overload
    return cast(Callable[..., Any], compiled)


def entrance(function: Callable[..., Any], signature: Any) -> Any:
    """Compile ``function`` for arguments of the given types, as a value that kernels take and can call.

    To a kernel its type is the signature alone, so that the kernel's machine code is kept like any other.
    """
    if numba.njit(function) is function:  # without a JIT
        return function
    options = {"nopython": True, **CHECKS}
    compiled: Any = CFunc(function, signature, locals={}, options=options, pipeline_class=_compilers().whole)
    if cache_directory() is not None:
        compiled._cache = KernelCache(function)  # type: ignore[no-untyped-call]
    compiled.compile()
    return compiled


class _Compilers(NamedTuple):
    """What compiles kernels that Python calls, and those that other kernels call where that is another."""

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
    """Call ``started`` whenever a kernel has to be compiled, which a user waits for on first use only."""
    listener = _CompilationListener(started)
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)  # type: ignore[no-untyped-call]
