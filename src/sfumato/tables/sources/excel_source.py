"""Read Excel and OpenDocument sheets, with the types of their cells."""

from __future__ import annotations

import datetime
import logging
import warnings
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError, ReadingWarning
from sfumato.tables.sources.in_memory_source import CollectedSource
from sfumato.tables.sources.source_batches import checked_names, is_header
from sfumato.tables.sources.unchanged_files import UnchangedFiles

DAY_ZERO = datetime.date(1899, 12, 31)


LOOKED_AT = 50  # rows at the top of a sheet, among which the header is looked for


def open_excel(path: Path, sheet: str | None, header_row: int | None = None) -> CollectedSource:
    """Read the sheet of that name, or the first. A sheet fits in memory, so all of it is read at once.

    header_row: the row of the sheet that holds the names, from 1. Without it, the names are in the first row that is
    not empty, or below a title: rows with a single cell above a row of words without a gap.
    """
    where = f"the file {str(path)!r}"
    try:
        import fastexcel
    except ImportError:
        raise InputError(
            f"{where} is a spreadsheet, and the package that reads spreadsheets is missing. "
            "Install it with: pip install 'sfumato[excel]'"
        ) from None
    unchanged = UnchangedFiles.of(path)
    # It warns about every column without a value, which does not concern the user.
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())
    try:
        workbook = fastexcel.read_excel(path)
        sheets = workbook.sheet_names
        if not sheets:
            raise InputError(f"{where} has no sheets. Give a file with a table in it.")
        if sheet is not None and sheet not in sheets:
            listed = ", ".join(repr(name) for name in sheets)
            raise InputError(f"{where} has no sheet {sheet!r}. Its sheets are {listed}.")
        sheet_name = sheets[0] if sheet is None else sheet
        # Names are read as cells, because the library renames equal and missing names in a header.
        rows_read = LOOKED_AT + (header_row or 1)
        top = workbook.load_sheet(sheet_name, header_row=None, skip_rows=0, n_rows=rows_read, dtypes="string")
        rows = [list(row.values()) for row in top.to_arrow().to_pylist()]
        header = header_index(rows) if header_row is None else header_row - 1
        if header_row is not None and header >= len(rows):
            raise InputError(f"the sheet {sheet_name!r} of {where} has no row {header_row}. Check header_row.")
        # Types are inferred from all rows: cells of another type further down would otherwise become null.
        cells = workbook.load_sheet(
            sheet_name, header_row=None, skip_rows=min(header + 1, len(rows)), schema_sample_rows=None
        ).to_arrow()
    except fastexcel.FastExcelError:
        raise InputError(
            f"{where} cannot be read as a spreadsheet: it is damaged, locked with a password, or not what its name "
            "says. Save it again."
        ) from None
    unchanged.check()  # all of it is in memory now
    where = f"the sheet {sheet_name!r} of {where}"
    names = checked_names(
        [name or "" for name in rows[header]] if rows else [],
        where,
        lambda: _cells(rows[header + 1 :]),
    )
    if header_row is None and any(map(_filled, rows[:header])):
        above = "row 1 was" if header == 1 else f"rows 1 to {header} were"
        warnings.warn(
            f"{where} has a title: {above} skipped, and row {header + 1} holds the names of the columns. If that is "
            "wrong, set --header-row, or header_row in [input].",
            ReadingWarning,
            stacklevel=2,
        )
    columns = [_times_of_day(column) for column in pa.Table.from_batches([cells]).columns]
    table = pa.Table.from_arrays(columns, names=list(names))
    # A row without any cell is a gap in the sheet, not a record.
    filled = reduce(pc.or_, (column.is_valid() for column in table.columns))
    return CollectedSource.of_table(table.filter(filled), kind="excel", where=where)


def header_index(rows: list[list[str | None]]) -> int:
    """Return the index of the row that holds the names: the first that is not empty, or the first below a title."""
    first = next((index for index, row in enumerate(rows) if _filled(row)), 0)
    if not rows or len(rows[0]) == 1:
        return first
    below = next((index for index, row in enumerate(rows) if _filled(row) > 1), first)
    # A record below a single name must not be taken for names, which may be shown.
    names = [cell or "" for cell in rows[below]]
    return below if is_header(names, _cells(rows[below + 1 :])) else first


def _cells(rows: list[list[str | None]]) -> set[str]:
    return {cell for row in rows for cell in row if cell is not None}


def _filled(row: list[str | None]) -> int:
    return sum(cell is not None and bool(cell.strip()) for cell in row)


def _times_of_day(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return moments of day 0 as times of day. A sheet has no other form for them, and the library adds a date."""
    if not pa.types.is_timestamp(column.type) or column.null_count == len(column):
        return column
    ends = pc.min_max(column.cast(pa.date32()))
    if any(ends[end].as_py() != DAY_ZERO for end in ("min", "max")):
        return column
    return column.cast(pa.time32("ms"))
