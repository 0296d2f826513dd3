"""Check that files do not change while a table is read.

A table is read several times, and columns of one pass are combined with those of another, so both must hold the same
records. The size, time and inode of every file are therefore recorded when it is opened, and checked before and after
each pass.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from sfumato.errors import InputError

Stamp = tuple[int, int, int]


class UnchangedFiles:
    """The files of one table, as they were when it was opened.

    ``files`` lists them and is called at every check, since a file may be added. ``companions`` are files that may or
    may not exist, such as the log of a database.
    """

    def __init__(self, files: Callable[[], Iterable[Path]], where: str, companions: Iterable[Path] = ()) -> None:
        self._files = files
        self._where = where
        self._companions = tuple(companions)
        self._stamps = self._read_stamps()

    @classmethod
    def of(cls, path: Path, *companions: Path) -> UnchangedFiles:
        return cls(lambda: (path,), f"the file {str(path)!r}", companions)

    def check(self) -> None:
        """Refuse files that have changed since they were opened."""
        if self._read_stamps() != self._stamps:
            raise InputError(f"{self._where} changed while it was read. Run again when nothing writes to it any more.")

    def during(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one pass, and check the files before the first and after the last."""
        self.check()
        try:
            yield from batches
        except InputError:
            self.check()  # if the files changed, that is the cause to report
            raise
        self.check()

    def _read_stamps(self) -> dict[Path, Stamp | None]:
        stamps: dict[Path, Stamp | None] = {path: _stamp(path) for path in self._files()}
        for path, stamp in stamps.items():
            if stamp is None:
                raise InputError(f"the file {str(path)!r} can no longer be opened. Check that it still exists.")
        for path in self._companions:
            stamp = _stamp(path)
            stamps[path] = stamp if stamp is not None and stamp[0] else None  # an empty companion changes nothing
        return stamps


def _stamp(path: Path) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
