"""Cell peeling: the cheapest cell that has enough records is a class, and so on with the records that are left.

Every attribute has levels, from its single values up to the whole: the levels of its taxonomy, or ever wider bands of
numbers. A choice of one level for each attribute divides the domain into cells; all cells of all choices are looked at,
cheap ones first, and a cell whose records meet the requirements without those that are gone becomes a class. It shows
the smallest box around its records, as any class. Where attributes are categories and k is large nothing starts better:
what a record pays depends on its taxonomy nodes, and here they are asked directly.

Cells are taken by bands of cost, and in a band choice by choice. A record belongs to one cell of each choice, in the
band of what that cell costs: so each is looked up once, and later can only have fewer records.

Too many choices are made fewer by leaving out levels that differ least from the next; large tables are divided by the
gain tree before. The few records that are left over go to the classes where they add least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.losses.exact_costs import Costs, attribute_cost, attribute_costs
from sfumato.methods.class_counting import Counting
from sfumato.methods.line.line import rows_along
from sfumato.methods.line.optimal_cut import boxes_of
from sfumato.methods.merge_failing import join_failing
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.search.mutable_classes import Asked, SearchPart
from sfumato.methods.search.shortfall import ShortfallCounts, tally_for
from sfumato.methods.trees.gain_tree import gain_order
from sfumato.methods.trees.split_tests import branches_of
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import CategoricalDomain, Domain

BLOCK = 1 << 15  # records that are peeled together
CHOICES, MOST_CHOICES = 2048, 1 << 19  # of levels that are looked at, and thought of
SMALLEST = -6  # so many times half of what a class needs may the cells of a choice have on average
BANDS = 16  # of cost
HALVINGS = 6  # of the range of a number, down to its narrowest band
MIX = 0x9E3779B97F4A7C15  # spreads the numbers of groups over 64 bits


class CellPeeling:
    """The cheapest cells of all choices of levels, one after the other."""

    name = "cell-peeling"
    paper = "Sfumato's own: greedy cover by the cells of the generalisation lattice"
    summary = "of all cells of all combinations of taxonomy levels the cheapest that holds, then those of what is left"
    use = "little loss where attributes are categories, at large k above all; slower than the lines"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Any requirement can be met: a cell is taken if its records do, or classes are joined."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.tested

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        weights = np.diff(records.starts)
        order = np.arange(len(weights), dtype=np.uint32)
        if len(order) > BLOCK:
            categorical = np.array([isinstance(domain, CategoricalDomain) for domain in records.domains])
            order = gain_order(records.codes, weights, categorical, records.costs, requirements.least_class)
        levels = levels_of(records.domains, records.costs)
        counting = Counting(records, requirements)
        tests, columns = counting.conjunction(), [records.sensitive[name].codes for name in requirements.attributes]
        asked = Asked(records.costs.layout, records.costs.units, requirements.least_class)
        rows, at = rows_along(records.rows, records.starts, order), np.repeat(order, weights[order])
        places = np.append(0, np.cumsum(weights[order]))

        def peeled(part: tuple[int, int]) -> NDArray[np.int64]:
            here = slice(places[part[0]], places[part[1]])
            count = here.stop - here.start
            values = np.stack([np.zeros(count, np.uint32), *(column[rows[here]] for column in columns)], axis=1)[:, 1:]
            whole = SearchPart(np.take(records.codes, at[here], axis=0).astype(np.int64), np.ascontiguousarray(values))
            tally = tally_for(count, tests)
            if columns:
                owner = peel(whole, np.ones(count, np.int64), levels, asked, tally)
            else:  # equal records stay together unless sensitive values tell them apart
                units = order[slice(*part)]
                once = SearchPart(np.take(records.codes, units, axis=0).astype(np.int64), whole.values[:0])
                owner = np.repeat(peel(once, weights[units], levels, asked, tally), weights[units])
            place_rest(whole, owner, int(owner.max()) + 1, asked, tally)
            progress.advance(count)
            return owner

        pieces = slices(len(order), -(-len(order) // max(round(len(order) / BLOCK), 1)) or 1)
        owners = in_threads(peeled, pieces)
        offsets = np.cumsum([0, *(int(owner.max()) + 1 for owner in owners)])
        owner = np.concatenate([owner + offset for owner, offset in zip(owners, offsets, strict=False)])
        line = np.argsort(owner, kind="stable")
        starts = np.append(np.flatnonzero(np.diff(owner[line], prepend=-1)), len(line))
        batch = ClassBatch(rows[line], starts, *boxes_of(records.codes, at[line], starts))
        yield join_failing(batch, records, requirements, lambda low, _: np.arange(len(low)))


class Levels(NamedTuple):
    """How attributes can be generalised, from level 0, single values.

    start: int64[d, most], where the codes of each level of an attribute begin in the others. depth: int64[d], its
    levels. group, cost: int64[...], for each code the first one of its group, and what the group costs.
    """

    start: NDArray[np.int64]
    depth: NDArray[np.int64]
    group: NDArray[np.int64]
    cost: NDArray[np.int64]


def levels_of(domains: Sequence[Domain], costs: Costs) -> Levels:
    """The levels of all attributes."""
    found = [_groups(domain) for domain in domains]
    start = np.zeros((len(domains), max(map(len, found))), np.int64)
    groups, prices, place = [], [], 0
    for q, levels in enumerate(found):
        for level, (first, last) in enumerate(levels):
            start[q, level] = place
            groups.append(first)
            prices.append(attribute_costs(costs.layout, costs.units, q, first, last))
            place += len(first)
    depth = np.array([len(levels) for levels in found])
    return Levels(start, depth, np.concatenate(groups), np.concatenate(prices))


def _groups(domain: Domain) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """First and last code of the group of each code, level by level, each with fewer groups than the one below."""
    codes, bounds = np.arange(domain.size), []
    if not isinstance(domain, CategoricalDomain):
        bounds.append((codes, codes))
        places = domain.coordinates()[: domain.size - domain.has_null]
        for halvings in range(HALVINGS, 0, -1):
            band = np.append(np.minimum(np.floor(places * 2**halvings), 2**halvings - 1), [np.inf] * domain.has_null)
            bounds.append((np.searchsorted(band, band), np.searchsorted(band, band, side="right") - 1))
    bounds += [(level[:, 0], level[:, 1]) for level in np.moveaxis(branches_of(domain), 1, 0)[::-1]]
    bounds.append((np.zeros_like(codes), np.full_like(codes, domain.size - 1)))
    levels: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    fewest = domain.size + 1
    for first, last in bounds:
        groups = len(np.unique(first))
        if groups < fewest:
            levels.append((first.astype(np.int64), last.astype(np.int64)))
            fewest = groups
    return levels


def choices_of(
    codes: NDArray[np.int64], weights: NDArray[np.int64], levels: Levels, least: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Choices of levels, the cheapest on average first, and the least and the most that a cell of each costs.

    choices: int64[c, d, 2]: attributes, those that cost most first, and the level of each. Of too many those are taken
    whose cells may have about ``least`` records, and the cheapest of each size: what is finer has too few, and what is
    coarser costs more than it has to.
    """
    total = int(weights.sum())
    kept, about = [], []
    for q, depth in enumerate(levels.depth):
        some, figures, fewest = [], [], len(codes) + 1
        for level, start in enumerate(levels.start[q, :depth]):
            cost = levels.cost[start + codes[:, q]]
            _, group = np.unique(levels.group[start + codes[:, q]], return_inverse=True)
            share = np.bincount(group, weights) / total
            if len(share) < fewest:
                some.append(level)
                entropy = -float(np.sum(share * np.log2(share)))
                figures.append((float(cost @ weights) / total, entropy, int(cost.min()), int(cost.max())))
                fewest = len(share)
        kept.append(np.array(some, np.int64))
        about.append(np.array(figures))
    while np.prod([float(len(some)) for some in kept]) > MOST_CHOICES:
        longest = max(range(len(kept)), key=lambda q: len(kept[q]))
        kept[longest], about[longest] = kept[longest][1:], about[longest][1:]
    places = np.indices([len(some) for some in kept]).reshape(len(kept), -1)
    figures_of = [figures[place] for figures, place in zip(about, places, strict=True)]
    mean, entropy, lowest, highest = np.sum(figures_of, axis=0).T
    if len(mean) > CHOICES:
        size = np.floor(np.log2(total) - entropy - np.log2(least)).clip(SMALLEST - 1)
        order = np.lexsort([mean, size])
        first = np.searchsorted(size[order], size[order])
        sizes = len(np.unique(size[size >= SMALLEST]))
        taken = order[(np.arange(len(order)) - first < CHOICES // sizes) & (size[order] >= SMALLEST)]
    else:
        taken = np.arange(len(mean))
    taken = taken[np.argsort(mean[taken], kind="stable")]
    chosen = np.stack([some[place[taken]] for some, place in zip(kept, places, strict=True)], axis=1)
    costs = np.stack([figures[place[taken], 0] for figures, place in zip(about, places, strict=True)], axis=1)
    attributes = np.argsort(-costs, axis=1, kind="stable")
    choices = np.stack([attributes, np.take_along_axis(chosen, attributes, axis=1)], axis=2)
    return choices, lowest[taken].astype(np.int64), highest[taken].astype(np.int64)


def peel(
    part: SearchPart, weights: NDArray[np.int64], levels: Levels, asked: Asked, tally: ShortfallCounts
) -> NDArray[np.int64]:
    """The class of each record of a part, NONE for those that are in no cell that holds."""
    choices, least, most = choices_of(part.codes, weights, levels, asked.least)
    limits = (int(most.max()) * (np.arange(1, BANDS + 1) / BANDS) ** 2).astype(np.int64)
    limits[-1] = int(most.max())
    n = len(weights)
    owner, room = np.full(n, NONE, np.int64), 1 << max(2 * n - 1, 15).bit_length()
    lines, words = np.empty((6, n + part.codes.shape[1]), np.int64), np.empty(n + room, np.uint64)
    slots, range_of = np.zeros((2, room), np.int64), np.stack([least, most], axis=1)
    take_cells(part, weights, levels, choices, range_of, limits, asked, tally, lines, slots, words, owner)
    return owner


@kernel
def take_cells(part, weights, levels, choices, range_of, limits, asked, tally, lines, slots, words, owner):
    """Make classes of cells. owner: int64[n], all NONE, filled for the records of the classes.

    choices: see choices_of. range_of: int64[c, 2], what a cell of each costs at least and at most. limits:
    int64[bands], the upper ends of the bands. lines: int64[6, n + d], slots: int64[2, r], all 0, r a power of 2, and
    words: uint64[n + r]: overwritten.
    """
    n = len(weights)
    free, cell, size, found, ends, line = lines[0], lines[1], lines[2], lines[3], lines[4], lines[5]
    key, table, stamp, number = words[:n], words[n:], slots[0], slots[1]
    for place in range(n):
        free[place] = place
    room, left, made, looks, above = len(stamp), n, 0, 0, np.int64(-1)
    for band in range(len(limits)):
        limit = limits[band]
        for choice in range(len(choices)):
            if range_of[choice, 0] > limit or range_of[choice, 1] <= above or left == 0:
                continue
            some = in_band(part.codes, free, left, levels, choices[choice], above, limit, ends, found, key)
            looks += 1
            cells = 0
            for place in range(some):
                slot = np.int64((key[place] ^ (key[place] >> np.uint64(32))) & np.uint64(room - 1))
                while stamp[slot] == looks and table[slot] != key[place]:
                    slot = (slot + 1) & (room - 1)
                if stamp[slot] != looks:
                    stamp[slot], table[slot], number[slot] = looks, key[place], cells
                    size[cells] = 0
                    cells += 1
                cell[place] = number[slot]
                size[cell[place]] += weights[found[place]]
            before = made
            if len(tally.counts) == 0:
                for one in range(cells):
                    size[one] = made if size[one] >= asked.least else NONE  # from here on its class
                    made += size[one] != NONE
            else:
                made = test_cells(part, found, cell, some, cells, size, ends, line, made, asked, tally)
            if made > before:
                for place in range(some):
                    owner[found[place]] = size[cell[place]]
                stay = 0
                for place in range(left):
                    if owner[free[place]] == NONE:
                        free[stay] = free[place]
                        stay += 1
                left = stay
        above = limit


@kernel
def in_band(codes, free, left, levels, choice, above, limit, start, found, key):
    """The free records whose cell costs more than ``above`` and no more than ``limit``, and its key: how many."""
    some, d = 0, codes.shape[1]
    for i in range(d):
        start[i] = levels.start[choice[i, 0], choice[i, 1]]
    for waiting in range(left):
        record = free[waiting]
        total, mixed = np.int64(0), np.uint64(0)
        for i in range(d):
            place = start[i] + codes[record, choice[i, 0]]
            total += levels.cost[place]
            if total > limit:
                break
            # Were two keys equal by chance, their cells would be one class: dearer, and as safe as any.
            mixed = (mixed ^ np.uint64(levels.group[place])) * np.uint64(MIX)
            mixed ^= mixed >> np.uint64(29)
        if above < total <= limit:
            found[some], key[some] = record, mixed
            some += 1
    return some


@kernel
def test_cells(part, found, cell, some, cells, size, ends, line, made, asked, tally):
    """Number the cells that meet the requirements, on from ``made``: how many classes there are then.

    size: int64[...], the records of each cell, then its class or NONE. ends, line: overwritten.
    """
    ends[0] = 0
    for one in range(cells):
        ends[one + 1] = ends[one] + size[one]
    for place in range(some - 1, -1, -1):
        ends[cell[place] + 1] -= 1
        line[ends[cell[place] + 1]] = found[place]
    for one in range(cells):
        count, size[one] = size[one], NONE
        if count >= asked.least:
            for place in range(count):
                tally.rows[place] = line[ends[one + 1] + place]
            if tally.lack(part.values, tally.rows, count, asked.least, tally.whole, tally.real, tally.counts) == 0:
                size[one] = made
                made += 1
    return made


@kernel
def place_rest(part, owner, count, asked, tally):
    """Put each row that is in no class into the one where it adds least; those that none holds with are a class.

    owner: int64[n], classes 0..count-1 or NONE, changed.
    """
    codes, d = part.codes, part.codes.shape[1]
    size, box = np.zeros(count, np.int64), np.empty((count, 2, d), np.int64)
    for row in range(len(owner)):
        if owner[row] != NONE:
            take_in(size, box, codes, row, owner[row])
    for row in range(len(owner)):
        if owner[row] != NONE:
            continue
        least, to = np.int64(INFINITE), count
        for label in range(count):
            added = np.int64(0)
            for q in range(d):
                low, high = box[label, 0, q], box[label, 1, q]
                now = attribute_cost(asked.layout, asked.units, q, low, high)
                then = attribute_cost(asked.layout, asked.units, q, min(low, codes[row, q]), max(high, codes[row, q]))
                added += then * (size[label] + 1) - now * size[label]
            if added < least and (len(tally.counts) == 0 or holds_with(part, owner, label, row, asked, tally)):
                least, to = added, label
        owner[row] = to
        if to < count:
            take_in(size, box, codes, row, to)


@kernel
def take_in(size, box, codes, row, label):
    """Make the box of a class hold a row more."""
    for q in range(codes.shape[1]):
        code = codes[row, q]
        box[label, 0, q] = code if size[label] == 0 else min(box[label, 0, q], code)
        box[label, 1, q] = code if size[label] == 0 else max(box[label, 1, q], code)
    size[label] += 1


@kernel
def holds_with(part, owner, label, row, asked, tally):
    """Whether a class meets the requirements with a row more."""
    tally.rows[0] = row
    count = 1
    for other in range(len(owner)):
        if owner[other] == label:
            tally.rows[count] = other
            count += 1
    return tally.lack(part.values, tally.rows, count, asked.least, tally.whole, tally.real, tally.counts) == 0
