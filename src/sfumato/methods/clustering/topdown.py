"""TopDown (Xu, Wang, Pei, Wang, Shi, Fu 2006; Ghinita 2007, section 2.2): clusters divided in two.

Dividing. All records are one class. A class of 2k and more is divided around two records that are far from each other:
from a record at random to the one that is farthest from it, from there again to the farthest, and so on for as long as
the distance grows, at most six times. The distance of two records is the NCP of the box around them. The other records
come in random order, each to the side whose penalty (its size times its NCP) grows least.

Mending. A class of fewer than k borrows as many records as it lacks from one that can spare them, or is joined with
another, whichever costs less, over all other classes.

Dividing takes about O(N d log N) for N distinct records, since halves are seldom very unequal. To mend a class, a tree
of boxes over all classes is searched, branch and bound: O(d log N) where boxes hardly overlap, O(N d) where all do.

Which side a record goes to is a reading: "the lower penalty" could also be that of the side itself, by its NCP (half as
much loss again on Adult) or by its size times that (several times the loss).

Differs from the paper: what borrowing costs is the penalty of the mended class, less what its records paid before; the
paper first looks for the smallest mended class (4% more loss on Adult). At most as many are borrowed as leave k, so a
class is joined only if fewer than 2k come together: every class has k to 2k - 1 records, or equal ones. Equal records
stay together when a class is divided, and are told apart only when some are borrowed. The random order is drawn once
for the whole table. Ties go to the side with fewer records, and to the lower record. If one of the two far records
stays alone and is fewer than k, the others are assigned anew, by the NCP of the sides alone: where all categories of an
attribute are equally far from each other, as in a flat taxonomy, they would be divided off one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices, thread_count
from sfumato.losses.exact_costs import attribute_cost, widen
from sfumato.methods.line.optimal_cut import BATCH_CLASSES
from sfumato.methods.method import ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes

ROUNDS = 6  # on the way to the farthest pair
SHARE = 1 << 14  # distinct records of a class that one thread divides to the end
STEP = 1 << 10  # classes that are mended before progress is told
WAITING = 128  # more parts, or nodes of a tree, than can wait at a time: two for each bit of their number


@dataclass(frozen=True, kw_only=True)
class TopDown:
    """Divide classes around two far records, then mend those that are too small."""

    name = "topdown"
    paper = "Xu, Wang, Pei, Wang, Shi, Fu: Utility-based anonymization using local recoding, KDD 2006"
    summary = "classes divided around two far records, small ones mended; time about O(N d log N)"
    use = "when loss matters more than time: up to a few million records"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Any requirement can be met: classes of k are joined until it holds."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.tested and not requirements.attributes

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        k = requirements.least_class
        weights = np.diff(records.starts)
        # The raw numbers of a generator are the same in every version of NumPy; what is made of them need not be.
        line = np.argsort(np.random.PCG64(records.seed or 0).random_raw(len(weights)), kind="stable").astype(np.uint32)
        cuts = _divided(records, weights, line, k, progress)
        groups = _groups(records, weights, line, cuts, k)
        half, classes = records.count // 2, len(groups.head)
        for first, last in slices(classes, STEP):
            mend(groups, records.codes, first, last, k, records.costs.layout, records.costs.units)
            progress.advance(last * half // classes - first * half // classes)
        rows = np.empty_like(records.rows)
        lay_out(groups, records.starts, records.rows, rows)
        there = np.flatnonzero(groups.size)
        starts = np.append(0, np.cumsum(groups.size[there]))
        boxes = there + len(groups.low) // 2
        for first, last in slices(len(there), BATCH_CLASSES):
            these = starts[first : last + 1]
            low, high = groups.low[boxes[first:last]], groups.high[boxes[first:last]]
            yield ClassBatch(rows[these[0] : these[-1]], these - these[0], low, high)


def _divided(
    records: Records, weights: NDArray[np.int64], line: NDArray[np.uint32], k: int, progress: Progress
) -> NDArray[np.int64]:
    """Put the distinct records in the order of their classes; where these begin, and the end."""
    begins = np.zeros(len(line), np.bool_)
    is_other, spare = np.zeros(len(line), np.bool_), np.empty_like(line)
    codes, layout, units = records.codes, records.costs.layout, records.costs.units

    def divide_once(part: tuple[int, int]) -> int:
        return int(divide(codes, weights, line, *part, k, layout, units, is_other, spare))

    def divide_to_the_end(part: tuple[int, int]) -> None:
        divide_fully(codes, weights, line, *part, k, layout, units, is_other, spare, begins)

    parts, small = [(0, len(line))], []
    while parts:  # those that are too large to be one thread's share
        small += [part for part in parts if part[1] - part[0] <= SHARE]
        large = [part for part in parts if part[1] - part[0] > SHARE]
        middles = in_threads(divide_once, large)
        small += [part for part, middle in zip(large, middles, strict=True) if middle == part[1]]
        parts = [
            half
            for (begin, end), middle in zip(large, middles, strict=True)
            for half in ((begin, middle), (middle, end))
            if middle < end
        ]
    rest = records.count - records.count // 2  # the other half is told of while classes are mended
    done = 0
    for first, last in slices(len(small), 2 * thread_count()):
        in_threads(divide_to_the_end, small[first:last])
        told, done = done, done + sum(end - begin for begin, end in small[first:last])
        progress.advance(done * rest // len(line) - told * rest // len(line))
    return np.append(np.flatnonzero(begins), len(line))


@kernel
def divide_fully(codes, weights, line, begin, end, k, layout, units, is_other, spare, begins):
    """Divide the class line[begin:end] and its parts; mark in begins: bool[m] where classes begin. See ``divide``."""
    waiting = np.empty((WAITING, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = begin, end
    left = 1
    while left > 0:
        left -= 1
        begin, end = waiting[left]
        middle = divide(codes, weights, line, begin, end, k, layout, units, is_other, spare)
        if middle == end:
            begins[begin] = True
            continue
        # The smaller part is next, so that few wait.
        smaller = left + 1 if middle - begin < end - middle else left
        waiting[smaller, 0], waiting[smaller, 1] = begin, middle
        waiting[2 * left + 1 - smaller, 0], waiting[2 * left + 1 - smaller, 1] = middle, end
        left += 2


@kernel
def divide(codes, weights, line, begin, end, k, layout, units, is_other, spare):
    """Divide the class line[begin:end] in two, the order within each as before; where the second begins.

    That is ``end`` for a class of fewer than 2k, or of equal records. codes: uint[m, d]; weights: int64[m], records of
    each distinct one; line: uint32[m], in random order at first. is_other: bool[m], spare: uint32[m], overwritten.
    """
    total = np.int64(0)
    for place in range(begin, end):
        total += weights[line[place]]
    if total < 2 * k or end - begin == 1:
        return end
    one, other = far_records(codes, line, begin, end, layout, units)
    by_size = total > 0  # a constant would have the callee compiled twice
    lone = assign(codes, weights, line, begin, end, one, other, by_size, k, layout, units, is_other)
    if lone:
        assign(codes, weights, line, begin, end, one, other, not by_size, k, layout, units, is_other)
    middle, others = begin, 0
    for place in range(begin, end):
        if is_other[place]:
            spare[begin + others] = line[place]
            others += 1
        else:
            line[middle] = line[place]
            middle += 1
    for place in range(others):
        line[middle + place] = spare[begin + place]
    return middle


@kernel
def far_records(codes, line, begin, end, layout, units):
    """Two records of line[begin:end] that are far from each other."""
    one, other = np.int64(line[begin]), np.int64(line[begin])
    distance = np.int64(-1)
    for _ in range(ROUNDS):
        farthest, most = np.int64(NONE), np.int64(-1)
        for place in range(begin, end):
            record = np.int64(line[place])
            if record != one:
                away = cost_with(codes[one], codes[one], codes[record], layout, units)
                if away > most or (away == most and record < farthest):
                    farthest, most = record, away
        if most <= distance:
            break
        one, other, distance = farthest, one, most
    return one, other


@kernel
def assign(codes, weights, line, begin, end, one, other, by_size, k, layout, units, is_other):
    """Mark the records of line[begin:end] that go to ``other`` and not to ``one``; is either alone, and below k?

    by_size: by what a side's penalty grows; else by its NCP with the record.
    """
    low, high = np.empty((2, codes.shape[1]), codes.dtype), np.empty((2, codes.shape[1]), codes.dtype)
    for q in range(codes.shape[1]):
        low[0, q], high[0, q] = codes[one, q], codes[one, q]
        low[1, q], high[1, q] = codes[other, q], codes[other, q]
    size, cost, members = np.empty(2, np.int64), np.zeros(2, np.int64), np.ones(2, np.int64)
    size[0], size[1] = weights[one], weights[other]
    for place in range(begin, end):
        record = np.int64(line[place])
        if record in (one, other):
            is_other[place] = record == other
            continue
        weight = weights[record]
        with_one = cost_with(low[0], high[0], codes[record], layout, units)
        with_other = cost_with(low[1], high[1], codes[record], layout, units)
        less = with_other - with_one
        if by_size:
            less = (size[1] + weight) * with_other - size[1] * cost[1]
            less -= (size[0] + weight) * with_one - size[0] * cost[0]
        side = 1 if less < 0 or (less == 0 and size[1] < size[0]) else 0
        is_other[place] = side == 1
        size[side] += weight
        members[side] += 1
        cost[side] = with_other if side == 1 else with_one
        widen(low[side], high[side], codes[record])
    return (members[0] == 1 and size[0] < k) or (members[1] == 1 and size[1] < k)


@kernel
def cost_with(low, high, codes, layout, units):
    """The cost of a box when a record is added. low, high, codes: uint[d]; layout, units: see losses.costs.Costs."""
    total = np.int64(0)
    for q in range(len(codes)):
        code = np.int64(codes[q])
        total += attribute_cost(layout, units, q, min(np.int64(low[q]), code), max(np.int64(high[q]), code))
    return total


class Groups(NamedTuple):
    """The classes while they are mended.

    A class is a linked list of entries, each some of the records of a distinct one. record: uint32, held: int64 and
    after: int64[entries], the next entry or NONE; free: int64[1], the first entry that is not in use. taken:
    int64[entries], working space.
    head, size, cost: int64[c], by class: its first entry, its records, 0 when it was joined to another, and the cost of
    its box. low, high: uint[2 w, d], a tree of boxes: node i is above 2 i and 2 i + 1, class c is node w + c. The low
    codes of a node without records are above the high ones. lending: int64[2 w], the cost of the costliest class under
    a node that has more than k records, NONE where there is none.
    """

    record: NDArray[np.uint32]
    held: NDArray[np.int64]
    after: NDArray[np.int64]
    free: NDArray[np.int64]
    taken: NDArray[np.int64]
    head: NDArray[np.int64]
    size: NDArray[np.int64]
    cost: NDArray[np.int64]
    low: Codes
    high: Codes
    lending: NDArray[np.int64]


def _groups(
    records: Records, weights: NDArray[np.int64], line: NDArray[np.uint32], cuts: NDArray[np.int64], k: int
) -> Groups:
    """The classes that begin at the cuts of the line."""
    classes = len(cuts) - 1
    entries = len(line) + classes  # a class borrows once, and then takes one entry apart
    nodes = 2 << (classes - 1).bit_length()
    codes = records.codes
    groups = Groups(
        record=np.append(line, np.zeros(classes, np.uint32)),
        held=np.append(weights[line], np.zeros(classes, np.int64)),
        after=np.arange(1, entries + 1),
        free=np.array([len(line)]),
        taken=np.zeros(entries, np.int64),
        head=cuts[:-1].copy(),
        size=np.add.reduceat(weights[line], cuts[:-1]),
        cost=np.zeros(classes, np.int64),
        low=np.full((nodes, codes.shape[1]), np.iinfo(codes.dtype).max, codes.dtype),
        high=np.zeros((nodes, codes.shape[1]), codes.dtype),
        lending=np.full(nodes, NONE, np.int64),
    )
    groups.after[cuts[1:] - 1] = NONE
    build_tree(groups, codes, k, records.costs.layout, records.costs.units)
    return groups


@kernel
def build_tree(groups, codes, k, layout, units):
    """Fill the boxes and costs of all classes and nodes."""
    for group in range(len(groups.head)):
        fit_class(groups, codes, group, k, layout, units)
    for node in range(len(groups.low) // 2 - 1, 0, -1):
        fit_node(groups, node)


@kernel
def fit_class(groups, codes, group, k, layout, units):
    """The box of a class and what it costs, from its entries; of one without entries, none."""
    node = len(groups.low) // 2 + group
    for q in range(codes.shape[1]):
        groups.low[node, q], groups.high[node, q] = groups.low[0, q], groups.high[0, q]  # node 0 is above nothing
    entry = groups.head[group]
    while entry != NONE:
        widen(groups.low[node], groups.high[node], codes[groups.record[entry]])
        entry = groups.after[entry]
    groups.lending[node] = NONE
    if groups.size[group] > 0:
        groups.cost[group] = cost_with(groups.low[node], groups.high[node], groups.low[node], layout, units)
        if groups.size[group] > k:
            groups.lending[node] = groups.cost[group]


@kernel
def fit_node(groups, node):
    """What a node says of the classes under it, from the two nodes below."""
    one, other = 2 * node, 2 * node + 1
    for q in range(groups.low.shape[1]):
        groups.low[node, q] = min(groups.low[one, q], groups.low[other, q])
        groups.high[node, q] = max(groups.high[one, q], groups.high[other, q])
    groups.lending[node] = max(groups.lending[one], groups.lending[other])


@kernel
def refit(groups, codes, group, k, layout, units):
    """A class has changed: so may have all nodes above it."""
    fit_class(groups, codes, group, k, layout, units)
    node = (len(groups.low) // 2 + group) // 2
    while node > 0:
        fit_node(groups, node)
        node //= 2


@kernel
def mend(groups, codes, first, last, k, layout, units):
    """Bring the classes first..last-1 up to k, each in the cheapest way. There are k records or more."""
    low, high = np.empty(codes.shape[1], codes.dtype), np.empty(codes.shape[1], codes.dtype)
    for group in range(first, last):
        while 0 < groups.size[group] < k:
            other = cheapest(groups, codes, group, k, low, high, layout, units)
            if groups.size[group] + groups.size[other] < 2 * k:
                join(groups, group, other)
            else:
                choose(groups, codes, group, other, k, np.int64(INFINITE), low, high, layout, units)
                borrow(groups, group, other, k)
            refit(groups, codes, group, k, layout, units)
            refit(groups, codes, other, k, layout, units)


@kernel
def cheapest(groups, codes, group, k, low, high, layout, units):
    """The class that it costs least to join ``group`` with or to borrow from, the first of equally cheap ones."""
    width = len(groups.low) // 2
    own, size, cost = width + group, groups.size[group], groups.cost[group]
    best, best_group = np.int64(INFINITE), np.int64(NONE)
    waiting, bounds = np.empty(WAITING, np.int64), np.empty(WAITING, np.int64)
    waiting[0], bounds[0] = 1, 0
    left = 1
    while left > 0:
        left -= 1
        node, bound = waiting[left], bounds[left]
        if bound > best or (bound == best and first_class(node, width) > best_group):
            continue
        if node >= width:
            other = node - width
            if size + groups.size[other] < 2 * k:
                joined = cost_of_both(groups, own, node, layout, units)
                value = size * (joined - cost) + groups.size[other] * (joined - groups.cost[other])
            else:
                paid = size * cost + (k - size) * groups.cost[other]
                mended = choose(groups, codes, group, other, k, (best + paid) // k, low, high, layout, units)
                value = k * mended - paid if mended < INFINITE else np.int64(INFINITE)
            if value < best or (value == best and other < best_group):
                best, best_group = value, other
            continue
        begin = left
        for child in range(2 * node, 2 * node + 2):
            if groups.low[child, 0] <= groups.high[child, 0] and child != own:
                reached = cost_to_reach(groups, own, child, layout, units)
                waiting[left], bounds[left] = child, size * (reached - cost)
                if groups.lending[child] != NONE:
                    bounds[left] += min((k - size) * (reached - groups.lending[child]), 0)
                left += 1
        # The node that holds the class itself is next, since it holds what is near, else the more promising one.
        if (
            left == begin + 2
            and not is_above(waiting[begin + 1], own)
            and (is_above(waiting[begin], own) or bounds[begin] <= bounds[begin + 1])
        ):
            waiting[begin], waiting[begin + 1] = waiting[begin + 1], waiting[begin]
            bounds[begin], bounds[begin + 1] = bounds[begin + 1], bounds[begin]
    return best_group


@kernel
def first_class(node, width):
    """The lowest class under a node."""
    while node < width:
        node *= 2
    return node - width


@kernel
def is_above(node, leaf):
    """Is a node the leaf, or above it?"""
    while leaf > node:
        leaf //= 2
    return leaf == node


@kernel
def cost_of_both(groups, node, other, layout, units):
    """The cost of the smallest box that holds the boxes of two nodes."""
    total = np.int64(0)
    for q in range(groups.low.shape[1]):
        low, high = min(groups.low[node, q], groups.low[other, q]), max(groups.high[node, q], groups.high[other, q])
        total += attribute_cost(layout, units, q, np.int64(low), np.int64(high))
    return total


@kernel
def cost_to_reach(groups, node, other, layout, units):
    """The cost of the smallest box that holds the box of a node and touches that of the other."""
    total = np.int64(0)
    for q in range(groups.low.shape[1]):
        low, high = min(groups.low[node, q], groups.high[other, q]), max(groups.high[node, q], groups.low[other, q])
        total += attribute_cost(layout, units, q, np.int64(low), np.int64(high))
    return total


@kernel
def choose(groups, codes, group, lender, k, most, low, high, layout, units):
    """Mark in ``taken`` what the class borrows: one entry after the other that widens its box least.

    Returns what the mended box costs, INFINITE when that is found to be above ``most``. low, high: uint[d], the box.
    """
    own = len(groups.low) // 2 + group
    for q in range(len(low)):
        low[q], high[q] = groups.low[own, q], groups.high[own, q]
    entry = groups.head[lender]
    while entry != NONE:
        groups.taken[entry] = 0
        entry = groups.after[entry]
    cost, lacking = np.int64(0), k - groups.size[group]
    while lacking > 0:
        best, cost = np.int64(NONE), np.int64(INFINITE)
        entry = groups.head[lender]
        while entry != NONE:
            if groups.taken[entry] == 0:
                grown = cost_with(low, high, codes[groups.record[entry]], layout, units)
                if grown < cost or (grown == cost and groups.record[entry] < groups.record[best]):
                    best, cost = entry, grown
            entry = groups.after[entry]
        if cost > most:
            return np.int64(INFINITE)
        groups.taken[best] = min(lacking, groups.held[best])
        lacking -= groups.taken[best]
        widen(low, high, codes[groups.record[best]])
    return cost


@kernel
def borrow(groups, group, lender, k):
    """Move what is ``taken`` from the lender to the class."""
    groups.size[lender] -= k - groups.size[group]
    groups.size[group] = k
    before, entry = np.int64(NONE), groups.head[lender]
    while entry != NONE:
        following, moved = groups.after[entry], entry
        if groups.taken[entry] < groups.held[entry]:
            before = entry
            if groups.taken[entry] > 0:
                moved = groups.free[0]
                groups.free[0] += 1
                groups.record[moved], groups.held[moved] = groups.record[entry], groups.taken[entry]
                groups.held[entry] -= groups.taken[entry]
        elif before == NONE:
            groups.head[lender] = following
        else:
            groups.after[before] = following
        if groups.taken[entry] > 0:
            groups.after[moved], groups.head[group] = groups.head[group], moved
        entry = following


@kernel
def join(groups, group, other):
    """Move all of the other class to the class."""
    last = groups.head[other]
    while groups.after[last] != NONE:
        last = groups.after[last]
    groups.after[last], groups.head[group] = groups.head[group], groups.head[other]
    groups.size[group] += groups.size[other]
    groups.head[other], groups.size[other] = NONE, 0


@kernel
def lay_out(groups, starts, rows, result):
    """The rows class by class. rows, result: uint32[n]; starts: int64[m + 1], where those of a record begin."""
    used = starts[:-1].copy()
    place = 0
    for group in range(len(groups.head)):
        entry = groups.head[group]
        while entry != NONE:
            record = groups.record[entry]
            for _ in range(groups.held[entry]):
                result[place] = rows[used[record]]
                used[record] += 1
                place += 1
            entry = groups.after[entry]
