"""Write a released table to a file: Parquet, Arrow IPC, CSV or Excel.

A file holds the released values and nothing else: no index, no metadata of the input, and text columns as plain text
whose dictionaries on disk hold exactly the released values. A column that would not read back the same is refused.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq
from pyarrow import types

from sfumato.errors import OutputError, UsageError
from sfumato.policy import WrittenText
from sfumato.tables.coding.arrow_arrays import to_numpy
from sfumato.tables.coding.dictionaries import dictionary_array
from sfumato.tables.formulas import FormulaCells
from sfumato.tables.sources.source import kind_of_file
from sfumato.tables.targets.staging import cannot_write, final_path

Batches = Callable[[], Iterator[pa.RecordBatch]]
ROW_GROUP = 1 << 20
ROWS_OF_A_SHEET = 1 << 20
GROUP_BYTES = 1 << 25  # of the rows that are written at once, before they are compressed
LEAST_ROWS = 1 << 10
FEW_VALUES = 1 << 16  # that text is written as codes of
COMPRESSION = "zstd"
PLAIN_TEXT = WrittenText()


@dataclass(frozen=True)
class CsvForm:
    """How CSV is written. Other formats have no use for it. labels: the text columns that show numbers."""

    text: WrittenText
    compression: str | None = None
    formulas: FormulaCells | None = None
    labels: Collection[str] = ()


def write_table(table: pa.Table, path: Path, *, text: WrittenText = PLAIN_TEXT) -> None:
    """Write ``table`` in the format that the suffix of ``path`` names."""
    write_batches(table.schema, table.to_batches, path, text=text)


def write_batches(
    schema: pa.Schema,
    batches: Batches,
    path: Path,
    *,
    text: WrittenText = PLAIN_TEXT,
    formulas: FormulaCells | None = None,
    labels: Collection[str] = (),
) -> None:
    """Write the rows that ``batches`` yields, which need not fit into memory. ``batches`` may be called twice.

    The file does not depend on the boundaries of batches. text, formulas, labels: of CSV; see ``CsvForm``.
    """
    write, compression = _format(path)
    schema = schema.remove_metadata()
    try:
        write(schema, batches, path, CsvForm(_for_name(text, path), compression, formulas, labels))
    except OSError as error:
        raise cannot_write(path, error) from None
    except pa.ArrowException as error:
        raise OutputError(
            f"cannot write {final_path(path)}: the format cannot hold this table ({type(error).__name__}). "
            "Choose another format."
        ) from None


def _for_name(text: WrittenText, path: Path) -> WrittenText:
    """Return how a file of this name is written: readers expect tabs in a .tsv file unless told otherwise."""
    tabs = text.separator == "," and kind_of_file(path)[0] == ".tsv"
    return replace(text, separator="\t") if tabs else text


def row_groups(
    schema: pa.Schema, batches: Batches, most: int = ROW_GROUP, *, coded: bool = False
) -> Iterator[pa.Table]:
    """Yield the rows in tables of equal size, the last one aside: ``most`` rows, or fewer if rows are wide.

    In a table, every column has one dictionary. coded: text is written as codes if it has few values.
    """
    waiting: list[pa.RecordBatch] = []
    held = rows = 0
    for batch in batches():
        rows = rows or min(most, max(GROUP_BYTES // _bytes_of_a_row(batch, coded=coded), LEAST_ROWS))
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
    if not all(map(_share_a_dictionary, table.columns)):
        table = table.unify_dictionaries()
    for index, column in enumerate(table.columns):
        if types.is_dictionary(column.type) and len(column.chunk(0).dictionary) > table.num_rows:
            # Writers take memory for every value of a dictionary, and most of these are in other tables.
            values = column.chunk(0).dictionary
            codes = np.concatenate([to_numpy(chunk.indices, len(values)) for chunk in column.chunks])
            reduced = dictionary_array(codes, values).cast(column.type)
            table = table.set_column(index, table.field(index), pa.chunked_array([reduced]))
    return table


def _share_a_dictionary(column: pa.ChunkedArray) -> bool:
    """Return whether the parts of a column need not be unified, which would take several times their dictionaries."""
    if not types.is_dictionary(column.type):
        return True
    return all(_same_buffers(chunk.dictionary, column.chunk(0).dictionary) for chunk in column.chunks[1:])


def _bytes_of_a_row(batch: pa.RecordBatch, *, coded: bool) -> int:
    """Return the bytes of a row on the average, by the values of its dictionaries and the types of its other columns.

    Batches of one release share their dictionaries, so the size does not depend on how rows are divided into batches.
    """
    size = 0
    for column in batch.columns:
        if not types.is_dictionary(column.type):
            size += 8
            continue
        values = column.dictionary
        size += 4
        if len(values) and (not coded or len(values) > FEW_VALUES):
            size += -(-_letters(values) // len(values))
    return max(size, 1)


def _letters(values: pa.Array) -> int:
    if types.is_decimal(values.type) or types.is_fixed_size_binary(values.type):
        return int(len(values) * values.type.byte_width)
    return int(pc.sum(pc.binary_length(values)).as_py() or 0)


def check_format(path: Path) -> None:
    """Refuse, before any work is done, a suffix that names no format."""
    _format(path)


def check_columns_of_file(path: Path, schema: pa.Schema) -> None:
    """Refuse, before any work is done, a column of a type that the format of the file cannot hold."""
    write, _ = _format(path)
    if write is _write_parquet:
        refuse_durations(schema, "Parquet")
    elif write is _write_csv:
        from sfumato.tables.targets.csv_writer import check_types_of_csv

        check_types_of_csv(schema)
    elif write is _write_excel:
        from sfumato.tables.targets.excel_writer import check_types

        check_types(schema)


def _format(path: Path) -> tuple[Callable[[pa.Schema, Batches, Path, CsvForm], None], str | None]:
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


def _write_parquet(schema: pa.Schema, batches: Batches, path: Path, _: CsvForm) -> None:
    with parquet_writer(schema, path) as writer:
        for group in row_groups(schema, batches, coded=True):
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


def _write_ipc(schema: pa.Schema, batches: Batches, path: Path, _: CsvForm) -> None:
    stored = pa.schema([plain_field(field) for field in schema])
    options = pa.ipc.IpcWriteOptions(compression=COMPRESSION)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, stored, options=options) as writer:
        for group in row_groups(schema, batches):
            writer.write_table(group.cast(stored).combine_chunks())


def _write_csv(schema: pa.Schema, batches: Batches, path: Path, form: CsvForm) -> None:
    from sfumato.tables.targets.csv_writer import write_csv

    write_csv(schema, batches, path, form)


def dictionaries(batches: Batches) -> Iterator[tuple[str, pa.Array]]:
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


def _write_excel(schema: pa.Schema, batches: Batches, path: Path, _: CsvForm) -> None:
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
