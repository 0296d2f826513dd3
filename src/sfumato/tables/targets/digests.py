"""The digests by which a certificate identifies a table: the SHA-256 of a file, or of the values in a database."""

from __future__ import annotations

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.files.regular_file import open_regular
from sfumato.tables.sources.source import Source

DIGESTED_AT_ONCE = 1 << 20  # bytes


def file_digest(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FileDigests:
    """The digests of finished files, computed by a thread of their own while others read the files."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._ended = Event()
        self._digests: dict[Path, Future[str]] = {}

    def begin(self, path: Path) -> None:
        self._digests[path] = self._pool.submit(self._digest, path)

    def of(self, path: Path) -> str:
        return self._digests[path].result()

    def close(self) -> None:
        """End the thread, whether or not it has finished."""
        self._ended.set()
        self._pool.shutdown(cancel_futures=True)

    def _digest(self, path: Path) -> str:
        digest = hashlib.sha256()
        with open_regular(path) as file:
            while not self._ended.is_set() and (block := file.read(DIGESTED_AT_ONCE)):
                digest.update(block)
        return digest.hexdigest()


def table_digest(source: Source) -> tuple[int, str]:
    """Return the number of bytes of the values of a table, and the SHA-256 of the table.

    The digest covers names, types, and values in the order of the rows, but neither how they are stored nor the
    boundaries of batches. A row in another position makes another table, as a line in another position makes another
    file.
    """
    columns = [_DigestColumn(name, source.types[name]) for name in source.names]
    for batch in source.batches(source.names):
        for column, array in zip(columns, batch.columns, strict=True):
            column.add(array)
    whole = hashlib.sha256()
    for column in columns:
        whole.update(column.digest())
    return sum(column.bytes for column in columns), whole.hexdigest()


class _DigestColumn:
    """The values of one column as three streams, none of which depends on the boundaries of batches."""

    def __init__(self, name: str, kind: pa.DataType) -> None:
        self._head = f"{len(name.encode())} {name} {kind}\n".encode()
        self._streams = [hashlib.sha256() for _ in range(3)]  # which are null, lengths, values
        self.bytes = 0

    def add(self, array: pa.Array) -> None:
        self._update(0, array.is_null().cast(pa.uint8()))
        if types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if types.is_string(array.type) or types.is_binary(array.type):
            text = array.cast(pa.binary()).fill_null(b"")
            self._update(1, pc.binary_length(text).cast(pa.int64()))
            self._update_text(text)
        elif types.is_boolean(array.type):
            self._update(2, array.fill_null(False).cast(pa.uint8()))
        elif types.is_primitive(array.type) or types.is_decimal(array.type) or types.is_fixed_size_binary(array.type):
            self._update_fixed(array)
        else:
            texts = [str(value).encode() for value in array.to_pylist()]
            self._update(1, pa.array(map(len, texts), pa.int64()))
            self._update_bytes(2, b"".join(texts))

    def digest(self) -> bytes:
        return hashlib.sha256(self._head + b"".join(stream.digest() for stream in self._streams)).digest()

    def _update(self, stream: int, numbers: pa.Array) -> None:
        self._update_bytes(stream, np.ascontiguousarray(numbers.to_numpy(zero_copy_only=False)).tobytes())

    def _update_text(self, text: pa.Array) -> None:
        if len(text):
            text = pa.concat_arrays([text])  # without an offset
            offsets = np.frombuffer(text.buffers()[1], np.int32, len(text) + 1, text.offset * 4)
            values = text.buffers()[2]
            if values is not None:
                self._update_bytes(2, memoryview(values)[offsets[0] : offsets[-1]])

    def _update_fixed(self, array: pa.Array) -> None:
        width = array.type.bit_width // 8
        size, start = len(array), array.offset
        values = np.frombuffer(array.buffers()[1], np.uint8, size * width, start * width).reshape(size, width)
        if array.null_count:
            # The bytes beneath a null are not part of the table.
            values = np.where(array.is_null().to_numpy(zero_copy_only=False)[:, None], np.uint8(0), values)
        self._update_bytes(2, np.ascontiguousarray(values).tobytes())

    def _update_bytes(self, stream: int, content: bytes | memoryview) -> None:
        self._streams[stream].update(content)
        self.bytes += len(content) if stream == 2 else 0
