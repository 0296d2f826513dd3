"""What every split rule of a region tree needs: the values of an attribute in a region, and tests of its parts.

A rule looks at one attribute through its frequency set (LeFevre 2008, section 5.1): the codes that occur in the region,
ascending, and how many records have each. With sensitive requirements the units are also put in line by their code,
so that every part of the region is a run of the line. Only how many rows stand for each combination of a code and the
values beside it decides what a rule finds, so units may be those combinations, counted beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE as NONE  # noqa: PLC0414 - engines.disk takes it from here
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import Costs
from sfumato.methods.trees.sampled_tests import SampledTests, part_holds
from sfumato.requirements.conjunction import Conjunction
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain
from sfumato.tables.coding.sorting import sort_numbers

BEYOND = 1 << 40  # more than any code
# Codes are counted in a table where it is not much larger than the region; else its records are sorted.
FEW_CODES, CODES_A_UNIT = 64, 4
WEIGHT, ORIGIN, VALUES = 0, 1, 2  # the columns of Units.data


class Units(NamedTuple):
    """What is divided: distinct records, or single rows where records of equal codes may have to be told apart.

    codes: uint[u, d], C-order. data: uint32[u, 2 + a], C-order: the rows that each stands for, the record or row it is,
    and its sensitive values, null being ``distinct``.
    """

    codes: Codes
    data: NDArray[np.uint32]


class SplitData(NamedTuple):
    """What is the same in every region.

    layout, costs: see losses.costs.Costs. branches: int64[..., 2]; for every code of an attribute the first and last
    code of the branches of the domain that it is on, from the widest to the code itself. levels: int64[d, 2], where the
    branches of an attribute begin, and how many there are for each code. ordered: bool[d], are its values numbers?
    least: int64[...], the fewest records that a part of a split can have, by the number of its parts, 1 being the
    first; the last is also for all larger numbers. divisible: the fewest records that a region must have to be divided.
    """

    layout: NDArray[np.int64]
    costs: NDArray[np.int64]
    branches: NDArray[np.int64]
    levels: NDArray[np.int64]
    ordered: NDArray[np.bool_]
    least: NDArray[np.int64]
    divisible: int


class SplitBuffers(NamedTuple):
    """Working space.

    The frequency set of one attribute: code: int64, the codes; upto: int64, the records up to each of them, from 0 on.
    The parts of a split: first, last: int64, the codes of each, which may reach beyond the region; ends: int64, the
    records up to each. tally: int64, all 0.
    """

    code: NDArray[np.int64]
    upto: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    ends: NDArray[np.int64]
    tally: NDArray[np.int64]


class Secrets(NamedTuple):
    """What sensitive requirements need; kernels are given None instead where there are none.

    tests: all requirements. line: uint32[u], the units of a frequency set by code. The rest counts the values of a
    class, see conjunction.class_holds; all are 0 between tests.
    """

    tests: Conjunction | SampledTests
    line: NDArray[np.uint32]
    counts: NDArray[np.int64]
    known: NDArray[np.int64]
    largest: NDArray[np.int64]
    different: NDArray[np.int64]


def ground_of(domains: Sequence[Domain], costs: Costs, least: int) -> SplitData:
    """What the kernels know of the attributes."""
    parts = [branches_of(domain) for domain in domains]
    sizes = [part.shape[0] * part.shape[1] for part in parts]
    return SplitData(
        layout=costs.layout,
        costs=costs.units,
        branches=np.concatenate([part.reshape(-1, 2) for part in parts]),
        levels=np.stack([np.cumsum([0, *sizes])[:-1], [part.shape[1] for part in parts]], axis=1),
        ordered=np.array([not isinstance(domain, CategoricalDomain) for domain in domains]),
        least=np.array([least], np.int64),
        divisible=2 * least,
    )


def branches_of(domain: Domain) -> NDArray[np.int64]:
    """int64[codes, levels, 2]: null apart from the values; then, of categories, the nodes below the root."""
    codes = domain.size - domain.has_null
    levels = []
    if domain.has_null:
        levels.append(np.tile(np.array([0, codes - 1], np.int64), (codes, 1)))
    if isinstance(domain, CategoricalDomain):
        taxonomy = domain.taxonomy
        paths = taxonomy.ancestors().astype(np.int64)
        depth = np.count_nonzero(paths > 0, axis=1)
        for level in range(1, taxonomy.levels):
            # From the root down, where paths go up; a leaf that is nearer to the root stays what it is.
            nodes = paths[np.arange(codes), np.maximum(depth - level, 0)]
            levels.append(np.stack([taxonomy.first[nodes], taxonomy.last[nodes]], axis=1).astype(np.int64))
    found = np.full((domain.size, len(levels), 2), codes, np.int64)
    for level, branches in enumerate(levels):
        found[:codes, level] = branches
    return found


def room_for(units: int, largest_domain: int) -> SplitBuffers:
    """Working space for regions of at most so many units."""
    code, upto, first, last, ends = np.empty((5, min(units, largest_domain) + 1), np.int64)
    tally = np.zeros(min(largest_domain, FEW_CODES + CODES_A_UNIT * units), np.int64)
    return SplitBuffers(code, upto, first, last, ends, tally)


def secrets_for(units: int, tests: Conjunction | SampledTests) -> Secrets:
    """The same for sensitive requirements."""
    counts = np.zeros((tests.attributes, int(tests.distinct.max()) + 1), np.int64)
    known, largest, different = np.zeros((3, tests.attributes), np.int64)
    return Secrets(tests, np.empty(units, np.uint32), counts, known, largest, different)


@kernel
def frequency_set(units, attribute, begin, end, low, high, room, secrets):
    """Fill ``room`` with the frequency set of the units begin..end-1, whose codes are low..high: how many codes."""
    codes, data = units
    code, upto, tally = room.code, room.upto, room.tally
    span, groups = high - low + 1, 0
    upto[0] = 0
    if span <= FEW_CODES + CODES_A_UNIT * (end - begin):
        for unit in range(begin, end):
            tally[np.int64(codes[unit, attribute]) - low] += data[unit, WEIGHT]
        for step in range(span):
            if tally[step] > 0:
                code[groups] = low + step
                upto[groups + 1] = upto[groups] + tally[step]
                tally[step] = 0
                groups += 1
        if secrets is not None:
            for unit in range(begin, end):
                tally[np.int64(codes[unit, attribute]) - low] += 1
            first = np.int64(0)
            for step in range(span):  # where its units begin in line
                first, tally[step] = first + tally[step], first
            for unit in range(begin, end):
                step = np.int64(codes[unit, attribute]) - low
                secrets.line[tally[step]] = unit
                tally[step] += 1
            for step in range(span):
                tally[step] = 0
        return groups
    packed = np.empty(end - begin, np.uint64)
    for place in range(end - begin):
        packed[place] = np.uint64(codes[begin + place, attribute]) << np.uint64(32) | np.uint64(place)
    sort_numbers(packed)
    for place in range(end - begin):
        unit = begin + np.int64(packed[place] & np.uint64(0xFFFFFFFF))
        here = np.int64(packed[place] >> np.uint64(32))
        if place == 0 or code[groups - 1] != here:
            code[groups] = here
            upto[groups + 1] = upto[groups]
            groups += 1
        upto[groups] += data[unit, WEIGHT]
        if secrets is not None:
            secrets.line[place] = unit
    return groups


@kernel
def natural_parts(attribute, groups, ground, room):
    """Divide the codes of a frequency set as the domain branches; branches without records are left out.

    Fills the parts of ``room``; how many there are, 0 where the domain does not branch.
    """
    code, upto, first, last, ends, _ = room
    branches = ground.branches[ground.levels[attribute, 0] :]
    levels, level, parts = ground.levels[attribute, 1], 0, 0
    while level < levels and branches[code[0] * levels + level, 1] >= code[groups - 1]:
        level += 1
    if level < levels:
        for group in range(groups):
            if parts == 0 or code[group] > last[parts - 1]:
                place = code[group] * levels + level
                first[parts], last[parts] = branches[place, 0], branches[place, 1]
                parts += 1
            ends[parts - 1] = upto[group + 1]
    return parts


@kernel
def least_of(parts, ground):
    """The fewest records of each part of a split into so many."""
    return ground.least[min(parts, len(ground.least)) - 1]


@kernel
def add_unit(unit, data, secrets):
    """Count the values of a unit: the rows that it stands for."""
    tests, _, counts, known, largest, different = secrets
    weight = np.int64(data[unit, WEIGHT])
    for a in range(len(known)):
        value = data[unit, VALUES + a]
        if value < tests.distinct[a]:
            known[a] += weight
            different[a] += counts[a, value] == 0
            counts[a, value] += weight
            largest[a] = max(largest[a], counts[a, value])
    return weight


@kernel
def forget(first, last, data, secrets):
    """Set the counts of the units from first to last - 1 of the line back to 0."""
    for place in range(first, last):
        for a in range(len(secrets.known)):
            secrets.counts[a, data[secrets.line[place], VALUES + a]] = 0
    for a in range(len(secrets.known)):
        secrets.known[a], secrets.largest[a], secrets.different[a] = 0, 0, 0


@kernel
def parts_hold(units, parts, ground, room, secrets):
    """Whether every part of ``room`` meets the requirements."""
    ends, least = room.ends, least_of(parts, ground)
    for part in range(parts):
        if ends[part] - (ends[part - 1] if part > 0 else 0) < least:
            return False
    if secrets is not None:
        data = units.data
        tests, line, counts, known, largest, different = secrets
        place, counted = 0, np.int64(0)
        for part in range(parts):
            first, before = place, counted
            while counted < ends[part]:
                counted += add_unit(line[place], data, secrets)
                place += 1
            holds = part_holds(tests, parts, counted - before, counts, known, largest, different)
            forget(first, place, data, secrets)
            if not holds:
                return False
    return True


@kernel
def allowed_thresholds(units, groups, ground, room, secrets):
    """After which codes of the frequency set both sides meet the requirements: bool[groups - 1]."""
    data, upto = units.data, room.upto
    tests, line, counts, known, largest, different = secrets
    total, least = upto[groups], least_of(2, ground)
    allowed = np.ones(groups - 1, np.bool_)
    count, counted = 0, np.int64(0)
    while counted < total:
        counted += data[line[count], WEIGHT]
        count += 1
    for side in range(2):  # the classes from the first code up, then those from the last code down
        place, counted = 0, np.int64(0)
        for step in range(groups - 1):
            group = step if side == 0 else groups - 1 - step
            reached = upto[group + 1] if side == 0 else total - upto[group]
            while counted < reached:
                counted += add_unit(line[place if side == 0 else count - 1 - place], data, secrets)
                place += 1
            threshold = group - side
            if allowed[threshold]:
                allowed[threshold] = min(reached, total - reached) >= least and part_holds(
                    tests, 2, reached, counts, known, largest, different
                )
        forget(0, count, data, secrets)
    return allowed


@kernel
def divide(units, spare, attribute, begin, end, parts, share, room):
    """Put the units begin..end-1 in the order of their parts, and otherwise leave it as it is.

    The parts are those of ``room``; of the units with the last code of the first part only the first ``share`` belong
    to it, and the others to the second. Then ``room.ends`` is where the units of each part end, and ``room.upto`` the
    rows they stand for. spare: like units; its range is overwritten.
    """
    codes, data = units
    spare_codes, spare_data = spare
    last, ends, weights = room.last, room.ends, room.upto
    for part in range(parts):
        ends[part], weights[part] = 0, 0
    for moving in range(2):  # first count, then move
        left = share
        for unit in range(begin, end):
            code = np.int64(codes[unit, attribute])
            low, part = 0, parts - 1
            while low < part:  # the first part whose last code is not below
                middle = (low + part) // 2
                if last[middle] < code:
                    low = middle + 1
                else:
                    part = middle
            if code == last[0]:
                part = 0 if left > 0 else 1
                left -= 1
            if moving == 1:
                for q in range(codes.shape[1]):
                    spare_codes[ends[part], q] = codes[unit, q]
                for a in range(data.shape[1]):
                    spare_data[ends[part], a] = data[unit, a]
            else:
                weights[part] += data[unit, WEIGHT]
            ends[part] += 1
        if moving == 0:
            place = begin
            for part in range(parts):
                ends[part], place = place, place + ends[part]
    for unit in range(begin, end):
        for q in range(codes.shape[1]):
            codes[unit, q] = spare_codes[unit, q]
        for a in range(data.shape[1]):
            data[unit, a] = spare_data[unit, a]
