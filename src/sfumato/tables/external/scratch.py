"""Where a run keeps what does not fit into memory: a directory of its owner alone, gone when the run is over.

The directory is locked while its run lives. A run that was killed leaves it behind without the lock; the next run that
needs one in the same place removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from sfumato.errors import OutputError

try:
    import fcntl
except ImportError:  # Windows refuses to remove a file that is open, which serves as the lock
    fcntl = None  # type: ignore[assignment]

MARK = ".sfumato-scratch-"
LOCK = "lock"


@dataclass
class BytesMoved:
    """Bytes that were read and written."""

    read: int = 0
    written: int = 0


class Scratch:
    """A private directory below ``parent``, by default the system's directory for temporary files."""

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = Path(tempfile.gettempdir()) if parent is None else parent
        self._lock: IO[bytes] | None = None
        self._given = 0
        self.tally = BytesMoved()
        self.directory = self._parent / f"{MARK}{secrets.token_hex(8)}"

    def __enter__(self) -> Self:
        with scratching(self._parent):
            _remove_abandoned(self._parent)
            self.directory.mkdir(mode=0o700)
            self._lock = (self.directory / LOCK).open("wb")
            if fcntl is not None:
                fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove all of it."""
        if self._lock is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self._lock.close()
            self._lock = None

    def path(self, name: str) -> Path:
        """A name that no other file here has; ``name`` says what is in it."""
        self._given += 1
        return self.directory / f"{self._given:06}-{name}"


@contextlib.contextmanager
def scratching(directory: Path) -> Iterator[None]:
    """The system's reason in our words when a temporary file cannot be made, written or read."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OutputError(
                f"no space left for temporary files in {directory}; nothing was written. Free some space, or name "
                "another directory with --temporary."
            ) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise OutputError(
                f"no permission to keep temporary files in {directory}. Name another directory with --temporary."
            ) from None
        if error.errno == errno.ENOENT:
            raise OutputError(
                f"the temporary files in {directory} are gone, or the directory was never there; nothing was written. "
                "Run again, or name another directory with --temporary."
            ) from None
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise OutputError(
            f"temporary files in {directory} cannot be used: {reason}; nothing was written. Name another directory "
            "with --temporary."
        ) from None


def _remove_abandoned(parent: Path) -> None:
    for left in parent.glob(f"{MARK}*"):
        # What belongs to others, or was removed by another run just now, is none of ours.
        with contextlib.suppress(OSError), (left / LOCK).open("rb") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
