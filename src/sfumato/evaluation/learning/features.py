"""What a learner is given: regions as numbers (LeFevre 2008, section 4.2).

A region is as many numbers as it has ends: for every quasi-identifier the smallest and the largest value, a category by
its place among the leaves of the taxonomy. Where the regions of a recoding lie alike everywhere (single-dimensional),
one number for each attribute says the same, and categories stay categories; so it is with the original data. Null
stands after all values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, numbers_of


@dataclass(frozen=True)
class Features:
    """numbers: float64[n, p]. nominal: bool[p], is the number that of a category, 0..categories-1?"""

    numbers: NDArray[np.float64]
    nominal: NDArray[np.bool_]

    def of(self, rows: NDArray[np.bool_]) -> Features:
        """Those of some records."""
        return Features(self.numbers[rows], self.nominal)

    def beside(self, other: Features | None) -> Features:
        """These and others of the same records."""
        if other is None:
            return self
        return Features(
            np.concatenate([self.numbers, other.numbers], axis=1), np.concatenate([self.nominal, other.nominal])
        )

    def without(self, attributes: Sequence[int], per_attribute: int) -> Features:
        """Without some attributes, each of which is so many numbers."""
        stays = ~np.isin(np.arange(self.numbers.shape[1]) // per_attribute, attributes)
        return Features(self.numbers[:, stays], self.nominal[stays])


def points(codes: Codes, domains: Sequence[Domain]) -> Features:
    """The original values: a number for each attribute."""
    columns = [numbers_of(domain)[codes[:, attribute]] for attribute, domain in enumerate(domains)]
    return Features(np.stack(columns, axis=1), _nominal(domains))


def regions(low: Codes, high: Codes, domains: Sequence[Domain], *, alike: bool) -> Features:
    """The regions low..high of records. ``alike``: the regions of each attribute are the same everywhere."""
    if alike:
        return points(low, domains)
    columns = []
    for attribute, domain in enumerate(domains):
        scale = numbers_of(domain)
        columns += [scale[low[:, attribute]], scale[high[:, attribute]]]
    return Features(np.stack(columns, axis=1), np.zeros(len(columns), np.bool_))


def lie_alike(low: Codes, high: Codes) -> bool:
    """Do these regions, of a recoding that tiles the domain, have the same intervals of an attribute everywhere?"""
    for attribute in range(low.shape[1]):
        starts, first = np.unique(low[:, attribute], return_index=True)
        ends = high[first, attribute]
        same = high[:, attribute] == ends[np.searchsorted(starts, low[:, attribute])]
        if not same.all() or (starts[1:] <= ends[:-1]).any():
            return False
    return True


def _nominal(domains: Sequence[Domain]) -> NDArray[np.bool_]:
    return np.array([isinstance(domain, CategoricalDomain) for domain in domains])
