"""The regions of a fitted tree over the whole domain: which region any record is in, also one that was not there.

A tree that a method grew knows every value of the table. Regions know less: of numbers and dates the bounds of regions
alone, of categories the taxonomy. A region of numbers is closed and holds for values that nobody has seen: of whole
numbers and dates it begins one after the end of the region before, of other numbers both share the bound, which belongs
to the lower one. What lies outside the domain is in no region: a number below the smallest or above the largest, a
category that the taxonomy does not know, null where there was none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.method import ClassBatch
from sfumato.methods.trees.region_tree import descend
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, NumericDomain

OUTSIDE = -1  # the code of a value, and the region of a record, that the domain does not hold
DAY = 86_400_000_000  # microseconds


class Divided(Protocol):
    """A tree of regions in the codes of a table, such as ``methods.tree.RegionTree``.

    The children of a node lie beside each other, ascending, and fill it; attribute: int64[nodes], -1 for a leaf.
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
    """Regions that tile the domain, numbered as the leaves of their tree come, depth first.

    domains: those of the regions; the values of a number are bounds of regions. attribute, first_child: int64[nodes],
    low, high: uint32[nodes, d], the tree in their codes; leaves: int64[regions], the node of each region.
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
    def of(cls, tree: Divided, domains: Sequence[Domain]) -> Regions:
        """The regions of a tree that was grown over the codes of these domains."""
        nodes, first_child, leaves = _reached(tree)
        attribute = np.where(first_child < 0, OUTSIDE, tree.attribute[nodes])
        low, high = np.empty((2, len(nodes), len(domains)), np.uint32)
        own: list[Domain] = []
        for q, domain in enumerate(domains):
            bounded, starts, ends = _bounded(domain, tree.high[nodes, q])
            low[:, q], high[:, q] = starts[tree.low[nodes, q]], ends[tree.high[nodes, q]]
            own.append(bounded)
        return cls(tuple(own), attribute, first_child, low, high, leaves)

    def __len__(self) -> int:
        return len(self.leaves)

    @property
    def region_low(self) -> NDArray[np.uint32]:
        return self.low[self.leaves]

    @property
    def region_high(self) -> NDArray[np.uint32]:
        return self.high[self.leaves]

    def children(self, node: int) -> range:
        """The parts of a node, ascending; none for a leaf."""
        q, first = int(self.attribute[node]), int(self.first_child[node])
        if first < 0:
            return range(0)
        last = first
        while self.high[last, q] < self.high[node, q]:
            last += 1
        return range(first, last + 1)

    def regions_of(self, codes: Codes, domains: Sequence[Domain]) -> NDArray[np.int64]:
        """int64[n]: the region of each record, OUTSIDE for none. The codes are those of any domains of the columns."""
        own = np.empty((len(codes), len(self.domains)), np.uint32)
        inside = np.ones(len(codes), np.bool_)
        for q, domain in enumerate(domains):
            known = self._codes(q, domain)[codes[:, q]]
            inside &= known >= 0
            own[:, q] = np.maximum(known, 0)
        number = np.full(len(self.attribute), OUTSIDE, np.int64)
        number[self.leaves] = np.arange(len(self.leaves))
        found = number[descend(own, self.attribute, self.first_child, self.high)]
        return np.where(inside, found, OUTSIDE)

    def classes(self, regions: NDArray[np.int64]) -> ClassBatch:
        """The records of each region that has any, as a class that shows the region; those outside are in none."""
        rows = np.argsort(regions, kind="stable").astype(np.uint32)
        rows = rows[np.count_nonzero(regions < 0) :]
        there, sizes = np.unique(regions[rows], return_counts=True)
        nodes = self.leaves[there]
        return ClassBatch(rows, np.append(0, np.cumsum(sizes)), self.low[nodes], self.high[nodes])

    def _codes(self, q: int, domain: Domain) -> NDArray[np.int64]:
        """int64[size of domain]: each code of another domain of the column as the code of a region's end."""
        own = self.domains[q]
        null = own.size - own.has_null
        found = np.full(domain.size, OUTSIDE, np.int64)
        values = domain.size - domain.has_null
        if domain.has_null and own.has_null:
            found[values] = null
        if isinstance(own, NumericDomain) and isinstance(domain, NumericDomain):
            if null:
                ends = _ends(self.high[:, q], null)
                numbers, sound = _in_kind(domain, own)
                sound &= (numbers >= own.values[0]) & (numbers <= own.values[-1])
                place = np.searchsorted(own.values[ends], numbers)
                found[:values] = np.where(sound, ends[np.minimum(place, len(ends) - 1)], OUTSIDE)
        elif isinstance(own, CategoricalDomain) and isinstance(domain, CategoricalDomain):
            leaf = {name: code for code, name in enumerate(own.taxonomy.leaves)}
            found[:values] = [leaf.get(name, OUTSIDE) for name in domain.taxonomy.leaves]
        return found


def steps(domain: NumericDomain) -> bool:
    """Whether every value has a next one, so that a region begins one after the end of the region before."""
    return domain.values.dtype.kind == "i" and domain.kind != "moment"


def bounded(domain: NumericDomain, ends: NDArray[Any]) -> NumericDomain:
    """The domain with the bounds of regions as its values; they end at ``ends``, ascending, the last at its largest."""
    starts = np.append(domain.values[:1], ends[:-1] + steps(domain))
    values = np.unique(np.append(starts, ends).astype(domain.values.dtype))
    return NumericDomain(domain.name, values, domain.has_null, domain.kind, domain.snap)


def _bounded(domain: Domain, high: Codes) -> tuple[Domain, NDArray[np.int64], NDArray[np.int64]]:
    """The domain of regions, and by code of the domain where the piece begins and ends that it is in.

    high: the last codes of all regions. A piece is what no region divides.
    """
    if not isinstance(domain, NumericDomain):
        same = np.arange(domain.size)
        return domain, same, same
    null = len(domain.values)
    cuts = _ends(high, null) if null else np.empty(0, np.int64)
    ends = domain.values[cuts]
    own = bounded(domain, ends)
    starts = np.append(domain.values[:1], ends[:-1] + steps(domain)) if null else ends
    piece = np.searchsorted(cuts, np.arange(null))
    start = np.append(np.searchsorted(own.values, starts)[piece], len(own.values))
    end = np.append(np.searchsorted(own.values, ends)[piece], len(own.values))
    return own, start, end


def _ends(high: Codes, null: int) -> NDArray[np.int64]:
    """The codes that regions end at, ascending, without null; the largest value is one also where null goes with it."""
    return np.union1d(high[high < null], [null - 1]).astype(np.int64)


def _in_kind(domain: NumericDomain, own: NumericDomain) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values of a domain as another one counts them, and which of them it can hold."""
    values = domain.values
    sound = np.ones(len(values), np.bool_)
    if domain.kind == "date" and own.kind == "moment":
        return values * DAY, sound
    if domain.kind == "moment" and own.kind == "date":
        return values // DAY, values % DAY == 0
    if values.dtype.kind == own.values.dtype.kind:
        return values, sound
    if own.values.dtype.kind == "f":
        numbers = values.astype(np.float64)
        # A whole number that no float is equal to would be moved.
        exact = (np.abs(numbers) < 2.0**63) & (
            np.where(np.abs(numbers) < 2.0**63, numbers, 0).astype(np.int64) == values
        )
        return numbers, exact
    whole = (np.floor(values) == values) & (np.abs(values) < 2.0**63)
    return np.where(whole, values, 0).astype(np.int64), whole


def _reached(tree: Divided) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The nodes under the root, level by level; their first children anew; the leaves, depth first."""
    levels, first_children, count = [np.zeros(1, np.int64)], [], 1
    while len(levels[-1]):
        nodes = levels[-1]
        children = _child_counts(tree, nodes)
        ends = np.cumsum(children)
        first_children.append(np.where(children > 0, count + ends - children, OUTSIDE))
        place = np.arange(ends[-1]) - np.repeat(ends - children, children)
        levels.append(np.repeat(tree.first_child[nodes], children) + place)
        count += int(ends[-1])
    first_child = np.concatenate(first_children)
    return np.concatenate(levels), first_child, leaves_under(first_child)


def _child_counts(tree: Divided, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many parts each node has: its children end where it ends."""
    children = np.zeros(len(nodes), np.int64)
    more = np.flatnonzero(tree.attribute[nodes] >= 0)
    while len(more):
        node = nodes[more]
        q = tree.attribute[node]
        last = tree.first_child[node] + children[more]
        children[more] += 1
        more = more[tree.high[last, q] < tree.high[node, q]]
    return children


def leaves_under(first_child: NDArray[np.int64]) -> NDArray[np.int64]:
    """The leaves, depth first, of a tree whose nodes come as their parents do, the children of one after the other."""
    divided = np.flatnonzero(first_child >= 0)
    firsts = first_child[divided]
    children = np.diff(np.append(firsts, len(first_child)))
    under = (first_child < 0).astype(np.int64)  # leaves under each node
    before = np.zeros(len(first_child), np.int64)  # leaves that come before those
    levels, begin, end = [], 0, 1
    while begin < end:
        at = slice(*np.searchsorted(divided, [begin, end]))
        levels.append(at)
        begin, end = end, end + int(children[at].sum())
    for at in reversed(levels):
        if at.start < at.stop:
            last = firsts[at.stop - 1] + children[at.stop - 1]
            under[divided[at]] = np.add.reduceat(under[: int(last)], firsts[at])
    for at in levels:
        if at.start < at.stop:
            begin, end = int(firsts[at.start]), int(firsts[at.stop - 1] + children[at.stop - 1])
            upto = np.cumsum(under[begin:end]) - under[begin:end]  # among all of this level
            of_first = np.repeat(upto[firsts[at] - begin], children[at])
            before[begin:end] = np.repeat(before[divided[at]], children[at]) + upto - of_first
    leaves = np.flatnonzero(first_child < 0)
    return leaves[np.argsort(before[leaves])]
