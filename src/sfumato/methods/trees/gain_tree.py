"""The gain tree: records are divided where that lowers the loss most, then the line of the leaves is cut optimally.

A part of the table is divided on one attribute, below or above a code, or for categories also one code from all others,
so that both sides have enough records; of all such divisions the one with the least total NCP is taken. The leaves form
a line in which near leaves follow each other, and the line is cut by dynamic programming (``optimal_cut``) as along any
ordering. On tables with categories such a line is better than a curve: it is built for the loss, not for distance.

The tree divides distinct records, each with its number of rows; the cut may separate equal records. The division of a
large part is chosen from a sample of its records, evenly spaced in the order of their codes; small parts are divided by
several threads, using all of their records.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import ABOVE_CODES, INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.kernels.threads import in_threads
from sfumato.losses.exact_costs import Costs, attribute_cost
from sfumato.methods.line.line import rows_along
from sfumato.methods.line.optimal_cut import best_classes, box_costs_of, optimal_cuts
from sfumato.methods.method import ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import sort_numbers

BLOCK = 1 << 14  # one thread divides a part of up to this many records to the end; also the sample of a larger part
CODE, COUNT, NEXT = range(3)  # columns of GainBuffers.slots
LOW, HIGH, REST_LOW, REST_HIGH = range(4)  # of GainBuffers.box
FEW_CODES, CODES_A_RECORD = 16, 2  # codes are counted in a table if that is not much larger than the part


class GainTree:
    """Divide where that gains most, then cut the line of the leaves optimally."""

    name = "gain-tree"
    paper = "greedy top-down specialisation by NCP, as in Xu et al., KDD 2006, and the cut of Ghinita et al., VLDB 2007"
    summary = "a tree of the divisions that lower the loss most, then the optimal cut of its leaves; time O(N d² log N)"
    use = "little loss in little time where there are categories, above all at large k"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: the line is cut for it, or classes are merged."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        weights = np.diff(records.starts)
        categorical = np.array([domain.tree is not None for domain in records.domains])
        line = gain_order(records.codes, weights, categorical, records.costs, requirements.least_class)
        at = np.repeat(line, weights[line])
        cut = partial(
            optimal_cuts, len(at), requirements.least_class, box_costs_of(records.codes, at, records.costs), progress
        )
        rows, places = partial(rows_along, records.rows, records.starts, line), partial(np.arange, len(at))
        yield from best_classes(records, requirements, at, rows, places, cut, progress)


def gain_order(
    codes: Codes, weights: NDArray[np.int64], categorical: NDArray[np.bool_], costs: Costs, least: int
) -> NDArray[np.uint32]:
    """Return the records in the order of the leaves: uint32[m].

    codes: uint[m, d], C-order. weights: int64[m], the rows of each record. least: the fewest rows of a part.
    """
    largest = int(codes.max(initial=0)) + 1
    order = np.arange(len(codes), dtype=np.uint32)
    spare = np.empty_like(order)
    waiting, small = [(0, len(order))], []
    buffers = gain_buffers(min(len(order), BLOCK), codes.shape[1], largest)
    while waiting:
        begin, end = waiting.pop()
        if end - begin <= BLOCK:
            small.append((begin, end))
            continue
        step = -(-(end - begin) // BLOCK)
        sample = np.ascontiguousarray(order[begin:end:step])
        least_in_sample = max(least // step, 1)
        part = order[begin:end]
        middle = divide(
            part, sample, spare, codes, weights, categorical, costs.layout, costs.units, least_in_sample, buffers, True
        )
        if middle > 0:
            waiting += [(begin, begin + middle), (begin + middle, end)]

    def grow(part: tuple[int, int]) -> None:
        part_order, part_spare = order[slice(*part)], spare[slice(*part)]
        buffers = gain_buffers(len(part_order), codes.shape[1], largest)
        divide(
            part_order,
            part_order,
            part_spare,
            codes,
            weights,
            categorical,
            costs.layout,
            costs.units,
            least,
            buffers,
            False,
        )

    in_threads(grow, sorted(small, key=lambda part: part[0] - part[1]))
    return order


class GainBuffers(NamedTuple):
    """Working space for a part of the records, by position in it or by slot: a code of an attribute.

    packed: uint64[m]. parts: int64[m + 1, 2], the parts that wait to be divided. slot: int64[m], the slot of each
    record. slots: int64[s, 3], the code of a slot, its number of rows, and where its next row goes. box: int64[s, 4,
    d], the box of a slot and that of all slots from it on; the last entry has the box of the part and that of the slots
    so far.
    """

    packed: NDArray[np.uint64]
    parts: NDArray[np.int64]
    slot: NDArray[np.int64]
    slots: NDArray[np.int64]
    box: NDArray[np.int64]


def gain_buffers(records: int, attributes: int, largest: int) -> GainBuffers:
    """Return working space for ``records`` records with codes below ``largest``."""
    count = min(largest, FEW_CODES + CODES_A_RECORD * records) + 2
    slots, box = np.empty((count, 3), np.int64), np.empty((count, 4, attributes), np.int64)
    parts = np.empty((records + 1, 2), np.int64)
    return GainBuffers(np.empty(records, np.uint64), parts, np.empty(records, np.int64), slots, box)


@kernel
def divide(order, sample, spare, codes, weights, categorical, layout, units, least, buffers, once):
    """Divide records until no division is left, or with ``once`` one time, where that is best for the sample.

    Returns how many are on the first side of the last division, 0 for none. order: uint32[m], changed; spare:
    uint32[m], overwritten.
    """
    waiting = buffers.parts
    waiting[0, 0], waiting[0, 1] = 0, len(order)
    depth, middle = 1, 0
    while depth > 0:
        depth -= 1
        begin, end = waiting[depth, 0], waiting[depth, 1]
        part = order[begin:end]
        examined = sample if once else part
        attribute, limit, alone = best_division(examined, codes, weights, categorical, layout, units, least, buffers)
        middle = separate_sides(part, spare, codes, attribute, limit, alone)
        if middle > 0 and not once:
            waiting[depth, 0], waiting[depth, 1] = begin + middle, end
            waiting[depth + 1, 0], waiting[depth + 1, 1] = begin, begin + middle
            depth += 2
    return middle


@inner_kernel
def separate_sides(order, spare, codes, attribute, limit, alone):
    """Sort the records by the sides of a division, stably; return how many are on the first side, 0 for none.

    order: uint32[m], changed; spare: uint32[>= m], overwritten. attribute, limit, alone: see best_division.
    """
    if attribute == NONE:
        return 0
    middle, others = 0, 0
    for i in range(len(order)):
        record = order[i]
        code = np.int64(codes[record, attribute])
        if code == limit or (code < limit and not alone):
            order[middle] = record
            middle += 1
        else:
            spare[others] = record
            others += 1
    for i in range(others):
        order[middle + i] = spare[i]
    return middle


@inlined_kernel
def best_division(order, codes, weights, categorical, layout, units, least, buffers):
    """Return the division with the least cost: its attribute or NONE, a code, and whether the code is a side alone.

    Otherwise the codes up to it are the first side. order: uint32[m], the records to examine.
    """
    d, whole, box = codes.shape[1], len(buffers.box) - 1, buffers.box
    total = np.int64(0)
    for q in range(d):
        box[whole, LOW, q], box[whole, HIGH, q] = ABOVE_CODES, NONE
    for i in range(len(order)):
        record = order[i]
        total += weights[record]
        for q in range(d):
            code = np.int64(codes[record, q])
            box[whole, LOW, q], box[whole, HIGH, q] = min(box[whole, LOW, q], code), max(box[whole, HIGH, q], code)
    best, attribute, limit, alone = INFINITE, NONE, NONE, np.bool_(False)
    if total >= 2 * least:
        for q in range(d):
            low, high = box[whole, LOW, q], box[whole, HIGH, q]
            if low < high:
                count = fill_slots(order, codes, weights, q, low, high, buffers)
                cost, slot, single = division_by_slot(count, total, least, categorical[q], layout, units, buffers)
                if cost < best:
                    best, attribute, limit, alone = cost, q, buffers.slots[slot, CODE], single
    return attribute, limit, alone


@inner_kernel
def fill_slots(order, codes, weights, attribute, low, high, buffers):
    """Count the records of a part by their code on one attribute, with the box of each code; return how many slots.

    A slot whose code no record has gets a count of 0.
    """
    slot_of, slots, box = buffers.slot, buffers.slots, buffers.box
    d, count = codes.shape[1], high - low + 1
    if count <= FEW_CODES + CODES_A_RECORD * len(order):
        for slot in range(count):
            slots[slot, CODE] = low + slot
        for i in range(len(order)):
            slot_of[i] = np.int64(codes[order[i], attribute]) - low
    else:
        packed = buffers.packed[: len(order)]
        for i in range(len(order)):
            packed[i] = np.uint64(codes[order[i], attribute]) << np.uint64(32) | np.uint64(i)
        sort_numbers(packed)
        count = 0
        for i in range(len(packed)):
            entry = packed[i]
            value = np.int64(entry >> np.uint64(32))
            if count == 0 or slots[count - 1, CODE] != value:
                slots[count, CODE] = value
                count += 1
            slot_of[np.int64(entry & np.uint64(0xFFFFFFFF))] = count - 1
    for slot in range(count):
        slots[slot, COUNT] = 0
        for q in range(d):
            box[slot, LOW, q], box[slot, HIGH, q] = ABOVE_CODES, NONE
    for i in range(len(order)):
        record, slot = order[i], slot_of[i]
        slots[slot, COUNT] += weights[record]
        for q in range(d):
            value = np.int64(codes[record, q])
            box[slot, LOW, q] = min(box[slot, LOW, q], value)
            box[slot, HIGH, q] = max(box[slot, HIGH, q], value)
    return count


@inlined_kernel
def division_by_slot(count, total, least, categorical, layout, units, buffers):
    """Return the least cost of a division by slot, the slot, and whether it is a side alone."""
    slots, box = buffers.slots, buffers.box
    d, below = box.shape[2], len(box) - 1  # the box of the slots below
    for q in range(d):
        box[count, REST_LOW, q], box[count, REST_HIGH, q] = ABOVE_CODES, NONE
        box[below, REST_LOW, q], box[below, REST_HIGH, q] = ABOVE_CODES, NONE
    for slot in range(count - 1, -1, -1):
        for q in range(d):
            box[slot, REST_LOW, q] = min(box[slot + 1, REST_LOW, q], box[slot, LOW, q])
            box[slot, REST_HIGH, q] = max(box[slot + 1, REST_HIGH, q], box[slot, HIGH, q])
    best, best_slot, single, before = INFINITE, NONE, False, np.int64(0)
    for slot in range(count - 1):
        rows = slots[slot, COUNT]
        if rows == 0:
            continue
        for upto in range(2):  # the slot alone against all others, then all up to it
            size = before + rows if upto else rows
            if size < least or total - size < least or (upto == 0 and (before == 0 or not categorical)):
                continue
            cost = np.int64(0)
            for q in range(d):
                low, high = box[slot, LOW, q], box[slot, HIGH, q]
                rest_low, rest_high = box[slot + 1, REST_LOW, q], box[slot + 1, REST_HIGH, q]
                if upto:
                    low, high = min(low, box[below, REST_LOW, q]), max(high, box[below, REST_HIGH, q])
                else:
                    rest_low = min(rest_low, box[below, REST_LOW, q])
                    rest_high = max(rest_high, box[below, REST_HIGH, q])
                cost += size * attribute_cost(layout, units, q, low, high)
                cost += (total - size) * attribute_cost(layout, units, q, rest_low, rest_high)
            if cost < best:
                best, best_slot, single = cost, slot, upto == 0
        before += rows
        for q in range(d):
            box[below, REST_LOW, q] = min(box[below, REST_LOW, q], box[slot, LOW, q])
            box[below, REST_HIGH, q] = max(box[below, REST_HIGH, q], box[slot, HIGH, q])
    return best, best_slot, single
