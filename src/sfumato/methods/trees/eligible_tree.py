"""The eligible tree: a gain tree in which every part can be l-diverse by itself, then the frontier inside its leaves.

A part of the table is divided where that leaves the least total NCP, as in ``gain_tree``, but only so that no sensitive
value has more than 1/l of the records of either side: both are eligible (Ghinita 2007, section 4.2), so each can be
divided into l-diverse classes without the other. Where no division is left, the frontier heuristic (``frontier``) puts
the records of the leaf into classes, in the order of a gain tree; they are joined for k as on any line.

Along one line of the whole table, the frontier takes the records that a class lacks from far along the line. Here they
come from the same leaf, which is small in every attribute: on Adult the loss is .019 instead of .041 along the Hilbert
curve (l = 2).

The tree divides rows, not distinct records: rows with equal codes may have different sensitive values.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import ABOVE_CODES, INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.kernels.threads import in_threads
from sfumato.losses.exact_costs import Costs, attribute_cost
from sfumato.methods.line.diverse_cut import strictest_frequency
from sfumato.methods.line.optimal_cut import diverse_classes
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.trees.gain_tree import (
    BLOCK,
    CODE,
    COUNT,
    HIGH,
    LOW,
    NEXT,
    REST_HIGH,
    REST_LOW,
    GainTree,
    fill_slots,
    gain_buffers,
    gain_order,
    separate_sides,
)
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes


class EligibleTree:
    """Divide where that gains most and both sides stay eligible; then form classes inside the leaves."""

    name = "eligible-tree"
    paper = "the frontier of Ghinita et al., VLDB 2007, inside a tree of divisions by NCP, as in Xu et al., KDD 2006"
    summary = (
        "a tree of the divisions that lower the loss most and leave both sides eligible, the frontier in its leaves"
    )
    use = "frequency l-diversity: much less loss than along a line, in little time; otherwise it is `gain-tree`"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: without one on frequencies the gain tree is used."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        frequency = strictest_frequency(records, requirements)
        if frequency is None or not requirements.decided_by_kernel:
            yield from GainTree().classes(records, requirements, progress)
            return
        weights = np.diff(records.starts)
        categorical = np.array([domain.tree is not None for domain in records.domains])
        line = gain_order(records.codes, weights, categorical, records.costs, requirements.least_class)
        values = records.sensitive[frequency.attribute]
        record_of = np.repeat(np.arange(len(records.codes), dtype=np.uint32), weights)
        rank = np.empty(len(line), np.int64)
        rank[line] = np.arange(len(line))
        limits = EligibilityLimits(frequency.l, requirements.least_class, values.distinct)
        positions, leaves = eligible_leaves(
            np.take(records.codes, record_of, axis=0), values.codes[records.rows], limits, categorical, records.costs
        )
        # Inside the leaves, records are in the order of the line.
        leaf = np.repeat(np.arange(len(leaves) - 1), np.diff(leaves))
        positions = positions[np.lexsort((positions, rank[record_of[positions]], leaf))]
        rows, record_of = records.rows[positions], record_of[positions]
        yield from diverse_classes(records, requirements, np.arange(len(record_of)), rows, record_of, leaves, progress)


class EligibilityLimits(NamedTuple):
    """The conditions on both sides of a division. values: the number of sensitive values; null comes after."""

    l: int
    least: int
    values: int


def eligible_leaves(
    codes: Codes, values: NDArray[np.uint32], limits: EligibilityLimits, categorical: NDArray[np.bool_], costs: Costs
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the rows in the order of the leaves, and where each leaf begins, with the end.

    codes: uint[n, d], C-order. values: uint32[n]. All rows together must be eligible.
    """
    n, d = codes.shape
    order, weights = np.arange(n, dtype=np.uint32), np.ones(n, np.int64)
    spare, by_slot, begins = np.empty_like(order), np.empty_like(order), np.zeros(n, np.bool_)
    largest = int(codes.max(initial=0)) + 1

    def grow(part: tuple[int, int], stop: int) -> None:
        span = slice(*part)
        buffers = gain_buffers(part[1] - part[0], d, largest)
        counts = np.zeros((3, limits.values + 1), np.int64)
        line = order[span], spare[span], by_slot[span], begins[span], counts
        grow_tree(*line, codes, weights, values, limits, stop, categorical, costs.layout, costs.units, buffers)

    grow((0, n), BLOCK)
    edges = [*np.flatnonzero(begins).tolist(), n]
    parts = sorted(pairwise(edges), key=lambda part: part[0] - part[1])
    in_threads(lambda part: grow(part, 0), parts)
    return order, np.append(np.flatnonzero(begins), n)


@kernel
def grow_tree(
    order, spare, by_slot, begins, counts, codes, weights, values, limits, stop, categorical, layout, units, buffers
):
    """Divide rows until parts have at most ``stop`` rows or no division is left; mark where each part begins.

    order: uint32[m], changed; spare, by_slot: uint32[m], overwritten; begins: bool[m]. counts: see eligible_division.
    """
    waiting = buffers.parts
    waiting[0, 0], waiting[0, 1] = 0, len(order)
    depth = 1
    while depth > 0:
        depth -= 1
        begin, end = waiting[depth, 0], waiting[depth, 1]
        begins[begin] = True
        if end - begin <= stop:
            continue
        part = order[begin:end]
        attribute, limit, alone = eligible_division(
            part, by_slot, codes, weights, values, counts, limits, categorical, layout, units, buffers
        )
        middle = separate_sides(part, spare, codes, attribute, limit, alone)
        if middle > 0:
            waiting[depth, 0], waiting[depth, 1] = begin + middle, end
            waiting[depth + 1, 0], waiting[depth + 1, 1] = begin, begin + middle
            depth += 2


@inlined_kernel
def eligible_division(order, by_slot, codes, weights, values, counts, limits, categorical, layout, units, buffers):
    """Return the division with the least cost that leaves both sides eligible: see gain_tree.best_division.

    by_slot: uint32[>= m], overwritten. counts: int64[3, v + 1], overwritten: the counts of values in all rows, up to a
    slot, and in a slot.
    """
    n, d, whole, box = len(order), codes.shape[1], len(buffers.box) - 1, buffers.box
    for q in range(d):
        box[whole, LOW, q], box[whole, HIGH, q] = ABOVE_CODES, NONE
    clear(counts[0])
    for i in range(n):
        row = order[i]
        counts[0, values[row]] += 1
        for q in range(d):
            code = np.int64(codes[row, q])
            box[whole, LOW, q], box[whole, HIGH, q] = min(box[whole, LOW, q], code), max(box[whole, HIGH, q], code)
    best, attribute, limit, alone = INFINITE, NONE, NONE, np.bool_(False)
    if n >= 2 * max(limits.least, limits.l):
        for q in range(d):
            low, high = box[whole, LOW, q], box[whole, HIGH, q]
            if low < high:
                slots = fill_slots(order, codes, weights, q, low, high, buffers)
                sort_by_slot(order, slots, by_slot, buffers)
                cost, slot, single = eligible_slot(
                    slots, n, best, by_slot, values, counts, limits, categorical[q], layout, units, buffers
                )
                if slot != NONE:
                    best, attribute, limit, alone = cost, q, buffers.slots[slot, CODE], single
    return attribute, limit, alone


@inlined_kernel
def sort_by_slot(order, slots, by_slot, buffers):
    """Put rows in the order of their slots. by_slot: uint32[>= m], filled."""
    slot_of, facts, before = buffers.slot, buffers.slots, np.int64(0)
    for slot in range(slots):
        facts[slot, NEXT] = before
        before += facts[slot, COUNT]
    for i in range(len(order)):
        slot = slot_of[i]
        by_slot[facts[slot, NEXT]] = order[i]
        facts[slot, NEXT] += 1


@inlined_kernel
def eligible_slot(slots, n, below, by_slot, values, counts, limits, categorical, layout, units, buffers):
    """Return the least cost of a division by slot, if under ``below``, the slot, and whether it is a side alone."""
    slot_facts, box = buffers.slots, buffers.box
    d, whole = box.shape[2], len(box) - 1
    for q in range(d):
        box[slots, REST_LOW, q], box[slots, REST_HIGH, q] = ABOVE_CODES, NONE
        box[whole, REST_LOW, q], box[whole, REST_HIGH, q] = ABOVE_CODES, NONE
    for slot in range(slots - 1, -1, -1):
        for q in range(d):
            box[slot, REST_LOW, q] = min(box[slot + 1, REST_LOW, q], box[slot, LOW, q])
            box[slot, REST_HIGH, q] = max(box[slot + 1, REST_HIGH, q], box[slot, HIGH, q])
    best, best_slot, single, before = below, NONE, False, np.int64(0)
    clear(counts[1])
    for slot in range(slots - 1):
        rows = slot_facts[slot, COUNT]
        if rows == 0:
            continue
        clear(counts[2])
        for i in range(before, before + rows):
            counts[1, values[by_slot[i]]] += 1
            counts[2, values[by_slot[i]]] += 1
        for upto in range(2):  # the slot alone against all others, then all up to it
            size = before + rows if upto else rows
            if min(size, n - size) < max(limits.least, limits.l) or (upto == 0 and (before == 0 or not categorical)):
                continue
            cost = np.int64(0)
            for q in range(d):
                low, high = box[slot, LOW, q], box[slot, HIGH, q]
                rest_low, rest_high = box[slot + 1, REST_LOW, q], box[slot + 1, REST_HIGH, q]
                if upto:
                    low, high = min(low, box[whole, REST_LOW, q]), max(high, box[whole, REST_HIGH, q])
                else:
                    rest_low, rest_high = (
                        min(rest_low, box[whole, REST_LOW, q]),
                        max(rest_high, box[whole, REST_HIGH, q]),
                    )
                cost += size * attribute_cost(layout, units, q, low, high)
                cost += (n - size) * attribute_cost(layout, units, q, rest_low, rest_high)
            if cost < best and both_eligible(counts[0], counts[1 if upto else 2], limits):
                best, best_slot, single = cost, slot, upto == 0
        before += rows
        for q in range(d):
            box[whole, REST_LOW, q] = min(box[whole, REST_LOW, q], box[slot, LOW, q])
            box[whole, REST_HIGH, q] = max(box[whole, REST_HIGH, q], box[slot, HIGH, q])
    return best, best_slot, single


@inner_kernel
def clear(counts):
    """Set counts to 0: int64[v + 1]."""
    for value in range(len(counts)):
        counts[value] = 0


@inlined_kernel
def both_eligible(all_counts, some_counts, limits):
    """Return whether no value has more than 1/l of some records, or of the others. counts: int64[v + 1], null last."""
    known, known_some, largest, largest_rest = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for value in range(limits.values):
        known += all_counts[value]
        known_some += some_counts[value]
        largest = max(largest, some_counts[value])
        largest_rest = max(largest_rest, all_counts[value] - some_counts[value])
    return 0 < largest <= known_some // limits.l and 0 < largest_rest <= (known - known_some) // limits.l
