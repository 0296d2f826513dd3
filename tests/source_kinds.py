"""One table as every kind of source that users bring."""

from __future__ import annotations

import datetime
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import xlsxwriter
from database_tables import in_directory, in_duckdb, in_postgres, in_sqlite
from pyarrow import feather, parquet


def as_csv(table: pa.Table, separator: str = ",", line_end: str = "\n") -> str:
    """A plain CSV writer: null is an empty cell, the empty string is quoted."""

    def cell(value: object) -> str:
        if value is None:
            return ""
        text = str(value)
        return text if text and not set(text) & set(f'{separator}"\r\n') else '"' + text.replace('"', '""') + '"'

    rows = [table.column_names, *(row.values() for row in table.to_pylist())]
    return "".join(separator.join(cell(value) for value in row) + line_end for row in rows)


def write_xlsx(path: Path, sheets: dict[str, list[list[object]]]) -> Path:
    with xlsxwriter.Workbook(str(path)) as book:
        days = book.add_format({"num_format": "yyyy-mm-dd"})
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for row, cells in enumerate(rows):
                for column, value in enumerate(cells):
                    if isinstance(value, datetime.date):
                        sheet.write_datetime(row, column, value, days)
                    elif value is not None:
                        sheet.write(row, column, value)
    return path


class Stream:
    """Somebody's frame that only speaks the Arrow interface."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def in_csv(table: pa.Table, folder: Path) -> object:
    path = folder / "table.csv"
    path.write_bytes(as_csv(table).encode())
    return path


def in_csv_gz(table: pa.Table, folder: Path) -> object:
    path = folder / "table.csv.gz"
    path.write_bytes(gzip.compress(as_csv(table).encode()))
    return path


def in_csv_zst(table: pa.Table, folder: Path) -> object:
    path = folder / "TABLE.TXT.ZST"
    path.write_bytes(pa.compress(as_csv(table, line_end="\r\n").encode(), codec="zstd", asbytes=True))
    return path


def in_tsv(table: pa.Table, folder: Path) -> object:
    path = folder / "table.tsv"
    path.write_bytes(as_csv(table, "\t").encode())
    return str(path)


def in_parquet(table: pa.Table, folder: Path) -> object:
    parquet.write_table(table, folder / "table.parquet", row_group_size=max(2, table.num_rows // 3))
    return folder / "table.parquet"


def in_ipc_file(table: pa.Table, folder: Path) -> object:
    with pa.ipc.new_file(str(folder / "table.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=max(2, table.num_rows // 3))
    return folder / "table.arrow"


def in_ipc_stream(table: pa.Table, folder: Path) -> object:
    with pa.ipc.new_stream(str(folder / "table.ipc"), table.schema) as writer:
        writer.write_table(table, max_chunksize=max(2, table.num_rows // 3))
    return folder / "table.ipc"


def in_feather(table: pa.Table, folder: Path) -> object:
    feather.write_feather(table, str(folder / "table.feather"))
    return folder / "table.feather"


def in_excel(table: pa.Table, folder: Path) -> object:
    rows = [list(row.values()) for row in table.to_pylist()]
    return write_xlsx(folder / "table.xlsx", {"people": [list(table.column_names), *rows]})


KINDS: dict[str, tuple[str, Callable[[pa.Table, Any], object]]] = {
    "csv": ("csv", in_csv),
    "csv.gz": ("csv", in_csv_gz),
    "csv.zst": ("csv", in_csv_zst),
    "tsv": ("csv", in_tsv),
    "parquet": ("parquet", in_parquet),
    "ipc file": ("ipc", in_ipc_file),
    "ipc stream": ("ipc", in_ipc_stream),
    "feather": ("ipc", in_feather),
    "excel": ("excel", in_excel),
    "directory": ("parquet-directory", lambda table, folder: in_directory(table, folder / f"parts{table.num_rows}")),
    "sqlite": ("sqlite", lambda table, folder: in_sqlite(table, folder / "hospital.sqlite")),
    "duckdb table": ("duckdb-table", lambda table, folder: in_duckdb(table, folder / "hospital.duckdb")),
    "postgresql": ("postgresql", in_postgres),
    "pandas": ("pandas", lambda table, _: table.to_pandas()),
    "polars": ("polars", lambda table, _: polars.DataFrame(table)),
    "polars lazy": ("polars-lazy", lambda table, _: polars.LazyFrame(polars.DataFrame(table))),
    "pyarrow": ("pyarrow", lambda table, _: table),
    "record batch": ("pyarrow", lambda table, _: table.combine_chunks().to_batches()[0]),
    "arrow stream": ("pyarrow", lambda table, _: Stream(table)),
    "duckdb": ("duckdb", lambda table, _: duckdb.from_arrow(table, connection=duckdb.connect())),
}
