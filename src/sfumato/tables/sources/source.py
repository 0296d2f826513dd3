"""Where a table comes from: one way to read a file of any kind or a frame of any library, batch by batch."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from sfumato.errors import InputError, UsageError
from sfumato.tables.locations import DatabaseLocation, DirectoryLocation, FileLocation, Location, location_of

_CSV = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
_IPC = (".arrow", ".ipc", ".feather")
_EXCEL = (".xlsx", ".xls", ".ods")
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """How the cells of a file are written.

    ``separator``, ``encoding`` and ``sheet`` are needed to read; the rest says what the text of a CSV cell means, which
    is asked for quasi-identifiers alone. A ``.tsv`` file is separated by tabs unless another separator than the comma
    is given. ``sheet`` is the name of an Excel sheet; without it the first is read.
    """

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    nulls: tuple[str, ...] = ("",)
    date_format: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        if len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n\0':
            raise UsageError(
                f"the separator {self.separator!r} cannot be used. Give one ASCII character that is neither a quote "
                "nor a line end, such as ',', ';' or '\\t'."
            )
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=self.encoding)
        except (LookupError, ValueError):
            raise UsageError(
                f"unknown encoding {self.encoding!r}. Give a name that Python knows, such as 'utf-8', 'cp1252' or "
                "'utf-16'."
            ) from None


class Source(Protocol):
    """A table that can be read again and again, always with the same rows in the same order."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order; no name is empty or comes twice."""

    @property
    def types(self) -> dict[str, pa.DataType]:
        """What each column holds.

        A column of categories has the type of its values, every form of text is ``pa.string()``, and so is a column
        that is known to hold nothing but nulls.
        """

    @property
    def kind(self) -> str:
        """What it came as.

        A file or database: csv, parquet, parquet-directory, ipc, excel, duckdb-table, sqlite or postgresql; a frame:
        pandas, polars, polars-lazy, pyarrow or duckdb.
        """

    @property
    def text(self) -> bool:
        """Whether every column is still the text of a file; null tokens and numbers are for the caller to see in it."""

    @property
    def categories(self) -> frozenset[str]:
        """The columns of a frame that are categories to its library, not only text."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known without reading."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns asked for, in that order, batch by batch from the first row.

        Text is ``dictionary<int32, string>`` whose dictionary holds each value of that batch once and no others. No
        batch is empty; a table without a row is an ``InputError``.
        """


def open_source(data: object, options: InputOptions) -> Source:
    """The table in a file, directory or database, which its name tells, or in a frame, whose kind its type tells."""
    if isinstance(data, str | os.PathLike):
        return open_location(location_of(data), options)
    # Frames are the greater part to load, and a run from file to file needs none of it.
    from sfumato.tables.sources.frames import open_frame

    return open_frame(data)


def kind_of_file(path: Path) -> tuple[str, str | None]:
    """The suffix that tells what kind of table a file is, and how it is compressed."""
    suffix = path.suffix.lower()
    if suffix in _COMPRESSIONS:
        return Path(path.stem).suffix.lower(), _COMPRESSIONS[suffix]
    return suffix, None


def is_text_file(path: Path) -> bool:
    """Whether the name of a file says that it is a table in text."""
    return kind_of_file(path)[0] in _CSV


def open_location(place: Location, options: InputOptions) -> Source:
    """The table that is there."""
    if isinstance(place, FileLocation):
        return _open_file(place.path, options)
    if isinstance(place, DirectoryLocation):
        from sfumato.tables.sources.parquet_directory_source import DirectorySource

        return DirectorySource(place.path)
    if isinstance(place, DatabaseLocation):
        check_readable(place.path)
        if place.kind == "duckdb":
            from sfumato.tables.sources.duckdb_source import DuckdbSource

            return DuckdbSource(place.path, place.table)
        from sfumato.tables.sources.sqlite_source import SqliteSource

        return SqliteSource(place.path, place.table)
    from sfumato.tables.sources.postgres_source import PostgresSource

    return PostgresSource(place)


def _open_file(path: Path, options: InputOptions) -> Source:
    check_readable(path)
    suffix, compression = kind_of_file(path)
    if suffix in _CSV:
        from sfumato.tables.sources.csv_source import CsvSource

        separator = "\t" if suffix == ".tsv" and options.separator == "," else options.separator
        return CsvSource(path, separator=separator, encoding=options.encoding, compression=compression)
    if compression is None and suffix in _PARQUET:
        from sfumato.tables.sources.parquet_source import ParquetSource

        return ParquetSource(path)
    if compression is None and suffix in _IPC:
        from sfumato.tables.sources.arrow_ipc_source import IpcSource

        return IpcSource(path)
    if compression is None and suffix in _EXCEL:
        from sfumato.tables.sources.excel_source import open_excel

        return open_excel(path, options.sheet)
    raise InputError(
        f"the name of the file {str(path)!r} does not tell what kind of table it is. Known are "
        f"{', '.join(_CSV)} (also with {' or '.join(_COMPRESSIONS)} behind), "
        f"{', '.join((*_PARQUET, *_IPC, *_EXCEL))}, directories of Parquet, and tables in databases, such as "
        "'hospital.sqlite#patients'."
    )


def check_readable(path: Path) -> None:
    """Fail early and plainly on what no reader could open; the readers' own errors are for what is in the file."""
    name = f"the file {str(path)!r}"
    try:
        if path.is_dir():
            raise InputError(f"{str(path)!r} is a directory. Give a single file.")
        with path.open("rb") as file:
            empty = not file.read(1)
    except FileNotFoundError:
        raise InputError(f"{name} does not exist. Check the path.") from None
    except PermissionError:
        raise InputError(f"{name} may not be read by this user. Ask for permission, or give another file.") from None
    except (OSError, ValueError) as error:
        reason = f" ({os.strerror(error.errno)})" if isinstance(error, OSError) and error.errno else ""
        raise InputError(f"{name} cannot be opened{reason}. Check the path.") from None
    if empty:
        raise InputError(f"{name} is empty. Give a file with a table in it.")
