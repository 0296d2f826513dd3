"""A k-d tree (Bentley 1975) over the distinct records, and the nearest neighbours of every record.

The distance of two records is the cost of the smallest box that holds both: the sum over the attributes of the NCP of
the pair. For numbers that is the L1 distance on attributes scaled to [0, 1]; for two categories it is the share of
leaves under the node that joins them, and for null with anything else it is 1. It is a metric, and no box that holds
two records costs less than their distance.

The tree halves the records on the attribute that costs most, until few are left, and keeps the smallest box of every
node. A box costs no less than a smaller box inside it, so the distance from a record to a box, to its nearer end on
each attribute, is a lower bound on the distance to every record in the box. Equally near records come in the order of
their codes, so the neighbours do not depend on the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE, STACK_SIZE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.losses.exact_costs import Costs, attribute_cost
from sfumato.tables.coding.domains import Codes

LEAF = 8  # the most records of a node that is not halved
SEARCHED = 1 << 9  # records whose neighbours one thread finds at once
ROUND = 1 << 14  # records after which progress is reported


class KdTree(NamedTuple):
    """Distinct records, halved recursively. A node comes before the nodes below it, directly before its first half.

    order: int64[m], the record at each position; codes: uint[m, d] and weights: int64[m] are in this order.
    spans: int64[nodes, 3], the positions begin to end - 1 of a node, and its second half, NONE for a leaf.
    low, high: uint[nodes, d], the smallest box of each node; least: int64[nodes], the lowest of its records.
    """

    order: NDArray[np.int64]
    codes: Codes
    weights: NDArray[np.int64]
    spans: NDArray[np.int64]
    low: Codes
    high: Codes
    least: NDArray[np.int64]


class Neighbours(NamedTuple):
    """By position in the tree: the distance of the farthest neighbour, int64[m], and the box of all, uint[m, d]."""

    reach: NDArray[np.int64]
    low: Codes
    high: Codes


def build_kd_tree(codes: Codes, weights: NDArray[np.int64], costs: Costs) -> KdTree:
    """Build the tree of distinct records. codes: uint[m, d], C-order; weights: int64[m], how often each occurs."""
    order, spans, low, high = halve(codes, costs.layout, costs.units)
    least = first_records(order, spans)
    return KdTree(order, np.take(codes, order, axis=0), weights[order], spans, low, high, least)


def nearest_neighbours(tree: KdTree, k: int, costs: Costs, advance: Callable[[int], None]) -> Neighbours:
    """Find the k - 1 nearest neighbours of every record: distinct records, itself the first, that hold k together.

    The table must have k records. ``advance`` receives the number of records finished.
    """
    count = len(tree.codes)
    neighbours = Neighbours(np.empty(count, np.int64), np.empty_like(tree.codes), np.empty_like(tree.codes))

    def search(part: tuple[int, int]) -> None:
        search_neighbours(tree, *part, k, costs.layout, costs.units, neighbours)

    for first, last in slices(count, ROUND):
        in_threads(search, [(first + begin, first + end) for begin, end in slices(last - first, SEARCHED)])
        advance(int(tree.weights[first:last].sum()))
    return neighbours


@kernel
def halve(codes, layout, units):
    """Return order, spans, low and high of the tree. codes: uint[m, d], C-order, distinct; layout, units: see Costs."""
    m, d = codes.shape
    order = np.arange(m)
    limit = 4 * (m // LEAF) + 3  # parts of LEAF + 1 and more are halved, so nodes have at least LEAF / 2 positions
    spans = np.empty((limit, 3), np.int64)
    low, high = np.empty((limit, d), codes.dtype), np.empty((limit, d), codes.dtype)
    waiting = np.empty((STACK_SIZE, 3), np.int64)  # begin, end, and the node whose second half this is
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
            for position in range(begin + 1, end):
                least = min(least, codes[order[position], q])
                most = max(most, codes[order[position], q])
            low[node, q], high[node, q] = least, most
            side = attribute_cost(layout, units, q, np.int64(least), np.int64(most))
            if least < most and side > width:
                widest, width = q, side
        if end - begin <= LEAF:
            continue
        # The keys are distinct, and the record can be read back from them.
        keys = np.empty(end - begin, np.int64)
        for position in range(begin, end):
            keys[position - begin] = np.int64(codes[order[position], widest]) * m + order[position]
        keys = np.sort(keys)
        for position in range(begin, end):
            order[position] = keys[position - begin] % m
        middle = (begin + end) // 2
        waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = middle, end, node
        waiting[depth + 1, 0], waiting[depth + 1, 1], waiting[depth + 1, 2] = begin, middle, NONE
        depth += 2
    return order, spans[:nodes], low[:nodes], high[:nodes]


@kernel
def first_records(order, spans):
    """Return the lowest record of each node: int64[nodes]. order, spans: see KdTree."""
    least = np.empty(len(spans), np.int64)
    for node in range(len(spans) - 1, -1, -1):  # a node comes before its halves
        if spans[node, 2] != NONE:
            least[node] = min(least[node + 1], least[spans[node, 2]])
            continue
        least[node] = order[spans[node, 0]]
        for position in range(spans[node, 0], spans[node, 1]):
            least[node] = min(least[node], order[position])
    return least


@inner_kernel
def distance(codes, record, low, high, box, limit, widest, layout, units):
    """Return the distance of a record to a box; INFINITE if it is above ``limit``, or above ``widest`` on an attribute.

    codes, low, high: uint[., d]; record and box are row numbers; a record is a box too. layout, units: see Costs.
    """
    total = np.int64(0)
    for q in range(codes.shape[1]):
        code, least, most = codes[record, q], low[box, q], high[box, q]
        if least <= code <= most:
            continue
        lower, upper = (code, least) if code < least else (most, code)
        gap = attribute_cost(layout, units, q, np.int64(lower), np.int64(upper))
        total += gap
        if gap > widest or total > limit:
            return INFINITE
    return total


@inner_kernel
def overlap(low, high, box, other_low, other_high, other):
    """Return whether two boxes have a point in common. Boxes are row numbers of low, high: uint[., d]."""
    for q in range(low.shape[1]):
        if low[box, q] > other_high[other, q] or other_low[other, q] > high[box, q]:
            return False
    return True


@kernel
def search_neighbours(tree, begin, end, k, layout, units, neighbours):
    """Write the Neighbours of the positions begin to end - 1. tree: KdTree; layout, units: see Costs."""
    order, codes, weights, spans, low, high, least = tree
    reach, box_low, box_high = neighbours
    m, d = codes.shape
    # A heap of the nearest so far, the farthest on top: at most k, since each record has a weight of at least one.
    distances, positions = np.empty(min(k, m) + 1, np.int64), np.empty(min(k, m) + 1, np.int64)
    waiting, bounds = np.empty(STACK_SIZE, np.int64), np.empty(STACK_SIZE, np.int64)
    for own in range(begin, end):
        size, held, limit = 0, np.int64(0), INFINITE
        if own > begin:
            # The neighbours are no farther than those of the previous record, by the triangle inequality.
            limit = reach[own - 1] + distance(codes, own, codes, codes, own - 1, INFINITE, INFINITE, layout, units)
        waiting[0], bounds[0] = 0, 0
        depth = 1
        while depth > 0:
            depth -= 1
            node = waiting[depth]
            if bounds[depth] > limit or (bounds[depth] == limit and held >= k and least[node] > order[positions[0]]):
                continue
            far = spans[node, 2]
            if far != NONE:
                near = node + 1
                to_near = distance(codes, own, low, high, near, limit, INFINITE, layout, units)
                to_far = distance(codes, own, low, high, far, limit, INFINITE, layout, units)
                if to_far < to_near:
                    near, to_near, far, to_far = far, to_far, near, to_near
                if to_far <= limit:
                    waiting[depth], bounds[depth] = far, to_far
                    depth += 1
                if to_near <= limit:
                    waiting[depth], bounds[depth] = near, to_near
                    depth += 1
                continue
            for position in range(spans[node, 0], spans[node, 1]):
                to_position = distance(codes, own, codes, codes, position, limit, INFINITE, layout, units)
                if to_position > limit:
                    continue
                if held >= k and to_position == distances[0] and order[position] > order[positions[0]]:
                    continue
                push(distances, positions, size, to_position, position, order)
                size += 1
                held += weights[position]
                while held - weights[positions[0]] >= k:
                    held -= weights[positions[0]]
                    size -= 1
                    pop(distances, positions, size, order)
                if held >= k:
                    limit = distances[0]
        reach[own] = distances[0]
        for q in range(d):
            lowest, highest = codes[own, q], codes[own, q]
            for t in range(size):
                lowest, highest = min(lowest, codes[positions[t], q]), max(highest, codes[positions[t], q])
            box_low[own, q], box_high[own, q] = lowest, highest


@inlined_kernel
def push(distances, positions, size, to_position, position, order):
    """Add a position to a heap of ``size``; the farthest is on top, among equally far ones the last in order."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if distances[above] > to_position or (
            distances[above] == to_position and order[positions[above]] > order[position]
        ):
            break
        distances[at], positions[at] = distances[above], positions[above]
        at = above
    distances[at], positions[at] = to_position, position


@inlined_kernel
def pop(distances, positions, size, order):
    """Remove the top of a heap, which then has ``size`` entries."""
    to_position, position = distances[size], positions[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        other = below + 1
        if other < size and (
            distances[other] > distances[below]
            or (distances[other] == distances[below] and order[positions[other]] > order[positions[below]])
        ):
            below = other
        if distances[below] < to_position or (
            distances[below] == to_position and order[positions[below]] < order[position]
        ):
            break
        distances[at], positions[at] = distances[below], positions[below]
        at = below
    distances[at], positions[at] = to_position, position
