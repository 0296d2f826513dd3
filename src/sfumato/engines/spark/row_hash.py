"""A keyed hash of every row. It orders records that are equal in all quasi-identifiers.

The key stays on the machine. If anybody could compute the hash, the order would reveal which record of a class had
which code.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.spark_tables import one_array
from sfumato.kernels.decorator import kernel
from sfumato.tables.coding.arrow_arrays import to_numpy
from sfumato.tables.coding.passthrough import has_numbers, order_numbers

ODD, OTHER_ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


def row_hashes(table: pa.Table, secret: int) -> NDArray[np.int64]:
    """Return the hash of every row: int64[rows]. All columns are dictionaries; equal rows have equal hashes."""
    key = np.uint64(secret & 0xFFFFFFFFFFFFFFFF)
    hashes = np.full(table.num_rows, key)
    for number, column in enumerate(table.columns):
        encoded = one_array(column)
        hash_of_value = np.append(_hashes(encoded.dictionary, key), ODD)  # null is the last
        codes = to_numpy(encoded.indices, len(encoded.dictionary))
        hashes = mixed((hashes + np.uint64(number)) ^ hash_of_value[codes])
    return hashes.view(np.int64)


def _hashes(values: pa.Array, key: np.uint64) -> NDArray[np.uint64]:
    if has_numbers(values.type):
        if pa.types.is_floating(values.type):  # Spark takes 0.0 and -0.0 for one value
            values = values.cast(pa.float64())
            numbers = to_numpy(values, 0) + 0.0
            return mixed(order_numbers(pa.array(numbers)) ^ key)
        return mixed(order_numbers(values) ^ key)
    texts = values.cast(pa.large_binary() if pa.types.is_binary(values.type) else pa.large_string())
    _, ends, data = texts.buffers()
    bounds = np.frombuffer(ends, np.int64, len(texts) + 1, texts.offset * 8)
    letters = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    hashed: NDArray[np.uint64] = mixed(text_hashes(bounds, letters, key))
    return hashed


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit of a number over all 64 bits."""
    numbers = (numbers ^ (numbers >> np.uint64(32))) * OTHER_ODD
    numbers = (numbers ^ (numbers >> np.uint64(32))) * OTHER_ODD
    return numbers ^ (numbers >> np.uint64(32))


@kernel
def text_hashes(bounds, letters, key):
    """Return the hashes of texts: uint64[n]. bounds: int64[n + 1], where each begins and ends in letters: uint8[m]."""
    hashes = np.empty(len(bounds) - 1, np.uint64)
    for text in range(len(hashes)):
        number = key
        for letter in range(bounds[text], bounds[text + 1]):
            number = (number ^ np.uint64(letters[letter])) * np.uint64(0x9E3779B97F4A7C15)
            number = number ^ (number >> np.uint64(29))
        hashes[text] = number
    return hashes
