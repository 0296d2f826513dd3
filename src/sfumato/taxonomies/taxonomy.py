"""A tree of named groups over the values of a categorical column.

The leaves are numbered depth-first, so the leaves under any node are consecutive codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import TaxonomyError
from sfumato.taxonomies.code_tree import CodeTree, nested_groups

ROOT = "*"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Taxonomy(CodeTree):
    """A tree whose nodes have names. The root is ``*``, and no two nodes have the same label.

    Its levels are numbered: 0 are the values, 1 the first step more general, and the last is ``*``. A taxonomy that is
    cut at a level has the groups of that level as its leaves.
    """

    leaves: tuple[str, ...]
    """What a code is released as, in depth-first order: the position is the code."""
    labels: tuple[str, ...]
    """The released name of each node."""
    level_labels: tuple[tuple[str, ...], ...] = ()
    """What each leaf is released as on every level between the leaves and ``*``, from fine to coarse."""
    finest: int = 0
    """The number of the level that the leaves are on."""
    members: Mapping[str, int] = field(default_factory=dict)
    """The leaf of every value, where the leaves are groups of values."""

    def __repr__(self) -> str:
        # Leaves may be cells of the table, so only their number is shown.
        return f"Taxonomy({len(self.leaves)} leaves, {len(self.labels)} nodes, {self.levels} levels)"

    def is_tree(self) -> bool:
        """Whether the nodes are what this class promises. What a file says about them may be wrong."""
        count, nodes = len(self.leaves), len(self.labels)
        if not nodes or len(set(self.labels)) < nodes or len(set(self.leaves)) < count:
            return False
        if (self.labels[0], self.first[0], self.last[0], self.parent[0]) != (ROOT, 0, count - 1, -1):
            return False
        first, last, parent = self.first.tolist(), self.last.tolist(), self.parent.tolist()
        above = [0]  # the nodes that are open: each has the next one under it
        for node in range(1, nodes):
            while above and last[above[-1]] < first[node]:
                above.pop()
            if not above or parent[node] != above[-1] or not first[above[-1]] <= first[node] <= last[node]:
                return False
            same_leaves = (first[node], last[node]) == (first[above[-1]], last[above[-1]])
            if last[node] > last[above[-1]] or (same_leaves and count > 1 and above[-1] != 0):
                return False
            above.append(node)
        leaf_nodes = self._leaf_nodes.tolist()
        return [first[node] for node in leaf_nodes] == list(range(count)) and self.leaves == tuple(
            self.labels[node] for node in leaf_nodes
        )

    @property
    def top_level(self) -> int:
        """The number of the level that is ``*``."""
        return self.finest + len(self.level_labels) + 1

    @cached_property
    def code_of_value(self) -> Mapping[str, int]:
        """The code of every value that the taxonomy knows."""
        return self.members or {leaf: code for code, leaf in enumerate(self.leaves)}

    def values_under(self) -> NDArray[np.int64]:
        """Return int64[nodes]: the number of values under each node."""
        if not self.members:
            return self.span().astype(np.int64)
        counts = np.bincount(np.fromiter(self.members.values(), np.int64), minlength=self.codes)
        before = np.append(0, np.cumsum(counts))
        return np.asarray(before[self.last + 1] - before[self.first])

    def node_of_label(self) -> dict[str, int]:
        """Return the node of each released label. A group without a node of its own is the node with its leaves."""
        nodes = {label: node for node, label in enumerate(self.labels)}
        for labels in self.level_labels:
            first = np.flatnonzero([True, *(one != other for one, other in pairwise(labels))])[: len(labels)]
            last = np.append(first[1:], len(labels)) - 1
            for code, node in zip(first.tolist(), self.lowest_common_ancestor(first, last).tolist(), strict=True):
                nodes.setdefault(labels[code], node)
        return nodes

    def level_codes(self, level: int) -> NDArray[np.uint32]:
        """Return uint32[codes]: the number of the group of each leaf on a level below ``*``."""
        if level == self.finest:
            return np.arange(self.codes, dtype=np.uint32)
        labels = self.level_labels[level - self.finest - 1]
        begins = np.array([False, *(one != other for one, other in pairwise(labels))][: len(labels)], np.bool_)
        return np.cumsum(begins).astype(np.uint32)

    def cut(self, finest: int, coarsest: int | None = None) -> Taxonomy:
        """Return the taxonomy between two levels: the groups of ``finest`` are its leaves.

        With ``coarsest``, the levels above it are left out, and a group of all leaves has a node of its own.
        """
        group = self.level_codes(finest)
        first = np.flatnonzero(np.append(True, group[1:] != group[:-1])[: len(group)]).tolist()
        below = finest - self.finest
        shown = self.leaves if below == 0 else self.level_labels[below - 1]
        highest = len(self.level_labels) if coarsest is None else min(coarsest - self.finest, len(self.level_labels))
        upper = [tuple(labels[code] for code in first) for labels in self.level_labels[below:highest]]
        coarse_to_fine = list(reversed(upper))
        taxonomy, repeated = grow(
            [shown[code] for code in first], coarse_to_fine, coarse_to_fine, whole_group=coarsest is not None
        )
        if repeated:
            raise TaxonomyError(
                f"with level {finest} as the finest, {len(repeated)} names would stand for two different sets of "
                "values. Give the groups of a taxonomy file different names, or choose another level."
            )
        members = {} if finest == 0 else {value: int(group[code]) for value, code in self.code_of_value.items()}
        return replace(taxonomy, level_labels=tuple(upper), finest=finest, members=members)


def grow(
    leaves: Sequence[str],
    groups: Sequence[Sequence[str]],
    labels: Sequence[Sequence[str]],
    *,
    whole_group: bool = False,
) -> tuple[Taxonomy, list[str]]:
    """Build the taxonomy of leaves in nested groups. Also return the labels that more than one of its nodes has.

    ``groups[level][row]`` is the group of a leaf and ``labels[level][row]`` its released name, the most general level
    first, without root and leaves. Children are in the order of their first appearance. Of groups with the same leaves,
    only the most specific becomes a node; a group of all leaves becomes none beside the root, unless ``whole_group``
    keeps it.
    """
    rows = len(leaves)
    appearance = [_first_appearance(group) for group in groups]
    order = np.lexsort((np.arange(rows), *reversed(appearance)))
    starts = []
    for rank in appearance:
        ordered = rank[order]
        starts.append(np.append(True, ordered[1:] != ordered[:-1])[:rows])
    tree, levels = nested_groups(starts, rows, whole_group=whole_group)
    level_labels = [[ROOT] * max(rows, 1), *labels, leaves]
    rows_of_nodes = order[tree.first].tolist() if rows else [0]
    taxonomy = Taxonomy(
        first=tree.first,
        last=tree.last,
        parent=tree.parent,
        leaves=tuple(leaves[row] for row in order.tolist()),
        labels=tuple(level_labels[level][row] for level, row in zip(levels.tolist(), rows_of_nodes, strict=True)),
        level_labels=tuple(tuple(level[row] for row in order.tolist()) for level in reversed(labels)),
    )
    return taxonomy, _repeated(taxonomy.labels)


def _first_appearance(group: Sequence[str]) -> NDArray[np.int64]:
    """Return for each row the first row of its group."""
    first_row: dict[str, int] = {}
    return np.fromiter((first_row.setdefault(key, row) for row, key in enumerate(group)), dtype=np.int64)


def _repeated(labels: Sequence[str]) -> list[str]:
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for label in labels:
        if label in seen:
            repeated[label] = None
        seen.add(label)
    return list(repeated)
