"""The types of columns in a database. A type that would not read back the same is refused."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import OutputError
from sfumato.tables.targets.file_writers import plain_field, refuse_durations

SIGNED = ("SQLite",)  # databases whose integers have 64 bits with a sign


def stored_schema(schema: pa.Schema, database: str) -> pa.Schema:
    """Return the schema as a database stores it: without dictionaries, dates in days and moments in microseconds."""
    refuse_durations(schema, database)
    return pa.schema([pa.field(field.name, _stored(plain_field(field), database)) for field in schema])


def as_stored(table: pa.Table, schema: pa.Schema, database: str) -> pa.Table:
    """Cast the rows to the types of the schema. A value that would have to change is refused."""
    return pa.Table.from_arrays([_cast(table.column(field.name), field, database) for field in schema], schema=schema)


def _cast(column: pa.ChunkedArray, field: pa.Field, database: str) -> pa.ChunkedArray:
    try:
        cast = column.cast(field.type)
        if types.is_uint64(field.type) and database in SIGNED:
            cast.cast(pa.int64())
    except pa.ArrowInvalid:
        raise OutputError(
            f"column {field.name!r} holds moments or times finer than a microsecond, or numbers that are too large, "
            f"which {database} cannot hold. Round them, convert the column to text, or write Parquet."
        ) from None
    return cast


def refuse_nul(table: pa.Table, database: str) -> None:
    """Refuse text with a NUL character, which ends a text in C."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if types.is_string(column.type) and pc.any(pc.match_substring(column, "\0")).as_py():
            raise OutputError(
                f"column {name!r} holds a NUL character, which {database} cannot hold. Write Parquet, or remove it."
            )


def unsupported_type(field: pa.Field, database: str) -> OutputError:
    return OutputError(
        f"column {field.name!r} has the type {field.type}, which {database} cannot store unchanged. Write Parquet, or "
        "convert the column to text."
    )


def _stored(field: pa.Field, database: str) -> pa.DataType:
    kind = field.type
    if types.is_null(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_date(kind):
        return pa.date32()
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_time(kind):
        return pa.time64("us")
    if types.is_float16(kind):
        return pa.float32()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_nested(kind) or types.is_interval(kind):
        raise unsupported_type(field, database)
    return kind
