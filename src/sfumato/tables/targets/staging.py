"""Write files completely or not at all: complete them under another name beside the target, then rename them together.

A staged file is private to its owner (0600) and locked while its run is alive. A killed run leaves its files behind
without the lock; the next command on the same target removes them. Several files become one release by the journal of
``file_publication.py``: once it is written, the next command ends what a killed run began.

A symbolic link at the target is replaced by the file; the file that it points to stays unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from sfumato.errors import NO_SPACE, OutputError, UsageError
from sfumato.tables.locations import ServerLocation
from sfumato.tables.targets.file_operations import (
    current_mask,
    is_still,
    lock,
    locked,
    open_without_waiting,
    remove,
    sync_directory,
)
from sfumato.tables.targets.file_publication import Publication, remove_draft, settle_beside
from sfumato.tables.targets.journal import (
    MARK,
    MOST_BYTES,
    Entry,
    Journal,
    Transaction,
    certificate_digest,
    new_token,
    staged_name,
)

SCRATCH = ".scratch"
ELSEWHERE = ".elsewhere"


class Stage:
    """Files that are published together.

    Inside ``with``, ``path`` and ``directory`` return the name to write to, and ``publish`` puts everything in place.
    What was not published is removed on exit, also after an error or an interruption.
    """

    def __init__(self) -> None:
        self._token = new_token()
        self._staged: list[tuple[Path, Path]] = []
        self._locks: dict[Path, int] = {}
        self._private: set[Path] = set()
        self._withdrawn: list[Path] = []
        self._elsewhere: Path | None = None  # lists what is staged in other directories than the first file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for staged in [*(staged for staged, _ in self._staged), *self._withdrawn]:
            _discard(staged)
        for handle in self._locks.values():
            os.close(handle)
        self._staged, self._locks = [], {}

    def path(self, target: Path, *, private: bool = False) -> Path:
        """Create a file beside ``target`` with the same suffixes. A ``private`` file stays private once published."""
        check_target(target)
        staged = self._create(target, lambda path: os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._private |= {staged} if private else set()
        return staged

    def directory(self, target: Path) -> Path:
        """Create a private directory beside ``target``. It is published as a whole, with the certificate in it."""
        return self._create(target, _make_directory)

    def adopt(self, directory: Path, target: Path) -> Path:
        """Stage a private directory that was completed elsewhere in the same file system."""

        def move(path: Path) -> int:
            handle = open_without_waiting(directory)
            lock(handle)  # before it has a name that others look for
            os.fchmod(handle, 0o700)
            directory.rename(path)
            return handle

        return self._create(target, move)

    def fill(self, staged: Path, file: Path) -> None:
        """Make a private file that was completed elsewhere in the same file system the contents of a staged one."""
        try:
            handle = open_without_waiting(file)
            self._locks[file] = handle
            lock(handle)
            os.fchmod(handle, 0o600)
            file.replace(staged)
        except OSError as error:
            raise cannot_write(staged, error) from None

    def withdraw(self, staged: Path) -> None:
        """Take a file out of what is published. It is removed on exit."""
        self._staged = [(path, target) for path, target in self._staged if path != staged]
        self._withdrawn.append(staged)

    def publish(self, check: Callable[[], None] = lambda: None) -> None:
        """Put everything in place. If something cannot be renamed, nothing is.

        ``check`` may refuse it at the last moment, while no other run publishes to the same target.
        """
        self._publish(self._staged[0][1], None, check, lambda: None)

    def publish_with(self, transaction: Transaction, commit: Callable[[], None], main: Path | None = None) -> None:
        """Put everything in place together with what ``commit`` publishes in a database.

        ``main`` is the file of the database; without one, the journal is beside the first of the files.
        """
        if self._staged:
            self._publish(main or self._staged[0][1], transaction, lambda: None, commit)
        else:
            commit()

    def _publish(
        self, main: Path, transaction: Transaction | None, check: Callable[[], None], commit: Callable[[], None]
    ) -> None:
        publication = Publication(main)
        try:
            entries = []
            for staged, target in self._staged:
                publication.current = target
                entries.append(self._synced(staged, target))
            publication.current = main
            with publication:
                check()
                publication.commit(Journal(self._token, tuple(entries), transaction))
                commit()
                publication.decided = transaction is not None
                publication.put_in_place()
        except OSError as error:
            if publication.left_open:
                reason = os.strerror(error.errno) if error.errno else type(error).__name__
                raise OutputError(
                    f"{publication.current} could not be put in place yet: {reason}. The release is complete, and the "
                    f"next command on {main} puts it in place."
                ) from None
            raise cannot_write(publication.current, error) from None
        finally:
            if publication.left_open:
                self._staged.clear()  # they belong to the journal now
        self._staged.clear()

    def _create(self, target: Path, create: Callable[[Path], int]) -> Path:
        staged = staged_name(target.absolute(), self._token)
        try:
            recover(target)
            self._note(staged)
            self._staged.append((staged, target))  # before it exists, so that no interruption leaves it
            while True:
                handle = create(staged)
                # Another run may take the file for abandoned just before it is locked, and remove it.
                lock(handle, wait=True)
                if is_still(staged, handle):
                    self._locks[staged] = handle
                    return staged
                os.close(handle)
        except OSError as error:
            raise cannot_write(target, error) from None

    def _note(self, staged: Path) -> None:
        """Note a file that is staged elsewhere beside the first one, so that it is found if this run is killed."""
        if self._elsewhere is None:
            self._elsewhere = staged.with_name(staged.name + ELSEWHERE)
        if staged.parent == self._elsewhere.parent:
            return
        if self._elsewhere not in self._locks:
            self._withdrawn.append(self._elsewhere)
            handle = os.open(self._elsewhere, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            lock(handle)
            self._locks[self._elsewhere] = handle
        os.write(self._locks[self._elsewhere], f"{json.dumps(str(staged))}\n".encode())

    def _synced(self, staged: Path, target: Path) -> Entry:
        """Sync what is staged, and return what becomes of it."""
        number = staged.stat().st_ino
        if staged.is_dir():
            _sync_contents(staged)
            mode = _usual_permissions(target, 0o777)
            return Entry(staged, target.absolute(), mode, number, certificate_digest(staged))
        with staged.open("rb") as file:
            os.fsync(file.fileno())
        mode = 0o600 if staged in self._private else _usual_permissions(target, 0o666)
        return Entry(staged, target.absolute(), mode, number)


def write_staged(stage: Stage, target: Path, text: str, *, private: bool = False) -> None:
    """Stage a text file."""
    staged = stage.path(target, private=private)
    try:
        staged.write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise cannot_write(target, error) from None


def recover(target: Path, server: ServerLocation | None = None) -> None:
    """End what killed runs have begun to publish at ``target``, and remove what they had only staged.

    ``server`` is where the table is that was published with it, if it was one.
    """
    if "\0" in str(target):
        return  # no file can have this name; opening it says so
    settle_beside(target, server)
    remove_draft(target)
    _remove_abandoned(target)


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


def _make_directory(path: Path) -> int:
    path.mkdir(mode=0o700)
    return open_without_waiting(path)


def _discard(staged: Path) -> None:
    # The earlier error is the one to report.
    with contextlib.suppress(OSError):
        remove(_scratch_of(staged))
        remove(staged)


def _remove_abandoned(target: Path) -> None:
    """Remove what a killed run has staged for ``target``, and elsewhere for the same release."""
    target = target.absolute()
    try:
        staged = [name for name in os.listdir(target.parent) if MARK in name]
    except (OSError, ValueError):
        return
    for token in {name.partition(MARK)[0] for name in staged}:
        names = [name for name in staged if name.startswith(f"{token}{MARK}")]
        # The first two are locked while their run is alive. A scratch directory without them is of no more use. The
        # last to be removed leads to the others.
        own, noted, scratch = (f"{token}{MARK}{target.name}{end}" for end in ("", ELSEWHERE, SCRATCH))
        last = next((name for name in (noted, own, scratch) if name in names), None)
        if last is None:
            continue
        with contextlib.suppress(OSError), locked(target.with_name(last)) as handle:
            others = [target.with_name(name) for name in names if name != last]
            for other in [*others, *(_noted(handle, token) if last == noted else [])]:
                with contextlib.suppress(OSError), locked(other):
                    remove(other)
            remove(target.with_name(last))


def _noted(handle: int, token: str) -> list[Path]:
    """Return what a killed run of this user has staged elsewhere. Only names with the mark of that run count."""
    if os.name == "posix" and os.fstat(handle).st_uid != os.geteuid():
        return []
    paths = []
    for line in os.pread(handle, MOST_BYTES, 0).decode("utf-8", "replace").splitlines():
        with contextlib.suppress(ValueError, TypeError):  # a line that the run did not finish
            path = Path(json.loads(line))
            paths += [path] if path.name.startswith(f"{token}{MARK}") and path.is_absolute() else []
    return paths


def _sync_contents(directory: Path) -> None:
    """Sync the files of a private directory, and give them the usual permissions, which nobody can use yet."""
    mask = current_mask()
    for folder, _, names in os.walk(directory, topdown=False):
        for name in names:
            handle = open_without_waiting(Path(folder, name))
            try:
                os.fchmod(handle, 0o666 & ~mask)
                os.fsync(handle)
            finally:
                os.close(handle)
        if Path(folder) != directory:
            Path(folder).chmod(0o777 & ~mask)
        sync_directory(Path(folder))


def _usual_permissions(target: Path, new: int) -> int:
    """Return the permissions of what is replaced, or else those of a new file or directory."""
    with contextlib.suppress(FileNotFoundError):
        mode = target.lstat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return mode & 0o777
    return new & ~current_mask()
