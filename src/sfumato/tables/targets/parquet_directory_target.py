"""Write a release as a directory of Parquet files.

    DIRECTORY/part-00000.parquet ...       the release
    DIRECTORY/_certificate.sfumato.json    skipped by readers of directories, as all names with an underscore are
    DIRECTORY/_sensitive/part-00000...     the second table, in a release that has two

The directory is completed under another name beside its target and then exchanged with it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
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
from sfumato.tables.targets.staging import Stage, cannot_write, check_target
from sfumato.tables.targets.target import CertifiedTable, ReleasePage, stage_pages

PART_ROWS = 4 * ROW_GROUP
PART = re.compile(r"part-\d{5,}\.parquet")


class DirectoryTarget:
    """A directory that appears, or replaces an earlier release, as a whole."""

    def __init__(self, location: DirectoryLocation) -> None:
        self._target = location.path
        self._written: list[DirectoryLocation] = []
        self._stage = Stage()
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        check_directory(DirectoryLocation(self._target))
        self._staged = DirectoryLocation(self._stage.directory(self._target))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stage.__exit__(kind, error, trace)

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

    def publish(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        with self._writing():
            self._staged.certificate.write_text(certificate, "utf-8")
        stage_pages(self._stage, pages)
        check_directory(DirectoryLocation(self._target))  # somebody may have put a file there in the meantime
        self._stage.publish()

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
