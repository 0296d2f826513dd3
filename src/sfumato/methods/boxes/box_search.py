"""The box around a record that leaves least slack for its price, by branch and bound.

Every record has a price, an integer number of cost units, and no price is below a ``base`` of at most 0. Prices and
costs are counted from it: that changes nothing for k records in a box. A box is allowed if it holds at least k records
and enough different sensitive values; of one sensitive attribute, only so many records count as may have the same value
among k (``DiversityLimits``). For the c copies of the record itself (``own``) together it leaves the slack

    the least of c / j * (k * cost of the box - the k - j largest prices of other records in it) over j from 1 to c

since a class may hold any number j of the copies, and all have one price (``largest_prices.shared_slack``). Only the
prices of records of a lower rank count; those of the others are the base. ``least_slacks`` finds the smallest slack
over all allowed boxes that hold the record. With all prices 0 that is k times the cost of the cheapest box.

A box that holds the record is given by its extents on *chains*: for a category, how far up its ancestors the box
reaches; for a number, how far down and how far up. Extents are costs, and the cost of a box is their sum, on each
attribute at most that of the whole domain. A part of the search is the set of boxes between two vectors of extents,
``low`` and ``high``. Records beyond ``high`` are in none of them; any other record is only in boxes that cost at least
as much as the smallest box from ``low`` on that holds it. Taking records in the order of that cost gives the least
slack that a box of the part could leave, as if boxes of equal cost could hold any record that is near: the bound of the
part. Parts are halved on one chain, the least bound first, until no bound is below the best box found. Where that takes
more than ``max_parts`` parts, the answer is the least bound of those left: it is at most the slack of any box.

Around a dear record there are thousands of others, most of them too cheap to be among the k dearest of any tight box.
So a first search takes their prices for a third of its own, however many of them a box needs, and looks at them only
nearby, to see which small boxes hold k records at all. Counted from that third, they cost nothing. What this leaves is
no more than the slack: if it is not below the goal, nothing is. Otherwise all records are searched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.losses.exact_costs import DIFFERENCE
from sfumato.methods.boxes.diversity_limits import (
    ValueTally,
    count_values,
    counts_values,
    reset_values,
    values_suffice,
)
from sfumato.methods.boxes.largest_prices import LargestPrices, add_price, largest_sum, make_room, shared_slack
from sfumato.methods.boxes.neighbourhood import inside, joined_cost, neighbourhood, widen_box, within

LEFT_OUT = 3  # the first search leaves records out that pay at most the own price divided by this
LISTED = 1 << 12  # neighbours of a part that are kept for its halves, at most


@kernel
def least_slacks(
    tree, targets, prices, base, rank, nearby, dearest, k, goals, max_parts, diversity, layout, units, result
):
    """Write the least slack of each of the positions ``targets``, where it is below its goal, into ``result``.

    tree: KdTree. targets: int64[t]. prices, rank: int64[m], by position in the tree; base: no price is below it.
    nearby: int64[m], how far a first search looks at cheap records, 0 for none; the slack is the same. dearest:
    int64[nodes], see dearest_of_nodes. goals: int64[t], in all for the copies of each target, above the base.
    diversity: DiversityLimits. layout, units: see Costs. result: slack int64[t], the goal where nothing is below it;
    box_slack int64[t], the least slack of the boxes that were examined, or the goal; box_low, box_high:
    uint[t, d], that box, or the record itself. The slack is exact where it equals that of the box.
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
        LargestPrices(
            np.empty(k + 1, np.int64),
            np.empty(k + 1, np.int64),
            np.empty(k + 1, np.int64),
            np.empty(k + 1, np.int64),
            np.empty(k + 1, np.int64),
        ),
        np.empty(k + 1, np.int64),
        ValueTally(
            np.zeros(len(diversity.owner), np.int64),
            np.zeros(len(diversity.needed), np.int64),
            np.zeros(1, np.int64),
            np.zeros(diversity.shares, np.int64),
            np.empty(diversity.shares, np.int64),
        ),
        np.empty(chains, np.int64),
        np.empty(chains, np.int64),
    )
    # The waiting parts: their ends on the chains; their plans: the bound, the chain to halve them on, where, how many
    # neighbours a better box could hold, and the row of ``lists`` with these: a half need not look at any others. Lists
    # that are longer than LISTED are not kept.
    ends = np.empty((2, max_parts + 2, chains), np.int64)
    plans = np.empty((max_parts + 2, 5), np.int64)
    lists = np.empty((max_parts + 2, min(LISTED, m)), np.int64)
    everybody = np.arange(m)
    for part in range(max_parts + 2):
        plans[part, 4] = part
    for number in range(len(targets)):
        own = targets[number]
        copies = min(weights[own], k if diversity.value[own] == NONE else min(diversity.most, k))
        for level in (base + (prices[own] - base) // LEFT_OUT, base):
            # What the goal and the slack are above the level.
            goal = goals[number] - copies * (level - base)
            if level > base and (goal <= 0 or nearby[own] == 0):
                continue
            near = neighbourhood(
                tree, own, goal, prices, level, level > base, nearby, dearest, rank, k, copies, diversity, ups, layout,
                units, work,
            )  # fmt: skip
            lowest, best = search_parts(
                near, goal, everybody, ends, plans, lists, level, k, copies, ups, layout, diversity, work
            )
            if lowest >= goal or level == base:  # without a price, both levels are the same
                break
        above = copies * (level - base)
        slack[number], box_slack[number] = lowest + above, best + above
        write_box(codes, own, near, best < goal, work.best_box, box_low[number], box_high[number])


@inlined_kernel
def search_parts(near, goal, everybody, ends, plans, lists, base, k, copies, ups, layout, diversity, work):
    """Return the least slack of all boxes, at most ``goal``, and that of the boxes that were examined.

    A first search ends with the first box below the goal. everybody: int64[m]. ends, plans, lists: see least_slacks.
    """
    chains, max_parts = ends.shape[2], len(plans) - 2
    best = goal
    for c in range(chains):
        ends[0, 0, c], ends[1, 0, c] = 0, INFINITE
    reached = within(near.distance, (near.top - 1) // k + base)
    best = examine(
        ends[0, 0], ends[1, 0], near, everybody, reached, lists, base, k, copies, best, ups, layout, diversity, work,
        plans[0],
    )  # fmt: skip
    waiting, halved, lowest = 1, 0, INFINITE
    while waiting > 0 and (best == goal or near.known == INFINITE):
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
        whole, count = everybody, reached
        if plans[waiting, 3] <= lists.shape[1]:
            whole, count = lists[plans[waiting, 4]], plans[waiting, 3]
        for half in (part, waiting):  # the second half overwrites the list of the whole
            best = examine(
                ends[0, half], ends[1, half], near, whole, count, lists, base, k, copies, best, ups, layout, diversity,
                work, plans[half],
            )  # fmt: skip
        waiting += 1
        # Drop the parts that cannot be better.
        for half in (waiting - 1, part):
            if plans[half, 0] >= best:
                waiting -= 1
                move_part(ends, plans, waiting, half)
    return min(lowest, best), best


@inlined_kernel
def write_box(codes, own, near, found, extents, box_low, box_high):
    """Write the box of the neighbours within some extents into box_low and box_high, or the record where none is found.

    codes: uint[m, d]; extents: int64[chains]; box_low, box_high: uint[d].
    """
    for q in range(len(box_low)):
        box_low[q], box_high[q] = codes[own, q], codes[own, q]
    if found:
        for i in range(len(near.position)):
            if inside(near.reach, i, extents):
                for q in range(len(box_low)):
                    box_low[q] = min(box_low[q], codes[near.position[i], q])
                    box_high[q] = max(box_high[q], codes[near.position[i], q])


@inner_kernel
def move_part(ends, plans, source, target):
    """Copy a part over another, and exchange their lists. ends: int64[2, parts, chains]; plans: int64[parts, 5]."""
    for c in range(ends.shape[2]):
        ends[0, target, c], ends[1, target, c] = ends[0, source, c], ends[1, source, c]
    for c in range(4):
        plans[target, c] = plans[source, c]
    plans[target, 4], plans[source, 4] = plans[source, 4], plans[target, 4]


class SearchBuffers(NamedTuple):
    """Working space of a search. gathered: the neighbours that a box of the part could hold; cost: what that costs.

    largest: the largest prices; kept: the neighbours whose prices gave the bound; values: the sensitive values counted;
    joined, best_box: int64[chains], the extents of the present and of the best box.
    """

    cost: NDArray[np.int64]
    gathered: NDArray[np.int64]
    largest: LargestPrices
    kept: NDArray[np.int64]
    values: ValueTally
    joined: NDArray[np.int64]
    best_box: NDArray[np.int64]


@inner_kernel
def examine(low, high, near, whole, count, lists, base, k, copies, best, ups, layout, diversity, work, plan):
    """Bound a part, look for a better box in it, and return the least slack known now.

    low, high: int64[chains], the part. whole: int64[count], the neighbours that its boxes could hold. plan: int64[5],
    receives the bound of the part, the chain to halve it on, the first extent of the second half, and how many
    neighbours a better box could hold; these are written into its row of ``lists`` if they fit. A better box is written
    into ``work.best_box``.
    """
    most = diversity.most
    gathered = work.gathered
    kept = gather(low, high, near, whole, count, gathered, base, k, copies, most, best, ups, layout, work)
    sequence = np.argsort(work.cost[:kept])
    plan[0], last, size = bound_of(sequence, near, gathered, base, k, copies, diversity, work)
    plan[3] = kept
    if plan[0] >= best:
        return best
    if kept <= lists.shape[1]:
        for j in range(kept):
            lists[plan[4], j] = gathered[j]
    join_enough(low, sequence, last, size, near, gathered, k, diversity, work)
    joined = work.joined
    slack = slack_of(joined, near, base, k, copies, most, ups, layout, work)
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
        step = near.reach[gathered[sequence[s]], chain]
        if middle <= step < at:
            at = step
    plan[1], plan[2] = chain, at
    return best


@inlined_kernel
def gather(low, high, near, whole, count, gathered, base, k, copies, most, best, ups, layout, work):
    """Write the neighbours that a better box of the part could hold into ``gathered``; return how many.

    What a box with each of them costs is written into ``work.cost``.
    """
    reach, own, prices, values, weights = near.reach, near.own, near.price, near.value, near.weight
    cost, largest, own_value = work.cost, work.largest, near.own_value
    found, size, held, total = 0, 0, np.int64(0), np.int64(0)
    for j in range(count):
        i = whole[j]
        if inside(reach, i, high):
            gathered[found], cost[found] = i, joined_cost(low, reach, own, i, ups, layout)
            found += 1
            if prices[i] > 0:
                weight, value = weights[i], values[i]
                if value != NONE:
                    weight, size, held, total = make_room(
                        prices[i], weight, value, most - (value == own_value), k - 1, size, held, total, largest
                    )
                size, held, total = add_price(prices[i], weight, value, i, k - 1, size, held, total, largest)
    # Boxes that cost more than this are no better than the best.
    dearest = (largest_sum(best, k - copies, copies, size, largest) - 1) // k + base
    kept = 0
    for j in range(found):
        if cost[j] <= dearest:
            gathered[kept], cost[kept] = gathered[j], cost[j]
            kept += 1
    return kept


@inlined_kernel
def bound_of(sequence, near, gathered, base, k, copies, diversity, work):
    """Return the bound of a part, the last of the sequence that it needs, and how many of ``work.kept`` give it.

    sequence: int64[n], the gathered neighbours, in the order of their costs.
    """
    prices, values, weights, own_value = near.price, near.value, near.weight, near.own_value
    cost, largest, most = work.cost, work.largest, diversity.most
    counting = counts_values(diversity)
    bound, at_bound, kept_size, before = INFINITE, -1, 0, np.int64(-1)
    size, held, total, records = 0, np.int64(0), np.int64(0), np.int64(0)
    reset_values(work.values)
    for s in range(len(sequence)):
        i = gathered[sequence[s]]
        weight, value = weights[i], values[i]
        records += count_values(near.position[i], weight, diversity, work.values) if counting else weight
        if prices[i] > 0:
            if value != NONE:
                weight, size, held, total = make_room(
                    prices[i], weight, value, most - (value == own_value), k - 1, size, held, total, largest
                )
            size, held, total = add_price(prices[i], weight, value, i, k - 1, size, held, total, largest)
        # With the same prices the slack is no less than before; boxes of equal cost are taken together.
        spent = cost[sequence[s]]
        following = cost[sequence[s + 1]] if s + 1 < len(sequence) else INFINITE
        if total <= before or following == spent:
            continue
        if records < k or (counting and not values_suffice(diversity, work.values)):
            if following <= near.known:
                continue
            spent = max(spent, near.known)  # the records that are missing may be farther away
        before = total
        slack, used = shared_slack(
            k * (spent - base), k - copies, copies, own_value, most - copies, size, total, largest
        )
        if slack < bound:
            bound, at_bound, kept_size = slack, s, used
            for t in range(used):
                work.kept[t] = largest.record[t]
    return bound, at_bound, kept_size


@inlined_kernel
def join_enough(low, sequence, last, size, near, gathered, k, diversity, work):
    """Write an allowed box into ``work.joined``: the neighbours in ``work.kept``, and as many others as it takes."""
    joined, reach, weights = work.joined, near.reach, near.weight
    counting = counts_values(diversity)
    for c in range(len(low)):
        joined[c] = low[c]
    for t in range(size):
        widen_box(joined, reach, work.kept[t])
    records = np.int64(0)
    reset_values(work.values)
    for s in range(len(sequence)):
        i = gathered[s]
        if inside(reach, i, joined):
            records += count_values(near.position[i], weights[i], diversity, work.values) if counting else weights[i]
    for s in range(last + 1):
        if records >= k and (not counting or values_suffice(diversity, work.values)):
            break
        i = gathered[sequence[s]]
        if not inside(reach, i, joined):
            widen_box(joined, reach, i)
            records += count_values(near.position[i], weights[i], diversity, work.values) if counting else weights[i]


@inlined_kernel
def slack_of(box, near, base, k, copies, most, ups, layout, work):
    """Return the slack that a box leaves. box: int64[chains]."""
    reach, prices, values, weights = near.reach, near.price, near.value, near.weight
    largest, own_value = work.largest, near.own_value
    # The nearest neighbour is no wider than the record itself.
    spent = joined_cost(box, reach, near.own, np.int64(0), ups, layout)
    size, held, total = 0, np.int64(0), np.int64(0)
    for i in range(within(near.distance, spent)):
        if prices[i] > 0 and inside(reach, i, box):
            weight, value = weights[i], values[i]
            if value != NONE:
                weight, size, held, total = make_room(
                    prices[i], weight, value, most - (value == own_value), k - 1, size, held, total, largest
                )
            size, held, total = add_price(prices[i], weight, value, i, k - 1, size, held, total, largest)
    spent = k * (spent - base)
    return shared_slack(spent, k - copies, copies, own_value, most - copies, size, total, largest)[0]
