"""Single-dimensional partitioning, the baseline of Wang, Xu and Sun 2011 (sections I and IV.B; Fig. 6, 8 and 9).

The domain of each attribute is cut into intervals, everywhere alike: all records with a value between two cuts share
the interval, whatever their other values (global recoding, as in Iyengar 2002 and Bayardo and Agrawal 2005, which the
paper names). The classes are the cells, the combinations of intervals that hold records. One attribute after the other
is cut, and a cut is allowable when every cell that it goes through is left with two that meet every requirement. So the
attribute that comes first takes nearly all cuts when data are sparse, as the paper says of this method.

Time O(N d log N) for N distinct records; requirements on the distribution of m sensitive values take m times as long.

Differs from the paper, which says of the baseline only that sets are partitioned continuously in single dimensions, and
that it easily falls on one attribute. Taken from the paper's own method: the order of the attributes, by information
dependency (eq. 4 to 6, over the whole table), and the cut, at the median (eq. 7). Decided here: an interval is cut at
the allowable place nearest to its median, the lower of two, and then its parts, until there is none; then comes the
next attribute. Cutting all attributes in turns gives fewer classes (17 instead of 24 of 100 points at k = 3 on a
lattice of 50 x 50). The paper reports 24 of points that it does not give; on coarser lattices there are fewer here too,
18 on one of 20 x 20. Categories are cut in the order of their leaves, null comes after all values, and a cell shows the
smallest box around its records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.methods.class_counting import Counting
from sfumato.methods.line.line import expand
from sfumato.methods.line.optimal_cut import BATCH_CLASSES, boxes
from sfumato.methods.method import ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.requirements.conjunction import Conjunction, class_holds
from sfumato.tables.coding.domains import Codes

WAITING = 128  # more intervals than can wait at a time: two for each bit of the number of records


@dataclass(frozen=True, kw_only=True)
class SingleDimensional:
    """Cut the domain of one attribute after the other."""

    name = "single-dimensional"
    paper = "Wang, Xu, Sun: Multi-dimensional k-anonymity based on mapping for protecting privacy, 2011 (baseline)"
    summary = "the domain of one attribute after the other cut into intervals, alike everywhere; time O(N d log N)"
    use = "to compare with, or when every release must cut a domain in the same places: much loss"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Any requirement can be met: cuts heed it, or cells are joined."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.tested

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        ground = _ground(records, requirements)
        cell = np.zeros(len(records.codes), np.int64)
        order = by_dependency(records.codes, ground.weights)
        for done, attribute in enumerate(order):
            codes = records.codes[:, attribute].astype(np.uint32)
            line = np.argsort(codes, kind="stable").astype(np.uint32)
            begins = cut_domain(ground, codes[line], line, cell[line])
            interval = np.empty_like(cell)
            interval[line] = np.cumsum(begins) - 1
            # In the order of the cells so far and then of the intervals, so that neighbours lie near each other.
            _, cell = np.unique(cell * np.count_nonzero(begins) + interval, return_inverse=True)
            progress.advance(records.count * (done + 1) // len(order) - records.count * done // len(order))
        line = np.argsort(cell, kind="stable").astype(np.uint32)
        cuts = np.append(np.searchsorted(cell[line], np.arange(cell.max() + 1)), len(line))
        rows = np.empty_like(records.rows)
        expand(records.rows, records.starts, line, rows)
        starts = np.append(0, np.cumsum(ground.weights[line]))[cuts]
        for first in range(0, len(cuts) - 1, BATCH_CLASSES):
            part = slice(first, first + BATCH_CLASSES + 1)
            low, high = boxes(records.codes, line, cuts[part])
            these = starts[part]
            yield ClassBatch(rows[these[0] : these[-1]], these - these[0], low, high)


def by_dependency(codes: Codes, weights: NDArray[np.int64]) -> list[int]:
    """The attributes in ascending order of their information dependency (Wang 2011, eq. 4 to 6)."""
    records = int(weights.sum())
    means, deviations = [], []
    for column in codes.T:
        counts = np.bincount(column, weights)
        values = int(np.count_nonzero(counts))  # Pro; the counts are PPA
        squares = sum(count * count for count in counts.astype(np.int64).tolist())
        means.append(records / values)
        # From whole numbers, so that equal counts in another order are a tie.
        about = squares * values - records * records
        deviations.append((about / (values * (values - 1))) ** 0.5 if values > 1 else 0.0)
    weight = max(means + deviations)  # w1; w2 is its inverse. DEP is this, divided by w1 and k.
    dependency = [weight * weight * mean + deviation for mean, deviation in zip(means, deviations, strict=True)]
    return sorted(range(len(dependency)), key=lambda attribute: (dependency[attribute], attribute))


class CutData(NamedTuple):
    """What does not change while domains are cut.

    weights: int64[m], the records of each distinct one; their values of the sensitive attributes are
    values[starts[i]:starts[i + 1]], uint32[n, a]. tests: what a cell must meet.
    """

    weights: NDArray[np.int64]
    starts: NDArray[np.int64]
    values: NDArray[np.uint32]
    tests: Conjunction


def _ground(records: Records, requirements: Requirements) -> CutData:
    if not requirements.tested:
        # Whatever else is asked, by joining cells; k persons are k records at least.
        sizes = tuple(part for part in requirements.parts if part.attribute is None)
        requirements = replace(requirements, parts=sizes, person=None, joint=())
    columns = [records.sensitive[name].codes[records.rows] for name in requirements.attributes]
    values = np.stack(columns, axis=1) if columns else np.empty((records.count, 0), np.uint32)
    tests = Counting(records, requirements).conjunction()
    return CutData(np.diff(records.starts), records.starts, values, tests)


class CutCounters(NamedTuple):
    """How often the records that were added have each value, by sensitive attribute: see ``class_holds``."""

    times: NDArray[np.int64]
    known: NDArray[np.int64]
    largest: NDArray[np.int64]
    different: NDArray[np.int64]


@kernel
def cut_domain(ground, codes, line, cell):
    """Where the intervals of an attribute begin: bool[m].

    codes: uint32[m], ascending; line: uint32[m], the distinct record with the code; cell: int64[m], its cell so far.
    """
    m = len(codes)
    begins = np.zeros(m, np.bool_)
    forbidden = np.zeros(m + 1, np.int64)
    place, grouped = np.zeros(m, np.int64), np.empty(m, np.int64)
    waiting = np.empty((WAITING, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = 0, m
    left = 1
    while left > 0:
        left -= 1
        begin, end = waiting[left, 0], waiting[left, 1]
        middle = find_cut(ground, codes, line, cell, begin, end, forbidden, place, grouped)
        if middle == NONE:
            begins[begin] = True
            continue
        # The smaller part is next, so that few wait.
        smaller = left + 1 if middle - begin < end - middle else left
        waiting[smaller, 0], waiting[smaller, 1] = begin, middle
        waiting[2 * left + 1 - smaller, 0], waiting[2 * left + 1 - smaller, 1] = middle, end
        left += 2
    return begins


@kernel
def find_cut(ground, codes, line, cell, begin, end, forbidden, place, grouped):
    """The first place of the upper part of the interval begin..end-1, NONE where no cut is allowable.

    forbidden: int64[m + 1], place: int64[m], by cell, 0 before and after; grouped: int64[m], working space.
    """
    if codes[begin] == codes[end - 1]:
        return NONE
    forbid_cuts(ground, codes, line, cell, begin, end, forbidden, place, grouped)
    total = np.int64(0)
    for at in range(begin, end):
        total += ground.weights[line[at]]
    best, best_away = np.int64(NONE), total + 1
    lower, against = np.int64(0), np.int64(0)
    for at in range(begin, end):
        against += forbidden[at]
        if at > begin and against == 0 and codes[at] != codes[at - 1] and abs(2 * lower - total) < best_away:
            best, best_away = np.int64(at), abs(2 * lower - total)
        lower += ground.weights[line[at]]
        forbidden[at] = 0
    forbidden[end] = 0
    return best


@kernel
def forbid_cuts(ground, codes, line, cell, begin, end, forbidden, place, grouped):
    """Count in ``forbidden``, as differences from place to place, the cells that a cut would leave with too little."""
    for at in range(begin, end):
        place[cell[at]] += 1
    total = np.int64(0)
    for at in range(begin, end):
        here = place[cell[at]]
        if here > 0:  # the first of its cell. From now on there stands -1 less where the next of it goes
            place[cell[at]] = -1 - total
            total += here
        grouped[-1 - place[cell[at]]] = at
        place[cell[at]] -= 1
    a, width = ground.values.shape[1], ground.tests.reference.shape[1]
    counters = CutCounters(
        np.zeros((a, width), np.int64), np.zeros(a, np.int64), np.zeros(a, np.int64), np.zeros(a, np.int64)
    )
    first, upward, downward = np.int64(0), np.int64(1), np.int64(-1)  # constants would have the callee compiled twice
    while first < total:
        last = first
        while last + 1 < total and cell[grouped[last + 1]] == cell[grouped[first]]:
            last += 1
        sweep(ground, codes, line, grouped, first, last, upward, counters, forbidden)
        sweep(ground, codes, line, grouped, last, first, downward, counters, forbidden)
        place[cell[grouped[first]]] = 0
        first = last + 1


@kernel
def sweep(ground, codes, line, grouped, first, last, step, counters, forbidden):
    """Add the records of a cell one by one, and forbid cuts before which they do not meet the requirements."""
    counters.times[:] = 0
    counters.known[:] = 0
    counters.largest[:] = 0
    counters.different[:] = 0
    size = np.int64(0)
    at = first
    while at != last:
        record = line[grouped[at]]
        size += ground.weights[record]
        for row in range(ground.starts[record], ground.starts[record + 1]):
            for a in range(ground.values.shape[1]):
                value = ground.values[row, a]
                if value < ground.tests.distinct[a]:
                    counters.known[a] += 1
                    counters.different[a] += counters.times[a, value] == 0
                    counters.times[a, value] += 1
                    counters.largest[a] = max(counters.largest[a], counters.times[a, value])
        here, following = grouped[at], grouped[at + step]
        if codes[here] != codes[following] and not class_holds(
            ground.tests, size, counters.times, counters.known, counters.largest, counters.different
        ):
            forbidden[min(here, following) + 1] += 1
            forbidden[max(here, following) + 1] -= 1
        at += step
