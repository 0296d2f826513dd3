"""Write a release as a directory of Parquet files.

    DIRECTORY/part-00000.parquet ...       the release
    DIRECTORY/_certificate.sfumato.json    skipped by readers of directories, as all names with an underscore are
    DIRECTORY/_sensitive/part-00000...     the second table, in a release that has two

The directory is completed under another name beside its target and then exchanged with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from sfumato.errors import OutputError, UsageError
from sfumato.tables.locations import DirectoryLocation
from sfumato.tables.sources.parquet_directory_source import DirectorySource, parquet_files
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.digests import file_digest
from sfumato.tables.targets.file_writers import ROW_GROUP, Batches, parquet_writer, row_groups
from sfumato.tables.targets.staging import MARK, cannot_write, check_target, current_mask, sync_directory
from sfumato.tables.targets.target import CertifiedTable

try:
    import fcntl
except ImportError:  # Windows cannot lock a directory, so nothing counts as abandoned there
    fcntl = None  # type: ignore[assignment]

PART_ROWS = 4 * ROW_GROUP
PART = re.compile(r"part-\d{5,}\.parquet")
REPLACED = ".sfumato-replaced-"
_HERE = -100  # AT_FDCWD: paths are relative to the current directory
_EXCHANGE = 2  # RENAME_EXCHANGE


class DirectoryTarget:
    """A directory that appears, or replaces an earlier release, as a whole."""

    def __init__(self, location: DirectoryLocation) -> None:
        self._target = location.path
        self._written: list[DirectoryLocation] = []
        self._lock: int | None = None
        self._staged = DirectoryLocation(_beside(location.path, MARK))

    def __enter__(self) -> Self:
        check_directory(DirectoryLocation(self._target))
        with self._writing():
            _restore_or_remove(self._target)
            self._staged.path.mkdir(mode=0o700)
            if fcntl is not None:
                self._lock = os.open(self._staged.path, os.O_RDONLY)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._staged.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        directory = self._staged.sensitive if self._written else self._staged
        self._written.append(directory)
        with self._writing(), contextlib.ExitStack() as part:
            directory.path.mkdir(mode=0o700, exist_ok=True)
            number, rows, writer = 0, 0, part.enter_context(parquet_writer(schema, _part(directory, 0)))
            for group in row_groups(schema, batches, coded=True):
                if rows >= PART_ROWS:
                    part.close()
                    number, rows = number + 1, 0
                    writer = part.enter_context(parquet_writer(schema, _part(directory, number)))
                writer.write_table(group.cast(writer.schema), row_group_size=ROW_GROUP)
                rows += group.num_rows
        return DirectorySource(directory.path)

    def certified(self) -> list[CertifiedTable]:
        files = [file for directory in self._written for file in parquet_files(directory.path)]
        return [
            {
                "name": file.relative_to(self._staged.path).as_posix(),
                "bytes": file.stat().st_size,
                "sha256": file_digest(file),
            }
            for file in files
        ]

    def publish(self, certificate: str) -> None:
        with self._writing():
            self._staged.certificate.write_text(certificate, "utf-8")
            mask = current_mask()
            for folder, _, names in os.walk(self._staged.path, topdown=False):
                for name in names:
                    with Path(folder, name).open("rb") as file:
                        os.fsync(file.fileno())
                    Path(folder, name).chmod(0o666 & ~mask)
                sync_directory(Path(folder))
                Path(folder).chmod(0o777 & ~mask)
            if self._target.is_dir():
                self._staged.path.chmod(self._target.stat().st_mode & 0o777)
            _exchange(self._staged.path, self._target)
            sync_directory(self._target.absolute().parent)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise cannot_write(self._target, error) from None
        except pa.ArrowException as error:
            raise OutputError(
                f"cannot write {self._target}: Parquet cannot hold this table ({type(error).__name__}). Choose another "
                "format."
            ) from None


def check_directory(location: DirectoryLocation) -> None:
    """Refuse, before any work is done, a directory that cannot take a release."""
    target = location.path
    if not target.is_dir():
        check_target(target)
        if target.exists():
            raise UsageError(f"the output {target} is a file. Name a directory that does not exist yet.")
        return
    try:
        names = {entry.name for entry in target.iterdir()}
        sensitive = location.sensitive.path
        sensitive_names = {entry.name for entry in sensitive.iterdir()} if sensitive.is_dir() else set()
    except OSError as error:
        raise cannot_write(target, error) from None
    others = [name for name in names - {sensitive.name, location.certificate.name} if not PART.fullmatch(name)]
    if target.is_symlink() or others or any(not PART.fullmatch(name) for name in sensitive_names):
        raise UsageError(
            f"the output {target} is a directory that holds other things than a release. Name a file in it, or a "
            "separate directory that ends in a slash."
        )
    if not os.access(target.absolute().parent, os.W_OK | os.X_OK):
        raise OutputError(f"no permission to write to the directory {target.absolute().parent}. Choose another output.")


def _part(directory: DirectoryLocation, number: int) -> Path:
    return directory.path / f"part-{number:05}.parquet"


def _beside(target: Path, mark: str) -> Path:
    target = target.absolute()
    return target.with_name(f".{secrets.token_hex(4)}{mark}{target.name}")


def _exchange(staged: Path, target: Path) -> None:
    """Exchange two directories. Where the system supports it, a directory exists at the target at every moment."""
    if not target.exists():
        staged.rename(target)
        return
    if _exchange_atomically(staged, target):
        return
    aside = _beside(target, REPLACED)
    target.rename(aside)
    try:
        staged.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _exchange_atomically(staged: Path, target: Path) -> bool:
    """Exchange two directories in one step, and return whether the system could do that."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    return rename is not None and rename(_HERE, os.fsencode(staged), _HERE, os.fsencode(target), _EXCHANGE) == 0


def _restore_or_remove(target: Path) -> None:
    """Put back what a killed run had set aside, and remove what it had not finished."""
    folder, name = target.absolute().parent, glob.escape(target.absolute().name)
    for aside in folder.glob(f".*{REPLACED}{name}"):
        with contextlib.suppress(OSError):
            if target.exists():
                shutil.rmtree(aside)
            else:
                aside.rename(target)
    for unfinished in folder.glob(f".*{MARK}{name}") if fcntl is not None else ():
        with contextlib.suppress(OSError):
            lock = os.open(unfinished, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(unfinished)
            finally:
                os.close(lock)
