"""k-member clustering (Byun, Kamra, Bertino, Li 2007, section 3): one class of k after the other, around far records.

From the record that was taken last we go to the one farthest from it, among those in no class yet. It begins a class,
which takes, one at a time, the record that widens its box least, until it has k. When fewer than k records are left,
each joins the class whose penalty (size times NCP) it raises least.

Every record that is taken is found among all that are left, so the time is O(m m d) for m distinct records. The last
classes are made of what the others left over, and are wide.

Differs from the paper: the distance of two records is the NCP of the box around them; the paper adds up normalised
differences and levels of taxonomies. Equal records are one record with a weight, of which a class takes as many copies
as it lacks. Ties go to the lower record, and to the class that was formed first. The first record is drawn by the seed;
records that are left over come in their order, not at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.losses.exact_costs import widen, widened_cost
from sfumato.methods.method import BATCH_CLASSES, ClassBatch, Records
from sfumato.orderings import Hilbert
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import sort_rows

STEP_RECORDS = 1 << 10  # records that are put into classes before progress is reported
FREE, ENTRIES, CLASSES, LAST, LEFT = range(5)  # of GrowingClasses.state


class KMember:
    """Form classes of k one after the other, each around a record far from the last."""

    name = "k-member"
    paper = "Byun, Kamra, Bertino, Li: Efficient k-anonymization using clustering techniques, DASFAA 2007"
    summary = "one class of k after the other, each from a far record and what widens it least; time O(m m d)"
    use = "to compare with published results; up to some 100,000 distinct records"
    separates = False

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: classes of k are merged until it holds."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel and not requirements.attributes

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        k = requirements.least_class
        classes = _no_classes(records, k)
        layout, units = records.costs.layout, records.costs.units
        while classes.state[LEFT] >= k:
            progress.advance(int(form_classes(classes, records.codes, k, STEP_RECORDS, layout, units)))
        progress.advance(int(join_rest(classes, records.codes, layout, units)))
        count = int(classes.state[CLASSES])
        order = _along_curve(records, classes, count)
        rows, starts = np.empty_like(records.rows), np.append(0, np.cumsum(classes.size[order]))
        write_rows(classes, order, records.starts, records.rows, rows)
        for first in range(0, count, BATCH_CLASSES):
            part = slice(first, min(first + BATCH_CLASSES, count))
            bounds = starts[part.start : part.stop + 1]
            numbers = order[part]
            low, high = classes.low[numbers], classes.high[numbers]
            yield ClassBatch(rows[bounds[0] : bounds[-1]], bounds - bounds[0], low, high)


class GrowingClasses(NamedTuple):
    """The classes so far, and the records that are in none.

    free: uint32[m], the distinct records with copies left come first, in any order; copies: int64[m], how many are
    left. A class is a linked list of entries, each some copies of a record: record: uint32[entries]; held, after:
    int64[entries], NONE at the end. head, size: int64[c]; low, high: uint[c, d], its box. state: int64[5], the number
    of free records, of entries and of classes, the record taken last, and the number of records in no class.
    """

    free: NDArray[np.uint32]
    copies: NDArray[np.int64]
    record: NDArray[np.uint32]
    held: NDArray[np.int64]
    after: NDArray[np.int64]
    head: NDArray[np.int64]
    size: NDArray[np.int64]
    low: Codes
    high: Codes
    state: NDArray[np.int64]


def _no_classes(records: Records, k: int) -> GrowingClasses:
    m, d = records.codes.shape
    most, dtype = records.count // k, records.codes.dtype
    entries = m + most + k  # a class divides the copies of one record at most, and each leftover is an entry
    # The raw numbers of a generator are the same in every version of NumPy.
    first_row = int(np.random.PCG64(records.seed or 0).random_raw()) % records.count
    first = int(np.searchsorted(records.starts, first_row, side="right")) - 1
    return GrowingClasses(
        free=np.arange(m, dtype=np.uint32),
        copies=np.diff(records.starts),
        record=np.empty(entries, np.uint32),
        held=np.empty(entries, np.int64),
        after=np.empty(entries, np.int64),
        head=np.full(most, NONE, np.int64),
        size=np.zeros(most, np.int64),
        low=np.empty((most, d), dtype),
        high=np.empty((most, d), dtype),
        state=np.array([m, 0, 0, first, records.count], np.int64),
    )


def _along_curve(records: Records, classes: GrowingClasses, count: int) -> NDArray[np.int64]:
    """Return the classes in the order of the Hilbert curve: neighbours may have to be merged later."""
    keys = Hilbert().keys(records.codes, records.domains)
    on_curve = np.empty(len(records.codes), np.int64)
    on_curve[sort_rows(keys.fields(), len(on_curve)).rows] = np.arange(len(on_curve))
    return np.argsort(on_curve[classes.record[classes.head[:count]]], kind="stable")


@kernel
def form_classes(classes, codes, k, enough, layout, units):
    """Form classes until ``enough`` more records are in one, or fewer than k are left; return how many there are."""
    done, state = np.int64(0), classes.state
    while state[LEFT] >= k and done < enough:
        group = state[CLASSES]
        state[CLASSES] += 1
        record = farthest(classes, codes, state[LAST], layout, units)
        low, high = classes.low[group], classes.high[group]
        for q in range(codes.shape[1]):
            low[q], high[q] = codes[record, q], codes[record, q]
        while True:
            take(classes, group, record, min(classes.copies[record], k - classes.size[group]))
            widen(low, high, codes[record])
            state[LAST] = record
            if classes.size[group] == k:
                break
            record = cheapest(classes, codes, low, high, layout, units)
        done += k
    return done


@inlined_kernel
def farthest(classes, codes, last, layout, units):
    """Return the free record that is farthest from ``last``."""
    best, most = NONE, np.int64(-1)
    for i in range(classes.state[FREE]):
        record = np.int64(classes.free[i])
        cost = widened_cost(codes[last], codes[last], codes[record], layout, units)
        if cost > most or (cost == most and record < best):
            best, most = record, cost
    return best


@inlined_kernel
def cheapest(classes, codes, low, high, layout, units):
    """Return the free record that widens the box low..high least."""
    best, least = NONE, INFINITE
    for i in range(classes.state[FREE]):
        record = np.int64(classes.free[i])
        cost = widened_cost(low, high, codes[record], layout, units)
        if cost < least or (cost == least and record < best):
            best, least = record, cost
    return best


@inner_kernel
def take(classes, group, record, count):
    """Put ``count`` copies of a free record into a class."""
    state = classes.state
    entry = state[ENTRIES]
    state[ENTRIES] += 1
    classes.record[entry], classes.held[entry] = record, count
    classes.after[entry], classes.head[group] = classes.head[group], entry
    classes.size[group] += count
    classes.copies[record] -= count
    state[LEFT] -= count
    if classes.copies[record] == 0:
        i = 0
        while classes.free[i] != record:
            i += 1
        state[FREE] -= 1
        classes.free[i] = classes.free[state[FREE]]


@kernel
def join_rest(classes, codes, layout, units):
    """Put every record that is left into the class whose penalty it raises least; return how many there were."""
    done = classes.state[LEFT]
    for number in range(len(codes)):
        record = np.int64(number)
        while classes.copies[record] > 0:
            best, least = NONE, INFINITE
            for group in range(classes.state[CLASSES]):
                low, high = classes.low[group], classes.high[group]
                before = widened_cost(low, high, low, layout, units)
                after = widened_cost(low, high, codes[record], layout, units)
                growth = (classes.size[group] + 1) * after - classes.size[group] * before
                if growth < least:
                    best, least = np.int64(group), growth
            take(classes, best, record, np.int64(1))
            widen(classes.low[best], classes.high[best], codes[record])
    return done


@kernel
def write_rows(classes, order, starts, rows, result):
    """Write the rows class by class. order: int64[c]; rows, result: uint32[n]; starts: int64[m + 1], by record."""
    used = starts[:-1].copy()
    position = 0
    for group in order:
        entry = classes.head[group]
        while entry != NONE:
            record = classes.record[entry]
            for _ in range(classes.held[entry]):
                result[position] = rows[used[record]]
                used[record] += 1
                position += 1
            entry = classes.after[entry]
