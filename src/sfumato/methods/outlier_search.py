"""Records that are left out because the others then lose less: a search with a price on every record left out.

The price is the ``suppression_cost`` of the policy times all the information of a record. The search lowers what the
classes cost plus the price of the records outside them; records whose absence saves no more than the price stay.

Whether a record is worth its price only shows when the classes are formed again without it, so the search tries sets of
records. It takes them from the beginning of two lines:

- *Dear rows.* From each class the row goes first without which its box costs least, then the next, up to ``PEELED`` of
  them, or all that are left if they are dear. A row stands in the line by what the rows of its stretch save on average.
  So either a few rows go whose absence shrinks the box, or a whole class.
- *Isolated rows.* The distance to the k - 1 nearest neighbours says how wide any class around a row must be.

Each round leaves out some further rows, by either line, forms the classes again and keeps the better result. After a
gain the next round takes more rows, without one it takes fewer. The search ends when a single row gains nothing, when
the limit is reached, when no row is dear and a round gains nothing, or with a round that gains less than one part in
ten thousand (``WORTH``). A longer search of a method (its effort) is too slow for this: the set is found with quick
classes, then compared with leaving out nobody, and with sets from the better classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import ABOVE_CODES, INFINITE, NONE
from sfumato.kernels.decorator import inlined_kernel, kernel
from sfumato.losses.exact_costs import box_cost, total_cost
from sfumato.methods.clustering.kd_tree import build_kd_tree, nearest_neighbours
from sfumato.methods.level_parts import every_part_holds
from sfumato.methods.method import FAST, ClassBatch, Records
from sfumato.progress import Progress
from sfumato.requirements import Requirements

WORTH = 10_000  # a round must gain one part in this many for another to follow
ROUNDS_TO_LIMIT = 4  # the first rounds leave out this part of the limit each
MORE, FEWER = 2, 4  # a gain is followed by a round with so many times its rows, no gain by one with this part of them
SEARCHES = 4  # long searches without some records that follow the one with all of them
PEELED = 64  # rows that are taken from a class one by one
LOWER_COSTS = (0.5, 0.2, 0.1, 0.05, 0.0)
NOTHING = np.empty(0, np.uint32)

Rows = NDArray[np.uint32]


@dataclass(frozen=True)
class Trial:
    """Classes of all records but those left out. loss: the exact cost of the classes; decisions: how they arose."""

    left_out: Rows
    classes: ClassBatch
    loss: int
    decisions: dict[str, Any]


@dataclass(frozen=True)
class OutlierSearch:
    """The search on a table. most: how many rows may go; price: what each costs, in the units of exact costs."""

    records: Records
    requirements: Requirements
    most: int
    price: int
    classes_of: Callable[[Records], ClassBatch]
    progress: Progress

    def best(self) -> tuple[Trial, list[Trial]]:
        """Return the result with the least cost, and the trials with quick classes, all records first."""
        effort = self.records.effort
        if effort.is_quick:
            return self._quick()
        quick, trials = replace(self, records=replace(self.records, effort=FAST))._quick()
        if effort.seconds is None:
            return self._searched(quick), trials
        if not len(quick.left_out):
            return self._trial(NOTHING), trials
        # Half of the time for all records, so that leaving out never loses to not leaving out.
        half = replace(self.records, effort=replace(effort, seconds=effort.seconds / 2))
        searches = replace(self, records=half)
        return self._less(searches._trial(NOTHING), searches._trial(quick.left_out)), trials

    def _quick(self) -> tuple[Trial, list[Trial]]:
        best = self._trial(NOTHING)
        at_once = self._round(best, self.most)  # it also shows what a lower price would leave out
        trials, step = [best, *at_once], -(-self.most // ROUNDS_TO_LIMIT)
        while step > 0 and len(best.left_out) < self.most and not self.progress.stopped:
            room = min(step, self.most - len(best.left_out))
            tried = self._round(best, room)
            trials += tried
            better = self._less(best, *tried)
            if better is best:
                # Fewer rows may still gain something, but only if the absence of some saves more than they cost.
                step = room // FEWER if len(self._dear(best)) else 0
                continue
            gain, best, step = self._cost(best) - self._cost(better), better, room * MORE
            if gain * WORTH <= self._cost(best):
                break
        return self._less(best, *at_once), trials

    def _searched(self, quick: Trial) -> Trial:
        """Compare long searches: with all records, without those of the quick search, and without dear ones."""
        everybody = best = self._trial(NOTHING)
        searches, step = SEARCHES if self.records.effort.is_thorough else 1, -(-self.most // 2)
        if len(quick.left_out):
            best, searches = self._less(best, self._trial(quick.left_out)), searches - 1
        start = everybody  # what the quick search left out may fill the limit, so the dear rows go instead of them
        while searches > 0 and step > 0 and len(start.left_out) < self.most and not self.progress.stopped:
            dear = self._dear(start)
            room = min(step, self.most - len(start.left_out), len(dear))
            tried = self._tried(start, dear, room)
            if tried is None:
                break
            searches -= 1
            if self._cost(tried) < self._cost(start):
                start = tried
            else:
                step = room // FEWER
        return self._less(best, start)

    def _round(self, start: Trial, count: int) -> list[Trial]:
        """Leave out ``count`` rows beside those of a trial, by either line."""
        lines = self._dear(start), self._isolated[~np.isin(self._isolated, start.left_out)]
        tried = [self._tried(start, line, count) for line in lines]
        return [trial for trial in tried if trial is not None]

    def _dear(self, trial: Trial) -> Rows:
        return dear_rows(trial.classes, self.records, self.price)

    @cached_property
    def _isolated(self) -> Rows:
        return isolated_rows(self.records, self.requirements)

    def _tried(self, start: Trial, line: Rows, count: int) -> Trial | None:
        """Leave out the first ``count`` rows of a line, too; None if there is none, or the rest cannot be released."""
        more = line[:count]
        left_out = np.concatenate([start.left_out, more])
        rest = self.records.without(left_out)
        if not len(more) or not rest.count or not every_part_holds(rest, self.requirements):
            return None
        return self._trial(left_out)

    def _trial(self, left_out: Rows) -> Trial:
        batch = self.classes_of(self.records.without(left_out))
        costs = self.records.costs
        loss = total_cost(batch.starts, batch.low, batch.high, costs.layout, costs.units)
        return Trial(left_out, batch, loss, dict(self.progress.decisions))

    def _cost(self, trial: Trial) -> int:
        return _priced(self.price, trial)

    def _less(self, first: Trial, *others: Trial) -> Trial:
        """Return the trial with the least cost; of equal ones the first."""
        return min([first, *others], key=self._cost)


def estimates(
    trials: Sequence[Trial], records: Records, own_cost: float, *, already: int
) -> list[dict[str, float | int]]:
    """Return what lower suppression costs would leave out and gain, by the trials of a search: estimates.

    A search with that cost would try other sets too. gain: how much less a released record loses on average, as a
    share of what it loses with all records. already: how many records a requirement has made leave before the search.
    """
    full = records.costs.full
    found: list[dict[str, float | int]] = []
    before = trials[0].loss / records.count
    for cost in LOWER_COSTS if before else ():
        if cost >= own_cost:
            continue
        price = round(cost * full)
        best = min(trials, key=partial(_priced, price))
        count = len(best.left_out)
        gain = 1 - best.loss / (records.count - count) / before
        found.append({"suppression_cost": cost, "suppressed": already + count, "gain": round(gain, 6)})
    return found


def _priced(price: int, trial: Trial) -> int:
    return trial.loss + price * len(trial.left_out)


def isolated_rows(records: Records, requirements: Requirements) -> Rows:
    """Return all rows, those first whose nearest neighbours are farthest away."""
    tree = build_kd_tree(records.codes, np.diff(records.starts), records.costs)
    reach = np.empty(len(records.codes), np.int64)
    reach[tree.order] = nearest_neighbours(tree, requirements.least_class, records.costs, lambda _: None).reach
    rows: Rows = records.rows[np.argsort(-np.repeat(reach, np.diff(records.starts)), kind="stable")]
    return rows


def dear_rows(batch: ClassBatch, records: Records, price: int) -> Rows:
    """Return the rows whose absence saves more than the price if all other classes stay; those that save most first."""
    # Places among the records do not depend on the order of the input, row numbers do.
    place_of_row = np.empty(int(records.rows.max()) + 1, np.int64)
    place_of_row[records.rows] = np.arange(records.count)
    record_at = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
    place = place_of_row[batch.rows]
    costs = records.costs
    saving = stretch_savings(records.codes, record_at[place], batch.starts, price, costs.layout, costs.units)
    dear = np.flatnonzero(saving > price)
    order = np.lexsort([place[dear], -saving[dear]])
    rows: Rows = batch.rows[dear[order]]
    return rows


@kernel
def stretch_savings(codes, record_of, starts, price, layout, units):
    """Return for each position what the rows of its stretch save on average, 0 where that is not above the price.

    codes: uint[m, d]; record_of: int64[n], the record at each position; starts: int64[c + 1]; layout, units: see Costs.
    The rows of a class leave it one by one, each time the one without which the box costs least. A stretch is a part of
    this order: that which saves most on average from its first row on. Result: float64[n].
    """
    d = codes.shape[1]
    saving = np.zeros(starts[-1])
    order, loss = np.empty(PEELED, np.int64), np.empty(PEELED + 1, np.int64)
    low, high = np.zeros(d, np.int64), np.zeros(d, np.int64)
    lowest, highest = np.zeros((2, d), np.int64), np.zeros((2, d), np.int64)
    for class_id in range(len(starts) - 1):
        begin, end = starts[class_id], starts[class_id + 1]
        size = end - begin
        stays = np.ones(size, np.bool_)
        steps = min(size, PEELED)
        for step in range(steps):
            two_extremes(codes, record_of[begin:end], stays, lowest, highest)
            loss[step] = box_cost(lowest[0], highest[0], layout, units) * (size - step)
            least, leaving = INFINITE, NONE
            for position in range(size):
                if not stays[position]:
                    continue
                cost = np.int64(0)
                if step + 1 < size:
                    for q in range(d):
                        code = np.int64(codes[record_of[begin + position], q])
                        low[q] = lowest[1, q] if code == lowest[0, q] else lowest[0, q]
                        high[q] = highest[1, q] if code == highest[0, q] else highest[0, q]
                    cost = box_cost(low, high, layout, units)
                if cost < least:
                    least, leaving = cost, position
            stays[leaving] = False
            order[step] = leaving
            loss[step + 1] = least * (size - step - 1)
        first = 0
        while first < steps:
            most, last = 0.0, first
            for step in range(first + 1, steps + 1):
                mean = (loss[first] - loss[step]) / (step - first)
                if mean > most:
                    most, last = mean, step
            if most <= price:
                break
            for step in range(first, last):
                saving[begin + order[step]] = most
            first = last
        if steps < size and loss[first] > price * (size - first):  # what is not peeled is dear, too
            for position in range(begin, end):
                saving[position] = max(saving[position], loss[first] / (size - first))
    return saving


@inlined_kernel
def two_extremes(codes, record_of, stays, lowest, highest):
    """Write the two lowest and the two highest codes of the rows that stay, by attribute, into int64[2, d] each."""
    lowest[:] = ABOVE_CODES
    highest[:] = NONE
    for position in range(len(record_of)):
        if not stays[position]:
            continue
        for q in range(codes.shape[1]):
            code = np.int64(codes[record_of[position], q])
            if code < lowest[0, q]:
                lowest[1, q], lowest[0, q] = lowest[0, q], code
            elif code < lowest[1, q]:
                lowest[1, q] = code
            if code > highest[0, q]:
                highest[1, q], highest[0, q] = highest[0, q], code
            elif code > highest[1, q]:
                highest[1, q] = code
