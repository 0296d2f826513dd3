"""The targets of a workload in the form that split rules take: integers, and their counts by the codes of an attribute.

All sums are of integers, so they are exact in any order, and splits that divide the records equally have equal gains. A
class is its code. A number is its distance from the middle of the range of its column, in steps so fine that the sum of
squares over all records just fits into 64 bits. Entropies are in units of 2 ** -s bits, with s as large as fits.

Records without a target count in requirements, but neither for nor against a split.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import inlined_kernel
from sfumato.methods.coded_workload import ClassTarget, CodedWorkload, NumberTarget, Scales
from sfumato.methods.trees.split_tests import CODES_A_UNIT, FEW_CODES, VALUES, WEIGHT
from sfumato.tables.coding.sorting import sort_numbers

MISSING = (1 << 32) - 1  # the code of a missing number
FINEST = 28  # bits on either side of the middle
EXACT_BITS, LARGEST_BITS = 52, 61
LOGARITHMS = 1 << 16  # logarithms of smaller counts are looked up


COLUMN, CLASSES, ABSENT = range(3)  # fields of a target
START, BEFORE, AFTER = range(3)  # of a group
SLOT, COUNT, TOTAL = range(3)  # of an entry


class SplitTargets(NamedTuple):
    """The targets in the form that kernels take. The arrays are few, since each adds to the compile time of kernels.

    targets: int64[3, t], the column of each in Units.data, its number of classes, 0 for numbers, and the code of a
    missing one. factor: float64[t], from units to comparable gains. cell: the column of the combination of features, -1
    without features; cells: the number of combinations. middle: the code of the middle of a range. logarithms: int64,
    x log2 x in units for small x; scale: the units of a bit. least: the least gain per record that justifies a split.
    """

    targets: NDArray[np.int64]
    factor: NDArray[np.float64]
    logarithms: NDArray[np.int64]
    scale: float
    least: float
    cell: int
    cells: int
    middle: int


class Selected(NamedTuple):
    """The selections in the form that kernels take.

    edges: int64[2, s, d], the first and last codes of each box; weights: float64[s].
    """

    edges: NDArray[np.int64]
    weights: NDArray[np.float64]


class TargetCounters(NamedTuple):
    """Working space: how often the codes of an attribute occur with the values of a target.

    Group g of the frequency set has the entries groups[START, g] to groups[START, g + 1] - 1; the purity of the groups
    up to it is groups[BEFORE, g], that from it on groups[AFTER, g]. entries: int64[3, u], cell and class of each, its
    number of records, and the sum of their numbers. tally: int64[2, ...], the last two by code, and sums:
    int64[3, ...], records by cell and class, then records and the sum of their numbers by cell; both 0 between uses.
    gain: float64, of the threshold after each group.
    """

    groups: NDArray[np.int64]
    entries: NDArray[np.int64]
    tally: NDArray[np.int64]
    sums: NDArray[np.int64]
    gain: NDArray[np.float64]


def tasks_of(
    workload: CodedWorkload, rows: NDArray[np.uint32], placed: int
) -> tuple[SplitTargets, list[NDArray[np.uint32]]]:
    """Return the targets, and their columns by row of the table, which follow ``placed`` other columns."""
    scales = workload.scales or _scales_of(workload, rows)
    count = max(scales.count, 2)
    shift = _shift_for(count)
    scale = float(1 << min(40, EXACT_BITS - int(count * np.log2(count)).bit_length()))
    columns = [] if workload.cells is None else [workload.cells]
    classes, missing = [], []
    for target, (low, high) in zip(workload.targets, scales.ranges.tolist(), strict=True):
        if isinstance(target, ClassTarget):
            columns.append(target.codes)
            classes.append(max(target.distinct, 1))
            missing.append(target.distinct)
        else:
            columns.append(_coded(target, low, high, shift))
            classes.append(0)
            missing.append(MISSING)
    steps = (scales.ranges[:, 1] - scales.ranges[:, 0]) / (1 << shift)
    features = int(workload.cells is not None)
    known = np.arange(min(count, LOGARITHMS) + 1)
    tasks = SplitTargets(
        targets=np.array([np.arange(len(classes)) + VALUES + placed + features, classes, missing], np.int64),
        factor=_factors(workload, scales.impurity, steps, scale),
        logarithms=np.rint(known * np.log2(np.maximum(known, 1)) * scale).astype(np.int64),
        scale=scale,
        least=workload.least_gain,
        cell=VALUES + placed if features else NONE,
        cells=scales.cells,
        middle=1 << shift,
    )
    return tasks, columns


def _shift_for(count: int) -> int:
    """Return the bits of a number on either side of the middle of its range."""
    return min(FINEST, (LARGEST_BITS - count.bit_length()) // 2)


def _scales_of(workload: CodedWorkload, rows: NDArray[np.uint32]) -> Scales:
    """Return the scales of the records in these rows."""
    halves = []
    for target in workload.targets:
        known = target.values[rows] if isinstance(target, NumberTarget) else np.empty(0)
        known = known[~np.isnan(known)] / 2  # the distance of two large numbers could overflow
        halves.append((known.min(), known.max()) if len(known) else (0.0, 0.0))
    cells = 1 if workload.cells is None else int(workload.cells[rows].max(initial=0)) + 1
    weighing = Weighing(workload, len(rows), cells, np.array(halves).reshape(-1, 2))
    weighing.add(workload, rows)
    return weighing.scales()


class Weighing:
    """Sums up the impurity of the targets of all records, some at a time. ``workload``: only its targets are read."""

    def __init__(self, workload: CodedWorkload, count: int, cells: int, ranges: NDArray[np.float64]) -> None:
        self._count, self._cells, self._ranges = count, cells, ranges
        # With classes alone, nothing depends on the impurity.
        self._needed = bool(workload.regression)
        self._classes = [
            np.zeros((cells, target.distinct), np.int64) for target in workload.classification if self._needed
        ]
        self._sums = [np.zeros((2, cells), np.int64) for _ in workload.regression]  # records, and their numbers
        self._squares = [0] * len(workload.regression)

    def add(self, workload: CodedWorkload, rows: NDArray[np.uint32]) -> None:
        """Add some rows of a workload."""
        if not self._needed:
            return
        cells = np.zeros(len(rows), np.int64) if workload.cells is None else workload.cells[rows].astype(np.int64)
        for counts, target in zip(self._classes, workload.classification, strict=True):
            codes = target.codes[rows]
            known = codes < target.distinct
            np.add.at(counts, (cells[known], codes[known]), 1)
        shift = _shift_for(max(self._count, 2))
        for i, number in enumerate(workload.regression):
            low, high = self._ranges[len(workload.classification) + i].tolist()
            coded = _coded(number, low, high, shift)[rows]
            known = coded != MISSING
            steps = coded[known].astype(np.int64) - (1 << shift)
            np.add.at(self._sums[i][0], cells[known], 1)
            np.add.at(self._sums[i][1], cells[known], steps)
            self._squares[i] += int(np.square(steps).sum())

    def scales(self) -> Scales:
        impurity = [_entropy(counts) for counts in self._classes]
        sums = zip(self._sums, self._squares, strict=True)
        impurity += [_variance(sums_of_target[0], sums_of_target[1], squares) for sums_of_target, squares in sums]
        return Scales(self._count, self._cells, self._ranges, np.array(impurity))


def _coded(target: NumberTarget, low: float, high: float, shift: int) -> NDArray[np.uint32]:
    """Return the numbers in steps from the middle of their range, which is at 2 ** shift. low, high: half its ends."""
    coded = np.full(len(target.values), MISSING, np.uint32)
    known = ~np.isnan(target.values)
    if high > low:
        share = (target.values[known] / 2 - low) / (high - low)
        coded[known] = np.rint(np.clip(share, 0, 1) * (2 << shift)).astype(np.uint32)
    else:
        coded[known] = 1 << shift
    return coded


def _entropy(counts: NDArray[np.int64]) -> float:
    """Return the entropy of the class of a record with known features, in bits. counts: int64[cells, classes]."""
    both, of_cell = counts[counts > 0], counts.sum(axis=1)
    of_cell = of_cell[of_cell > 0]
    if not len(of_cell):
        return 0.0
    return float((of_cell @ np.log2(of_cell) - both @ np.log2(both)) / int(of_cell.sum()))


def _variance(sizes: NDArray[np.int64], sums: NDArray[np.int64], squares: int) -> float:
    """Return the variance of a record's number, its features known, in squared steps. sizes, sums: int64[cells]."""
    if not sizes.any():
        return 0.0
    between = sum(int(total) ** 2 / int(size) for total, size in zip(sums, sizes, strict=True) if size)
    return float(max(squares - between, 0.0)) / int(sizes.sum())


def _factors(
    workload: CodedWorkload, impurity: NDArray[np.float64], steps: NDArray[np.float64], scale: float
) -> NDArray[np.float64]:
    """Return the factor that makes the gains of the targets comparable.

    Classes alone: bits, summed (eq. 5). Numbers alone: squared errors, summed (eq. 6), as a share of those of all
    records. Both: each as a share of its value for all records.
    """
    weights = np.array([target.weight for target in workload.targets])
    if not len(weights):
        return weights
    classes = np.array([isinstance(target, ClassTarget) for target in workload.targets])
    units = np.where(classes, scale, 1.0)
    if classes.all():
        return weights / units
    if classes.any():
        worth = units * impurity
    else:
        relative = (steps / max(float(steps.max()), np.finfo(float).tiny)) ** 2
        weights = weights * relative
        worth = np.full(len(weights), float(weights @ impurity))
    factors: NDArray[np.float64] = np.divide(weights, worth, out=np.zeros(len(weights)), where=worth > 0)
    return factors


def counters_for(units: int, largest_domain: int, tasks: SplitTargets | None) -> TargetCounters:
    """Return working space for regions of at most ``units`` units."""
    groups = min(units, largest_domain) + 2
    cells, slots = 1, 1
    if tasks is not None:
        cells, slots = tasks.cells, tasks.cells * max(int(tasks.targets[CLASSES].max(initial=1)), 1)
    most = min(largest_domain * slots, FEW_CODES + CODES_A_UNIT * units)
    return TargetCounters(
        np.zeros((3, groups), np.int64),
        np.empty((3, units), np.int64),
        np.zeros((2, most), np.int64),
        np.zeros((3, max(slots, cells)), np.int64),
        np.zeros(groups),
    )


@inlined_kernel
def count_entries(units, target, attribute, begin, end, low, high, groups, tasks, buffers, counters):
    """Fill ``counters`` with the entries of a target in units begin..end-1, whose frequency set is in ``buffers``."""
    codes, data = units
    starts, entries, tally = counters.groups[START], counters.entries, counters.tally
    column, classes, absent = tasks.targets[:, target]
    width = max(classes, 1)
    slots, made = width * tasks.cells, 0
    packed = np.empty(0, np.uint64)
    dense = (high - low + 1) * slots <= FEW_CODES + CODES_A_UNIT * (end - begin)
    if not dense:
        packed = np.empty(end - begin, np.uint64)
        for i in range(end - begin):
            packed[i] = np.uint64(codes[begin + i, attribute]) << np.uint64(32) | np.uint64(i)
        sort_numbers(packed)
    group = -1
    for i in range(end - begin):
        unit = begin + i
        if not dense:
            unit = begin + np.int64(packed[i] & np.uint64(0xFFFFFFFF))
            if group < 0 or buffers.code[group] != np.int64(packed[i] >> np.uint64(32)):
                group += 1
                starts[group] = made
        value = np.int64(data[unit, column])
        if value == absent:
            continue
        slot = np.int64(data[unit, tasks.cell]) * width if tasks.cell >= 0 else np.int64(0)
        weight, total = np.int64(data[unit, WEIGHT]), np.int64(0)
        if classes > 0:
            slot += value
        else:
            total = weight * (value - tasks.middle)
        if dense:
            slot += (np.int64(codes[unit, attribute]) - low) * slots
            tally[0, slot] += weight
            if classes == 0:
                tally[1, slot] += total
        else:
            entries[SLOT, made], entries[COUNT, made], entries[TOTAL, made] = slot, weight, total
            made += 1
    if dense:
        for group in range(groups):
            starts[group] = made
            first = (buffers.code[group] - low) * slots
            for slot in range(slots):
                if tally[0, first + slot] > 0:
                    entries[SLOT, made], entries[COUNT, made] = slot, tally[0, first + slot]
                    entries[TOTAL, made] = tally[1, first + slot]
                    tally[0, first + slot], tally[1, first + slot] = 0, 0
                    made += 1
    starts[groups] = made
