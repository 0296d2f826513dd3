"""Operations on files that the standard library has not: locks, syncs, permissions, and the exchange of directories."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows an open file cannot be removed or renamed, which serves as the lock
    fcntl = None  # type: ignore[assignment]

_HERE = -100  # AT_FDCWD: paths are relative to the current directory
_EXCHANGE = 2  # RENAME_EXCHANGE


def sync_directory(directory: Path) -> None:
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def current_mask() -> int:
    """Return the umask of the process: the permissions that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Let a library create its files, such as the log of a database, for their owner alone."""
    mask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(mask)


@contextlib.contextmanager
def new_directories(wanted: set[Path]) -> Iterator[None]:
    """Create the missing directories; if the block fails, remove them again."""
    missing = [directory for directory in wanted if not directory.is_dir()]
    for directory in missing:
        directory.mkdir()
    try:
        yield
    except BaseException:
        for directory in missing:
            with contextlib.suppress(OSError):  # another program uses it by now
                directory.rmdir()
        raise


def open_without_waiting(path: Path) -> int:
    """Open a file or directory to lock it. A symbolic link is not followed, and a pipe does not keep us waiting."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.open(path, flags)


def lock(handle: int, *, wait: bool = False) -> None:
    """Lock an open file; without ``wait``, raise BlockingIOError if another run holds it."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Lock a file that exists. Raises OSError if it does not, or if another run holds it."""
    handle = open_without_waiting(path)
    try:
        lock(handle)
        if not is_still(path, handle):
            raise FileNotFoundError
        yield handle
    finally:
        os.close(handle)


def is_still(path: Path, handle: int) -> bool:
    """Return whether a path still leads to the open file: another run may have removed or renamed it."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(handle))


def exchange_atomically(staged: Path, target: Path) -> bool:
    """Exchange two directories in one step, and return whether the system could do that."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    return rename is not None and rename(_HERE, os.fsencode(staged), _HERE, os.fsencode(target), _EXCHANGE) == 0


def set_mode(path: Path, mode: int) -> None:
    if os.name != "posix":
        return
    handle = open_without_waiting(path)
    try:
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Remove a file, or a directory with its contents, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
