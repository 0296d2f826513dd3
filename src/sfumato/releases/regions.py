"""The regions of a fitted tree over the whole domain: find the region of any record, including unseen ones.

A tree that a method grew knows every value of the table. Regions know less: of numbers and dates only the bounds of
regions, of categories the taxonomy. A region of numbers is closed and also covers values that the table did not have.
A region of whole numbers or dates begins one after the end of the region before; regions of other numbers share their
bound, which belongs to the lower one. If the policy has a finest level, the bounds are the first values of cells on
that level, and a region ends with the whole cell. Values outside the domain are in no region: a number below the
smallest or above the largest, a category that the taxonomy does not know, null if the table had none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.method import ClassBatch
from sfumato.methods.trees.region_tree import descend
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, NumericDomain

OUTSIDE = -1  # the code of a value, and the region of a record, outside the domain
DAY = 86_400_000_000  # microseconds


class TreeOfRegions(Protocol):
    """A tree of regions in the codes of a table, such as ``methods.trees.region_tree.RegionTree``.

    The children of a node are adjacent, ascending, and fill it. attribute: int64[nodes], -1 for a leaf.
    """

    @property
    def attribute(self) -> NDArray[np.int64]: ...

    @property
    def first_child(self) -> NDArray[np.int64]: ...

    @property
    def low(self) -> Codes: ...

    @property
    def high(self) -> Codes: ...


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions that tile the domain, numbered in the depth-first order of the leaves of their tree.

    The values of a numeric domain in ``domains`` are the bounds of regions. attribute, first_child: int64[nodes], and
    low, high: uint32[nodes, d], are the tree in the codes of these domains; leaves: int64[regions], the node of each
    region.
    """

    domains: tuple[Domain, ...]
    attribute: NDArray[np.int64]
    first_child: NDArray[np.int64]
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    leaves: NDArray[np.int64]

    def __post_init__(self) -> None:
        for array in (self.attribute, self.first_child, self.low, self.high, self.leaves):
            array.setflags(write=False)

    @classmethod
    def of(cls, tree: TreeOfRegions, domains: Sequence[Domain]) -> Regions:
        """The regions of a tree that was grown over the codes of these domains."""
        nodes, first_child, leaves = _reachable_nodes(tree)
        attribute = np.where(first_child < 0, OUTSIDE, tree.attribute[nodes])
        low, high = np.empty((2, len(nodes), len(domains)), np.uint32)
        region_domains: list[Domain] = []
        for q, domain in enumerate(domains):
            region_domain, starts, ends = _region_domain(domain, tree.high[nodes, q])
            low[:, q], high[:, q] = starts[tree.low[nodes, q]], ends[tree.high[nodes, q]]
            region_domains.append(region_domain)
        return cls(tuple(region_domains), attribute, first_child, low, high, leaves)

    @classmethod
    def whole(cls, domains: Sequence[Domain]) -> Regions:
        """A single region: the whole of these domains."""
        low = np.zeros((1, len(domains)), np.uint32)
        high = np.array([[max(domain.size - 1, 0) for domain in domains]], np.uint32)
        none = np.full((2, 1), OUTSIDE, np.int64)
        return cls(tuple(domains), none[0], none[1], low, high, np.zeros(1, np.int64))

    @classmethod
    def exactly(cls, tree: TreeOfRegions, domains: Sequence[Domain]) -> Regions:
        """The regions of a tree over the codes of these domains, of which no value lies between two codes."""
        nodes, first_child, leaves = _reachable_nodes(tree)
        attribute = np.where(first_child < 0, OUTSIDE, tree.attribute[nodes])
        low, high = (ends[nodes].astype(np.uint32) for ends in (tree.low, tree.high))
        return cls(tuple(domains), attribute, first_child, low, high, leaves)

    def __len__(self) -> int:
        return len(self.leaves)

    @property
    def region_low(self) -> NDArray[np.uint32]:
        return self.low[self.leaves]

    @property
    def region_high(self) -> NDArray[np.uint32]:
        return self.high[self.leaves]

    def children(self, node: int) -> range:
        """The children of a node, ascending; empty for a leaf."""
        q, first = int(self.attribute[node]), int(self.first_child[node])
        if first < 0:
            return range(0)
        last = first
        while self.high[last, q] < self.high[node, q]:
            last += 1
        return range(first, last + 1)

    def regions_of(self, codes: Codes, domains: Sequence[Domain]) -> NDArray[np.int64]:
        """The region of each record: int64[n], or OUTSIDE. ``domains``, of any table, are those of ``codes``."""
        own = np.empty((len(codes), len(self.domains)), np.uint32)
        inside = np.ones(len(codes), np.bool_)
        for q, known in enumerate(self._known(codes, domains)):
            inside &= known >= 0
            own[:, q] = np.maximum(known, 0)
        number = np.full(len(self.attribute), OUTSIDE, np.int64)
        number[self.leaves] = np.arange(len(self.leaves))
        regions = number[descend(own, self.attribute, self.first_child, self.high)]
        return np.where(inside, regions, OUTSIDE)

    def columns_outside(self, codes: Codes, domains: Sequence[Domain]) -> list[str]:
        """The columns in which some record has a value outside the domain."""
        known = zip(self.domains, self._known(codes, domains), strict=True)
        return [own.name for own, values in known if (values < 0).any()]

    def _known(self, codes: Codes, domains: Sequence[Domain]) -> Iterator[NDArray[np.int64]]:
        """Yield, for each column, the code of a region's end or OUTSIDE for each record."""
        return (self._codes(q, domain)[codes[:, q]] for q, domain in enumerate(domains))

    def classes(self, regions: NDArray[np.int64]) -> ClassBatch:
        """A class for each region that has records, with the region as its box. Records outside are in no class."""
        rows = np.argsort(regions, kind="stable").astype(np.uint32)
        rows = rows[np.count_nonzero(regions < 0) :]
        occupied, sizes = np.unique(regions[rows], return_counts=True)
        nodes = self.leaves[occupied]
        return ClassBatch(rows, np.append(0, np.cumsum(sizes)), self.low[nodes], self.high[nodes])

    def _codes(self, q: int, domain: Domain) -> NDArray[np.int64]:
        """The code of a region's end for each code of another domain of the column: int64[size of domain]."""
        null = self.domains[q].size - self.domains[q].has_null
        return codes_of_values(domain, self.domains[q], _end_codes(self.high[:, q], null) if null else None)


def codes_of_values(domain: Domain, own: Domain, ends: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """The code in ``own``, or OUTSIDE, of each code of another domain of the column: int64[size of domain].

    ends: the codes at which regions end; numbers then get the code of the end of their region.
    """
    null = own.size - own.has_null
    translated = np.full(domain.size, OUTSIDE, np.int64)
    values = domain.size - domain.has_null
    if domain.has_null and own.has_null:
        translated[values] = null
    if isinstance(own, NumericDomain) and isinstance(domain, NumericDomain):
        if null:
            ends = np.arange(null) if ends is None else ends
            below, numbers = converted(domain, own)
            if own.finest:
                below, numbers = own.cell_starts(below), own.cell_starts(numbers)
            inside = (below >= own.values[0]) & (numbers <= own.values[-1])
            if is_discrete(own):
                inside &= below == numbers
            index = np.searchsorted(own.values[ends], numbers)
            translated[:values] = np.where(inside, ends[np.minimum(index, len(ends) - 1)], OUTSIDE)
    elif isinstance(own, CategoricalDomain) and isinstance(domain, CategoricalDomain):
        known, names = own.taxonomy.code_of_value, domain.taxonomy.leaves
        if domain.finest:  # this is the table that the regions were learnt from: any value of a group will do
            value_of_group = {code: value for value, code in domain.taxonomy.code_of_value.items()}
            names = tuple(value_of_group[code] for code in range(values))
        translated[:values] = [known.get(name, OUTSIDE) for name in names]
    return translated


def is_discrete(domain: NumericDomain) -> bool:
    """Whether every value has a successor, so that a region begins one after the end of the region before."""
    return domain.is_whole and domain.kind != "moment"


def _region_domain(domain: Domain, high: Codes) -> tuple[Domain, NDArray[np.int64], NDArray[np.int64]]:
    """The domain whose values are the bounds of regions, and the start and end of the piece of each old code.

    high: the last codes of all regions. A piece is a range that no region divides.
    """
    if not isinstance(domain, NumericDomain):
        same = np.arange(domain.size)
        return domain, same, same
    null = len(domain.values)
    end_codes = _end_codes(high, null) if null else np.empty(0, np.int64)
    smallest, largest = _widened_ends(domain)
    ends = np.append(domain.values[end_codes[:-1]], largest)
    starts = np.append(smallest, domain.cell_ends(ends[:-1]) + is_discrete(domain)) if null else ends
    values = np.unique(np.append(starts, ends).astype(domain.values.dtype))
    own = replace(domain, values=values, extent=None)
    piece = np.searchsorted(end_codes, np.arange(null))
    start = np.append(np.searchsorted(values, starts)[piece], len(values))
    end = np.append(np.searchsorted(values, ends)[piece], len(values))
    return own, start, end


def _widened_ends(domain: NumericDomain) -> tuple[NDArray[Any], NDArray[Any]]:
    """The smallest and the largest value that the domain of rules begins and ends with, each an array of one or none.

    With ``round`` they are multiples, as the regions show them. Where regions meet, only the exact value will do; the
    extremes of the table are not needed.
    """
    smallest, largest = domain.values[:1], domain.values[-1:]
    if domain.snap is None or domain.finest or not len(domain.values):
        return smallest, largest  # a cell begins where every table has it begin
    integral, scale = domain.is_whole, domain.scale if domain.is_decimal else None
    low = domain.snap.snap(smallest, smallest, integral, scale).low
    return low, domain.snap.snap(largest, largest, integral, scale).high


def _end_codes(high: Codes, null: int) -> NDArray[np.int64]:
    """The codes at which regions end, ascending, without null. The largest value counts even if null goes with it."""
    return np.union1d(high[high < null], [null - 1]).astype(np.int64)


def converted(domain: NumericDomain, own: NumericDomain) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values of ``domain`` in the unit and type of ``own``: the nearest number not above, and not below, each.

    The two are the same for a value that converts exactly. A whole number that equals no float is in no domain of
    floats: it becomes NaN.
    """
    values, kind, own_kind = domain.values, domain.values.dtype.kind, own.values.dtype.kind
    unit, own_unit = (DAY if each.kind == "date" else 1 for each in (domain, own))
    factor = Fraction(unit * 10**own.scale, own_unit * 10**domain.scale)
    largest = max(abs(number) for number in values[[0, -1]].tolist()) if len(values) else 0
    if kind == own_kind and factor == 1:
        return values, values
    if kind == own_kind == "i" and max(largest, max(largest, 1) * factor, factor.denominator) < 1 << 63:
        wide = values * np.int64(factor.numerator) if factor.denominator == 1 else values
        return wide // factor.denominator, -(-wide // factor.denominator)
    if kind == "i" and own_kind == "f" and factor == 1:
        numbers = values.astype(np.float64)
        exact = np.array([int(number) == value for number, value in zip(numbers, values.tolist(), strict=True)], bool)
        numbers[~exact] = np.nan
        return numbers, numbers
    if kind == "f" and own_kind == "i" and factor == 1 and largest < 1 << 53:
        return np.floor(values).astype(np.int64), np.ceil(values).astype(np.int64)
    meant = [_meant(value) * factor for value in values.tolist()]
    if own_kind == "i":
        # Python's integers: some may be beyond 64 bits.
        return np.array([math.floor(x) for x in meant], object), np.array([math.ceil(x) for x in meant], object)
    pairs = np.array([_floats_around(number) for number in meant], np.float64)
    return pairs[:, 0], pairs[:, 1]


def _meant(value: float) -> Fraction:
    """The number that a value is in text: the double next to 2.55 means 2.55."""
    return Fraction(value) if float(value).is_integer() else Fraction(repr(value))


def _floats_around(number: Fraction) -> tuple[float, float]:
    """The nearest floats that mean no more, and no less, than a number."""
    nearest = float(number)
    if _meant(nearest) <= number:
        return nearest, nearest if _meant(nearest) == number else math.nextafter(nearest, math.inf)
    return math.nextafter(nearest, -math.inf), nearest


def _reachable_nodes(tree: TreeOfRegions) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The nodes under the root, level by level; the new number of their first child; the leaves, depth first."""
    levels, first_children, count = [np.zeros(1, np.int64)], [], 1
    while len(levels[-1]):
        nodes = levels[-1]
        children = _child_counts(tree, nodes)
        ends = np.cumsum(children)
        first_children.append(np.where(children > 0, count + ends - children, OUTSIDE))
        offset = np.arange(ends[-1]) - np.repeat(ends - children, children)
        levels.append(np.repeat(tree.first_child[nodes], children) + offset)
        count += int(ends[-1])
    first_child = np.concatenate(first_children)
    return np.concatenate(levels), first_child, leaves_under(first_child)


def _child_counts(tree: TreeOfRegions, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of children of each node: the last child ends where the node ends."""
    children = np.zeros(len(nodes), np.int64)
    pending = np.flatnonzero(tree.attribute[nodes] >= 0)
    while len(pending):
        node = nodes[pending]
        q = tree.attribute[node]
        last = tree.first_child[node] + children[pending]
        children[pending] += 1
        pending = pending[tree.high[last, q] < tree.high[node, q]]
    return children


def leaves_under(first_child: NDArray[np.int64]) -> NDArray[np.int64]:
    """The leaves, depth first, of a tree whose nodes are sorted by level, children in the order of their parents."""
    inner = np.flatnonzero(first_child >= 0)
    firsts = first_child[inner]
    children = np.diff(np.append(firsts, len(first_child)))
    under = (first_child < 0).astype(np.int64)  # leaves under each node
    before = np.zeros(len(first_child), np.int64)  # leaves that come before those
    levels, begin, end = [], 0, 1
    while begin < end:
        level = slice(*np.searchsorted(inner, [begin, end]))
        levels.append(level)
        begin, end = end, end + int(children[level].sum())
    for level in reversed(levels):
        if level.start < level.stop:
            last = firsts[level.stop - 1] + children[level.stop - 1]
            under[inner[level]] = np.add.reduceat(under[: int(last)], firsts[level])
    for level in levels:
        if level.start < level.stop:
            begin, end = int(firsts[level.start]), int(firsts[level.stop - 1] + children[level.stop - 1])
            preceding = np.cumsum(under[begin:end]) - under[begin:end]  # among all nodes of the level below
            of_first = np.repeat(preceding[firsts[level] - begin], children[level])
            before[begin:end] = np.repeat(before[inner[level]], children[level]) + preceding - of_first
    leaves = np.flatnonzero(first_child < 0)
    return leaves[np.argsort(before[leaves])]
