"""Agglomeration: clusters are joined, the cheapest pair first, until every one meets the requirements.

It begins with equal records, or with single ones where requirements concern sensitive values, and joins the two
clusters that add the least cost, of which at least one is not a class yet. Joining must reduce what the clusters lack
(``shortfall``) as long as there is such a pair: joining two records of the same sensitive value makes neither more
diverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import COST, FIRST, HIGH, LOW, SIZE

LAST, LACK, NEAREST, ADDED, KNOWN, FIELDS = range(3, 9)  # columns of Clusters.facts, after those of MutableClasses


class Clusters(NamedTuple):
    """Clusters on their way to classes. A cluster of size 0 was joined to another.

    after: int64[n], the next row in the list of the cluster. facts: int64[c, 8], the first row, the size, the cost of
    one record, the last row, the records that it lacks to be a class, the cluster to join it with, the cost that this
    adds, and whether these two are up to date. box: int64[c, 2, d].
    """

    after: NDArray[np.int64]
    facts: NDArray[np.int64]
    box: NDArray[np.int64]


@kernel
def agglomerate(part, rules, tally, owner):
    """Put the rows of a part into classes; return how many there are. owner: int64[n], filled with the class of each.

    All rows together must meet the requirements.
    """
    clusters = first_clusters(part, rules, tally, owner)
    after, facts, _ = clusters
    while True:
        one, least = NONE, INFINITE
        for cluster in range(len(facts)):
            if facts[cluster, SIZE] > 0 and facts[cluster, LACK] > 0 and facts[cluster, ADDED] < least:
                one, least = cluster, facts[cluster, ADDED]
        if one == NONE:
            break
        other = facts[one, NEAREST]
        if not facts[one, KNOWN]:
            find_nearest(part, clusters, one, rules, tally)
            facts[one, KNOWN] = 1
            continue
        join(part, clusters, one, other, rules, tally)
        facts[other, KNOWN], facts[other, ADDED] = 0, 0
        for cluster in range(len(facts)):
            # The nearest cluster has grown and is mostly farther away now: search again when its turn comes.
            nearest = facts[cluster, NEAREST]
            if nearest == one or nearest == other:  # noqa: PLR1714, SIM109 - a tuple takes longer to compile
                facts[cluster, KNOWN] = 0
    count = 0
    for cluster in range(len(facts)):
        if facts[cluster, SIZE] > 0:
            row = facts[cluster, FIRST]
            while row != NONE:
                owner[row] = count
                row = after[row]
            count += 1
    return count


@inlined_kernel
def first_clusters(part, rules, tally, owner):
    """Return the clusters that agglomeration begins with. owner: int64[n], overwritten."""
    codes = part.codes
    n, d = codes.shape
    count = 0
    for row in range(n):
        owner[row] = NONE
        if len(tally.counts) == 0:
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
    after, facts, box = np.empty(n, np.int64), np.zeros((count, FIELDS), np.int64), np.empty((count, 2, d), np.int64)
    clusters = Clusters(after, facts, box)
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
        facts[cluster, LACK] = lack_of(part, clusters, cluster, NONE, rules, tally)
    return clusters


@inlined_kernel
def join(part, clusters, one, other, rules, tally):
    """Join cluster ``one`` to cluster ``other``."""
    after, facts, box = clusters
    after[facts[other, LAST]] = facts[one, FIRST]
    facts[other, LAST] = facts[one, LAST]
    facts[other, SIZE] += facts[one, SIZE]
    facts[one, SIZE] = 0
    facts[other, COST] = 0
    for q in range(box.shape[2]):
        low, high = min(box[one, LOW, q], box[other, LOW, q]), max(box[one, HIGH, q], box[other, HIGH, q])
        box[other, LOW, q], box[other, HIGH, q] = low, high
        facts[other, COST] += attribute_cost(rules.layout, rules.units, q, low, high)
    facts[other, LACK] = lack_of(part, clusters, other, NONE, rules, tally)


@inner_kernel
def lack_of(part, clusters, cluster, other, rules, tally):
    """Return how many records a cluster, or two together, lack to be a class; other: NONE for one cluster."""
    after, facts, _ = clusters
    if len(tally.counts) == 0:
        size = facts[cluster, SIZE] + (facts[other, SIZE] if other != NONE else 0)
        return max(rules.least - size, 0)
    count = 0
    for second in range(2):
        label = other if second else cluster
        row = facts[label, FIRST] if label != NONE else NONE
        while row != NONE:
            tally.rows[count] = row
            row, count = after[row], count + 1
    return tally.lack(part.values, tally.rows, count, rules.least, tally.whole, tally.real, tally.counts)


@inlined_kernel
def reduces_lack(part, clusters, cluster, other, rules, tally):
    """Return whether two clusters lack less together than separately. With k alone they always do."""
    together = lack_of(part, clusters, cluster, other, rules, tally)
    return together < clusters.facts[cluster, LACK] + clusters.facts[other, LACK]


@inlined_kernel
def find_nearest(part, clusters, cluster, rules, tally):
    """Find the cluster that is cheapest to join, among those that reduce what is lacking if there are any."""
    (_, facts, box), (layout, units, _), is_counted = clusters, rules, len(tally.counts) > 0
    nearest, least_added = NONE, INFINITE
    for any_other in range(2):
        for other in range(len(facts)):
            if other != cluster and facts[other, SIZE] > 0:
                added = increase(facts, box, cluster, other, layout, units, least_added)
                if added < least_added and (
                    any_other or not is_counted or reduces_lack(part, clusters, cluster, other, rules, tally)
                ):
                    nearest, least_added = other, added
        if nearest != NONE:
            break
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
