"""Read tables in SQLite, in the order of their row numbers.

In SQLite every cell has a type of its own. A column is read as one type, which the stored types of its cells decide.
The declared type decides whether text is a date, and whether 0 and 1 are false and true. A column of mixed types is
refused when it is requested; a mix of whole and floating-point numbers is numeric.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.tables.databases import FETCHED, Relation, find_relation, quoted
from sfumato.tables.sources.source_batches import checked_names, normalize_batches
from sfumato.tables.sources.unchanged_files import UnchangedFiles

SECONDS = 10.0  # how long to wait for another program that writes
EXACT = 1 << 53
CLASSES = ("integer", "real", "text", "blob")
AT_A_TIME = 100  # columns inspected in one query
DECIMAL = re.compile(r"DECIMAL_TEXT\((\d+),(\d+)\)")
# SQL conditions that hold if a text is not a date or a moment; ? stands for the cell.
NOT_A_DATE = "date(?) IS NOT ?"
NOT_A_MOMENT = (
    "strftime('%Y-%m-%d %H:%M:%S', substr(?, 1, 19)) IS NOT replace(substr(?, 1, 19), 'T', ' ')"
    " OR (length(?) > 19 AND (substr(?, 20) NOT GLOB '.[0-9]*' OR substr(?, 21) GLOB '*[^0-9]*' OR length(?) > 26))"
)


@dataclass(frozen=True)
class SqliteColumn:
    """A column and its type, which is None if its cells have mixed types."""

    name: str
    type: pa.DataType | None

    def array(self, cells: Sequence[object]) -> pa.Array:
        assert self.type is not None
        kind = self.type
        if pa.types.is_floating(kind):
            return pa.array([None if cell is None else float(cell) for cell in cells], kind)  # type: ignore[arg-type]
        if pa.types.is_boolean(kind):
            return pa.array(cells, pa.int64()).cast(kind)
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_decimal(kind):
            return pa.array(cells, pa.string()).cast(kind)
        return pa.array(cells, kind)


class SqliteSource:
    """A table or view in a SQLite file."""

    kind = "sqlite"
    text = False

    def __init__(self, path: Path, table: str | None) -> None:
        self._path = path
        self._where = f"the file {str(path)!r}"
        self._unchanged: UnchangedFiles | None = UnchangedFiles.of(path, path.with_name(f"{path.name}-wal"))
        with self._reading() as connection:
            relation = find_relation(table, list_relations(connection), [""], self._where)
            self._open(connection, relation)
        self._unchanged.check()

    @classmethod
    def staged(cls, path: Path, table: str) -> SqliteSource:
        """Open a table that is not published yet. No other program uses it, so the rest of the file may change."""
        source = cls.__new__(cls)
        source._path, source._where, source._unchanged = path, f"the file {str(path)!r}", None
        with source._reading() as connection:
            source._open(connection, Relation("", table))
        return source

    def _open(self, connection: sqlite3.Connection, relation: Relation) -> None:
        self._where = f"the table {relation.name!r} of {self._where}"
        self._table = relation.sql
        described = connection.execute(f"PRAGMA table_xinfo({relation.sql})").fetchall()
        # Hidden columns are the arguments of virtual tables.
        declared = {row[1]: (row[2] or "").upper() for row in described if row[6] != 1}
        self.names = checked_names(list(declared), self._where)
        self._order = _order(connection, relation, described, self.names)
        self.rows: int | None = connection.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0]  # noqa: S608
        self._columns: dict[str, SqliteColumn] = {}
        for start in range(0, len(self.names), AT_A_TIME):
            part = {name: declared[name] for name in self.names[start : start + AT_A_TIME]}
            self._columns |= _inspect_columns(connection, self._table, part)
        self.types = {
            name: pa.string() if column.type is None else column.type for name, column in self._columns.items()
        }

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        stored = self._read(columns)
        stored = stored if self._unchanged is None else self._unchanged.during(stored)
        batches = normalize_batches(stored, columns, self.types, self._where)
        for name in columns:
            if self._columns[name].type is None:
                raise InputError(
                    f"column {name!r} of {self._where} holds values of different types. Give it one type, for example "
                    "by CAST(... AS TEXT) in a view, or drop the column."
                )
        return batches

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        listed = ", ".join(map(quoted, columns))
        wanted = [self._columns[name] for name in columns]
        with self._reading() as connection:
            cursor = connection.execute(f"SELECT {listed} FROM {self._table} ORDER BY {self._order}")  # noqa: S608
            while rows := cursor.fetchmany(FETCHED):
                cells = zip(*rows, strict=True)
                arrays = [column.array(values) for column, values in zip(wanted, cells, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Open a read-only connection, and replace the messages of SQLite, which may hold cells."""
        try:
            with closing(open_sqlite(self._path, "ro")) as connection:
                yield connection
        except sqlite3.Error as error:
            raise InputError(f"{self._where} {_reason(error)}") from None
        except (pa.ArrowException, ValueError, OverflowError):
            raise InputError(
                f"{self._where} holds a value that does not have the type of its column. Check dates and numbers."
            ) from None


def open_sqlite(path: Path, mode: str) -> sqlite3.Connection:
    """Open a connection that starts no transaction on its own."""
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=SECONDS, isolation_level=None, check_same_thread=False)


def list_relations(connection: sqlite3.Connection) -> list[Relation]:
    """List the tables and views of a database, without those of SQLite itself."""
    rows = connection.execute(
        "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_'"
        " ORDER BY name"
    )
    return [Relation("", name, kind == "view") for name, kind in rows]


def _order(
    connection: sqlite3.Connection, relation: Relation, described: Sequence[Sequence[object]], names: Sequence[str]
) -> str:
    """Return an ORDER BY clause that gives the rows the same order in every pass."""
    listed = connection.execute("SELECT type, wr FROM pragma_table_list WHERE name = ?", (relation.name,)).fetchone()
    kind, without_rowid = listed if listed is not None else ("table", 0)
    taken = {name.lower() for name in names}
    rowid = next((name for name in ("rowid", "_rowid_", "oid") if name not in taken), None)
    if kind == "table" and not without_rowid and rowid is not None:
        return rowid
    keys = sorted((row for row in described if row[5]), key=lambda row: int(str(row[5])))
    if kind == "table" and without_rowid:
        return ", ".join(quoted(str(row[1])) for row in keys)
    # Rows of a view have no number. Rows that are equal in all columns need no order.
    return ", ".join(map(quoted, names))


def _inspect_columns(connection: sqlite3.Connection, table: str, declared: dict[str, str]) -> dict[str, SqliteColumn]:
    """Find the type of each column from all of its cells."""
    aggregates = []
    for name, kind in declared.items():
        cell = quoted(name)
        aggregates += [f"count(CASE WHEN typeof({cell}) = '{storage}' THEN 1 END)" for storage in CLASSES]
        aggregates.append(f"count(CASE WHEN typeof({cell}) = 'integer' AND {cell} NOT IN (0, 1) THEN 1 END)")
        aggregates.append(
            f"count(CASE WHEN typeof({cell}) = 'integer' AND ({cell} > {EXACT} OR {cell} < -{EXACT}) THEN 1 END)"
        )
        malformed = _malformed_text(kind)
        aggregates.append(
            "0"
            if malformed is None
            else f"count(CASE WHEN typeof({cell}) = 'text' AND ({malformed.replace('?', cell)}) THEN 1 END)"
        )
    counts = connection.execute(f"SELECT {', '.join(aggregates)} FROM {table}").fetchone()  # noqa: S608
    step = len(aggregates) // len(declared)
    return {
        name: SqliteColumn(name, _type(kind, *counts[index * step : (index + 1) * step]))
        for index, (name, kind) in enumerate(declared.items())
    }


def _malformed_text(declared: str) -> str | None:
    """Return the SQL condition for text that is not of the declared type, or None if any text is."""
    if declared == "DATE":
        return NOT_A_DATE
    if declared in ("DATETIME", "TIMESTAMP"):
        return NOT_A_MOMENT
    if declared == "TIMESTAMPTZ":
        return f"substr(?, -1) <> 'Z' OR {NOT_A_MOMENT.replace('?', 'rtrim(?, char(90))')}"
    return None


def _type(
    declared: str, integers: int, reals: int, texts: int, blobs: int, not_flags: int, inexact: int, malformed: int
) -> pa.DataType | None:
    """Return the type of a column from its declared type and the counts of its cells, or None if they are mixed."""
    stored = {name for name, count in zip(CLASSES, (integers, reals, texts, blobs), strict=True) if count}
    if stored == {"integer"}:
        return pa.bool_() if "BOOL" in declared and not not_flags else pa.int64()
    if stored == {"real"} or (stored == {"integer", "real"} and not inexact):
        return pa.float64()
    if stored == {"blob"}:
        return pa.binary()
    if stored - {"text"}:
        return None
    exact = DECIMAL.fullmatch(declared)
    if exact is not None:
        return pa.decimal128(int(exact[1]), int(exact[2]))
    if texts and not malformed and declared == "DATE":
        return pa.date32()
    if texts and not malformed and declared in ("DATETIME", "TIMESTAMP"):
        return pa.timestamp("us")
    if texts and not malformed and declared == "TIMESTAMPTZ":
        return pa.timestamp("us", "UTC")
    return pa.string()


def _reason(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorname", "") or ""
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "is being written to by another program. Run again when it is done."
    if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return "cannot be read as SQLite: it is damaged, encrypted, or not what its name says. Restore it from a copy."
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return "cannot be opened. Check the permissions of the file and its directory."
    return f"could not be read ({code or type(error).__name__}). Open it with SQLite to see why; text must be UTF-8."
