"""Write files completely or not at all: complete them under another name beside the target, then rename them.

A staged file is private to its owner (0600) and locked while its run is alive. A killed run leaves its file behind
without the lock; the next run that writes to the same target removes it.

A symbolic link at the target is replaced by the file; the file that it points to stays unchanged.
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

from sfumato.errors import NO_SPACE, OutputError, UsageError
from sfumato.files.regular_file import open_regular

try:
    import fcntl
except ImportError:  # on Windows an open file cannot be removed, which serves as the lock
    fcntl = None  # type: ignore[assignment]

MARK = ".sfumato-stage-"
SCRATCH = ".scratch"


class Stage:
    """Files that are published together.

    Inside ``with``, ``path`` returns the name to write to, and ``publish`` renames the files in the order of the calls
    of ``path``. Files that were not published are removed on exit, also after an error or an interruption.
    """

    def __init__(self) -> None:
        self._staged: list[tuple[Path, Path]] = []
        self._locks: list[IO[bytes]] = []
        self._replaced: list[Path] = []  # hard links to files that were replaced
        self._private: set[Path] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for remaining in [*(staged for staged, _ in self._staged), *self._replaced]:
            # The earlier error is the one to report.
            with contextlib.suppress(OSError):
                remaining.unlink()
        for lock in self._locks:
            lock.close()

    def path(self, target: Path, *, private: bool = False) -> Path:
        """Create a file beside ``target`` with the same suffixes. A ``private`` file stays private once published."""
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
                # Another run may have removed the file as abandoned just before it was locked.
                if staged.exists():
                    self._private |= {staged} if private else set()
                    return staged
                self._staged.pop()
        except OSError as error:
            raise cannot_write(target, error) from None

    def publish(self) -> None:
        """Sync every file to disk, give it the usual permissions, and rename the files one after another.

        If a file cannot be renamed, the earlier renames are undone.
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
        """Rename a file, and return a function that undoes it."""
        old = _stage_name(target)
        try:
            os.link(target, old, follow_symlinks=False)
            self._replaced.append(old)
        except (OSError, NotImplementedError):  # the target does not exist, or the file system has no hard links
            staged.replace(target)
            return partial(target.unlink, missing_ok=True)
        staged.replace(target)
        return partial(old.replace, target)


def check_target(target: Path) -> None:
    """Refuse, before any work is done, a path that cannot become a file."""
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


def cannot_write(path: str | Path, error: OSError) -> OutputError:
    """Return an error with the reason of the system in our words. Texts of libraries may hold data, so none is used."""
    target = final_path(path) if isinstance(path, Path) else path
    if error.errno in NO_SPACE:
        return no_space_left(target)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError(f"no permission to write {target}. Choose another output.")
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return OutputError(f"cannot write {target}: {reason}. Choose another output.")


def no_space_left(target: str | Path) -> OutputError:
    """Return the error of a full disk. It speaks of this output alone: others of the same command may be in place."""
    return OutputError(f"no space left for {target}; it was not written. Free some space or choose another disk.")


def final_path(path: Path) -> Path:
    """Return the target of a staged file, the name that users know; any other path is returned unchanged."""
    _, mark, name = path.name.partition(MARK)
    return path.with_name(name) if mark else path


@contextlib.contextmanager
def scratch_directory(staged: Path) -> Iterator[Path]:
    """Create a private directory for the temporary files of a writer. It is removed with the staged file."""
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
    for abandoned in target.parent.glob(f".*{MARK}{glob.escape(target.name)}"):
        with contextlib.suppress(OSError), open_regular(abandoned) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(_scratch_of(abandoned), ignore_errors=True)
            abandoned.unlink()


def _usual_permissions(target: Path) -> int:
    """Return the permissions of the file that is replaced, or else those of a new file."""
    with contextlib.suppress(FileNotFoundError):
        mode = target.lstat().st_mode
        if stat.S_ISREG(mode):
            return mode & 0o777
    return 0o666 & ~current_mask()


def current_mask() -> int:
    """Return the umask of the process: the permissions that new files do not get."""
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
