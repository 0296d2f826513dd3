"""Recursive cuts by information dependency (Wang, Xu and Sun 2011, section III).

A set of records is cut in two between two values of one attribute, and so are its parts, until no cut leaves k records
on either side. Along one attribute (the paper's mapping) a set has Pro different values, and PPA is the number of
records of each. The attribute that depends least on the others is tried first (eq. 4 to 6):

    DEP = w1 / k * |D| / Pro + w2 / k * (standard deviation of PPA),

where w1 is the largest of all means |D| / Pro and deviations over the attributes and w2 = 1 / w1. The cut is

- ``mapping-median`` (eq. 7): after the value of the middle record, so that both parts have equally many;
- ``mapping-median:values``, the second reading of eq. 7, whose d_1 to d_n may be the n values that occur: after the
  middle one of these, however many records each has;
- ``close-k`` (eq. 8): after the fewest values from below, or before the fewest from above, that have k records
  together, whichever has fewer records; sets of at most 3k - 1 records are instead cut where the entropy of the sizes
  of the two parts is largest, which is where they are most nearly equal.

Close-k removes about k records at a time, so the search for a cut must not scan the whole set. Every attribute keeps
the values that still occur as a linked list with their counts; a cut moves the part of fewer distinct records out of
these lists and leaves the other in place. A record moves at most log2(N) times and finding a cut takes O(k d) for
close-k, so the total time is about O(N d log N). The parts that were moved out are cut first, each within half the
space of the one before it: space for 2 N d is enough.

Differs from the paper: Pro is the number of different values (eq. 2 as printed gives one less than its example).
Deviations divide by Pro - 1, and are 0 for a single value. Where the middle record has the largest value, the cut is
before that value, since nothing is after it. The cut at d_fin is before it: as printed it can leave fewer than k.
The dependencies of all attributes are recomputed after a cut, because the counts of every attribute have changed.
Categories are mapped to their codes, in the order of the values or of the leaves of the taxonomy. Ties go to the first
attribute and to the lower cut. Equal records always stay together. Requirements other than k are met by merging
neighbouring classes, which may end in a single class where l leaves hardly any choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.methods.line.line import expand
from sfumato.methods.line.optimal_cut import boxes
from sfumato.methods.method import BATCH_CLASSES, ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements

MEDIAN, CLOSE_K, MEDIAN_VALUE = 0, 1, 2
RULES = {"median": MEDIAN, "close-k": CLOSE_K, "values": MEDIAN_VALUE}
STEP_RECORDS = 1 << 16  # records that are put into classes before progress is reported
NO_ENTRY = np.int64(-1)
IN_A_CLASS = 255  # in place of a level, of which there are at most 32

BASE, SIZE, MEMBERS, RECORDS, BEGIN = 0, 1, 2, 3, 4  # columns of OpenSets.level
START, END, DISTINCT, SQUARES = 0, 1, 2, 3  # of OpenSets.mapped
HELD, BEFORE, AFTER, FIRST = 0, 1, 2, 3  # of OpenSets.entry


@dataclass(frozen=True, kw_only=True)
class InformationDependency:
    """Cut the attribute of least information dependency; then cut the parts."""

    point: Literal["median", "values", "close-k"]
    paper = "Wang, Xu, Sun: Multi-dimensional k-anonymity based on mapping for protecting privacy, 2011"
    separates = False

    @property
    def name(self) -> str:
        return {"median": "mapping-median", "values": "mapping-median:values", "close-k": "close-k"}[self.point]

    @property
    def summary(self) -> str:
        where = {
            "median": "in the middle",
            "values": "at the middle value",
            "close-k": "close to k records from an end",
        }
        return f"recursive cuts {where[self.point]} of the attribute of least information dependency; time O(N d log N)"

    @property
    def use(self) -> str:
        if self.point != "close-k":
            return "to compare with published results; with k alone"
        return "to compare with published results: more and wider classes than mapping-median on numbers; with k alone"

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: classes of k are merged until it holds."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel and not requirements.attributes

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        weights = np.diff(records.starts)
        rule = RULES[self.point]
        sets = _whole(records, weights)
        while sets.current[0] >= 0:
            progress.advance(int(cut_sets(sets, requirements.least_class, rule, STEP_RECORDS)))
        cuts = np.append(np.flatnonzero(sets.begins), len(sets.line))
        rows = np.empty_like(records.rows)
        expand(records.rows, records.starts, sets.line, rows)
        starts = np.append(0, np.cumsum(weights[sets.line]))[cuts]
        for first in range(0, len(cuts) - 1, BATCH_CLASSES):
            part = slice(first, first + BATCH_CLASSES + 1)
            low, high = boxes(records.codes, sets.line, cuts[part])
            bounds = starts[part]
            yield ClassBatch(rows[bounds[0] : bounds[-1]], bounds - bounds[0], low, high)


class OpenSets(NamedTuple):
    """The sets that have yet to be cut, and the classes so far.

    There is one set per level, at most half as large as that of the level before, and the last is cut first. A set owns
    a range of ``order`` and, attribute by attribute, a range of the entries of PPA: one for each value, ascending,
    linked to the previous and next entries that still have records, in a ring closed by one more entry at the end.

    weights: int64[m], the copies of each distinct record. line: uint32[m], the distinct records class by class; begins:
    bool[m], whether a class begins here. current: int64[1], the level that is cut, -1 when all is done.
    level: int64[levels, 5], by set: where it begins in ``order``, its distinct records at first and now, its records
    now, and where they will begin in ``line``. mapped: int64[levels, d, 4], by set and attribute: its entries from
    START to before END, Pro, and the sum of squares of PPA. offset: int64[d], where the entries of an attribute begin.
    ppa: int64[entries], the records of an entry. entry: uint32[entries, 4]: its distinct records, the entries before
    and after it, counted from the offset, and where it begins in ``order``; it ends where the next one begins.
    order: uint32[d, < 2m], distinct records by value, including those that left the set. entry_of: uint32[m, d], the
    entry of a distinct record. owner: uint8[m], the level of its set.
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
    entry_of: NDArray[np.uint32]
    owner: NDArray[np.uint8]
    moved: NDArray[np.uint32]
    spare: NDArray[np.uint32]
    span: NDArray[np.int64]
    counter: NDArray[np.int64]
    dependency: NDArray[np.float64]
    tried: NDArray[np.bool_]


def _whole(records: Records, weights: NDArray[np.int64]) -> OpenSets:
    """Return all records as one open set."""
    m, d = records.codes.shape
    sizes = np.array([domain.size for domain in records.domains], np.int64)
    largest = [m >> level for level in range(m.bit_length())]  # the distinct records of a set
    entries = [sum(min(size, members) + 1 for members in largest) for size in sizes.tolist()]
    sets = OpenSets(
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
        entry_of=records.codes.astype(np.uint32),
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
def cut_sets(sets, k, rule, enough):
    """Cut until ``enough`` more records are in classes, or all are; return how many. rule: see RULES."""
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
        records = remove_moved(sets, level, members)
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


@inlined_kernel
def find_cut(sets, level, k, rule):
    """Return the attribute to cut and the last entry of the lower part; -1 where there is none."""
    d = sets.mapped.shape[1]
    measure_dependency(sets, level)
    sets.tried[:] = False
    for _ in range(d):
        q = np.int64(-1)  # with a plain -1 callees would be compiled again for that literal
        for other in range(d):
            if not sets.tried[other] and (q < 0 or is_less_dependent(sets, level, other, q)):
                q = np.int64(other)
        sets.tried[q] = True
        if sets.mapped[level, q, DISTINCT] > 1:
            if rule == MEDIAN:
                last = median_cut(sets, level, q, k)
            elif rule == MEDIAN_VALUE:
                last = middle_value_cut(sets, level, q, k)
            else:
                last = close_k_cut(sets, level, q, k)
            if last != NO_ENTRY:
                return q, last
    return -1, NO_ENTRY


@inlined_kernel
def measure_dependency(sets, level):
    """Write w1 * DEP * k by attribute into dependency[0]. The integers are exact for as many records as costs are."""
    records = sets.level[level, RECORDS]
    d = sets.mapped.shape[1]
    weight = 0.0  # w1
    for q in range(d):
        pro, squares = sets.mapped[level, q, DISTINCT], sets.mapped[level, q, SQUARES]
        # The sum of squares about the mean, from that about the mean rounded down, so that no large numbers cancel.
        mean, rest = records // pro, records % pro
        spread = squares - 2 * mean * records + mean * mean * pro - rest * rest // pro
        deviation = 0.0
        if pro > 1:
            deviation = np.sqrt((spread - (rest * rest % pro) / pro) / (pro - 1))
        sets.dependency[1, q] = records / pro
        sets.dependency[2, q] = deviation
        weight = max(weight, sets.dependency[1, q], deviation)
    for q in range(d):
        sets.dependency[0, q] = weight * weight * sets.dependency[1, q] + sets.dependency[2, q]


@inlined_kernel
def is_less_dependent(sets, level, q, other):
    """Return whether attribute q depends less than the other. With equally many values, integers decide."""
    if sets.mapped[level, q, DISTINCT] == sets.mapped[level, other, DISTINCT]:
        return sets.mapped[level, q, SQUARES] < sets.mapped[level, other, SQUARES]
    return sets.dependency[0, q] < sets.dependency[0, other]


@inlined_kernel
def median_cut(sets, level, q, k):
    """Apply eq. 7: return the last entry of the lower part, NO_ENTRY where a part has fewer than k records."""
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


@inlined_kernel
def middle_value_cut(sets, level, q, k):
    """Apply eq. 7 to the values: return the last entry of the lower part, NO_ENTRY where a part has fewer than k."""
    at, end = sets.offset[q], sets.mapped[level, q, END]
    last = np.int64(sets.entry[at + end, AFTER])
    lower = sets.ppa[at + last]
    for _ in range((sets.mapped[level, q, DISTINCT] + 1) // 2 - 1):
        last = np.int64(sets.entry[at + last, AFTER])
        lower += sets.ppa[at + last]
    return last if k <= lower <= sets.level[level, RECORDS] - k else NO_ENTRY


@inlined_kernel
def close_k_cut(sets, level, q, k):
    """Apply eq. 8: return the last entry of the lower part, NO_ENTRY where a part has fewer than k records."""
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


@inlined_kernel
def take_smaller(sets, level, q, last):
    """Write the part of fewer distinct records into ``moved``; return how many, and whether it is the lower part."""
    at, end = sets.offset[q], sets.mapped[level, q, END]
    members = sets.level[level, MEMBERS]
    # Go from both ends at once, so that the time depends on the end nearer to the cut.
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


@inlined_kernel
def take_all(sets, level):
    """Write the distinct records of a set into ``moved``; return how many."""
    end = sets.mapped[level, 0, END]
    return take(sets, level, np.int64(0), np.int64(sets.entry[sets.offset[0] + end, AFTER]), end)


@inner_kernel
def take(sets, level, q, first, stop):
    """Write the distinct records of the entries from first to before stop into ``moved``; return how many."""
    at, members = sets.offset[q], 0
    while first != stop:
        for i in range(sets.entry[at + first, FIRST], sets.entry[at + first + 1, FIRST]):
            if sets.owner[sets.order[q, i]] == level:
                sets.moved[members] = sets.order[q, i]
                members += 1
        first = np.int64(sets.entry[at + first, AFTER])
    return members


@inlined_kernel
def remove_moved(sets, level, members):
    """Subtract the first ``members`` of ``moved`` from the counts of a set; return their number of records."""
    entry, ppa, mapped = sets.entry, sets.ppa, sets.mapped[level]
    records = 0
    for i in range(members):
        record = sets.moved[i]
        weight = sets.weights[record]
        records += weight
        for q in range(len(sets.offset)):
            at = sets.offset[q]
            entry_number = at + np.int64(sets.entry_of[record, q])
            mapped[q, SQUARES] -= weight * (2 * ppa[entry_number] - weight)
            ppa[entry_number] -= weight
            entry[entry_number, HELD] -= np.uint32(1)
            if entry[entry_number, HELD] == 0:
                before, after = entry[entry_number, BEFORE], entry[entry_number, AFTER]
                entry[at + np.int64(before), AFTER] = after
                entry[at + np.int64(after), BEFORE] = before
                mapped[q, DISTINCT] -= 1
    sets.level[level, MEMBERS] -= members
    sets.level[level, RECORDS] -= records
    return records


@inner_kernel
def put_into_class(sets, members, begin):
    """Turn the first ``members`` of ``moved`` into a class at ``begin`` in the line; return its number of records."""
    records = 0
    for i in range(members):
        sets.owner[sets.moved[i]] = IN_A_CLASS
        sets.line[begin + i] = sets.moved[i]
        records += sets.weights[sets.moved[i]]
    sets.begins[begin] = True
    return records


@kernel
def form_set(sets, level, members):
    """Turn the first ``members`` of ``moved`` into the set of a level. Their entries are span[0] to before span[1]."""
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
        line = sorted_by_entry(sets, q, members)
        at = sets.offset[q]
        first = np.int64(0)
        if level > 0:
            first = sets.mapped[level - 1, q, END] + 1
        end, value = first, np.int64(-1)
        for i in range(members):
            record = line[i]
            if sets.entry_of[record, q] != value:
                value = np.int64(sets.entry_of[record, q])
                sets.entry[at + end, HELD] = 0
                sets.entry[at + end, FIRST] = base + i
                sets.ppa[at + end] = 0
                end += 1
            sets.entry[at + end - 1, HELD] += np.uint32(1)
            sets.ppa[at + end - 1] += sets.weights[record]
            sets.order[q, base + i] = record
            sets.entry_of[record, q] = end - 1
        sets.entry[at + end, FIRST] = base + members
        sets.entry[at + end, AFTER], sets.entry[at + first, BEFORE] = first, end
        squares = np.int64(0)
        for here in range(first, end):
            sets.entry[at + here, AFTER], sets.entry[at + here + 1, BEFORE] = here + 1, here
            squares += sets.ppa[at + here] * sets.ppa[at + here]
        sets.mapped[level, q, START], sets.mapped[level, q, END] = first, end
        sets.mapped[level, q, DISTINCT], sets.mapped[level, q, SQUARES] = end - first, squares


@inlined_kernel
def sorted_by_entry(sets, q, members):
    """Return the first ``members`` of ``moved`` in the order of their entries along q; ``moved`` may be rearranged.

    They are sorted digit by digit from the lowest, with about as many digits as there are records to sort: a domain
    that is much wider costs one more pass and not its width.
    """
    line, other, counter = sets.moved, sets.spare, sets.counter
    start, width = sets.span[0, q], sets.span[1, q] - sets.span[0, q]
    bits = digit_bits(members)
    mask, shift = (1 << bits) - 1, 0
    while (width - 1) >> shift > 0:
        largest = min((width - 1) >> shift, mask)
        counter[: largest + 1] = 0
        for i in range(members):
            counter[((np.int64(sets.entry_of[line[i], q]) - start) >> shift) & mask] += 1
        before = 0
        for digit in range(largest + 1):
            before, counter[digit] = before + counter[digit], before
        for i in range(members):
            digit = ((np.int64(sets.entry_of[line[i], q]) - start) >> shift) & mask
            other[counter[digit]] = line[i]
            counter[digit] += 1
        line, other = other, line
        shift += bits
    return line


@kernel
def digit_bits(members):
    """Return the bits of a digit for sorting ``members`` records."""
    bits = 4
    while members >> bits > 0:
        bits += 1
    return bits
