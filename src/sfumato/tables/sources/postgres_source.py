"""Read tables of a PostgreSQL server. All passes see the same snapshot.

A transaction that stays open as long as the source exists exports a snapshot of the database. Each pass is a separate
connection that imports that snapshot. COPY delivers the rows as CSV text, in the order of the primary key or, without
one, of their physical position in the table.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow_csv

from sfumato.errors import InputError, OutputError
from sfumato.kernels.threads import in_threads_ahead
from sfumato.tables.databases import Relation, find_relation, missing_package, quoted
from sfumato.tables.locations import ServerLocation
from sfumato.tables.sources.csv_blocks import blocks_of_records, parsed_block
from sfumato.tables.sources.source_batches import checked_names, normalize_batches, normalized_types

_MOST_DIGITS = 76
_TYPES = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "time": pa.time64("us"),
    "bytea": pa.binary(),
}
# All settings that affect how values are written as text.
_SETTINGS = {
    "DateStyle": "ISO, YMD",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "IntervalStyle": "iso_8601",
    "idle_in_transaction_session_timeout": "0",
    "statement_timeout": "0",
}
_COLUMNS = """
    SELECT a.attname, b.typname, b.typcategory, b.typtype,
           CASE WHEN b.typname = 'numeric' AND coalesce(nullif(a.atttypmod, -1), nullif(t.typtypmod, -1)) IS NOT NULL
                THEN coalesce(nullif(a.atttypmod, -1), nullif(t.typtypmod, -1)) - 4 END
    FROM pg_attribute a
    JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_type b ON b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""
_KEY = """
    SELECT a.attname FROM pg_index i
    CROSS JOIN unnest(i.indkey::smallint[]) WITH ORDINALITY AS k(number, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE i.indrelid = %s AND i.indisprimary AND k.place <= i.indnkeyatts ORDER BY k.place
"""
_RELATIONS = """
    SELECT n.nspname, c.relname, c.relkind NOT IN ('r', 'p')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\\_%%'
      AND n.nspname <> 'information_schema' AND NOT c.relispartition ORDER BY 1, 2
"""


@dataclass(frozen=True)
class _PostgresColumn:
    name: str
    type: pa.DataType
    orderable: bool


class PostgresSource:
    """A table or view on a PostgreSQL server."""

    kind = "postgresql"
    text = False
    rows: int | None = None  # only an estimate is known without counting

    def __init__(self, location: ServerLocation, relation: Relation | None = None) -> None:
        self._location = location
        self._where = f"the database {ServerLocation(location.address, None).shown!r}"
        connection = open_postgres(location, InputError)
        # The snapshot is released with the source, even if reading never finished.
        self.close = weakref.finalize(self, connection.close)
        with self._reading():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._snapshot = connection.execute("SELECT pg_export_snapshot()").fetchone()[0]
            if relation is None:
                relation = find_relation(location.table, *list_relations(connection), self._where)
            self._where = f"the table {relation.shown!r} of {self._where}"
            self._relation = relation
            oid = connection.execute("SELECT %s::regclass::oid", (relation.sql,)).fetchone()[0]
            self._columns = {column.name: column for column in self._describe_columns(connection, oid)}
            self._order = self._row_order(connection, oid)
        self.names = checked_names(list(self._columns), self._where)
        self.types = normalized_types(pa.schema([(column.name, column.type) for column in self._columns.values()]))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return normalize_batches(self._read(columns), columns, self.types, self._where)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        listed = ", ".join(map(quoted, columns))
        query = f"COPY (SELECT {listed} FROM {self._relation.sql} ORDER BY {self._order}) TO STDOUT (FORMAT csv)"  # noqa: S608
        with self._reading(), closing(open_postgres(self._location, InputError)) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(f"SET TRANSACTION SNAPSHOT '{self._snapshot}'")
            with connection.cursor().copy(query) as copy:
                try:
                    # The server sends every row in a message of its own.
                    with closing(in_threads_ahead(partial(self._parsed, columns), blocks_of_records(copy))) as parsed:
                        yield from chain.from_iterable(parsed)
                finally:
                    # Otherwise leaving the block would wait for the rest of the table.
                    connection.close()

    def _parsed(self, columns: Sequence[str], block: pa.Buffer) -> list[pa.RecordBatch]:
        wanted = {name: self._columns[name].type for name in columns}
        batches = parsed_block(
            block,
            columns,
            arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            arrow_csv.ConvertOptions(
                column_types={name: pa.string() if pa.types.is_binary(kind) else kind for name, kind in wanted.items()},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["t"],
                false_values=["f"],
            ),
        )
        return [
            pa.RecordBatch.from_arrays(
                [
                    _as_bytes(array) if pa.types.is_binary(kind) else array
                    for kind, array in zip(wanted.values(), batch.columns, strict=True)
                ],
                names=list(wanted),
            )
            for batch in batches
        ]

    def _describe_columns(self, connection: Any, oid: int) -> list[_PostgresColumn]:
        catalogue = connection.execute(_COLUMNS, (oid,)).fetchall()
        undeclared = [name for name, kind, *_, modifier in catalogue if kind == "numeric" and modifier is None]
        decimal_types = self._decimal_types(connection, undeclared)
        columns = []
        for name, kind, category, type_class, modifier in catalogue:
            if kind == "numeric":
                stored = decimal_types[name] if modifier is None else _decimal(modifier)
            elif category == "A" or type_class == "c":
                stored = pa.list_(pa.string())  # arrays and composites, which are refused when they are requested
            else:
                stored = _TYPES.get(kind, pa.string())
            columns.append(_PostgresColumn(name, stored, kind in _TYPES or kind in ("numeric", "text", "varchar")))
        return columns

    def _decimal_types(self, connection: Any, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Find the types of numeric columns without a declared precision, from the digits of all their values."""
        if not names:
            return {}
        aggregates = ", ".join(
            f"max(scale({name})), max(length(trunc(abs({name}))::text)), "
            f"bool_or({name} IN ('NaN', 'Infinity', '-Infinity'))"
            for name in map(quoted, names)
        )
        digits = connection.execute(f"SELECT {aggregates} FROM {self._relation.sql}").fetchone()  # noqa: S608
        decimal_types = {}
        for index, name in enumerate(names):
            scale, whole, not_finite = digits[index * 3 : index * 3 + 3]
            scale, whole = scale or 0, whole or 1
            if not_finite or scale + whole > _MOST_DIGITS:
                decimal_types[name] = pa.float64()
            else:
                decimal_types[name] = _decimal_type(scale + whole, scale)
        return decimal_types

    def _row_order(self, connection: Any, oid: int) -> str:
        key = [name for (name,) in connection.execute(_KEY, (oid,)).fetchall()]
        if key:
            return ", ".join(map(quoted, key))
        if not self._relation.view:
            return "tableoid, ctid"
        # Rows of a view have no position, so they are sorted by all columns. Only equal rows may change places.
        return ", ".join(
            quoted(column.name) if column.orderable else f"{quoted(column.name)}::text"
            for column in self._columns.values()
        )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Replace the messages of server and library, which may hold cells or a password."""
        import psycopg

        try:
            yield
        except psycopg.errors.InsufficientPrivilege:
            raise InputError(f"{self._where} may not be read by this user. Ask for the right to SELECT.") from None
        except psycopg.Error as error:
            raise InputError(
                f"{self._where} could not be read ({_error_name(error)}). Check the connection, and run again."
            ) from None
        except pa.ArrowException:
            raise InputError(
                f"{self._where} holds a value that cannot be read, such as an infinite date or a date BC. Create a "
                "view without that value, and use the view."
            ) from None


def open_postgres(location: ServerLocation, error: type[InputError | OutputError]) -> Any:
    """Connect to the server with fixed settings for the text of values; if that fails, raise ``error``."""
    shown = ServerLocation(location.address, None).shown
    try:
        import psycopg
    except ImportError:
        raise missing_package(f"the database {shown!r}", "postgres", error) from None
    try:
        connection = psycopg.connect(location.address, client_encoding="UTF8", application_name="sfumato")
    except psycopg.Error as problem:
        # The reason is derived from words in the message; the message itself may repeat part of the password.
        raise error(f"the database {shown!r} {_unreachable(str(problem))}") from None
    try:
        for name, value in _SETTINGS.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        connection.commit()
    except psycopg.Error as problem:
        connection.close()
        raise error(
            f"the database {shown!r} cannot be used ({_error_name(problem)}). Check the connection, and run again."
        ) from None
    return connection


def list_relations(connection: Any) -> tuple[list[Relation], list[str]]:
    """List the tables and views of a database, and the schemas whose tables need no schema in their names."""
    rows = [Relation(*row) for row in connection.execute(_RELATIONS).fetchall()]
    return rows, list(connection.execute("SELECT current_schemas(false)").fetchone()[0])


def table_identity(location: ServerLocation) -> tuple[object, ...] | None:
    """Return what identifies a table, however it is addressed, or None if there is no such table."""
    with closing(open_postgres(location, InputError)) as connection:
        available, default_schemas = list_relations(connection)
        try:
            relation = find_relation(location.table, available, default_schemas, "the database")
        except InputError:
            return None
        row = connection.execute(
            "SELECT pg_postmaster_start_time(), current_database(), %s::regclass::oid", (relation.sql,)
        ).fetchone()
        return tuple(row)


def _error_name(error: Any) -> str:
    return f"{type(error).__name__}, SQLSTATE {error.sqlstate}" if error.sqlstate else type(error).__name__


def _unreachable(text: str) -> str:
    if "password" in text or "authentication" in text:
        return "refuses this user. Check the user and the password, which PGPASSWORD or a password file may hold."
    if "does not exist" in text:
        return "or its user does not exist on that server. Check the address."
    if "connection" in text and "invalid" not in text:
        return "cannot be reached. Check host and port, and that the server is running."
    return "has an address that is not understood. Write it as postgresql://user@host:port/database#table."


def _decimal(modifier: int) -> pa.DataType:
    """Return the type of numeric(precision, scale) from its catalogue code. A negative scale has no decimal places."""
    precision, scale = modifier >> 16, ((modifier & 0x7FF) ^ 1024) - 1024
    return _decimal_type(precision - min(scale, 0) + max(scale - precision, 0), max(scale, 0))


def _decimal_type(digits: int, scale: int) -> pa.DataType:
    if digits > _MOST_DIGITS:
        return pa.float64()
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _as_bytes(texts: pa.Array) -> pa.Array:
    return pa.array([None if text is None else bytes.fromhex(text[2:]) for text in texts.to_pylist()], pa.binary())
