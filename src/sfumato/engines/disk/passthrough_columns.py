"""Passthrough columns in packed records: every value is a number, in the order of the values.

Text, and any other type that is not numeric, is a code into the sorted dictionary of the column. A number is its
distance from the smallest one. Null is the last code. Both can be decoded into the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.dictionaries import sorted_codes
from sfumato.tables.coding.distinct_values import merged_numbers
from sfumato.tables.coding.passthrough import from_order_numbers, has_numbers, order_numbers
from sfumato.tables.coding.row_hash import NULL, ColumnHashes, Hashes, value_hashes
from sfumato.tables.coding.sorting import Field, bits_for
from sfumato.tables.coding.text_index import TextIndex
from sfumato.tables.external.packed_records import Rows

LARGEST = (1 << 64) - 1  # the last code
WAITING = 1 << 16  # values that wait before they are merged
FEW = 1 << 20  # distinct numbers that are collected even if nothing counts them
# Bytes that a merge takes for each value, beside the values; of values that are no numbers, beside their own bytes.
NUMBER_BYTES, VALUE_BYTES = 24, 100


@dataclass(frozen=True)
class PackedPassthrough:
    """A passthrough column in packed records.

    key: its field in the records. dictionary: the values of text, ascending. least: the smallest number. codes: the
    number of codes, including null, which is the last. known: the numbers that occur, less the smallest, if they are
    counted or few. records: those that have a value. index: finds the code of a text.
    """

    name: str
    key: str
    kind: pa.DataType
    has_null: bool
    dictionary: pa.Array | None
    least: int
    codes: int
    known: NDArray[np.uint64] | None = None
    records: int = 0
    index: TextIndex | None = None

    @property
    def stored(self) -> np.dtype[Any]:
        return np.min_scalar_type(self.codes - 1)

    def encode(self, column: pa.Array) -> NDArray[np.unsignedinteger]:
        """Return the codes of a batch of values."""
        null = self.codes - 1
        if self.dictionary is None:
            numbers = order_numbers(column) - np.uint64(self.least)
            if column.null_count:
                numbers[to_numpy(column.is_null())] = null
            return numbers.astype(self.stored)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        values = encoded.dictionary.cast(self.dictionary.type)
        if self.index is None:
            code_of_value = to_numpy(pc.index_in(values, value_set=self.dictionary), null)
        else:
            code_of_value = self.index.positions(values)
            if values.null_count:
                code_of_value[to_numpy(values.is_null())] = null
        table = np.append(code_of_value, null).astype(self.stored)
        codes: NDArray[np.unsignedinteger] = table[to_numpy(encoded.indices, len(encoded.dictionary))]
        return codes

    def decode(self, codes: NDArray[np.unsignedinteger]) -> pa.Array:
        """Return the values of codes."""
        missing = codes == self.codes - 1 if self.has_null else np.zeros(len(codes), np.bool_)
        if self.dictionary is not None:
            return pa.DictionaryArray.from_arrays(from_numpy(codes, missing), self.dictionary)
        return from_order_numbers(codes.astype(np.uint64) + np.uint64(self.least), missing, self.kind)

    def field(self, rows: Rows) -> Field:
        """Return the column as a part of a sort key."""
        return Field(rows[self.key], bits_for(self.codes))

    def hashes(self, rows: Rows) -> ColumnHashes:
        """Return the hashes of the column in packed records, as a part of the hash of the rows."""
        if self.dictionary is None:
            return lambda part: value_hashes(self.decode(rows[self.key][part]))
        codes, hash_of_code = rows[self.key], self._hash_of_code
        return lambda part: hash_of_code[codes[part]]

    @cached_property
    def _hash_of_code(self) -> Hashes:
        return np.append(value_hashes(self.dictionary), NULL)

    @property
    def values(self) -> pa.Array:
        """The distinct values in order; null is the last, if it occurs."""
        if self.dictionary is not None:
            values = self.dictionary
        else:
            assert self.known is not None
            numbers = self.known + np.uint64(self.least)
            values = from_order_numbers(numbers, np.zeros(len(numbers), np.bool_), self.kind)
        return pa.concat_arrays([values, pa.nulls(1, values.type)]) if self.has_null else values

    def positions(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.integer]:
        """Return the position in ``values`` of each code."""
        if self.known is None:
            return codes
        return np.searchsorted(self.known, codes.astype(np.uint64))  # null is the largest code and comes last


class PassthroughProfiler:
    """Collects what has to be known about a column before it can be packed."""

    def __init__(self, name: str, key: str, kind: pa.DataType, *, counted: bool) -> None:
        self._name, self._key, self._kind, self._counted = name, key, kind, counted
        self._is_number = has_numbers(kind)
        self._least, self._most = LARGEST, 0
        self._has_null = False
        self._index = TextIndex(name, kind) if pa.types.is_string(kind) or pa.types.is_binary(kind) else None
        self._parts: list[Any] = []
        self._waiting = 0
        self._collects = True
        self.records = 0  # that have a value

    @property
    def count(self) -> int:
        """How many values are held. Values that wait to be merged may be counted twice."""
        return self._waiting if self._index is None else self._index.count

    @property
    def is_exact(self) -> bool:
        """Whether ``count`` is the number of different values."""
        return self._index is not None

    @property
    def bytes_to_finish(self) -> int:
        """The bytes that a merge and the end may take, beside what is held."""
        if self._index is not None:
            return max(self._index.bytes_to_sort, self._index.bytes_to_grow)
        if self._is_number:
            return self._waiting * NUMBER_BYTES
        return self._waiting * VALUE_BYTES + 3 * int(sum(part.nbytes for part in self._parts))

    def add(self, column: pa.Array) -> None:
        self.records += len(column) - column.null_count
        if column.null_count:
            self._has_null = True
        if self._is_number:
            numbers = order_numbers(column.drop_null() if column.null_count else column)
            if numbers.size:
                self._least, self._most = min(self._least, int(numbers.min())), max(self._most, int(numbers.max()))
                if self._collects:
                    self._keep(np.unique(numbers))
            return
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        if self._index is None:
            self._keep(encoded.dictionary)
        else:
            self._index.add(encoded.dictionary.drop_null())

    def _keep(self, values: Any) -> None:
        self._parts.append(values)
        self._waiting += len(values)
        if self._waiting > max(WAITING, 2 * len(self._parts[0])):
            merged = self._merged()
            self._parts, self._waiting = [merged], len(merged)
            if self._is_number and not self._counted and len(merged) > FEW:
                self._parts, self._waiting, self._collects = [], 0, False

    def _merged(self) -> Any:
        if self._is_number:
            return merged_numbers(self._parts)
        return pa.chunked_array(self._parts).unique()

    def finish(self) -> PackedPassthrough:
        if self._is_number:
            return self._numbers()
        if self._index is not None:
            return self._texts(self._index)
        try:
            dictionary, _ = sorted_codes(pa.chunked_array([self._merged()]))
        except pa.ArrowNotImplementedError:
            raise InputError(
                f"column {self._name!r} has the type {self._kind}, which has no order, so the released rows cannot be "
                "sorted. Drop the column, or turn it into text."
            ) from None
        return self._packed(dictionary, 0, len(dictionary) + self._has_null)

    def _numbers(self) -> PackedPassthrough:
        least, most = (self._least, self._most) if self._least <= self._most else (0, 0)
        codes = most - least + 1 + self._has_null
        if codes - 1 > LARGEST:
            raise InputError(
                f"column {self._name!r} has the smallest and the largest number of 64 bits, and null, which is one "
                "value too many for the disk engine. Replace the extremes, or drop the column."
            )
        known = None
        if self._collects:
            known = self._merged() - np.uint64(least) if self._parts else np.empty(0, np.uint64)
        return self._packed(None, least, codes, known)

    def _texts(self, index: TextIndex) -> PackedPassthrough:
        """Sort the texts. The index in order of appearance goes, and one of the sorted texts takes its place."""
        values, self._index = index.values, None
        del index
        dictionary = values.take(pc.array_sort_indices(values))
        del values
        sorted_index = TextIndex.of(self._name, dictionary)
        return self._packed(dictionary, 0, len(dictionary) + self._has_null, index=sorted_index)

    def _packed(
        self,
        dictionary: pa.Array | None,
        least: int,
        codes: int,
        known: NDArray[np.uint64] | None = None,
        index: TextIndex | None = None,
    ) -> PackedPassthrough:
        return PackedPassthrough(
            self._name, self._key, self._kind, self._has_null, dictionary, least, codes, known, self.records, index
        )
