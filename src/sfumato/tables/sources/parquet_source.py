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

# Bytes of a file that are read at once for each column, not whole row groups.
BUFFER_BYTES = 1 << 20
BATCH_BYTES = 1 << 24  # of a batch, approximately: wide rows are read in smaller batches
TEXT_COPIES = 4  # of text that are made until its values are dictionary codes
CODE_BYTES, DICTIONARY_BYTES = 4, 1 << 21  # a column that takes more in a row group is stored as text, not as codes


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
            self._sizes = _column_sizes(file.metadata)
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
        with self._reading(self._where):
            coded = [name for name in text if self._has_few_values(name)]
            file = parquet.ParquetFile(
                self._path, read_dictionary=coded, page_checksum_verification=True, buffer_size=BUFFER_BYTES
            )
        with file:
            for group in range(file.num_row_groups):
                with self._reading(f"row group {group + 1:,} of {file.num_row_groups:,} of {self._where}"):
                    rows = self._rows_at_once(file.metadata.row_group(group).num_rows, group, columns, coded)
                    yield from file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=True)

    def _rows_at_once(self, rows: int, group: int, columns: list[str], coded: list[str]) -> int:
        """Return how many rows of a row group make a batch. Text that is not stored as codes is copied on the way."""
        sizes = {name: self._sizes[name][group][1] for name in columns}
        copied = sum(size for name, size in sizes.items() if types.is_string(self.types[name]) and name not in coded)
        size = sum(sizes.values()) + TEXT_COPIES * copied
        return int(min(max(BATCH_BYTES * rows // max(size, 1), 1), BATCH_ROWS))

    def _has_few_values(self, name: str) -> bool:
        """Return whether the file stores a text column as codes throughout.

        Otherwise the reader would collect the values of a whole row group before it gives the first batch.
        """
        return all(size <= CODE_BYTES * values + DICTIONARY_BYTES for values, size in self._sizes[name])

    @contextmanager
    def _reading(self, where: str) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError):
            raise InputError(
                f"{where} cannot be read as Parquet: it is damaged, is not what its name says, or uses a feature that "
                "is not supported. Write the file again."
            ) from None


def _column_sizes(metadata: parquet.FileMetaData) -> dict[str, list[tuple[int, int]]]:
    """Return, by column and row group, the number of values and their bytes before compression."""
    sizes: dict[str, list[tuple[int, int]]] = {}
    for group in range(metadata.num_row_groups):
        stored = metadata.row_group(group)
        for number in range(stored.num_columns):
            column = stored.column(number)
            sizes.setdefault(column.path_in_schema, []).append((column.num_values, column.total_uncompressed_size))
    return sizes
