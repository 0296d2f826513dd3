"""Excel and OpenDocument sheets, typed as the cells are."""

from __future__ import annotations

import logging
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError
from sfumato.tables.sources.in_memory_source import CollectedSource
from sfumato.tables.sources.source_batches import checked_names
from sfumato.tables.sources.unchanged_files import UnchangedFiles


def open_excel(path: Path, sheet: str | None) -> CollectedSource:
    """The sheet of that name, or the first. A sheet fits in memory, so it is read at once."""
    where = f"the file {str(path)!r}"
    try:
        import fastexcel
    except ImportError:
        raise InputError(
            f"{where} is a spreadsheet, and the package that reads them is missing. "
            "Install it with: pip install 'sfumato[excel]'"
        ) from None
    unchanged = UnchangedFiles.of(path)
    # It warns of every column without a value, which is nothing to tell the user.
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())
    try:
        workbook = fastexcel.read_excel(path)
        sheets = workbook.sheet_names
        if not sheets:
            raise InputError(f"{where} has no sheets. Give a file with a table in it.")
        if sheet is not None and sheet not in sheets:
            listed = ", ".join(repr(name) for name in sheets)
            raise InputError(f"{where} has no sheet {sheet!r}. Its sheets are {listed}.")
        chosen = sheets[0] if sheet is None else sheet
        # Names are read as cells, because equal and missing ones are renamed in a header.
        header = workbook.load_sheet(chosen, header_row=None, n_rows=1, dtypes="string").to_arrow()
        # Types are taken from all rows: cells of another type further down would otherwise become null.
        cells = workbook.load_sheet(chosen, schema_sample_rows=None).to_arrow()
    except fastexcel.FastExcelError:
        raise InputError(
            f"{where} cannot be read as a spreadsheet: it is damaged, locked with a password, or something else than "
            "its name says. Save it anew."
        ) from None
    unchanged.check()  # all of it is in memory now
    where = f"the sheet {chosen!r} of {where}"
    names = checked_names([column[0].as_py() or "" for column in header.columns] if header.num_rows else [], where)
    table = pa.Table.from_batches([cells]).rename_columns(names)
    # A row without any cell is a gap in the sheet and not a record.
    filled = reduce(pc.or_, (column.is_valid() for column in table.columns))
    return CollectedSource.of_table(table.filter(filled), kind="excel", where=where)
