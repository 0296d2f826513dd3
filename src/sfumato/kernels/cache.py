"""Machine code of kernels, kept in the user's cache directory for later processes.

One file holds one kernel for arguments of certain types. Its name carries the kernel's fingerprint, so a file never
changes its meaning, and releases, checkouts and branches that share a kernel share its machine code.

Where several processes need the same kernel, one compiles it and the others wait for its file. The operating system
releases the lock when its holder ends, however it ends. Whoever cannot lock, or waits too long, compiles for itself.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import IO, Any

import numba
from numba.core import caching, compiler, serialize
from numba.core.compiler_lock import global_compiler_lock
from platformdirs import user_cache_path

from sfumato.kernels.fingerprint import CannotHashError, fingerprint

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LONGEST_WAIT = 120.0  # seconds; the holder of the lock may have been stopped
WAIT = 0.02  # seconds between two attempts to lock


@cache
def cache_directory() -> Path | None:
    """Return the directory of machine code, or None if it is not writable: kernels then compile in every process.

    Its name is a hash of how kernels are compiled: Python, numba and this package. Each file knows its kernel and CPU.
    """
    root = os.environ.get("SFUMATO_CACHE_DIR")
    directory = (Path(root) if root else user_cache_path("sfumato")) / "kernels" / _compiler_digest()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


def _compiler_digest() -> str:
    digest = hashlib.sha256(f"{sys.version_info[:2]} {numba.__version__}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class KernelCache(caching._Cache):
    """The machine code of one kernel, in the form in which numba asks for it while it holds its compiler lock."""

    def __init__(self, function: FunctionType, directory: Path) -> None:
        self._function = function
        self._directory = directory
        self._lock: _FileLock | None = None
        self._depth = 0

    def compiling(self, compile_kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``compile_kernel`` with a lock around it from the first miss to its end, however it ends."""

        def compile_once(*arguments: Any) -> Any:
            with global_compiler_lock:
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


def _load(path: Path, target_context: Any) -> Any:
    try:
        parts = pickle.loads(path.read_bytes())  # noqa: S301 - from the user's own directory, written below
    except (OSError, EOFError, pickle.UnpicklingError):  # absent, or cut off when the machine went down
        return None
    return compiler.CompileResult._rebuild(target_context, *parts)


def _write(path: Path, content: bytes) -> None:
    """Write the file whole or not at all."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


class _FileLock:
    """A lock between processes, taken when it is made. Without a file system that locks, it holds nothing."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] | None = None
        with contextlib.suppress(OSError):
            self._file = path.open("ab")
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
