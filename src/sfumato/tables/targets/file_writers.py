"""Write a released table to a file: Parquet, Arrow IPC, CSV or Excel.

A file holds the released values and nothing else: no index, no metadata of the input, and text columns as plain text
whose dictionaries on disk hold exactly the released values. A column that would not read back the same is refused. Text
is written unchanged, even if a spreadsheet would treat it as a formula.
"""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
from pyarrow import types

from sfumato.errors import OutputError, UsageError
from sfumato.tables.sources.in_memory_source import nan_as_null
from sfumato.tables.targets.staging import cannot_write, final_path

Batches = Callable[[], Iterator[pa.RecordBatch]]
ROW_GROUP = 1 << 20
ROWS_OF_A_SHEET = 1 << 20
COMPRESSION = "zstd"
# Numbers and dates are written without quotes and may hold these, so none of them can separate cells without quotes.
UNQUOTED = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-.: ")


def write_table(table: pa.Table, path: Path, *, separator: str = ",") -> None:
    """Write ``table`` in the format that the suffix of ``path`` names."""
    write_batches(table.schema, table.to_batches, path, separator=separator)


def write_batches(schema: pa.Schema, batches: Batches, path: Path, *, separator: str = ",") -> None:
    """Write the rows that ``batches`` yields, which need not fit into memory. ``batches`` may be called twice.

    The file does not depend on the boundaries of batches.
    """
    write, compression = _format(path)
    schema = schema.remove_metadata()
    try:
        write(schema, batches, path, compression, separator)
    except OSError as error:
        raise cannot_write(path, error) from None
    except pa.ArrowException as error:
        raise OutputError(
            f"cannot write {final_path(path)}: the format cannot hold this table ({type(error).__name__}). "
            "Choose another format."
        ) from None


def row_groups(schema: pa.Schema, batches: Batches, rows: int = ROW_GROUP) -> Iterator[pa.Table]:
    """Yield the rows in tables of ``rows`` rows, the last one aside. In a table, every column has one dictionary."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches():
        start = 0
        while held + batch.num_rows - start >= rows:
            yield _one_table(schema, [*waiting, batch.slice(start, rows - held)])
            waiting, held, start = [], 0, start + rows - held
        if start < batch.num_rows:
            waiting.append(batch.slice(start))
            held += batch.num_rows - start
    if waiting:
        yield _one_table(schema, waiting)


def _one_table(schema: pa.Schema, batches: list[pa.RecordBatch]) -> pa.Table:
    # The metadata of the input is not released.
    table = pa.Table.from_batches([batch.replace_schema_metadata(None) for batch in batches], schema)
    return table.unify_dictionaries() if len(batches) > 1 else table


def check_format(path: Path) -> None:
    """Refuse, before any work is done, a suffix that names no format."""
    _format(path)


def _format(path: Path) -> tuple[Callable[[pa.Schema, Batches, Path, str | None, str], None], str | None]:
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


def _write_parquet(schema: pa.Schema, batches: Batches, path: Path, _: str | None, __: str) -> None:
    with parquet_writer(schema, path) as writer:
        for group in row_groups(schema, batches):
            writer.write_table(group.cast(writer.schema), row_group_size=ROW_GROUP)


def parquet_writer(schema: pa.Schema, path: Path) -> pq.ParquetWriter:
    """Open a Parquet file for tables of the writer's own schema."""
    refuse_durations(schema, "Parquet")
    zones = _named_zones(schema)
    schema = pa.schema([field if _is_text(field.type) else plain_field(field) for field in schema])
    # Statistics of text take longer than the rest of writing, and readers filter by numbers and dates.
    with_statistics = [field.name for field in schema if not types.is_dictionary(field.type)]
    writer = pq.ParquetWriter(
        path, schema, compression=COMPRESSION, store_schema=False, write_statistics=with_statistics or False
    )
    if zones is not None:
        writer.add_key_value_metadata(zones)
    return writer


def _named_zones(schema: pa.Schema) -> dict[bytes, bytes] | None:
    """Return metadata that names the time zones of columns; None if all are in UTC, as Parquet assumes.

    Parquet stores instants. Arrow reads the names of zones from a schema of its own beside them, which here has names
    and types alone. A release without other zones has no such schema.
    """
    plain = pa.schema([plain_field(field).remove_metadata() for field in schema])
    if all(not types.is_timestamp(kind) or kind.tz in (None, "UTC") for kind in plain.types):
        return None
    return {b"ARROW:schema": base64.b64encode(plain.serialize().to_pybytes())}


def _write_ipc(schema: pa.Schema, batches: Batches, path: Path, _: str | None, __: str) -> None:
    stored = pa.schema([plain_field(field) for field in schema])
    options = pa.ipc.IpcWriteOptions(compression=COMPRESSION)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, stored, options=options) as writer:
        for group in row_groups(schema, batches):
            writer.write_table(group.cast(stored).combine_chunks())


def _write_csv(schema: pa.Schema, batches: Batches, path: Path, compression: str | None, separator: str) -> None:
    refuse_durations(schema, "CSV")
    _refuse_bytes_and_nul(schema, batches)
    stored = pa.schema([plain_field(field) for field in schema])
    if separator == "," and path.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(".tsv"):
        separator = "\t"  # as readers expect of such a file
    if separator in UNQUOTED:
        stored = pa.schema([field.with_type(pa.string()) for field in stored])
    quoting = "needed" if separator in UNQUOTED or _needs_quotes(batches, separator) else "none"
    options = pa.csv.WriteOptions(delimiter=separator, quoting_style=quoting, include_header=False)
    with pa.output_stream(str(path), compression=compression) as sink:
        header = io.StringIO()
        csv.writer(header, delimiter=separator, lineterminator="\n").writerow(schema.names)
        sink.write(header.getvalue().encode())
        with pa.csv.CSVWriter(sink, stored, write_options=options) as writer:
            for group in row_groups(schema, batches):
                writer.write_table(without_nan(group).cast(stored))


def without_nan(table: pa.Table) -> pa.Table:
    """Replace NaN by null; as text, NaN would read back as a value."""
    for index, column in enumerate(table.columns):
        if types.is_floating(column.type):
            table = table.set_column(index, table.column_names[index], nan_as_null(column))
    return table


def _needs_quotes(batches: Batches, separator: str) -> bool:
    """Return whether any text could be read as more than one cell, or as null. Arrow quotes all text or none."""
    special = f'["\\r\\n{re.escape(separator)}]|^$'
    return any(pc.any(pc.match_substring_regex(values, special)).as_py() for _, values in _dictionaries(batches))


def _dictionaries(batches: Batches) -> Iterator[tuple[str, pa.Array]]:
    """Yield the name and values of every text column. A dictionary that batches share is yielded once."""
    seen: dict[str, pa.Array] = {}
    for batch in batches():
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not types.is_dictionary(column.type):
                continue
            values = column.dictionary
            if name not in seen or not _same_buffers(values, seen[name]):
                seen[name] = values
                yield name, values.cast(pa.string())


def _same_buffers(array: pa.Array, other: pa.Array) -> bool:
    return [array.offset, len(array), *map(_address, array.buffers())] == [
        other.offset,
        len(other),
        *map(_address, other.buffers()),
    ]


def _address(buffer: pa.Buffer | None) -> int | None:
    return None if buffer is None else buffer.address


def _write_excel(schema: pa.Schema, batches: Batches, path: Path, _: str | None, __: str) -> None:
    from sfumato.tables.targets.excel_writer import write_sheet

    # A sheet has at most a million rows, which fit into memory; the writer refuses more.
    tables = list(row_groups(schema, batches, ROWS_OF_A_SHEET + 1))
    table = pa.concat_tables(tables) if tables else schema.empty_table()
    write_sheet(table.cast(pa.schema([plain_field(field) for field in schema])), path)


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_dictionary(kind) and types.is_string(kind.value_type))


def plain_field(field: pa.Field) -> pa.Field:
    """Return the field without a dictionary."""
    return field.with_type(field.type.value_type) if types.is_dictionary(field.type) else field


def refuse_durations(schema: pa.Schema, target_format: str) -> None:
    for field in schema:
        if types.is_duration(field.type):
            raise OutputError(
                f"column {field.name!r} holds durations, which {target_format} would store as numbers without their "
                "unit. Write Arrow IPC, or convert the column to numbers."
            )


def _refuse_bytes_and_nul(schema: pa.Schema, batches: Batches) -> None:
    for field in schema:
        kind = plain_field(field).type
        if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
            raise OutputError(
                f"column {field.name!r} holds bytes, which CSV cannot hold. Write Parquet or Arrow IPC, or convert the "
                "column to text."
            )
    for name, values in _dictionaries(batches):
        if pc.any(pc.match_substring(values, "\0")).as_py():
            raise OutputError(
                f"column {name!r} holds a NUL character, which CSV cannot hold. Write Parquet or Arrow IPC, or remove "
                "it."
            )
