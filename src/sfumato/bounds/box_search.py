"""The box around a record that leaves least room for its price, by branch and bound.

Every record has a price, a whole number of cost units, 0 or more. A box that is allowed (it holds at least k records,
and enough different sensitive values) leaves the room

    k * cost of the box - the k - c largest prices of other records in it

for the c copies of the record itself (``own``), together. Only the prices of records of a lower rank count, those of
the others are 0. ``least_room`` finds the smallest room over all allowed boxes that hold the record. With all prices 0
that is k times the cost of the cheapest box.

A box that holds the record is a place on each of some *chains*: for a category, how far up its ancestors the box
reaches; for a number, how far down and how far up. Places are costs, and the cost of a box is their sum, on each
attribute at most that of the whole domain. A part of the search is all boxes between two vectors of places, ``low`` and
``high``. Records beyond ``high`` are in none of them; any other record is only in boxes that cost at least as much as
the smallest one from ``low`` on that holds it. Taking records in the order of that cost gives the least room that a
box of the part could leave, as if boxes of equal cost could hold whatever is near: the bound of the part. Parts are
halved on one chain, the least bound first, until no bound is below the best box found. Where that takes more than
``most`` parts, the least bound of those left is the answer: it is no more than the room of any box.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import DIFFERENCE, attribute_cost
from sfumato.methods.clustering.kd_tree import DEEPEST, FAR, distance


class DiversityLimits(NamedTuple):
    """The different sensitive values that a box must hold, and those of each record by its place in the tree.

    needed: int64[a]; starts: int64[m + 1]; values: int64[...], numbered over all attributes; owner: int64[values], the
    attribute of each number.
    """

    needed: NDArray[np.int64]
    starts: NDArray[np.int64]
    values: NDArray[np.int64]
    owner: NDArray[np.int64]


@kernel
def least_rooms(tree, asked, prices, rank, k, goals, most, diversity, layout, units, found):
    """Write the least room of each of the places ``asked``, where it is below its goal, into ``found``.

    tree: Tree. asked: int64[a]. prices, rank: int64[m], by place. goals: int64[a]. diversity: Diversity. layout,
    units: see Costs. found: room int64[a], the goal where nothing is below it; box_room int64[a], the least room of the
    boxes that were seen, the goal likewise; box_low, box_high: uint[a, d], that box, or the record itself. The room is
    exact where it is that of the box.
    """
    room, box_room, box_low, box_high = found
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
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
        np.zeros(len(diversity.owner), np.int64),
        np.zeros(len(diversity.needed), np.int64),
        np.zeros(1, np.int64),
        np.empty(chains, np.int64),
        np.empty(chains, np.int64),
    )
    # The parts that wait: their ends on the chains, and their bound, the chain to halve them on, and where.
    ends = np.empty((2, most + 2, chains), np.int64)
    plans = np.empty((most + 2, 3), np.int64)
    for number in range(len(asked)):
        own, best = asked[number], goals[number]
        others = k - min(weights[own], k)
        # Boxes that cost more cannot be below the goal: the prices that count are no larger than its own.
        limit = (best + others * prices[own] - 1) // k
        near = surroundings(tree, own, limit, best, prices, rank, k, others, ups, layout, units, work)
        for c in range(chains):
            ends[0, 0, c], ends[1, 0, c] = 0, FAR
        best = examine(ends[0, 0], ends[1, 0], near, k, others, best, ups, layout, diversity, work, plans[0])
        waiting, halved, lowest = 1, 0, np.int64(FAR)
        while waiting > 0:
            part = 0
            for other in range(1, waiting):
                if plans[other, 0] < plans[part, 0]:
                    part = other
            if plans[part, 0] >= best:
                break
            if halved == most:
                lowest = plans[part, 0]
                break
            halved += 1
            chain, at = plans[part, 1], plans[part, 2]
            move_part(ends, plans, part, waiting)
            ends[0, waiting, chain] = at
            ends[1, part, chain] = at - 1
            for half in (waiting, part):
                best = examine(
                    ends[0, half], ends[1, half], near, k, others, best, ups, layout, diversity, work, plans[half]
                )
            waiting += 1
            # What cannot be better is forgotten.
            for half in (waiting - 1, part):
                if plans[half, 0] >= best:
                    waiting -= 1
                    move_part(ends, plans, waiting, half)
        room[number], box_room[number] = min(lowest, best), best
        for q in range(d):
            box_low[number, q], box_high[number, q] = codes[own, q], codes[own, q]
        if best < goals[number]:
            for i in range(len(near.place)):
                if inside(near.reach, i, work.best_box):
                    for q in range(d):
                        box_low[number, q] = min(box_low[number, q], codes[near.place[i], q])
                        box_high[number, q] = max(box_high[number, q], codes[near.place[i], q])


@kernel
def move_part(ends, plans, source, target):
    for c in range(ends.shape[2]):
        ends[0, target, c], ends[1, target, c] = ends[0, source, c], ends[1, source, c]
    for c in range(3):
        plans[target, c] = plans[source, c]


class Near(NamedTuple):
    """The records around one, the nearest first: n of them.

    place: int64[n], in the tree; away: int64[n], the cost of the smallest box that holds both; reach: int64[n, chains],
    how far each lies on each chain; weight, price: int64[n], the price 0 where it does not count; top: the largest sum
    of prices that could count.
    """

    place: NDArray[np.int64]
    away: NDArray[np.int64]
    reach: NDArray[np.int64]
    weight: NDArray[np.int64]
    price: NDArray[np.int64]
    top: np.int64


class SearchBuffers(NamedTuple):
    """Room to work in: int64 arrays."""

    cost: NDArray[np.int64]
    some: NDArray[np.int64]
    top_price: NDArray[np.int64]
    top_copies: NDArray[np.int64]
    top_record: NDArray[np.int64]
    kept: NDArray[np.int64]
    stamp: NDArray[np.int64]
    different: NDArray[np.int64]
    clock: NDArray[np.int64]
    joined: NDArray[np.int64]
    best_box: NDArray[np.int64]


@kernel
def surroundings(tree, own, limit, best, prices, rank, k, others, ups, layout, units, work):
    """The records within ``limit`` of ``own``, itself among them: Near."""
    codes, places, away = tree.codes, work.some, work.cost
    waiting = np.empty(DEEPEST, np.int64)
    count = 0
    waiting[0] = 0
    depth = 1
    while depth > 0:
        depth -= 1
        node = waiting[depth]
        if tree.spans[node, 2] != NONE:
            for half in (tree.spans[node, 2], node + 1):
                if distance(codes, own, tree.low, tree.high, half, limit, FAR, layout, units) <= limit:
                    waiting[depth] = half
                    depth += 1
            continue
        for place in range(tree.spans[node, 0], tree.spans[node, 1]):
            far = distance(codes, own, codes, codes, place, limit, FAR, layout, units)
            if far <= limit:
                places[count], away[count] = place, far
                count += 1
    # A box that costs so much holds nothing that is farther away, so its room is at least what is seen on the way.
    sequence = np.argsort(away[:count])
    size, held, top = 0, np.int64(0), np.int64(0)
    far_enough, most = 0, np.int64(0)
    for s in range(count):
        place = places[sequence[s]]
        if prices[place] > 0 and rank[place] < rank[own]:
            size, held, top = add_price(prices[place], tree.weights[place], s, others, size, held, top, work)
        if k * away[sequence[s]] - top < best:
            far_enough, most = s + 1, top
    sequence = sequence[:far_enough]
    place = places[sequence]
    reach = np.zeros((far_enough, len(ups) + np.count_nonzero(ups)), np.int64)
    price = np.zeros(far_enough, np.int64)
    for i in range(far_enough):
        if rank[place[i]] < rank[own]:
            price[i] = prices[place[i]]
        for q in range(len(ups)):
            code, mine = np.int64(codes[place[i], q]), np.int64(codes[own, q])
            if code != mine:
                side = attribute_cost(layout, units, q, min(code, mine), max(code, mine))
                reach[i, ups[q] if ups[q] != 0 and code > mine else q] = side
    return Near(place, away[sequence], reach, tree.weights[place], price, most)


@kernel
def inside(reach, i, places):
    """Whether a box, given as places on the chains, holds a record."""
    for c in range(len(places)):  # noqa: SIM110 - a generator is not compiled well
        if reach[i, c] > places[c]:
            return False
    return True


@kernel
def join(places, reach, i):
    """Widen a box, given as places on the chains, so that it holds a record."""
    for c in range(len(places)):
        places[c] = max(places[c], reach[i, c])


@kernel
def joined_cost(low, reach, i, ups, layout):
    """The cost of the smallest box from ``low`` on that holds a record."""
    total = np.int64(0)
    for q in range(len(ups)):
        side = max(low[q], reach[i, q])
        if ups[q] != 0:
            side = min(side + max(low[ups[q]], reach[i, ups[q]]), layout[q, 3])
        total += side
    return total


@kernel
def count_anew(work):
    """Forget all sensitive values that were counted."""
    work.clock[0] += 1
    for a in range(len(work.different)):
        work.different[a] = 0


@kernel
def count_values(place, diversity, work):
    """Count the sensitive values of a record, each once since counting began anew."""
    for v in range(diversity.starts[place], diversity.starts[place + 1]):
        value = diversity.values[v]
        if work.stamp[value] != work.clock[0]:
            work.stamp[value] = work.clock[0]
            work.different[diversity.owner[value]] += 1


@kernel
def values_suffice(diversity, work):
    """Whether as many different values were counted as a box must hold."""
    for a in range(len(diversity.needed)):  # noqa: SIM110
        if work.different[a] < diversity.needed[a]:
            return False
    return True


@kernel
def add_price(price, copies, record, limit, size, held, total, work):
    """Put a price among the ``limit`` largest, in descending order; the number of entries, of copies, and the sum."""
    if limit == 0 or (held >= limit and price <= work.top_price[size - 1]):
        return size, held, total
    at = size
    while at > 0 and work.top_price[at - 1] < price:
        work.top_price[at], work.top_copies[at] = work.top_price[at - 1], work.top_copies[at - 1]
        work.top_record[at] = work.top_record[at - 1]
        at -= 1
    copies = min(copies, limit)
    work.top_price[at], work.top_copies[at], work.top_record[at] = price, copies, record
    size += 1
    held += copies
    total += copies * price
    while held > limit:
        last = size - 1
        goes = min(held - limit, work.top_copies[last])
        held -= goes
        total -= goes * work.top_price[last]
        work.top_copies[last] -= goes
        if work.top_copies[last] == 0:
            size -= 1
    return size, held, total


@kernel
def examine(low, high, near, k, others, best, ups, layout, diversity, work, plan):
    """Bound a part and look for a better box in it: the best room now known.

    low, high: int64[chains], the part. plan: int64[3], is told the bound of the part, the chain to halve it on, and the
    first place of the second half. A better box goes into ``work.best_box``.
    """
    kept = gather(low, high, near, k, others, best, ups, layout, work)
    sequence = np.argsort(work.cost[:kept])
    plan[0], last, size = bound_of(sequence, near, k, others, diversity, work)
    if plan[0] >= best:
        return best
    join_enough(low, sequence, last, size, near, k, diversity, work)
    joined = work.joined
    room = room_of(joined, near, k, others, ups, layout, work)
    if room < best:
        best = room
        for c in range(len(low)):
            work.best_box[c] = joined[c]
    # Halve where that box goes farthest beyond the least one.
    chain = 0
    for c in range(1, len(low)):
        if joined[c] - low[c] > joined[chain] - low[chain]:
            chain = c
    middle, at = low[chain] + (joined[chain] - low[chain] + 1) // 2, joined[chain]
    for s in range(last + 1):
        step = near.reach[work.some[sequence[s]], chain]
        if middle <= step < at:
            at = step
    plan[1], plan[2] = chain, at
    return best


@kernel
def gather(low, high, near, k, others, best, ups, layout, work):
    """Write the records that a better box of the part could hold, and what that would cost, into ``work``: how many."""
    some, cost = work.some, work.cost
    here, size, held, total = 0, 0, np.int64(0), np.int64(0)
    furthest = (best + near.top - 1) // k
    for i in range(len(near.price)):
        if near.away[i] > furthest:
            break
        if inside(near.reach, i, high):
            some[here], cost[here] = i, joined_cost(low, near.reach, i, ups, layout)
            here += 1
            if near.price[i] > 0:
                size, held, total = add_price(near.price[i], near.weight[i], i, others, size, held, total, work)
    # Boxes that cost more than this are no better than the best.
    dearest = (best + total - 1) // k
    kept = 0
    for j in range(here):
        if cost[j] <= dearest:
            some[kept], cost[kept] = some[j], cost[j]
            kept += 1
    return kept


@kernel
def bound_of(sequence, near, k, others, diversity, work):
    """The bound of a part, the last of the sequence that it needs, and how many entries of ``work.kept`` gave it.

    sequence: int64[n], the records gathered, in the order of their costs.
    """
    bound, at_bound, kept_size = np.int64(FAR), -1, 0
    size, held, total, records = 0, np.int64(0), np.int64(0), np.int64(0)
    count_anew(work)
    for s in range(len(sequence)):
        i = work.some[sequence[s]]
        records += near.weight[i]
        count_values(near.place[i], diversity, work)
        if near.price[i] > 0:
            size, held, total = add_price(near.price[i], near.weight[i], i, others, size, held, total, work)
        spent = work.cost[sequence[s]]
        if s + 1 < len(sequence) and work.cost[sequence[s + 1]] == spent:
            continue
        if records >= k and k * spent - total < bound and values_suffice(diversity, work):
            bound, at_bound, kept_size = k * spent - total, s, size
            for t in range(size):
                work.kept[t] = work.top_record[t]
    return bound, at_bound, kept_size


@kernel
def join_enough(low, sequence, last, size, near, k, diversity, work):
    """Write an allowed box into ``work.joined``: of the records in ``work.kept``, and as many others as it takes."""
    joined = work.joined
    for c in range(len(low)):
        joined[c] = low[c]
    for t in range(size):
        join(joined, near.reach, work.kept[t])
    records = np.int64(0)
    count_anew(work)
    for s in range(len(sequence)):
        i = work.some[s]
        if inside(near.reach, i, joined):
            records += near.weight[i]
            count_values(near.place[i], diversity, work)
    for s in range(last + 1):
        if records >= k and values_suffice(diversity, work):
            break
        i = work.some[sequence[s]]
        if not inside(near.reach, i, joined):
            join(joined, near.reach, i)
            records += near.weight[i]
            count_values(near.place[i], diversity, work)


@kernel
def room_of(box, near, k, others, ups, layout, work):
    """The room that a box leaves. box: int64[chains]."""
    spent = joined_cost(box, near.reach, 0, ups, layout)  # the nearest record is no wider than the own one
    size, held, total = 0, np.int64(0), np.int64(0)
    for i in range(len(near.price)):
        if near.away[i] > spent:
            break
        if near.price[i] > 0 and inside(near.reach, i, box):
            size, held, total = add_price(near.price[i], near.weight[i], i, others, size, held, total, work)
    return k * spent - total
