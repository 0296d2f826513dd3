"""Nearest-neighbour groups (Du, Xia, Tao, Zhang, Zhu 2007, section 4, Fig. 2): a small largest box, with a guarantee.

The aim is the least MAXSIZE, the perimeter of the largest box (definition 3). Steps, as numbered in Fig. 2:

1. Every record and its k - 1 nearest neighbours have a box.
2. Boxes that overlap no box picked before are picked, the smallest first.
3. The records in a picked box form a class.
4. Every other record joins a picked box near it.
5. Classes of 2k and more are cut in two, repeatedly.

MAXSIZE is at most 6d times the best for d attributes (theorem 3). Half a perimeter is the sum of the sides, so the
distance (``kd_tree``) of two records in one box is at most half its perimeter. Let h be half the MAXSIZE of the best
partition. In it every record shares its class with k - 1 others, so its neighbours reach no farther than h: hence
``perimeter_bound``. On each attribute their box has a side of at most twice the reach, 2h. A record left for step 4 has
a box that overlaps a picked one. On each attribute a common point of both boxes lies between the record and one of its
neighbours, so the picked box is no farther than the record's reach; a record may join any box that is on no attribute
farther than twice the reach. The box of a class thus has a picked side of 2h and at most 2h more at either end: 6h on
each attribute. That is for numbers. On categories, where of two nodes above one leaf one holds the other, sides do not
add up and stay within 2h; the side of null with anything else is 1, which is then within twice a reach as well. Cutting
makes no box larger, so step 5 keeps the bound.

Time for m distinct records: the tree O(d m log m log m); step 1 about O(m (k + log m) d) for few attributes, at worst
O(m m d), as with dozens of them; steps 2 to 4 less in practice; step 5 O(d d m log m log m).

Differs from the paper, which leaves these points open:

- Equal records are one record with a weight. The copies of one distinct record may go to several classes.
- Attributes count by their weights in the policy; MAXSIZE, and with it the guarantee, assumes equal weights.
- Step 2: among equally small boxes, the box of the record with the lower codes comes first.
- Step 4: records come in turn, those with the farthest reach first. Each joins the nearest allowed picked box (the
  least sum of gaps) whose class stays no larger than the largest class so far, or than the bound; if there is none, the
  class that stays smallest. With the nearest box alone, as in the paper, MAXSIZE is up to 2.5 times the bound on Adult
  at k = 5; here it is at most 1.9 times.
- Step 5: the cut after which no class exceeds the largest one that cannot be cut, or exceeds it least; then the cut
  with the least loss. A class of many distinct records is cut between a quarter and three quarters, so that it does not
  lose a few records at a time. Equal records stay in one class however many there are: a reader of the release sees
  classes that show the same values as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE, STACK_SIZE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.losses.exact_costs import attribute_cost, box_cost, box_costs, exact_costs, widen
from sfumato.methods.clustering.kd_tree import KdTree, build_kd_tree, distance, nearest_neighbours, overlap
from sfumato.methods.method import BATCH_CLASSES, ClassBatch, Records
from sfumato.orderings import Hilbert
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import sort_rows

SHARE = 1 << 12  # distinct records whose classes one thread cuts
LARGE_CLASS = 256  # a class of more distinct records is cut near its middle


@dataclass(frozen=True, kw_only=True)
class NearestNeighbourGroups:
    """Classes from the boxes of nearest neighbours that do not overlap; the other records join one near them."""

    name = "nng"
    paper = "Du, Xia, Tao, Zhang, Zhu: On multidimensional k-anonymity with local recoding generalization, ICDE 2007"
    summary = "groups of nearest neighbours; the largest box is at most 6d times the best; time about O(k N d log N)"
    use = "when no record may be in a wide class; up to about 100,000 distinct records and a dozen attributes"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: classes of k are merged until it holds."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel and not requirements.attributes

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        classes = _form_classes(records, requirements.least_class, progress)
        rows, starts = np.empty_like(records.rows), np.append(0, np.cumsum(classes.counts))
        write_rows(classes.entries, starts, records.starts, records.rows, rows)
        low, high = _boxes(records.codes, classes)
        ends = starts[classes.cuts]
        for first, last in slices(len(low), BATCH_CLASSES):
            bounds = ends[first : last + 1]
            yield ClassBatch(rows[bounds[0] : bounds[-1]], bounds - bounds[0], low[first:last], high[first:last])


@dataclass(frozen=True)
class PerimeterBounds:
    """Lower bounds on MAXSIZE for any partition of all records into classes of k, with none suppressed.

    reach: twice the distance of the record that is farthest from its (k - 1)th neighbour. smallest_box: a lower and an
    upper limit for the perimeter of the smallest box of k records, which is the bound that Du 2007 reports; we do not
    search for it exactly, since it is 0 as soon as k records are equal.
    """

    reach: float
    smallest_box: tuple[float, float]


def perimeter_bound(records: Records, k: int) -> float:
    """Return a lower bound on MAXSIZE for any partition of the records into classes of k."""
    return perimeter_bounds(records, k).reach


def perimeter_bounds(records: Records, k: int) -> PerimeterBounds:
    """Return the lower bounds on MAXSIZE, with equal weights of the attributes."""
    if not 1 <= k <= records.count:
        raise ValueError("k must be between 1 and the number of records")
    d = records.codes.shape[1]
    costs = exact_costs(records.domains, [1.0] * d, records.count)
    tree = build_kd_tree(records.codes, np.diff(records.starts), costs)
    neighbours = nearest_neighbours(tree, k, costs, lambda _: None)
    sizes = box_costs(neighbours.low, neighbours.high, costs.layout, costs.units)
    smallest = 0 if int(tree.weights.max()) >= k else int(sizes.min()) + d
    full = int(costs.layout[0, 3])

    def perimeter(units: int) -> float:
        return 2 * max(units, 0) / full

    # Costs are rounded by at most one unit per attribute; a bound must hold for the exact ones.
    return PerimeterBounds(
        perimeter(int(neighbours.reach.max()) - d),
        (perimeter(int(neighbours.reach.min()) - d), perimeter(smallest)),
    )


class CountedClasses(NamedTuple):
    """Classes as counts of distinct records: class i has counts[j] of record entries[j], cuts[i] <= j < cuts[i + 1]."""

    entries: NDArray[np.int64]
    counts: NDArray[np.int64]
    cuts: NDArray[np.int64]


class PickedBoxes(NamedTuple):
    """The tree positions with a picked box, bool[m]; by node, whether it has one, bool, and the box around all."""

    positions: NDArray[np.bool_]
    nodes: NDArray[np.bool_]
    low: Codes
    high: Codes


def _form_classes(records: Records, k: int, progress: Progress) -> CountedClasses:
    """Take all steps. Progress covers the first, which takes longest."""
    weights, costs = np.diff(records.starts), records.costs
    if records.count < 2 * k:
        progress.advance(records.count)
        return CountedClasses(np.arange(len(weights)), weights, np.array([0, len(weights)]))
    tree = build_kd_tree(records.codes, weights, costs)
    neighbours = nearest_neighbours(tree, k, costs, progress.advance)
    bound = int(neighbours.reach.max())
    sizes = box_costs(neighbours.low, neighbours.high, costs.layout, costs.units)
    owner, picked = pick_boxes(tree, neighbours, np.lexsort((tree.order, sizes)))
    left = np.flatnonzero(owner == NONE)
    left = left[np.lexsort((tree.order[left], -neighbours.reach[left]))]
    level = max(bound, int(sizes[picked.positions].max()))
    join_boxes(tree, neighbours, picked, left, level, costs.layout, costs.units, owner)
    return _cut(records, _groups(records, tree, owner), k, bound)


def _groups(records: Records, tree: KdTree, owner: NDArray[np.int64]) -> CountedClasses:
    """Return the classes before step 5 in the order of the Hilbert curve: neighbours may have to be merged later."""
    keys = Hilbert().keys(records.codes, records.domains)
    on_curve = np.empty(len(owner), np.int64)
    on_curve[sort_rows(keys.fields(), len(owner)).rows] = np.arange(len(owner))
    curve = on_curve[tree.order[owner]]
    line = np.lexsort((tree.order, curve))
    cuts = np.flatnonzero(np.append(True, curve[line][1:] != curve[line][:-1]))
    return CountedClasses(tree.order[line], tree.weights[line], np.append(cuts, len(line)))


def _cut(records: Records, groups: CountedClasses, k: int, bound: int) -> CountedClasses:
    """Take step 5. bound: a lower bound on half of MAXSIZE."""
    layout, units = records.costs.layout, records.costs.units
    sizes = box_costs(*_boxes(records.codes, groups), layout, units)
    too_few = np.add.reduceat(groups.counts, groups.cuts[:-1]) < 2 * k
    level = max(bound, int(sizes[too_few].max(initial=0)))

    def cut(part: tuple[int, int]) -> CountedClasses:
        cuts = groups.cuts[part[0] : part[1] + 1]
        entries = slice(cuts[0], cuts[-1])
        batch = CountedClasses(groups.entries[entries], groups.counts[entries], cuts - cuts[0])
        return CountedClasses(*cut_classes(batch, records.codes, k, level, layout, units))

    edges = np.searchsorted(groups.cuts, np.arange(0, len(groups.entries), SHARE))
    edges = np.unique(np.append(edges, len(groups.cuts) - 1))
    parts = in_threads(cut, list(pairwise(edges.tolist())))
    offsets = np.cumsum([0, *(len(part.entries) for part in parts)])
    cuts = [part.cuts[:-1] + offset for part, offset in zip(parts, offsets[:-1], strict=True)]
    return CountedClasses(
        np.concatenate([part.entries for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.append(np.concatenate(cuts), offsets[-1]),
    )


def _boxes(codes: Codes, classes: CountedClasses) -> tuple[Codes, Codes]:
    """Return the smallest box of every class."""
    members, begins = codes[classes.entries], classes.cuts[:-1]
    return np.minimum.reduceat(members, begins, axis=0), np.maximum.reduceat(members, begins, axis=0)


@kernel
def pick_boxes(tree, neighbours, line):
    """Take steps 2 and 3: return the owner of the picked box that each position is in, int64[m], and the PickedBoxes.

    The owner is NONE for positions left over. tree, neighbours: KdTree and Neighbours. line: int64[m], the positions in
    the order of their boxes, the smallest first.
    """
    _, codes, _, spans, node_low, node_high, _ = tree
    _, box_low, box_high = neighbours
    m, d = codes.shape
    owner = np.full(m, NONE, np.int64)
    positions, nodes = np.zeros(m, np.bool_), np.zeros(len(spans), np.bool_)
    low, high = np.empty_like(node_low), np.empty_like(node_high)
    waiting = np.empty(STACK_SIZE, np.int64)
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
            for position in range(spans[node, 0], spans[node, 1]):
                if positions[position] and overlap(box_low, box_high, own, box_low, box_high, position):
                    free = False
        if not free:
            continue
        positions[own] = True
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
            for position in range(spans[node, 0], spans[node, 1]):
                if overlap(box_low, box_high, own, codes, codes, position):
                    owner[position] = own
    return owner, PickedBoxes(positions, nodes, low, high)


@kernel
def join_boxes(tree, neighbours, picked, left, level, layout, units, owner):
    """Take step 4: give each of the positions ``left``, in this order, the position of a picked box as owner: int64[m].

    tree, neighbours, picked: KdTree, Neighbours, PickedBoxes. level: the cost up to which a larger box does no harm.
    """
    order, codes, _, spans, _, _, _ = tree
    reach, box_low, box_high = neighbours
    positions, nodes, node_low, node_high = picked
    d = codes.shape[1]
    low, high = box_low.copy(), box_high.copy()  # the boxes of the classes as they grow
    waiting, bounds = np.empty(STACK_SIZE, np.int64), np.empty(STACK_SIZE, np.int64)
    for own in left:
        best, chosen_distance, chosen, widest = INFINITE, INFINITE, NONE, 2 * reach[own]
        waiting[0], bounds[0] = 0, 0
        depth = 1
        while depth > 0:
            depth -= 1
            # A class that takes a record costs at least the distance between them.
            limit = chosen_distance if best == level else best
            if bounds[depth] > limit:
                continue
            node = waiting[depth]
            far = spans[node, 2]
            if far != NONE:
                near, to_near, to_far = node + 1, INFINITE, INFINITE
                if nodes[near]:
                    to_near = distance(codes, own, node_low, node_high, near, limit, widest, layout, units)
                if nodes[far]:
                    to_far = distance(codes, own, node_low, node_high, far, limit, widest, layout, units)
                if to_far < to_near:
                    near, to_near, far, to_far = far, to_far, near, to_near
                if to_far < INFINITE:
                    waiting[depth], bounds[depth] = far, to_far
                    depth += 1
                if to_near < INFINITE:
                    waiting[depth], bounds[depth] = near, to_near
                    depth += 1
                continue
            for position in range(spans[node, 0], spans[node, 1]):
                if not positions[position]:
                    continue
                limit = chosen_distance if best == level else best
                to_box = distance(codes, own, box_low, box_high, position, limit, widest, layout, units)
                if to_box == INFINITE:
                    continue
                cost = np.int64(0)
                for q in range(d):
                    least, most = min(low[position, q], codes[own, q]), max(high[position, q], codes[own, q])
                    cost += attribute_cost(layout, units, q, np.int64(least), np.int64(most))
                cost = max(cost, level)
                if cost < best or (cost == best and (to_box, order[position]) < (chosen_distance, order[chosen])):
                    best, chosen_distance, chosen = cost, to_box, position
        owner[own] = chosen
        level = max(level, best)
        for q in range(d):
            low[chosen, q], high[chosen, q] = min(low[chosen, q], codes[own, q]), max(high[chosen, q], codes[own, q])


@kernel
def cut_classes(groups, codes, k, level, layout, units):
    """Take step 5: return entries, counts and cuts of the classes that the groups are cut into.

    groups: CountedClasses; codes: uint[m, d]. level: the cost up to which a larger box does no harm.
    """
    total = np.int64(0)
    for count in groups.counts:
        total += count
    # A cut adds a class, and at most one entry: the second part of a record that is divided.
    limit = len(groups.entries) + total // k
    entries, counts, cuts = np.empty(limit, np.int64), np.empty(limit, np.int64), np.empty(total // k + 1, np.int64)
    # The waiting parts of a group follow each other; the last of them is the present one.
    line, held, begins = np.empty(limit, np.int64), np.empty(limit, np.int64), np.empty(total // k + 1, np.int64)
    share = np.empty(len(codes), np.int64)  # the count of each record in the present part
    classes, filled = 0, 0
    cuts[0] = 0
    for group in range(len(groups.cuts) - 1):
        first = groups.cuts[group]
        begins[0], waiting, end = 0, 1, groups.cuts[group + 1] - first
        for position in range(end):
            line[position], held[position] = groups.entries[first + position], groups.counts[first + position]
        while waiting > 0:
            begin, rows = begins[waiting - 1], np.int64(0)
            for position in range(begin, end):
                rows += held[position]
                share[line[position]] = held[position]
            if rows < 2 * k or end - begin == 1:
                for position in range(begin, end):
                    entries[filled], counts[filled] = line[position], held[position]
                    filled += 1
                classes += 1
                cuts[classes] = filled
                waiting, end = waiting - 1, begin
                continue
            attribute, left = best_cut(line[begin:end], share, rows, codes, k, level, layout, units)
            position, middle, before = begin, begin, np.int64(0)
            for record in by_attribute(line[begin:end], codes, attribute):
                behind = before + share[record]
                if before < left < behind:
                    line[position], held[position] = record, left - before
                    position += 1
                    before = left
                if before == left:
                    middle = position
                line[position], held[position] = record, behind - before
                position += 1
                before = behind
            begins[waiting] = middle
            waiting, end = waiting + 1, position
    return entries[:filled], counts[:filled], cuts[: classes + 1]


@inner_kernel
def by_attribute(line, codes, q):
    """Return distinct records, int64[n], in the order of their codes on attribute q, then of all codes."""
    keys = np.empty(len(line), np.int64)
    for t in range(len(line)):
        keys[t] = np.int64(codes[line[t], q]) * len(codes) + line[t]
    return np.sort(keys) % len(codes)


@inlined_kernel
def best_cut(line, share, rows, codes, k, level, layout, units):
    """Return the attribute to cut a class on, and how many of its ``rows`` come before the cut; k or more on each side.

    The best cut has the least cost of the larger box, as far as that is above ``level``, then the least loss, then the
    first attribute and position. line: int64[n], n > 1 distinct records; share: int64[m], the count of each.
    """
    n, d = len(line), codes.shape[1]
    fewest, most = k, rows - k
    if n > LARGE_CLASS:
        fewest, most = max(k, rows // 4), min(rows - k, rows - rows // 4)
    best, least, attribute, cut = INFINITE, INFINITE, 0, np.int64(0)
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
            # Cut within the record, so that the cheaper part is as large as possible; or directly after the record.
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


@inner_kernel
def box_costs_along(ordered, codes, low, high, layout, units, costs):
    """Write the cost of the box of the first t + 1 records into costs[t]. low, high: int64[d], overwritten."""
    for q in range(len(low)):
        low[q] = np.int64(codes[ordered[0], q])
        high[q] = low[q]
    costs[0] = 0
    for t in range(1, len(ordered)):
        grew = widen(low, high, codes[ordered[t]])
        costs[t] = box_cost(low, high, layout, units) if grew else costs[t - 1]


@kernel
def write_rows(entries, starts, record_starts, record_rows, rows):
    """Write the rows of all classes, uint32[n]: entry j takes starts[j + 1] - starts[j] rows of its record."""
    used = record_starts[:-1].copy()
    for j in range(len(entries)):
        for position in range(starts[j], starts[j + 1]):
            rows[position] = record_rows[used[entries[j]]]
            used[entries[j]] += 1
