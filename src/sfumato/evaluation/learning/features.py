"""The features of a learner: regions as numbers (LeFevre 2008, section 4.2).

A region becomes two numbers for every quasi-identifier, its smallest and its largest value; a category is its index
among the leaves of the taxonomy. In a single-dimensional recoding an attribute has the same intervals everywhere, so
one number for each attribute suffices and categories stay categories. The same holds for the original data. Null comes
after all values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, numbers_of


@dataclass(frozen=True)
class Features:
    """numbers: float64[n, p]. nominal: bool[p], whether a number is the index of a category, 0..categories-1."""

    numbers: NDArray[np.float64]
    nominal: NDArray[np.bool_]

    def of(self, rows: NDArray[np.bool_]) -> Features:
        """The features of some records. ``rows``: bool[n]."""
        return Features(self.numbers[rows], self.nominal)

    def beside(self, other: Features | None) -> Features:
        """These features with those of ``other``, which describes the same records."""
        if other is None:
            return self
        return Features(
            np.concatenate([self.numbers, other.numbers], axis=1), np.concatenate([self.nominal, other.nominal])
        )

    def without(self, attributes: Sequence[int], per_attribute: int) -> Features:
        """These features without some attributes, each of which has ``per_attribute`` numbers."""
        kept = ~np.isin(np.arange(self.numbers.shape[1]) // per_attribute, attributes)
        return Features(self.numbers[:, kept], self.nominal[kept])


def points(codes: Codes, domains: Sequence[Domain]) -> Features:
    """The features of original values: one number for each attribute."""
    columns = [numbers_of(domain)[codes[:, attribute]] for attribute, domain in enumerate(domains)]
    return Features(np.stack(columns, axis=1), _nominal(domains))


def regions(low: Codes, high: Codes, domains: Sequence[Domain], *, alike: bool) -> Features:
    """The features of the regions low..high of records. ``alike``: each attribute has the same intervals everywhere."""
    if alike:
        return points(low, domains)
    columns = []
    for attribute, domain in enumerate(domains):
        scale = numbers_of(domain)
        columns += [scale[low[:, attribute]], scale[high[:, attribute]]]
    return Features(np.stack(columns, axis=1), np.zeros(len(columns), np.bool_))


def same_intervals_everywhere(low: Codes, high: Codes) -> bool:
    """Whether the regions of a recoding, which tile the domain, have the same intervals of an attribute everywhere."""
    for attribute in range(low.shape[1]):
        starts, first = np.unique(low[:, attribute], return_index=True)
        ends = high[first, attribute]
        same = high[:, attribute] == ends[np.searchsorted(starts, low[:, attribute])]
        if not same.all() or (starts[1:] <= ends[:-1]).any():
            return False
    return True


def _nominal(domains: Sequence[Domain]) -> NDArray[np.bool_]:
    return np.array([isinstance(domain, CategoricalDomain) for domain in domains])
