"""Read Parquet one row group at a time, with text as the dictionary codes that the file stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet, types

from sfumato.errors import InputError
from sfumato.tables.sources.source_batches import BATCH_ROWS, checked_names, normalize_batches, normalized_types
from sfumato.tables.sources.unchanged_files import UnchangedFiles


class ParquetSource:
    """A Parquet file."""

    kind = "parquet"
    text = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._where = f"the file {str(path)!r}"
        self._unchanged = UnchangedFiles.of(path)
        with self._reading(self._where), parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            rows = file.metadata.num_rows
        self.names = checked_names(schema.names, self._where)
        self.types = normalized_types(schema)
        self.rows: int | None = rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return normalize_batches(self.stored(columns), columns, self.types, self._where)

    def stored(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the columns as the file stores them."""
        return self._unchanged.during(self._read(list(columns)))

    def _read(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        text = [name for name in columns if types.is_string(self.types[name])]
        with (
            self._reading(self._where),
            parquet.ParquetFile(self._path, read_dictionary=text, page_checksum_verification=True) as file,
        ):
            for group in range(file.num_row_groups):
                with self._reading(f"row group {group + 1:,} of {file.num_row_groups:,} of {self._where}"):
                    yield from file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns, use_threads=True)

    @contextmanager
    def _reading(self, where: str) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError):
            raise InputError(
                f"{where} cannot be read as Parquet: it is damaged, is not what its name says, or uses a feature that "
                "is not supported. Write the file again."
            ) from None
