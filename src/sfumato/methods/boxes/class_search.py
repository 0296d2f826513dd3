"""The class around a record that undercuts the prices of its records most, by branch and bound.

Every record has a price, and every triple of records a penalty (``Triples``). A class S of n records in its smallest
box B leaves the slack

    n * cost(B) - the prices of its records + for each triple the penalty times half of its records in S, rounded down

``lower_prices`` finds, among the classes of k to 2k - 1 records that hold a given record and otherwise only records of
a lower rank, the one with the least slack, and lowers the price of the record until no slack is below 0.

A node of the search is a class that is not complete, and the records that may still join it. Taking these in the order
of what the box costs with each of them, the best ones so far, as many as the class needs or as pay more than they cost,
give a bound on what the class can become. Of a triple that has an odd number of its records in the class, two more of
them may come for one penalty, so each pays half of it. One of the records that give the bound joins the class, and then
is kept out of it. A search that takes more than ``max_nodes`` nodes ends with the bound of its first node, which is no
more than the slack of any class. ``k`` is at least 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.losses.exact_costs import widened_cost
from sfumato.methods.boxes.neighbourhood import near_records

LOWERED = 5  # how often the price of a record with copies is lowered by what one of them must give


class Triples(NamedTuple):
    """Triples of records, and what a class pays less for two of them.

    members: int64[t, 3], positions in the tree. penalty: int64[t], at least 0. starts: int64[m + 1] and of_record:
    int64[3t], the triples of each record.
    """

    members: NDArray[np.int64]
    penalty: NDArray[np.int64]
    starts: NDArray[np.int64]
    of_record: NDArray[np.int64]


class ClassBuffers(NamedTuple):
    """Working space of a search: the records that may join, and by its size the class so far.

    position, left: int64[m], the records and how many copies of each are left. kept_out: int64[m], the size of the
    class that a record was kept out of, or 0. cost, worth: int64[m], what the box costs with the record, and what it
    pays at most. low, high: int64[2k, d], box, paid: int64[2k], the box of the class, its cost, and what the class
    pays; joined: int64[2k], the record that joined last. counts: int64[t], records of each triple in the class. top,
    top_record: int64[2k], the best records of a bound. best: int64[2k], the class with the least slack.
    """

    position: NDArray[np.int64]
    left: NDArray[np.int64]
    kept_out: NDArray[np.int64]
    cost: NDArray[np.int64]
    worth: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    box: NDArray[np.int64]
    paid: NDArray[np.int64]
    joined: NDArray[np.int64]
    counts: NDArray[np.int64]
    top: NDArray[np.int64]
    top_record: NDArray[np.int64]
    best: NDArray[np.int64]


@kernel
def lower_prices(tree, targets, prices, rank, triples, k, max_nodes, layout, units, lowered, classes):
    """Write the lowered price of each of the positions ``targets``, and some classes that undercut it as it is.

    tree: KdTree. targets: int64[t]. prices, rank: int64[m], by position in the tree. layout, units: see Costs.
    lowered: int64[t]. classes: int32[t, some, 2k - 1], the positions of classes that undercut it, each more than those
    found before; filled up with NONE.
    """
    m, d = tree.codes.shape
    room = 2 * k
    work = ClassBuffers(
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty((room, d), np.int64),
        np.empty((room, d), np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(len(triples.penalty), np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )
    everywhere = np.zeros(len(tree.spans), np.int64)
    for number in range(len(targets)):
        own = targets[number]
        price, limit = prices[own], prices[own] - 1
        # No other record pays more, so a class that costs as much as the own price is not undercut.
        found = near_records(
            tree, own, limit, limit, prices, np.int64(0), everywhere, rank, layout, units, work.position, work.cost
        )
        count = 0
        for i in range(found):
            position = work.position[i]
            copies = tree.weights[position] - (position == own)
            if copies > 0 and (rank[position] < rank[own] or position == own):
                work.position[count], work.left[count], work.kept_out[count] = position, min(copies, room), 0
                count += 1
        classes[number] = NONE
        for attempt in range(LOWERED):
            slack, size, is_least = least_slack(
                tree, own, price, count, prices, triples, k, max_nodes, layout, units, work, attempt == 0,
                classes[number],
            )  # fmt: skip
            if slack >= 0:
                break
            copies = 0
            for t in range(size):
                copies += work.best[t] == own
            if copies > 1 and is_least and attempt < LOWERED - 1:
                price -= (-slack + copies - 1) // copies
            else:
                price += slack  # a class has one copy or more, so this is enough for every class
                break
        lowered[number] = price


@inlined_kernel
def least_slack(tree, own, price, count, prices, triples, k, max_nodes, layout, units, work, is_written, classes):
    """Return the least slack of all classes, at most 0, the size of a class below 0 or 0, and whether it is the least.

    The class is written into ``work.best``, and with others into ``classes``, int32[some, 2k - 1], if ``is_written``.
    price: what each copy of the record ``own`` pays. count: of the records in ``work``.
    """
    codes = tree.codes
    for q in range(codes.shape[1]):
        work.low[1, q], work.high[1, q] = codes[own, q], codes[own, q]
    work.box[1] = widened_cost(work.low[1], work.high[1], codes[own], layout, units)
    work.paid[1], work.best[0] = price, own
    join_triples(own, triples, work.counts)
    size, nodes, best, best_size, first_bound, found = 1, 0, np.int64(0), 0, np.int64(0), 0
    while size > 0:
        nodes += 1
        bound, record = bound_of_class(own, price, size, count, codes, prices, triples, k, layout, units, work)
        if size == 1:
            first_bound = bound
        if bound < best and nodes <= max_nodes:
            position = work.position[record]
            work.left[record] -= 1
            penalties = join_triples(position, triples, work.counts)
            for q in range(codes.shape[1]):
                code = np.int64(codes[position, q])
                work.low[size + 1, q] = min(work.low[size, q], code)
                work.high[size + 1, q] = max(work.high[size, q], code)
            size += 1
            work.joined[size] = record
            work.box[size] = widened_cost(work.low[size], work.high[size], codes[position], layout, units)
            work.paid[size] = work.paid[size - 1] + (price if position == own else prices[position]) - penalties
            slack = size * work.box[size] - work.paid[size]
            if size >= k and slack < best:
                best, best_size = slack, size
                for t in range(2, size + 1):
                    work.best[t - 1] = work.position[work.joined[t]]
                if is_written:
                    for t in range(2 * k - 1):
                        classes[found % len(classes), t] = work.best[t] if t < size else NONE
                    found += 1
            continue
        for i in range(count):
            if work.kept_out[i] == size:
                work.kept_out[i] = 0
        if size > 1:
            record = work.joined[size]
            work.left[record] += 1
            work.kept_out[record] = size - 1
            leave_triples(work.position[record], triples, work.counts)
        size -= 1
    leave_triples(own, triples, work.counts)
    if nodes <= max_nodes:
        return best, best_size, True
    return min(best, first_bound), best_size, False


@inner_kernel
def join_triples(position, triples, counts):
    """Count a record that joins the class in its triples; return the penalties that the class pays from now on."""
    penalties = np.int64(0)
    for at in range(triples.starts[position], triples.starts[position + 1]):
        triple = triples.of_record[at]
        counts[triple] += 1
        if counts[triple] % 2 == 0:
            penalties += triples.penalty[triple]
    return penalties


@inner_kernel
def leave_triples(position, triples, counts):
    """Take a record that leaves the class out of the counts of its triples."""
    for at in range(triples.starts[position], triples.starts[position + 1]):
        counts[triples.of_record[at]] -= 1


@inlined_kernel
def bound_of_class(own, price, size, count, codes, prices, triples, k, layout, units, work):
    """Return a bound on the slack of what the class can become with more records, and one that gives it."""
    room, kept = 2 * k - 1 - size, 0
    if room == 0:
        return INFINITE, 0
    sequence = np.empty(count, np.int64)
    for i in range(count):
        if work.left[i] > 0 and work.kept_out[i] == 0:
            position = work.position[i]
            work.cost[i] = widened_cost(work.low[size], work.high[size], codes[position], layout, units)
            halves = np.int64(0)
            for at in range(triples.starts[position], triples.starts[position + 1]):
                triple = triples.of_record[at]
                if work.counts[triple] % 2 == 1:
                    halves += triples.penalty[triple]
            work.worth[i] = (price if position == own else prices[position]) - halves // 2
            sequence[kept] = i
            kept += 1
    sequence = sequence[:kept]
    sequence = sequence[np.argsort(work.cost[sequence])]
    top, top_record, needed = work.top, work.top_record, max(k - size, 1)
    bound, record, held, is_changed = INFINITE, 0, 0, False
    for s in range(kept):
        i = sequence[s]
        cost, worth = work.cost[i], work.worth[i]
        for _ in range(min(work.left[i], room)):
            if held == room and worth <= top[held - 1]:
                break
            at = min(held, room - 1)
            while at > 0 and top[at - 1] < worth:
                top[at], top_record[at] = top[at - 1], top_record[at - 1]
                at -= 1
            top[at], top_record[at], is_changed = worth, i, True
            held = min(held + 1, room)
        if not is_changed or held < needed or (s + 1 < kept and work.cost[sequence[s + 1]] == cost):
            continue
        is_changed = False
        slack, used = (size + needed) * cost - work.paid[size], needed
        for t in range(needed):
            slack -= top[t]
        while used < held and top[used] > cost:
            slack -= top[used] - cost
            used += 1
        if slack < bound:
            bound, record = slack, top_record[0]
            for t in range(1, used):
                if work.cost[top_record[t]] > work.cost[record]:
                    record = top_record[t]
    return bound, record
