"""Records of a table as words in the order of the table: by their codes, then by the hash of the other columns.

If the other columns have few different values together, each combination has a rank by its hash. The codes and the rank
are then all of a record, and often fit into a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.disk.passthrough_columns import PackedPassthrough
from sfumato.tables.coding.domains import Domain
from sfumato.tables.coding.row_hash import row_hashes
from sfumato.tables.coding.sorting import Field, bits_for
from sfumato.tables.external.packed_records import CODES, Rows
from sfumato.tables.external.record_words import WordLayout, Words, words_of

MOST_COMBINATIONS = 1 << 16  # of values of passthrough columns, whose ranks are kept


@dataclass(frozen=True)
class OrderedWords:
    """Turns records into words and back.

    rank: uint32[combinations], by the number of a combination. carried: by column, the value of each rank.
    """

    kind: np.dtype[Any]
    layout: WordLayout
    columns: Sequence[PackedPassthrough]
    rank: NDArray[np.uint32]
    carried: Mapping[str, NDArray[np.unsignedinteger]]

    @classmethod
    def of(
        cls,
        kind: np.dtype[Any],
        domains: Sequence[Domain],
        columns: Sequence[PackedPassthrough],
        hashed: Sequence[PackedPassthrough],
    ) -> OrderedWords | None:
        """Return None if records are longer than a word, or have too many combinations or two of the same hash.

        columns: the passthrough columns. hashed: the same in the order in which they are hashed.
        """
        combinations = prod(column.codes for column in columns)
        layout = WordLayout((*(bits_for(domain.size) for domain in domains), bits_for(combinations)))
        if combinations > MOST_COMBINATIONS or not layout.fits:
            return None
        rows, number = np.zeros(combinations, kind), np.arange(combinations)
        for column in reversed(columns):
            number, rows[column.key] = np.divmod(number, column.codes)
        hashes = row_hashes([column.hashes(rows) for column in hashed], combinations)
        order = np.argsort(hashes, kind="stable")
        if (hashes[order[1:]] == hashes[order[:-1]]).any():
            return None
        rank = np.empty(combinations, np.uint32)
        rank[order] = np.arange(combinations)
        return cls(kind, layout, columns, rank, {column.key: rows[column.key][order] for column in columns})

    def words(
        self, codes: Sequence[NDArray[np.unsignedinteger]], carried: Mapping[str, NDArray[np.unsignedinteger]]
    ) -> Words:
        """Return the words of records. carried: the values of passthrough columns, by key."""
        number = np.zeros(len(codes[0]), np.uint32)
        for column in self.columns:
            number *= np.uint32(column.codes)
            number += carried[column.key].astype(np.uint32)
        return words_of([Field(*pair) for pair in zip([*codes, self.rank[number]], self.layout.bits, strict=True)])

    def rows(self, words: Words) -> Rows:
        """Return the records of words."""
        rows = np.empty(len(words), self.kind)
        last = len(self.layout.bits) - 1
        for q in range(last):
            rows[CODES][:, q] = self.layout.values(words, q)
        rank = self.layout.values(words, last).astype(np.intp)
        for key, values in self.carried.items():
            rows[key] = values[rank]
        return rows
