"""TopDown (Xu, Wang, Pei, Wang, Shi, Fu 2006; Ghinita 2007, section 2.2): clusters divided in two.

Division. All records start as one class. A class of 2k and more is divided around two records that are far from each
other: from a random record we go to the one farthest from it, from there again to the farthest, and so on as long as
the distance grows, at most six times. The distance of two records is the NCP of the box around them. The other records
come in random order, each to the side whose penalty (its size times its NCP) grows least.

Repair (``small_class_repair``). A class of fewer than k borrows the records that it lacks from one that can spare them,
or is joined with another, whichever costs less over all other classes.

Division takes about O(N d log N) for N distinct records, since halves are seldom very unequal.

The side that a record goes to is our reading. ``topdown:lower-ncp`` is a plainer one: each record, also if it equals
others, goes to the side whose NCP is lower with it, every division draws its own order, and a small class is repaired
so that its own penalty is least. Its loss depends on the seed. A third reading, by size times NCP, loses several times
as much.

Differs from the paper: borrowing costs the penalty of the repaired class, less what its records paid before; the paper
first looks for the smallest repaired class (4% more loss on Adult). The lender keeps at least k records, so classes are
joined only if they have fewer than 2k together: every class has k to 2k - 1 records, or equal ones. Equal records stay
together when a class is divided, and are separated only when some of them are borrowed. The random order is drawn once
for the whole table. Ties go to the side with fewer records, and to the lower record. If one of the two far records
stays alone and has a weight below k, the others are assigned again, by the NCP of the sides alone: otherwise, where all
categories of an attribute are equally far from each other, as in a flat taxonomy, they would be split off one by one.
Of these, only the rules for lenders, ties and the size of classes are also those of ``topdown:lower-ncp``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE, STACK_SIZE
from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.kernels.threads import in_threads, slices, thread_count
from sfumato.losses.exact_costs import widen, widened_cost
from sfumato.methods.clustering.small_class_repair import (
    BY_GROWTH,
    BY_PENALTY,
    linked_classes,
    repair_classes,
    write_rows,
)
from sfumato.methods.method import BATCH_CLASSES, ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements

ROUNDS = 6  # steps towards the farthest pair
SHARE = 1 << 14  # one thread divides a class of up to this many distinct records to the end
STEP = 1 << 10  # classes that are repaired before progress is reported
LEAST_GROWTH, LOWER_NCP = 0, 1  # the readings


@dataclass(frozen=True, kw_only=True)
class TopDown:
    """Divide classes around two far records, then repair those that are too small."""

    reading: Literal["least-growth", "lower-ncp"] = "least-growth"
    paper = "Xu, Wang, Pei, Wang, Shi, Fu: Utility-based anonymization using local recoding, KDD 2006"
    separates = False

    @property
    def name(self) -> str:
        return "topdown" if self.reading == "least-growth" else f"topdown:{self.reading}"

    @property
    def summary(self) -> str:
        side = "" if self.reading == "least-growth" else ", each other record to the side of lower NCP"
        return f"classes divided around two far records{side}, small ones repaired; time about O(N d log N)"

    @property
    def use(self) -> str:
        if self.reading == "least-growth":
            return "when loss matters more than time: up to a few million records"
        return "to compare with published results; `topdown` loses less"

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: classes of k are merged until it holds."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel and not requirements.attributes

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        k = requirements.least_class
        if self.reading == "lower-ncp":
            records = _single_rows(records)
        weights = np.diff(records.starts)
        # The raw numbers of a generator are the same in every version of NumPy; derived distributions may differ.
        line = np.argsort(np.random.PCG64(records.seed or 0).random_raw(len(weights)), kind="stable").astype(np.uint32)
        reading = LOWER_NCP if self.reading == "lower-ncp" else LEAST_GROWTH
        criterion = BY_PENALTY if self.reading == "lower-ncp" else BY_GROWTH
        cuts = _divided(reading, records, weights, line, k, progress)
        linked = linked_classes(records, weights, line, cuts, k)
        half, count = records.count // 2, len(linked.head)
        for first, last in slices(count, STEP):
            repair_classes(criterion, linked, records.codes, first, last, k, records.costs.layout, records.costs.units)
            progress.advance(last * half // count - first * half // count)
        rows = np.empty_like(records.rows)
        write_rows(linked, records.starts, records.rows, rows)
        remaining = np.flatnonzero(linked.size)
        starts = np.append(0, np.cumsum(linked.size[remaining]))
        boxes = remaining + len(linked.low) // 2
        for first, last in slices(len(remaining), BATCH_CLASSES):
            bounds = starts[first : last + 1]
            low, high = linked.low[boxes[first:last]], linked.high[boxes[first:last]]
            yield ClassBatch(rows[bounds[0] : bounds[-1]], bounds - bounds[0], low, high)


def _single_rows(records: Records) -> Records:
    """Return the records one by one, also equal ones."""
    codes = np.repeat(records.codes, np.diff(records.starts), axis=0)
    return replace(records, codes=codes, starts=np.arange(records.count + 1), lines=None)


def _divided(
    reading: int, records: Records, weights: NDArray[np.int64], line: NDArray[np.uint32], k: int, progress: Progress
) -> NDArray[np.int64]:
    """Put the records in the order of their classes; return where the classes begin, and the end."""
    begins = np.zeros(len(line), np.bool_)
    is_other, spare = np.zeros(len(line), np.bool_), np.empty_like(line)
    codes, layout, units = records.codes, records.costs.layout, records.costs.units

    def divide_once(part: tuple[int, int]) -> int:
        return int(divide(reading, codes, weights, line, *part, k, layout, units, is_other, spare))

    def divide_to_the_end(part: tuple[int, int]) -> None:
        divide_fully(reading, codes, weights, line, *part, k, layout, units, is_other, spare, begins)

    parts, small = [(0, len(line))], []
    while parts:  # all threads divide the parts that are too large for one
        small += [part for part in parts if part[1] - part[0] <= SHARE]
        large = [part for part in parts if part[1] - part[0] > SHARE]
        middles = in_threads(divide_once, large)
        small += [part for part, middle in zip(large, middles, strict=True) if middle == part[1]]
        parts = [
            half
            for (begin, end), middle in zip(large, middles, strict=True)
            for half in ((begin, middle), (middle, end))
            if middle < end
        ]
    rest = records.count - records.count // 2  # the other half of the progress is that of the repair
    done = 0
    for first, last in slices(len(small), 2 * thread_count()):
        in_threads(divide_to_the_end, small[first:last])
        reported, done = done, done + sum(end - begin for begin, end in small[first:last])
        progress.advance(done * rest // len(line) - reported * rest // len(line))
    return np.append(np.flatnonzero(begins), len(line))


@kernel
def divide_fully(reading, codes, weights, line, begin, end, k, layout, units, is_other, spare, begins):
    """Divide the class line[begin:end] and its parts; mark where classes begin in begins: bool[m]. See ``divide``."""
    waiting = np.empty((STACK_SIZE, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = begin, end
    left = 1
    while left > 0:
        left -= 1
        begin, end = waiting[left]
        middle = divide(reading, codes, weights, line, begin, end, k, layout, units, is_other, spare)
        if middle == end:
            begins[begin] = True
            continue
        # Take the smaller part next, which keeps the stack short.
        smaller = left + 1 if middle - begin < end - middle else left
        waiting[smaller, 0], waiting[smaller, 1] = begin, middle
        waiting[2 * left + 1 - smaller, 0], waiting[2 * left + 1 - smaller, 1] = middle, end
        left += 2


@kernel
def divide(reading, codes, weights, line, begin, end, k, layout, units, is_other, spare):
    """Divide the class line[begin:end] in two, keeping the order within each; return where the second begins.

    The result is ``end`` for a class of fewer than 2k, or of equal records. reading: LEAST_GROWTH or LOWER_NCP, which
    puts the class into another order first. codes: uint[m, d]; weights: int64[m], the copies of each distinct record;
    line: uint32[m], initially in random order. is_other: bool[m], spare: uint32[m], overwritten.
    """
    total = np.int64(0)
    for position in range(begin, end):
        total += weights[line[position]]
    if total < 2 * k or end - begin == 1:
        return end
    if reading == LOWER_NCP:
        if all_equal(codes, line, begin, end):
            return end
        shuffle(line, begin, end)
    one, other = far_records(codes, line, begin, end, layout, units)
    by_size = reading == LEAST_GROWTH
    lone = assign(codes, weights, line, begin, end, one, other, by_size, k, layout, units, is_other)
    if lone and by_size:
        assign(codes, weights, line, begin, end, one, other, not by_size, k, layout, units, is_other)
    middle, others = begin, 0
    for position in range(begin, end):
        if is_other[position]:
            spare[begin + others] = line[position]
            others += 1
        else:
            line[middle] = line[position]
            middle += 1
    for position in range(others):
        line[middle + position] = spare[begin + position]
    return middle


@inlined_kernel
def all_equal(codes, line, begin, end):
    """Return whether the records of line[begin:end] are equal."""
    for position in range(begin + 1, end):
        for q in range(codes.shape[1]):
            if codes[line[position], q] != codes[line[begin], q]:
                return False
    return True


@inlined_kernel
def shuffle(line, begin, end):
    """Put line[begin:end] into an order that looks random and follows from its present order and its place alone."""
    state = np.uint64(begin) << np.uint64(32) | np.uint64(end)
    for position in range(end - 1, begin, -1):
        state += np.uint64(0x9E3779B97F4A7C15)  # splitmix64
        drawn = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        drawn = (drawn ^ (drawn >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        drawn = drawn ^ (drawn >> np.uint64(31))
        other = begin + np.int64(drawn % np.uint64(position - begin + 1))
        line[position], line[other] = line[other], line[position]


@kernel
def far_records(codes, line, begin, end, layout, units):
    """Return two records of line[begin:end] that are far from each other."""
    one, other = np.int64(line[begin]), np.int64(line[begin])
    distance = np.int64(-1)
    for _ in range(ROUNDS):
        farthest, most = NONE, np.int64(-1)
        for position in range(begin, end):
            record = np.int64(line[position])
            if record != one:
                cost = widened_cost(codes[one], codes[one], codes[record], layout, units)
                if cost > most or (cost == most and record < farthest):
                    farthest, most = record, cost
        if most <= distance:
            break
        one, other, distance = farthest, one, most
    return one, other


@inner_kernel
def assign(codes, weights, line, begin, end, one, other, by_size, k, layout, units, is_other):
    """Mark the records of line[begin:end] that go to ``other``, not to ``one``; return if either is alone and below k.

    by_size: compare the growth of the penalty of each side; otherwise its NCP with the record.
    """
    low, high = np.empty((2, codes.shape[1]), codes.dtype), np.empty((2, codes.shape[1]), codes.dtype)
    for q in range(codes.shape[1]):
        low[0, q], high[0, q] = codes[one, q], codes[one, q]
        low[1, q], high[1, q] = codes[other, q], codes[other, q]
    size, cost, members = np.empty(2, np.int64), np.zeros(2, np.int64), np.ones(2, np.int64)
    size[0], size[1] = weights[one], weights[other]
    for position in range(begin, end):
        record = np.int64(line[position])
        if record in (one, other):
            is_other[position] = record == other
            continue
        weight = weights[record]
        with_one = widened_cost(low[0], high[0], codes[record], layout, units)
        with_other = widened_cost(low[1], high[1], codes[record], layout, units)
        difference = with_other - with_one
        if by_size:
            difference = (size[1] + weight) * with_other - size[1] * cost[1]
            difference -= (size[0] + weight) * with_one - size[0] * cost[0]
        side = 1 if difference < 0 or (difference == 0 and size[1] < size[0]) else 0
        is_other[position] = side == 1
        size[side] += weight
        members[side] += 1
        cost[side] = with_other if side == 1 else with_one
        widen(low[side], high[side], codes[record])
    return (members[0] == 1 and size[0] < k) or (members[1] == 1 and size[1] < k)
