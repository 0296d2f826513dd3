"""Files that must stay as they are while they are read.

A table is read several times, and columns of one pass are put beside those of another: they must be of the same
records. So every file is remembered by size, time and inode when it is opened, and looked at before and after each
pass.
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

    ``files`` says which they are, and is asked again at every look: one may be added. ``companions`` are files that
    may be there or not, such as the log of a database.
    """

    def __init__(self, files: Callable[[], Iterable[Path]], where: str, companions: Iterable[Path] = ()) -> None:
        self._files = files
        self._where = where
        self._companions = tuple(companions)
        self._stamps = self._look()

    @classmethod
    def of(cls, path: Path, *companions: Path) -> UnchangedFiles:
        return cls(lambda: (path,), f"the file {str(path)!r}", companions)

    def check(self) -> None:
        if self._look() != self._stamps:
            raise InputError(f"{self._where} changed while it was read. Run again when nobody writes to it any more.")

    def during(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of one pass, if the files are the same before the first and after the last of them."""
        self.check()
        try:
            yield from batches
        except InputError:
            self.check()  # a change explains what else is wrong
            raise
        self.check()

    def _look(self) -> dict[Path, Stamp | None]:
        found: dict[Path, Stamp | None] = {path: _stamp(path) for path in self._files()}
        for path, stamp in found.items():
            if stamp is None:
                raise InputError(f"the file {str(path)!r} can no longer be opened. Check that it is still there.")
        for path in self._companions:
            stamp = _stamp(path)
            found[path] = stamp if stamp is not None and stamp[0] else None  # an empty one says nothing
        return found


def _stamp(path: Path) -> Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
