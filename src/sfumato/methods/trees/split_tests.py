"""The basis of every split rule of a region tree: the values of an attribute in a region, and tests of its parts.

A rule sees one attribute through its frequency set (LeFevre 2008, section 5.1): the codes that occur in the region,
ascending, and how many records have each. With sensitive requirements the units are also sorted by their code, so that
every part of the region is a run of the sorted units. The result of a rule depends only on the number of rows with each
combination of a code and the values beside it, so units may be those combinations, counted beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import inlined_kernel, inner_kernel
from sfumato.losses.exact_costs import exact_widths
from sfumato.methods.trees.sampled_tests import SampledTests, part_holds
from sfumato.requirements.conjunction import Conjunction
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.sorting import sort_numbers

# Codes are counted in a table if that is not much larger than the region; otherwise its records are sorted.
FEW_CODES, CODES_A_UNIT = 64, 4
WEIGHT, ORIGIN, VALUES = 0, 1, 2  # the columns of Units.data


class Units(NamedTuple):
    """The items that are divided: distinct records, or single rows where records of equal codes may be separated.

    codes: uint[u, d], C-order. data: uint32[u, 2 + a], C-order: the number of rows of each unit, its record or row, and
    its sensitive values, ``distinct`` for null.
    """

    codes: Codes
    data: NDArray[np.uint32]


class SplitData(NamedTuple):
    """The data that all regions share.

    layout, widths, shares: the width of boxes, see losses.exact_costs.exact_widths. branches: int64[..., 2]; for every
    code of an attribute the first and last code of the branches of the domain that it is on, from the widest to the
    code itself. levels: int64[d, 2], where the branches of an attribute begin, and how many there are for each code.
    ordered: bool[d], whether its values are numbers. least: int64[...], the fewest records of a part of a split, by the
    number of parts from 1; the last entry is for all larger numbers too. divisible: the fewest records of a region that
    can be divided.
    """

    layout: NDArray[np.int64]
    widths: NDArray[np.int64]
    shares: NDArray[np.float64]
    branches: NDArray[np.int64]
    levels: NDArray[np.int64]
    ordered: NDArray[np.bool_]
    least: NDArray[np.int64]
    divisible: int


class SplitBuffers(NamedTuple):
    """Working space of a split rule.

    The frequency set of one attribute: code: int64, the codes; upto: int64, the number of records up to each of them,
    beginning with 0. The parts of a split: first, last: int64, the codes of each, which may reach beyond the region;
    ends: int64, the number of records up to each. tally: int64, all 0.
    """

    code: NDArray[np.int64]
    upto: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    ends: NDArray[np.int64]
    tally: NDArray[np.int64]


class SensitiveCounts(NamedTuple):
    """Working space of the tests of sensitive requirements; kernels take None where there are none.

    tests: all requirements. line: uint32[u], the units of a frequency set in the order of their codes. The other arrays
    count the values of a class, see conjunction.class_holds; all are 0 between tests.
    """

    tests: Conjunction | SampledTests
    line: NDArray[np.uint32]
    counts: NDArray[np.int64]
    known: NDArray[np.int64]
    largest: NDArray[np.int64]
    different: NDArray[np.int64]


def ground_of(domains: Sequence[Domain], shares: NDArray[np.float64], least: int) -> SplitData:
    """Return the shared data of the attributes. shares: their weights; least: the fewest records of a class."""
    widths = exact_widths(domains, shares)
    parts = [branches_of(domain) for domain in domains]
    sizes = [part.shape[0] * part.shape[1] for part in parts]
    return SplitData(
        layout=widths.layout,
        widths=widths.units,
        shares=shares,
        branches=np.concatenate([part.reshape(-1, 2) for part in parts]),
        levels=np.stack([np.cumsum([0, *sizes])[:-1], [part.shape[1] for part in parts]], axis=1),
        ordered=np.array([domain.tree is None for domain in domains]),
        least=np.array([least], np.int64),
        divisible=2 * least,
    )


def branches_of(domain: Domain) -> NDArray[np.int64]:
    """Return the branches of a domain, int64[codes, levels, 2]: null and the values, then the nodes below the root."""
    codes = domain.size - domain.has_null
    levels = []
    if domain.has_null:
        levels.append(np.tile(np.array([0, codes - 1], np.int64), (codes, 1)))
    tree = domain.tree
    if tree is not None:
        paths = tree.ancestors().astype(np.int64)
        depth = np.count_nonzero(paths > 0, axis=1)
        for level in range(1, tree.levels):
            # Paths go up; we go from the root down. A leaf near the root stays the same on the levels below.
            nodes = paths[np.arange(codes), np.maximum(depth - level, 0)]
            levels.append(np.stack([tree.first[nodes], tree.last[nodes]], axis=1).astype(np.int64))
    result = np.full((domain.size, len(levels), 2), codes, np.int64)
    for level, branches in enumerate(levels):
        result[:codes, level] = branches
    return result


def split_buffers(units: int, largest_domain: int) -> SplitBuffers:
    """Return working space for regions of at most ``units`` units."""
    code, upto, first, last, ends = np.empty((5, min(units, largest_domain) + 1), np.int64)
    tally = np.zeros(min(largest_domain, FEW_CODES + CODES_A_UNIT * units), np.int64)
    return SplitBuffers(code, upto, first, last, ends, tally)


def sensitive_counts(units: int, tests: Conjunction | SampledTests) -> SensitiveCounts:
    """Return working space for the tests of regions of at most ``units`` units."""
    counts = np.zeros((tests.attributes, int(tests.distinct.max()) + 1), np.int64)
    known, largest, different = np.zeros((3, tests.attributes), np.int64)
    return SensitiveCounts(tests, np.empty(units, np.uint32), counts, known, largest, different)


@inner_kernel
def frequency_set(units, attribute, begin, end, low, high, buffers, sensitive):
    """Fill ``buffers`` with the frequency set of the units begin..end-1, with codes low..high; return its length."""
    codes, data = units
    code, upto, tally = buffers.code, buffers.upto, buffers.tally
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
        if sensitive is not None:
            for unit in range(begin, end):
                tally[np.int64(codes[unit, attribute]) - low] += 1
            first = np.int64(0)
            for step in range(span):  # where the units of a code begin in line
                first, tally[step] = first + tally[step], first
            for unit in range(begin, end):
                step = np.int64(codes[unit, attribute]) - low
                sensitive.line[tally[step]] = unit
                tally[step] += 1
            for step in range(span):
                tally[step] = 0
        return groups
    packed = np.empty(end - begin, np.uint64)
    for i in range(end - begin):
        packed[i] = np.uint64(codes[begin + i, attribute]) << np.uint64(32) | np.uint64(i)
    sort_numbers(packed)
    for i in range(end - begin):
        unit = begin + np.int64(packed[i] & np.uint64(0xFFFFFFFF))
        unit_code = np.int64(packed[i] >> np.uint64(32))
        if i == 0 or code[groups - 1] != unit_code:
            code[groups] = unit_code
            upto[groups + 1] = upto[groups]
            groups += 1
        upto[groups] += data[unit, WEIGHT]
        if sensitive is not None:
            sensitive.line[i] = unit
    return groups


@inner_kernel
def natural_parts(attribute, groups, shared, buffers):
    """Divide the codes of a frequency set along the branches of the domain, without branches that have no records.

    Fills the parts of ``buffers`` and returns their number, 0 where the domain does not branch.
    """
    code, upto, first, last, ends, _ = buffers
    branches = shared.branches[shared.levels[attribute, 0] :]
    levels, level, parts = shared.levels[attribute, 1], 0, 0
    while level < levels and branches[code[0] * levels + level, 1] >= code[groups - 1]:
        level += 1
    if level < levels:
        for group in range(groups):
            if parts == 0 or code[group] > last[parts - 1]:
                entry = code[group] * levels + level
                first[parts], last[parts] = branches[entry, 0], branches[entry, 1]
                parts += 1
            ends[parts - 1] = upto[group + 1]
    return parts


@inner_kernel
def least_of(parts, shared):
    """Return the fewest records of each part of a split into ``parts`` parts."""
    return shared.least[min(parts, len(shared.least)) - 1]


@inner_kernel
def add_unit(unit, data, sensitive):
    """Count the values of a unit; return its number of rows."""
    tests, _, counts, known, largest, different = sensitive
    weight = np.int64(data[unit, WEIGHT])
    for a in range(len(known)):
        value = data[unit, VALUES + a]
        if value < tests.distinct[a]:
            known[a] += weight
            different[a] += counts[a, value] == 0
            counts[a, value] += weight
            largest[a] = max(largest[a], counts[a, value])
    return weight


@inner_kernel
def clear_counts(first, last, data, sensitive):
    """Reset the counts of the units from first to last - 1 of the line to 0."""
    for i in range(first, last):
        for a in range(len(sensitive.known)):
            sensitive.counts[a, data[sensitive.line[i], VALUES + a]] = 0
    for a in range(len(sensitive.known)):
        sensitive.known[a], sensitive.largest[a], sensitive.different[a] = 0, 0, 0


@inner_kernel
def parts_hold(units, parts, shared, buffers, sensitive):
    """Return whether every part in ``buffers`` meets the requirements."""
    ends, least = buffers.ends, least_of(parts, shared)
    for part in range(parts):
        if ends[part] - (ends[part - 1] if part > 0 else 0) < least:
            return False
    if sensitive is not None:
        data = units.data
        tests, line, counts, known, largest, different = sensitive
        i, counted = 0, np.int64(0)
        for part in range(parts):
            first, before = i, counted
            while counted < ends[part]:
                counted += add_unit(line[i], data, sensitive)
                i += 1
            holds = part_holds(tests, parts, counted - before, counts, known, largest, different)
            clear_counts(first, i, data, sensitive)
            if not holds:
                return False
    return True


@inner_kernel
def allowed_thresholds(units, groups, shared, buffers, sensitive):
    """Return after which codes of the frequency set both sides meet the requirements: bool[groups - 1]."""
    data, upto = units.data, buffers.upto
    total, least = upto[groups], least_of(np.int64(2), shared)
    allowed = np.empty(groups - 1, np.bool_)
    for group in range(groups - 1):
        allowed[group] = min(upto[group + 1], total - upto[group + 1]) >= least
    if sensitive is None:
        return allowed
    tests, line, counts, known, largest, different = sensitive
    count, counted = 0, np.int64(0)
    while counted < total:
        counted += data[line[count], WEIGHT]
        count += 1
    for side in range(2):  # the classes from the first code up, then those from the last code down
        i, counted = 0, np.int64(0)
        for step in range(groups - 1):
            group = step if side == 0 else groups - 1 - step
            reached = upto[group + 1] if side == 0 else total - upto[group]
            while counted < reached:
                counted += add_unit(line[i if side == 0 else count - 1 - i], data, sensitive)
                i += 1
            threshold = group - side
            if allowed[threshold]:
                allowed[threshold] = part_holds(tests, 2, reached, counts, known, largest, different)
        clear_counts(np.int64(0), count, data, sensitive)
    return allowed


@inlined_kernel
def divide(units, spare, attribute, begin, end, parts, share, buffers):
    """Put the units begin..end-1 in the order of their parts, stably.

    The parts are those in ``buffers``; of the units with the last code of the first part only the first ``share``
    belong to it, the others to the second. Afterwards ``buffers.ends`` has where the units of each part end, and
    ``buffers.upto`` their numbers of rows. spare: like units; its range is overwritten.
    """
    codes, data = units
    spare_codes, spare_data = spare
    last, ends, weights = buffers.last, buffers.ends, buffers.upto
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
            position = begin
            for part in range(parts):
                ends[part], position = position, position + ends[part]
    for unit in range(begin, end):
        for q in range(codes.shape[1]):
            codes[unit, q] = spare_codes[unit, q]
        for a in range(data.shape[1]):
            data[unit, a] = spare_data[unit, a]
