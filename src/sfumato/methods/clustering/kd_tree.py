"""The nearest neighbours of every record, from a k-d tree (Bentley 1975) over the distinct ones.

The distance of two records is what the smallest box that holds both costs: the sum over the attributes of the NCP of
the pair. On numbers that is the L1 distance on attributes scaled to [0, 1]; of two categories it is the share of leaves
under the node that joins them, and of null and anything else it is 1. It is a metric, and no box that holds two records
costs less than their distance.

The tree halves the records on the attribute that costs most, down to a few, and keeps the smallest box of every node.
A box costs no less than a smaller one inside, so the distance of a record to a box, to its nearer end on each
attribute, is a lower bound for all that lies in it. Equally near records come in the order of their codes: what is
found does not depend on the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.losses.exact_costs import Costs, attribute_cost
from sfumato.tables.coding.domains import Codes

LEAF = 8  # records that are not halved further
DEEPEST = 128  # nodes that wait at once: two for each halving of at most 2 ** 32 records would do
SEARCHED = 1 << 9  # records whose neighbours one thread finds at once
ROUND = 1 << 14  # records after which progress is told
FAR = 1 << 62


class Tree(NamedTuple):
    """Distinct records, halved again and again. A node stands before those below it, right before its first half.

    order: int64[m], the record at each place; codes: uint[m, d] and weights: int64[m] are in this order.
    spans: int64[nodes, 3], the places begin to end - 1 of a node, and its second half, NONE for a node without halves.
    low, high: uint[nodes, d], the smallest box of each node; least: int64[nodes], the first of its records.
    """

    order: NDArray[np.int64]
    codes: Codes
    weights: NDArray[np.int64]
    spans: NDArray[np.int64]
    low: Codes
    high: Codes
    least: NDArray[np.int64]


class Neighbours(NamedTuple):
    """By place of a tree: the distance of the farthest neighbour, int64[m], and the box of all of them, uint[m, d]."""

    reach: NDArray[np.int64]
    low: Codes
    high: Codes


def grow(codes: Codes, weights: NDArray[np.int64], costs: Costs) -> Tree:
    """The tree of some distinct records. codes: uint[m, d], C-order; weights: int64[m], how often each occurs."""
    order, spans, low, high = halve(codes, costs.layout, costs.units)
    least = first_records(order, spans)
    return Tree(order, np.take(codes, order, axis=0), weights[order], spans, low, high, least)


def nearest(tree: Tree, k: int, costs: Costs, done: Callable[[int], None]) -> Neighbours:
    """Of every record the k - 1 nearest neighbours: as many distinct records, itself the first, as hold k.

    There must be k. ``done`` is told of how many records they were found.
    """
    count = len(tree.codes)
    found = Neighbours(np.empty(count, np.int64), np.empty_like(tree.codes), np.empty_like(tree.codes))

    def search(part: tuple[int, int]) -> None:
        search_neighbours(tree, *part, k, costs.layout, costs.units, found)

    for first, last in slices(count, ROUND):
        in_threads(search, [(first + begin, first + end) for begin, end in slices(last - first, SEARCHED)])
        done(int(tree.weights[first:last].sum()))
    return found


@kernel
def halve(codes, layout, units):
    """Order, spans, low and high of the tree. codes: uint[m, d], C-order, distinct; layout, units: see Costs."""
    m, d = codes.shape
    order = np.arange(m)
    limit = 4 * (m // LEAF) + 3  # parts of LEAF + 1 and more are halved, so nodes have at least LEAF / 2 places
    spans = np.empty((limit, 3), np.int64)
    low, high = np.empty((limit, d), codes.dtype), np.empty((limit, d), codes.dtype)
    waiting = np.empty((DEEPEST, 3), np.int64)  # begin, end, and the node whose second half this is
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, m, NONE
    depth, nodes = 1, 0
    while depth > 0:
        depth -= 1
        begin, end, above = waiting[depth]
        node = nodes
        nodes += 1
        if above != NONE:
            spans[above, 2] = node
        spans[node, 0], spans[node, 1], spans[node, 2] = begin, end, NONE
        widest, width = 0, np.int64(-1)
        for q in range(d):
            least, most = codes[order[begin], q], codes[order[begin], q]
            for place in range(begin + 1, end):
                least = min(least, codes[order[place], q])
                most = max(most, codes[order[place], q])
            low[node, q], high[node, q] = least, most
            side = attribute_cost(layout, units, q, np.int64(least), np.int64(most))
            if least < most and side > width:
                widest, width = q, side
        if end - begin <= LEAF:
            continue
        # Distinct keys, from which the record can be read again.
        keys = np.empty(end - begin, np.int64)
        for place in range(begin, end):
            keys[place - begin] = np.int64(codes[order[place], widest]) * m + order[place]
        keys = np.sort(keys)
        for place in range(begin, end):
            order[place] = keys[place - begin] % m
        middle = (begin + end) // 2
        waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = middle, end, node
        waiting[depth + 1, 0], waiting[depth + 1, 1], waiting[depth + 1, 2] = begin, middle, NONE
        depth += 2
    return order, spans[:nodes], low[:nodes], high[:nodes]


@kernel
def first_records(order, spans):
    """The first record of each node, int64[nodes]. order, spans: see Tree."""
    least = np.empty(len(spans), np.int64)
    for node in range(len(spans) - 1, -1, -1):  # a node stands before its halves
        if spans[node, 2] != NONE:
            least[node] = min(least[node + 1], least[spans[node, 2]])
            continue
        least[node] = order[spans[node, 0]]
        for place in range(spans[node, 0], spans[node, 1]):
            least[node] = min(least[node], order[place])
    return least


@kernel
def distance(codes, record, low, high, box, limit, widest, layout, units):
    """The distance of a record to a box; FAR if it is above ``limit``, or above ``widest`` on an attribute.

    codes, low, high: uint[., d], record and box are rows of them; a record is a box too. layout, units: see Costs.
    """
    total = np.int64(0)
    for q in range(codes.shape[1]):
        code, least, most = codes[record, q], low[box, q], high[box, q]
        if least <= code <= most:
            continue
        one, other = (code, least) if code < least else (most, code)
        gap = attribute_cost(layout, units, q, np.int64(one), np.int64(other))
        total += gap
        if gap > widest or total > limit:
            return np.int64(FAR)
    return total


@kernel
def search_neighbours(tree, begin, end, k, layout, units, found):
    """Write into ``found``, Neighbours, those of the places begin to end - 1. tree: Tree; layout, units: see Costs."""
    order, codes, weights, spans, low, high, least = tree
    reach, found_low, found_high = found
    m, d = codes.shape
    # A heap of what is nearest so far, the farthest on top: at most k, since each record counts for one at least.
    away, places = np.empty(min(k, m) + 1, np.int64), np.empty(min(k, m) + 1, np.int64)
    waiting, bounds = np.empty(DEEPEST, np.int64), np.empty(DEEPEST, np.int64)
    for own in range(begin, end):
        size, held, limit = 0, np.int64(0), np.int64(FAR)
        if own > begin:
            # No farther than to the record before, and from there to its neighbours.
            limit = reach[own - 1] + distance(codes, own, codes, codes, own - 1, FAR, FAR, layout, units)
        waiting[0], bounds[0] = 0, 0
        depth = 1
        while depth > 0:
            depth -= 1
            node = waiting[depth]
            if bounds[depth] > limit or (bounds[depth] == limit and held >= k and least[node] > order[places[0]]):
                continue
            far = spans[node, 2]
            if far != NONE:
                near = node + 1
                to_near = distance(codes, own, low, high, near, limit, FAR, layout, units)
                to_far = distance(codes, own, low, high, far, limit, FAR, layout, units)
                if to_far < to_near:
                    near, to_near, far, to_far = far, to_far, near, to_near
                if to_far <= limit:
                    waiting[depth], bounds[depth] = far, to_far
                    depth += 1
                if to_near <= limit:
                    waiting[depth], bounds[depth] = near, to_near
                    depth += 1
                continue
            for place in range(spans[node, 0], spans[node, 1]):
                to_place = distance(codes, own, codes, codes, place, limit, FAR, layout, units)
                if to_place > limit:
                    continue
                if held >= k and to_place == away[0] and order[place] > order[places[0]]:
                    continue
                push(away, places, size, to_place, place, order)
                size += 1
                held += weights[place]
                while held - weights[places[0]] >= k:
                    held -= weights[places[0]]
                    size -= 1
                    pop(away, places, size, order)
                if held >= k:
                    limit = away[0]
        reach[own] = away[0]
        for q in range(d):
            lowest, highest = codes[own, q], codes[own, q]
            for t in range(size):
                lowest, highest = min(lowest, codes[places[t], q]), max(highest, codes[places[t], q])
            found_low[own, q], found_high[own, q] = lowest, highest


@kernel
def push(away, places, size, to_place, place, order):
    """Add a place to a heap of ``size``. away, places: int64, the farthest first, of equally far the last in order."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if away[above] > to_place or (away[above] == to_place and order[places[above]] > order[place]):
            break
        away[at], places[at] = away[above], places[above]
        at = above
    away[at], places[at] = to_place, place


@kernel
def pop(away, places, size, order):
    """Take the top off a heap, which then has ``size``."""
    to_place, place = away[size], places[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        other = below + 1
        if other < size and (
            away[other] > away[below] or (away[other] == away[below] and order[places[other]] > order[places[below]])
        ):
            below = other
        if away[below] < to_place or (away[below] == to_place and order[places[below]] < order[place]):
            break
        away[at], places[at] = away[below], places[below]
        at = below
    away[at], places[at] = to_place, place
