"""The scratch directory of a run, for what does not fit into memory: private, and removed when the run ends.

The directory is locked while its run is alive. A killed run leaves it behind without the lock; the next run with the
same parent directory removes it.
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

from sfumato.errors import NO_SPACE, OutputError
from sfumato.files.regular_file import open_regular

try:
    import fcntl
except ImportError:  # on Windows an open file cannot be removed, which serves as the lock
    fcntl = None  # type: ignore[assignment]

MARK = ".sfumato-scratch-"
LOCK = "lock"


@dataclass
class BytesMoved:
    """The number of bytes read and written."""

    read: int = 0
    written: int = 0


class Scratch:
    """A private directory below ``parent``, by default the system's directory for temporary files."""

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = Path(tempfile.gettempdir()) if parent is None else parent
        self._lock: IO[bytes] | None = None
        self._files = 0
        self.tally = BytesMoved()
        self.directory = self._parent / f"{MARK}{secrets.token_hex(8)}"

    def __enter__(self) -> Self:
        try:
            with scratch_errors(self._parent):
                _remove_abandoned(self._parent)
                while self._lock is None:
                    self.directory.mkdir(mode=0o700)
                    with contextlib.suppress(FileNotFoundError):  # another run took the empty directory for abandoned
                        self._lock = (self.directory / LOCK).open("wb")
                if fcntl is not None:
                    fcntl.flock(self._lock, fcntl.LOCK_EX)
        except BaseException:  # also an interruption, since nobody has anything to close yet
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the directory and everything in it."""
        if self._lock is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self._lock.close()
            self._lock = None

    def path(self, name: str) -> Path:
        """Return a path that no other file here has; ``name`` describes its contents."""
        self._files += 1
        return self.directory / f"{self._files:06}-{name}"


@contextlib.contextmanager
def scratch_errors(directory: Path) -> Iterator[None]:
    """Turn an OSError about a temporary file into an OutputError that names ``directory``."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutputError(
                f"no space left for temporary files in {directory}. Free some space, or name "
                "another directory with --temporary."
            ) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise OutputError(
                f"no permission to write temporary files in {directory}. Name another directory with --temporary."
            ) from None
        if error.errno == errno.ENOENT:
            raise OutputError(
                f"the temporary files in {directory} are gone, or the directory does not exist. "
                "Run again, or name another directory with --temporary."
            ) from None
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise OutputError(
            f"temporary files in {directory} cannot be used: {reason}. Name another directory with --temporary."
        ) from None


def _remove_abandoned(parent: Path) -> None:
    for abandoned in parent.glob(f"{MARK}*"):
        # Errors mean that the directory belongs to another user or a living run, or that another run just removed it.
        with contextlib.suppress(OSError):
            if not (abandoned / LOCK).exists():
                abandoned.rmdir()  # its run was killed before it could lock it, so it is empty
        with contextlib.suppress(OSError), open_regular(abandoned / LOCK) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(abandoned, ignore_errors=True)
