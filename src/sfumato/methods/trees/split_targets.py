"""What split rules for a workload know of it: targets as whole numbers, and their counts by the values of an attribute.

All sums are of whole numbers, so they are exact in any order, and splits that part the records alike gain alike. A
class is its code. A number is its distance from the middle of the column's range, in steps that are so fine that the
sum of squares over all records just fits into 64 bits. Entropies are in units of 2 ** -s bits, s as large as fits.

Records without a target count in requirements, but neither for nor against a split.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.methods.coded_workload import ClassTarget, CodedWorkload, NumberTarget, Scales
from sfumato.methods.trees.split_tests import CODES_A_UNIT, FEW_CODES, VALUES, WEIGHT
from sfumato.tables.coding.sorting import sort_numbers

MISSING = (1 << 32) - 1  # a number that is not there
FINEST = 28  # bits on either side of the middle
EXACT_BITS, LARGEST_BITS = 52, 61
LOGARITHMS = 1 << 16  # of so many counts are looked up


COLUMN, CLASSES, ABSENT = range(3)  # of a target
START, BEFORE, AFTER = range(3)  # of a group
SLOT, COUNT, TOTAL = range(3)  # of an entry


class SplitTargets(NamedTuple):
    """What is to be predicted, as kernels take it. Few arrays: each of them makes kernels longer to compile.

    targets: int64[3, t], where each stands in Units.data, how many classes there are, 0 for numbers, and what stands
    for none. factor: float64[t], from units to what is compared. cell: the column of the features' combination, -1
    without any; cells: how many there are. middle: what stands for the middle of a range. logarithms: int64, x log2 x
    in units for small x; scale: the units of a bit. least: the gain of a record below which a split is not worth it.
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
    """What is to be selected, as kernels take it: edges: int64[2, s, d], the first and last codes of each box;
    weights: float64[s].
    """

    edges: NDArray[np.int64]
    weights: NDArray[np.float64]


class TargetCounters(NamedTuple):
    """Working space.

    How often an attribute's codes go with a target's values: group g of the frequency set has the entries
    groups[START, g] to groups[START, g + 1] - 1; the purity of the groups up to it is groups[BEFORE, g], from it on
    groups[AFTER, g]. entries: int64[3, u], cell and class of each, its records, and the sum of their numbers. tally:
    int64[2, ...], the last two by code, and sums: int64[3, ...], records by cell and class, then records and the sum
    of their numbers by cell; both 0 between uses. gain: float64, of the threshold after each group.
    """

    groups: NDArray[np.int64]
    entries: NDArray[np.int64]
    tally: NDArray[np.int64]
    sums: NDArray[np.int64]
    gain: NDArray[np.float64]


def tasks_of(
    workload: CodedWorkload, rows: NDArray[np.uint32], placed: int
) -> tuple[SplitTargets, list[NDArray[np.uint32]]]:
    """The tasks, and the columns that they are about, by row of the table; ``placed`` columns stand before them."""
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
    """The bits of a number on either side of the middle of its range."""
    return min(FINEST, (LARGEST_BITS - count.bit_length()) // 2)


def _scales_of(workload: CodedWorkload, rows: NDArray[np.uint32]) -> Scales:
    """Those of the records that are these rows."""
    halves = []
    for target in workload.targets:
        known = target.values[rows] if isinstance(target, NumberTarget) else np.empty(0)
        known = known[~np.isnan(known)] / 2  # the distance of two large numbers may be more than any number
        halves.append((known.min(), known.max()) if len(known) else (0.0, 0.0))
    cells = 1 if workload.cells is None else int(workload.cells[rows].max(initial=0)) + 1
    weighing = Weighing(workload, len(rows), cells, np.array(halves).reshape(-1, 2))
    weighing.add(workload, rows)
    return weighing.scales()


class Weighing:
    """Counts what there is to tell of all records, some at a time. ``workload``: of any records, for what it names."""

    def __init__(self, workload: CodedWorkload, count: int, cells: int, ranges: NDArray[np.float64]) -> None:
        self._count, self._cells, self._ranges = count, cells, ranges
        # Where classes alone are told nothing depends on it.
        self._needed = bool(workload.regression)
        self._classes = [np.zeros((cells, one.distinct), np.int64) for one in workload.classification if self._needed]
        self._sums = [np.zeros((2, cells), np.int64) for _ in workload.regression]  # records, and their numbers
        self._squares = [0] * len(workload.regression)

    def add(self, workload: CodedWorkload, rows: NDArray[np.uint32]) -> None:
        """Some rows of a workload."""
        if not self._needed:
            return
        cells = np.zeros(len(rows), np.int64) if workload.cells is None else workload.cells[rows].astype(np.int64)
        for counts, target in zip(self._classes, workload.classification, strict=True):
            codes = target.codes[rows]
            known = codes < target.distinct
            np.add.at(counts, (cells[known], codes[known]), 1)
        shift = _shift_for(max(self._count, 2))
        for place, number in enumerate(workload.regression):
            low, high = self._ranges[len(workload.classification) + place].tolist()
            coded = _coded(number, low, high, shift)[rows]
            known = coded != MISSING
            steps = coded[known].astype(np.int64) - (1 << shift)
            np.add.at(self._sums[place][0], cells[known], 1)
            np.add.at(self._sums[place][1], cells[known], steps)
            self._squares[place] += int(np.square(steps).sum())

    def scales(self) -> Scales:
        impurity = [_entropy(counts) for counts in self._classes]
        sums = zip(self._sums, self._squares, strict=True)
        impurity += [_variance(one[0], one[1], squares) for one, squares in sums]
        return Scales(self._count, self._cells, self._ranges, np.array(impurity))


def _coded(target: NumberTarget, low: float, high: float, shift: int) -> NDArray[np.uint32]:
    """The numbers in whole steps from the middle of their range, which is at 2 ** shift. low, high: halves of it."""
    coded = np.full(len(target.values), MISSING, np.uint32)
    there = ~np.isnan(target.values)
    if high > low:
        share = (target.values[there] / 2 - low) / (high - low)
        coded[there] = np.rint(np.clip(share, 0, 1) * (2 << shift)).astype(np.uint32)
    else:
        coded[there] = 1 << shift
    return coded


def _entropy(counts: NDArray[np.int64]) -> float:
    """Of the classes of a record whose features are known, in bits. counts: int64[cells, classes]."""
    both, of_cell = counts[counts > 0], counts.sum(axis=1)
    of_cell = of_cell[of_cell > 0]
    if not len(of_cell):
        return 0.0
    return float((of_cell @ np.log2(of_cell) - both @ np.log2(both)) / int(of_cell.sum()))


def _variance(sizes: NDArray[np.int64], sums: NDArray[np.int64], squares: int) -> float:
    """Of the number of a record whose features are known, in squares of steps. sizes, sums: int64[cells]."""
    if not sizes.any():
        return 0.0
    between = sum(int(total) ** 2 / int(size) for total, size in zip(sums, sizes, strict=True) if size)
    return float(max(squares - between, 0.0)) / int(sizes.sum())


def _factors(
    workload: CodedWorkload, impurity: NDArray[np.float64], steps: NDArray[np.float64], scale: float
) -> NDArray[np.float64]:
    """What a unit of each target's gain is worth.

    Classes alone: bits, summed (eq. 5). Numbers alone: squared errors, summed (eq. 6), as a share of those of all
    records. Both: each as a share of what it is for all records.
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
    """Working space for regions of at most so many units."""
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


@kernel
def count_entries(units, target, attribute, begin, end, low, high, groups, tasks, room, counters):
    """Fill ``counters`` with the entries of a target in the units begin..end-1, whose frequency set is in ``room``."""
    codes, data = units
    starts, entries, tally = counters.groups[START], counters.entries, counters.tally
    column, classes, absent = tasks.targets[:, target]
    width = max(classes, 1)
    slots, made = width * tasks.cells, 0
    packed = np.empty(0, np.uint64)
    dense = (high - low + 1) * slots <= FEW_CODES + CODES_A_UNIT * (end - begin)
    if not dense:
        packed = np.empty(end - begin, np.uint64)
        for place in range(end - begin):
            packed[place] = np.uint64(codes[begin + place, attribute]) << np.uint64(32) | np.uint64(place)
        sort_numbers(packed)
    group = -1
    for place in range(end - begin):
        unit = begin + place
        if not dense:
            unit = begin + np.int64(packed[place] & np.uint64(0xFFFFFFFF))
            if group < 0 or room.code[group] != np.int64(packed[place] >> np.uint64(32)):
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
            first = (room.code[group] - low) * slots
            for slot in range(slots):
                if tally[0, first + slot] > 0:
                    entries[SLOT, made], entries[COUNT, made] = slot, tally[0, first + slot]
                    entries[TOTAL, made] = tally[1, first + slot]
                    tally[0, first + slot], tally[1, first + slot] = 0, 0
                    made += 1
    starts[groups] = made
