"""Cell peeling: the cheapest cell that has enough records becomes a class, then the next among the remaining records.

Every attribute has levels, from its single values up to the whole domain: the levels of its taxonomy, or ever wider
bands of numbers. A choice of one level for each attribute divides the domain into cells. All cells of all choices are
tried, the cheap ones first; a cell whose remaining records meet the requirements becomes a class. It shows the smallest
box around its records, as any class does. Where attributes are categories and k is large, no other method gives a
better start: the cost of a record depends on its taxonomy nodes, and cell peeling chooses these directly.

Cells are tried by bands of cost, and within a band choice by choice. A record belongs to one cell of each choice, in
the band of the cost of that cell; so each cell is tried once, and could only have fewer records later.

If there are too many choices, those are tried that cost little for the size of their cells; large tables are first
divided by the gain tree. The few records left over go to the classes where they add the least cost.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice.level_choices import Levels, choices_of, levels_of
from sfumato.methods.line.line import rows_along
from sfumato.methods.line.optimal_cut import boxes_of
from sfumato.methods.merge_failing import join_failing
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.search.mutable_classes import SearchPart, SearchRules
from sfumato.methods.search.shortfall import ATTRIBUTES, ROWS, ShortfallTests, shortfall_tests
from sfumato.methods.trees.gain_tree import gain_order
from sfumato.progress import Progress
from sfumato.requirements import Requirements

BLOCK = 1 << 15  # records that are peeled together
BANDS = 16  # of cost
MIX = 0x9E3779B97F4A7C15  # spreads the numbers of groups over 64 bits


class CellPeeling:
    """Take the cheapest cells of all choices of levels, one after the other."""

    name = "cell-peeling"
    paper = "Sfumato's own: greedy cover by the cells of the generalisation lattice"
    summary = "the cheapest cell of any combination of taxonomy levels becomes a class, then the next of the rest"
    use = "little loss where attributes are categories, above all at large k; slower than the curves"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: a cell becomes a class only if it meets it, or classes are merged."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        weights = np.diff(records.starts)
        order = np.arange(len(weights), dtype=np.uint32)
        if len(order) > BLOCK:
            categorical = np.array([domain.tree is not None for domain in records.domains])
            order = gain_order(records.codes, weights, categorical, records.costs, requirements.least_class)
        levels = levels_of(records.domains, records.costs)
        counting = Counting(records, requirements)
        tests, columns = counting.conjunction(), [records.sensitive[name].codes for name in requirements.attributes]
        rules = SearchRules(records.costs.layout, records.costs.units, requirements.least_class)
        rows, record_of = rows_along(records.rows, records.starts, order), np.repeat(order, weights[order])
        positions = np.append(0, np.cumsum(weights[order]))

        def peel_part(part: tuple[int, int]) -> NDArray[np.int64]:
            span = slice(positions[part[0]], positions[part[1]])
            count = span.stop - span.start
            values = np.stack([np.zeros(count, np.uint32), *(column[rows[span]] for column in columns)], axis=1)[:, 1:]
            whole = SearchPart(
                np.take(records.codes, record_of[span], axis=0).astype(np.int64), np.ascontiguousarray(values)
            )
            prepared = shortfall_tests(count, tests)
            if columns:
                owner = peel(whole, np.ones(count, np.int64), levels, rules, prepared)
            else:  # equal records stay together where no sensitive values distinguish them
                distinct = order[slice(*part)]
                distinct_part = SearchPart(np.take(records.codes, distinct, axis=0).astype(np.int64), whole.values[:0])
                owner = np.repeat(peel(distinct_part, weights[distinct], levels, rules, prepared), weights[distinct])
            classes = int(owner.max()) + 1
            size, box = np.zeros(classes, np.int64), np.empty((classes, 2, whole.codes.shape[1]), np.int64)
            place_rest(whole, owner, size, box, rules, prepared)
            progress.advance(count)
            return owner

        pieces = slices(len(order), -(-len(order) // max(round(len(order) / BLOCK), 1)) or 1)
        owners = in_threads(peel_part, pieces)
        offsets = np.cumsum([0, *(int(owner.max()) + 1 for owner in owners)])
        owner = np.concatenate([owner + offset for owner, offset in zip(owners, offsets, strict=False)])
        line = np.argsort(owner, kind="stable")
        starts = np.append(np.flatnonzero(np.diff(owner[line], prepend=-1)), len(line))
        batch = ClassBatch(rows[line], starts, *boxes_of(records.codes, record_of[line], starts))
        yield join_failing(batch, records, requirements, lambda low, _: np.arange(len(low)))


def peel(
    part: SearchPart, weights: NDArray[np.int64], levels: Levels, rules: SearchRules, tests: ShortfallTests
) -> NDArray[np.int64]:
    """Return the class of each record of a part, NONE for those in no cell that meets the requirements."""
    choices, least, most = choices_of(part.codes, weights, levels, rules.least)
    limits = (int(most.max()) * (np.arange(1, BANDS + 1) / BANDS) ** 2).astype(np.int64)
    limits[-1] = int(most.max())
    n = len(weights)
    owner, slots_needed = np.full(n, NONE, np.int64), 1 << max(2 * n - 1, 15).bit_length()
    lines, words = np.empty((6, n + part.codes.shape[1]), np.int64), np.empty(n + slots_needed, np.uint64)
    slots, range_of = np.zeros((2, slots_needed), np.int64), np.stack([least, most], axis=1)
    take_cells(part, weights, levels, choices, range_of, limits, rules, tests, lines, slots, words, owner)
    return owner


@kernel
def take_cells(part, weights, levels, choices, range_of, limits, rules, tests, lines, slots, words, owner):
    """Turn cells into classes. owner: int64[n], all NONE, filled for the records of the classes.

    choices: see choices_of. range_of: int64[c, 2], the least and the largest cost of a cell of each. limits:
    int64[bands], the upper ends of the bands. lines: int64[6, n + d], slots: int64[2, r], all 0, r a power of 2, and
    words: uint64[n + r]: overwritten.
    """
    n = len(weights)
    free, cell, size, members, ends, line = lines[0], lines[1], lines[2], lines[3], lines[4], lines[5]
    key, table, stamp, number = words[:n], words[n:], slots[0], slots[1]
    for i in range(n):
        free[i] = i
    slot_count, left, made, round_number, above = len(stamp), n, np.int64(0), 0, np.int64(-1)
    for band in range(len(limits)):
        limit = limits[band]
        for choice in range(len(choices)):
            if range_of[choice, 0] > limit or range_of[choice, 1] <= above or left == 0:
                continue
            count = in_band(part.codes, free, left, levels, choices[choice], above, limit, ends, members, key)
            round_number += 1
            cells = np.int64(0)
            for i in range(count):
                slot = np.int64((key[i] ^ (key[i] >> np.uint64(32))) & np.uint64(slot_count - 1))
                while stamp[slot] == round_number and table[slot] != key[i]:
                    slot = (slot + 1) & (slot_count - 1)
                if stamp[slot] != round_number:
                    stamp[slot], table[slot], number[slot] = round_number, key[i], cells
                    size[cells] = 0
                    cells += 1
                cell[i] = number[slot]
                size[cell[i]] += weights[members[i]]
            before = made
            if tests.space[ATTRIBUTES] == 0:
                for cell_id in range(cells):
                    size[cell_id] = (
                        made if size[cell_id] >= rules.least else NONE
                    )  # from here on, the class of the cell
                    made += size[cell_id] != NONE
            else:
                made = test_cells(part, members, cell, count, cells, size, ends, line, made, rules, tests)
            if made > before:
                for i in range(count):
                    owner[members[i]] = size[cell[i]]
                stay = 0
                for i in range(left):
                    if owner[free[i]] == NONE:
                        free[stay] = free[i]
                        stay += 1
                left = stay
        above = limit


@inlined_kernel
def in_band(codes, free, left, levels, choice, above, limit, start, members, key):
    """Write the free records whose cell costs above ``above`` and at most ``limit``, and its key; return how many."""
    count, d = 0, codes.shape[1]
    for q in range(d):
        start[q] = levels.start[choice[q, 0], choice[q, 1]]
    for i in range(left):
        record = free[i]
        total, mixed = np.int64(0), np.uint64(0)
        for q in range(d):
            entry = start[q] + codes[record, choice[q, 0]]
            total += levels.cost[entry]
            if total > limit:
                break
            # If two keys were equal by chance, their cells would form one class: more expensive, but just as safe.
            mixed = (mixed ^ np.uint64(levels.group[entry])) * np.uint64(MIX)
            mixed ^= mixed >> np.uint64(29)
        if above < total <= limit:
            members[count], key[count] = record, mixed
            count += 1
    return count


@inlined_kernel
def test_cells(part, members, cell, member_count, cells, size, ends, line, made, rules, tests):
    """Number the cells that meet the requirements, from ``made`` on; return the new number of classes.

    size: int64[...], first the records of each cell, then its class or NONE. ends, line: overwritten.
    """
    ends[0] = 0
    for cell_id in range(cells):
        ends[cell_id + 1] = ends[cell_id] + size[cell_id]
    for i in range(member_count - 1, -1, -1):
        ends[cell[i] + 1] -= 1
        line[ends[cell[i] + 1]] = members[i]
    for cell_id in range(cells):
        count, size[cell_id] = size[cell_id], NONE
        if count >= rules.least:
            for i in range(count):
                tests.space[tests.space[ROWS] + i] = line[ends[cell_id + 1] + i]
            if tests.lack(part.values, count, rules.least, tests.space, tests.real) == 0:
                size[cell_id] = made
                made += 1
    return made


@kernel
def place_rest(part, owner, size, box, rules, tests):
    """Put each row without a class into the class where it adds the least cost; the rows that fit none form a class.

    owner: int64[n], classes 0..c-1 or NONE, changed. size: int64[c], all 0, and box: int64[c, 2, d]: overwritten.
    """
    codes, (layout, units, _) = part.codes, rules
    count, d = len(size), codes.shape[1]
    for row in range(len(owner)):
        if owner[row] != NONE:
            add_to_class(size, box, codes, row, owner[row])
    for row in range(len(owner)):
        if owner[row] != NONE:
            continue
        least, target = INFINITE, count
        for class_id in range(count):
            added = np.int64(0)
            for q in range(d):
                low, high, records = box[class_id, 0, q], box[class_id, 1, q], -size[class_id]
                for _ in range(2):  # without the row, then with it
                    added += records * attribute_cost(layout, units, q, low, high)
                    low, high, records = min(low, codes[row, q]), max(high, codes[row, q]), size[class_id] + 1
            if added < least and (tests.space[ATTRIBUTES] == 0 or holds_with(part, owner, class_id, row, rules, tests)):
                least, target = added, class_id
        owner[row] = target
        if target < count:
            add_to_class(size, box, codes, row, target)


@inner_kernel
def add_to_class(size, box, codes, row, class_id):
    """Widen the box of a class to hold a row, and count the row."""
    for q in range(codes.shape[1]):
        code = codes[row, q]
        box[class_id, 0, q] = code if size[class_id] == 0 else min(box[class_id, 0, q], code)
        box[class_id, 1, q] = code if size[class_id] == 0 else max(box[class_id, 1, q], code)
    size[class_id] += 1


@inlined_kernel
def holds_with(part, owner, class_id, row, rules, tests):
    """Return whether a class meets the requirements with one more row."""
    tests.space[tests.space[ROWS]] = row
    count = 1
    for other in range(len(owner)):
        if owner[other] == class_id:
            tests.space[tests.space[ROWS] + count] = other
            count += 1
    return tests.lack(part.values, count, rules.least, tests.space, tests.real) == 0
