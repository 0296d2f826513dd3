"""Read Excel and OpenDocument sheets, with the types of their cells."""

from __future__ import annotations

import datetime
import logging
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError
from sfumato.tables.sources.in_memory_source import CollectedSource
from sfumato.tables.sources.source_batches import checked_names
from sfumato.tables.sources.unchanged_files import UnchangedFiles

DAY_ZERO = datetime.date(1899, 12, 31)


def open_excel(path: Path, sheet: str | None) -> CollectedSource:
    """Read the sheet of that name, or the first. A sheet fits in memory, so all of it is read at once."""
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
        header = workbook.load_sheet(sheet_name, header_row=None, n_rows=1, dtypes="string").to_arrow()
        # Types are inferred from all rows: cells of another type further down would otherwise become null.
        cells = workbook.load_sheet(sheet_name, schema_sample_rows=None).to_arrow()
    except fastexcel.FastExcelError:
        raise InputError(
            f"{where} cannot be read as a spreadsheet: it is damaged, locked with a password, or not what its name "
            "says. Save it again."
        ) from None
    unchanged.check()  # all of it is in memory now
    where = f"the sheet {sheet_name!r} of {where}"
    names = checked_names([column[0].as_py() or "" for column in header.columns] if header.num_rows else [], where)
    columns = [_times_of_day(column) for column in pa.Table.from_batches([cells]).columns]
    table = pa.Table.from_arrays(columns, names=list(names))
    # A row without any cell is a gap in the sheet, not a record.
    filled = reduce(pc.or_, (column.is_valid() for column in table.columns))
    return CollectedSource.of_table(table.filter(filled), kind="excel", where=where)


def _times_of_day(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return moments of day 0 as times of day: a sheet has no other form for them, and the library gives them a date."""
    if not pa.types.is_timestamp(column.type) or column.null_count == len(column):
        return column
    ends = pc.min_max(column.cast(pa.date32()))
    if any(ends[end].as_py() != DAY_ZERO for end in ("min", "max")):
        return column
    return column.cast(pa.time32("ms"))
