"""Agglomeration: clusters are joined, the cheapest pair first, until every one meets the requirements.

It begins with equal records, or with single ones where requirements concern sensitive values, and joins the two
clusters that add the least cost, of which at least one is not a class yet. Joining must reduce what the clusters lack
(``shortfall``) as long as there is such a pair: joining two records of the same sensitive value makes neither more
diverse.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import COST, FIRST, HIGH, LOW, SIZE
from sfumato.methods.search.shortfall import ATTRIBUTES, ROWS

LAST, LACK, NEAREST, ADDED, KNOWN, FIELDS = range(3, 9)  # columns of the facts, after those of ``mutable_classes``


class ClusterSpace(NamedTuple):
    """Working space for clusters on their way to classes.

    after: int64[n], the next row in the list of the cluster. facts: int64[n, 8], the first row, the size and the cost
    of one record, the last row, the records that it lacks to be a class, the cluster to join it with, the cost that
    this adds, and whether these two are up to date; a cluster of size 0 was joined to another. box: int64[n, 2, d].
    """

    after: NDArray[np.int64]
    facts: NDArray[np.int64]
    box: NDArray[np.int64]


def cluster_space(rows: int, attributes: int) -> ClusterSpace:
    """Return working space for the clusters of up to ``rows`` rows."""
    box = np.empty((rows, 2, attributes), np.int64)
    return ClusterSpace(np.empty(rows, np.int64), np.empty((rows, FIELDS), np.int64), box)


@inner_kernel
def agglomerate(codes, values, layout, units, least, lack, space, real, after, facts, box, owner):
    """Put the rows of a part into classes; return how many there are. owner: int64[n], filled with the class of each.

    All rows together must meet the requirements. after, facts, box: see ClusterSpace, overwritten.
    """
    clusters = first_clusters(codes, values, least, lack, space, real, after, facts, box, owner)
    one: Any = np.int64(0)
    while one != NONE:
        one, least_added = NONE, INFINITE
        for cluster in range(clusters):
            if facts[cluster, SIZE] > 0 and facts[cluster, LACK] > 0 and facts[cluster, ADDED] < least_added:
                one, least_added = cluster, facts[cluster, ADDED]
        if one != NONE and not facts[one, KNOWN]:
            find_nearest(values, after, facts, box, clusters, one, layout, units, least, lack, space, real)
            facts[one, KNOWN] = 1
        elif one != NONE:
            other = facts[one, NEAREST]
            join(values, after, facts, box, one, other, layout, units, least, lack, space, real)
            facts[other, KNOWN], facts[other, ADDED] = 0, 0
            for cluster in range(clusters):
                # The nearest cluster has grown and is mostly farther away now: search again when its turn comes.
                nearest = facts[cluster, NEAREST]
                if nearest == one or nearest == other:  # noqa: PLR1714, SIM109 - a tuple takes longer to compile
                    facts[cluster, KNOWN] = 0
    count = 0
    for cluster in range(clusters):
        if facts[cluster, SIZE] > 0:
            row = facts[cluster, FIRST]
            while row != NONE:
                owner[row] = count
                row = after[row]
            count += 1
    return count


@inlined_kernel
def first_clusters(codes, values, least, lack, space, real, after, facts, box, owner):
    """Fill in the clusters that agglomeration begins with; return how many. owner: int64[n], overwritten."""
    n, d = codes.shape
    count = 0
    for row in range(n):
        owner[row] = NONE
        if space[ATTRIBUTES] == 0:
            for before in range(row):
                q = 0
                while q < d and codes[before, q] == codes[row, q]:
                    q += 1
                if q == d:
                    owner[row] = owner[before]
                    break
        if owner[row] == NONE:
            owner[row] = count
            count += 1
    for cluster in range(count):
        for field in range(FIELDS):
            facts[cluster, field] = 0
    for row in range(n):
        cluster = owner[row]
        if facts[cluster, SIZE] == 0:
            facts[cluster, FIRST] = row
            for q in range(d):
                box[cluster, LOW, q], box[cluster, HIGH, q] = codes[row, q], codes[row, q]
        else:
            after[facts[cluster, LAST]] = row
        after[row] = NONE
        facts[cluster, LAST] = row
        facts[cluster, SIZE] += 1
    for cluster in range(count):
        facts[cluster, LACK] = lack_of(values, after, facts, cluster, NONE, least, lack, space, real)
    return count


@inner_kernel
def join(values, after, facts, box, one, other, layout, units, least, lack, space, real):
    """Join cluster ``one`` to cluster ``other``."""
    after[facts[other, LAST]] = facts[one, FIRST]
    facts[other, LAST] = facts[one, LAST]
    facts[other, SIZE] += facts[one, SIZE]
    facts[one, SIZE] = 0
    facts[other, COST] = 0
    for q in range(box.shape[2]):
        low, high = min(box[one, LOW, q], box[other, LOW, q]), max(box[one, HIGH, q], box[other, HIGH, q])
        box[other, LOW, q], box[other, HIGH, q] = low, high
        facts[other, COST] += attribute_cost(layout, units, q, low, high)
    facts[other, LACK] = lack_of(values, after, facts, other, NONE, least, lack, space, real)


@inner_kernel
def lack_of(values, after, facts, cluster, other, least, lack, space, real):
    """Return how many records a cluster, or two together, lack to be a class; other: NONE for one cluster."""
    size = facts[cluster, SIZE] + (facts[other, SIZE] if other != NONE else 0)
    lacking = max(least - size, 0)
    if space[ATTRIBUTES] > 0:
        begin, count = space[ROWS], np.int64(0)
        for second in range(2):
            label = other if second else cluster
            row = facts[label, FIRST] if label != NONE else NONE
            while row != NONE:
                space[begin + count] = row
                row, count = after[row], count + 1
        lacking = lack(values, count, least, space, real)
    return lacking


@inner_kernel
def find_nearest(values, after, facts, box, clusters, cluster, layout, units, least, lack, space, real):
    """Find the cluster that is cheapest to join, among those that reduce what is lacking if there are any.

    With k alone, all do. clusters: how many there are.
    """
    nearest, least_added, any_other = NONE, INFINITE, 0
    while any_other < 2 and nearest == NONE:
        for other in range(clusters):
            if other != cluster and facts[other, SIZE] > 0:
                added = increase(facts, box, cluster, other, layout, units, least_added)
                if added < least_added:
                    reduces = any_other == 1 or space[ATTRIBUTES] == 0
                    if not reduces:
                        together = lack_of(values, after, facts, cluster, other, least, lack, space, real)
                        reduces = together < facts[cluster, LACK] + facts[other, LACK]
                    if reduces:
                        nearest, least_added = other, added
        any_other += 1
    facts[cluster, NEAREST], facts[cluster, ADDED] = nearest, least_added


@inner_kernel
def increase(facts, box, one, other, layout, units, limit):
    """Return the cost that joining two clusters, or classes, adds, or ``limit`` where it is not below that."""
    size = facts[one, SIZE] + facts[other, SIZE]
    cost_before = facts[one, SIZE] * facts[one, COST] + facts[other, SIZE] * facts[other, COST]
    below = INFINITE if limit >= INFINITE else (limit + cost_before) // size + 1
    total, q = np.int64(0), np.int64(0)
    while q < box.shape[2] and total < below:
        low, high = min(box[one, LOW, q], box[other, LOW, q]), max(box[one, HIGH, q], box[other, HIGH, q])
        total += attribute_cost(layout, units, q, low, high)
        q += 1
    return total * size - cost_before if total < below else limit
