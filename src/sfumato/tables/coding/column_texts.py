"""Columns as texts: what each record would show in a CSV file, whatever the type of the column."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.tables.coding.arrow_arrays import from_numpy, from_texts, to_numpy, to_python
from sfumato.tables.coding.value_order import is_missing, text_of


class ColumnTexts(NamedTuple):
    """The texts of records. codes: int64[n], the position of each among ``texts``; 0 where ``missing``."""

    codes: NDArray[np.int64]
    texts: list[str]
    missing: NDArray[np.bool_]


def column_texts(column: pa.Array, null_tokens: Collection[str]) -> ColumnTexts:
    """Return the texts of a column of a batch. Null, NaN and the null tokens are missing."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = to_python(encoded.dictionary)
    absent = np.array([*(is_missing(value, null_tokens) for value in values), True], np.bool_)
    codes = to_numpy(encoded.indices, len(values)).astype(np.int64)
    missing = absent[codes]
    texts: dict[str, int] = {}
    number = [
        0 if gone else texts.setdefault(text_of(value), len(texts))
        for value, gone in zip(values, absent[:-1], strict=True)
    ]
    return ColumnTexts(np.where(missing, 0, np.array([*number, 0])[codes]), list(texts), missing)


def text_column(codes: NDArray[np.int64], texts: Sequence[str], missing: NDArray[np.bool_]) -> pa.DictionaryArray:
    """Return a column of texts in the form that sources give: the dictionary holds what occurs, each text once.

    codes: the position of each record's text among ``texts``, which may be repeated; anything valid where ``missing``.
    """
    distinct: dict[str, int] = {}
    same = np.array([distinct.setdefault(text, len(distinct)) for text in texts] or [0], np.int64)
    rows = same[codes]
    used = np.unique(rows[~missing])
    position = np.zeros(max(len(distinct), 1), np.int32)
    position[used] = np.arange(len(used), dtype=np.int32)
    every = list(distinct)
    return pa.DictionaryArray.from_arrays(
        from_numpy(position[rows], missing), from_texts([every[code] for code in used.tolist()])
    )
