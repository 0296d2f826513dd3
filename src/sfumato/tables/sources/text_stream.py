"""Read a text file in any encoding, compressed or not, as a stream of checked UTF-8."""

from __future__ import annotations

import codecs
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

READ_BYTES = 1 << 20
SAMPLE_BYTES = 1 << 18  # of text, from which the length of a line is estimated
LOOKED_AT = 1 << 26  # bytes of text that are decompressed for an estimate, at most
COMPRESSED = 6  # times as much text as a compressed file has bytes, at least, approximately
EXTEND_ASCII = ("utf-8", "cp1252", "iso8859-1", "ascii")  # encodings in which a byte of ASCII is that character
HARMLESS = 1 << 24  # bytes of text that any compressed file may hold


def open_text(
    path: Path, encoding: str, compression: str | None, max_expansion: int | None = None
) -> io.BufferedReader:
    """Open the text of a file as UTF-8, without a byte order mark and with a line end after the last line.

    Bytes that are not text in the file's encoding are refused when they are read. So is a compressed file, as soon as
    it has turned out to hold more than ``max_expansion`` times its own bytes.
    """
    most = _most_bytes(path, compression, max_expansion)
    return io.BufferedReader(_Utf8Stream(open_bytes(path, compression), encoding, f"the file {str(path)!r}", most))


def _most_bytes(path: Path, compression: str | None, max_expansion: int | None) -> int | None:
    """Return how many bytes may come out of a file; None for any number."""
    if compression is None or max_expansion is None:
        return None
    return max(max_expansion * path.stat().st_size, HARMLESS)


def is_text_in(
    path: Path,
    encoding: str,
    compression: str | None,
    max_expansion: int | None = None,
    *,
    without: bytes = b"",
    most_bytes: int | None = None,
) -> bool:
    """Return whether a file is text in an encoding, as far as ``max_expansion`` and ``most_bytes`` let it be read.

    without: bytes that the text may not hold.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    limits = [most for most in (_most_bytes(path, compression, max_expansion), most_bytes) if most is not None]
    left = min(limits, default=None)
    with open_bytes(path, compression) as content:
        try:
            while block := content.read(READ_BYTES):
                decoder.decode(block)
                if any(byte in block for byte in without):
                    return False
                if left is not None and (left := left - len(block)) < 0:
                    return True
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def skip_lines(stream: io.BufferedReader, count: int) -> None:
    """Read a stream to the end of its first ``count`` lines, whichever of the three line ends they have."""
    while count and (character := stream.read(1)):
        if character == b"\r" and stream.peek(1)[:1] == b"\n":
            stream.read(1)
        count -= character in b"\r\n"


def open_bytes(path: Path, compression: str | None) -> pa.NativeFile:
    """Open the bytes of a file, decompressed."""
    try:
        file = pa.OSFile(str(path))
    except OSError:
        raise InputError(f"the file {str(path)!r} can no longer be opened. Check that it still exists.") from None
    return file if compression is None else pa.CompressedInputStream(file, compression)


def beginning_of_text(path: Path, compression: str | None) -> tuple[bytes, int]:
    """Return the first bytes of a text file, decompressed, and an estimate of how many there are in all."""
    size = path.stat().st_size
    with open_bytes(path, compression) as content:
        try:
            text = content.read(SAMPLE_BYTES)
            if compression is None:
                return text, size
            # Text comes out in large pieces, so its beginning says little about a short file: that is read further.
            seen = len(text)
            while seen < LOOKED_AT and (block := content.read(READ_BYTES)):
                seen += len(block)
        except OSError:
            return b"", size  # the reader says what is wrong
    if seen < LOOKED_AT:
        return text, seen
    return text, max(seen, COMPRESSED * size, _size_in_trailer(path, compression))


def _size_in_trailer(path: Path, compression: str) -> int:
    """Return the bytes of text that the end of a gzip file states, modulo 4 GB; 0 for other files."""
    if compression != "gzip":
        return 0
    with path.open("rb") as file:
        file.seek(-4, io.SEEK_END)
        return int.from_bytes(file.read(4), "little")


class _Utf8Stream(io.RawIOBase):
    def __init__(self, content: pa.NativeFile, encoding: str, where: str, most: int | None = None) -> None:
        super().__init__()
        self._content = content
        self._encoding = encoding
        self._where = where
        self._most = most  # bytes that may come out of a compressed file
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._extends_ascii = codecs.lookup(encoding).name in EXTEND_ASCII
        self._ready = memoryview(b"")
        self._ended = False
        self._consumed = 0
        self._last_byte = b""
        self._line_feeds = 0
        self._carriage_returns = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        while not self._ready and not self._ended:
            self._ready = memoryview(self._next())
        target = memoryview(buffer)
        size = min(len(target), len(self._ready))
        target[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        self._content.close()
        super().close()

    def _next(self) -> bytes:
        try:
            block = self._content.read(READ_BYTES)
        except OSError:
            raise InputError(
                f"{self._where} cannot be read to its end: it is damaged, or not compressed as its name says. Write "
                "the file again."
            ) from None
        self._ended = not block
        try:
            encoded = block if self._is_ascii(block) else self._in_utf8(block)
            self._consumed += len(block)
            if self._most is not None and self._consumed > self._most:
                raise InputError(
                    f"{self._where} holds far more text than compressed tables do: more than {self._most >> 20:,} MiB. "
                    "If you trust the file, set --max-expansion, or max_expansion in [input], to a larger factor."
                )
        except UnicodeDecodeError as error:
            raise self._not_in_encoding(error, len(block)) from None
        except UnicodeError:
            raise InputError(f"{self._where} is not text in the encoding {self._encoding}. {_OTHER_ENCODING}") from None
        if b"\0" in encoded:
            self._count_lines(encoded[: encoded.index(b"\0")])
            raise InputError(
                f"{self._where} has a NUL character at line {self._line()}: it is not text in the encoding "
                f"{self._encoding}, or is damaged. If it was exported as UTF-16, add --encoding "
                "utf-16, or encoding = 'utf-16' to [input]."
            )
        self._count_lines(encoded)
        self._last_byte = encoded[-1:] or self._last_byte
        return encoded

    def _is_ascii(self, block: bytes) -> bool:
        """Return whether a block is the same in UTF-8, as most blocks of most files are."""
        return self._extends_ascii and block.isascii() and not self._ended and not self._decoder.getstate()[0]

    def _in_utf8(self, block: bytes) -> bytes:
        text = self._decoder.decode(block, final=self._ended)
        if not self._last_byte:
            text = text.removeprefix("\ufeff")
        encoded = text.encode("utf-8")
        if self._ended and (encoded or self._last_byte)[-1:] not in (b"", b"\n", b"\r"):
            encoded += b"\n"
        return encoded

    def _count_lines(self, text: bytes) -> None:
        # Several times as fast as bytes.count, which would take longer than all else here.
        characters = np.frombuffer(text, np.uint8)
        self._line_feeds += int(np.count_nonzero(characters == ord("\n")))
        if b"\r" in text:
            self._carriage_returns += int(np.count_nonzero(characters == ord("\r")))

    def _line(self) -> int:
        """Return the number of the current line, whichever of the three line ends the file has."""
        return 1 + max(self._line_feeds, self._carriage_returns)

    def _not_in_encoding(self, error: UnicodeDecodeError, block_size: int) -> InputError:
        # The decoder may have put bytes of the previous block in front of this one.
        position = self._consumed - (len(error.object) - block_size) + error.start
        if position == 0 and error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            advice = "It begins like UTF-16: add --encoding utf-16, or encoding = 'utf-16' to [input]."
        elif codecs.lookup(self._encoding).name == "utf-8":
            advice = (
                "It is probably cp1252, the encoding of Windows: add --encoding cp1252, or encoding = 'cp1252' to "
                "[input]."
            )
        else:
            advice = _OTHER_ENCODING
        self._count_lines(error.object[: error.start])
        return InputError(
            f"{self._where} is not text in the encoding {self._encoding}: byte {position:,}, near line {self._line()}, "
            f"does not fit. {advice}"
        )


_OTHER_ENCODING = (
    "Set --encoding, or encoding in [input], to the encoding of the file, such as 'utf-8', 'cp1252' or 'utf-16'."
)
