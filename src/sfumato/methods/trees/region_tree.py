"""A tree of regions: the domain divided on one attribute, its parts divided again (LeFevre 2008, section 2, Fig. 2).

A region is a box of codes of the whole domain. The parts of a region lie side by side on one attribute and fill it, so
the leaves tile the domain: every record that there can be is in one of them, also one that was not there when the tree
was grown. A part without records is a leaf that is no class.

A split rule says where a region is divided. It is a number to the kernel that grows the tree; what rules have in common
is in ``dividing``. Where a rule for a workload finds no split, the next one is tried: the selections, then the
targets, then the median. A region of many records is divided once, and its parts are given to
threads; a region of few is grown to the end by one thread. Every region is a run of the units, which move with each
division, so that a thread reads and writes memory in one piece and the leaves come in depth-first order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads
from sfumato.methods.trees.sampled_tests import SampledTests
from sfumato.methods.trees.split_median import RELAXED_MEDIAN, STRICT_MEDIAN, split_by_median
from sfumato.methods.trees.split_prediction import SETTLED, split_by_targets
from sfumato.methods.trees.split_selection import split_by_selection
from sfumato.methods.trees.split_targets import Selected, SplitTargets, counters_for
from sfumato.methods.trees.split_tests import BEYOND, SplitData, Units, divide, room_for, secrets_for
from sfumato.methods.trees.split_tests import WEIGHT as UNIT_WEIGHT
from sfumato.progress import Progress
from sfumato.requirements.conjunction import Conjunction
from sfumato.tables.coding.domains import Codes

BLOCK = 1 << 15  # units of a region that one thread grows to the end: they stay within a core's cache

BY_TARGETS, BY_SELECTION = 2, 3  # rules beside those of the median
PARENT, ATTRIBUTE, FIRST_CHILD, BEGIN, END, WEIGHT, RULE = range(7)  # of a grown node
FIELDS = 7
LOW, HIGH, BOX_LOW, BOX_HIGH = range(4)  # of its boxes


@dataclass(frozen=True)
class Tiling:
    """Nodes after their parents, the children of a node beside each other, ascending; node 0 is the whole domain.

    parent, first_child: int64[nodes], -1 for none. attribute: int64[nodes], what a node is divided on, -1 for a leaf.
    low, high: uint[nodes, d], the region.
    """

    parent: NDArray[np.int64]
    attribute: NDArray[np.int64]
    first_child: NDArray[np.int64]
    low: Codes
    high: Codes

    def leaves_of(self, codes: Codes) -> NDArray[np.int64]:
        """The leaf whose region each record is in; the first of them where regions share a value."""
        found: NDArray[np.int64] = descend(codes, self.attribute, self.first_child, self.high)
        return found

    def undivided(self, nodes: NDArray[np.int64]) -> Self:
        """The same with some nodes as leaves; what is under them stays where it was, and nothing leads to it."""
        attribute = self.attribute.copy()
        attribute[nodes] = NONE
        return replace(self, attribute=attribute)


@dataclass(frozen=True)
class RegionTree(Tiling):
    """Regions with their records. Those that some records alone have divided may begin with a part of the domain.

    box_low, box_high: uint[nodes, d], the smallest box around the records of a region, 0 for one without any. begin,
    end: int64[nodes], its records are those from begin to end of the line that the leaves make, depth first.
    """

    box_low: Codes
    box_high: Codes
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    def classes(self) -> NDArray[np.int64]:
        """The leaves that have records, in the order of the line."""
        found = np.flatnonzero((self.attribute < 0) & (self.begin < self.end))
        return found[np.argsort(self.begin[found])]


@dataclass(frozen=True)
class _Region:
    """A node that is still to be divided, and its units."""

    node: int
    begin: int
    end: int
    weight: int
    rule: int
    low: Codes
    high: Codes


def grow_tree(
    rule: int,
    units: Units,
    ground: SplitData,
    tests: Conjunction | SampledTests,
    sizes: Sequence[int],
    progress: Progress,
    tasks: SplitTargets | None = None,
    selected: Selected | None = None,
    within: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None,
) -> RegionTree:
    """The tree over domains of the given ``sizes``, grown until no region has a split that the ``tests`` allow.

    ``within``: the first and the last codes of the region that node 0 is, by default the whole domain.
    ``tasks`` and ``selected`` are for the rules that need them; a rule that is given none has nothing to do.
    The units are put in the order of the leaves; ``begin`` and ``end`` of the tree count the rows they stand for.
    """
    spare = Units(*(np.empty_like(array) for array in units))
    dtype = units.codes.dtype

    def grown(region: _Region) -> tuple[NDArray[np.int64], Codes]:
        here, count = slice(region.begin, region.end), region.end - region.begin
        few = count <= BLOCK
        # A node that is divided has two children with records at least, and one more without than with at most.
        most = 5 * min(count, region.weight // int(ground.least.min())) if few else 2 * min(count, max(sizes)) + 2
        nodes, boxes = np.empty((most + 1, FIELDS), np.int64), np.zeros((most + 1, 4, len(sizes)), dtype)
        boxes[0, LOW], boxes[0, HIGH] = region.low, region.high
        made = grow(
            region.rule,
            Units(*(array[here] for array in units)),
            Units(*(array[here] for array in spare)),
            region.weight,
            ground,
            room_for(count, max(sizes)),
            secrets_for(count, tests) if tests.attributes else None,
            tasks,
            selected,
            None if tasks is None and selected is None else counters_for(count, max(sizes), tasks),
            few,
            nodes,
            boxes,
        )
        if few or made == 1:
            progress.advance(region.weight)
        return nodes[:made].copy(), boxes[:made].copy()

    low, high = within or (np.zeros(len(sizes), np.int64), np.array(sizes) - 1)
    whole = _Region(
        0,
        0,
        len(units.codes),
        int(units.data[:, UNIT_WEIGHT].sum(dtype=np.int64)),
        rule,
        low.astype(dtype),
        high.astype(dtype),
    )
    all_nodes, all_boxes = [np.full((1, FIELDS), NONE, np.int64)], [np.zeros((1, 4, len(sizes)), dtype)]
    roots: list[tuple[int, NDArray[np.int64], Codes]] = []
    waiting, count = [whole], 1
    while waiting:
        parts: list[_Region] = []
        for region, (nodes, boxes) in zip(waiting, in_threads(grown, waiting), strict=True):
            # Node 0 of what was grown is the region itself, which has its number; the others are numbered on.
            for field in (PARENT, FIRST_CHILD):
                numbers = nodes[:, field]
                nodes[:, field] = np.where(numbers > 0, numbers - 1 + count, np.where(numbers == 0, region.node, NONE))
            nodes[:, [BEGIN, END]] += region.begin
            roots.append((region.node, nodes[0], boxes[0]))
            all_nodes.append(nodes[1:])
            all_boxes.append(boxes[1:])
            if region.end - region.begin > BLOCK:
                parts += [
                    _Region(
                        count + place,
                        int(node[BEGIN]),
                        int(node[END]),
                        int(node[WEIGHT]),
                        int(node[RULE]),
                        box[LOW],
                        box[HIGH],
                    )
                    for place, (node, box) in enumerate(zip(nodes[1:], boxes[1:], strict=True))
                    if node[BEGIN] < node[END]
                ]
            count += len(nodes) - 1
        waiting = parts
    nodes, boxes = np.concatenate(all_nodes), np.concatenate(all_boxes)
    for node, fields, box in roots:
        nodes[node, ATTRIBUTE:] = fields[ATTRIBUTE:]
        boxes[node] = box
    places = np.append(0, np.cumsum(units.data[:, UNIT_WEIGHT], dtype=np.int64))
    return RegionTree(
        parent=nodes[:, PARENT],
        attribute=nodes[:, ATTRIBUTE],
        first_child=nodes[:, FIRST_CHILD],
        low=boxes[:, LOW],
        high=boxes[:, HIGH],
        box_low=boxes[:, BOX_LOW],
        box_high=boxes[:, BOX_HIGH],
        begin=places[nodes[:, BEGIN]],
        end=places[nodes[:, END]],
    )


@kernel
def grow(rule, units, spare, weight, ground, room, secrets, tasks, selected, counters, to_the_end, nodes, boxes):
    """Grow the tree under one region: how many nodes. Node 0 is the region; without ``to_the_end`` it is divided once.

    tasks, selected, counters: None where no rule needs them.
    units: changed, put in the order of the leaves; spare: overwritten. weight: the rows of the region. nodes:
    int64[..., 6] and boxes: uint[..., 4, d], filled, see the names of their fields; the region is in boxes[0] already.
    """
    count, d = units.codes.shape
    add_node(nodes, 0, NONE, 0, count, weight, rule)
    box_low, box_high = np.empty(d, np.int64), np.empty(d, np.int64)
    waiting = np.zeros(len(nodes), np.int64)
    made, open_nodes = np.int64(1), 1
    while open_nodes > 0:
        open_nodes -= 1
        node = waiting[open_nodes]
        begin, end = nodes[node, BEGIN], nodes[node, END]
        smallest_box(units.codes, begin, end, box_low, box_high)
        for q in range(d):
            boxes[node, BOX_LOW, q], boxes[node, BOX_HIGH, q] = box_low[q], box_high[q]
        if nodes[node, WEIGHT] < ground.divisible:
            continue
        rule, attribute, parts, share = nodes[node, RULE], NONE, 0, BEYOND
        if selected is not None and rule == BY_SELECTION:
            attribute, parts = split_by_selection(
                units, begin, end, box_low, box_high, ground, room, secrets, selected, counters
            )
            rule = BY_SELECTION if attribute != NONE else BY_TARGETS
        if tasks is not None and rule == BY_TARGETS:
            attribute, parts = split_by_targets(
                units, begin, end, box_low, box_high, ground, room, secrets, tasks, counters
            )
            rule = STRICT_MEDIAN if parts == SETTLED else BY_TARGETS
        if attribute == NONE:
            at_median = RELAXED_MEDIAN if rule == RELAXED_MEDIAN else STRICT_MEDIAN
            attribute, parts, share = split_by_median(
                at_median, units, begin, end, box_low, box_high, ground, room, secrets
            )
            if attribute == NONE:
                continue
        divide(units, spare, attribute, begin, end, parts, share, room)
        nodes[node, ATTRIBUTE], nodes[node, FIRST_CHILD] = attribute, made
        place, highest = np.int64(boxes[node, LOW, attribute]), np.int64(boxes[node, HIGH, attribute])
        for child in range(2 * parts + 1):  # the parts, and what lies before, between and after them
            part = child // 2
            first = room.first[part] if part < parts else highest + 1
            last = min(room.last[part], highest)
            if child % 2 == 0:
                first, last = place, first - 1
                if first > last:
                    continue
                add_node(nodes, made, node, begin, begin, 0, rule)
            else:
                first = max(first, np.int64(boxes[node, LOW, attribute]))
                add_node(nodes, made, node, begin, room.ends[part], room.upto[part], rule)
                begin, place = room.ends[part], last + 1
                if to_the_end:
                    waiting[open_nodes] = made
                    open_nodes += 1
            for q in range(d):
                boxes[made, LOW, q], boxes[made, HIGH, q] = boxes[node, LOW, q], boxes[node, HIGH, q]
            boxes[made, LOW, attribute], boxes[made, HIGH, attribute] = first, last
            made += 1
    return made


@kernel
def add_node(nodes, node, parent, begin, end, weight, rule):
    """Fill in a new node, which is a leaf until it is divided. rule: what it is divided by."""
    nodes[node, PARENT], nodes[node, ATTRIBUTE], nodes[node, FIRST_CHILD] = parent, NONE, NONE
    nodes[node, BEGIN], nodes[node, END], nodes[node, WEIGHT], nodes[node, RULE] = begin, end, weight, rule


@kernel
def smallest_box(codes, begin, end, low, high):
    """The box around records begin..end-1, of which there are some. low, high: int64[d], filled."""
    for q in range(len(low)):
        low[q] = codes[begin, q]
        high[q] = low[q]
    for unit in range(begin + 1, end):
        for q in range(len(low)):
            code = np.int64(codes[unit, q])
            low[q] = min(low[q], code)
            high[q] = max(high[q], code)


@kernel
def descend(codes, attribute, first_child, high):
    """The leaf that each record comes to: int64[n]. The rest: see RegionTree."""
    found = np.zeros(len(codes), np.int64)
    for record in range(len(codes)):
        node = 0
        while attribute[node] >= 0:
            q = attribute[node]
            node = first_child[node]
            while high[node, q] < codes[record, q]:
                node += 1
        found[record] = node
    return found
