"""Agglomeration: records that are joined, the cheapest pair first, until every class meets the requirements.

It begins with equal records, or single ones where requirements are on sensitive values, and joins the two clusters that
add the least cost to each other, of which at least one is not a class yet. What a cluster lacks (``lacking``) has to
become less by it, as long as there is such a pair: joining two records of one sensitive value brings neither of them
nearer to being diverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.search.mutable_classes import COST, FIRST, HIGH, LOW, SIZE

LAST, LACK, NEAREST, AWAY, KNOWN, FIELDS = range(3, 9)  # of Clusters.about, after those of Classes.about


class Clusters(NamedTuple):
    """What becomes classes. A cluster of size 0 was joined to another.

    after: int64[n], the row after each in the list of its cluster. about: int64[c, 8], the first row, the size, the
    cost of one record, the last row, what it lacks to be a class, the cluster that it is to be joined with, what that
    adds, and whether that is still the nearest. box: int64[c, 2, d].
    """

    after: NDArray[np.int64]
    about: NDArray[np.int64]
    box: NDArray[np.int64]


@kernel
def agglomerate(part, asked, tally, owner):
    """Put the rows of a part into classes: how many there are. owner: int64[n], filled.

    All rows together must meet the requirements.
    """
    clusters = begun(part, asked, tally, owner)
    after, about, _ = clusters
    while True:
        one, least = NONE, INFINITE
        for cluster in range(len(about)):
            if about[cluster, SIZE] > 0 and about[cluster, LACK] > 0 and about[cluster, AWAY] < least:
                one, least = cluster, about[cluster, AWAY]
        if one == NONE:
            break
        other = about[one, NEAREST]
        if not about[one, KNOWN]:
            find_nearest(part, clusters, one, asked, tally)
            about[one, KNOWN] = 1
            continue
        join(part, clusters, one, other, asked, tally)
        about[other, KNOWN], about[other, AWAY] = 0, 0
        for cluster in range(len(about)):
            # What was nearest to it is larger now, and mostly farther away: it is looked for when its turn comes.
            nearest = about[cluster, NEAREST]
            if nearest == one or nearest == other:  # noqa: PLR1714, SIM109 - a tuple takes longer to compile
                about[cluster, KNOWN] = 0
    count = 0
    for cluster in range(len(about)):
        if about[cluster, SIZE] > 0:
            row = about[cluster, FIRST]
            while row != NONE:
                owner[row] = count
                row = after[row]
            count += 1
    return count


@kernel
def begun(part, asked, tally, owner):
    """The clusters that agglomeration begins with. owner: int64[n], overwritten."""
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
    after, about, box = np.empty(n, np.int64), np.zeros((count, FIELDS), np.int64), np.empty((count, 2, d), np.int64)
    clusters = Clusters(after, about, box)
    for row in range(n):
        cluster = owner[row]
        if about[cluster, SIZE] == 0:
            about[cluster, FIRST] = row
            for q in range(d):
                box[cluster, LOW, q], box[cluster, HIGH, q] = codes[row, q], codes[row, q]
        else:
            after[about[cluster, LAST]] = row
        after[row] = NONE
        about[cluster, LAST] = row
        about[cluster, SIZE] += 1
    for cluster in range(count):
        about[cluster, LACK] = lack_of(part, clusters, cluster, NONE, asked, tally)
    return clusters


@kernel
def join(part, clusters, one, other, asked, tally):
    """Join a cluster to another."""
    after, about, box = clusters
    after[about[other, LAST]] = about[one, FIRST]
    about[other, LAST] = about[one, LAST]
    about[other, SIZE] += about[one, SIZE]
    about[one, SIZE] = 0
    about[other, COST] = 0
    for q in range(box.shape[2]):
        low, high = min(box[one, LOW, q], box[other, LOW, q]), max(box[one, HIGH, q], box[other, HIGH, q])
        box[other, LOW, q], box[other, HIGH, q] = low, high
        about[other, COST] += attribute_cost(asked.layout, asked.units, q, low, high)
    about[other, LACK] = lack_of(part, clusters, other, NONE, asked, tally)


@kernel
def lack_of(part, clusters, cluster, other, asked, tally):
    """What a cluster, or two of them together, lack to be a class."""
    after, about, _ = clusters
    if len(tally.counts) == 0:
        size = about[cluster, SIZE] + (about[other, SIZE] if other != NONE else 0)
        return max(asked.least - size, 0)
    count = 0
    for second in range(2):
        label = other if second else cluster
        row = about[label, FIRST] if label != NONE else NONE
        while row != NONE:
            tally.rows[count] = row
            row, count = after[row], count + 1
    return tally.lack(part.values, tally.rows, count, asked.least, tally.whole, tally.real, tally.counts)


@kernel
def brings_nearer(part, clusters, cluster, other, asked, tally):
    """Whether two clusters lack less together than apart; with k alone they always do."""
    if len(tally.counts) == 0:
        return True
    together = lack_of(part, clusters, cluster, other, asked, tally)
    return together < clusters.about[cluster, LACK] + clusters.about[other, LACK]


@kernel
def find_nearest(part, clusters, cluster, asked, tally):
    """Find the cluster that adds least to another: one that brings it nearer to being a class, if there is any."""
    about = clusters.about
    nearest, away = NONE, np.int64(INFINITE)
    for any_other in range(2):
        for other in range(len(about)):
            if other != cluster and about[other, SIZE] > 0:
                added = increase(about, clusters.box, cluster, other, asked, away)
                if added < away and (any_other or brings_nearer(part, clusters, cluster, other, asked, tally)):
                    nearest, away = other, added
        if nearest != NONE:
            break
    about[cluster, NEAREST], about[cluster, AWAY] = nearest, away


@kernel
def increase(about, box, one, other, asked, limit):
    """What joining two clusters, or classes, adds to the cost; ``limit`` where it is not below."""
    together = about[one, SIZE] + about[other, SIZE]
    apart = about[one, SIZE] * about[one, COST] + about[other, SIZE] * about[other, COST]
    below = INFINITE if limit >= INFINITE else (limit + apart) // together + 1
    total = np.int64(0)
    for q in range(box.shape[2]):
        low, high = min(box[one, LOW, q], box[other, LOW, q]), max(box[one, HIGH, q], box[other, HIGH, q])
        total += attribute_cost(asked.layout, asked.units, q, low, high)
        if total >= below:
            return limit
    return total * together - apart
