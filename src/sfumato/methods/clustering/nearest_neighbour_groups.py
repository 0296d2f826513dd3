"""Nearest-neighbour groups (Du, Xia, Tao, Zhang, Zhu 2007, section 4, Fig. 2): a small largest box, with a guarantee.

Aim: the least MAXSIZE, the perimeter of the largest box (definition 3). Steps, as numbered in Fig. 2:

1. Every record and its k - 1 nearest neighbours have a box.
2. Boxes are picked, the smallest first, that overlap none picked before.
3. The records in a picked box are a class.
4. Every other record joins a picked box near it.
5. Classes of 2k and more are cut in two, again and again.

MAXSIZE is at most 6d times the best for d attributes (theorem 3). Half a perimeter is the sum of the sides, so records
of one box are no farther apart (``neighbours``) than half its perimeter. Let h be half the MAXSIZE of the best
partition. There every record shares its class with k - 1 others, so its neighbours reach no farther than h: hence
``perimeter_bound``. On each attribute their box has a side of at most twice the reach, 2h. A record left for step 4 has
a box that overlaps a picked one. On each attribute a point that both have lies between the record and one of its
neighbours, so the picked box is no farther than the record's reach; joining one that is on no attribute farther than
twice the reach is allowed. The box of a class thus has a picked side of 2h and at most 2h more at either end: 6h on
each attribute. That is for numbers. On categories, where of two nodes above one leaf one holds the other, sides do not
add up and stay within 2h; the side of null with anything else is 1, which is then within twice a reach as well. Cutting
makes no box larger, so step 5 keeps the bound.

Time for m distinct records: the tree O(d m log m log m); step 1 about O(m (k + log m) d) for few attributes, at worst
O(m m d), as with dozens of them; steps 2 to 4 less in practice; step 5 O(d d m log m log m).

Differs from the paper, which is silent where this is more precise:

- Equal records are one with a weight. Those of one distinct record may come into several classes.
- Attributes count by their weights in the policy; MAXSIZE, and with it the guarantee, is for equal ones.
- Step 2: of equally small boxes that of the record with the lower codes comes first.
- Step 4: records come in turn, the farthest reaching first. Of the picked boxes that are allowed each joins the nearest
  (the least sum of gaps) whose class does not become larger than the largest there is, or than the bound; if there is
  none, the class that stays smallest. With the nearest alone, as in the paper, MAXSIZE is up to 2.5 times the bound on
  Adult at k = 5, so at most 1.9 times.
- Step 5: the cut after which no class is larger than the largest that cannot be cut, or least so; then that of the
  least loss. A class of many distinct records is cut between a quarter and three quarters, so that nothing is peeled
  off bit by bit. Equal records stay in one class however many they are: classes that show the same are one to whoever
  reads the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.losses.exact_costs import attribute_cost, box_cost, exact_costs, widen
from sfumato.methods.clustering.kd_tree import DEEPEST, FAR, Tree, distance, grow, nearest
from sfumato.methods.line.optimal_cut import BATCH_CLASSES
from sfumato.methods.method import ClassBatch, Records
from sfumato.orderings import Hilbert
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import sort_rows

SHARE = 1 << 12  # distinct records whose classes one thread cuts
LARGE_CLASS = 256  # distinct records of a class that is cut near its middle


@dataclass(frozen=True, kw_only=True)
class NearestNeighbourGroups:
    """Records in the boxes of nearest neighbours, as far as these do not overlap, and the others near them."""

    name = "nng"
    paper = "Du, Xia, Tao, Zhang, Zhu: On multidimensional k-anonymity with local recoding generalization, ICDE 2007"
    summary = "groups of nearest neighbours, the largest box at most 6d times the best; time about O(k N d log N)"
    use = "when no record may be in a wide class; up to some 100,000 distinct records, a dozen attributes"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Any requirement can be met: classes of k are joined until it holds."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.tested and not requirements.attributes

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        shares = _shares(records, requirements.least_class, progress)
        rows, starts = np.empty_like(records.rows), np.append(0, np.cumsum(shares.counts))
        lay_out(shares.entries, starts, records.starts, records.rows, rows)
        low, high = _boxes(records.codes, shares)
        ends = starts[shares.cuts]
        for first, last in slices(len(low), BATCH_CLASSES):
            these = ends[first : last + 1]
            yield ClassBatch(rows[these[0] : these[-1]], these - these[0], low[first:last], high[first:last])


@dataclass(frozen=True)
class PerimeterBounds:
    """What no partition into classes of k has a smaller MAXSIZE than, on all records and with nothing suppressed.

    reach: twice the distance of the record that is farthest from its (k - 1)th neighbour. smallest_box: the least and
    the most that the perimeter of the smallest box of k records can be, which is the bound that Du 2007 reports; it is
    not searched for exactly, since it is 0 as soon as k records are equal.
    """

    reach: float
    smallest_box: tuple[float, float]


def perimeter_bound(records: Records, k: int) -> float:
    """No partition of the records into classes of k has a smaller MAXSIZE than this."""
    return perimeter_bounds(records, k).reach


def perimeter_bounds(records: Records, k: int) -> PerimeterBounds:
    """The lower bounds of MAXSIZE, with the attributes counting equally."""
    if not 1 <= k <= records.count:
        raise ValueError("k must be between 1 and the number of records")
    d = records.codes.shape[1]
    costs = exact_costs(records.domains, [1.0] * d, records.count)
    tree = grow(records.codes, np.diff(records.starts), costs)
    found = nearest(tree, k, costs, lambda _: None)
    boxes = costs_of(found.low, found.high, costs.layout, costs.units)
    smallest = 0 if int(tree.weights.max()) >= k else int(boxes.min()) + d
    full = int(costs.layout[0, 3])

    def perimeter(units: int) -> float:
        return 2 * max(units, 0) / full

    # Costs are rounded, by at most one unit an attribute: a bound has to hold without that.
    return PerimeterBounds(
        perimeter(int(found.reach.max()) - d),
        (perimeter(int(found.reach.min()) - d), perimeter(smallest)),
    )


class Shares(NamedTuple):
    """Classes as shares of distinct records: class i has counts[j] of record entries[j], cuts[i] <= j < cuts[i + 1]."""

    entries: NDArray[np.int64]
    counts: NDArray[np.int64]
    cuts: NDArray[np.int64]


class Picked(NamedTuple):
    """Which places of a tree have a picked box, bool[m], and by node: is there one, bool, and the box around all."""

    places: NDArray[np.bool_]
    nodes: NDArray[np.bool_]
    low: Codes
    high: Codes


def _shares(records: Records, k: int, progress: Progress) -> Shares:
    """All steps. Progress is told of the first, which takes longest."""
    weights, costs = np.diff(records.starts), records.costs
    if records.count < 2 * k:
        progress.advance(records.count)
        return Shares(np.arange(len(weights)), weights, np.array([0, len(weights)]))
    tree = grow(records.codes, weights, costs)
    found = nearest(tree, k, costs, progress.advance)
    bound, sizes = int(found.reach.max()), costs_of(found.low, found.high, costs.layout, costs.units)
    owner, picked = pick(tree, found, np.lexsort((tree.order, sizes)))
    left = np.flatnonzero(owner == NONE)
    left = left[np.lexsort((tree.order[left], -found.reach[left]))]
    level = max(bound, int(sizes[picked.places].max()))
    join(tree, found, picked, left, level, costs.layout, costs.units, owner)
    return _cut(records, _groups(records, tree, owner), k, bound)


def _groups(records: Records, tree: Tree, owner: NDArray[np.int64]) -> Shares:
    """The classes before step 5, in the order of the Hilbert curve: neighbours may have to be joined later."""
    keys = Hilbert().keys(records.codes, records.domains)
    on_curve = np.empty(len(owner), np.int64)
    on_curve[sort_rows(keys.fields(), len(owner)).rows] = np.arange(len(owner))
    curve = on_curve[tree.order[owner]]
    line = np.lexsort((tree.order, curve))
    cuts = np.flatnonzero(np.append(True, curve[line][1:] != curve[line][:-1]))
    return Shares(tree.order[line], tree.weights[line], np.append(cuts, len(line)))


def _cut(records: Records, groups: Shares, k: int, bound: int) -> Shares:
    """Step 5. bound: what half of MAXSIZE is at least."""
    layout, units = records.costs.layout, records.costs.units
    sizes = costs_of(*_boxes(records.codes, groups), layout, units)
    too_few = np.add.reduceat(groups.counts, groups.cuts[:-1]) < 2 * k
    level = max(bound, int(sizes[too_few].max(initial=0)))

    def cut(part: tuple[int, int]) -> Shares:
        cuts = groups.cuts[part[0] : part[1] + 1]
        these = slice(cuts[0], cuts[-1])
        some = Shares(groups.entries[these], groups.counts[these], cuts - cuts[0])
        return Shares(*cut_classes(some, records.codes, k, level, layout, units))

    edges = np.searchsorted(groups.cuts, np.arange(0, len(groups.entries), SHARE))
    edges = np.unique(np.append(edges, len(groups.cuts) - 1))
    parts = in_threads(cut, list(pairwise(edges.tolist())))
    offsets = np.cumsum([0, *(len(part.entries) for part in parts)])
    cuts = [part.cuts[:-1] + offset for part, offset in zip(parts, offsets[:-1], strict=True)]
    return Shares(
        np.concatenate([part.entries for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.append(np.concatenate(cuts), offsets[-1]),
    )


def _boxes(codes: Codes, shares: Shares) -> tuple[Codes, Codes]:
    """The smallest box of every class."""
    members, begins = codes[shares.entries], shares.cuts[:-1]
    return np.minimum.reduceat(members, begins, axis=0), np.maximum.reduceat(members, begins, axis=0)


@kernel
def costs_of(low, high, layout, units):
    """The cost of every box, int64[n]. low, high: uint[n, d]; layout, units: see Costs."""
    result = np.zeros(len(low), np.int64)
    for i in range(len(low)):
        for q in range(low.shape[1]):
            result[i] += attribute_cost(layout, units, q, np.int64(low[i, q]), np.int64(high[i, q]))
    return result


@kernel
def overlap(low, high, box, other_low, other_high, other):
    """Have two boxes a point in common? Boxes are numbers of rows: uint[., d]."""
    for q in range(low.shape[1]):
        if low[box, q] > other_high[other, q] or other_low[other, q] > high[box, q]:
            return False
    return True


@kernel
def pick(tree, found, line):
    """Steps 2 and 3: the place whose box each place is in, int64[m], NONE for those left over; and what is picked.

    tree, found: Tree and Neighbours. line: int64[m], the places by their boxes, the smallest first.
    """
    _, codes, _, spans, node_low, node_high, _ = tree
    _, box_low, box_high = found
    m, d = codes.shape
    owner = np.full(m, NONE, np.int64)
    places, nodes = np.zeros(m, np.bool_), np.zeros(len(spans), np.bool_)
    low, high = np.empty_like(node_low), np.empty_like(node_high)
    waiting = np.empty(DEEPEST, np.int64)
    for own in line:
        # A record in a picked box has a box that overlaps it.
        free, depth = owner[own] == NONE, 1
        waiting[0] = 0
        while free and depth > 0:
            depth -= 1
            node = waiting[depth]
            if not nodes[node] or not overlap(box_low, box_high, own, low, high, node):
                continue
            if spans[node, 2] != NONE:
                waiting[depth], waiting[depth + 1] = spans[node, 2], node + 1
                depth += 2
                continue
            for place in range(spans[node, 0], spans[node, 1]):
                if places[place] and overlap(box_low, box_high, own, box_low, box_high, place):
                    free = False
        if not free:
            continue
        places[own] = True
        node = 0
        while node != NONE:
            for q in range(d):
                least, most = box_low[own, q], box_high[own, q]
                low[node, q] = min(low[node, q], least) if nodes[node] else least
                high[node, q] = max(high[node, q], most) if nodes[node] else most
            nodes[node] = True
            half = spans[node, 2]
            node = node + 1 if half != NONE and own < spans[half, 0] else half
        waiting[0], depth = 0, 1
        while depth > 0:
            depth -= 1
            node = waiting[depth]
            if not overlap(box_low, box_high, own, node_low, node_high, node):
                continue
            if spans[node, 2] != NONE:
                waiting[depth], waiting[depth + 1] = spans[node, 2], node + 1
                depth += 2
                continue
            for place in range(spans[node, 0], spans[node, 1]):
                if overlap(box_low, box_high, own, codes, codes, place):
                    owner[place] = own
    return owner, Picked(places, nodes, low, high)


@kernel
def join(tree, found, picked, left, level, layout, units, owner):
    """Step 4: give each of the places ``left``, one after the other, the place of a picked box as owner: int64[m].

    tree, found, picked: Tree, Neighbours, Picked. level: the cost that the box of a class may have without harm.
    """
    order, codes, _, spans, _, _, _ = tree
    reach, box_low, box_high = found
    places, nodes, node_low, node_high = picked
    d = codes.shape[1]
    low, high = box_low.copy(), box_high.copy()  # of the classes as they grow
    waiting, bounds = np.empty(DEEPEST, np.int64), np.empty(DEEPEST, np.int64)
    for own in left:
        best, away, chosen, widest = np.int64(FAR), np.int64(FAR), NONE, 2 * reach[own]
        waiting[0], bounds[0] = 0, 0
        depth = 1
        while depth > 0:
            depth -= 1
            # A class that takes a record costs at least what lies between them.
            limit = away if best == level else best
            if bounds[depth] > limit:
                continue
            node = waiting[depth]
            far = spans[node, 2]
            if far != NONE:
                near, to_near, to_far = node + 1, np.int64(FAR), np.int64(FAR)
                if nodes[near]:
                    to_near = distance(codes, own, node_low, node_high, near, limit, widest, layout, units)
                if nodes[far]:
                    to_far = distance(codes, own, node_low, node_high, far, limit, widest, layout, units)
                if to_far < to_near:
                    near, to_near, far, to_far = far, to_far, near, to_near
                if to_far < FAR:
                    waiting[depth], bounds[depth] = far, to_far
                    depth += 1
                if to_near < FAR:
                    waiting[depth], bounds[depth] = near, to_near
                    depth += 1
                continue
            for place in range(spans[node, 0], spans[node, 1]):
                if not places[place]:
                    continue
                limit = away if best == level else best
                to_box = distance(codes, own, box_low, box_high, place, limit, widest, layout, units)
                if to_box == FAR:
                    continue
                cost = np.int64(0)
                for q in range(d):
                    least, most = min(low[place, q], codes[own, q]), max(high[place, q], codes[own, q])
                    cost += attribute_cost(layout, units, q, np.int64(least), np.int64(most))
                cost = max(cost, level)
                if cost < best or (cost == best and (to_box, order[place]) < (away, order[chosen])):
                    best, away, chosen = cost, to_box, place
        owner[own] = chosen
        level = max(level, best)
        for q in range(d):
            low[chosen, q], high[chosen, q] = min(low[chosen, q], codes[own, q]), max(high[chosen, q], codes[own, q])


@kernel
def cut_classes(groups, codes, k, level, layout, units):
    """Step 5: entries, counts and cuts of the classes that the groups are cut into. groups: Shares; codes: uint[m, d].

    level: the cost that the box of a class may have without harm.
    """
    total = np.int64(0)
    for count in groups.counts:
        total += count
    # A cut adds a class, and at most one entry: the other part of a record that is cut apart.
    limit = len(groups.entries) + total // k
    entries, counts, cuts = np.empty(limit, np.int64), np.empty(limit, np.int64), np.empty(total // k + 1, np.int64)
    # The parts of a group that wait stand one behind the other; the last of them is looked at.
    line, held, begins = np.empty(limit, np.int64), np.empty(limit, np.int64), np.empty(total // k + 1, np.int64)
    share = np.empty(len(codes), np.int64)  # how many of each record, in the part that is looked at
    classes, filled = 0, 0
    cuts[0] = 0
    for group in range(len(groups.cuts) - 1):
        first = groups.cuts[group]
        begins[0], waiting, end = 0, 1, groups.cuts[group + 1] - first
        for place in range(end):
            line[place], held[place] = groups.entries[first + place], groups.counts[first + place]
        while waiting > 0:
            begin, rows = begins[waiting - 1], np.int64(0)
            for place in range(begin, end):
                rows += held[place]
                share[line[place]] = held[place]
            if rows < 2 * k or end - begin == 1:
                for place in range(begin, end):
                    entries[filled], counts[filled] = line[place], held[place]
                    filled += 1
                classes += 1
                cuts[classes] = filled
                waiting, end = waiting - 1, begin
                continue
            attribute, left = best_cut(line[begin:end], share, rows, codes, k, level, layout, units)
            place, middle, before = begin, begin, np.int64(0)
            for record in by_attribute(line[begin:end], codes, attribute):
                behind = before + share[record]
                if before < left < behind:
                    line[place], held[place] = record, left - before
                    place += 1
                    before = left
                if before == left:
                    middle = place
                line[place], held[place] = record, behind - before
                place += 1
                before = behind
            begins[waiting] = middle
            waiting, end = waiting + 1, place
    return entries[:filled], counts[:filled], cuts[: classes + 1]


@kernel
def by_attribute(line, codes, q):
    """Distinct records, int64[n], in the order of their codes on one attribute, then of all."""
    keys = np.empty(len(line), np.int64)
    for t in range(len(line)):
        keys[t] = np.int64(codes[line[t], q]) * len(codes) + line[t]
    return np.sort(keys) % len(codes)


@kernel
def best_cut(line, share, rows, codes, k, level, layout, units):
    """On which attribute a class is cut, and how many of its ``rows`` come before the cut: at least k, as after it.

    The cut that leaves the least cost of the larger box, as far as that is above ``level``, then the least loss, on the
    first attribute, at the first place. line: int64[n], n > 1 distinct records; share: int64[m], how many of each.
    """
    n, d = len(line), codes.shape[1]
    fewest, most = k, rows - k
    if n > LARGE_CLASS:
        fewest, most = max(k, rows // 4), min(rows - k, rows - rows // 4)
    best, least, attribute, cut = np.int64(FAR), np.int64(FAR), 0, np.int64(0)
    low, high = np.empty(d, np.int64), np.empty(d, np.int64)
    until, after = np.empty(n, np.int64), np.empty(n, np.int64)  # costs of the boxes up to a record, and from it on
    for q in range(d):
        ordered = by_attribute(line, codes, q)
        if codes[ordered[0], q] == codes[ordered[n - 1], q]:
            continue
        box_costs_along(ordered, codes, low, high, layout, units, until)
        box_costs_along(ordered[::-1], codes, low, high, layout, units, after[::-1])
        before = np.int64(0)
        for t in range(n):
            behind = before + share[ordered[t]]
            # Within the record, so that the part that costs less is as large as can be; or right behind it.
            left = min(behind - 1, most) if until[t] < after[t] else max(before + 1, fewest)
            for _ in range(2):
                if fewest <= left <= most and before < left <= behind and left < rows:
                    from_here = after[t] if left < behind else after[t + 1]
                    larger = max(until[t], from_here, level)
                    loss = left * until[t] + (rows - left) * from_here
                    if larger < best or (larger == best and loss < least):
                        best, least, attribute, cut = larger, loss, q, left
                left = behind
            before = behind
    return attribute, cut


@kernel
def box_costs_along(ordered, codes, low, high, layout, units, costs):
    """The cost of the box of the first t + 1 records, into costs[t]. low, high: int64[d], overwritten."""
    for q in range(len(low)):
        low[q] = np.int64(codes[ordered[0], q])
        high[q] = low[q]
    costs[0] = 0
    for t in range(1, len(ordered)):
        grew = widen(low, high, codes[ordered[t]])
        costs[t] = box_cost(low, high, layout, units) if grew else costs[t - 1]


@kernel
def lay_out(entries, starts, record_starts, record_rows, rows):
    """Write the rows of all classes, uint32[n]: entry j has as many of its record as starts[j + 1] - starts[j]."""
    used = record_starts[:-1].copy()
    for j in range(len(entries)):
        for place in range(starts[j], starts[j + 1]):
            rows[place] = record_rows[used[entries[j]]]
            used[entries[j]] += 1
