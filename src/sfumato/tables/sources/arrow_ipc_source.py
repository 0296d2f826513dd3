"""Read Arrow IPC, in the file format (also known as Feather) and the stream format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.tables.sources.source_batches import checked_names, normalize_batches, normalized_types
from sfumato.tables.sources.unchanged_files import UnchangedFiles

_FILE_FORMAT = b"ARROW1"


class IpcSource:
    """An Arrow IPC file. Every batch states its own number of rows, so the total is not known in advance."""

    kind = "ipc"
    text = False
    rows: int | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._where = f"the file {str(path)!r}"
        self._unchanged = UnchangedFiles.of(path)
        with self._reading(), pa.OSFile(str(path)) as file:
            self._stored_as_file = file.read(len(_FILE_FORMAT)) == _FILE_FORMAT
            file.seek(0)
            with pa.ipc.open_file(file) if self._stored_as_file else pa.ipc.open_stream(file) as reader:
                schema = reader.schema
        self.names = checked_names(schema.names, self._where)
        self.types = normalized_types(schema)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return normalize_batches(self._unchanged.during(self._read(columns)), columns, self.types, self._where)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        options = pa.ipc.IpcReadOptions(included_fields=[self.names.index(name) for name in columns])
        with self._reading(), pa.OSFile(str(self._path)) as file:
            for batch in self._stored_batches(file, options):
                # Offsets and codes come from the file unchecked; wrong ones would read from anywhere in memory.
                batch.validate(full=True)
                yield batch

    def _stored_batches(self, file: pa.NativeFile, options: pa.ipc.IpcReadOptions) -> Iterator[pa.RecordBatch]:
        if self._stored_as_file:
            with pa.ipc.open_file(file, options=options) as reader:
                for position in range(reader.num_record_batches):
                    yield reader.get_batch(position)
        else:
            with pa.ipc.open_stream(file, options=options) as reader:
                yield from reader

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError):
            raise InputError(
                f"{self._where} cannot be read as Arrow IPC: it is damaged, or is not what its name says. Write the "
                "file again; Feather must be version 2."
            ) from None
