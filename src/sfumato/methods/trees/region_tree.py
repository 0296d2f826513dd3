"""A tree of regions: the domain divided on one attribute, its parts divided again (LeFevre 2008, section 2, Fig. 2).

A region is a box of codes. The parts of a region lie side by side on one attribute and fill it, so the leaves tile the
domain: every possible record is in one of them, even if it was not in the table when the tree was grown. A part without
records is a leaf that is no class.

A split rule decides where a region is divided. The kernel that grows the tree takes it as a number; ``split_tests`` has
the code that rules share. Where a rule for a workload finds no split, the next one is tried: the selections, then the
targets, then the median. A region of many records is divided once, and its parts are given to threads; a region of few
is grown to the end by one thread. Every region is a run of the units, which move with each division, so that a thread
reads and writes contiguous memory and the leaves come in depth-first order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import ABOVE_CODES, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.kernels.threads import in_threads
from sfumato.methods.method import BATCH_CLASSES, ClassBatch
from sfumato.methods.trees.sampled_tests import SampledTests
from sfumato.methods.trees.split_median import PUBLISHED_MEDIAN, RELAXED_MEDIAN, STRICT_MEDIAN, split_by_median
from sfumato.methods.trees.split_prediction import SETTLED, split_by_targets
from sfumato.methods.trees.split_selection import split_by_selection
from sfumato.methods.trees.split_targets import Selected, SplitTargets, counters_for
from sfumato.methods.trees.split_tests import WEIGHT as UNIT_WEIGHT
from sfumato.methods.trees.split_tests import SplitData, Units, divide, sensitive_counts, split_buffers
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.requirements.conjunction import Conjunction
from sfumato.tables.coding.domains import Codes

BLOCK = 1 << 15  # one thread grows a region of up to this many units to the end: they fit in the cache of a core

BY_TARGETS, BY_SELECTION = 2, 3  # rules in addition to those of the median
PARENT, ATTRIBUTE, FIRST_CHILD, BEGIN, END, WEIGHT, RULE = range(7)  # fields of a node
FIELDS = 7
LOW, HIGH, BOX_LOW, BOX_HIGH = range(4)  # of its boxes


@dataclass(frozen=True)
class Tiling:
    """Regions. Nodes follow their parents, the children of a node follow each other, ascending; node 0 is the domain.

    parent, first_child: int64[nodes], -1 for none. attribute: int64[nodes], what a node is divided on, -1 for a leaf.
    low, high: uint[nodes, d], the region.
    """

    parent: NDArray[np.int64]
    attribute: NDArray[np.int64]
    first_child: NDArray[np.int64]
    low: Codes
    high: Codes

    def leaves_of(self, codes: Codes) -> NDArray[np.int64]:
        """Return the leaf whose region each record is in, the first one where regions share a value."""
        leaves: NDArray[np.int64] = descend(codes, self.attribute, self.first_child, self.high)
        return leaves

    def undivided(self, nodes: NDArray[np.int64]) -> Self:
        """Return the tiling with these nodes as leaves; the nodes below them keep their numbers but are unreachable."""
        attribute = self.attribute.copy()
        attribute[nodes] = NONE
        return replace(self, attribute=attribute)


@dataclass(frozen=True)
class RegionTree(Tiling):
    """Regions with their records. In a tree grown on some records, node 0 may be a part of the domain.

    box_low, box_high: uint[nodes, d], the smallest box around the records of a region, 0 for one without any. begin,
    end: int64[nodes], the positions of its records in the sequence of the leaves, depth first.
    """

    box_low: Codes
    box_high: Codes
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    def classes(self) -> NDArray[np.int64]:
        """Return the leaves that have records, in the order of their records."""
        leaves = np.flatnonzero((self.attribute < 0) & (self.begin < self.end))
        return leaves[np.argsort(self.begin[leaves])]

    def class_batches(self, rows: NDArray[np.uint32]) -> Iterator[ClassBatch]:
        """Yield the leaves that have records as classes, in batches. rows: uint32[n], in the order of the leaves."""
        leaves = self.classes()
        for first in range(0, len(leaves), BATCH_CLASSES):
            batch = leaves[first : first + BATCH_CLASSES]
            starts = np.append(self.begin[batch], self.end[batch[-1]])
            yield ClassBatch(
                rows[starts[0] : starts[-1]], starts - starts[0], self.box_low[batch], self.box_high[batch]
            )


@dataclass(frozen=True)
class _Region:
    """A node that has yet to be divided, and its units."""

    node: int
    begin: int
    end: int
    weight: int
    rule: int
    low: Codes
    high: Codes


def regions_meet(requirements: Requirements) -> bool:
    """Return whether the tests of regions cover the requirements; others are met by merging classes."""
    known = all(part.condition() is not None for part in requirements.parts)
    records_or_k_persons = requirements.person is None or not requirements.attributes
    return known and not requirements.joint and records_or_k_persons


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
    """Grow the tree over domains of the given ``sizes``, until no region has a split that the ``tests`` allow.

    ``within``: the first and the last codes of the region of node 0, by default the whole domain.
    ``tasks`` and ``selected`` are for the rules that need them; a rule without them finds no split.
    The units are put in the order of the leaves; ``begin`` and ``end`` of the tree count their rows.
    """
    spare = Units(*(np.empty_like(array) for array in units))
    dtype = units.codes.dtype

    def grow_region(region: _Region) -> tuple[NDArray[np.int64], Codes]:
        span, count = slice(region.begin, region.end), region.end - region.begin
        to_the_end = count <= BLOCK
        # A divided node has at least two children with records, and at most one more without than with records.
        most = (
            5 * min(count, region.weight // int(ground.least.min())) if to_the_end else 2 * min(count, max(sizes)) + 2
        )
        nodes, boxes = np.empty((most + 1, FIELDS), np.int64), np.zeros((most + 1, 4, len(sizes)), dtype)
        boxes[0, LOW], boxes[0, HIGH] = region.low, region.high
        made = grow(
            region.rule,
            Units(*(array[span] for array in units)),
            Units(*(array[span] for array in spare)),
            region.weight,
            ground,
            split_buffers(count, max(sizes)),
            sensitive_counts(count, tests) if tests.attributes else None,
            tasks,
            selected,
            None if tasks is None and selected is None else counters_for(count, max(sizes), tasks),
            to_the_end,
            nodes,
            boxes,
        )
        if to_the_end or made == 1:
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
        for region, (nodes, boxes) in zip(waiting, in_threads(grow_region, waiting), strict=True):
            # Node 0 of the result is the region itself, which has its number; the other nodes get the next numbers.
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
                        count + number,
                        int(node[BEGIN]),
                        int(node[END]),
                        int(node[WEIGHT]),
                        int(node[RULE]),
                        box[LOW],
                        box[HIGH],
                    )
                    for number, (node, box) in enumerate(zip(nodes[1:], boxes[1:], strict=True))
                    if node[BEGIN] < node[END]
                ]
            count += len(nodes) - 1
        waiting = parts
    nodes, boxes = np.concatenate(all_nodes), np.concatenate(all_boxes)
    for node, fields, box in roots:
        nodes[node, ATTRIBUTE:] = fields[ATTRIBUTE:]
        boxes[node] = box
    positions = np.append(0, np.cumsum(units.data[:, UNIT_WEIGHT], dtype=np.int64))
    return RegionTree(
        parent=nodes[:, PARENT],
        attribute=nodes[:, ATTRIBUTE],
        first_child=nodes[:, FIRST_CHILD],
        low=boxes[:, LOW],
        high=boxes[:, HIGH],
        box_low=boxes[:, BOX_LOW],
        box_high=boxes[:, BOX_HIGH],
        begin=positions[nodes[:, BEGIN]],
        end=positions[nodes[:, END]],
    )


@kernel
def grow(rule, units, spare, weight, shared, buffers, sensitive, tasks, selected, counters, to_the_end, nodes, boxes):
    """Grow the tree under one region, node 0, or divide it once without ``to_the_end``; return the number of nodes.

    tasks, selected, counters: None where no rule needs them.
    units: changed, put in the order of the leaves; spare: overwritten. weight: the rows of the region. nodes:
    int64[..., 7] and boxes: uint[..., 4, d], filled, with the fields named above; boxes[0] has the region already.
    """
    count, d = units.codes.shape
    add_node(nodes, np.int64(0), NONE, np.int64(0), count, weight, rule)
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
        if nodes[node, WEIGHT] < shared.divisible:
            continue
        rule, attribute, parts, share = nodes[node, RULE], NONE, 0, ABOVE_CODES
        if selected is not None and rule == BY_SELECTION:
            attribute, parts = split_by_selection(
                units, begin, end, box_low, box_high, shared, buffers, sensitive, selected, counters
            )
            rule = BY_SELECTION if attribute != NONE else BY_TARGETS
        if tasks is not None and rule == BY_TARGETS:
            attribute, parts = split_by_targets(
                units, begin, end, box_low, box_high, shared, buffers, sensitive, tasks, counters
            )
            rule = STRICT_MEDIAN if parts == SETTLED else BY_TARGETS
        if attribute == NONE:
            at_median = rule if rule in (RELAXED_MEDIAN, PUBLISHED_MEDIAN) else STRICT_MEDIAN
            attribute, parts, share = split_by_median(
                at_median, units, begin, end, box_low, box_high, shared, buffers, sensitive
            )
            if attribute == NONE:
                continue
        divide(units, spare, attribute, begin, end, parts, share, buffers)
        nodes[node, ATTRIBUTE], nodes[node, FIRST_CHILD] = attribute, made
        next_code, highest = np.int64(boxes[node, LOW, attribute]), np.int64(boxes[node, HIGH, attribute])
        for child in range(2 * parts + 1):  # the parts, and the gaps before, between and after them
            part = child // 2
            first = buffers.first[part] if part < parts else highest + 1
            last = min(buffers.last[part], highest)
            if child % 2 == 0:
                first, last = next_code, first - 1
                if first > last:
                    continue
                add_node(nodes, made, node, begin, begin, np.int64(0), rule)
            else:
                first = max(first, np.int64(boxes[node, LOW, attribute]))
                add_node(nodes, made, node, begin, buffers.ends[part], buffers.upto[part], rule)
                begin, next_code = buffers.ends[part], last + 1
                if to_the_end:
                    waiting[open_nodes] = made
                    open_nodes += 1
            for q in range(d):
                boxes[made, LOW, q], boxes[made, HIGH, q] = boxes[node, LOW, q], boxes[node, HIGH, q]
            boxes[made, LOW, attribute], boxes[made, HIGH, attribute] = first, last
            made += 1
    return made


@inner_kernel
def add_node(nodes, node, parent, begin, end, weight, rule):
    """Fill in a new node, which is a leaf until it is divided. rule: the split rule to divide it by."""
    nodes[node, PARENT], nodes[node, ATTRIBUTE], nodes[node, FIRST_CHILD] = parent, NONE, NONE
    nodes[node, BEGIN], nodes[node, END], nodes[node, WEIGHT], nodes[node, RULE] = begin, end, weight, rule


@inlined_kernel
def smallest_box(codes, begin, end, low, high):
    """Compute the box around records begin..end-1, at least one. low, high: int64[d], filled."""
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
    """Return the leaf that each record belongs to: int64[n]. attribute, first_child, high: see Tiling."""
    leaves = np.zeros(len(codes), np.int64)
    for record in range(len(codes)):
        node = 0
        while attribute[node] >= 0:
            q = attribute[node]
            node = first_child[node]
            while high[node, q] < codes[record, q]:
                node += 1
        leaves[record] = node
    return leaves
