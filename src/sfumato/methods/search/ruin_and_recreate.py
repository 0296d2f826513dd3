"""Ruin and recreate: dissolve some neighbouring classes, rebuild them by agglomeration and search, keep them if better.

Local search ends where no single step gains. Dissolving a class and those nearest to it and rebuilding them leads out
of such a local optimum, and takes little time because they are few. New classes that cost as much as the old ones are
kept too, so that the next try starts from somewhere else.

The kernel draws its own random numbers (xorshift64*, Vigna 2016), so that they are the same everywhere.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.methods.clustering.agglomeration import agglomerate, increase
from sfumato.methods.search.local_search import search
from sfumato.methods.search.mutable_classes import (
    AFTER,
    COST,
    FIRST,
    OWNER,
    SIZE,
    build_classes,
    link,
    unlink,
    update_class,
)

SPARE = 8  # room for additional classes
SHUFFLE = 2  # the distance of a class is raised at random, by up to one part in this many


@inner_kernel
def next_random(state):
    """Return a random number and advance the state. state: uint64[1], not 0."""
    number = state[0]
    number ^= number >> np.uint64(12)
    number ^= number << np.uint64(25)
    number ^= number >> np.uint64(27)
    state[0] = number
    return (number * np.uint64(2685821657736338717)) >> np.uint64(32)


@kernel
def rebuild(part, owner, most, rules, tests, clusters, first, tries, near, most_rows, passes, state):
    """Improve the classes of a part by search and by ``tries`` tries to rebuild ``near`` of them; return the gain.

    owner: int64[n], the class of each row, below ``most``, gaps allowed, changed. clusters: ``cluster_space`` for
    ``most_rows`` or all. first, passes: the passes of the search over all rows, and over those of a try. most_rows: a
    try with more of them is passed over.
    """
    (codes, values), (layout, units, least), (lack, space, real) = part, rules, tests
    after, cluster_facts, cluster_box = clusters
    rows, facts, box = build_classes(codes, owner, most + SPARE, layout, units)
    gained = search(codes, values, rows, facts, box, layout, units, least, lack, space, real, first)
    class_ids = np.empty(near, np.int64)
    for _ in range(tries):
        centre = rows[np.int64(next_random(state) % np.uint64(len(codes))), OWNER]
        count = neighbours(facts, box, centre, layout, units, class_ids, state)
        chosen, cost = rows_of(rows, facts, class_ids, count)
        if count >= 2 and cost > 0 and len(chosen) <= most_rows:
            few_codes, few_values = part_of(codes, values, chosen)
            count_made = agglomerate(
                few_codes, few_values, layout, units, least, lack, space, real, after, cluster_facts, cluster_box, owner
            )
            few_rows, few_facts, few_box = build_classes(few_codes, owner, count_made, layout, units)
            search(
                few_codes, few_values, few_rows, few_facts, few_box,
                layout, units, least, lack, space, real, passes,
            )  # fmt: skip
            gained += replace_classes(
                codes, rows, facts, box, layout, units, class_ids, count, cost, few_rows, few_facts, chosen
            )
    for row in range(len(owner)):
        owner[row] = rows[row, OWNER]
    return gained


@inlined_kernel
def part_of(codes, values, chosen):
    """Return the codes and the values of the chosen rows: int64[n]."""
    few_codes = np.empty((len(chosen), codes.shape[1]), np.int64)
    few_values = np.empty((len(chosen), values.shape[1]), np.uint32)
    for i in range(len(chosen)):
        for q in range(codes.shape[1]):
            few_codes[i, q] = codes[chosen[i], q]
        for a in range(values.shape[1]):
            few_values[i, a] = values[chosen[i], a]
    return few_codes, few_values


@inlined_kernel
def rows_of(rows, facts, class_ids, count):
    """Return the rows of the first ``count`` classes in ``class_ids``, ascending, and their total cost."""
    cost, size = np.int64(0), np.int64(0)
    for i in range(count):
        class_id = class_ids[i]
        cost += facts[class_id, SIZE] * facts[class_id, COST]
        size += facts[class_id, SIZE]
    chosen, found = np.empty(size, np.int64), 0
    for row in range(len(rows)):
        for i in range(count):
            if rows[row, OWNER] == class_ids[i]:
                chosen[found] = row
                found += 1
    return chosen, cost


@inlined_kernel
def replace_classes(codes, rows, facts, box, layout, units, class_ids, count, cost, few_rows, few_facts, chosen):
    """Replace the first ``count`` of ``class_ids`` by rebuilt classes if they cost no more; return the gain.

    few_rows, few_facts: the rebuilt classes, whose rows are the chosen ones.
    """
    total, needed = np.int64(0), 0
    for class_id in range(len(few_facts)):
        total += few_facts[class_id, SIZE] * few_facts[class_id, COST]
        needed += few_facts[class_id, SIZE] > 0
    if total > cost:
        return np.int64(0)
    free, class_id = np.empty(max(needed, count), np.int64), 0
    for i in range(count):
        free[i] = class_ids[i]
    for i in range(count, needed):
        while class_id < len(facts) and facts[class_id, SIZE] > 0:
            class_id += 1
        if class_id == len(facts):
            return np.int64(0)  # too few unused classes
        free[i] = class_id
        class_id += 1
    for i in range(len(chosen)):
        unlink(rows, facts, chosen[i])
    i = 0
    for class_id in range(len(few_facts)):
        row = few_facts[class_id, FIRST]
        i += row != NONE
        while row != NONE:
            link(rows, facts, chosen[row], free[i - 1])
            row = few_rows[row, AFTER]
    for i in range(len(free)):
        update_class(codes, rows, facts, box, free[i], layout, units)
    return cost - total


@inner_kernel
def neighbours(facts, box, centre, layout, units, class_ids, state):
    """Fill ``class_ids`` with a class and its nearest ones by the cost of joining, with some noise; return how many."""
    class_ids[0] = centre
    distances = np.empty(len(class_ids), np.int64)
    count = 1
    for class_id in range(len(facts)):
        if class_id == centre or facts[class_id, SIZE] == 0:
            continue
        limit = distances[count - 1] if count == len(class_ids) else INFINITE
        added = increase(facts, box, centre, class_id, layout, units, limit)
        added += added // SHUFFLE // 1024 * np.int64(next_random(state) % np.uint64(1024))
        if count == len(class_ids) and added >= distances[count - 1]:
            continue
        count = min(count + 1, len(class_ids))
        i = count - 1
        while i > 1 and distances[i - 1] > added:
            distances[i], class_ids[i] = distances[i - 1], class_ids[i - 1]
            i -= 1
        distances[i], class_ids[i] = added, class_id
    return count
