"""How often each combination of groups and counted values occurs at a node of the lattice.

Counts of a more general node follow from those of a more specific one (the rollup property, LeFevre et al. 2005,
section 3). Sensitive values and persons are columns that are never generalized, so every requirement can be counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.lattice.level_lattice import LevelLattice, Node
from sfumato.methods.method import Records, SensitiveValues
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import collapse

DENSE, SMALL = 4, 1 << 12  # cells for each entry, and cells at all, up to which entries are counted in a table of cells
# The entries that are kept of further nodes, as a multiple of those of the base: other nodes are counted from them.
KEPT, LEAST_KEPT = 2, 1 << 16
WORTH_KEEPING = 0.7  # counts are kept if they have fewer entries than this share of those that they were made from


@dataclass(frozen=True)
class CountedColumns:
    """The columns that are counted beside the groups: sensitive columns, by name, and perhaps persons at the end.

    values: of each sensitive column, without codes. sizes: how many codes each of all these columns may have.
    """

    values: dict[str, SensitiveValues]
    sizes: tuple[int, ...]
    has_persons: bool


@dataclass(frozen=True)
class LevelCounts:
    """Entries in ascending order, the entries of a class together.

    codes: uint[e, d + c], the group of each of d quasi-identifiers, then the codes of the counted columns. weights:
    int64[e], how many records an entry stands for.
    """

    node: Node
    codes: Codes
    weights: NDArray[np.int64]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the entries of each class begin: int64[classes + 1]."""
        groups = self.codes[:, : len(self.node)]
        if groups.shape == self.codes.shape:
            return np.arange(len(groups) + 1)
        new = (groups[1:] != groups[:-1]).any(axis=1)
        return np.concatenate([[0], np.flatnonzero(new) + 1, [len(groups)]]) if len(groups) else np.zeros(1, np.int64)

    @cached_property
    def groups(self) -> Codes:
        """The groups of each class: uint[classes, d]."""
        if len(self.node) == self.codes.shape[1]:
            return self.codes
        return self.codes[self.starts[:-1], : len(self.node)]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The records of each class: int64[classes]."""
        if len(self.node) == self.codes.shape[1] or not len(self.weights):
            return self.weights
        return np.add.reduceat(self.weights, self.starts[:-1])


def counted_columns(
    sensitive: Mapping[str, SensitiveValues], persons: NDArray[np.uint32] | None, requirements: Requirements
) -> CountedColumns:
    """Return what is counted beside the groups."""
    values = {
        name: replace(sensitive[name], codes=np.empty(0, np.uint32), totals=None) for name in requirements.columns
    }
    sizes = [each.distinct + 1 for each in values.values()]
    if persons is not None:
        sizes.append(int(persons.max(initial=0)) + 1)
    return CountedColumns(values, tuple(sizes), persons is not None)


def counts_of_records(records: Records, lattice: LevelLattice, counted: CountedColumns) -> LevelCounts:
    """Count the records at the most specific node."""
    weights = np.diff(records.starts)
    if not counted.sizes:
        if all(levels[0].groups == len(levels[0].group) for levels in lattice.columns):
            return LevelCounts(lattice.bottom, records.codes, weights)  # distinct and in order already
        return counts_of_codes(records.codes, weights, lattice, counted)
    columns = [records.sensitive[name].codes[records.rows] for name in counted.values]
    if records.persons is not None:
        columns.append(records.persons[records.rows])
    codes = np.column_stack([np.repeat(records.codes, weights, axis=0), *columns])
    return counts_of_codes(codes, np.ones(len(codes), np.int64), lattice, counted)


def counts_of_codes(
    codes: Codes, weights: NDArray[np.int64], lattice: LevelLattice, counted: CountedColumns
) -> LevelCounts:
    """Count entries at the most specific node. codes: of the quasi-identifiers, then of the counted columns."""
    node, d = lattice.bottom, len(lattice.columns)
    groups = np.column_stack([lattice.groups_of(node, codes[:, :d]), codes[:, d:]])
    return collapsed(node, groups, weights, [*(level.groups for level in lattice.levels_of(node)), *counted.sizes])


def joined_counts(parts: Sequence[LevelCounts], lattice: LevelLattice, counted: CountedColumns) -> LevelCounts:
    """Join counts of the most specific node that were made of parts of a table."""
    codes = np.concatenate([part.codes for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    sizes = [level.groups for level in lattice.levels_of(lattice.bottom)]
    return collapsed(lattice.bottom, codes, weights, [*sizes, *counted.sizes])


def collapsed(node: Node, codes: Codes, weights: NDArray[np.int64], sizes: Sequence[int]) -> LevelCounts:
    """Return the counts of a node from entries in any order, some of which may be equal."""
    cells = prod(sizes)
    if cells <= max(DENSE * len(codes), SMALL):
        key = np.zeros(len(codes), np.int64)
        for q, size in enumerate(sizes):
            key *= size
            key += codes[:, q]
        # Sums of floats are exact up to 2 ** 53 records.
        totals = np.bincount(key, weights, cells)
        occupied = np.flatnonzero(totals)
        distinct, rest = np.empty((len(occupied), len(sizes)), codes.dtype), occupied
        for q in range(len(sizes) - 1, -1, -1):  # np.unravel_index knows at most 64 columns
            rest, distinct[:, q] = np.divmod(rest, sizes[q])
        return LevelCounts(node, distinct, totals[occupied].astype(np.int64))
    distinct, line = collapse(codes, sizes)
    return LevelCounts(node, distinct, np.add.reduceat(weights[line.rows], line.starts[:-1]))


class CountedNodes:
    """The counts of the nodes of a lattice, each from the fewest entries that are at hand.

    work: the entries that were gone through so far.
    """

    def __init__(self, lattice: LevelLattice, base: LevelCounts, counted: CountedColumns) -> None:
        self._lattice, self._counted = lattice, counted
        self._kept: dict[Node, LevelCounts] = {base.node: base}
        self._base = base
        self.work = 0

    def counts(self, node: Node) -> LevelCounts:
        """Count a node that is not more specific than the records at hand."""
        if node in self._kept:
            return self._kept[node]
        nearest = min(
            (known for known in self._kept.values() if all(a <= b for a, b in zip(known.node, node, strict=True))),
            key=lambda known: len(known.codes),
        )
        counts = self._rolled_up(nearest, node)
        self.work += len(nearest.codes)
        if len(counts.codes) < WORTH_KEEPING * len(nearest.codes):
            self._kept[node] = counts
            self._forget()
        return counts

    def _forget(self) -> None:
        """Forget the oldest counts, if all together have too many entries."""
        entries = sum(len(known.codes) for known in self._kept.values()) - len(self._base.codes)
        most = max(KEPT * len(self._base.codes), LEAST_KEPT)
        for node in [known for known in self._kept if known != self._base.node]:
            if entries <= most:
                return
            entries -= len(self._kept.pop(node).codes)

    def _rolled_up(self, known: LevelCounts, node: Node) -> LevelCounts:
        codes = known.codes.copy()
        for q, (low, high) in enumerate(zip(known.node, node, strict=True)):
            if low < high:
                codes[:, q] = self._lattice.translation(q, low, high)[codes[:, q]]
        sizes = [level.groups for level in self._lattice.levels_of(node)]
        return collapsed(node, codes, known.weights, [*sizes, *self._counted.sizes])
