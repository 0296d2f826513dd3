"""The records around a record, the nearest first, and which of them a box around it holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE, STACK_SIZE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.boxes.largest_prices import add_price, largest_sum, make_room, shared_slack
from sfumato.methods.clustering.kd_tree import distance


class Neighbourhood(NamedTuple):
    """The n records around a record, the nearest first.

    position: int64[n], in the tree; distance: int64[n], at most the cost of the smallest box that holds both records;
    own: int64[d], the cost of the record alone; reach: int64[n, chains], the extent that a box needs on each chain to
    hold the neighbour, on the two chains of a number beyond the record alone; weight, price: int64[n], the price above
    the base, 0 where it does not count; value: int64[n], see DiversityLimits; own_value: that of the record; top: the
    most that k records in a better box could pay above the base; known: cheap records are left
    out farther away.
    """

    position: NDArray[np.int64]
    distance: NDArray[np.int64]
    own: NDArray[np.int64]
    reach: NDArray[np.int64]
    weight: NDArray[np.int64]
    price: NDArray[np.int64]
    value: NDArray[np.int64]
    own_value: np.int64
    top: np.int64
    known: np.int64


@inner_kernel
def near_records(tree, own, limit, known, prices, base, dearest, rank, layout, units, positions, distances):
    """Write the records within ``limit`` of ``own`` and how far they are; return how many.

    Farther away than ``known`` are only those that pay more than ``base`` and have no higher rank.
    """
    codes = tree.codes
    waiting = np.empty(STACK_SIZE, np.int64)
    count = 0
    waiting[0] = 0
    depth = 1
    while depth > 0:
        depth -= 1
        node = waiting[depth]
        # Only what could hold a record that counts is looked at as far as the limit.
        farthest = limit if dearest[node] > base else min(limit, known)
        if tree.spans[node, 2] != NONE:
            for half in (tree.spans[node, 2], node + 1):
                if distance(codes, own, tree.low, tree.high, half, farthest, INFINITE, layout, units) <= farthest:
                    waiting[depth] = half
                    depth += 1
            continue
        for position in range(tree.spans[node, 0], tree.spans[node, 1]):
            cost = distance(codes, own, codes, codes, position, farthest, INFINITE, layout, units)
            if cost <= min(limit, known) or (cost <= limit and prices[position] > base and rank[position] <= rank[own]):
                positions[count], distances[count] = position, cost
                count += 1
    return count


@inlined_kernel
def neighbourhood(
    tree, own, goal, prices, base, partial, nearby, dearest, rank, k, copies, diversity, ups, layout, units, work
):
    """Return the records that a box with less slack than ``goal`` could hold, ``own`` among them: Neighbourhood.

    base: costs and prices are counted from it. partial: leave out the other records that pay no more than that,
    but for those nearby. dearest: int64[nodes], see dearest_of_nodes.
    """
    # Boxes that cost more cannot be below the goal: the prices that count are no larger than its own.
    limit, best = (goal + (k - copies) * (prices[own] - base) - 1) // k + base, goal
    known = nearby[own] if partial else INFINITE
    codes, positions, distances = tree.codes, work.gathered, work.cost
    count = near_records(tree, own, limit, known, prices, base, dearest, rank, layout, units, positions, distances)
    # A box of a given cost holds no record farther away, so its slack is at least the one computed up to that distance.
    sequence = np.argsort(distances[:count])
    size, held, total = 0, np.int64(0), np.int64(0)
    far_enough, before, counted, top = 0, np.int64(-1), np.int64(-1), best
    own_value, most = diversity.value[own], diversity.most
    for s in range(count):
        position = positions[sequence[s]]
        if prices[position] > base and rank[position] < rank[own]:
            price, value, weight = prices[position] - base, diversity.value[position], tree.weights[position]
            if value != NONE:
                weight, size, held, total = make_room(
                    price, weight, value, most - (value == own_value), k - 1, size, held, total, work.largest
                )
            size, held, total = add_price(price, weight, value, s, k - 1, size, held, total, work.largest)
        if total > before or s == far_enough:  # otherwise the slack is no less than it was, and that was not enough
            before, spent = total, k * (distances[sequence[s]] - base)
            if shared_slack(spent, k - copies, copies, own_value, most - copies, size, total, work.largest)[0] < best:
                far_enough = s + 1
                if total > counted:
                    counted, top = total, largest_sum(best, k - copies, copies, size, work.largest)
    sequence = sequence[:far_enough]
    position = positions[sequence]
    reach = np.zeros((far_enough, len(ups) + np.count_nonzero(ups)), np.int64)
    counted_prices = np.zeros(far_enough, np.int64)
    alone = np.empty(len(ups), np.int64)
    for q in range(len(ups)):
        alone[q] = attribute_cost(layout, units, q, np.int64(codes[own, q]), np.int64(codes[own, q]))
    for i in range(far_enough):
        if rank[position[i]] < rank[own]:
            counted_prices[i] = prices[position[i]] - base
        for q in range(len(ups)):
            code, own_code = np.int64(codes[position[i], q]), np.int64(codes[own, q])
            if code != own_code:
                side = attribute_cost(layout, units, q, min(code, own_code), max(code, own_code))
                if ups[q] != 0:
                    reach[i, ups[q] if code > own_code else q] = side - alone[q]
                else:
                    reach[i, q] = side
    return Neighbourhood(
        position, distances[sequence], alone, reach, tree.weights[position], counted_prices, diversity.value[position],
        own_value, top, known,
    )  # fmt: skip


@kernel
def dearest_of_nodes(tree, prices, rank, last):
    """Return the highest price in each node of the tree, of records with a rank of at most ``last``: int64[nodes]."""
    dearest = np.empty(len(tree.spans), np.int64)
    for node in range(len(tree.spans) - 1, -1, -1):  # a node comes before its halves
        if tree.spans[node, 2] != NONE:
            dearest[node] = max(dearest[node + 1], dearest[tree.spans[node, 2]])
            continue
        dearest[node] = -INFINITE
        for position in range(tree.spans[node, 0], tree.spans[node, 1]):
            if rank[position] <= last:
                dearest[node] = max(dearest[node], prices[position])
    return dearest


@inner_kernel
def inside(reach, i, extents):
    """Return whether a box, given by its extents on the chains, holds neighbour i."""
    holds = True
    for c in range(len(extents)):  # without an early end, which would count references
        holds &= reach[i, c] <= extents[c]
    return holds


@inner_kernel
def within(distance, farthest):
    """Return how many neighbours are no farther than ``farthest``. distance: int64[n], ascending."""
    first, last = 0, len(distance)
    while first < last:
        middle = (first + last) // 2
        if distance[middle] <= farthest:
            first = middle + 1
        else:
            last = middle
    return first


@inner_kernel
def widen_box(extents, reach, i):
    """Widen a box, given by its extents on the chains, so that it holds neighbour i."""
    for c in range(len(extents)):
        extents[c] = max(extents[c], reach[i, c])


@inner_kernel
def joined_cost(low, reach, own, i, ups, layout):
    """Return the cost of the smallest box from ``low`` on that holds neighbour i. reach, own: see Neighbourhood."""
    total = np.int64(0)
    for q in range(len(ups)):
        side = max(low[q], reach[i, q])
        if ups[q] != 0:
            side = min(own[q] + side + max(low[ups[q]], reach[i, ups[q]]), layout[q, 3])
        else:
            side = max(side, own[q])
        total += side
    return total
