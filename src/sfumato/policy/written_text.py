"""How the text of a CSV release is written: its separator, encoding and decimal mark, by the policy alone.

Nothing here depends on the machine: the same policy gives the same bytes everywhere.
"""

from __future__ import annotations

import codecs
import string
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from sfumato.policy.about_settings import LanguageCode
from sfumato.policy.error_text import wrong

DecimalMark = Literal[".", ","]

# Every encoding of text has these characters. One that changes them is an encoding of something else.
_PLAIN = string.ascii_letters + string.digits + string.punctuation + ' \\u0041\\x41 "a";"b"\r\n'


@dataclass(frozen=True)
class WrittenText:
    """How the text of a CSV release is written."""

    separator: str = ","
    encoding: str = "utf-8"
    decimal: DecimalMark = "."


class WritingFlags(TypedDict, total=False):
    """How a release is written. Everything that can make a release takes these flags."""

    release_separator: str | None
    """The character between the cells of a CSV release."""
    release_encoding: str | None
    """The encoding of a CSV release; "utf-8-sig" is UTF-8 with the mark by which spreadsheets know it."""
    release_decimal: DecimalMark | None
    """The decimal mark of numbers in a CSV release."""
    codebook: bool | None
    """Whether a page that explains every column and label is written beside the release."""
    language: LanguageCode | None
    """The language of pages about the release."""


WRITING_SETTINGS = {
    "release_separator": ("release", "separator"),
    "release_encoding": ("release", "encoding"),
    "release_decimal": ("release", "decimal"),
    "codebook": ("release", "codebook"),
    "language": ("about", "language"),
}


def written_encoding(value: Any) -> str:
    """Accept an encoding in which a table can be written and read back."""
    try:
        encoded = codecs.getincrementalencoder(value)().encode(_PLAIN, final=True)
        plain = codecs.getincrementaldecoder(value)().decode(encoded, final=True) == _PLAIN
        # A line end is a character like any other, and not written out as an escape.
        plain &= len("\n".encode(value)) == len("a".encode(value))
    except (LookupError, TypeError, ValueError):
        plain = False
    if not plain:
        raise wrong(
            'must be an encoding of text that Python knows, such as "utf-8", "utf-8-sig" (which spreadsheets '
            'recognise) or "cp1252"'
        )
    return str(value)
