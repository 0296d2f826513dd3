"""How a file of text is written: its encoding and its separator, found from its bytes."""

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
LOOKED_AT = 200  # records that must all have as many fields as the header


@dataclass(frozen=True)
class Reading:
    """What must be known to read a file of text, where it is not the default."""

    encoding: str | None
    separator: str | None


def find_reading(path: Path, encoding: str | None, separator: str | None) -> Reading:
    """The encoding and the separator of a file, those that are given left alone.

    A file that cannot be read to its end is left to the reader, which says why.
    """
    suffix, compression = kind_of_file(path)
    try:
        found = encoding or _encoding(path, compression)
        if separator is None:
            separator = _separator(_beginning(path, compression, found))
    except (OSError, UnicodeError, LookupError):
        return Reading(encoding, separator)
    usual = "\t" if suffix == ".tsv" else ","
    return Reading(None if found == "utf-8" else found, None if separator == usual else separator)


def _encoding(path: Path, compression: str | None) -> str:
    with open_bytes(path, compression) as content:
        start = content.read(BLOCK)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start:  # without a mark: every second byte of plain letters is zero
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
    """The first lines of the file, whole."""
    with open_bytes(path, compression) as content:
        block = content.read(BLOCK)
    text = codecs.getincrementaldecoder(encoding)().decode(block).removeprefix("\ufeff")
    return text if len(block) < BLOCK else text[: text.rfind("\n") + 1]


def _separator(text: str) -> str | None:
    """The one that gives every record as many fields as the header, and most of them."""
    widths = {separator: _width(text, separator) for separator in SEPARATORS}
    best = max(SEPARATORS, key=lambda separator: widths[separator])
    return best if widths[best] > 1 else None


def _width(text: str, separator: str) -> int:
    """The fields of the header; 0 where a record has more or fewer."""
    try:
        records = list(islice(csv.reader(io.StringIO(text, newline=""), delimiter=separator), LOOKED_AT))
    except csv.Error:
        return 0
    # The last may have been cut off within a quote.
    widths = {len(record) for record in (records[:-1] if len(records) > 2 else records) if record}
    return widths.pop() if len(widths) == 1 else 0
