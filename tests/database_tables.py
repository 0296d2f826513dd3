"""Arrow tables put into databases by the databases' own means, and what is in them read in the same way."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import parquet

POSTGRES_TYPES = {"string": "text", "null": "text", "int64": "bigint", "double": "double precision", "bool": "boolean"}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def in_sqlite(table: pa.Table, path: Path, name: str = "people") -> str:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        connection.execute(f"CREATE TABLE {quoted(name)} ({', '.join(map(quoted, table.column_names))})")
        marks = ", ".join("?" * table.num_columns)
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", rows)
    return f"{path}#{name}"


def in_duckdb(table: pa.Table, path: Path, name: str = "people") -> str:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute(f"CREATE OR REPLACE TABLE {quoted(name)} AS SELECT * FROM given")
    return f"{path}#{name}"


def in_postgres(table: pa.Table, connection: Any, name: str = "people") -> str:
    columns = ", ".join(f"{quoted(field.name)} {POSTGRES_TYPES[str(field.type)]}" for field in table.schema)
    connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
    connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
    with connection.cursor().copy(f"COPY {quoted(name)} FROM STDIN") as copy:
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            copy.write_row(row)
    return f"{address(connection)}#{name}"


def in_directory(table: pa.Table, folder: Path) -> str:
    """In three files, one of them further in, beside files that are none of the table."""
    (folder / "c" / "d").mkdir(parents=True)
    third = max(1, table.num_rows // 3)
    for number, name in enumerate(("a.parquet", "b.pq", "c/d/e.parquet")):
        rows = table.slice(number * third) if number == 2 else table.slice(number * third, third)
        parquet.write_table(rows, folder / name)
    for name in ("_hidden.parquet", ".hidden.parquet", "_SUCCESS", "notes.txt"):
        (folder / name).write_text("not a part of it")
    return str(folder)


def address(connection: Any) -> str:
    return f"postgresql://{connection.info.user}@/{connection.info.dbname}?host={connection.info.host}"
