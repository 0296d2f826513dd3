"""Read CSV as text: every cell keeps its characters, an empty cell is null, a quoted empty cell is an empty string."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyarrow import csv as arrow_csv

from sfumato.errors import InputError, ReadingWarning
from sfumato.kernels.threads import ahead, in_threads_ahead
from sfumato.tables.decimal_commas import read_with_points
from sfumato.tables.formulas import rearmed
from sfumato.tables.sources import csv_blocks
from sfumato.tables.sources.source_batches import TEXT, NoRecordsError, checked_names, normalize_batches
from sfumato.tables.sources.text_stream import open_text, skip_lines
from sfumato.tables.sources.unchanged_files import UnchangedFiles

SEPARATORS = (",", ";", "\t", "|")  # that tables of text usually have
_QUOTED = re.compile(r'"[^"]*"')
FIRST_LINES = 1000  # below the header, whose cells are compared with it


class CsvSource:
    """A CSV file. The header is checked when the source is opened, and the records while they are read."""

    kind = "csv"
    text = True
    rows: int | None = None

    def __init__(
        self,
        path: Path,
        *,
        separator: str,
        encoding: str,
        compression: str | None,
        max_expansion: int | None = None,
        disarmed: bool = False,
        comma_columns: frozenset[str] = frozenset(),
        header_line: int = 1,
    ) -> None:
        self._path = path
        self._separator = separator
        self._encoding = encoding
        self._compression = compression
        self._max_expansion = max_expansion
        self._disarmed = disarmed
        self._comma_columns = comma_columns
        self._header_line = header_line
        self._where = f"the file {str(path)!r}"
        self._unchanged = UnchangedFiles.of(path)
        self.names = self._read_header()
        self.types = dict.fromkeys(self.names, pa.string())

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        batches = normalize_batches(self._unchanged.during(self._read(columns)), columns, self.types, self._where)
        if self._disarmed:
            batches = map(rearmed, batches)
        return map(self._with_points, batches) if self._comma_columns else batches

    def _with_points(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return read_with_points(batch, self._comma_columns)

    def warn_of_another_separator(self) -> None:
        """Warn if the table has one column by its separator, and more by one that tables usually have."""
        if len(self.names) > 1:
            return
        with self._lines() as lines:
            # What stands between quotes is one cell by any separator.
            first = [_QUOTED.sub("", line) for line in islice((line for line in lines if line.strip()), 2)]
        for separator in SEPARATORS:
            counts = {line.count(separator) for line in first}
            if separator != self._separator and len(counts) == 1 and counts != {0}:
                shown = "tab" if separator == "\t" else separator
                warnings.warn(
                    f"{self._where} has one column by the separator {self._separator!r}, and {counts.pop() + 1} by "
                    f"{separator!r}. Add --separator '{shown}', or separator to [input], unless it is one column.",
                    ReadingWarning,
                    stacklevel=2,
                )

    def line_of(self, record: int) -> int:
        """Return the line on which a record begins; records are counted from 1. It reads the file up to there."""
        with self._lines() as lines:
            records = _records(lines, self._separator, self._header_line)
            next(records)
            filled = (each for each in records if each.fields or len(self.names) == 1)
            return next(islice(filled, record - 1, None)).first_line

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # The last column is always read: only there could a quote that is never closed go unnoticed.
        last = self.names[-1]
        wanted = list(dict.fromkeys([*columns, last]))
        final_cell = None
        try:
            with (
                self._open() as stream,
                closing(ahead(enumerate(csv_blocks.blocks_of_text(stream, self._separator)))) as blocks,
                closing(in_threads_ahead(partial(self._parsed, wanted), blocks)) as parsed,
            ):
                for batch in chain.from_iterable(parsed):
                    final_cell = batch.column(last)[-1]
                    yield batch
        except pa.ArrowException:
            raise self._fault() or self._unreadable() from None
        # The text ends with a line end, so an open quote has made that line end part of the last cell.
        if final_cell is not None and (final_cell.as_py() or "").endswith(("\n", "\r")):
            fault = self._fault()
            if fault is not None:
                raise fault

    def _open(self) -> io.BufferedReader:
        """Open the text from its header on."""
        stream = open_text(self._path, self._encoding, self._compression, self._max_expansion)
        skip_lines(stream, self._header_line - 1)
        return stream

    def _lines(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(self._open(), encoding="utf-8", newline="")

    def _parsed(self, wanted: list[str], numbered: tuple[int, pa.Buffer]) -> list[pa.RecordBatch]:
        number, block = numbered
        return csv_blocks.parsed_block(
            block,
            self.names,
            arrow_csv.ParseOptions(
                delimiter=self._separator,
                newlines_in_values=True,
                # With a single column, an empty line is a record whose cell is null. With more, it is not a record.
                ignore_empty_lines=len(self.names) > 1,
            ),
            arrow_csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(wanted, TEXT),
                include_columns=wanted,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
            # The header has been read already. It is skipped as a record, whether it has one line or several.
            skipped=1 if number == 0 else 0,
        )

    def _read_header(self) -> tuple[str, ...]:
        with self._lines() as lines:
            records = _records(lines, self._separator, self._header_line)
            header = next(records, None)
            if header is None:
                raise InputError(self._without_header())
            if not header.closed:
                raise self._open_quote(header)
            if header.fields == 0:
                raise InputError(
                    f"line {self._header_line} of {self._where} is empty. Put the names of the columns there."
                )
            if not any(record.fields or header.fields == 1 for record in records):
                raise NoRecordsError(
                    f"{self._where} has a header and no records. Give a file with at least one record."
                )
        with self._lines() as lines:
            try:
                names = next(
                    csv.reader(islice(lines, header.last_line - self._header_line + 1), delimiter=self._separator)
                )
            except csv.Error:
                raise InputError(f"the header of {self._where} has a name that is too long. Shorten it.") from None
        return checked_names(names, self._where, partial(self._first_cells, header.last_line - self._header_line + 1))

    def _without_header(self) -> str:
        if self._header_line > 1:
            return f"{self._where} has no line {self._header_line}. Check header_row."
        return f"{self._where} is empty. Give a file with a header and at least one record."

    def _first_cells(self, header_lines: int) -> set[str]:
        """Return the cells of the first records below the header."""
        with self._lines() as lines:
            below = islice(lines, header_lines, header_lines + FIRST_LINES)
            try:
                return set(chain.from_iterable(csv.reader(below, delimiter=self._separator)))
            except csv.Error:
                raise InputError(f"{self._where} has a cell that is too long. Check for missing quotes.") from None

    def _fault(self) -> InputError | None:
        """Find the first bad record and describe it. This is slow, and only called when a record is bad."""
        expected = len(self.names)
        with self._lines() as lines:
            for record in _records(lines, self._separator, self._header_line):
                if not record.closed:
                    return self._open_quote(record)
                if record.fields not in (0, expected):
                    return self._ragged(record, expected)
        return None

    def _ragged(self, record: _Record, expected: int) -> InputError:
        lines = f"line {record.first_line}"
        advice = "Quote cells that hold the separator, and check that the separator is right"
        if expected == 1:
            advice = (
                f"If the lines above it are a title, add --header-row {record.first_line}, or header_row = "
                f"{record.first_line} to [input]; else check that the separator is right"
            )
        if record.last_line > record.first_line:
            lines = f"lines {record.first_line} to {record.last_line}"
            advice += "; a quote may be opened in it and not closed where it should be"
        return InputError(
            f"the record at {lines} of {self._where} has {record.fields} fields, but the header has {expected}. "
            f"{advice}."
        )

    def _open_quote(self, record: _Record) -> InputError:
        return InputError(
            f"the record at line {record.first_line} of {self._where} opens a quote that is never closed. Close it, or "
            "double the quote if it is part of the cell."
        )

    def _unreadable(self) -> InputError:
        return InputError(
            f"{self._where} cannot be read as CSV. A record longer than {csv_blocks.RECORD_BYTES >> 20} MiB may be the "
            "cause: check for missing quotes."
        )


class _Record(NamedTuple):
    """The lines of a record in the file, from 1, and its number of fields; an empty line has none."""

    first_line: int
    last_line: int
    fields: int
    closed: bool


def _records(lines: Iterable[str], separator: str, first_line: int) -> Iterator[_Record]:
    """Yield the records of a CSV text, and count its physical lines from ``first_line``.

    A quote opens a quoted cell only as its first character, as in the fast reader. Cells are not kept, so a quote that
    stays open to the end of a large file takes no memory.
    """
    number, first, fields, quoted = first_line, first_line, 0, False
    for number, line in enumerate(lines, start=first_line):
        body = line.rstrip("\r\n")
        if not quoted:
            first, fields = number, 1 if body else 0
            if '"' not in body:
                yield _Record(number, number, body.count(separator) + fields, closed=True)
                continue
        position = 0
        while True:
            if not quoted and body.startswith('"', position):
                quoted, position = True, position + 1
            if quoted:
                position = _after_closing_quote(body, position)
                if position < 0:
                    break
                quoted = False
            position = body.find(separator, position) + 1
            if position == 0:
                break
            fields += 1
        if not quoted:
            yield _Record(first, number, fields, closed=True)
    if quoted:
        yield _Record(first, number, fields, closed=False)


def _after_closing_quote(body: str, position: int) -> int:
    """Return the position after the quote that closes a cell, or -1 if the cell continues on the next line."""
    while True:
        quote = body.find('"', position)
        if quote < 0:
            return -1
        if not body.startswith('"', quote + 1):
            return quote + 1
        position = quote + 2
