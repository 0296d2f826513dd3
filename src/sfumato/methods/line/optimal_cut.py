"""Optimal k-anonymity of ordered records (Ghinita 2007, section 3, Fig. 3; section 5.1).

Once the records are in a line, the best partition into runs of consecutive records is found by dynamic programming:

    Opt(i) = min over j of Opt(j) + (i - j) * NCP(records j + 1 to i),    k <= i - j <= 2k - 1

since a run of 2k or more can always be cut without adding loss. For one numeric quasi-identifier this is the optimum
over all partitions. With ``box`` costs NCP is that of the true multi-dimensional box (Hilb in the paper), with
``extent`` costs it is the distance on the line (HilbFast).

Differs from the paper: costs are exact integers (``losses.costs``) and a tie goes to the shorter class, so the result
is the same on every machine. The costs of a block of records are computed beside each other, attribute by attribute, by
several threads; only the recurrence is serial. It looks back 2k - 1 records and remembers one small number a record.
What a run costs depends on no k, so several k share the costs, and only their recurrences are apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices, thread_count
from sfumato.losses.exact_costs import CLIMB, DIFFERENCE, TABLE, Costs, total_cost
from sfumato.methods.line.diverse_cut import diverse_cuts, needs_joining
from sfumato.methods.line.line import Line
from sfumato.methods.merge_failing import join_failing
from sfumato.methods.method import ClassBatch, Records
from sfumato.orderings.ordering import Keys, Ordering
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import bits_for, sort_rows

POSITION_BITS = 62
BLOCK_COSTS = 1 << 17  # costs computed at once: a block then stays within a core's cache
BATCH_CLASSES = 1 << 16
BOXES = 1 << 13  # boxes that one thread finds at once


USE = {
    "hilbert": "numbers alone, or as the published method; with any requirement",
    "hilbert-fast": "when time matters more than loss, at large k above all",
}


@dataclass(frozen=True, kw_only=True)
class OptimalOneDimensional:
    """Order the records, then cut the line in the best way."""

    ordering: Ordering
    cost: Literal["box", "extent"]

    @property
    def name(self) -> str:
        return self.ordering.name if self.cost == "box" else f"{self.ordering.name}-fast"

    @property
    def paper(self) -> str:
        return self.ordering.paper

    @property
    def summary(self) -> str:
        if self.cost == "box":
            return f"the best cut along {self.ordering.title}, by the loss of the true boxes; time O(k N d)"
        return f"the best cut along {self.ordering.title}, by the distance on it; time O(k N), more loss"

    @property
    def use(self) -> str:
        return USE.get(self.name, f"to compare the orderings: along {self.ordering.title}")

    separates = False

    def check(self, requirements: Requirements) -> None:
        """Any requirement can be met: the line is cut for it, or classes are joined."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.tested

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        line = line_of(records, self.ordering)
        cut = partial(self._cuts, records, line, requirements.least_class, progress)
        position = partial(_positions, line)
        yield from best_classes(records, requirements, line.at, lambda: line.rows, position, cut, progress)

    def below(self, limit: int, records: Records, requirements: Requirements, progress: Progress) -> ClassBatch | None:
        """The classes if all records together pay less than ``limit`` in them; it ends once it is clear they do not."""
        line, cut = line_of(records, self.ordering), partial(np.array, [0, records.count], np.int64)
        if not (requirements.attributes or requirements.person is not None):
            k = requirements.least_class
            cuts = best_cuts(len(line.at), [k], self._costs(records, line), progress, limit).get(k)
            if cuts is None:
                return None
            cut = partial(np.asarray, cuts)
        position = partial(_positions, line)
        found = best_classes(records, requirements, line.at, lambda: line.rows, position, cut, progress)
        batch = ClassBatch.joined(list(found))
        cost = total_cost(batch.starts, batch.low, batch.high, records.costs.layout, records.costs.units)
        return batch if cost < limit else None

    def foresee(self, records: Records, many_k: Sequence[int], progress: Progress) -> None:
        """Find the cuts for several k in one go, where runs share lines: what a class costs depends on no k."""
        if records.lines is None:
            return
        line = line_of(records, self.ordering)
        costs_of = self._costs(records, line)
        for together in _overlapping(k for k in many_k if k <= records.count):
            for k, cuts in best_cuts(len(line.at), together, costs_of, progress).items():
                line.cuts[self.cost, k] = cuts

    def _cuts(self, records: Records, line: Line, k: int, progress: Progress) -> NDArray[np.int64]:
        found = line.cuts.get((self.cost, k))
        if found is not None:
            progress.advance(len(line.at))
            return found
        return optimal_cuts(len(line.at), k, self._costs(records, line), progress)

    def _costs(self, records: Records, line: Line) -> BlockCosts:
        if self.cost == "box":
            return box_costs_of(records.codes, line.at, records.costs)
        return extent_costs_of(extent_positions(line.keys, len(line.at))[line.at])


def best_classes(
    records: Records,
    requirements: Requirements,
    at: NDArray[np.uint32],
    rows_of: Callable[[], NDArray[np.uint32]],
    position_of: Callable[[], NDArray[np.int64]],
    cut: Callable[[], NDArray[np.int64]],
    progress: Progress,
) -> Iterator[ClassBatch]:
    """The classes along a line. ``at`` is the distinct record at each place; the rest is asked for where needed:

    the row and the position on the line of every place, and where it is best cut for k alone.
    """
    if requirements.attributes or requirements.person is not None:
        yield from diverse_classes(records, requirements, position_of(), rows_of(), at, None, progress)
        return
    work: list[Callable[[], NDArray[Any]]] = [cut, rows_of]
    cuts, rows = in_threads(lambda part: part(), work)
    yield from _batches(records, rows, at, cuts)


def diverse_classes(
    records: Records,
    requirements: Requirements,
    position: NDArray[np.int64],
    rows: NDArray[np.uint32],
    at: NDArray[np.uint32],
    parts: NDArray[np.int64] | None,
    progress: Progress,
) -> Iterator[ClassBatch]:
    """The same under requirements on sensitive values or on persons; ``parts`` as in diverse_cuts."""
    cuts, rows, at = diverse_cuts(records, requirements, position, rows, at, parts)
    progress.advance(len(at))
    if requirements.tested and needs_joining(requirements):
        batch = ClassBatch(rows, cuts, *boxes_of(records.codes, at, cuts))
        # Unions keep these requirements, so classes that show the same may be looked at one by one.
        yield join_failing(batch, records, requirements, lambda low, _: np.arange(len(low)))
        return
    yield from _batches(records, rows, at, cuts)


def _batches(
    records: Records, rows: NDArray[np.uint32], at: NDArray[np.uint32], cuts: NDArray[np.int64]
) -> Iterator[ClassBatch]:
    for first in range(0, len(cuts) - 1, BATCH_CLASSES):
        part = cuts[first : first + BATCH_CLASSES + 1]
        low, high = boxes_of(records.codes, at, part)
        yield ClassBatch(rows[part[0] : part[-1]], part - part[0], low, high)


def _positions(line: Line) -> NDArray[np.int64]:
    return line.keys.leading(POSITION_BITS)[line.at]


# What all runs of some lengths that end in a block of places cost: int64[lengths, last - first], by length and place.
BlockCosts = Callable[[int, int, range], NDArray[np.int64]]


def box_costs_of(codes: Codes, at: NDArray[np.uint32], costs: Costs) -> BlockCosts:
    """The costs of the true boxes. ``at`` is the record at each place."""

    def block(first: int, last: int, lengths: range) -> NDArray[np.int64]:
        result = np.zeros((len(lengths), last - first), np.int64)
        room = np.empty((3, last - first + lengths.stop - 2), codes.dtype)
        box_costs(codes, at, first, last, lengths.start, costs.layout, costs.units, room, result)
        return result

    return block


def extent_positions(keys: Keys, count: int) -> NDArray[np.int64]:
    """Where records lie on a line of so many: as many leading bits as leave the sum over all within 62 bits."""
    return keys.leading(62 - bits_for(count + 1))


def extent_costs_of(position: NDArray[np.int64]) -> BlockCosts:
    """The costs by the distance on the line. ``position`` is that of each place."""

    def block(first: int, last: int, lengths: range) -> NDArray[np.int64]:
        result = np.zeros((len(lengths), last - first), np.int64)
        extent_costs(position, first, last, lengths.start, result)
        return result

    return block


def line_of(records: Records, ordering: Ordering) -> Line:
    """The records in the order of their keys; where lines are shared, the one that was made before."""
    if records.lines is not None and ordering.name in records.lines:
        return records.lines[ordering.name]
    weights = np.diff(records.starts)
    keys = ordering.fitted(records.codes, weights, records.domains, records.seed or 0)(records.codes)
    order = sort_rows(keys.fields(), len(records.codes)).rows
    line = Line(keys, order, np.repeat(order, weights[order]), records.rows, records.starts)
    if records.lines is not None:
        records.lines[ordering.name] = line
    return line


def boxes_of(codes: Codes, at: NDArray[np.uint32], cuts: NDArray[np.int64]) -> tuple[Codes, Codes]:
    """The smallest box around each run of the line between two cuts."""
    parts = in_threads(lambda part: boxes(codes, at, cuts[part[0] : part[1] + 1]), slices(len(cuts) - 1, BOXES))
    return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])


def _overlapping(many_k: Iterable[int]) -> list[list[int]]:
    """The different k, ascending; those together that ask for the costs of the same runs, or of the next longer."""
    groups: list[list[int]] = []
    for k in sorted(set(many_k)):
        if groups and k <= 2 * groups[-1][-1]:
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def optimal_cuts(count: int, k: int, costs_of: BlockCosts, progress: Progress) -> NDArray[np.int64]:
    """Where the best partition of ``count`` ordered records is cut, both ends included. ``count`` is at least k."""
    return best_cuts(count, [k], costs_of, progress)[k]


def best_cuts(
    count: int, many_k: Sequence[int], costs_of: BlockCosts, progress: Progress, limit: int | None = None
) -> dict[int, NDArray[np.int64]]:
    """The same for every one of some ascending k. The costs of runs are computed once for all of them.

    With a limit it ends, with nothing for any k, as soon as no partition can cost less: each has a cut among any 2k - 1
    prefixes in a row, so it costs at least the least Opt of the last ones.
    """
    # One class is all there can be for a k above half the records. Costs times lengths stay below INFINITE only for
    # runs within the table, so the recurrence is not for tables that are shorter than its longest run.
    found = {k: np.array([0, count], np.int64) for k in many_k if count < 2 * k}
    rest = [k for k in many_k if k not in found]
    if not rest:
        progress.advance(count)
        return found
    # The length, less k, of the last class when i records are in, and Opt of the last prefixes.
    choices = {k: np.zeros(count, choice_type(k)) for k in rest}
    recent = {k: no_prefixes(k) for k in rest}
    if not extend_cuts(costs_of, 0, count, recent, choices, progress, limit):
        return {}
    for k in rest:
        cuts = np.empty(count // k + 1, np.int64)
        found[k] = cuts[follow_choices(choices[k], k, cuts) :]
    return found


def choice_type(k: int) -> np.dtype[Any]:
    """What holds the length of a class, less k."""
    return np.min_scalar_type(k - 1)


def no_prefixes(k: int) -> NDArray[np.int64]:
    """Opt of the last 2k - 1 prefixes before the first record."""
    return np.append(np.full(2 * k - 2, INFINITE, np.int64), 0)


def extend_cuts(
    costs_of: BlockCosts,
    first: int,
    last: int,
    recent: Mapping[int, NDArray[np.int64]],
    choices: Mapping[int, NDArray[np.unsignedinteger]],
    progress: Progress,
    limit: int | None = None,
) -> bool:
    """Carry the recurrence on over the places first..last-1, for every one of some ascending k.

    recent: by k, see ``no_prefixes``; updated. choices: by k, filled at these places. It ends early, and says so, when
    every cost is at the limit or above.
    """
    many_k = list(recent)
    lengths = range(many_k[0], 2 * many_k[-1])
    places = max(BLOCK_COSTS // len(lengths), 256)
    room = np.empty(places + 4 * many_k[-1], np.int64)
    ranges = deque((begin, min(begin + places, last)) for begin in range(first, last, places))
    waiting: deque[tuple[int, int, Future[NDArray[np.int64]]]] = deque()
    with ThreadPoolExecutor(thread_count()) as pool:
        while ranges or waiting:
            while ranges and len(waiting) < 2 * thread_count():
                begin, end = ranges.popleft()
                waiting.append((begin, end, pool.submit(costs_of, begin, end, lengths)))
            begin, end, future = waiting.popleft()
            costs = future.result()
            for k in many_k:
                of_k = costs[k - lengths.start : 2 * k - lengths.start]
                extend_optimum(of_k, k, begin, recent[k], room, choices[k])
            progress.advance(end - begin)
            if limit is not None and all(int(recent[k].min()) >= limit for k in many_k):
                progress.advance(last - end)
                return False
    return True


@kernel
def box_costs(codes, at, first, last, shortest, layout, units, room, result):
    """Add to ``result`` the cost of the box of every run of ``shortest`` or more places that ends in first..last-1.

    codes: uint[m, d], C-order. at: uint32[n], the record at each place. layout, units: see losses.costs.Costs.
    room: uint[3, places + longest - 1], of the type of the codes, overwritten. result: int64[lengths, last - first];
    runs that would begin before place 0 get the cost of a shorter one.
    """
    longest = shortest + len(result) - 1
    places, reach = last - first, longest - 1
    column, low, high = room[0], room[1], room[2]
    for q in range(codes.shape[1]):
        form, stride, full = layout[q, 0], np.uintp(layout[q, 2]), layout[q, 3]
        cost = units[layout[q, 1] :]
        for t in range(places + reach):
            column[t] = codes[at[max(first - reach + t, 0)], q]
        for t in range(places):
            low[t] = column[reach + t]
            high[t] = low[t]
        for length in range(2, longest + 1):
            # Loops over slices with one running index: only these become vector instructions.
            before = column[reach - length + 1 :]
            for t in range(places):
                low[t] = min(low[t], before[t])
                high[t] = max(high[t], before[t])
            if length < shortest:
                continue
            line = result[length - shortest]
            if form == TABLE:
                for t in range(places):
                    line[t] += cost[np.uintp(low[t]) * stride + np.uintp(high[t])]
            elif form == DIFFERENCE:
                for t in range(places):
                    line[t] += min(cost[np.uintp(high[t])] - cost[np.uintp(low[t])], full)
            elif form == CLIMB:
                for t in range(places):
                    place = np.uintp(low[t]) * stride * np.uintp(2)
                    while cost[place] < np.int64(high[t]):
                        place += np.uintp(2)
                    line[t] += cost[place + np.uintp(1)]


@kernel
def extent_costs(position, first, last, shortest, result):
    """The same with the distance on the line as the cost. position: int64[n], ascending."""
    for length in range(shortest, shortest + len(result)):
        for place in range(first, last):
            result[length - shortest, place - first] = position[place] - position[max(place - length + 1, 0)]


@kernel
def extend_optimum(costs, k, first, recent, room, choice):
    """Carry the recurrence on over one block.

    costs: int64[k, places], by length - k. recent: int64[2k - 1], Opt of the last 2k - 1 prefixes, updated.
    room: int64[>= places + 4k], overwritten. choice: uint[n], filled from ``first`` on.
    """
    places, reach = costs.shape[1], 2 * k - 1
    # optimum[reach + t] is Opt of the prefix that ends at place first + t
    optimum, best, length_of = room[2 * k :], room[:k], room[k : 2 * k]
    for t in range(reach):
        optimum[t] = recent[t]
    for begin in range(0, places, k):
        # Opt of k prefixes in a row depends only on those before them, so they are computed side by side.
        width = min(k, places - begin)
        for t in range(width):
            best[t] = INFINITE
            length_of[t] = 0
        for length in range(k, 2 * k):
            before, cost = optimum[reach + begin - length :], costs[length - k, begin:]
            for t in range(width):
                value = before[t] + length * cost[t]
                length_of[t] = length - k if value < best[t] else length_of[t]
                best[t] = min(best[t], value)
        for t in range(width):
            optimum[reach + begin + t] = best[t]
            choice[first + begin + t] = length_of[t]
    for t in range(reach):
        recent[t] = optimum[places + t]


@kernel
def follow_choices(choice, k, cuts):
    """Follow the choices back from the end: where the cuts begin, which ascend from 0 to n. choice: uint[n].

    cuts: int64[classes + 1] or longer, filled from its end.
    """
    end, place = len(choice), len(cuts) - 1
    while end > 0:
        cuts[place] = end
        end -= np.int64(choice[end - 1]) + k
        place -= 1
    cuts[place] = 0
    return place


def boxes(codes: Codes, at: NDArray[np.uint32], cuts: NDArray[np.int64]) -> tuple[Codes, Codes]:
    """The smallest box around each run cuts[i]..cuts[i + 1]-1 of the line: two uint[classes, d]."""
    low, high = (np.empty((len(cuts) - 1, codes.shape[1]), codes.dtype) for _ in range(2))
    fill_boxes(codes, at, cuts, low, high)
    return low, high


@kernel
def fill_boxes(codes, at, cuts, low, high):
    """The same, into the given arrays."""
    classes, d = low.shape
    for i in range(classes):
        for q in range(d):
            low[i, q] = codes[at[cuts[i]], q]
            high[i, q] = low[i, q]
        for place in range(cuts[i] + 1, cuts[i + 1]):
            for q in range(d):
                low[i, q] = min(low[i, q], codes[at[place], q])
                high[i, q] = max(high[i, q], codes[at[place], q])
