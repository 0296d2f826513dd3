"""The layout of a text file whose columns have fixed widths: a CSV file, as codebooks have it.

    name,start,width,decimals,description
    birth_year,1,4,,
    weight,5,4,1,Weight in kilograms

Positions count characters from 1. Instead of the width, ``end`` may name the last position. A row without a name is
about positions that are not read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from sfumato.errors import InputError
from sfumato.files.regular_file import read_file

KEYS = ("name", "start", "width", "end", "type", "decimals", "description")
TYPES = ("text", "number")
SEPARATORS = (",", ";", "\t")


@dataclass(frozen=True)
class FixedColumn:
    """A column at the positions from ``start``, counted from 0, to ``stop``, which is excluded.

    decimals: how many digits at the end of a number stand behind a decimal mark that is not written. line: of the
    layout.
    """

    name: str
    start: int
    stop: int
    is_number: bool
    decimals: int
    description: str
    line: int


@dataclass(frozen=True)
class FixedWidthLayout:
    """The columns of a file. ``length`` is that of a line; positions from the last column on may be unread."""

    columns: tuple[FixedColumn, ...]
    length: int

    @property
    def needed(self) -> int:
        """The fewest characters that a line has: those up to the last column."""
        return max(column.stop for column in self.columns)


def read_layout(path: Path) -> FixedWidthLayout:
    """Read a layout file."""
    file = _LayoutFile(path)
    columns = [_column(file, line, row) for line, row in file.rows()]
    _check_apart(file, columns)
    named = tuple(column for column in columns if column.name)
    if not named:
        raise file.error("it names no column. Write a row for each column: its name, start and width.")
    return FixedWidthLayout(named, max(column.stop for column in columns))


@dataclass(frozen=True)
class _LayoutFile:
    path: Path

    def error(self, problem: str, line: int | None = None) -> InputError:
        where = f"the layout {str(self.path)!r}" + ("" if line is None else f", line {line}")
        return InputError(f"{where}: {problem}")

    def rows(self) -> list[tuple[int, dict[str, str]]]:
        """Return the rows by the words of the header, each with its line."""
        text = self._text()
        header_line = text.partition("\n")[0]
        separator = max(SEPARATORS, key=header_line.count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        try:
            header = [name.strip().lower() for name in next(reader, [])]
            self._check_header(header)
            rows = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
        except csv.Error:
            problem = 'a quotation mark is not closed or not doubled. Write "a ""quoted"" text".'
            raise self.error(problem, reader.line_num) from None
        for line, cells in rows:
            if len(cells) != len(header):
                raise self.error(
                    f"this row has {len(cells)} cells, and the header has {len(header)}. Quote texts that hold the "
                    "separator.",
                    line,
                )
        stripped = [(line, [cell.strip() for cell in cells]) for line, cells in rows]
        return [(line, dict(zip(header, cells, strict=True))) for line, cells in stripped]

    def _check_header(self, header: Sequence[str]) -> None:
        wanted = "name, start and width (or end), and optionally type, decimals and description"
        if not {"name", "start"}.issubset(header) or not {"width", "end"}.intersection(header):
            raise self.error(f"its first line must name its columns: {wanted}.", 1)
        for position, key in enumerate(header):
            if key not in KEYS:
                raise self.error(f"unknown column {key!r}. A layout has {wanted}.", 1)
            if key in header[:position]:
                raise self.error(f"the column {key!r} is there twice. Remove one of the two.", 1)

    def _text(self) -> str:
        try:
            content = read_file(self.path)
        except FileNotFoundError:
            raise self.error("there is no such file. Paths in a policy are relative to its directory.") from None
        except IsADirectoryError:
            raise self.error("it is a directory. Name the CSV file in it.") from None
        except OSError as failure:
            raise self.error(f"it cannot be read ({failure.strerror}). Check the path and its permissions.") from None
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as failure:
            line = content.count(b"\n", 0, failure.start) + 1
            raise self.error("it is not UTF-8 text. Save the file in that encoding.", line) from None


def _column(file: _LayoutFile, line: int, row: Mapping[str, str]) -> FixedColumn:
    start = _whole(file, line, row, "start", least=1)
    width, end = _whole(file, line, row, "width", least=1), _whole(file, line, row, "end", least=1)
    if start is None or (width is None and end is None):
        missing = "start" if start is None else "width" if "width" in row else "end"
        raise file.error(f"the {missing} is missing. Write a whole number, counted from 1.", line)
    stop = end if width is None else start - 1 + width
    assert stop is not None
    if stop < start or (end is not None and end != stop):
        raise file.error("start, width and end do not fit together. The end is the last position of the column.", line)
    decimals = _whole(file, line, row, "decimals", least=0)
    kind = row.get("type", "").lower() or ("text" if decimals is None else "number")
    if kind not in TYPES:
        raise file.error(f"unknown type {kind!r}. Write text or number.", line)
    if kind == "text" and decimals is not None:
        raise file.error("a column of text has no decimals. Make its type number, or remove them.", line)
    return FixedColumn(row["name"], start - 1, stop, kind == "number", decimals or 0, row.get("description", ""), line)


def _whole(file: _LayoutFile, line: int, row: Mapping[str, str], key: str, least: int) -> int | None:
    text = row.get(key, "")
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) < least:
        raise file.error(f"the {key} must be a whole number of at least {least}.", line)
    return int(text)


def _check_apart(file: _LayoutFile, columns: Sequence[FixedColumn]) -> None:
    """Refuse two columns of one name, and positions that belong to two columns."""
    seen: dict[str, FixedColumn] = {}
    for column in columns:
        earlier = seen.setdefault(column.name, column)
        if column.name and earlier is not column:
            raise file.error(
                f"the column {column.name!r} is in line {earlier.line} too. Rename one of them.", column.line
            )
    in_order = sorted(columns, key=lambda column: column.start)
    for before, after in pairwise(in_order):
        if after.start < before.stop:
            raise file.error(
                f"position {after.start + 1} belongs to the column of line {before.line} too. Correct start or width "
                "of one of them.",
                after.line,
            )
