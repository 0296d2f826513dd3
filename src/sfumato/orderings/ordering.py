"""The contract of an ordering: it maps the quasi-identifiers of a record to one key; near keys mean near records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.sorting import Field

WORD = 64


@dataclass(frozen=True)
class Keys:
    """Keys of ``length`` bits in as many 64-bit words as they need.

    words: uint64[n, w], the most significant first; the last word holds the remaining bits in its low bits.
    """

    words: NDArray[np.uint64]
    length: int

    def fields(self) -> list[Field]:
        """Return the keys as fields to sort by."""
        count = self.words.shape[1]
        last = self.length - WORD * (count - 1)
        return [Field(self.words[:, word], WORD if word < count - 1 else last) for word in range(count)]

    def leading(self, bits: int) -> NDArray[np.int64]:
        """Return the first ``bits`` bits of every key, or all if it has fewer, as numbers: int64[n]."""
        bits = min(bits, self.length)
        first_width = min(self.length, WORD)
        if bits <= first_width:
            return (self.words[:, 0] >> np.uint64(first_width - bits)).astype(np.int64)
        raise ValueError("a number holds at most the first word of a key: ask for fewer bits")


# Returns the keys of records, uint[n, d] in C-order. A key depends on its record alone, so batches can be separate.
KeysOf = Callable[[Codes], Keys]


class Ordering(Protocol):
    """An ordering. Each has one file; it is registered in ``orderings`` or by the entry point ``sfumato.orderings``."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """Return what the records are ordered by, in words for users: "the Hilbert curve"."""
        ...

    @property
    def paper(self) -> str: ...

    @property
    def needs_no_table(self) -> bool:
        """Return whether the keys need nothing but the domains; tables larger than memory can then be ordered."""
        ...

    def fitted(self, codes: Codes, weights: NDArray[np.int64], domains: Sequence[Domain], seed: int) -> KeysOf:
        """Learn what the keys need from the whole table, and return the function that gives them.

        codes: uint[m, d], C-order, the distinct records in ascending order; weights: int64[m], how often each occurs.
        Random draws depend on these and on the seed alone, never on the order of the input.
        """
        ...
