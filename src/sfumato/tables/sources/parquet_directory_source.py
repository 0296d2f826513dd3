"""Read a directory whose Parquet files, also those in subdirectories, are one table, in the order of their names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.tables.sources.parquet_source import ParquetSource
from sfumato.tables.sources.source_batches import normalize_batches
from sfumato.tables.sources.unchanged_files import UnchangedFiles

PARQUET = (".parquet", ".pq")
HIDDEN = (".", "_")


class DirectorySource:
    """All Parquet files of a directory. Names that begin with a dot or an underscore are skipped."""

    kind = "parquet-directory"
    text = False

    def __init__(self, path: Path) -> None:
        self._where = f"the directory {str(path)!r}"
        # No file may be added either: it would not belong to this table.
        self._unchanged = UnchangedFiles(lambda: parquet_files(path), self._where)
        files = parquet_files(path)
        if not files:
            raise InputError(
                f"{str(path)!r} is a directory without Parquet files. Give a single file, or a directory that has some."
            )
        self._parts = [ParquetSource(file) for file in files]
        first = self._parts[0]
        self.names = first.names
        self.types = first.types
        for file, part in zip(files, self._parts, strict=True):
            _check_same_columns(part, first, file, files[0])
        self.rows: int | None = sum(part.rows or 0 for part in self._parts)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return normalize_batches(self._unchanged.during(self._read(columns)), columns, self.types, self._where)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part in self._parts:
            yield from part.stored(columns)


def parquet_files(directory: Path) -> list[Path]:
    """List the files of the table in the order of their names."""
    files: list[Path] = []

    def unreadable(error: OSError) -> None:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise InputError(
            f"the directory {str(error.filename)!r} cannot be read ({reason}). Check the path and its permissions."
        ) from None

    for folder, inner, names in os.walk(directory, onerror=unreadable):
        inner[:] = [name for name in inner if not name.startswith(HIDDEN)]
        for name in inner:
            if "=" in name:
                raise InputError(
                    f"the directory {str(directory)!r} is divided by the values of a column, which its files therefore "
                    "do not hold. Write the table with that column in the files."
                )
        files += [
            Path(folder, name) for name in names if not name.startswith(HIDDEN) and name.lower().endswith(PARQUET)
        ]
    return sorted(files)


def _check_same_columns(part: ParquetSource, first: ParquetSource, file: Path, first_file: Path) -> None:
    for name in (*first.names, *part.names):
        if name not in part.types or name not in first.types:
            having, lacking = (first_file, file) if name in first.types else (file, first_file)
            raise InputError(
                f"the files of a directory have different columns: {str(having)!r} has {name!r}, {str(lacking)!r} does "
                "not. Give every file the same columns."
            )
        if part.types[name] != first.types[name]:
            raise InputError(
                f"the column {name!r} of the file {str(file)!r} has the type {part.types[name]}, but in "
                f"{str(first_file)!r} it has {first.types[name]}. Give every file the same types."
            )
