"""A tree of nested groups over consecutive codes.

The codes under any node are consecutive. The lowest common ancestor of a set of codes is that of its smallest and its
largest code, so a box of codes describes a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CodeTree:
    """Nodes in preorder; node 0 is the root. A code is a node as well, a leaf.

    No two nodes have the same codes, except that the root may have a single child: the leaf of a tree with one code, or
    a group that is kept beside the root. A tree without codes is a single root with ``last`` = -1.
    """

    first: NDArray[np.int32]
    last: NDArray[np.int32]
    """The codes of a node are first..last, both included."""
    parent: NDArray[np.int32]
    """-1 for the root."""

    def __post_init__(self) -> None:
        for array in (self.first, self.last, self.parent):
            array.setflags(write=False)

    @property
    def codes(self) -> int:
        """The number of codes."""
        return int(self.last[0]) + 1

    @cached_property
    def levels(self) -> int:
        """The number of nodes on the longest path from a leaf to the root, both included."""
        count = 0
        nodes = self._leaf_nodes if self.codes else np.zeros(1, dtype=np.int32)
        while nodes.size:
            count += 1
            nodes = self.parent[nodes]
            nodes = nodes[nodes >= 0]
        return count

    def ancestors(self) -> NDArray[np.int32]:
        """Return int32[codes, levels]: the path from each leaf to the root; shorter paths repeat the root."""
        paths = np.empty((self.codes, self.levels), dtype=np.int32)
        nodes = self._leaf_nodes
        for level in range(self.levels):
            paths[:, level] = nodes
            nodes = np.maximum(self.parent[nodes], 0)
        return paths

    def lowest_common_ancestor(self, low: NDArray[np.integer], high: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the lowest node above the codes low..high, for every pair; 0 <= low <= high < codes."""
        if low.size and not (low.min() >= 0 and high.max() < self.codes and bool((low <= high).all())):
            raise ValueError(f"leaf codes must satisfy 0 <= low <= high < {self.codes}")
        target = high.ravel()
        nodes: NDArray[np.int32] = self._leaf_nodes[low.ravel()]
        waiting = np.flatnonzero(self.last[nodes] < target)
        while waiting.size:
            nodes[waiting] = self.parent[nodes[waiting]]
            waiting = waiting[self.last[nodes[waiting]] < target[waiting]]
        return nodes.reshape(low.shape)

    def span(self) -> NDArray[np.int32]:
        """Return int32[nodes]: the number of codes under each node."""
        return self.last - self.first + np.int32(1)

    @cached_property
    def _leaf_nodes(self) -> NDArray[np.int32]:
        return np.flatnonzero((self.first == self.last) & (self.parent >= 0)).astype(np.int32)


def nested_groups(
    starts: Sequence[NDArray[np.bool_]], codes: int, *, whole_group: bool = False
) -> tuple[CodeTree, NDArray[np.int64]]:
    """Build the tree of nested groups. Also return the level of each node: 0 for the root, the last for the codes.

    starts[level]: bool[codes], where the groups of a level begin, the most general level first, without root and codes.
    Of groups with the same codes, only the most specific becomes a node; a group of all codes becomes none beside the
    root, unless ``whole_group`` keeps it.
    """
    if not codes:
        return CodeTree(
            first=np.array([0], np.int32), last=np.array([-1], np.int32), parent=np.array([-1], np.int32)
        ), np.zeros(1, np.int64)
    everywhere = np.ones(codes, dtype=np.bool_)
    all_starts = [np.arange(codes) == 0, *starts, everywhere]
    first_parts: list[NDArray[np.int64]] = []
    last_parts: list[NDArray[np.int64]] = []
    parent_parts: list[NDArray[np.int64]] = []
    level_parts: list[NDArray[np.int64]] = []
    nearest = np.zeros(codes, dtype=np.int64)  # the deepest node so far above each code
    count = 0
    for level, start in enumerate(all_starts):
        first = np.flatnonzero(start)
        last = np.append(first[1:], codes) - 1
        if level in (0, len(all_starts) - 1):
            kept = np.ones(first.size, dtype=np.bool_)
        else:
            subgroups = np.add.reduceat(all_starts[level + 1].astype(np.int64), first)
            kept = (subgroups > 1) & (whole_group | (last - first + 1 < codes))
        nodes = np.full(first.size, -1, dtype=np.int64)
        nodes[kept] = count + np.arange(np.count_nonzero(kept))
        first_parts.append(first[kept])
        last_parts.append(last[kept])
        parent_parts.append(nearest[first[kept]])
        level_parts.append(np.full(np.count_nonzero(kept), level))
        count += int(np.count_nonzero(kept))
        node_of_code = np.repeat(nodes, last - first + 1)
        nearest = np.where(node_of_code >= 0, node_of_code, nearest)
    first, last, parent, levels = map(np.concatenate, (first_parts, last_parts, parent_parts, level_parts))
    # Nodes were collected from the root down, so a stable sort that puts a node before its descendants is the preorder.
    preorder = np.lexsort((np.arange(first.size), -last, first))
    position = np.empty(first.size, dtype=np.int32)
    position[preorder] = np.arange(first.size, dtype=np.int32)
    new_parent = position[parent[preorder]]
    new_parent[0] = -1
    tree = CodeTree(first=first[preorder].astype(np.int32), last=last[preorder].astype(np.int32), parent=new_parent)
    return tree, levels[preorder]
