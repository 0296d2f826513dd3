"""What every source guarantees for its batches: valid names, supported types, text as dictionary codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import InputError, UsageError
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy

BATCH_ROWS = 1 << 18
FEW_ROWS = 1 << 15  # of a batch, whose columns take less time than threads take to begin
TEXT = pa.dictionary(pa.int32(), pa.string())
_WORD = re.compile(r"[^\W\d][^@]{0,59}", re.DOTALL)  # begins with a letter


class NoRecordsError(InputError):
    """The table has a header, but no records."""


def checked_names(
    names: Sequence[str], where: str, cells: Callable[[], Collection[str]] | None = None
) -> tuple[str, ...]:
    """Return the names of the columns, or refuse missing and repeated names.

    Errors name columns by position: in a file without a header, the names are the cells of a record. cells: returns
    those of the first records; a repeated name is shown if they prove that the names are no record.
    """
    if not names:
        raise InputError(f"{where} has no columns. Give a table with at least one.")
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(
                f"column {position} of {where} has no name. Give every column a name in the header; leave out an index "
                "that was written as a column without a name."
            )
        if name in first:
            shown = f" {name!r}" if cells is not None and is_header(names, cells()) else ""
            raise InputError(
                f"columns {first[name]} and {position} of {where} have the same name{shown}. Rename one of them, or "
                "add the header if it is missing."
            )
        first[name] = position
    return tuple(names)


def is_header(names: Sequence[str], cells: Collection[str]) -> bool:
    """Return whether names cannot be a record: all are words, as no record of persons is, and no cell is equal."""
    return all(_WORD.fullmatch(name) and name not in cells for name in names)


def normalized_types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the type of each column's values in the batches; for text, the type inside the dictionary."""
    return {field.name: _value_type(field.type) for field in schema}


def normalize_batches(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], available: Mapping[str, pa.DataType], where: str
) -> Iterator[pa.RecordBatch]:
    """Yield ``columns`` of raw batches in the form that ``Source`` guarantees. The request is checked at once."""
    if not columns:
        raise ValueError("request at least one column")
    for name in columns:
        if name not in available:
            raise UsageError.unknown_column(name, "the request", available)
        if types.is_nested(available[name]) or isinstance(available[name], pa.BaseExtensionType):
            raise InputError(
                f"column {name!r} of {where} has the type {available[name]}, which is not a single value for each "
                "record. Drop the column, or convert it to numbers, dates or text."
            )
    schema = pa.schema(
        [pa.field(name, TEXT if types.is_string(available[name]) else available[name]) for name in columns]
    )
    return _normalized(batches, schema, where)


def _normalized(batches: Iterable[pa.RecordBatch], schema: pa.Schema, where: str) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = batch.slice(start, BATCH_ROWS)
            column = partial(_column, part)
            arrays = in_threads(column, list(schema)) if part.num_rows > FEW_ROWS else list(map(column, schema))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    if not rows:
        raise NoRecordsError(f"{where} has no records. Give a table with at least one.")


def _value_type(stored: pa.DataType) -> pa.DataType:
    if types.is_dictionary(stored):
        return _value_type(stored.value_type)
    if isinstance(stored, pa.BaseExtensionType):
        # The text of a JSON column and the bytes of a UUID are values in themselves; the numbers inside other
        # extension types have a meaning only to the library that defines them.
        storage = _value_type(stored.storage_type)
        return storage if types.is_string(storage) or types.is_fixed_size_binary(storage) else stored
    return pa.string() if _is_text(stored) or types.is_null(stored) else stored


def _is_text(stored: pa.DataType) -> bool:
    return bool(types.is_string(stored) or types.is_large_string(stored) or types.is_string_view(stored))


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    array, wanted = batch.column(field.name), field.type
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if wanted != TEXT:
        return array.dictionary_decode() if types.is_dictionary(array.type) else array
    if types.is_null(array.type):
        return pa.nulls(len(array), TEXT)
    if types.is_dictionary(array.type):
        array = _values_in_use(array)
        if array.dictionary.null_count == 0 and len(array.dictionary.unique()) == len(array.dictionary):
            return array
        # Arrow allows null and equal values inside a dictionary, which would confuse callers that count codes.
        array = array.dictionary_decode()
    encoded = array.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(pa.string()))


def _values_in_use(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Reduce the dictionary of a column to the values that occur.

    Categories that no row has are not part of the table: they must neither widen a domain nor be released.
    """
    indices, dictionary = array.indices.cast(pa.int32()), array.dictionary
    occurs = np.zeros(len(dictionary) + 1, np.bool_)
    mark(to_numpy(indices, null=len(dictionary)), occurs)
    if not occurs[:-1].all():
        used = from_numpy(np.flatnonzero(occurs[:-1]).astype(np.int32))
        indices, dictionary = pc.index_in(indices, value_set=used), dictionary.take(used)
    return pa.DictionaryArray.from_arrays(indices, dictionary.cast(pa.string()))


@kernel
def mark(indices, occurs):
    """Set ``occurs`` at every index. indices: int32[n], not modified; occurs: bool[...]."""
    for row in range(len(indices)):
        occurs[np.uintp(indices[row])] = True
