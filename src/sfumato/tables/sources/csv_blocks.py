"""Parse CSV text in blocks of whole records, each in a thread of our own.

Arrow's streaming reader is not used: one of its threads may hold the file that it reads, or bytes of it, after the
reader was read to its end and closed. If these are Python objects and the interpreter ends meanwhile, the process
aborts. A block is memory of Arrow, and every thread has ended when the iterator over the blocks is closed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from sfumato.kernels.decorator import kernel

BLOCK_BYTES = 1 << 21  # several are in memory at once, with what is parsed from them
RECORD_BYTES = 1 << 23  # of the longest record, approximately
_QUOTE, _LINE_FEED, _RETURN = ord('"'), ord("\n"), ord("\r")


def blocks_of_text(stream: io.BufferedReader, separator: str) -> Iterator[pa.Buffer]:
    """Yield a CSV text in blocks that end where a record ends. A record that is longer than several is refused."""
    return _blocks(stream, lambda text: int(end_of_last_record(text, ord(separator))))


def blocks_of_lines(stream: io.BufferedReader) -> Iterator[pa.Buffer]:
    """Yield a text in blocks that end where a line ends, whatever is in it. A very long line is refused."""
    return _blocks(stream, lambda text: int(end_of_last_line(text, np.int64(0), len(text))))


def _blocks(stream: io.BufferedReader, whole: Callable[[NDArray[np.uint8]], int]) -> Iterator[pa.Buffer]:
    """Yield a text in blocks. whole: how many bytes at the beginning of a text are whole records."""
    begun = np.empty(0, np.uint8)
    ended = False
    while not ended:
        block = pa.allocate_buffer(len(begun) + BLOCK_BYTES)
        text = np.frombuffer(block, np.uint8)
        text[: len(begun)] = begun
        filled = len(begun) + stream.readinto(text[len(begun) :].data)
        ended = filled < len(text)
        end = filled if ended else whole(text)
        if not end and filled >= RECORD_BYTES:
            raise pa.ArrowInvalid("a record is too long")
        begun = text[end:filled].copy()
        if end:
            yield block.slice(0, end)


def blocks_of_records(records: Iterable[bytes]) -> Iterator[pa.Buffer]:
    """Yield the CSV text of single records in blocks."""
    text = bytearray()
    for record in records:
        text += record
        if len(text) >= BLOCK_BYTES:
            yield _arrow_memory(text)
            text.clear()
    if text:
        yield _arrow_memory(text)


def parsed_block(
    block: pa.Buffer,
    names: Sequence[str],
    parse_options: arrow_csv.ParseOptions,
    convert_options: arrow_csv.ConvertOptions,
    skipped: int = 0,
) -> list[pa.RecordBatch]:
    """Return the records of a block with the columns ``names``, without the first ``skipped``."""
    table = arrow_csv.read_csv(
        pa.BufferReader(block),
        read_options=arrow_csv.ReadOptions(
            column_names=names, block_size=block.size, skip_rows_after_names=skipped, use_threads=False
        ),
        parse_options=parse_options,
        convert_options=convert_options,
    )
    return table.to_batches()  # type: ignore[no-any-return]


def _arrow_memory(text: bytearray) -> pa.Buffer:
    copy = pa.BufferOutputStream()
    copy.write(text)
    return copy.getvalue()


@kernel
def end_of_last_record(text, separator):
    """Return how many bytes of ``text`` are whole records. text: uint8[n], begins with a record.

    As in Arrow's parser, a quote opens a cell only as its first character, and a doubled quote does not close it.
    """
    quotes = 0
    for at in range(len(text)):
        quotes += text[at] == _QUOTE
    if quotes == 0:  # as in most blocks of most files; counting takes a tenth of the time of the search below
        return end_of_last_line(text, np.int64(0), len(text))
    end, outside, quoted, at = 0, 0, False, 0
    while at < len(text):
        if text[at] != _QUOTE:
            at += 1
            continue
        if not quoted:
            quoted = at == 0 or text[at - 1] == separator or text[at - 1] == _LINE_FEED or text[at - 1] == _RETURN
            if quoted:
                end = max(end, end_of_last_line(text, outside, at))
        elif at + 1 < len(text) and text[at + 1] == _QUOTE:
            at += 1
        else:
            quoted, outside = False, at + 1
        at += 1
    return end if quoted else max(end, end_of_last_line(text, outside, len(text)))


@kernel
def end_of_last_line(text, start, stop):
    """Return the place after the last line end in text[start:stop], or 0. text: uint8[n]."""
    for at in range(stop - 1, start - 1, -1):
        # A carriage return that is the last byte may be half of a line end.
        if text[at] == _LINE_FEED or (text[at] == _RETURN and at + 1 < len(text)):
            return at + 1
    return 0
