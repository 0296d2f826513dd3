"""Parquet files in directories that every machine has mounted. Executors read them in Python.

Rows cross between Java and Python one value at a time, which is slow. If Python can reach the files of a table, Spark
only tells the executors which parts to read. Files that only Java can reach are read by Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import parquet

from sfumato.engines.spark.session import Frame, Session, in_our_words
from sfumato.engines.spark.spark_tables import arrow_type

MOST_FILES = 1000  # whose schemas the driver reads
ROWS = 1 << 19  # rows that are read at once
LEGACY = b"org.apache.spark.legacyDateTime"


def parts_of(session: Session, frame: Frame, names: Mapping[str, str]) -> tuple[Frame, Any] | None:
    """Return a frame of the row groups behind ``frame``, and a function that reads rows; None if Java has to read them.

    names: the columns that are read, with the name that each gets. Their types must be those that Spark would give.
    """
    with in_our_words("list the files of the input"):
        paths = sorted(frame.inputFiles())
    addresses = [urlsplit(path) for path in paths]
    if not 0 < len(addresses) <= MOST_FILES or any(address.scheme not in ("", "file") for address in addresses):
        return None
    if any("=" in address.path.rpartition("/")[0] for address in addresses):  # columns in names of directories
        return None
    kinds = {field.name: arrow_type(field.dataType) for field in frame.schema.fields}
    parts, begins, rows = [], [], 0
    for address in addresses:
        path = unquote(address.path)
        try:
            file = parquet.ParquetFile(path)
        except (OSError, pa.ArrowInvalid):  # Spark says what is wrong with it
            return None
        with file:
            if LEGACY in (file.metadata.metadata or {}):  # Spark moves old dates to another calendar
                return None
            schema = file.schema_arrow
            if any(schema.get_field_index(name) < 0 or _kind(schema.field(name)) != kinds[name] for name in names):
                return None
            for part in range(file.metadata.num_row_groups):
                if count := file.metadata.row_group(part).num_rows:
                    parts.append((path, part))
                    begins.append(rows)
                    rows += count
    tasks = max(min(len(parts), -(-rows // ROWS)), 1)
    of_task: list[list[tuple[str, int]]] = [[] for _ in range(tasks)]
    for before, row_group in zip(begins, parts, strict=True):
        of_task[before * tasks // rows].append(row_group)
    # A range has one number in each of its partitions, so nothing has to be shuffled.
    return session.range(0, tasks, 1, tasks), partial(read_parts, of_task=of_task, names=dict(names))


def read_parts(
    batches: Iterator[pa.RecordBatch], of_task: Sequence[Sequence[tuple[str, int]]], names: Mapping[str, str]
) -> Iterator[pa.Table]:
    """Yield the rows of the row groups of a task, at most ROWS at a time. Text columns are dictionaries.

    of_task: the files and row groups of each task, by its number.
    """
    for task in (number for batch in batches for number in batch.column(0).to_pylist()):
        for path, part in of_task[task]:
            with parquet.ParquetFile(path) as file:
                texts = [name for name in names if pa.types.is_string(_kind(file.schema_arrow.field(name)))]
            with parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
                for rows in file.iter_batches(ROWS, row_groups=[part], columns=list(names), use_threads=False):
                    table = pa.Table.from_batches([rows]).select(list(names))
                    yield table.rename_columns(list(names.values())).combine_chunks()


def _kind(field: pa.Field) -> pa.DataType:
    return field.type.value_type if pa.types.is_dictionary(field.type) else field.type
