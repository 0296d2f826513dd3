"""The least slack of a record: branch and bound over the sets of records that could be its class.

For a set C of s records around a record we look for the least of (the sum of the squared distances of all pairs in C)
minus s times (the prices of its other records). A part of the search is a set P, chosen so far, and the records that
may still join it. Whatever q of them join, the sum is at least that of P, plus for each of them its distances to P and
half of its q - 1 shortest distances to any records, less s times its price. So the q smallest of these numbers bound
the part from below. Where one record is missing, the smallest of them is the exact best.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inner_kernel, kernel
from sfumato.methods.clustering.mdav import squared_distance


@kernel
def neighbour_distances(points, first, nearest):
    """Write the shortest squared distances from the points ``first``, ``first`` + 1, ... to others, ascending.

    points: int64[n, d]; nearest: int64[b, g], g below n.
    """
    g = nearest.shape[1]
    for i in range(len(nearest)):
        row, held = first + i, np.int64(0)
        for other in range(len(points)):
            if other == row:
                continue
            length = squared_distance(points[row], points[other])
            if held < g or length < nearest[i, held - 1]:
                if held < g:
                    held += 1
                j = held - 1
                while j > 0 and nearest[i, j - 1] > length:
                    nearest[i, j] = nearest[i, j - 1]
                    j -= 1
                nearest[i, j] = length


@kernel
def pair_distances(points, distances):
    """Write the squared distances of all pairs. distances: int64[n, n]."""
    for row in range(len(points)):
        for other in range(len(points)):
            distances[row, other] = squared_distance(points[row], points[other])


@kernel
def lower_prices(first, last, order, k, distances, half, prices, most, sets, state):
    """Lower the prices of the records order[first:last] so that no set of these and of earlier ones is undercut.

    order: int64[n]; distances: int64[n, n]; half: int64[n, 2k - 1]; prices: int64[n], changed. most: parts of one
    search. sets: int64[p, 2k - 1], the tight sets found, filled up with NONE. state: int64[2], their number, and the
    parts that all searches may still take.
    """
    widest = 2 * k - 1
    lists, values = np.empty((widest, len(order)), np.int64), np.empty((widest, len(order)), np.int64)
    found = np.empty(widest, np.int64)
    for rank in range(first, last):
        row = order[rank]
        for s in range(k, widest + 1):
            goal = s * prices[row]
            allowed = min(most, state[1])
            least, parts = least_sum(row, s, order[:rank], distances, half, prices, goal, allowed, lists, values, found)
            state[1] -= parts
            if least < goal:
                prices[row] = least // s
                if found[0] != NONE and state[0] < len(sets):
                    for i in range(widest):
                        sets[state[0], i] = found[i] if i < s else NONE
                    state[0] += 1


@inner_kernel
def least_sum(row, s, candidates, distances, half, prices, goal, most, lists, values, found):
    """Return the least sum of a set of s records around ``row``, at most ``goal``, and how many parts were searched.

    candidates: int64[c], the records that may join. half: int64[n, s], half of the sums of the shortest distances of
    each record, by their number. most: parts after which the search ends with a lower bound. lists, values: working
    space of int64[s, c]. found: int64[s], the best set, the first entry NONE if there is none.
    """
    found[0] = NONE
    if len(candidates) < s - 1:
        return goal, np.int64(0)
    least, parts = goal, np.int64(0)
    chosen = np.empty(s, np.int64)
    counts, next_place, sums = np.empty(s, np.int64), np.empty(s, np.int64), np.empty(s, np.int64)
    chosen[0], sums[0], next_place[0] = row, 0, 0
    for i in range(len(candidates)):
        other = candidates[i]
        lists[0, i], values[0, i] = other, distances[row, other] - s * prices[other]
    counts[0] = sift(lists[0], values[0], len(candidates), half, s - 1, least)
    depth = np.int64(0)
    while depth >= 0:
        place, missing = next_place[depth], s - 1 - depth
        bound = INFINITE
        if place + missing <= counts[depth]:
            bound = sums[depth]
            for i in range(place, place + missing):
                bound += values[depth, i] + half[lists[depth, i], missing - 1]
        if bound >= least:
            depth -= 1
            continue
        if parts >= most:
            least = bound  # of all that is left here; the search goes back and takes the least of the other parts
            depth -= 1
            continue
        if missing == 1:
            least = bound
            for i in range(s - 1):
                found[i] = chosen[i]
            found[s - 1] = lists[depth, place]
            depth -= 1
            continue
        parts += 1
        next_place[depth] += 1
        joined = lists[depth, place]
        chosen[depth + 1], sums[depth + 1], next_place[depth + 1] = joined, sums[depth] + values[depth, place], 0
        count = np.int64(0)
        for i in range(place + 1, counts[depth]):
            other = lists[depth, i]
            lists[depth + 1, count] = other
            values[depth + 1, count] = values[depth, i] + distances[joined, other]
            count += 1
        counts[depth + 1] = sift(lists[depth + 1], values[depth + 1], count, half, missing - 1, least - sums[depth + 1])
        depth += 1
    return least, parts


@inner_kernel
def sift(records, values, count, half, missing, room):
    """Sort records by what they add at least, without those that leave no room; return how many are left."""
    kept = np.int64(0)
    if count < missing:
        return kept
    # The records that add least come first, as far as they are needed.
    for i in range(missing):
        best = i
        for j in range(i + 1, count):
            if values[j] + half[records[j], missing - 1] < values[best] + half[records[best], missing - 1]:
                best = j
        records[i], records[best] = records[best], records[i]
        values[i], values[best] = values[best], values[i]
    others = np.int64(0)
    for i in range(missing - 1):
        others += values[i] + half[records[i], missing - 1]
    for i in range(count):
        least = values[i] + half[records[i], missing - 1]
        if i < missing - 1 or others + least < room:
            records[kept], values[kept] = records[i], values[i]
            kept += 1
    for i in range(1, kept):
        record, value = records[i], values[i]
        key, j = value + half[record, missing - 1], i
        while j > 0 and values[j - 1] + half[records[j - 1], missing - 1] > key:
            records[j], values[j] = records[j - 1], values[j - 1]
            j -= 1
        records[j], values[j] = record, value
    return kept
