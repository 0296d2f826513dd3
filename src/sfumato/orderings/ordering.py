"""What an ordering is: it maps the quasi-identifiers of a record to one key, so that near keys mean near records."""

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

    words: uint64[n, w], the most significant first; the last word holds what is left in its low bits.
    """

    words: NDArray[np.uint64]
    length: int

    def fields(self) -> list[Field]:
        """The keys as sorting takes them."""
        count = self.words.shape[1]
        last = self.length - WORD * (count - 1)
        return [Field(self.words[:, word], WORD if word < count - 1 else last) for word in range(count)]

    def leading(self, bits: int) -> NDArray[np.int64]:
        """The first ``bits`` bits of every key (all of them if it has fewer), as numbers."""
        bits = min(bits, self.length)
        first_width = min(self.length, WORD)
        if bits <= first_width:
            return (self.words[:, 0] >> np.uint64(first_width - bits)).astype(np.int64)
        raise ValueError("at most one word of a key can be taken as a number")


# The keys of some records, uint[n, d] in C-order. Depends on each record alone, so that batches can be ordered apart.
KeysOf = Callable[[Codes], Keys]


class Ordering(Protocol):
    """One file an ordering; registered in ``orderings`` or by the entry point ``sfumato.orderings``."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """What records are ordered by, for people: "the Hilbert curve"."""
        ...

    @property
    def paper(self) -> str: ...

    @property
    def needs_no_table(self) -> bool:
        """Do the domains tell all that the keys need? Tables larger than memory can then be ordered."""
        ...

    def fitted(self, codes: Codes, weights: NDArray[np.int64], domains: Sequence[Domain], seed: int) -> KeysOf:
        """Learn what the keys need from the whole table; what needs nothing of it returns its keys at once.

        codes: uint[m, d], C-order, the distinct records in ascending order; weights: int64[m], how often each occurs.
        What is drawn at random depends on these and on the seed alone, never on the order of the input.
        """
        ...
