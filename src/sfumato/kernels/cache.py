"""Machine code of kernels, kept in the user's cache directory for later processes.

One file holds one kernel for arguments of certain types. Its name carries the kernel's fingerprint, so a file never
changes its meaning, and releases, checkouts and branches that share a kernel share its machine code.

Where several processes need the same kernel, one compiles it and the others wait for its file. The operating system
releases the lock when its holder ends, however it ends. Whoever cannot lock, or waits too long, compiles for itself.

A file begins with the SHA-256 of the rest. A file that is damaged, or that another user could have written, is removed,
and its kernel is compiled again.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import contextlib
import gc
import hashlib
import logging
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import IO, Any

from numba.core import caching, compiler, serialize
from numba.core.compiler_lock import global_compiler_lock

from sfumato.files.regular_file import open_regular
from sfumato.kernels.cache_directory import is_own
from sfumato.kernels.fingerprint import CannotHashError, fingerprint

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

DIGEST_BYTES = hashlib.sha256().digest_size
LONGEST_WAIT = 120.0  # seconds; the holder of the lock may have been stopped
WAIT = 0.02  # seconds between two attempts to lock
_LOCK_FLAGS = os.O_CREAT | os.O_APPEND | os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)


class KernelCache(caching._Cache):
    """The machine code of one kernel, in the form in which numba asks for it while it holds its compiler lock.

    directory: None if nothing is kept.
    """

    def __init__(self, function: FunctionType, directory: Path | None) -> None:
        self._function = function
        self._directory = directory
        self._lock: _FileLock | None = None
        self._depth = 0

    def compiling(self, compile_kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``compile_kernel`` with a lock around it from the first miss to its end, however it ends.

        Garbage is not collected meanwhile: a compiler makes many small objects, and almost all live until it is done.
        """

        def compile_once(*arguments: Any) -> Any:
            with global_compiler_lock, _without_garbage_collection():
                self._depth += 1
                try:
                    return compile_kernel(*arguments)
                finally:
                    self._depth -= 1
                    if self._depth == 0 and self._lock is not None:
                        self._lock.release()
                        self._lock = None

        return compile_once

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel, or None if the caller has to compile it."""
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        if path is None:
            return None
        loaded = _load(path, target_context)
        if loaded is None and self._lock is None and self._depth > 0:
            self._lock = _FileLock(path.with_suffix(".lock"))
            loaded = _load(path, target_context)  # another process may have compiled it meanwhile
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        path = self._path(sig, data.codegen)
        if path is None or data.lifted or data.library.has_dynamic_globals:
            return
        with contextlib.suppress(OSError):  # the kernel runs in this process all the same
            _write(path, serialize.dumps(data._reduce()))

    def _path(self, arguments: Any, codegen: Any) -> Path | None:
        if self._directory is None:
            return None
        try:
            code = fingerprint(self._function, arguments)
        except CannotHashError:
            return None
        digest = hashlib.sha256(f"{code} {codegen.magic_tuple()}".encode()).hexdigest()
        return self._directory / f"{self._function.__name__}-{digest[:32]}.kernel"

    @property
    def cache_path(self) -> str:
        return str(self._directory)

    def enable(self) -> None:
        """Do nothing: a kernel has a cache or none."""

    def disable(self) -> None:
        """Do nothing: a kernel has a cache or none."""

    def flush(self) -> None:
        """Do nothing: a file never becomes stale."""


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _load(path: Path, target_context: Any) -> Any:
    """Return the compiled kernel in a file, or None. A file that cannot be used is removed."""
    try:
        with open_regular(path) as file:
            own, content = is_own(os.fstat(file.fileno())), file.read()
    except FileNotFoundError:
        return None
    except OSError:
        return _remove(path)
    digest, machine_code = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if not own or hashlib.sha256(machine_code).digest() != digest:
        return _remove(path)
    try:
        # From a directory and a file that only this user can write to, and whole.
        return compiler.CompileResult._rebuild(target_context, *pickle.loads(machine_code))  # noqa: S301
    except Exception:  # noqa: BLE001 - a pickle may raise anything, and every kernel can be compiled again
        return _remove(path)


def _remove(path: Path) -> None:
    """Remove what stands in the place of a kernel, so that it is compiled again and kept."""
    logging.getLogger(__name__).debug("%s in the kernel cache is damaged and compiled again", path.name)
    with contextlib.suppress(OSError):  # the kernel is compiled all the same
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _write(path: Path, machine_code: bytes) -> None:
    """Write the file whole or not at all."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(hashlib.sha256(machine_code).digest() + machine_code)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):  # it was interrupted just after it had been renamed
            os.unlink(name)
        raise


class _FileLock:
    """A lock between processes, taken when it is made. Without a file system that locks, it holds nothing."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] | None = None
        with contextlib.suppress(OSError):
            # A named pipe in its place must not keep us waiting for somebody who reads it.
            self._file = os.fdopen(os.open(path, _LOCK_FLAGS, 0o600), "ab")
            give_up = time.monotonic() + LONGEST_WAIT
            while not _try_lock(self._file) and time.monotonic() < give_up:
                time.sleep(WAIT)

    def release(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                _unlock(self._file)  # closing is not enough where a process was forked meanwhile
            self._file.close()


def _try_lock(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # held by another process
        return False
    return True


def _unlock(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_UN)
