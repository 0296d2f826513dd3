"""Agglomeration: records that are joined, the cheapest pair first, until every class meets the requirements.

It begins with equal records, or single ones where requirements are on sensitive values, and joins the two clusters that
add the least cost to each other, of which at least one is not a class yet. What a cluster lacks (``classing.lacking``)
has to become less by it, as long as there is such a pair: joining two records of one sensitive value brings neither of
them nearer to being diverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels import kernel
from sfumato.losses.costs import attribute_cost, box_cost
from sfumato.methods.classing import INFINITE, NONE, lacking


class Clusters(NamedTuple):
    """What becomes classes. A cluster of size 0 was joined to another.

    after: int64[n], the row after each in the list of its cluster. By cluster: first and last row, size, cost of one
    record, what it lacks to be a class, the cluster that it is to be joined with and what that adds, and the box.
    """

    after: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    size: NDArray[np.int64]
    cost: NDArray[np.int64]
    lack: NDArray[np.int64]
    nearest: NDArray[np.int64]
    away: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


@kernel
def agglomerate(part, asked, tally, owner):  # type: ignore[no-untyped-def]
    """Put the rows of a part into classes: how many there are. owner: int64[n], filled.

    All rows together must meet the requirements.
    """
    clusters = begun(part, asked, tally, owner)
    size, lack, nearest, away = clusters.size, clusters.lack, clusters.nearest, clusters.away
    stale = np.ones(len(size), np.bool_)
    short = np.count_nonzero(lack)
    while short > 0:
        one, least = NONE, INFINITE
        for cluster in range(len(size)):
            if size[cluster] > 0 and lack[cluster] > 0:
                if stale[cluster]:
                    find_nearest(part, clusters, cluster, asked, tally)
                    stale[cluster] = False
                if away[cluster] < least:
                    one, least = cluster, away[cluster]
        other = nearest[one]
        short -= (lack[one] > 0) + (lack[other] > 0)
        join(part, clusters, one, other, asked, tally)
        short += lack[other] > 0
        stale[other] = True
        for cluster in range(len(size)):
            if size[cluster] > 0 and lack[cluster] > 0 and not stale[cluster]:
                if nearest[cluster] in (one, other):
                    stale[cluster] = True
                else:
                    added = increase(clusters, cluster, other, asked, away[cluster])
                    if added < away[cluster] and brings_nearer(part, clusters, cluster, other, asked, tally):
                        nearest[cluster], away[cluster] = other, added
    count = 0
    for cluster in range(len(size)):
        if size[cluster] > 0:
            row = clusters.first[cluster]
            while row != NONE:
                owner[row] = count
                row = clusters.after[row]
            count += 1
    return count


@kernel
def begun(part, asked, tally, owner):  # type: ignore[no-untyped-def]
    """The clusters that agglomeration begins with. owner: int64[n], overwritten."""
    codes = part.codes
    n, d = codes.shape
    count = n
    if tally is None:
        count = number_equal(codes, owner)
    else:
        for row in range(n):
            owner[row] = row
    clusters = Clusters(
        np.full(n, NONE, np.int64),
        np.full(count, NONE, np.int64),
        np.full(count, NONE, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.full(count, NONE, np.int64),
        np.full(count, INFINITE, np.int64),
        np.empty((count, d), np.int64),
        np.empty((count, d), np.int64),
    )
    for row in range(n):
        cluster = owner[row]
        for q in range(d):
            clusters.low[cluster, q] = codes[row, q]
            clusters.high[cluster, q] = codes[row, q]
        clusters.size[cluster] += 1
        if clusters.first[cluster] == NONE:
            clusters.first[cluster] = row
        else:
            clusters.after[clusters.last[cluster]] = row
        clusters.last[cluster] = row
    for cluster in range(count):
        clusters.lack[cluster] = lack_of(part, clusters, cluster, NONE, asked, tally)
    return clusters


@kernel
def number_equal(codes, owner):  # type: ignore[no-untyped-def]
    """Number the rows so that equal ones have one number: how many numbers there are."""
    found, kept = 0, np.empty(len(codes), np.int64)
    for row in range(len(codes)):
        owner[row] = NONE
        for number in range(found):
            same = True
            for q in range(codes.shape[1]):
                if codes[row, q] != codes[kept[number], q]:
                    same = False
                    break
            if same:
                owner[row] = number
                break
        if owner[row] == NONE:
            kept[found] = row
            owner[row] = found
            found += 1
    return found


@kernel
def join(part, clusters, one, other, asked, tally):  # type: ignore[no-untyped-def]
    """Join a cluster to another."""
    low, high = clusters.low, clusters.high
    clusters.after[clusters.last[other]] = clusters.first[one]
    clusters.last[other] = clusters.last[one]
    clusters.size[other] += clusters.size[one]
    clusters.size[one] = 0
    for q in range(low.shape[1]):
        low[other, q] = min(low[other, q], low[one, q])
        high[other, q] = max(high[other, q], high[one, q])
    clusters.cost[other] = box_cost(low[other], high[other], asked.layout, asked.units)
    clusters.lack[other] = lack_of(part, clusters, other, NONE, asked, tally)


@kernel
def lack_of(part, clusters, cluster, other, asked, tally):  # type: ignore[no-untyped-def]
    """What a cluster, or two of them together, lack to be a class."""
    if tally is None:
        return max(asked.least - clusters.size[cluster] - (clusters.size[other] if other != NONE else 0), 0)
    count = 0
    for label in (cluster, other):
        row = clusters.first[label] if label != NONE else NONE
        while row != NONE:
            tally.rows[count] = row
            row, count = clusters.after[row], count + 1
    return lacking(part.values, count, asked, tally)


@kernel
def brings_nearer(part, clusters, cluster, other, asked, tally):  # type: ignore[no-untyped-def]
    """Whether two clusters lack less together than apart; with k alone they always do."""
    if tally is None:
        return True
    together = lack_of(part, clusters, cluster, other, asked, tally)
    return together < clusters.lack[cluster] + clusters.lack[other]


@kernel
def find_nearest(part, clusters, cluster, asked, tally):  # type: ignore[no-untyped-def]
    """Find the cluster that adds least to another: one that brings it nearer to being a class, if there is any."""
    nearest, away = clusters.nearest, clusters.away
    nearest[cluster], away[cluster] = NONE, INFINITE
    for only_nearer in (True, False):
        for other in range(len(nearest)):
            if other != cluster and clusters.size[other] > 0:
                added = increase(clusters, cluster, other, asked, away[cluster])
                if added < away[cluster] and (
                    not only_nearer or brings_nearer(part, clusters, cluster, other, asked, tally)
                ):
                    nearest[cluster], away[cluster] = other, added
        if nearest[cluster] != NONE:
            break


@kernel
def increase(boxes, one, other, asked, limit):  # type: ignore[no-untyped-def]
    """What joining two of these adds to the cost; ``limit`` where it is not below. boxes: Clusters, or Classes."""
    size, cost, low, high = boxes.size, boxes.cost, boxes.low, boxes.high
    together = size[one] + size[other]
    apart = size[one] * cost[one] + size[other] * cost[other]
    below = INFINITE if limit >= INFINITE else (limit + apart) // together + 1
    total = np.int64(0)
    for q in range(low.shape[1]):
        total += attribute_cost(
            asked.layout, asked.units, q, min(low[one, q], low[other, q]), max(high[one, q], high[other, q])
        )
        if total >= below:
            return limit
    return total * together - apart
