"""Write a released table as an Excel sheet. A table that a sheet would change is refused."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import OutputError, UsageError
from sfumato.tables.sources.in_memory_source import nan_as_null
from sfumato.tables.targets.staging import scratch_directory

ROWS = 1_048_575  # below the header
COLUMNS = 16_384
CHARACTERS = 32_767
EXACT = 1 << 53  # numbers in a sheet are floating-point
FIRST_DAY = datetime.date(1900, 1, 1)
FIRST_MOMENT = datetime.datetime(1900, 1, 2)  # the library takes moments of the day before for times of day
BATCH = 1 << 16
SAMPLED = 1000  # records whose cells decide how wide a column is
NARROWEST, WIDEST, MARGIN, ARROW = 8, 60, 2, 4  # widths in characters; the arrow of a filter stands beside each name
CREATED = datetime.datetime(1980, 1, 1)  # fixed, so that the same release has the same bytes


def write_sheet(table: pa.Table, path: Path) -> None:
    """Write a table that has no dictionaries. Null and NaN become empty cells."""
    table = _with_empty_cells(table)
    _check_size(table)
    check_types(table.schema)
    for name in table.column_names:
        _check_column(name, table.column(name))
    _check_rows(table)
    # Python's datetime has no nanoseconds.
    table = pa.Table.from_arrays([_in_milliseconds(column) for column in table.columns], names=table.column_names)
    with new_workbook(path) as book:
        sheet = book.add_worksheet()
        _arrange(sheet, table)
        _fill(book, sheet, table)


@contextmanager
def new_workbook(path: Path) -> Iterator[Any]:
    """Yield a workbook that is filled row by row and closed at the end. Text in it is never a formula or a link."""
    try:
        import xlsxwriter
        from xlsxwriter.exceptions import FileCreateError, FileSizeError
    except ImportError:
        raise UsageError(
            "writing Excel files needs a package that is missing. Install it with: pip install 'sfumato[excel]'"
        ) from None
    with scratch_directory(path) as scratch:
        book = xlsxwriter.Workbook(
            str(path),
            {
                "constant_memory": True,
                "tmpdir": str(scratch),
                "strings_to_formulas": False,
                "strings_to_numbers": False,
                "strings_to_urls": False,
            },
        )
        book.set_properties({"created": CREATED})
        yield book
        try:
            book.close()
        except FileCreateError as error:
            raise (error.args[0] if isinstance(error.args[0], OSError) else OSError()) from None
        except FileSizeError:
            raise OutputError("the table is too large for an Excel file. Write Parquet or CSV.") from None


class ExactNumber(float):
    """A number that is written with all its digits.

    The library formats numbers with 16 significant digits, but it takes up to 17 to tell two doubles apart.
    Spreadsheets read all of them.
    """

    def __format__(self, specification: str) -> str:
        return float.__repr__(self)


def _arrange(sheet: Any, table: pa.Table) -> None:
    """Make the sheet readable: its header stays in view and filters the rows, and columns are as wide as their text."""
    from xlsxwriter.utility import xl_range

    rows, last = table.num_rows, table.num_columns - 1
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, rows, last)
    # Labels are text, and a spreadsheet would mark each that is a number as a mistake.
    sheet.ignore_errors({"number_stored_as_text": xl_range(0, 0, rows, last)})
    sample = table.slice(0, SAMPLED)
    for index, name in enumerate(table.column_names):
        longest = max((len(_text(value)) for value in sample.column(index).to_pylist()), default=0)
        width = max(len(name) + ARROW, longest + MARGIN)
        sheet.set_column(index, index, min(max(width, NARROWEST), WIDEST))


def _text(value: object) -> str:
    """A cell as people see it, as far as its width goes."""
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="seconds")
    return "" if value is None else str(value)


def _fill(book: Any, sheet: Any, table: pa.Table) -> None:
    header = book.add_format({"bold": True})
    days = book.add_format({"num_format": "yyyy-mm-dd"})
    moments = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
    times = book.add_format({"num_format": "hh:mm:ss"})
    spans = book.add_format({"num_format": "[h]:mm:ss"})
    for column_index, name in enumerate(table.column_names):
        sheet.write_string(0, column_index, name, header)
    row = 0
    for batch in table.to_batches(max_chunksize=BATCH):
        for record in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            row += 1
            for column_index, value in enumerate(record):
                # Types are distinguished here, because the library would interpret text as numbers and links.
                match value:
                    case None:
                        pass
                    case str():
                        sheet.write_string(row, column_index, value)
                    case bool():
                        sheet.write_boolean(row, column_index, value)
                    case datetime.datetime():
                        sheet.write_datetime(row, column_index, value, moments)
                    case datetime.date():
                        sheet.write_datetime(row, column_index, value, days)
                    case datetime.time():
                        sheet.write_datetime(row, column_index, value, times)
                    case datetime.timedelta():
                        sheet.write_datetime(row, column_index, value, spans)
                    case _:
                        sheet.write_number(row, column_index, ExactNumber(value))


def _with_empty_cells(table: pa.Table) -> pa.Table:
    """Replace NaN by null, since a sheet has no NaN."""
    return pa.Table.from_arrays([_as_cells(column) for column in table.columns], names=table.column_names)


def _as_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if types.is_floating(kind):
        return nan_as_null(column.cast(pa.float64()))
    return column


def _check_size(table: pa.Table) -> None:
    if table.num_rows > ROWS:
        raise OutputError(
            f"an Excel sheet has at most {ROWS:,} records, the release has {table.num_rows:,}. Write Parquet or CSV."
        )
    if table.num_columns > COLUMNS:
        raise OutputError(
            f"an Excel sheet has at most {COLUMNS:,} columns, the release has {table.num_columns:,}. "
            "Write Parquet or CSV."
        )


def check_types(schema: pa.Schema) -> None:
    """Refuse columns of types that a sheet cannot hold, whatever their values are."""
    for field in schema:
        kind = field.type
        if types.is_timestamp(kind) and kind.tz is not None:
            raise _cannot_hold(field.name, "moments with a time zone")
        if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
            raise _cannot_hold(field.name, "bytes")


def _check_column(name: str, column: pa.ChunkedArray) -> None:
    kind, what = column.type, None
    if types.is_string(kind):
        if (pc.max(pc.utf8_length(column)).as_py() or 0) > CHARACTERS:
            what = f"text of more than {CHARACTERS:,} characters"
        elif column.null_count and pc.any(pc.equal(column, "")).as_py():
            what = "both nulls and empty text, which look the same in a sheet"
    elif types.is_integer(kind):
        ends = pc.min_max(column).as_py()
        if ends["min"] is not None and max(-ends["min"], ends["max"]) > EXACT:
            what = "whole numbers that a sheet would round"
    elif types.is_floating(kind):
        if pc.any(pc.is_inf(column)).as_py():
            what = "infinite numbers"
    elif types.is_decimal(kind):
        if not all(Decimal(repr(float(value))) == value for value in column.unique().drop_null().to_pylist()):
            what = "decimal numbers that a sheet would round"
    elif _in_milliseconds(column) is None:
        what = "moments, times or durations finer than a millisecond"
    elif types.is_date(kind):
        first = pc.min(column).as_py()
        if first is not None and first < FIRST_DAY:
            what = "days before 1900"
    elif types.is_timestamp(kind):
        first = pc.min(_in_milliseconds(column)).as_py()
        if first is not None and first < FIRST_MOMENT:
            what = "moments before 2 January 1900"
    if what is not None:
        raise _cannot_hold(name, what)


def _cannot_hold(name: str, what: str) -> OutputError:
    return OutputError(
        f"column {name!r} holds {what}, which an Excel sheet cannot hold. Write Parquet or Arrow IPC, or convert the "
        "column to text."
    )


def _in_milliseconds(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Convert moments, times and durations to the unit of a sheet; None if they are finer."""
    kind = column.type
    if types.is_timestamp(kind):
        wanted = pa.timestamp("ms", kind.tz)
    elif types.is_time(kind):
        wanted = pa.time32("ms")
    else:
        wanted = pa.duration("ms") if types.is_duration(kind) else kind
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid:
        return None


def _check_rows(table: pa.Table) -> None:
    """Refuse rows without any value: readers of the sheet would skip them."""
    filled = reduce(pc.or_, (_is_filled(column) for column in table.columns))
    empty = table.num_rows - (pc.sum(filled).as_py() or 0)
    if empty:
        raise OutputError(
            f"{empty:,} released records have no value in any column, and an Excel sheet would lose them. "
            "Write Parquet or CSV."
        )


def _is_filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if types.is_string(column.type):
        return pc.fill_null(pc.not_equal(column, ""), False)
    return column.is_valid()
