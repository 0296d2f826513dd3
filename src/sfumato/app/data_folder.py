"""The folder that the page may read: tables under it, and nothing outside it, also not through symbolic links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sfumato.errors import InputError
from sfumato.tables.locations import CERTIFICATE

PROJECT_SUFFIX = ".sfumato"
DEEPEST = 3  # folders below the folder in which tables are looked for
MOST_LISTED = 200
MOST_ENTRIES = 20_000  # files and folders that are looked at
SUFFIXES = frozenset(
    {
        *(".csv", ".tsv", ".csv.gz", ".csv.zst", ".tsv.gz", ".parquet", ".pq", ".arrow", ".ipc", ".feather"),
        *(".xlsx", ".xls", ".ods", ".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt"),
    }
)


@dataclass(frozen=True)
class TableFile:
    """A file under the folder that may be a table."""

    path: str
    """Relative to the folder, with slashes."""
    size: int


@dataclass(frozen=True)
class TableList:
    """The tables that were found. complete: whether all of the folder was looked at and listed."""

    tables: tuple[TableFile, ...]
    complete: bool


class DataFolder:
    """The folder with the tables. Every path that comes from the page is resolved here."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)

    def path(self, text: str) -> Path:
        """Return the real path of a file under the folder. Anything else is refused without saying what is there."""
        refused = InputError("this path is not a file in the folder of the page. Choose one that is in it.")
        if not text or "\0" in text or os.path.isabs(text) or ".." in Path(text).parts:
            raise refused
        try:
            found = (self.root / text).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            raise refused from None
        if not found.is_relative_to(self.root) or found == self.root:
            raise refused
        return found

    def tables(self) -> TableList:
        """List the tables under the folder, without what projects hold."""
        looked_at = list(islice(self._files(), MOST_ENTRIES + 1))
        found = [table for table in looked_at if table is not None]
        complete = len(looked_at) <= MOST_ENTRIES and len(found) <= MOST_LISTED
        return TableList(tuple(sorted(found[:MOST_LISTED], key=lambda table: table.path.casefold())), complete)

    def _files(self) -> Iterator[TableFile | None]:
        """Yield the tables, and None for everything else, level by level."""
        folders = [self.root]
        for _ in range(DEEPEST + 1):
            below: list[Path] = []
            for folder in folders:
                try:
                    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
                except OSError:
                    continue  # a folder that may not be read has no tables for us
                names = {entry.name for entry in entries}
                for entry in entries:
                    if entry.name.startswith((".", "_")) or entry.is_symlink():
                        yield None
                    elif entry.is_dir():
                        if not entry.name.endswith(PROJECT_SUFFIX):
                            below.append(Path(entry.path))
                        yield None
                    elif is_table_name(entry.name) and entry.name + CERTIFICATE not in names:
                        relative = Path(entry.path).relative_to(self.root).as_posix()
                        yield TableFile(relative, entry.stat().st_size)
                    else:
                        yield None
            folders = below


def is_table_name(name: str) -> bool:
    """Return whether a name is that of a table that the page can open."""
    return name.lower().endswith(tuple(SUFFIXES))
