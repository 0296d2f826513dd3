"""Find the encoding and the separator of a text file from its bytes."""

from __future__ import annotations

import codecs
import csv
import io
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sfumato.tables.sources.source import kind_of_file
from sfumato.tables.sources.text_stream import open_bytes

SEPARATORS = (",", ";", "\t", "|")
SINGLE_BYTE = ("cp1252", "latin-1")
BLOCK = 1 << 20
SAMPLED_RECORDS = 200  # records that must all have as many fields as the header


@dataclass(frozen=True)
class TextFormat:
    """The encoding and separator of a text file; None for the default."""

    encoding: str | None
    separator: str | None


def find_text_format(path: Path, encoding: str | None, separator: str | None) -> TextFormat:
    """Find the encoding and the separator of a file, unless they are given.

    If the file cannot be read to its end, the reader will report why.
    """
    suffix, compression = kind_of_file(path)
    try:
        known_encoding = encoding or _encoding(path, compression)
        if separator is None:
            separator = _separator(_beginning(path, compression, known_encoding))
    except (OSError, UnicodeError, LookupError):
        return TextFormat(encoding, separator)
    default = "\t" if suffix == ".tsv" else ","
    return TextFormat(
        None if known_encoding == "utf-8" else known_encoding, None if separator == default else separator
    )


def _encoding(path: Path, compression: str | None) -> str:
    with open_bytes(path, compression) as content:
        start = content.read(BLOCK)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start:  # no byte order mark, but every second byte of plain letters is zero
        return "utf-16-le" if start[1::2].count(0) > start[::2].count(0) else "utf-16-be"
    return next((name for name in ("utf-8", *SINGLE_BYTE) if _is_text(path, compression, name)), "utf-8")


def _is_text(path: Path, compression: str | None, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    with open_bytes(path, compression) as content:
        try:
            while block := content.read(BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _beginning(path: Path, compression: str | None, encoding: str) -> str:
    """Return the first lines of the file, without a line that is cut off."""
    with open_bytes(path, compression) as content:
        block = content.read(BLOCK)
    text = codecs.getincrementaldecoder(encoding)().decode(block).removeprefix("\ufeff")
    return text if len(block) < BLOCK else text[: text.rfind("\n") + 1]


def _separator(text: str) -> str | None:
    """Return the separator that gives every record the same number of fields as the header, and the most fields."""
    widths = {separator: _width(text, separator) for separator in SEPARATORS}
    best = max(SEPARATORS, key=lambda separator: widths[separator])
    return best if widths[best] > 1 else None


def _width(text: str, separator: str) -> int:
    """Return the number of fields of the header, or 0 if a record has more or fewer."""
    try:
        records = list(islice(csv.reader(io.StringIO(text, newline=""), delimiter=separator), SAMPLED_RECORDS))
    except csv.Error:
        return 0
    # The last record may be cut off within a quote.
    widths = {len(record) for record in (records[:-1] if len(records) > 2 else records) if record}
    return widths.pop() if len(widths) == 1 else 0
