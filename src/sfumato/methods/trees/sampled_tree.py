"""A tree grown on a sample, and its correction once all records are counted (LeFevre 2008, section 5.2).

Three pure functions, for any engine that brings the records together:

1. ``grow_on_sample`` grows the tree of a method on a sample; each split passes the tests of ``sampled_tests``. A region
   that is expected to fit into memory is not divided further, and the tree does not exceed a given height.
2. ``RegionTree.leaves_of`` (or its arrays and ``descend``) then gives the leaf of every record.
3. ``undo_splits`` takes which nodes of the tree meet the requirements, counted over all records, and returns the node
   that each node now belongs to. A leaf that fails undoes the split of its parent, and so on upwards, until every
   remaining part meets the requirements or only the root is left.

The engine does the rest: it brings the records of each part together, and divides them to the end.

Differs from the paper: a branch of a domain without a record in the sample is added to its neighbour, since a few
records in a region of their own would undo the split. Growth stops where a part will fit into memory, because it is
then divided on all of its records.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.trees.mondrian import Start
from sfumato.methods.trees.region_tree import RegionTree
from sfumato.methods.trees.sampled_tests import ALPHA_LEVEL, least_sampled, sampled_tests, standard_errors
from sfumato.progress import Progress
from sfumato.requirements.conjunction import Conjunction


def grow_on_sample(
    start: Start,
    records: int,
    *,
    enough: int = 0,
    alpha: float | None = ALPHA_LEVEL,
    height: int | None = None,
    most_leaves: int | None = None,
) -> RegionTree:
    """Grow the tree on a sample of a table of ``records`` records; ``begin`` and ``end`` count those of the sample.

    start: of the records of the sample. enough: a region that probably has no more records is not divided. alpha: of
    the tests, None to take the sample at face value. most_leaves: the largest regions are divided first.
    """
    assert isinstance(start.tests, Conjunction)
    sample = len(start.rows)
    normal = standard_errors(max(start.sizes), alpha)
    least = least_sampled(int(start.ground.least[0]), sample, records, normal)
    divisible = max(2 * int(least[min(1, len(least) - 1)]), largest_sample(enough, sample, records) + 1)
    sampled_start = replace(
        start,
        ground=start.ground._replace(least=least, divisible=divisible),
        tests=sampled_tests(start.tests, sample, records, max(start.sizes), alpha),
    )
    tree = sampled_start.grown(Progress())
    return _without_gaps(tree, _kept_splits(tree, height, most_leaves))


def largest_sample(enough: int, sample: int, records: int) -> int:
    """Return how many records of a sample a region may have so that it probably has at most ``enough`` in all."""
    expected = enough * sample / records
    # w + 3 sqrt(w) <= expected: three standard errors of a count
    return int(max((np.sqrt(expected + 2.25) - 1.5) ** 2, 0)) if enough else 0


def undo_splits(tree: RegionTree, holds: NDArray[np.bool_], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the node whose part each node belongs to: itself, or its ancestor that becomes a leaf.

    holds, sizes: by node, over all records. A node without records is no class, so it need not hold.
    """
    leaf = tree.attribute < 0
    for node in range(len(leaf) - 1, 0, -1):  # children come after their parents
        if leaf[node] and sizes[node] and not holds[node]:
            leaf[tree.parent[node]] = True
    owner = np.arange(len(leaf))
    for node in range(1, len(leaf)):
        above = owner[tree.parent[node]]
        if leaf[above]:
            owner[node] = above
    return owner


def sums_of_children(tree: RegionTree, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts by node, given those of the leaves: int64[nodes, ...]."""
    counts = counts.copy()
    for node in range(len(counts) - 1, 0, -1):
        counts[tree.parent[node]] += counts[node]
    return counts


def _kept_splits(tree: RegionTree, height: int | None, most_leaves: int | None) -> NDArray[np.bool_]:
    """Return which nodes stay divided: bool[nodes]."""
    divided = tree.attribute >= 0
    depth = np.zeros(len(divided), np.int64)
    children = np.bincount(tree.parent[1:][tree.begin[1:] < tree.end[1:]], minlength=len(divided))
    for node in range(1, len(divided)):
        depth[node] = depth[tree.parent[node]] + 1
    if height is not None:
        divided &= depth < height
    if most_leaves is None:
        return divided
    kept, leaves = np.zeros(len(divided), np.bool_), 1
    waiting = [(0, 0)]
    below: dict[int, list[int]] = {}
    for node in range(1, len(divided)):
        below.setdefault(int(tree.parent[node]), []).append(node)
    while waiting:
        _, node = heappop(waiting)
        if divided[node] and leaves + children[node] - 1 <= most_leaves:
            kept[node], leaves = True, leaves + int(children[node]) - 1
            for child in below[node]:
                heappush(waiting, (int(tree.begin[child] - tree.end[child]), child))
    return kept


def _without_gaps(tree: RegionTree, divided: NDArray[np.bool_]) -> RegionTree:
    """Return the tree with these splits only; regions without records are added to their neighbours."""
    below: dict[int, list[int]] = {}
    for node in range(1, len(tree.parent)):
        if tree.begin[node] < tree.end[node]:
            below.setdefault(int(tree.parent[node]), []).append(node)
    nodes, parent, first_child = [0], [-1], []
    low, high = [tree.low[0].copy()], [tree.high[0].copy()]
    i = 0
    while i < len(nodes):
        node = nodes[i]
        if not divided[node]:
            first_child.append(-1)
            i += 1
            continue
        first_child.append(len(nodes))
        children, q = below[node], int(tree.attribute[node])
        for number, child in enumerate(children):
            nodes.append(child)
            parent.append(i)
            low.append(low[i].copy())
            high.append(high[i].copy())
            if number:
                low[-1][q] = tree.low[child, q]
                high[-2][q] = tree.low[child, q] - 1
        i += 1
    kept = np.array(nodes)
    return RegionTree(
        parent=np.array(parent),
        attribute=np.where(divided[kept], tree.attribute[kept], -1),
        first_child=np.array(first_child),
        low=np.array(low),
        high=np.array(high),
        box_low=tree.box_low[kept],
        box_high=tree.box_high[kept],
        begin=tree.begin[kept],
        end=tree.end[kept],
    )
