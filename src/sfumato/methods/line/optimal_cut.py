"""Optimal k-anonymity of ordered records (Ghinita 2007, section 3, Fig. 3; section 5.1).

Once the records are ordered along a line, dynamic programming finds the best partition into runs of consecutive
records:

    Opt(i) = min over j of Opt(j) + (i - j) * NCP(records j + 1 to i),    k <= i - j <= 2k - 1

since a run of 2k or more can always be cut without adding loss. This is the optimum over all partitions into runs, and
not over all partitions, even for one numeric quasi-identifier, as the paper claims: 0, 1, 1, 1, 1, 1, 1, 4 loses less
with k = 3 if 0, 1 and 4 are one class. With ``box`` costs NCP is that of the true multi-dimensional box (Hilb in the
paper), with ``extent`` costs it is the distance on the line (HilbFast).

Differs from the paper: costs are exact integers (``losses.exact_costs``) and a tie goes to the shorter class, so the
result is the same on every machine. The costs of a block of records are computed side by side, attribute by attribute,
by several threads; only the recurrence is serial. It looks back 2k - 1 records and stores one small number per record.
The cost of a run does not depend on k, so several k share the costs and have separate recurrences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, in_turns, slices
from sfumato.losses.exact_costs import CLIMB, DIFFERENCE, TABLE, Costs, total_cost
from sfumato.methods.line.diverse_cut import diverse_cuts, needs_joining
from sfumato.methods.line.line import Line
from sfumato.methods.merge_failing import join_failing
from sfumato.methods.method import BATCH_CLASSES, ClassBatch, Records
from sfumato.orderings.ordering import Keys, Ordering
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import bits_for, repeated, row_order

POSITION_BITS = 62
BLOCK_COSTS = 1 << 17  # costs computed at once: such a block fits in the cache of a core
BOXES = 1 << 13  # boxes that one thread computes at once
KEYS = 1 << 16  # keys that one thread computes at once


USE = {
    "hilbert": "for numbers alone, or as the published method; with any requirement",
    "hilbert-fast": "when time matters more than loss, above all at large k",
}


@dataclass(frozen=True, kw_only=True)
class OptimalOneDimensional:
    """Order the records along a line, then cut the line optimally."""

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
            return f"the optimal cut along {self.ordering.title}, by the loss of the true boxes; time O(k N d)"
        return f"the optimal cut along {self.ordering.title}, by the distance along it; time O(k N), more loss"

    @property
    def use(self) -> str:
        return USE.get(self.name, f"to compare orderings: this one is {self.ordering.title}")

    separates = False

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: the line is cut for it, or classes are merged."""

    def meets(self, requirements: Requirements) -> bool:
        return requirements.decided_by_kernel

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        line = line_of(records, self.ordering)
        cut = partial(self._cuts, records, line, requirements.least_class, progress)
        position = partial(_positions, line)
        yield from best_classes(records, requirements, line.at, lambda: line.rows, position, cut, progress)

    def below(self, limit: int, records: Records, requirements: Requirements, progress: Progress) -> ClassBatch | None:
        """Return the classes if their total cost is below ``limit``, else None, as soon as that is certain."""
        line, cut = line_of(records, self.ordering), partial(np.array, [0, records.count], np.int64)
        if not (requirements.attributes or requirements.person is not None):
            k = requirements.least_class
            cuts = best_cuts(len(line.at), [k], self._costs(records, line), progress, limit).get(k)
            if cuts is None:
                return None
            cut = partial(np.asarray, cuts)
        position = partial(_positions, line)
        batches = best_classes(records, requirements, line.at, lambda: line.rows, position, cut, progress)
        batch = ClassBatch.joined(list(batches))
        cost = total_cost(batch.starts, batch.low, batch.high, records.costs.layout, records.costs.units)
        return batch if cost < limit else None

    def foresee(self, records: Records, many_k: Sequence[int], progress: Progress) -> None:
        """Compute the cuts for several k at once, where runs share lines: the cost of a class does not depend on k."""
        if records.lines is None:
            return
        line = line_of(records, self.ordering)
        costs_of = self._costs(records, line)
        for group in _overlapping(k for k in many_k if k <= records.count):
            for k, cuts in best_cuts(len(line.at), group, costs_of, progress).items():
                line.cuts[self.cost, k] = cuts

    def _cuts(self, records: Records, line: Line, k: int, progress: Progress) -> NDArray[np.int64]:
        known = line.cuts.get((self.cost, k))
        if known is not None:
            progress.advance(len(line.at))
            return known
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
    """Yield the classes along a line. at: uint32[n], the distinct record at each place.

    The functions are called only where needed: ``rows_of`` returns the row and ``position_of`` the position on the line
    of every place, ``cut`` where the line is best cut for k alone.
    """
    if requirements.attributes or requirements.person is not None:
        yield from diverse_classes(records, requirements, position_of(), rows_of(), at, None, progress)
        return
    tasks: list[Callable[[], NDArray[Any]]] = [cut, rows_of]
    cuts, rows = in_threads(lambda task: task(), tasks)
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
    """Yield the classes along a line under requirements on sensitive values or persons; ``parts``: see diverse_cuts."""
    cuts, rows, at = diverse_cuts(records, requirements, position, rows, at, parts)
    progress.advance(len(at))
    if requirements.decided_by_kernel and needs_joining(requirements):
        batch = ClassBatch(rows, cuts, *boxes_of(records.codes, at, cuts))
        # One by one. If unions may break a requirement, the engine tests classes that show the same values again.
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


# Returns the costs of all runs of some lengths that end in a block of places: int64[lengths, last - first].
BlockCosts = Callable[[int, int, range], NDArray[np.int64]]


def box_costs_of(codes: Codes, at: NDArray[np.uint32], costs: Costs) -> BlockCosts:
    """Return the costs of the true boxes. ``at`` is the record at each place."""

    def block(first: int, last: int, lengths: range) -> NDArray[np.int64]:
        result = np.zeros((len(lengths), last - first), np.int64)
        buffer = np.empty((3, last - first + lengths.stop - 2), codes.dtype)
        run_box_costs(codes, at, first, last, lengths.start, costs.layout, costs.units, buffer, result)
        return result

    return block


def extent_positions(keys: Keys, count: int) -> NDArray[np.int64]:
    """Return the positions on a line of ``count`` records: as many leading bits as keep the sum within 62 bits."""
    return keys.leading(62 - bits_for(count + 1))


def extent_costs_of(position: NDArray[np.int64]) -> BlockCosts:
    """Return the costs by the distance on the line. ``position`` is that of each place."""

    def block(first: int, last: int, lengths: range) -> NDArray[np.int64]:
        result = np.zeros((len(lengths), last - first), np.int64)
        extent_costs(position, first, last, lengths.start, result)
        return result

    return block


def line_of(records: Records, ordering: Ordering) -> Line:
    """Return the records in the order of their keys; where lines are shared, an existing line is reused."""
    if records.lines is not None and ordering.name in records.lines:
        return records.lines[ordering.name]
    weights = np.diff(records.starts)
    keys_of = ordering.fitted(records.codes, weights, records.domains, records.seed or 0)
    parts = in_threads(lambda part: keys_of(records.codes[slice(*part)]), slices(len(records.codes), KEYS))
    keys = Keys(np.concatenate([part.words for part in parts]), parts[0].length)
    order = row_order(keys.fields(), len(records.codes))
    at = repeated(order, np.append(0, np.cumsum(weights[order])))
    line = Line(keys, order, at, records.rows, records.starts)
    if records.lines is not None:
        records.lines[ordering.name] = line
    return line


def boxes_of(codes: Codes, at: NDArray[np.uint32], cuts: NDArray[np.int64]) -> tuple[Codes, Codes]:
    """Return the smallest box around each run of the line between two cuts, computed by several threads."""
    parts = in_threads(lambda part: boxes(codes, at, cuts[part[0] : part[1] + 1]), slices(len(cuts) - 1, BOXES))
    return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])


def _overlapping(many_k: Iterable[int]) -> list[list[int]]:
    """Return the distinct k, ascending, in groups that need the costs of the same runs, or of the next longer ones."""
    groups: list[list[int]] = []
    for k in sorted(set(many_k)):
        if groups and k <= 2 * groups[-1][-1]:
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def optimal_cuts(count: int, k: int, costs_of: BlockCosts, progress: Progress) -> NDArray[np.int64]:
    """Return where the best partition of ``count`` ordered records is cut, both ends included. count: at least k."""
    return best_cuts(count, [k], costs_of, progress)[k]


def best_cuts(
    count: int, many_k: Sequence[int], costs_of: BlockCosts, progress: Progress, limit: int | None = None
) -> dict[int, NDArray[np.int64]]:
    """Return where the best partition is cut, for each of several ascending k, both ends included.

    The costs of runs are computed once for all k. With a limit the result is empty as soon as no partition can cost
    less: each has a cut among any 2k - 1 prefixes in a row, so it costs at least the least Opt of the last ones.
    """
    # For a k above half the records there is only one class. Costs times lengths stay below INFINITE only for runs
    # within the table, so the recurrence does not apply to tables shorter than its longest run.
    cuts_by_k = {k: np.array([0, count], np.int64) for k in many_k if count < 2 * k}
    remaining = [k for k in many_k if k not in cuts_by_k]
    if not remaining:
        progress.advance(count)
        return cuts_by_k
    # The length, minus k, of the last class of each prefix, and Opt of the last prefixes.
    choices = {k: np.zeros(count, choice_type(k)) for k in remaining}
    recent = {k: no_prefixes(k) for k in remaining}
    if not extend_cuts(costs_of, 0, count, recent, choices, progress, limit):
        return {}
    for k in remaining:
        cuts = np.empty(count // k + 1, np.int64)
        cuts_by_k[k] = cuts[follow_choices(choices[k], k, cuts) :]
    return cuts_by_k


def choice_type(k: int) -> np.dtype[Any]:
    """Return the type that holds the length of a class, minus k."""
    return np.min_scalar_type(k - 1)


def no_prefixes(k: int) -> NDArray[np.int64]:
    """Return Opt of the last 2k - 1 prefixes before the first record."""
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
    """Continue the recurrence over the places first..last-1, for each of several ascending k.

    recent: by k, see ``no_prefixes``; updated. choices: by k, filled at these places. Returns False, early, when every
    cost has reached the limit.
    """
    many_k = list(recent)
    lengths = range(many_k[0], 2 * many_k[-1])
    places = max(BLOCK_COSTS // len(lengths), 256)
    buffer = np.empty(places + 4 * many_k[-1], np.int64)

    def extend(block: tuple[int, int], costs: NDArray[np.int64]) -> bool:
        for k in many_k:
            costs_of_k = costs[k - lengths.start : 2 * k - lengths.start]
            extend_optimum(costs_of_k, k, block[0], recent[k], buffer, choices[k])
        goes_on = limit is None or any(int(recent[k].min()) < limit for k in many_k)
        progress.advance((block[1] if goes_on else last) - block[0])
        return goes_on

    blocks = [(first + begin, first + end) for begin, end in slices(last - first, places)]
    return in_turns(lambda block: costs_of(*block, lengths), extend, blocks)


@kernel
def run_box_costs(codes, at, first, last, shortest, layout, units, buffer, result):
    """Add to ``result`` the cost of the box of every run of ``shortest`` or more places that ends in first..last-1.

    codes: uint[m, d], C-order. at: uint32[n], the record at each place. layout, units: see losses.exact_costs.Costs.
    buffer: uint[3, places + longest - 1], of the type of the codes, overwritten. result: int64[lengths, last - first];
    runs that would begin before place 0 get the cost of a shorter one.
    """
    longest = shortest + len(result) - 1
    places, reach = last - first, longest - 1
    column, low, high = buffer[0], buffer[1], buffer[2]
    for q in range(codes.shape[1]):
        form, stride, full = layout[q, 0], np.uintp(layout[q, 2]), layout[q, 3]
        cost = units[layout[q, 1] :]
        for t in range(places + reach):
            column[t] = codes[at[max(first - reach + t, 0)], q]
        for t in range(places):
            low[t] = column[reach + t]
            high[t] = low[t]
        for length in range(2, longest + 1):
            # Loops over slices with one running index: only these compile to vector instructions.
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
                    line[t] += min(cost[stride + np.uintp(high[t])] - cost[np.uintp(low[t])], full)
            elif form == CLIMB:
                for t in range(places):
                    entry = np.uintp(low[t]) * stride * np.uintp(2)
                    while cost[entry] < np.int64(high[t]):
                        entry += np.uintp(2)
                    line[t] += cost[entry + np.uintp(1)]


@kernel
def extent_costs(position, first, last, shortest, result):
    """Write the distance on the line of every run of ``shortest`` or more places that ends in first..last-1.

    position: int64[n], ascending. result: int64[lengths, last - first].
    """
    for length in range(shortest, shortest + len(result)):
        for place in range(first, last):
            result[length - shortest, place - first] = position[place] - position[max(place - length + 1, 0)]


@kernel
def extend_optimum(costs, k, first, recent, buffer, choice):
    """Continue the recurrence over one block.

    costs: int64[k, places], by length - k. recent: int64[2k - 1], Opt of the last 2k - 1 prefixes, updated.
    buffer: int64[>= places + 4k], overwritten. choice: uint[n], filled from ``first`` on.
    """
    places, reach = costs.shape[1], 2 * k - 1
    # optimum[reach + t] is Opt of the prefix that ends at place first + t
    optimum, best, length_of = buffer[2 * k :], buffer[:k], buffer[k : 2 * k]
    for t in range(reach):
        optimum[t] = recent[t]
    for begin in range(0, places, k):
        # Opt of k prefixes in a row depends only on earlier prefixes, so they are computed side by side.
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
    """Follow the choices back from the end; return where in ``cuts`` the cuts begin, which ascend from 0 to n.

    choice: uint[n]. cuts: int64[classes + 1] or longer, filled from its end.
    """
    end, i = len(choice), len(cuts) - 1
    while end > 0:
        cuts[i] = end
        end -= np.int64(choice[end - 1]) + k
        i -= 1
    cuts[i] = 0
    return i


def boxes(codes: Codes, at: NDArray[np.uint32], cuts: NDArray[np.int64]) -> tuple[Codes, Codes]:
    """Return the smallest box around each run cuts[i]..cuts[i + 1]-1 of the line: two uint[classes, d]."""
    low, high = (np.empty((len(cuts) - 1, codes.shape[1]), codes.dtype) for _ in range(2))
    fill_boxes(codes, at, cuts, low, high)
    return low, high


@kernel
def fill_boxes(codes, at, cuts, low, high):
    """Write the smallest box around each run cuts[i]..cuts[i + 1]-1 of the line. low, high: uint[classes, d]."""
    classes, d = low.shape
    for i in range(classes):
        for q in range(d):
            low[i, q] = codes[at[cuts[i]], q]
            high[i, q] = low[i, q]
        for place in range(cuts[i] + 1, cuts[i + 1]):
            for q in range(d):
                low[i, q] = min(low[i, q], codes[at[place], q])
                high[i, q] = max(high[i, q], codes[at[place], q])
