"""Write a released table as CSV: in the encoding, with the separator and with the decimal mark that the policy names.

Text is written unchanged, even if a spreadsheet would treat it as a formula, unless the policy wants formulas disarmed.
What the encoding cannot hold is refused by the name of its column.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyarrow import types

from sfumato.errors import OutputError
from sfumato.kernels.threads import in_threads_ahead, slices
from sfumato.tables.decimal_commas import has_places, numbers_with_commas, with_exchanged_marks
from sfumato.tables.sources.in_memory_source import nan_as_null
from sfumato.tables.targets.file_writers import (
    Batches,
    CsvForm,
    dictionaries,
    plain_field,
    refuse_durations,
    row_groups,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# Numbers and dates are written without quotes and may hold these, so none of them can separate cells without quotes.
UNQUOTED = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-.: ")
AT_ONCE = 1 << 12  # values that are encoded together
ROWS_AT_ONCE = 1 << 16  # that a thread writes
# Encodings of which a machine would choose the order of the bytes. It is fixed, so that a release has the same bytes
# everywhere, and a mark at the beginning names it.
_MARKED = {"utf-16": ("utf-16-le", codecs.BOM_UTF16_LE), "utf-32": ("utf-32-le", codecs.BOM_UTF32_LE)}


def write_csv(schema: pa.Schema, batches: Batches, path: Path, form: CsvForm) -> None:
    """Write the rows. ``batches`` is called several times."""
    text, formulas = form.text, form.formulas
    check_types_of_csv(schema)
    if formulas is not None:
        formulas.check_names(schema.names)
    _refuse_nul(batches)
    _refuse_foreign_characters(schema.names, batches, text.encoding)
    commas = text.decimal == ","
    stored = pa.schema([plain_field(field) for field in schema])
    if text.separator in UNQUOTED:
        stored = pa.schema([field.with_type(pa.string()) for field in stored])
    elif commas:
        stored = pa.schema([field.with_type(pa.string()) if has_places(field.type) else field for field in stored])
    needs_quotes = text.separator in UNQUOTED or _needs_quotes(batches, text.separator)
    options = pa.csv.WriteOptions(
        delimiter=text.separator, quoting_style="needed" if needs_quotes else "none", include_header=False
    )

    def parts() -> Iterator[pa.Table]:
        for group in row_groups(schema, batches):
            labelled = with_exchanged_marks(group, form.labels) if commas else group
            passed = labelled if formulas is None else formulas.passed(labelled)
            yield from (passed.slice(begin, end - begin) for begin, end in slices(passed.num_rows, ROWS_AT_ONCE))

    def text_of(part: pa.Table) -> pa.Buffer:
        known = without_nan(part)
        buffer = pa.BufferOutputStream()
        pa.csv.write_csv((numbers_with_commas(known) if commas else known).cast(stored), buffer, options)
        return buffer.getvalue()

    with _utf8_sink(path, form.compression, text.encoding) as sink:
        header = io.StringIO()
        csv.writer(header, delimiter=text.separator, lineterminator="\n").writerow(schema.names)
        sink.write(header.getvalue().encode())
        with contextlib.closing(in_threads_ahead(text_of, parts())) as texts:
            for part in texts:
                sink.write(part)


def check_types_of_csv(schema: pa.Schema) -> None:
    """Refuse columns of types that CSV cannot hold, whatever their values are."""
    refuse_durations(schema, "CSV")
    for field in schema:
        kind = plain_field(field).type
        if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
            raise OutputError(
                f"column {field.name!r} holds bytes, which CSV cannot hold. Write Parquet or Arrow IPC, or convert the "
                "column to text."
            )


def without_nan(table: pa.Table) -> pa.Table:
    """Replace NaN by null; as text, NaN would read back as a value."""
    for index, column in enumerate(table.columns):
        if types.is_floating(column.type):
            table = table.set_column(index, table.column_names[index], nan_as_null(column))
    return table


@contextlib.contextmanager
def _utf8_sink(path: Path, compression: str | None, encoding: str) -> Iterator[pa.NativeFile]:
    """Open a file for text that is written to it in UTF-8. The file has it in its encoding."""
    with pa.output_stream(str(path), compression=compression) as file:
        if codecs.lookup(encoding).name == "utf-8":
            yield file
        else:
            with pa.PythonFile(_Transcoder(file, encoding), mode="w") as sink:
                yield sink


class _Transcoder(io.RawIOBase):
    """Takes UTF-8, and writes the same text in another encoding."""

    def __init__(self, file: pa.NativeFile, encoding: str) -> None:
        super().__init__()
        name, mark = _MARKED.get(codecs.lookup(encoding).name, (encoding, b""))
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._encoder = codecs.getincrementalencoder(name)()
        file.write(mark)

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        content = bytes(data)
        self._file.write(self._encoder.encode(self._decoder.decode(content)))
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._file.write(self._encoder.encode(self._decoder.decode(b"", final=True), final=True))
        super().close()


def _refuse_foreign_characters(names: Sequence[str], batches: Batches, encoding: str) -> None:
    """Refuse characters that do not read back from the encoding. Two of them may share their bytes in it."""
    if codecs.lookup(encoding).name.startswith("utf"):
        return  # these hold every character
    advice = (
        "Write the release in utf-8-sig, which spreadsheets recognise, with --release-encoding or encoding in "
        "[release], or change these characters before"
    )
    for name in names:
        if not _reads_back(name, encoding):
            raise OutputError(
                f"the name of the column {name!r} has a character that the encoding {encoding} cannot hold. {advice}."
            )
    for name, values in dictionaries(batches):
        for first in range(0, len(values), AT_ONCE):
            if not _reads_back("\n".join(values.slice(first, AT_ONCE).drop_null().to_pylist()), encoding):
                raise OutputError(
                    f"column {name!r} holds characters that the encoding {encoding} cannot hold. {advice}."
                )


def _reads_back(text: str, encoding: str) -> bool:
    try:
        return text.encode(encoding).decode(encoding) == text
    except UnicodeError:
        return False


def _refuse_nul(batches: Batches) -> None:
    for name, values in dictionaries(batches):
        if pc.any(pc.match_substring(values, "\0")).as_py():
            raise OutputError(
                f"column {name!r} holds a NUL character, which CSV cannot hold. Write Parquet or Arrow IPC, or remove "
                "it."
            )


def _needs_quotes(batches: Batches, separator: str) -> bool:
    """Return whether any text could be read as more than one cell, or as null. Arrow quotes all text or none."""
    special = f'["\\r\\n{re.escape(separator)}]|^$'
    return any(pc.any(pc.match_substring_regex(values, special)).as_py() for _, values in dictionaries(batches))
