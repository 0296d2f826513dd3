"""The gain tree: records divided again and again where that takes most loss away, then cut in the best way.

A part of the table is divided on one attribute, below or above a code, or for categories also one code from all others,
so that both sides have enough records; of all such divisions the one that leaves the least total NCP. The leaves stand
side by side, near ones near each other, and the line of their records is cut by dynamic programming (``optimal_1d``) as
along any ordering. On tables with categories such a line is better than a curve: it is made for the loss, not for
distance.

It divides distinct records, each with its number of rows; the cut may part equal records. Where a large part is divided
is found on every so manieth of its records, which stand in the order of their codes; small parts are divided by several
threads and looked at whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads
from sfumato.losses.exact_costs import Costs, attribute_cost
from sfumato.methods.line.line import rows_along
from sfumato.methods.line.optimal_cut import best_classes, box_costs_of, optimal_cuts
from sfumato.methods.method import ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import CategoricalDomain, Codes
from sfumato.tables.coding.sorting import sort_numbers

BLOCK = 1 << 14  # records that one thread divides to the end, and that are looked at in larger parts
FAR = 1 << 40  # more than any code
CODE, COUNT = range(2)  # of Room.about
LOW, HIGH, REST_LOW, REST_HIGH = range(4)  # of Room.box
FEW_CODES, CODES_A_RECORD = 16, 2  # codes are counted in a table where that is not much larger than the part


class GainTree:
    """Divide where that gains most, then cut the line of the leaves in the best way."""

    name = "gain-tree"
    paper = "greedy top-down specialisation by NCP, as in Xu et al., KDD 2006, and the cut of Ghinita et al., VLDB 2007"
    summary = "a tree of the divisions that take most loss away, its leaves in line, the best cut; time O(N d² log N)"
    use = "little loss in little time where there are categories, at large k above all"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Any requirement can be met: the line is cut for it, or classes are joined."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.tested

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        weights = np.diff(records.starts)
        categorical = np.array([isinstance(domain, CategoricalDomain) for domain in records.domains])
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
    """The records in the order of the leaves.

    codes: uint[m, d], C-order. weights: int64[m], the rows of each record. least: the fewest rows of a part.
    """
    largest = int(codes.max(initial=0)) + 1
    order = np.arange(len(codes), dtype=np.uint32)
    spare = np.empty_like(order)
    waiting, small = [(0, len(order))], []
    room = room_for(min(len(order), BLOCK), codes.shape[1], largest)
    while waiting:
        begin, end = waiting.pop()
        if end - begin <= BLOCK:
            small.append((begin, end))
            continue
        step = -(-(end - begin) // BLOCK)
        some = np.ascontiguousarray(order[begin:end:step])
        enough = max(least // step, 1)
        part = order[begin:end]
        middle = divide(part, some, spare, codes, weights, categorical, costs.layout, costs.units, enough, room, True)
        if middle > 0:
            waiting += [(begin, begin + middle), (begin + middle, end)]

    def grow(part: tuple[int, int]) -> None:
        these, others = order[slice(*part)], spare[slice(*part)]
        room = room_for(len(these), codes.shape[1], largest)
        divide(these, these, others, codes, weights, categorical, costs.layout, costs.units, least, room, False)

    in_threads(grow, sorted(small, key=lambda part: part[0] - part[1]))
    return order


class GainBuffers(NamedTuple):
    """Working space for a part of the records, by place in it or by slot, the codes of an attribute that occur.

    packed: uint64[m]. parts: int64[m + 1, 2], those that wait to be divided. slot: int64[m]. about: int64[s, 2], the
    code of a slot and how many rows have it. box: int64[s, 4, d], the box of a slot and that of all slots from it on;
    in its last line that of the part and that of the slots so far.
    """

    packed: NDArray[np.uint64]
    parts: NDArray[np.int64]
    slot: NDArray[np.int64]
    about: NDArray[np.int64]
    box: NDArray[np.int64]


def room_for(records: int, attributes: int, largest: int) -> GainBuffers:
    """Working space for so many records with codes below ``largest``."""
    slots = min(largest, FEW_CODES + CODES_A_RECORD * records) + 2
    about, box = np.empty((slots, 2), np.int64), np.empty((slots, 4, attributes), np.int64)
    parts = np.empty((records + 1, 2), np.int64)
    return GainBuffers(np.empty(records, np.uint64), parts, np.empty(records, np.int64), about, box)


@kernel
def divide(order, some, spare, codes, weights, categorical, layout, units, least, room, once):
    """Divide records until no division is left, or once, where that is best for some of them.

    How many are on the first side of the last division, 0 for none. order: uint32[m], changed; spare: uint32[m],
    overwritten.
    """
    waiting = room.parts
    waiting[0, 0], waiting[0, 1] = 0, len(order)
    depth, middle = 1, 0
    while depth > 0:
        depth -= 1
        begin, end = waiting[depth, 0], waiting[depth, 1]
        part = order[begin:end]
        looked_at = some if once else part
        attribute, limit, alone = best_division(looked_at, codes, weights, categorical, layout, units, least, room)
        middle = part_at(part, spare, codes, attribute, limit, alone)
        if middle > 0 and not once:
            waiting[depth, 0], waiting[depth, 1] = begin + middle, end
            waiting[depth + 1, 0], waiting[depth + 1, 1] = begin, begin + middle
            depth += 2
    return middle


@kernel
def part_at(order, spare, codes, attribute, limit, alone):
    """Bring the sides of a division together, otherwise as they were: how many are on the first side, 0 for none.

    order: uint32[m], changed; spare: uint32[>= m], overwritten. The rest: see best_division.
    """
    if attribute == NONE:
        return 0
    middle, others = 0, 0
    for place in range(len(order)):
        record = order[place]
        code = np.int64(codes[record, attribute])
        if code == limit or (code < limit and not alone):
            order[middle] = record
            middle += 1
        else:
            spare[others] = record
            others += 1
    for place in range(others):
        order[middle + place] = spare[place]
    return middle


@kernel
def best_division(order, codes, weights, categorical, layout, units, least, room):
    """The division with the least cost: its attribute, NONE if none, a code, and whether that is against all others.

    Else those up to the code are the first side. order: uint32[m], the records that are looked at.
    """
    d, whole, box = codes.shape[1], len(room.box) - 1, room.box
    total = np.int64(0)
    for q in range(d):
        box[whole, LOW, q], box[whole, HIGH, q] = FAR, NONE
    for place in range(len(order)):
        record = order[place]
        total += weights[record]
        for q in range(d):
            code = np.int64(codes[record, q])
            box[whole, LOW, q], box[whole, HIGH, q] = min(box[whole, LOW, q], code), max(box[whole, HIGH, q], code)
    best, attribute, limit, alone = np.int64(INFINITE), NONE, np.int64(NONE), False
    if total >= 2 * least:
        for q in range(d):
            low, high = box[whole, LOW, q], box[whole, HIGH, q]
            if low < high:
                slots = fill_slots(order, codes, weights, q, low, high, room)
                cost, slot, single = division_by_slot(slots, total, least, categorical[q], layout, units, room)
                if cost < best:
                    best, attribute, limit, alone = cost, q, room.about[slot, CODE], single
    return attribute, limit, alone


@kernel
def fill_slots(order, codes, weights, attribute, low, high, room):
    """Count the records of a part by their code on one attribute, with the box of each code: how many slots.

    A slot of which no record has the code has a count of 0.
    """
    slot_of, about, box = room.slot, room.about, room.box
    d, slots = codes.shape[1], high - low + 1
    if slots <= FEW_CODES + CODES_A_RECORD * len(order):
        for slot in range(slots):
            about[slot, CODE] = low + slot
        for place in range(len(order)):
            slot_of[place] = np.int64(codes[order[place], attribute]) - low
    else:
        packed = room.packed[: len(order)]
        for place in range(len(order)):
            packed[place] = np.uint64(codes[order[place], attribute]) << np.uint64(32) | np.uint64(place)
        sort_numbers(packed)
        slots = 0
        for place in range(len(packed)):
            entry = packed[place]
            value = np.int64(entry >> np.uint64(32))
            if slots == 0 or about[slots - 1, CODE] != value:
                about[slots, CODE] = value
                slots += 1
            slot_of[np.int64(entry & np.uint64(0xFFFFFFFF))] = slots - 1
    for slot in range(slots):
        about[slot, COUNT] = 0
        for q in range(d):
            box[slot, LOW, q], box[slot, HIGH, q] = FAR, NONE
    for place in range(len(order)):
        record, slot = order[place], slot_of[place]
        about[slot, COUNT] += weights[record]
        for q in range(d):
            value = np.int64(codes[record, q])
            box[slot, LOW, q] = min(box[slot, LOW, q], value)
            box[slot, HIGH, q] = max(box[slot, HIGH, q], value)
    return slots


@kernel
def division_by_slot(slots, total, least, categorical, layout, units, room):
    """The least cost of a division by slot, the slot, and whether it stands alone against all others."""
    about, box = room.about, room.box
    d, below = box.shape[2], len(box) - 1  # the box of the slots below
    for q in range(d):
        box[slots, REST_LOW, q], box[slots, REST_HIGH, q] = FAR, NONE
        box[below, REST_LOW, q], box[below, REST_HIGH, q] = FAR, NONE
    for slot in range(slots - 1, -1, -1):
        for q in range(d):
            box[slot, REST_LOW, q] = min(box[slot + 1, REST_LOW, q], box[slot, LOW, q])
            box[slot, REST_HIGH, q] = max(box[slot + 1, REST_HIGH, q], box[slot, HIGH, q])
    best, found, single, before = np.int64(INFINITE), NONE, False, np.int64(0)
    for slot in range(slots - 1):
        here = about[slot, COUNT]
        if here == 0:
            continue
        for upto in range(2):  # the slot alone against all others, then all up to it
            size = before + here if upto else here
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
                best, found, single = cost, slot, upto == 0
        before += here
        for q in range(d):
            box[below, REST_LOW, q] = min(box[below, REST_LOW, q], box[slot, LOW, q])
            box[below, REST_HIGH, q] = max(box[below, REST_HIGH, q], box[slot, HIGH, q])
    return best, found, single
