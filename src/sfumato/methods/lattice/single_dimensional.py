"""Single-dimensional partitioning, the baseline of Wang, Xu and Sun 2011 (sections I and IV.B; Fig. 6, 8 and 9).

The domain of each attribute is cut into the same intervals everywhere: all records with a value between two cuts share
the interval, whatever their other values (global recoding, as in Iyengar 2002 and Bayardo and Agrawal 2005, which the
paper names). The classes are the cells, the combinations of intervals that hold records. One attribute after the other
is cut. A cut is allowable if it divides every cell that it goes through into two that meet every requirement. So when
data are sparse the first attribute takes nearly all cuts, as the paper says of this method.

Time O(N d log N) for N distinct records; requirements on the distribution of m sensitive values take m times as long.

Differs from the paper, which says of the baseline only that sets are partitioned continuously in single dimensions, and
that it easily falls on one attribute. From the paper's own method we take the order of the attributes, by information
dependency (eq. 4 to 6, over the whole table), and the cut at the median (eq. 7). Our decisions: an interval is cut at
the allowable position nearest to its median, the lower of two, and then its parts, until no cut is allowable; then the
next attribute follows. Cutting all attributes in turn gives fewer classes (17 instead of 24 of 100 points at k = 3 on a
lattice of 50 x 50). The paper reports 24 for points that it does not publish; on coarser lattices we get fewer too, 18
on one of 20 x 20. Categories are cut in the order of their leaves, null comes after all values, and a cell shows the
smallest box around its records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE, STACK_SIZE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.methods.class_counting import Counting
from sfumato.methods.line.line import expand
from sfumato.methods.line.optimal_cut import boxes
from sfumato.methods.method import BATCH_CLASSES, ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.requirements.conjunction import Conjunction, class_holds
from sfumato.tables.coding.domains import Codes


@dataclass(frozen=True, kw_only=True)
class SingleDimensional:
    """Cut the domain of one attribute after the other."""

    name = "single-dimensional"
    paper = "Wang, Xu, Sun: Multi-dimensional k-anonymity based on mapping for protecting privacy, 2011 (baseline)"
    summary = "one set of cuts for all records, one attribute after the other; time O(N d log N)"
    use = (
        "to repeat the baseline of Wang's figures: the first attributes take the cuts and the others show *, so the "
        "loss is high; choose global for one recoding of all records"
    )
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: only cuts that meet it are made, or cells are merged."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        data = _cut_data(records, requirements)
        cell = np.zeros(len(records.codes), np.int64)
        order = by_dependency(records.codes, data.weights)
        for done, attribute in enumerate(order):
            codes = records.codes[:, attribute].astype(np.uint32)
            line = np.argsort(codes, kind="stable").astype(np.uint32)
            begins = cut_domain(data, codes[line], line, cell[line])
            interval = np.empty_like(cell)
            interval[line] = np.cumsum(begins) - 1
            # Order by the cells so far and then by the intervals, so that near cells follow each other.
            _, cell = np.unique(cell * np.count_nonzero(begins) + interval, return_inverse=True)
            progress.advance(records.count * (done + 1) // len(order) - records.count * done // len(order))
        line = np.argsort(cell, kind="stable").astype(np.uint32)
        cuts = np.append(np.searchsorted(cell[line], np.arange(cell.max() + 1)), len(line))
        rows = np.empty_like(records.rows)
        expand(records.rows, records.starts, line, rows)
        starts = np.append(0, np.cumsum(data.weights[line]))[cuts]
        for first in range(0, len(cuts) - 1, BATCH_CLASSES):
            part = slice(first, first + BATCH_CLASSES + 1)
            low, high = boxes(records.codes, line, cuts[part])
            bounds = starts[part]
            yield ClassBatch(rows[bounds[0] : bounds[-1]], bounds - bounds[0], low, high)


def by_dependency(codes: Codes, weights: NDArray[np.int64]) -> list[int]:
    """Return the attributes in ascending order of their information dependency (Wang 2011, eq. 4 to 6)."""
    records = int(weights.sum())
    means, deviations = [], []
    for column in codes.T:
        counts = np.bincount(column, weights)
        values = int(np.count_nonzero(counts))  # Pro; the counts are PPA
        squares = sum(count * count for count in counts.astype(np.int64).tolist())
        means.append(records / values)
        # Integer arithmetic, so that equal counts in another order are a tie.
        spread = squares * values - records * records
        deviations.append((spread / (values * (values - 1))) ** 0.5 if values > 1 else 0.0)
    weight = max(means + deviations)  # w1; w2 is its inverse. DEP is this, divided by w1 and k.
    dependency = [weight * weight * mean + deviation for mean, deviation in zip(means, deviations, strict=True)]
    return sorted(range(len(dependency)), key=lambda attribute: (dependency[attribute], attribute))


class CutData(NamedTuple):
    """The data that stay constant while domains are cut.

    weights: int64[m], the copies of each distinct record; their values of the sensitive attributes are
    values[starts[i]:starts[i + 1]], uint32[n, a]. tests: the requirements that a cell must meet.
    """

    weights: NDArray[np.int64]
    starts: NDArray[np.int64]
    values: NDArray[np.uint32]
    tests: Conjunction


def _cut_data(records: Records, requirements: Requirements) -> CutData:
    if not requirements.decided_by_kernel:
        # Other requirements are met by merging cells; k persons have at least k records.
        sizes = tuple(part for part in requirements.parts if part.attribute is None)
        requirements = replace(requirements, parts=sizes, person=None, joint=())
    columns = [records.sensitive[name].codes[records.rows] for name in requirements.attributes]
    values = np.stack(columns, axis=1) if columns else np.empty((records.count, 0), np.uint32)
    tests = Counting(records, requirements).conjunction()
    return CutData(np.diff(records.starts), records.starts, values, tests)


class CutCounters(NamedTuple):
    """The counts of each sensitive value in the records added so far, by attribute: see ``class_holds``."""

    times: NDArray[np.int64]
    known: NDArray[np.int64]
    largest: NDArray[np.int64]
    different: NDArray[np.int64]


@kernel
def cut_domain(data, codes, line, cell):
    """Return where the intervals of an attribute begin: bool[m].

    codes: uint32[m], ascending; line: uint32[m], the distinct record with the code; cell: int64[m], its cell so far.
    """
    m = len(codes)
    begins = np.zeros(m, np.bool_)
    forbidden = np.zeros(m + 1, np.int64)
    slot, grouped = np.zeros(m, np.int64), np.empty(m, np.int64)
    waiting = np.empty((STACK_SIZE, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = 0, m
    left = 1
    while left > 0:
        left -= 1
        begin, end = waiting[left, 0], waiting[left, 1]
        middle = find_cut(data, codes, line, cell, begin, end, forbidden, slot, grouped)
        if middle == NONE:
            begins[begin] = True
            continue
        # Take the smaller part next, which keeps the stack short.
        smaller = left + 1 if middle - begin < end - middle else left
        waiting[smaller, 0], waiting[smaller, 1] = begin, middle
        waiting[2 * left + 1 - smaller, 0], waiting[2 * left + 1 - smaller, 1] = middle, end
        left += 2
    return begins


@inlined_kernel
def find_cut(data, codes, line, cell, begin, end, forbidden, slot, grouped):
    """Return the first position of the upper part of the interval begin..end-1, NONE where no cut is allowable.

    forbidden: int64[m + 1], slot: int64[m], by cell, 0 before and after; grouped: int64[m], working space.
    """
    if codes[begin] == codes[end - 1]:
        return NONE
    forbid_cuts(data, codes, line, cell, begin, end, forbidden, slot, grouped)
    total = np.int64(0)
    for position in range(begin, end):
        total += data.weights[line[position]]
    best, best_distance = NONE, total + 1
    lower, crossed = np.int64(0), np.int64(0)
    for position in range(begin, end):
        crossed += forbidden[position]
        if (
            position > begin
            and crossed == 0
            and codes[position] != codes[position - 1]
            and abs(2 * lower - total) < best_distance
        ):
            best, best_distance = np.int64(position), abs(2 * lower - total)
        lower += data.weights[line[position]]
        forbidden[position] = 0
    forbidden[end] = 0
    return best


@inlined_kernel
def forbid_cuts(data, codes, line, cell, begin, end, forbidden, slot, grouped):
    """Count in ``forbidden``, as differences between positions, the cells of which a cut would make a part fail."""
    for position in range(begin, end):
        slot[cell[position]] += 1
    total = np.int64(0)
    for position in range(begin, end):
        count = slot[cell[position]]
        if count > 0:  # the first record of its cell: from now on the slot is -1 minus the position for the next one
            slot[cell[position]] = -1 - total
            total += count
        grouped[-1 - slot[cell[position]]] = position
        slot[cell[position]] -= 1
    a, width = data.values.shape[1], data.tests.reference.shape[1]
    counters = CutCounters(
        np.zeros((a, width), np.int64), np.zeros(a, np.int64), np.zeros(a, np.int64), np.zeros(a, np.int64)
    )
    # With literals the callee would be compiled twice.
    first, upward, downward = np.int64(0), np.int64(1), np.int64(-1)
    while first < total:
        last = first
        while last + 1 < total and cell[grouped[last + 1]] == cell[grouped[first]]:
            last += 1
        sweep(data, codes, line, grouped, first, last, upward, counters, forbidden)
        sweep(data, codes, line, grouped, last, first, downward, counters, forbidden)
        slot[cell[grouped[first]]] = 0
        first = last + 1


@inner_kernel
def sweep(data, codes, line, grouped, first, last, step, counters, forbidden):
    """Add the records of a cell one by one, and forbid the cuts up to which they do not meet the requirements."""
    counters.times[:] = 0
    counters.known[:] = 0
    counters.largest[:] = 0
    counters.different[:] = 0
    size = np.int64(0)
    at = first
    while at != last:
        record = line[grouped[at]]
        size += data.weights[record]
        for row in range(data.starts[record], data.starts[record + 1]):
            for a in range(data.values.shape[1]):
                value = data.values[row, a]
                if value < data.tests.distinct[a]:
                    counters.known[a] += 1
                    counters.different[a] += counters.times[a, value] == 0
                    counters.times[a, value] += 1
                    counters.largest[a] = max(counters.largest[a], counters.times[a, value])
        position, next_position = grouped[at], grouped[at + step]
        if codes[position] != codes[next_position] and not class_holds(
            data.tests, size, counters.times, counters.known, counters.largest, counters.different
        ):
            forbidden[min(position, next_position) + 1] += 1
            forbidden[max(position, next_position) + 1] -= 1
        at += step
