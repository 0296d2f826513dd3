"""Snakes: attribute after attribute, each back and forth, so that no step jumps from one end to the other.

Records are ordered by the attribute with the fewest values first. Where the first attribute goes up by one, the second
turns round and runs the other way, and so on: the boustrophedon order of a mixed-radix Gray code. Records that agree in
the attributes with few values stay together, which pays under a loss that charges whole groups of categories.

``snake`` orders all attributes this way. ``snake-hilbert`` orders only the categories so; within each combination of
categories it follows the Hilbert curve through the numbers, alternately forward and backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.orderings.hilbert import Hilbert
from sfumato.orderings.ordering import WORD, Keys, KeysOf
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.sorting import Field, bits_for, key_bits


@dataclass(frozen=True, kw_only=True)
class Snake:
    """Back and forth through all attributes, or only through the categories, with a curve through the numbers."""

    curve: Hilbert | None = None
    needs_no_table = True
    paper = "the boustrophedon order; the cut of Ghinita et al., VLDB 2007"

    @property
    def name(self) -> str:
        return "snake" if self.curve is None else f"snake-{self.curve.name}"

    @property
    def title(self) -> str:
        return (
            "a snake through the attributes"
            if self.curve is None
            else "a snake through the categories and a curve through the numbers"
        )

    def fitted(self, codes: Codes, weights: NDArray[np.int64], domains: Sequence[Domain], seed: int) -> KeysOf:
        """Return the keys of the snake, which needs nothing but the domains."""
        return partial(self.keys, domains=domains)

    def keys(self, codes: Codes, domains: Sequence[Domain]) -> Keys:
        """Return the key of every record. codes: uint[n, d], C-order, not modified."""
        curved = [q for q, domain in enumerate(domains) if self.curve and domain.tree is None]
        straight = [q for q in range(len(domains)) if q not in curved]
        fields, backward = [], np.zeros(len(codes), np.bool_)
        for q in sorted(straight, key=lambda q: domains[q].size):
            digit = np.where(backward, domains[q].size - 1 - codes[:, q].astype(np.int64), codes[:, q])
            fields.append(Field(digit.astype(np.uint64), bits_for(domains[q].size)))
            # Runs of the next attribute alternate: a run goes backward if an odd number of runs came before it.
            backward = (digit % 2 == 1) ^ (backward & (domains[q].size % 2 == 1))
        if curved and self.curve:
            curve = self.curve.keys(np.ascontiguousarray(codes[:, curved]), [domains[q] for q in curved])
            for field in curve.fields():
                turned = np.uint64((1 << field.bits) - 1) ^ field.values
                fields.append(Field(np.where(backward, turned, field.values), field.bits))
        length = sum(field.bits for field in fields)
        words = [key_bits(fields, begin, min(WORD, length - begin)) for begin in range(0, length, WORD)]
        return Keys(np.stack(words or [np.zeros(len(codes), np.uint64)], axis=1), length)
