"""Whole or not at all: files are finished under another name beside their target, then renamed.

A staged file belongs to its owner alone (0600) and is locked while its run lives. A run that was killed leaves its file
behind without the lock; the next run that writes to the same place removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from sfumato.errors import OutputError, UsageError

try:
    import fcntl
except ImportError:  # Windows refuses to remove a file that is open, which serves as the lock
    fcntl = None  # type: ignore[assignment]

MARK = ".sfumato-stage-"


class Stage:
    """Some files of one release, published together.

    Inside ``with``: ``path`` gives the name to write to, ``publish`` renames in the order of the calls of ``path``.
    Whatever was not published is removed on the way out, also after an error or an interruption.
    """

    def __init__(self) -> None:
        self._staged: list[tuple[Path, Path]] = []
        self._locks: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for staged, _ in self._staged:
            with contextlib.suppress(FileNotFoundError):
                staged.unlink()
        for lock in self._locks:
            lock.close()

    def path(self, target: Path) -> Path:
        """A fresh file beside ``target``, with the same suffixes."""
        check_target(target)
        staged = target.with_name(f".{secrets.token_hex(4)}{MARK}{target.name}")
        try:
            _remove_abandoned(target)
            lock = os.fdopen(os.open(staged, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "rb")
        except OSError as error:
            raise cannot_write(target, error) from None
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._staged.append((staged, target))
        self._locks.append(lock)
        return staged

    def publish(self) -> None:
        """Sync every file to the disk, give it its usual permissions, and rename them one after the other."""
        mask = os.umask(0)
        os.umask(mask)
        try:
            for staged, target in self._staged:
                with staged.open("rb") as file:
                    os.fsync(file.fileno())
                staged.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
            while self._staged:
                staged, target = self._staged[0]
                staged.replace(target)
                self._staged.pop(0)
            _sync_directory(target.parent)
        except OSError as error:
            raise cannot_write(self._staged[0][1] if self._staged else target, error) from None


def check_target(target: Path) -> None:
    """Refuse what can be seen to be no place for a file before any work is done."""
    if target.is_dir():
        raise UsageError(f"the output {target} is a directory. Name a file in it.")
    if not target.parent.is_dir():
        raise OutputError(f"the directory {target.parent} of the output does not exist. Create it first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise OutputError(f"no permission to write to the directory {target.parent}. Choose another output.")


def cannot_write(target: Path, error: OSError) -> OutputError:
    """The system's reason in our words. The text of a library is not repeated: it may hold data."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return OutputError(f"no space left for {target}; nothing was written. Free some space or choose another disk.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError(f"no permission to write {target}. Choose another output.")
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return OutputError(f"cannot write {target}: {reason}.")


def _remove_abandoned(target: Path) -> None:
    for left in target.parent.glob(f".*{MARK}{target.name}"):
        with contextlib.suppress(OSError), left.open("rb") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _sync_directory(directory: Path) -> None:
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
