"""Find the encoding and the separator of a text file from its bytes."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sfumato.tables.sources.csv_source import SEPARATORS
from sfumato.tables.sources.source import kind_of_file
from sfumato.tables.sources.text_stream import is_text_in, open_bytes

SINGLE_BYTE = ("cp1252", "latin-1")
BLOCK = 1 << 20
SAMPLED_RECORDS = 200  # records whose fields are counted
NEARLY_ALL = 0.6  # of these records, so that a few lines may be bad


@dataclass(frozen=True)
class TextFormat:
    """The encoding and separator of a text file; None for the default."""

    encoding: str | None
    separator: str | None


def find_text_format(
    path: Path,
    encoding: str | None,
    separator: str | None,
    header_row: int | None = None,
    *,
    most_bytes: int | None = None,
) -> TextFormat:
    """Find the encoding and the separator of a file, unless they are given.

    If the file cannot be read to its end, the reader will report why. With ``most_bytes``, the encoding is that of so
    many bytes of the text; what follows may be in another.
    """
    suffix, compression = kind_of_file(path)
    try:
        known_encoding = encoding or _encoding(path, compression, most_bytes)
        if separator is None:
            separator = _separator(_beginning(path, compression, known_encoding, (header_row or 1) - 1))
    except (OSError, UnicodeError, LookupError):
        return TextFormat(encoding, separator)
    default = "\t" if suffix == ".tsv" else ","
    return TextFormat(
        None if known_encoding == "utf-8" else known_encoding, None if separator == default else separator
    )


def _encoding(path: Path, compression: str | None, most_bytes: int | None) -> str:
    with open_bytes(path, compression) as content:
        start = content.read(BLOCK)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start:  # no byte order mark, but every second byte of plain letters is zero
        return "utf-16-le" if start[1::2].count(0) > start[::2].count(0) else "utf-16-be"
    candidates = ("utf-8", *SINGLE_BYTE)
    return next((name for name in candidates if is_text_in(path, name, compression, most_bytes=most_bytes)), "utf-8")


def _beginning(path: Path, compression: str | None, encoding: str, skipped: int) -> str:
    """Return the first lines of the file, without those that are ``skipped`` or cut off."""
    with open_bytes(path, compression) as content:
        block = content.read(BLOCK)
    text = codecs.getincrementaldecoder(encoding)().decode(block).removeprefix("\ufeff")
    text = text if len(block) < BLOCK else text[: text.rfind("\n") + 1]
    return "".join(text.splitlines(keepends=True)[skipped:])


def _separator(text: str) -> str | None:
    """Return the separator that gives every record the same number of fields, and the most fields.

    If a line is bad, none does. It is then the separator that gives nearly all records the same number, so that the
    reader finds that line.
    """
    widths = {separator: _widths(text, separator) for separator in SEPARATORS}
    equal = {separator: counts[0] for separator, counts in widths.items() if len(set(counts)) == 1}
    nearly = {separator: _usual(counts) for separator, counts in widths.items()}
    for by_separator in (equal, nearly):
        best = max(by_separator, key=lambda separator: by_separator[separator], default=None)
        if best is not None and by_separator[best] > 1:
            return best
    return None


def _usual(widths: Sequence[int]) -> int:
    """Return the number of fields that nearly all records have, or 0."""
    usual = max(widths, key=widths.count, default=0)
    return usual if widths.count(usual) >= NEARLY_ALL * len(widths) else 0


def _widths(text: str, separator: str) -> list[int]:
    """Return the number of fields of each of the first records; none if the text has no records by this separator."""
    try:
        records = list(islice(csv.reader(io.StringIO(text, newline=""), delimiter=separator), SAMPLED_RECORDS))
    except csv.Error:
        return []
    # The last record may be cut off within a quote.
    return [len(record) for record in (records[:-1] if len(records) > 2 else records) if record]
