"""What a column becomes in a database: the types that each can give back as they are, all others refused."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import OutputError
from sfumato.tables.targets.file_writers import plain_field, refuse_durations

LARGEST_INTEGER = (1 << 63) - 1


def stored_schema(schema: pa.Schema, form: str) -> pa.Schema:
    """The columns without dictionaries, dates as days and moments to the microsecond."""
    refuse_durations(schema, form)
    return pa.schema([pa.field(field.name, _stored(plain_field(field), form)) for field in schema])


def as_stored(table: pa.Table, schema: pa.Schema, form: str) -> pa.Table:
    """The rows in the types of the schema; a value that would have to change is refused."""
    try:
        return table.cast(schema)
    except pa.ArrowInvalid:
        raise OutputError(
            f"a moment has parts of a microsecond, or a number is too large, which {form} cannot hold. Round it, or "
            "write Parquet."
        ) from None


def refuse_nul(table: pa.Table, form: str) -> None:
    """Refuse text with the character that ends text in C."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if types.is_string(column.type) and pc.any(pc.match_substring(column, "\0")).as_py():
            raise OutputError(
                f"column {name!r} holds a NUL character, which {form} cannot. Write Parquet, or remove it."
            )


def unsupported_type(field: pa.Field, form: str) -> OutputError:
    return OutputError(
        f"column {field.name!r} has the type {field.type}, which {form} cannot give back as it is. Write Parquet, or "
        "turn the column into text."
    )


def _stored(field: pa.Field, form: str) -> pa.DataType:
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
        raise unsupported_type(field, form)
    return kind
