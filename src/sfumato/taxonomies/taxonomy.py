"""A tree of named groups over the values of a categorical column.

The leaves are numbered depth-first, so the leaves under any node are consecutive codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.taxonomies.code_tree import CodeTree, nested_groups

ROOT = "*"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Taxonomy(CodeTree):
    """A tree whose nodes have names. The root is ``*``, and no two nodes have the same label."""

    leaves: tuple[str, ...]
    """Values in depth-first order: the position is the code."""
    labels: tuple[str, ...]
    """The released name of each node."""

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

    def node_of_label(self) -> dict[str, int]:
        """Return the node of each released label."""
        return {label: node for node, label in enumerate(self.labels)}


def grow(
    leaves: Sequence[str], groups: Sequence[Sequence[str]], labels: Sequence[Sequence[str]]
) -> tuple[Taxonomy, list[str]]:
    """Build the taxonomy of leaves in nested groups. Also return the labels that more than one of its nodes has.

    ``groups[level][row]`` is the group of a leaf and ``labels[level][row]`` its released name, the most general level
    first, without root and leaves. Children are in the order of their first appearance. Of groups with the same leaves,
    only the most specific becomes a node; a group of all leaves becomes none beside the root.
    """
    rows = len(leaves)
    appearance = [_first_appearance(group) for group in groups]
    order = np.lexsort((np.arange(rows), *reversed(appearance)))
    starts = []
    for rank in appearance:
        ordered = rank[order]
        starts.append(np.append(True, ordered[1:] != ordered[:-1])[:rows])
    tree, levels = nested_groups(starts, rows)
    level_labels = [[ROOT] * max(rows, 1), *labels, leaves]
    rows_of_nodes = order[tree.first].tolist() if rows else [0]
    taxonomy = Taxonomy(
        first=tree.first,
        last=tree.last,
        parent=tree.parent,
        leaves=tuple(leaves[row] for row in order.tolist()),
        labels=tuple(level_labels[level][row] for level, row in zip(levels.tolist(), rows_of_nodes, strict=True)),
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
