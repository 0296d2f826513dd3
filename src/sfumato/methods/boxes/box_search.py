"""The box around a record that leaves least slack for its price, by branch and bound.

Every record has a price, an integer number of cost units, 0 or more. A box is allowed if it holds at least k records
and enough different sensitive values. For the c copies of the record itself (``own``) together it leaves the slack

    the least of c / j * (k * cost of the box - the k - j largest prices of other records in it) over j from 1 to c

since a class may hold any number j of the copies, and all have one price (``largest_prices.shared_slack``).
Only the prices of records of a lower rank count; those of the others are 0. ``least_slacks`` finds the smallest slack
over all allowed boxes that hold the record. With all prices 0 that is k times the cost of the cheapest box.

A box that holds the record is given by its extents on *chains*: for a category, how far up its ancestors the box
reaches; for a number, how far down and how far up. Extents are costs, and the cost of a box is their sum, on each
attribute at most that of the whole domain. A part of the search is the set of boxes between two vectors of extents,
``low`` and ``high``. Records beyond ``high`` are in none of them; any other record is only in boxes that cost at least
as much as the smallest box from ``low`` on that holds it. Taking records in the order of that cost gives the least
slack that a box of the part could leave, as if boxes of equal cost could hold any record that is near: the bound of the
part. Parts are halved on one chain, the least bound first, until no bound is below the best box found. Where that takes
more than ``max_parts`` parts, the answer is the least bound of those left: it is at most the slack of any box.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE, STACK_SIZE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.losses.exact_costs import DIFFERENCE, attribute_cost
from sfumato.methods.boxes.diversity_limits import DistinctValues, count_values, reset_values, values_suffice
from sfumato.methods.boxes.largest_prices import LargestPrices, add_price, largest_sum, shared_slack
from sfumato.methods.clustering.kd_tree import distance


@kernel
def least_slacks(tree, targets, prices, rank, k, goals, max_parts, diversity, layout, units, result):
    """Write the least slack of each of the positions ``targets``, where it is below its goal, into ``result``.

    tree: KdTree. targets: int64[t]. prices, rank: int64[m], by position in the tree. goals: int64[t]. diversity:
    DiversityLimits. layout, units: see Costs. result: slack int64[t], the goal where nothing is below it; box_slack
    int64[t], the least slack of the boxes that were examined, or the goal; box_low, box_high: uint[t, d], that box, or
    the record itself. The slack is exact where it equals that of the box.
    """
    slack, box_slack, box_low, box_high = result
    codes, weights = tree.codes, tree.weights
    m, d = codes.shape
    ups = np.zeros(d, np.int64)  # the second chain of a number
    chains = d
    for q in range(d):
        if layout[q, 0] == DIFFERENCE:
            ups[q] = chains
            chains += 1
    work = SearchBuffers(
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        LargestPrices(np.empty(k + 1, np.int64), np.empty(k + 1, np.int64), np.empty(k + 1, np.int64)),
        np.empty(k + 1, np.int64),
        DistinctValues(
            np.zeros(len(diversity.owner), np.int64), np.zeros(len(diversity.needed), np.int64), np.zeros(1, np.int64)
        ),
        np.empty(chains, np.int64),
        np.empty(chains, np.int64),
    )
    # The waiting parts: their ends on the chains, and their plans: the bound, the chain to halve them on, and where.
    ends = np.empty((2, max_parts + 2, chains), np.int64)
    plans = np.empty((max_parts + 2, 3), np.int64)
    for number in range(len(targets)):
        own, best = targets[number], goals[number]
        copies = min(weights[own], k)
        others = k - copies
        # Boxes that cost more cannot be below the goal: the prices that count are no larger than its own.
        limit = (best + others * prices[own] - 1) // k
        near = neighbourhood(tree, own, limit, best, prices, rank, k, copies, ups, layout, units, work)
        for c in range(chains):
            ends[0, 0, c], ends[1, 0, c] = 0, INFINITE
        best = examine(ends[0, 0], ends[1, 0], near, k, copies, best, ups, layout, diversity, work, plans[0])
        waiting, halved, lowest = 1, 0, INFINITE
        while waiting > 0:
            part = 0
            for other in range(1, waiting):
                if plans[other, 0] < plans[part, 0]:
                    part = other
            if plans[part, 0] >= best:
                break
            if halved == max_parts:
                lowest = plans[part, 0]
                break
            halved += 1
            chain, at = plans[part, 1], plans[part, 2]
            move_part(ends, plans, part, waiting)
            ends[0, waiting, chain] = at
            ends[1, part, chain] = at - 1
            for half in (waiting, part):
                best = examine(
                    ends[0, half], ends[1, half], near, k, copies, best, ups, layout, diversity, work, plans[half]
                )
            waiting += 1
            # Drop the parts that cannot be better.
            for half in (waiting - 1, part):
                if plans[half, 0] >= best:
                    waiting -= 1
                    move_part(ends, plans, waiting, half)
        slack[number], box_slack[number] = min(lowest, best), best
        for q in range(d):
            box_low[number, q], box_high[number, q] = codes[own, q], codes[own, q]
        if best < goals[number]:
            for i in range(len(near.position)):
                if inside(near.reach, i, work.best_box):
                    for q in range(d):
                        box_low[number, q] = min(box_low[number, q], codes[near.position[i], q])
                        box_high[number, q] = max(box_high[number, q], codes[near.position[i], q])


@inner_kernel
def move_part(ends, plans, source, target):
    """Copy a waiting part over another. ends: int64[2, parts, chains]; plans: int64[parts, 3]."""
    for c in range(ends.shape[2]):
        ends[0, target, c], ends[1, target, c] = ends[0, source, c], ends[1, source, c]
    for c in range(3):
        plans[target, c] = plans[source, c]


class Neighbourhood(NamedTuple):
    """The n records around a record, the nearest first.

    position: int64[n], in the tree; distance: int64[n], at most the cost of the smallest box that holds both records;
    own: int64[d], the cost of the record alone; reach: int64[n, chains], the extent that a box needs on each chain to
    hold the neighbour, on the two chains of a number beyond the record alone; weight, price: int64[n], the price 0
    where it does not count; top: the most that k records in a better box could pay.
    """

    position: NDArray[np.int64]
    distance: NDArray[np.int64]
    own: NDArray[np.int64]
    reach: NDArray[np.int64]
    weight: NDArray[np.int64]
    price: NDArray[np.int64]
    top: np.int64


class SearchBuffers(NamedTuple):
    """Working space of a search. gathered: the neighbours that a box of the part could hold; cost: what that costs.

    largest: the largest prices; kept: the neighbours whose prices gave the bound; values: the sensitive values counted;
    joined, best_box: int64[chains], the extents of the present and of the best box.
    """

    cost: NDArray[np.int64]
    gathered: NDArray[np.int64]
    largest: LargestPrices
    kept: NDArray[np.int64]
    values: DistinctValues
    joined: NDArray[np.int64]
    best_box: NDArray[np.int64]


@inlined_kernel
def neighbourhood(tree, own, limit, best, prices, rank, k, copies, ups, layout, units, work):
    """Return the records within ``limit`` of ``own``, itself among them: Neighbourhood."""
    codes, positions, distances = tree.codes, work.gathered, work.cost
    waiting = np.empty(STACK_SIZE, np.int64)
    count = 0
    waiting[0] = 0
    depth = 1
    while depth > 0:
        depth -= 1
        node = waiting[depth]
        if tree.spans[node, 2] != NONE:
            for half in (tree.spans[node, 2], node + 1):
                if distance(codes, own, tree.low, tree.high, half, limit, INFINITE, layout, units) <= limit:
                    waiting[depth] = half
                    depth += 1
            continue
        for position in range(tree.spans[node, 0], tree.spans[node, 1]):
            cost = distance(codes, own, codes, codes, position, limit, INFINITE, layout, units)
            if cost <= limit:
                positions[count], distances[count] = position, cost
                count += 1
    # A box of a given cost holds no record farther away, so its slack is at least the one computed up to that distance.
    sequence = np.argsort(distances[:count])
    size, held, total = 0, np.int64(0), np.int64(0)
    far_enough, top = 0, best
    for s in range(count):
        position = positions[sequence[s]]
        if prices[position] > 0 and rank[position] < rank[own]:
            size, held, total = add_price(
                prices[position], tree.weights[position], s, k - 1, size, held, total, work.largest
            )
        if shared_slack(k * distances[sequence[s]], k - copies, copies, size, work.largest)[0] < best:
            far_enough, top = s + 1, largest_sum(best, k - copies, copies, size, work.largest)
    sequence = sequence[:far_enough]
    position = positions[sequence]
    reach = np.zeros((far_enough, len(ups) + np.count_nonzero(ups)), np.int64)
    price = np.zeros(far_enough, np.int64)
    alone = np.empty(len(ups), np.int64)
    for q in range(len(ups)):
        alone[q] = attribute_cost(layout, units, q, np.int64(codes[own, q]), np.int64(codes[own, q]))
    for i in range(far_enough):
        if rank[position[i]] < rank[own]:
            price[i] = prices[position[i]]
        for q in range(len(ups)):
            code, own_code = np.int64(codes[position[i], q]), np.int64(codes[own, q])
            if code != own_code:
                side = attribute_cost(layout, units, q, min(code, own_code), max(code, own_code))
                if ups[q] != 0:
                    reach[i, ups[q] if code > own_code else q] = side - alone[q]
                else:
                    reach[i, q] = side
    return Neighbourhood(position, distances[sequence], alone, reach, tree.weights[position], price, top)


@inner_kernel
def inside(reach, i, extents):
    """Return whether a box, given by its extents on the chains, holds neighbour i."""
    for c in range(len(extents)):  # noqa: SIM110 - a generator is not compiled well
        if reach[i, c] > extents[c]:
            return False
    return True


@inner_kernel
def widen_box(extents, reach, i):
    """Widen a box, given by its extents on the chains, so that it holds neighbour i."""
    for c in range(len(extents)):
        extents[c] = max(extents[c], reach[i, c])


@inner_kernel
def joined_cost(low, near, i, ups, layout):
    """Return the cost of the smallest box from ``low`` on that holds neighbour i."""
    total = np.int64(0)
    for q in range(len(ups)):
        side = max(low[q], near.reach[i, q])
        if ups[q] != 0:
            side = min(near.own[q] + side + max(low[ups[q]], near.reach[i, ups[q]]), layout[q, 3])
        else:
            side = max(side, near.own[q])
        total += side
    return total


@inner_kernel
def examine(low, high, near, k, copies, best, ups, layout, diversity, work, plan):
    """Bound a part, look for a better box in it, and return the least slack known now.

    low, high: int64[chains], the part. plan: int64[3], receives the bound of the part, the chain to halve it on, and
    the first extent of the second half. A better box is written into ``work.best_box``.
    """
    kept = gather(low, high, near, k, copies, best, ups, layout, work)
    sequence = np.argsort(work.cost[:kept])
    plan[0], last, size = bound_of(sequence, near, k, copies, diversity, work)
    if plan[0] >= best:
        return best
    join_enough(low, sequence, last, size, near, k, diversity, work)
    joined = work.joined
    slack = slack_of(joined, near, k, copies, ups, layout, work)
    if slack < best:
        best = slack
        for c in range(len(low)):
            work.best_box[c] = joined[c]
    # Halve where that box goes farthest beyond the least one.
    chain = 0
    for c in range(1, len(low)):
        if joined[c] - low[c] > joined[chain] - low[chain]:
            chain = c
    middle, at = low[chain] + (joined[chain] - low[chain] + 1) // 2, joined[chain]
    for s in range(last + 1):
        step = near.reach[work.gathered[sequence[s]], chain]
        if middle <= step < at:
            at = step
    plan[1], plan[2] = chain, at
    return best


@inlined_kernel
def gather(low, high, near, k, copies, best, ups, layout, work):
    """Write the neighbours that a better box of the part could hold, and its cost, into ``work``; return how many."""
    gathered, cost = work.gathered, work.cost
    count, size, held, total = 0, 0, np.int64(0), np.int64(0)
    farthest = (near.top - 1) // k
    for i in range(len(near.price)):
        if near.distance[i] > farthest:
            break
        if inside(near.reach, i, high):
            gathered[count], cost[count] = i, joined_cost(low, near, i, ups, layout)
            count += 1
            if near.price[i] > 0:
                size, held, total = add_price(near.price[i], near.weight[i], i, k - 1, size, held, total, work.largest)
    # Boxes that cost more than this are no better than the best.
    dearest = (largest_sum(best, k - copies, copies, size, work.largest) - 1) // k
    kept = 0
    for j in range(count):
        if cost[j] <= dearest:
            gathered[kept], cost[kept] = gathered[j], cost[j]
            kept += 1
    return kept


@inlined_kernel
def bound_of(sequence, near, k, copies, diversity, work):
    """Return the bound of a part, the last of the sequence that it needs, and how many of ``work.kept`` give it.

    sequence: int64[n], the gathered neighbours, in the order of their costs.
    """
    bound, at_bound, kept_size = INFINITE, -1, 0
    size, held, total, records = 0, np.int64(0), np.int64(0), np.int64(0)
    reset_values(work.values)
    for s in range(len(sequence)):
        i = work.gathered[sequence[s]]
        records += near.weight[i]
        count_values(near.position[i], diversity, work.values)
        if near.price[i] > 0:
            size, held, total = add_price(near.price[i], near.weight[i], i, k - 1, size, held, total, work.largest)
        spent = work.cost[sequence[s]]
        if s + 1 < len(sequence) and work.cost[sequence[s + 1]] == spent:
            continue
        if records < k:
            continue
        slack, used = shared_slack(k * spent, k - copies, copies, size, work.largest)
        if slack < bound and values_suffice(diversity, work.values):
            bound, at_bound, kept_size = slack, s, used
            for t in range(used):
                work.kept[t] = work.largest.record[t]
    return bound, at_bound, kept_size


@inlined_kernel
def join_enough(low, sequence, last, size, near, k, diversity, work):
    """Write an allowed box into ``work.joined``: the neighbours in ``work.kept``, and as many others as it takes."""
    joined = work.joined
    for c in range(len(low)):
        joined[c] = low[c]
    for t in range(size):
        widen_box(joined, near.reach, work.kept[t])
    records = np.int64(0)
    reset_values(work.values)
    for s in range(len(sequence)):
        i = work.gathered[s]
        if inside(near.reach, i, joined):
            records += near.weight[i]
            count_values(near.position[i], diversity, work.values)
    for s in range(last + 1):
        if records >= k and values_suffice(diversity, work.values):
            break
        i = work.gathered[sequence[s]]
        if not inside(near.reach, i, joined):
            widen_box(joined, near.reach, i)
            records += near.weight[i]
            count_values(near.position[i], diversity, work.values)


@inlined_kernel
def slack_of(box, near, k, copies, ups, layout, work):
    """Return the slack that a box leaves. box: int64[chains]."""
    spent = joined_cost(box, near, np.int64(0), ups, layout)  # the nearest neighbour is no wider than the record itself
    size, held, total = 0, np.int64(0), np.int64(0)
    for i in range(len(near.price)):
        if near.distance[i] > spent:
            break
        if near.price[i] > 0 and inside(near.reach, i, box):
            size, held, total = add_price(near.price[i], near.weight[i], i, k - 1, size, held, total, work.largest)
    return shared_slack(k * spent, k - copies, copies, size, work.largest)[0]
