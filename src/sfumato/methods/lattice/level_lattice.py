"""The lattice of levels, one for every quasi-identifier (Samarati 2001, section 3; LeFevre et al. 2005, section 2).

A node has a level for each column. A node is more general than another if none of its levels is more specific. What a
record costs at a node is the sum of what its groups cost, column by column. So the cost of all records, with none left
out, is a sum over the columns too, and no records have to be counted to know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.exact_costs import Costs, shown_costs
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, NumericDomain

Node = tuple[int, ...]
"""A level for each quasi-identifier, counted from the finest level of the column."""


def with_level(node: Node, column: int, level: int) -> Node:
    """Return a node that differs in one level."""
    return (*node[:column], level, *node[column + 1 :])


@dataclass(frozen=True)
class ColumnLevel:
    """The groups of one column on one level.

    group: uint32[codes], the group of each code of the column. A group is shown as the box low..high of ``domain``, and
    costs as much for every record in it: low, high: uint32[groups]; cost: int64[groups].
    """

    group: NDArray[np.uint32]
    domain: Domain
    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    cost: NDArray[np.int64]

    @property
    def groups(self) -> int:
        return len(self.low)

    @cached_property
    def first_code(self) -> NDArray[np.int64]:
        """A code of each group: int64[groups]."""
        return np.unique(self.group, return_index=True)[1]


@dataclass(frozen=True)
class LevelLattice:
    """The levels of every quasi-identifier, from the finest to the most general that may be shown.

    full: the cost of ``*`` in each column.
    """

    domains: tuple[Domain, ...]
    columns: tuple[tuple[ColumnLevel, ...], ...]
    full: tuple[int, ...]

    @classmethod
    def of(cls, domains: Sequence[Domain], costs: Costs) -> LevelLattice:
        """Return the lattice over these domains. costs: of the same columns."""
        full = tuple(costs.layout[:, 3].tolist())
        columns = tuple(_levels(domain, cost) for domain, cost in zip(domains, full, strict=True))
        return cls(tuple(domains), columns, full)

    @property
    def bottom(self) -> Node:
        return (0,) * len(self.columns)

    @cached_property
    def top(self) -> Node:
        return tuple(len(levels) - 1 for levels in self.columns)

    @property
    def size(self) -> int:
        """The number of nodes."""
        return prod(len(levels) for levels in self.columns)

    def levels_of(self, node: Node) -> tuple[ColumnLevel, ...]:
        return tuple(levels[level] for levels, level in zip(self.columns, node, strict=True))

    def numbers_of(self, node: Node) -> dict[str, int]:
        """Return the level of each column by its name, numbered as in a policy."""
        return {domain.name: domain.finest + level for domain, level in zip(self.domains, node, strict=True)}

    def translation(self, column: int, from_level: int, to_level: int) -> NDArray[np.uint32]:
        """Return the group on a more general level of each group of a level."""
        levels = self.columns[column]
        return levels[to_level].group[levels[from_level].first_code]

    def groups_of(self, node: Node, codes: Codes) -> Codes:
        """Return the groups of records at a node. codes: uint[n, d], of the columns, not modified."""
        groups = np.empty_like(codes)
        for q, level in enumerate(self.levels_of(node)):
            groups[:, q] = level.group[codes[:, q]]
        return groups

    def costs_of(
        self, node: Node, groups: Codes, suppressed: NDArray[np.int64], columns: Sequence[int]
    ) -> NDArray[np.int64]:
        """Return what a record in each combination of groups at a node costs: int64[n].

        suppressed: int64[n], how many of the ``columns`` are shown as ``*`` there, the first ones first.
        """
        costs = np.zeros(len(groups), np.int64)
        for q, level in enumerate(self.levels_of(node)):
            cost = level.cost[groups[:, q]]
            if q in columns:
                cost[suppressed > columns.index(q)] = self.full[q]
            costs += cost
        return costs


def with_null(domain: Domain) -> Domain:
    """Return the domain with null, which may not occur in it.

    A box that reaches null is ``*`` and has no bounds: those of the table may be values of records left out.
    """
    assert isinstance(domain, NumericDomain | CategoricalDomain)
    return replace(domain, has_null=True)


def _levels(domain: Domain, full: int) -> tuple[ColumnLevel, ...]:
    first = _level(domain, domain.finest, full)
    if first.groups == 1:
        return (first,)  # all records show the same, so nothing is gained by showing less
    highest = domain.top_level if domain.coarsest is None else domain.coarsest
    return (first, *(_level(domain, number, full) for number in range(domain.finest + 1, highest + 1)))


def _level(domain: Domain, number: int, full: int) -> ColumnLevel:
    if number == domain.top_level:
        shown = with_null(domain)
        low, high = np.zeros(1, np.uint32), np.array([shown.size - 1], np.uint32)
        return ColumnLevel(np.zeros(domain.size, np.uint32), shown, low, high, np.array([full]))
    own, group = domain.at_level(number)
    begins = np.ones(own.size, np.bool_)
    if isinstance(own, NumericDomain) and own.snap is not None and own.tree is None and len(own.values):
        # Rounding has no levels, but numbers between the same two multiples are shown as the same range.
        codes = np.arange(len(own.values))
        positions = np.stack(own.shown_positions(codes, codes))
        begins[1 : len(codes)] = (positions[:, 1:] != positions[:, :-1]).any(axis=0)
    low = np.flatnonzero(begins).astype(np.uint32)
    high = (np.append(low[1:], own.size) - 1).astype(np.uint32)
    same = (np.cumsum(begins) - 1).astype(np.uint32)
    return ColumnLevel(same[group], with_null(own), low, high, shown_costs(own, low, high, full))
