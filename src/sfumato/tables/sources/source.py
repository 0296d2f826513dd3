"""The protocol of all sources: one way to read any kind of file, database or frame, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from sfumato.errors import InputError, UsageError
from sfumato.files.regular_file import NotRegularError, open_regular
from sfumato.policy import InputOptions
from sfumato.policy.input_settings import DEFAULT_ENCODING
from sfumato.tables.locations import DatabaseLocation, DirectoryLocation, FileLocation, Location, location_of

_CSV = (".csv", ".tsv", ".txt")
_FIXED_WIDTH = (".txt", ".dat", ".fwf", ".asc")
_PARQUET = (".parquet", ".pq")
_IPC = (".arrow", ".ipc", ".feather")
_EXCEL = (".xlsx", ".xls", ".ods")
_STATISTICAL = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


class Source(Protocol):
    """A table that can be read repeatedly, always with the same rows in the same order."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in order. No name is empty or repeated."""

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The type of each column.

        A column of categories has the type of its values. Every kind of text is ``pa.string()``, and so is a column
        that is known to hold only nulls.
        """

    @property
    def kind(self) -> str:
        """The kind of input.

        For a file or database: csv, fixed-width, parquet, parquet-directory, ipc, excel, spss, stata, sas,
        duckdb-table, sqlite or postgresql. For a frame: pandas, polars, polars-lazy, pyarrow or duckdb.
        """

    @property
    def text(self) -> bool:
        """Whether every column is the unparsed text of a file, in which callers look for null tokens and numbers."""

    @property
    def rows(self) -> int | None:
        """The number of rows, or None if it is not known without reading."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the given columns, in that order, batch by batch from the first row.

        Text is ``dictionary<int32, string>``; the dictionary holds each value of its batch once and no others. No batch
        is empty. A table without rows is an ``InputError``.
        """


def open_source(data: object, options: InputOptions) -> Source:
    """Open a table by its name (a file, directory or database table), or a frame."""
    source = _open(data, options)
    if not options.column_nulls:
        return source
    from sfumato.tables.sources.cleared_source import ClearedSource  # which reads any source

    return ClearedSource(source, options.column_nulls)


def _open(data: object, options: InputOptions) -> Source:
    if isinstance(data, str | os.PathLike):
        from sfumato.tables.targets.target import recover_location  # targets read back what they wrote, from here

        location = location_of(data)
        recover_location(location)
        source = open_location(location, options)
        if source.kind == "csv":
            from sfumato.tables.sources.csv_source import CsvSource

            assert isinstance(source, CsvSource)
            source.warn_of_another_separator()
        return source
    # Imported here: the code for frames is large, and a run from file to file does not need it.
    from sfumato.tables.sources.frames import open_frame

    return open_frame(data)


def place_of(source: Source, record: int) -> str:
    """Return where a record stands, counted from 1: its line in a text file, or its number."""
    line_of: Callable[[int], int] | None = getattr(source, "line_of", None)
    return f"record {record:,}" if line_of is None else f"line {line_of(record):,}"


def kind_of_file(path: Path) -> tuple[str, str | None]:
    """Return the suffix that names the format of a file, and its compression."""
    suffix = path.suffix.lower()
    if suffix in _COMPRESSIONS:
        return Path(path.stem).suffix.lower(), _COMPRESSIONS[suffix]
    return suffix, None


def is_text_file(path: Path) -> bool:
    """Return whether the name of a file says that it is a text file."""
    return kind_of_file(path)[0] in _CSV


def is_statistical_file(data: object) -> bool:
    """Return whether a table is named like a file of SPSS, Stata or SAS."""
    return isinstance(data, str | os.PathLike) and Path(data).suffix.lower() in _STATISTICAL


def open_location(location: Location, options: InputOptions) -> Source:
    """Open the table at a location."""
    if isinstance(location, FileLocation):
        return _open_file(location.path, options)
    if isinstance(location, DirectoryLocation):
        from sfumato.tables.sources.parquet_directory_source import DirectorySource

        return DirectorySource(location.path)
    if isinstance(location, DatabaseLocation):
        check_readable(location.path)
        if location.kind == "duckdb":
            from sfumato.tables.sources.duckdb_source import DuckdbSource

            return DuckdbSource(location.path, location.table)
        from sfumato.tables.sources.sqlite_source import SqliteSource

        return SqliteSource(location.path, location.table)
    from sfumato.tables.sources.postgres_source import PostgresSource

    return PostgresSource(location)


def _open_file(path: Path, options: InputOptions) -> Source:
    check_readable(path)
    suffix, compression = kind_of_file(path)
    if options.layout is not None and suffix in {*_CSV, *_FIXED_WIDTH}:
        return _open_fixed_width(path, suffix, compression, options)
    if suffix in _CSV:
        from sfumato.tables.sources.csv_source import CsvSource

        separator = "\t" if suffix == ".tsv" and options.separator == "," else options.separator
        return CsvSource(
            path,
            separator=separator,
            encoding=options.encoding,
            compression=compression,
            max_expansion=options.max_expansion,
            disarmed=options.disarmed,
            comma_columns=options.comma_columns,
            header_line=options.header_row or 1,
        )
    if compression is None and suffix in _PARQUET:
        from sfumato.tables.sources.parquet_source import ParquetSource

        return ParquetSource(path)
    if compression is None and suffix in _IPC:
        from sfumato.tables.sources.arrow_ipc_source import IpcSource

        return IpcSource(path)
    if compression is None and suffix in _EXCEL:
        from sfumato.tables.sources.excel_source import open_excel

        return open_excel(path, options.sheet, options.header_row)
    if compression is None and suffix in _STATISTICAL:
        from sfumato.tables.sources.statistical_source import StatisticalSource

        encoding = None if options.encoding == DEFAULT_ENCODING else options.encoding
        return StatisticalSource(path, labels=options.labels, encoding=encoding)
    if suffix in _FIXED_WIDTH:
        raise InputError(
            f"the file {str(path)!r} has columns of fixed width by its name, and where they are is not known. Add "
            "--layout FILE, or layout to [input]: a CSV file with name, start and width of each column."
        )
    if suffix == ".deid":
        raise InputError(
            f"the file {str(path)!r} is a project of ARX, not a table. 'sfumato policy' makes a policy of it, and "
            "writes its table with --data."
        )
    raise InputError(
        f"the name of the file {str(path)!r} does not tell what kind of table it is. Give a file that ends in "
        f"{', '.join(_CSV)} (each also with {' or '.join(_COMPRESSIONS)}), "
        f"{', '.join((*_PARQUET, *_IPC, *_EXCEL, *_STATISTICAL))}, a directory of Parquet files, or a table in a "
        "database, such as 'hospital.sqlite#patients'."
    )


def _open_fixed_width(path: Path, suffix: str, compression: str | None, options: InputOptions) -> Source:
    if suffix not in _FIXED_WIDTH:
        raise UsageError(
            f"a layout was given for the file {str(path)!r}, whose name says that its cells are separated. Remove the "
            f"layout, or let the name of the file end in {', '.join(_FIXED_WIDTH)}."
        )
    from sfumato.tables.sources.fixed_width_layout import read_layout
    from sfumato.tables.sources.fixed_width_source import FixedWidthSource

    assert options.layout is not None
    return FixedWidthSource(
        path,
        read_layout(options.layout),
        encoding=options.encoding,
        compression=compression,
        max_expansion=options.max_expansion,
        skipped_lines=options.header_row or 0,
        decimal=options.decimal,
        nulls=options.column_nulls,
    )


def check_readable(path: Path) -> None:
    """Refuse a path that no reader could open. The errors of the readers are about the contents of the file."""
    name = f"the file {str(path)!r}"
    try:
        if path.is_dir():
            raise InputError(f"{str(path)!r} is a directory. Give a single file.")
        with open_regular(path) as file:
            empty = not file.read(1)
    except FileNotFoundError:
        raise InputError(f"{name} does not exist. Check the path.") from None
    except PermissionError:
        raise InputError(f"{name} may not be read by this user. Ask for permission, or give another file.") from None
    except NotRegularError:
        raise InputError(
            f"{str(path)!r} is a pipe or a device, and a table is read more than once. Write it to a file first."
        ) from None
    except (OSError, ValueError) as error:
        reason = f" ({os.strerror(error.errno)})" if isinstance(error, OSError) and error.errno else ""
        raise InputError(f"{name} cannot be opened{reason}. Check the path.") from None
    if empty:
        raise InputError(f"{name} is empty. Give a file with a table in it.")
