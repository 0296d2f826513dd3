"""Whole or not at all: files are finished under another name beside their target, then renamed.

A staged file belongs to its owner alone (0600) and is locked while its run lives. A run that was killed leaves its file
behind without the lock; the next run that writes to the same place removes it.

A link that stands at the target is replaced by the file; what it led to stays as it is.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from sfumato.errors import OutputError, UsageError

try:
    import fcntl
except ImportError:  # Windows refuses to remove a file that is open, which serves as the lock
    fcntl = None  # type: ignore[assignment]

MARK = ".sfumato-stage-"
SCRATCH = ".scratch"


class Stage:
    """Some files of one release, published together.

    Inside ``with``: ``path`` gives the name to write to, ``publish`` renames in the order of the calls of ``path``.
    Whatever was not published is removed on the way out, also after an error or an interruption.
    """

    def __init__(self) -> None:
        self._staged: list[tuple[Path, Path]] = []
        self._locks: list[IO[bytes]] = []
        self._replaced: list[Path] = []  # second names of files that were replaced
        self._private: set[Path] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for left in [*(staged for staged, _ in self._staged), *self._replaced]:
            # What went wrong before is the error to tell.
            with contextlib.suppress(OSError):
                left.unlink()
        for lock in self._locks:
            lock.close()

    def path(self, target: Path, *, private: bool = False) -> Path:
        """A fresh file beside ``target``, with the same suffixes; ``private`` stays its owner's alone."""
        check_target(target)
        try:
            _remove_abandoned(target)
            while True:
                staged = _stage_name(target)
                self._staged.append((staged, target))  # before it exists, so that no interruption leaves it behind
                lock = os.fdopen(os.open(staged, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "rb")
                self._locks.append(lock)
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                # Another run may have taken the file for abandoned in the moment before it was locked.
                if staged.exists():
                    self._private |= {staged} if private else set()
                    return staged
                self._staged.pop()
        except OSError as error:
            raise cannot_write(target, error) from None

    def publish(self) -> None:
        """Sync every file to the disk, give it its usual permissions, and rename them one after the other.

        When one cannot be renamed, those before it are taken back.
        """
        target = self._staged[0][1]
        try:
            for staged, target in self._staged:
                with staged.open("rb") as file:
                    os.fsync(file.fileno())
                if staged not in self._private:
                    staged.chmod(_usual_permissions(target))
            with contextlib.ExitStack() as undo:
                for staged, target in self._staged:
                    undo.callback(self._replace(staged, target))
                sync_directory(target.parent)
                self._staged.clear()
                undo.pop_all()
        except OSError as error:
            raise cannot_write(target, error) from None

    def _replace(self, staged: Path, target: Path) -> Callable[[], object]:
        """Rename, and say how to take that back."""
        old = _stage_name(target)
        try:
            os.link(target, old, follow_symlinks=False)
            self._replaced.append(old)
        except (OSError, NotImplementedError):  # there is none, or the file system has no second names
            staged.replace(target)
            return partial(target.unlink, missing_ok=True)
        staged.replace(target)
        return partial(old.replace, target)


def check_target(target: Path) -> None:
    """Refuse what can be seen to be no place for a file before any work is done."""
    if "\0" in str(target) or any("\ud800" <= character <= "\udfff" for character in str(target)):
        raise UsageError("the path of the output holds a NUL character or is not UTF-8. Choose another output.")
    try:
        is_directory, has_parent = target.is_dir(), target.parent.is_dir()
    except OSError as error:  # a directory on the way may not be searched
        raise cannot_write(target, error) from None
    if is_directory:
        raise UsageError(f"the output {target} is a directory. Name a file in it.")
    if not has_parent:
        raise OutputError(f"the directory {target.parent} of the output does not exist. Create it first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise OutputError(f"no permission to write to the directory {target.parent}. Choose another output.")


def cannot_write(path: Path, error: OSError) -> OutputError:
    """The system's reason in our words. The text of a library is not repeated: it may hold data."""
    target = final_path(path)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return OutputError(f"no space left for {target}; nothing was written. Free some space or choose another disk.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError(f"no permission to write {target}. Choose another output.")
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return OutputError(f"cannot write {target}: {reason}. Choose another output.")


def final_path(path: Path) -> Path:
    """The target of a staged file, which is the name that users know; any other path as it is."""
    _, mark, name = path.name.partition(MARK)
    return path.with_name(name) if mark else path


@contextlib.contextmanager
def scratch_directory(staged: Path) -> Iterator[Path]:
    """A directory of its owner alone for what a writer needs on the way. It goes when the staged file goes."""
    directory = _scratch_of(staged)
    directory.mkdir(mode=0o700)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _scratch_of(staged: Path) -> Path:
    return staged.with_name(staged.name + SCRATCH)


def _stage_name(target: Path) -> Path:
    return target.with_name(f".{secrets.token_hex(4)}{MARK}{target.name}")


def _remove_abandoned(target: Path) -> None:
    for left in target.parent.glob(f".*{MARK}{glob.escape(target.name)}"):
        with contextlib.suppress(OSError), left.open("rb") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(_scratch_of(left), ignore_errors=True)
            left.unlink()


def _usual_permissions(target: Path) -> int:
    """Those of the file that is replaced, else those that a new file gets."""
    with contextlib.suppress(FileNotFoundError):
        found = target.lstat().st_mode
        if stat.S_ISREG(found):
            return found & 0o777
    return 0o666 & ~current_mask()


def current_mask() -> int:
    """The permissions that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_directory(directory: Path) -> None:
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
