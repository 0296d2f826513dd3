"""A taxonomy over the values of a sensitive column, in the form that the hierarchical distance of t-closeness needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.errors import InputError
from sfumato.requirements.requirement import Hierarchy
from sfumato.taxonomies.taxonomy import Taxonomy


def hierarchy_over(values: Sequence[str | None], taxonomy: Taxonomy, column: str) -> Hierarchy:
    """Build the hierarchy over ``values``, numbered by position. None is a value of its own directly under the root."""
    code = {leaf: number for number, leaf in enumerate(taxonomy.leaves)}
    null = len(taxonomy.leaves)
    leaves = np.array([null if value is None else code.get(value, -1) for value in values], np.int64)
    outside = int(np.count_nonzero(leaves < 0))
    if outside:
        raise InputError(
            f"the sensitive column {column!r} has {outside:,} different values that are not in its taxonomy. "
            "Add them to the taxonomy, or correct the data."
        )
    height = np.zeros(len(taxonomy.labels), np.int64)
    for node in range(len(height) - 1, 0, -1):  # preorder: a node comes before those under it
        parent = taxonomy.parent[node]
        height[parent] = max(height[parent], height[node] + 1)
    tallest = max(int(height[0]), 1)
    order = np.argsort(leaves, kind="stable")
    sorted_leaves = leaves[order]
    nodes = np.arange(1, len(height))  # all but the root
    first = np.searchsorted(sorted_leaves, taxonomy.first[nodes])
    last = np.searchsorted(sorted_leaves, taxonomy.last[nodes], side="right")
    weight = (height[taxonomy.parent[nodes]] - height[nodes]) / (2 * tallest)
    if sorted_leaves.size and sorted_leaves[-1] == null:
        first, last = np.append(first, len(sorted_leaves) - 1), np.append(last, len(sorted_leaves))
        weight = np.append(weight, 0.5)
    occurs = last > first
    return Hierarchy(order, first[occurs], last[occurs], weight[occurs])
