"""Write the export of a hospital's system: text as Windows writes it in Germany, or a workbook with a title.

In the text, cells are separated by semicolons, and numbers have decimal commas and points between thousands. In the
workbook, numbers and dates are typed; the names of the columns are in the third row, below a title and an empty row.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from sfumato.errors import UsageError
from sfumato.synthetic.hospital_export import HospitalExport
from sfumato.synthetic.hospital_export_population import SHEET, TITLE
from sfumato.tables.targets.excel_writer import ROWS, new_workbook
from sfumato.tables.targets.staging import Stage, cannot_write, check_target

ENCODING, SEPARATOR, DATE = "cp1252", ";", "%d.%m.%Y"
SHEET_DATE = "dd.mm.yyyy"
ROWS_ABOVE_NAMES = 2
REMEMBERED = 1 << 16  # texts of dates and numbers

Row = tuple[Any, ...]


def generate_export(export: HospitalExport, records: int, table: Path, *, seed: int, force: bool) -> list[Path]:
    """Write the export; a file that exists is replaced only with ``force``. Return its path."""
    suffix = table.suffix
    if suffix not in EXPORT_FORMATS or table.name == suffix:
        raise UsageError(
            f"{table} has no suffix that names a format of exports. Choose a name that ends in "
            f"{' or '.join(EXPORT_FORMATS)}."
        )
    rows = export.rows(records, seed)
    if suffix == ".xlsx" and records > ROWS - ROWS_ABOVE_NAMES:
        raise UsageError(
            f"an Excel sheet has at most {ROWS:,} rows, which is too few for {records:,} records with a title. Ask for "
            "fewer records, or name a file that ends in .csv."
        )
    try:
        check_target(table)
        if table.exists() and not force:
            raise UsageError(f"{table} exists. Name another file, or add --force to replace it.")
        with Stage() as stage:
            EXPORT_FORMATS[suffix](rows, stage.path(table))
            stage.publish()
    except OSError as error:
        raise cannot_write(table, error) from None
    return [table]


def _write_text(rows: Iterator[Row], path: Path) -> None:
    decimals = [HospitalExport.decimals.get(name, 0) for name in HospitalExport.columns]
    with path.open("w", encoding=ENCODING, newline="") as file:
        writer = csv.writer(file, delimiter=SEPARATOR)
        writer.writerow(HospitalExport.columns)
        for row in rows:
            writer.writerow([_text(cell, places) for cell, places in zip(row, decimals, strict=True)])


def _text(cell: object, decimals: int) -> str:
    match cell:
        case float():
            return _number(cell, decimals)
        case date():
            return _date(cell)
        case _:
            return str(cell)


@lru_cache(REMEMBERED)
def _number(number: float, decimals: int) -> str:
    return f"{number:,.{decimals}f}".translate(GERMAN_MARKS)


@lru_cache(REMEMBERED)
def _date(day: date) -> str:
    return day.strftime(DATE)


GERMAN_MARKS = str.maketrans(",.", ".,")


def _write_workbook(rows: Iterator[Row], path: Path) -> None:
    with new_workbook(path) as book:
        sheet = book.add_worksheet(SHEET)
        days = book.add_format({"num_format": SHEET_DATE})
        sheet.write_string(0, 0, TITLE)
        for column_index, name in enumerate(HospitalExport.columns):
            sheet.write_string(ROWS_ABOVE_NAMES, column_index, name)
        for row_index, row in enumerate(rows, ROWS_ABOVE_NAMES + 1):
            for column_index, cell in enumerate(row):
                match cell:
                    case str():
                        sheet.write_string(row_index, column_index, cell)
                    case date():
                        sheet.write_datetime(row_index, column_index, cell, days)
                    case _:
                        sheet.write_number(row_index, column_index, cell)


EXPORT_FORMATS: dict[str, Callable[[Iterator[Row], Path], None]] = {".csv": _write_text, ".xlsx": _write_workbook}
