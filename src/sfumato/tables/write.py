"""Writing a released table: Parquet, Arrow IPC, CSV, Excel.

A file holds the released values and nothing else: no index, no metadata of the input, and text columns as plain text
whose dictionaries on disk hold exactly the released values. A column that a format could not give back as it is, is
refused. Text is written as it is, also where a spreadsheet would take it for a formula.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
from pyarrow import types

from sfumato.errors import OutputError, UsageError
from sfumato.tables.staging import cannot_write, final_path

ROW_GROUP = 1 << 20
# A cell without quotes, a number or a date, may hold these, so that none of them can separate cells without quotes.
UNQUOTED = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-.: ")


# Writes tables, of which the first is also given by itself, to a path, with a compression and a separator.
Writer = Callable[[pa.Table, Iterable[pa.Table], Path, str | None, str], None]


def write_table(table: pa.Table, path: Path, *, separator: str = ",") -> None:
    """Write ``table`` in the format that the suffix of ``path`` names."""
    write_batches(iter([table]), path, separator=separator)


def write_batches(tables: Iterator[pa.Table], path: Path, *, separator: str = ",") -> None:
    """Write tables one under the other. All have the same columns, and text in all of them the same dictionary.

    All but the last have as many rows as a row group, or a multiple of it.
    """
    write, compression = _format(path)
    bare = (table.replace_schema_metadata(None) for table in tables)
    first = next(bare)
    try:
        write(first, itertools.chain([first], bare), path, compression, separator)
    except OSError as error:
        raise cannot_write(path, error) from None
    except pa.ArrowException as error:
        raise OutputError(
            f"cannot write {final_path(path)}: the format does not hold this table ({type(error).__name__}). "
            "Choose another format."
        ) from None


def check_format(path: Path) -> None:
    """Refuse a suffix that says nothing, before any work is done."""
    _format(path)


def _format(path: Path) -> tuple[Writer, str | None]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = {".gz": "gzip", ".zst": "zstd"}.get(suffixes[-1]) if suffixes else None
    kind = suffixes[-2] if compression and len(suffixes) > 1 else (suffixes[-1] if suffixes else "")
    writers = {
        ".parquet": _write_parquet,
        ".pq": _write_parquet,
        ".arrow": _write_ipc,
        ".ipc": _write_ipc,
        ".feather": _write_ipc,
        ".csv": _write_csv,
        ".tsv": _write_csv,
        ".txt": _write_csv,
        ".xlsx": _write_excel,
    }
    if kind not in writers or (compression and writers[kind] is not _write_csv):
        raise UsageError(
            f"the output {path.name!r} has no suffix that names a format. "
            "Use .parquet, .arrow, .csv, .csv.gz, .csv.zst or .xlsx."
        )
    return writers[kind], compression


def _write_parquet(first: pa.Table, tables: Iterable[pa.Table], path: Path, _: str | None, __: str) -> None:
    _refuse_durations(first, "Parquet")
    schema = pa.schema([field if _is_text(field.type) else _plain(field) for field in first.schema])
    # Statistics of text cost more than all the rest of writing; readers filter by numbers and dates.
    counted = [field.name for field in schema if not types.is_dictionary(field.type)]
    with pq.ParquetWriter(
        path, schema, compression="zstd", store_schema=False, write_statistics=counted or False
    ) as writer:
        for table in tables:
            writer.write_table(table.cast(schema), row_group_size=ROW_GROUP)


def _write_ipc(first: pa.Table, tables: Iterable[pa.Table], path: Path, _: str | None, __: str) -> None:
    schema = pa.schema([_plain(field) for field in first.schema])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as writer:
        for table in tables:
            for batch in table.to_batches(max_chunksize=ROW_GROUP):
                writer.write_batch(batch.cast(schema))


def _write_csv(
    first: pa.Table, tables: Iterable[pa.Table], path: Path, compression: str | None, separator: str
) -> None:
    _refuse_durations(first, "CSV")
    _refuse_what_is_no_text(first)
    schema = pa.schema([_plain(field) for field in first.schema])
    if separator == "," and path.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(".tsv"):
        separator = "\t"  # the rule by which such a file is read
    if separator in UNQUOTED:
        schema = pa.schema([field.with_type(pa.string()) for field in schema])
    quoting = "needed" if separator in UNQUOTED or _needs_quotes(first, separator) else "none"
    options = pa.csv.WriteOptions(delimiter=separator, quoting_style=quoting, include_header=False)
    with pa.output_stream(str(path), compression=compression) as sink:
        header = io.StringIO()
        csv.writer(header, delimiter=separator, lineterminator="\n").writerow(first.column_names)
        sink.write(header.getvalue().encode())
        with pa.csv.CSVWriter(sink, schema, write_options=options) as writer:
            for table in tables:
                for batch in _without_nan(table).to_batches(max_chunksize=ROW_GROUP):
                    writer.write_batch(batch.cast(schema))


def _without_nan(table: pa.Table) -> pa.Table:
    """NaN is null; as text it would come back as a value."""
    for place, column in enumerate(table.columns):
        if types.is_floating(column.type):
            nothing = pc.is_nan(column.cast(pa.float64()))
            cleared = pc.if_else(nothing, pa.scalar(None, column.type), column)
            table = table.set_column(place, table.column_names[place], cleared)
    return table


def _needs_quotes(table: pa.Table, separator: str) -> bool:
    """Whether some text could be taken for more than one cell, or for null. Arrow quotes all text or none."""
    special = f'["\\r\\n{re.escape(separator)}]|^$'
    return any(
        pc.any(pc.match_substring_regex(chunk.dictionary.cast(pa.string()), special)).as_py()
        for column in table.columns
        if types.is_dictionary(column.type)
        for chunk in column.chunks
    )


def _write_excel(_: pa.Table, tables: Iterable[pa.Table], path: Path, __: str | None, ___: str) -> None:
    from sfumato.tables.write_excel import write_sheet

    table = pa.concat_tables(tables)  # a sheet has no more rows than fit into memory
    write_sheet(table.cast(pa.schema([_plain(field) for field in table.schema])), path)


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_dictionary(kind) and types.is_string(kind.value_type))


def _plain(field: pa.Field) -> pa.Field:
    """The same column without a dictionary."""
    return field.with_type(field.type.value_type) if types.is_dictionary(field.type) else field


def _refuse_durations(table: pa.Table, form: str) -> None:
    for field in table.schema:
        if types.is_duration(field.type):
            raise OutputError(
                f"column {field.name!r} holds durations, which {form} would keep as numbers without their unit. Write "
                "Arrow IPC, or turn the column into numbers."
            )


def _refuse_what_is_no_text(table: pa.Table) -> None:
    for field in table.schema:
        kind = _plain(field).type
        if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
            raise OutputError(
                f"column {field.name!r} holds bytes, which CSV cannot. Write Parquet or Arrow IPC, or turn the column "
                "into text."
            )
        if types.is_dictionary(field.type):
            for chunk in table.column(field.name).chunks:
                if pc.any(pc.match_substring(chunk.dictionary.cast(pa.string()), "\0")).as_py():
                    raise OutputError(
                        f"column {field.name!r} holds a NUL character, which CSV cannot. Write Parquet or Arrow IPC, "
                        "or remove it."
                    )
