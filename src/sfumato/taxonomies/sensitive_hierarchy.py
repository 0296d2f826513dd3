"""A taxonomy over the values of a sensitive column, as the hierarchical distance of t-closeness needs it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.errors import InputError
from sfumato.requirements.requirement import Hierarchy
from sfumato.taxonomies.taxonomy import Taxonomy


def hierarchy_over(values: Sequence[str | None], taxonomy: Taxonomy, column: str) -> Hierarchy:
    """The taxonomy over ``values``, as text, numbered as they come; None is a value of its own under the root."""
    code = {leaf: place for place, leaf in enumerate(taxonomy.leaves)}
    beyond = len(taxonomy.leaves)
    leaves = np.array([beyond if value is None else code.get(value, -1) for value in values], np.int64)
    outside = int(np.count_nonzero(leaves < 0))
    if outside:
        raise InputError(
            f"the sensitive column {column!r} has {outside:,} different values that its taxonomy does not hold. "
            "Add them to the taxonomy, or correct the data."
        )
    height = np.zeros(len(taxonomy.labels), np.int64)
    for node in range(len(height) - 1, 0, -1):  # preorder: a node comes before those under it
        parent = taxonomy.parent[node]
        height[parent] = max(height[parent], height[node] + 1)
    tallest = max(int(height[0]), 1)
    order = np.argsort(leaves, kind="stable")
    in_order = leaves[order]
    below = np.arange(1, len(height))
    first = np.searchsorted(in_order, taxonomy.first[below])
    last = np.searchsorted(in_order, taxonomy.last[below], side="right")
    weight = (height[taxonomy.parent[below]] - height[below]) / (2 * tallest)
    if in_order.size and in_order[-1] == beyond:
        first, last = np.append(first, len(in_order) - 1), np.append(last, len(in_order))
        weight = np.append(weight, 0.5)
    some = last > first
    return Hierarchy(order, first[some], last[some], weight[some])
