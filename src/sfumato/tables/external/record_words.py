"""Records as numbers: a record whose fields fit into 64 bits is one word, and words are sorted as they are.

Nothing has to be brought into order after the sort, since the word is the record: equal words are equal records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads, slices, thread_count
from sfumato.tables.coding.sorting import WORD, Field, key_bits
from sfumato.tables.external.external_sort import sorted_ranges
from sfumato.tables.external.packed_records import PackedFile
from sfumato.tables.external.scratch import Scratch

WORDS = np.dtype(np.uint64)
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class WordLayout:
    """The bits of each field of a word, the most significant field first."""

    bits: tuple[int, ...]

    @property
    def width(self) -> int:
        return sum(self.bits)

    @property
    def fits(self) -> bool:
        """Whether the fields have room in a word."""
        return self.width <= WORD

    def values(self, words: Words, field: int) -> Words:
        """Return the values of one field."""
        shift = np.uint64(sum(self.bits[field + 1 :]))
        return (words >> shift) & np.uint64((1 << self.bits[field]) - 1)


def words_of(fields: Sequence[Field]) -> Words:
    """Return the words of records, given by their fields, which have room in a word."""
    return key_bits(fields, 0, sum(field.bits for field in fields))


def sorted_words(
    file: PackedFile, layout: WordLayout, most: int, scratch: Scratch, *, keep: bool = False
) -> Iterator[Words]:
    """Yield all words of a file in ascending order, in parts of at most ``most``. keep: see ``sorted_ranges``."""
    for part in sorted_ranges(file, lambda part: [Field(part.view(WORDS), layout.width)], most, scratch, keep=keep):
        words = part.view(WORDS)
        pieces = slices(len(words), max(-(-len(words) // thread_count()), 1))
        in_threads(lambda piece: words[slice(*piece)].sort(), pieces)  # noqa: B023
        words.sort(kind="stable")  # which merges the sorted pieces
        yield words
