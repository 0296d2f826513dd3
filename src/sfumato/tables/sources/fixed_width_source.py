"""Read text files whose columns have fixed widths, by a layout. Every cell is text without the spaces around it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError
from sfumato.kernels.threads import ahead, in_threads_ahead
from sfumato.tables.coding.arrow_arrays import from_texts
from sfumato.tables.sources import csv_blocks
from sfumato.tables.sources.fixed_width_layout import FixedColumn, FixedWidthLayout
from sfumato.tables.sources.source_batches import NoRecordsError, normalize_batches
from sfumato.tables.sources.text_stream import open_text, skip_lines
from sfumato.tables.sources.unchanged_files import UnchangedFiles

_LINE_FEED, _RETURN = ord("\n"), ord("\r")
_DIGITS = re.compile(r"(?P<sign>[+-]?)0*(?P<digits>\d+)", re.ASCII)


class _BadLineError(Exception):
    """A line does not fit the layout. Which one it is takes a search."""


class FixedWidthSource:
    """A text file in columns of fixed width. Lines are checked while they are read; an empty line is no record.

    skipped_lines: lines at the top that are no records. decimal: the mark that is put into numbers with decimals.
    nulls: texts that are null, by column, as they stand in the file.
    """

    kind = "fixed-width"
    text = True
    rows: int | None = None

    def __init__(
        self,
        path: Path,
        layout: FixedWidthLayout,
        *,
        encoding: str,
        compression: str | None,
        max_expansion: int | None = None,
        skipped_lines: int = 0,
        decimal: str = ".",
        nulls: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._path = path
        self._layout = layout
        self._encoding = encoding
        self._compression = compression
        self._max_expansion = max_expansion
        self._skipped_lines = skipped_lines
        self._decimal = decimal
        self._nulls = nulls or {}
        self._where = f"the file {str(path)!r}"
        self._unchanged = UnchangedFiles.of(path)
        self._columns = {column.name: column for column in layout.columns}
        self.names = tuple(self._columns)
        self.types = dict.fromkeys(self.names, pa.string())
        self.descriptions = {column.name: column.description for column in layout.columns if column.description}
        if next(self._numbered_lines(), None) is None:
            raise NoRecordsError(f"{self._where} has no records. Give a file with at least one.")

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return normalize_batches(self._unchanged.during(self._read(columns)), columns, self.types, self._where)

    def line_of(self, record: int) -> int:
        """Return the line of a record; records are counted from 1. It reads the file up to there."""
        return next(islice(self._numbered_lines(), record - 1, None))[0]

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        try:
            with (
                self._open() as stream,
                closing(ahead(csv_blocks.blocks_of_lines(stream))) as blocks,
                closing(in_threads_ahead(partial(self._parsed, columns), blocks)) as parsed,
            ):
                yield from parsed
        except (_BadLineError, pa.ArrowException):
            raise self._fault() from None

    def _open(self) -> io.BufferedReader:
        """Open the text from its first record on."""
        stream = open_text(self._path, self._encoding, self._compression, self._max_expansion)
        skip_lines(stream, self._skipped_lines)
        return stream

    def _parsed(self, columns: Sequence[str], block: pa.Buffer) -> pa.RecordBatch:
        lines = _lines_of(block)
        lengths = pc.utf8_length(lines)
        filled = pc.greater(lengths, 0)
        lines, lengths = lines.filter(filled), lengths.filter(filled)
        if len(lines):
            ends = pc.min_max(lengths)
            if ends["min"].as_py() < self._layout.needed:
                raise _BadLineError
            if ends["max"].as_py() > self._layout.length:
                beyond = pc.utf8_trim(pc.utf8_slice_codeunits(lines, self._layout.length), " ")
                if pc.any(pc.not_equal(beyond, "")).as_py():
                    raise _BadLineError
        arrays = [self._cells(self._columns[name], lines) for name in columns]
        return pa.RecordBatch.from_arrays(arrays, list(columns))

    def _cells(self, column: FixedColumn, lines: pa.Array) -> pa.DictionaryArray:
        cells = pc.utf8_trim(pc.utf8_slice_codeunits(lines, column.start, column.stop), " ")
        encoded = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells).dictionary_encode()
        if not column.is_number:
            return encoded
        nulls = frozenset(self._nulls.get(column.name, ()))
        texts = [
            None if text in nulls else self._number(text, column.decimals) for text in encoded.dictionary.to_pylist()
        ]
        return pa.DictionaryArray.from_arrays(encoded.indices, from_texts(texts))

    def _number(self, text: str, decimals: int) -> str:
        """Return a number without leading zeros and with its decimal mark; any other text, and a written mark, stay."""
        match = _DIGITS.fullmatch(text)
        if match is None:
            return text
        digits = match["digits"].rjust(decimals + 1, "0")
        whole, fraction = digits[: len(digits) - decimals], digits[len(digits) - decimals :]
        return match["sign"].replace("+", "") + whole + (self._decimal + fraction if decimals else "")

    def _numbered_lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that are records, with their numbers in the file."""
        with io.TextIOWrapper(self._open(), encoding="utf-8", newline="") as lines:
            for number, line in enumerate(lines, start=self._skipped_lines + 1):
                if content := line.rstrip("\r\n"):
                    yield number, content

    def _fault(self) -> InputError:
        """Find the first bad line and describe it. This is slow, and only called when a line is bad."""
        needed, length = self._layout.needed, self._layout.length
        for number, line in self._numbered_lines():
            if len(line) < needed:
                return InputError(
                    f"line {number:,} of {self._where} has {len(line):,} characters, but the layout has columns up to "
                    f"position {needed:,}. Check the layout, and the file for lines that were cut off."
                )
            if line[length:].strip(" "):
                return InputError(
                    f"line {number:,} of {self._where} has characters beyond position {length:,}, where the layout "
                    "ends. Check the layout; add a row without a name for positions that are not read."
                )
        return InputError(
            f"{self._where} cannot be read: a line is longer than {csv_blocks.RECORD_BYTES >> 20} MiB. Check that it "
            "is a text file with line ends."
        )


def _lines_of(block: pa.Buffer) -> pa.Array:
    """Return the lines of a block without their ends, whichever of the three line ends they have."""
    text = np.frombuffer(block, np.uint8)
    ends = (text == _LINE_FEED) | (text == _RETURN)
    ends[:-1] &= ~((text[:-1] == _RETURN) & (text[1:] == _LINE_FEED))  # the two are one end
    offsets = np.concatenate([[0], np.flatnonzero(ends) + 1]).astype(np.int32)
    lines = pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), block)
    return pc.utf8_rtrim(lines, "\r\n")
