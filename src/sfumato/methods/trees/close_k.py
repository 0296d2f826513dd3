"""Recursive cuts by information dependency (Wang, Xu and Sun 2011, section III).

A set of records is cut in two between two values of one attribute, and so are its parts, until no cut leaves k records
on either side. Seen along one attribute (the paper's mapping) a set has Pro different values, and PPA says how many
records each of them has. The attribute that depends least on the others is tried first (eq. 4 to 6):

    DEP = w1 / k * |D| / Pro + w2 / k * (standard deviation of PPA),

where w1 is the largest of all means |D| / Pro and deviations over the attributes and w2 = 1 / w1. The cut is

- ``mapping-median`` (eq. 7): after the value of the middle record;
- ``close-k`` (eq. 8): after the fewest values from below, or before the fewest from above, that make up k records,
  whichever are fewer records; at most 3k - 1 records are instead cut where the entropy of the sizes of the two parts is
  largest, which is where they are most nearly equal.

Close-k takes away about k records at a time, so a set is not looked through for a cut. Every attribute keeps the values
that still occur as a linked list with their counts; a cut moves the part of fewer distinct records out of these lists
and leaves the other where it is. A record moves at most log2(N) times and finding a cut takes O(k d) for close-k, so
the whole takes about O(N d log N). The parts that were moved out are cut first, each within half the space of the one
before it: space for 2 N d is enough.

Differs from the paper: Pro is the number of different values (eq. 2 as printed gives one less than its example).
Deviations divide by Pro - 1, and are 0 for a single value. Where the middle record has the largest value, the cut is
before that value, since nothing is after it. The cut at d_fin is before it: as printed it can leave fewer than k.
The dependencies of all attributes are computed anew after a cut, because every attribute's counts have changed.
Codes in the order of the values, or of the leaves of the taxonomy, are the numbers that categories are mapped to. Ties
go to the first attribute and to the lower cut. Equal records always stay together. Other requirements than k are left
to joining neighbouring classes, which may end in a single class where l leaves hardly any choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import kernel
from sfumato.methods.line.line import expand
from sfumato.methods.line.optimal_cut import BATCH_CLASSES, boxes
from sfumato.methods.method import ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements

MEDIAN, CLOSE_K = 0, 1
STEP_RECORDS = 1 << 16  # records that are put into classes before progress is told
NO_ENTRY = np.int64(-1)
IN_A_CLASS = 255  # no level: there are never more than 32

BASE, SIZE, MEMBERS, RECORDS, BEGIN = 0, 1, 2, 3, 4  # of Sets.level
START, END, DISTINCT, SQUARES = 0, 1, 2, 3  # of Sets.mapped
HELD, BEFORE, AFTER, FIRST = 0, 1, 2, 3  # of Sets.entry


@dataclass(frozen=True, kw_only=True)
class InformationDependency:
    """Cut the attribute of least information dependency, and then the parts."""

    point: Literal["median", "close-k"]
    paper = "Wang, Xu, Sun: Multi-dimensional k-anonymity based on mapping for protecting privacy, 2011"
    separates = False

    @property
    def name(self) -> str:
        return "mapping-median" if self.point == "median" else "close-k"

    @property
    def summary(self) -> str:
        where = "in the middle" if self.point == "median" else "close to k records from an end"
        return f"recursive cuts {where} of the attribute of least information dependency; time O(N d log N)"

    @property
    def use(self) -> str:
        if self.point == "median":
            return "to compare with what was published; with k alone"
        return "to compare: on numbers more and wider classes than mapping-median; with k alone"

    def check(self, requirements: Requirements) -> None:
        """Any requirement can be met: classes of k are joined until it holds."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.tested and not requirements.attributes

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        weights = np.diff(records.starts)
        rule = MEDIAN if self.point == "median" else CLOSE_K
        sets = _whole(records, weights)
        while sets.current[0] >= 0:
            progress.advance(int(cut_some(sets, requirements.least_class, rule, STEP_RECORDS)))
        cuts = np.append(np.flatnonzero(sets.begins), len(sets.line))
        rows = np.empty_like(records.rows)
        expand(records.rows, records.starts, sets.line, rows)
        starts = np.append(0, np.cumsum(weights[sets.line]))[cuts]
        for first in range(0, len(cuts) - 1, BATCH_CLASSES):
            part = slice(first, first + BATCH_CLASSES + 1)
            low, high = boxes(records.codes, sets.line, cuts[part])
            these = starts[part]
            yield ClassBatch(rows[these[0] : these[-1]], these - these[0], low, high)


class Sets(NamedTuple):
    """The sets that are still to be cut, and the classes so far.

    There is one set a level, at most half as large as that of the level before, and the last is cut first. A set owns a
    range of ``order`` and, attribute by attribute, a range of the entries of PPA: one for each value, ascending, linked
    to those before and after it that still have records, in a ring that is closed by one more entry at the end.

    weights: int64[m], the records that each distinct record stands for. line: uint32[m], the distinct records class by
    class; begins: bool[m], does a class begin here? current: int64[1], the level that is cut, -1 when all is done.
    level: int64[levels, 5], by set: where it begins in ``order``, its distinct records at first and now, its records
    now, and where they will stand in ``line``. mapped: int64[levels, d, 4], by set and attribute: its entries from
    START to before END, Pro, and the sum of squares of PPA. offset: int64[d], where the entries of an attribute begin.
    ppa: int64[entries], the records of an entry. entry: uint32[entries, 4]: its distinct records, the entries before
    and after it, counted from the offset, and where it begins in ``order``; it ends where the next one begins.
    order: uint32[d, < 2m], distinct records by value; those that left the set are still in it. place: uint32[m, d], the
    entry that a distinct record is in. owner: uint8[m], the level of its set.
    The rest is working space. moved, spare: uint32[m], distinct records; span: int64[2, d]; counter: int64[> m].
    dependency: float64[3, d]; tried: bool[d].
    """

    weights: NDArray[np.int64]
    line: NDArray[np.uint32]
    begins: NDArray[np.bool_]
    current: NDArray[np.int64]
    level: NDArray[np.int64]
    mapped: NDArray[np.int64]
    offset: NDArray[np.int64]
    ppa: NDArray[np.int64]
    entry: NDArray[np.uint32]
    order: NDArray[np.uint32]
    place: NDArray[np.uint32]
    owner: NDArray[np.uint8]
    moved: NDArray[np.uint32]
    spare: NDArray[np.uint32]
    span: NDArray[np.int64]
    counter: NDArray[np.int64]
    dependency: NDArray[np.float64]
    tried: NDArray[np.bool_]


def _whole(records: Records, weights: NDArray[np.int64]) -> Sets:
    """All records as one set."""
    m, d = records.codes.shape
    sizes = np.array([domain.size for domain in records.domains], np.int64)
    largest = [m >> level for level in range(m.bit_length())]  # the distinct records of a set
    entries = [sum(min(size, members) + 1 for members in largest) for size in sizes.tolist()]
    sets = Sets(
        weights=weights,
        line=np.empty(m, np.uint32),
        begins=np.zeros(m, np.bool_),
        current=np.zeros(1, np.int64),
        level=np.zeros((len(largest), 5), np.int64),
        mapped=np.zeros((len(largest), d, 4), np.int64),
        offset=np.append(0, np.cumsum(entries))[:-1],
        ppa=np.empty(sum(entries), np.int64),
        entry=np.empty((sum(entries), 4), np.uint32),
        order=np.empty((d, sum(largest)), np.uint32),
        place=records.codes.astype(np.uint32),
        owner=np.zeros(m, np.uint8),
        moved=np.arange(m, dtype=np.uint32),
        spare=np.empty(m, np.uint32),
        span=np.stack([np.zeros_like(sizes), sizes]),
        counter=np.empty(1 << digit_bits(m), np.int64),
        dependency=np.zeros((3, d)),
        tried=np.zeros(d, np.bool_),
    )
    form_set(sets, 0, m)
    return sets


@kernel
def cut_some(sets, k, rule, enough):
    """Go on until so many records more are in classes, or all are; how many they were. rule: MEDIAN or CLOSE_K."""
    done = 0
    while sets.current[0] >= 0 and done < enough:
        level = sets.current[0]
        q, last = -1, NO_ENTRY
        if sets.level[level, RECORDS] >= 2 * k:
            q, last = find_cut(sets, level, k, rule)
        if q < 0:
            members = take_all(sets, level)
            done += put_into_class(sets, members, sets.level[level, BEGIN])
            sets.current[0] = level - 1
            continue
        members, is_lower = take_smaller(sets, level, q, last)
        records = leave(sets, level, members)
        begin = sets.level[level, BEGIN]
        if is_lower:
            sets.level[level, BEGIN] += members
        else:
            begin += sets.level[level, MEMBERS]
        if records < 2 * k:
            done += put_into_class(sets, members, begin)
        else:
            for p in range(len(sets.offset)):
                sets.span[0, p], sets.span[1, p] = sets.mapped[level, p, START], sets.mapped[level, p, END]
            form_set(sets, level + 1, members)
            sets.level[level + 1, BEGIN] = begin
            sets.current[0] = level + 1
    return done


@kernel
def find_cut(sets, level, k, rule):
    """The attribute to cut and the last entry of the lower part; -1 where there is none."""
    d = sets.mapped.shape[1]
    measure_dependency(sets, level)
    sets.tried[:] = False
    for _ in range(d):
        q = np.int64(-1)  # a plain -1 would have callees compiled once more, for that constant
        for other in range(d):
            if not sets.tried[other] and (q < 0 or is_less_dependent(sets, level, other, q)):
                q = np.int64(other)
        sets.tried[q] = True
        if sets.mapped[level, q, DISTINCT] > 1:
            last = median_cut(sets, level, q, k) if rule == MEDIAN else close_k_cut(sets, level, q, k)
            if last != NO_ENTRY:
                return q, last
    return -1, NO_ENTRY


@kernel
def measure_dependency(sets, level):
    """w1 * DEP * k by attribute, into dependency[0]. Whole numbers are exact for as many records as costs are."""
    records = sets.level[level, RECORDS]
    d = sets.mapped.shape[1]
    weight = 0.0  # w1
    for q in range(d):
        pro, squares = sets.mapped[level, q, DISTINCT], sets.mapped[level, q, SQUARES]
        # The sum of squares about the mean, from that about the mean rounded down: no large numbers cancel.
        mean, rest = records // pro, records % pro
        about = squares - 2 * mean * records + mean * mean * pro - rest * rest // pro
        deviation = 0.0
        if pro > 1:
            deviation = np.sqrt((about - (rest * rest % pro) / pro) / (pro - 1))
        sets.dependency[1, q] = records / pro
        sets.dependency[2, q] = deviation
        weight = max(weight, sets.dependency[1, q], deviation)
    for q in range(d):
        sets.dependency[0, q] = weight * weight * sets.dependency[1, q] + sets.dependency[2, q]


@kernel
def is_less_dependent(sets, level, q, other):
    """Does attribute q depend less than the other? Where they have as many values, whole numbers decide."""
    if sets.mapped[level, q, DISTINCT] == sets.mapped[level, other, DISTINCT]:
        return sets.mapped[level, q, SQUARES] < sets.mapped[level, other, SQUARES]
    return sets.dependency[0, q] < sets.dependency[0, other]


@kernel
def median_cut(sets, level, q, k):
    """Eq. 7: the last entry of the lower part, none where a part has fewer than k."""
    records = sets.level[level, RECORDS]
    at, end = sets.offset[q], sets.mapped[level, q, END]
    last = np.int64(sets.entry[at + end, AFTER])
    lower = sets.ppa[at + last]
    while lower < (records + 1) // 2:
        last = np.int64(sets.entry[at + last, AFTER])
        lower += sets.ppa[at + last]
    if sets.entry[at + last, AFTER] == end:
        lower -= sets.ppa[at + last]
        last = np.int64(sets.entry[at + last, BEFORE])
    return last if k <= lower <= records - k else NO_ENTRY


@kernel
def close_k_cut(sets, level, q, k):
    """Eq. 8: the last entry of the lower part, none where a part has fewer than k."""
    records = sets.level[level, RECORDS]
    at, end = sets.offset[q], sets.mapped[level, q, END]
    pre = np.int64(sets.entry[at + end, AFTER])
    lower = sets.ppa[at + pre]
    if records <= 3 * k - 1:
        best, smaller = NO_ENTRY, k - 1  # d_entropy
        while lower <= records - k:
            if min(lower, records - lower) > smaller:
                best, smaller = pre, min(lower, records - lower)
            pre = np.int64(sets.entry[at + pre, AFTER])
            lower += sets.ppa[at + pre]
        return best
    while lower < k:
        pre = np.int64(sets.entry[at + pre, AFTER])
        lower += sets.ppa[at + pre]
    if lower > records - k:
        return NO_ENTRY
    fin = np.int64(sets.entry[at + end, BEFORE])
    upper = sets.ppa[at + fin]
    while upper < k:
        fin = np.int64(sets.entry[at + fin, BEFORE])
        upper += sets.ppa[at + fin]
    return pre if lower <= upper else np.int64(sets.entry[at + fin, BEFORE])


@kernel
def take_smaller(sets, level, q, last):
    """The part of fewer distinct records, into ``moved``: how many, and whether it is the lower part."""
    at, end = sets.offset[q], sets.mapped[level, q, END]
    members = sets.level[level, MEMBERS]
    # From both ends at once, so that the time is that of the end which is nearer to the cut.
    low, high = np.int64(sets.entry[at + end, AFTER]), np.int64(sets.entry[at + end, BEFORE])
    lower, upper = np.int64(sets.entry[at + low, HELD]), np.int64(sets.entry[at + high, HELD])
    while low != last and sets.entry[at + high, BEFORE] != last:
        low, high = np.int64(sets.entry[at + low, AFTER]), np.int64(sets.entry[at + high, BEFORE])
        lower += sets.entry[at + low, HELD]
        upper += sets.entry[at + high, HELD]
    if low != last:
        lower = members - upper
    is_lower = 2 * lower <= members
    first = np.int64(sets.entry[at + end, AFTER] if is_lower else sets.entry[at + last, AFTER])
    stop = np.int64(sets.entry[at + last, AFTER] if is_lower else end)
    return take(sets, level, q, first, stop), is_lower


@kernel
def take_all(sets, level):
    """The distinct records of a set, into ``moved``: how many."""
    end = sets.mapped[level, 0, END]
    return take(sets, level, np.int64(0), np.int64(sets.entry[sets.offset[0] + end, AFTER]), end)


@kernel
def take(sets, level, q, first, stop):
    """The distinct records of the entries from first to before stop, into ``moved``: how many."""
    at, members = sets.offset[q], 0
    while first != stop:
        for i in range(sets.entry[at + first, FIRST], sets.entry[at + first + 1, FIRST]):
            if sets.owner[sets.order[q, i]] == level:
                sets.moved[members] = sets.order[q, i]
                members += 1
        first = np.int64(sets.entry[at + first, AFTER])
    return members


@kernel
def leave(sets, level, members):
    """Take the first of ``moved`` out of the counts of a set: how many records they stand for."""
    entry, ppa, mapped = sets.entry, sets.ppa, sets.mapped[level]
    records = 0
    for i in range(members):
        record = sets.moved[i]
        weight = sets.weights[record]
        records += weight
        for q in range(len(sets.offset)):
            at = sets.offset[q]
            here = at + np.int64(sets.place[record, q])
            mapped[q, SQUARES] -= weight * (2 * ppa[here] - weight)
            ppa[here] -= weight
            entry[here, HELD] -= np.uint32(1)
            if entry[here, HELD] == 0:
                before, after = entry[here, BEFORE], entry[here, AFTER]
                entry[at + np.int64(before), AFTER] = after
                entry[at + np.int64(after), BEFORE] = before
                mapped[q, DISTINCT] -= 1
    sets.level[level, MEMBERS] -= members
    sets.level[level, RECORDS] -= records
    return records


@kernel
def put_into_class(sets, members, begin):
    """Make the first of ``moved`` a class, at that place of the line: how many records it has."""
    records = 0
    for i in range(members):
        sets.owner[sets.moved[i]] = IN_A_CLASS
        sets.line[begin + i] = sets.moved[i]
        records += sets.weights[sets.moved[i]]
    sets.begins[begin] = True
    return records


@kernel
def form_set(sets, level, members):
    """Make the first of ``moved`` the set of a level. Their places are from span[0] to before span[1]."""
    base = 0
    if level > 0:
        base = sets.level[level - 1, BASE] + sets.level[level - 1, SIZE]
    records = 0
    for i in range(members):
        sets.owner[sets.moved[i]] = level
        records += sets.weights[sets.moved[i]]
    sets.level[level, BASE], sets.level[level, SIZE] = base, members
    sets.level[level, MEMBERS], sets.level[level, RECORDS] = members, records
    for q in range(len(sets.offset)):
        line = by_place(sets, q, members)
        at = sets.offset[q]
        first = np.int64(0)
        if level > 0:
            first = sets.mapped[level - 1, q, END] + 1
        end, value = first, np.int64(-1)
        for i in range(members):
            record = line[i]
            if sets.place[record, q] != value:
                value = np.int64(sets.place[record, q])
                sets.entry[at + end, HELD] = 0
                sets.entry[at + end, FIRST] = base + i
                sets.ppa[at + end] = 0
                end += 1
            sets.entry[at + end - 1, HELD] += np.uint32(1)
            sets.ppa[at + end - 1] += sets.weights[record]
            sets.order[q, base + i] = record
            sets.place[record, q] = end - 1
        sets.entry[at + end, FIRST] = base + members
        sets.entry[at + end, AFTER], sets.entry[at + first, BEFORE] = first, end
        squares = np.int64(0)
        for here in range(first, end):
            sets.entry[at + here, AFTER], sets.entry[at + here + 1, BEFORE] = here + 1, here
            squares += sets.ppa[at + here] * sets.ppa[at + here]
        sets.mapped[level, q, START], sets.mapped[level, q, END] = first, end
        sets.mapped[level, q, DISTINCT], sets.mapped[level, q, SQUARES] = end - first, squares


@kernel
def by_place(sets, q, members):
    """The first of ``moved`` in the order of their places along q; ``moved`` itself may be rearranged.

    Sorted digit by digit from the lowest, with about as many digits as there are records to sort: a domain that is
    wide beside them costs one more pass and not its width.
    """
    line, other, counter = sets.moved, sets.spare, sets.counter
    start, width = sets.span[0, q], sets.span[1, q] - sets.span[0, q]
    bits = digit_bits(members)
    mask, shift = (1 << bits) - 1, 0
    while (width - 1) >> shift > 0:
        largest = min((width - 1) >> shift, mask)
        counter[: largest + 1] = 0
        for i in range(members):
            counter[((np.int64(sets.place[line[i], q]) - start) >> shift) & mask] += 1
        before = 0
        for digit in range(largest + 1):
            before, counter[digit] = before + counter[digit], before
        for i in range(members):
            digit = ((np.int64(sets.place[line[i], q]) - start) >> shift) & mask
            other[counter[digit]] = line[i]
            counter[digit] += 1
        line, other = other, line
        shift += bits
    return line


@kernel
def digit_bits(members):
    """The bits of a digit by which so many records are sorted."""
    bits = 4
    while members >> bits > 0:
        bits += 1
    return bits
