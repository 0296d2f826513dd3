"""A tree of groups over the values of a categorical column.

The leaves are numbered depth-first, so the leaves under any node are consecutive codes. The lowest common ancestor of a
set of leaves is that of its smallest and its largest code, so a box of codes describes a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

ROOT = "*"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Taxonomy:
    """Nodes in preorder; node 0 is the root ``*``. A leaf is a node as well.

    No two nodes have the same leaves, except the root and the leaf of a taxonomy with one leaf. No two nodes have the
    same label. The taxonomy of a column without values is a single root with ``last`` = -1.
    """

    leaves: tuple[str, ...]
    """Values in depth-first order: the position is the code."""
    labels: tuple[str, ...]
    """The released name of each node."""
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    """The leaves of a node are the codes first..last, both included."""
    parent: NDArray[np.int32]
    """-1 for the root."""

    def __post_init__(self) -> None:
        for array in (self.first, self.last, self.parent):
            array.setflags(write=False)

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
            if last[node] > last[above[-1]] or (same_leaves and count > 1):
                return False
            above.append(node)
        leaf_nodes = self._leaf_nodes.tolist()
        return [first[node] for node in leaf_nodes] == list(range(count)) and self.leaves == tuple(
            self.labels[node] for node in leaf_nodes
        )

    @cached_property
    def levels(self) -> int:
        """The number of nodes on the longest path from a leaf to the root, both included."""
        count = 0
        nodes = self._leaf_nodes if self.leaves else np.zeros(1, dtype=np.int32)
        while nodes.size:
            count += 1
            nodes = self.parent[nodes]
            nodes = nodes[nodes >= 0]
        return count

    def ancestors(self) -> NDArray[np.int32]:
        """Return int32[leaves, levels]: the path from each leaf's node to the root; shorter paths repeat the root."""
        paths = np.empty((len(self.leaves), self.levels), dtype=np.int32)
        nodes = self._leaf_nodes
        for level in range(self.levels):
            paths[:, level] = nodes
            nodes = np.maximum(self.parent[nodes], 0)
        return paths

    def lowest_common_ancestor(self, low: NDArray[np.integer], high: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the lowest node above the leaf codes low..high, for every pair; 0 <= low <= high < leaves."""
        if low.size and not (low.min() >= 0 and high.max() < len(self.leaves) and bool((low <= high).all())):
            raise ValueError(f"leaf codes must satisfy 0 <= low <= high < {len(self.leaves)}")
        target = high.ravel()
        nodes: NDArray[np.int32] = self._leaf_nodes[low.ravel()]
        waiting = np.flatnonzero(self.last[nodes] < target)
        while waiting.size:
            nodes[waiting] = self.parent[nodes[waiting]]
            waiting = waiting[self.last[nodes[waiting]] < target[waiting]]
        return nodes.reshape(low.shape)

    def span(self) -> NDArray[np.int32]:
        """Return int32[nodes]: the number of leaves under each node."""
        return self.last - self.first + np.int32(1)

    def node_of_label(self) -> dict[str, int]:
        """Return the node of each released label."""
        return {label: node for node, label in enumerate(self.labels)}

    @cached_property
    def _leaf_nodes(self) -> NDArray[np.int32]:
        return np.flatnonzero((self.first == self.last) & (self.parent >= 0)).astype(np.int32)


def grow(
    leaves: Sequence[str], groups: Sequence[Sequence[str]], labels: Sequence[Sequence[str]]
) -> tuple[Taxonomy, list[str]]:
    """Build the taxonomy of leaves in nested groups. Also return the labels that more than one of its nodes has.

    ``groups[level][row]`` is the group of a leaf and ``labels[level][row]`` its released name, the most general level
    first, without root and leaves. Children are in the order of their first appearance. Of groups with the same leaves,
    only the most specific becomes a node; a group of all leaves becomes none beside the root.
    """
    if not leaves:
        return _root_alone(), []
    rows = len(leaves)
    appearance = [_first_appearance(group) for group in groups]
    order = np.lexsort((np.arange(rows), *reversed(appearance)))

    starts = [np.arange(rows) == 0]
    for rank in appearance:
        ordered = rank[order]
        starts.append(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    starts.append(np.ones(rows, dtype=np.bool_))
    level_labels = [[ROOT] * rows, *labels, leaves]

    first_parts: list[NDArray[np.int64]] = []
    last_parts: list[NDArray[np.int64]] = []
    parent_parts: list[NDArray[np.int64]] = []
    node_labels: list[str] = []
    nearest = np.zeros(rows, dtype=np.int64)  # the deepest node so far above each leaf
    for level, start in enumerate(starts):
        first = np.flatnonzero(start)
        last = np.append(first[1:], rows) - 1
        if level in (0, len(starts) - 1):
            kept = np.ones(first.size, dtype=np.bool_)
        else:
            subgroups = np.add.reduceat(starts[level + 1].astype(np.int64), first)
            kept = (subgroups > 1) & (last - first + 1 < rows)
        nodes = np.full(first.size, -1, dtype=np.int64)
        nodes[kept] = len(node_labels) + np.arange(np.count_nonzero(kept))
        first_parts.append(first[kept])
        last_parts.append(last[kept])
        parent_parts.append(nearest[first[kept]])
        node_labels.extend(level_labels[level][row] for row in order[first[kept]].tolist())
        node_of_leaf = np.repeat(nodes, last - first + 1)
        nearest = np.where(node_of_leaf >= 0, node_of_leaf, nearest)

    first, last, parent = (np.concatenate(part) for part in (first_parts, last_parts, parent_parts))
    # Nodes were collected from the root down, so a stable sort that puts a node before its descendants is the preorder.
    preorder = np.lexsort((np.arange(first.size), -last, first))
    position = np.empty(first.size, dtype=np.int32)
    position[preorder] = np.arange(first.size, dtype=np.int32)
    new_parent = position[parent[preorder]]
    new_parent[0] = -1
    taxonomy = Taxonomy(
        leaves=tuple(leaves[row] for row in order.tolist()),
        labels=tuple(node_labels[node] for node in preorder.tolist()),
        first=first[preorder].astype(np.int32),
        last=last[preorder].astype(np.int32),
        parent=new_parent,
    )
    return taxonomy, _repeated(taxonomy.labels)


def _root_alone() -> Taxonomy:
    return Taxonomy(
        leaves=(),
        labels=(ROOT,),
        first=np.array([0], dtype=np.int32),
        last=np.array([-1], dtype=np.int32),
        parent=np.array([-1], dtype=np.int32),
    )


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
