"""Improvement by exact solutions: the best classes that known boxes allow, in changing neighbourhoods.

After the search has settled, its classes are improved in neighbourhoods of some classes, each by a programme that an
integer solver solves (``exact_programme``). Where sizes and frequencies are all that classes must meet, the columns of
the programme are boxes. We begin with those of the present classes and generate others as the bound does: the dual
values of the relaxation are prices of the records, and for each record the box is added that leaves least for its
price (``boxes.box_search``), until no price is too high. If a neighbourhood has few boxes, we take all of them.
Under other requirements the columns are the classes that the search has seen, which meet them.

Every solution is checked: its classes must meet the requirements, and cost less in exact integers. Otherwise the
neighbourhood stays as it was. So the solver, which computes in floating point, decides nothing by itself.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.exact_costs import Costs, box_costs, total_cost
from sfumato.methods.boxes.box_search import least_slacks
from sfumato.methods.boxes.diversity_limits import no_limits
from sfumato.methods.boxes.neighbourhood import dearest_of_nodes
from sfumato.methods.clustering.kd_tree import build_kd_tree
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.search.annealed_improvement import AnnealedImprovement
from sfumato.methods.search.exact_programme import FrequencyLimit, PartitionProgramme
from sfumato.methods.search.improvement import SearchLimits
from sfumato.methods.search.mutable_classes import SearchPart
from sfumato.methods.search.shortfall import ROWS, ShortfallTests, lack_of_counted
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.requirements.conjunction import FREQUENCY, SIZE
from sfumato.tables.coding.domains import Codes

# Of a neighbourhood whose columns are boxes: classes and records; FEWEST classes take precedence over MOST_RECORDS.
CLASSES, CLASSES_UNDER_FREQUENCY, FEWEST, MOST_RECORDS = 10, 5, 4, 300
SEEN_RECORDS, SEEN_ROUNDS = 500, 20  # of a neighbourhood whose columns are classes, and the rounds they come from
MOST_PLACES = 1000  # beyond which boxes with high reduced costs are left out
NODES = 50  # of the integer solver
# Where all boxes have no more places, pairs of a box and a type in it, all are columns: the solution is an optimum.
ALL_PLACES, ALL_PLACES_UNDER_FREQUENCY = 1000, 500
GENERATIONS = 30  # of columns, where not all boxes are
MAX_PARTS = 200  # of the search for one box
TIGHT = 1e-6  # prices that are too high by a smaller share generate no column
PATIENCE, SETTLED = 2, 1000  # the search ends after PATIENCE rounds that gain less than 1 / SETTLED together
SHARE = 1 / 3  # of the seconds: the search before


class ExactImprovement(AnnealedImprovement):
    """Classes that are improved by search, then by exact solutions."""

    def __init__(self, batch: ClassBatch, records: Records, requirements: Requirements) -> None:
        super().__init__(batch, records, requirements)
        self._by_boxes = set(self._tests.kind.tolist()) <= {SIZE, FREQUENCY}
        self._seen: deque[tuple[NDArray[np.uint32], NDArray[np.int64]]] = deque(maxlen=SEEN_ROUNDS)
        self._until: float | None = None

    def improve(self, limits: SearchLimits, progress: Progress) -> str:
        """Improve the classes until a limit is reached; return why the search ended."""
        self._until = None if limits.seconds is None else time.monotonic() + limits.seconds
        search = limits if limits.seconds is None else SearchLimits(limits.rounds, limits.seconds * SHARE)
        super().improve(search, progress)
        total, gains = self.cost, [0] * PATIENCE
        for number in range(limits.rounds):
            gained = self._exact_round(number, progress)
            if progress.stopped:
                return f"interrupted in exact round {number + 1:,}"
            if self._out_of_time():
                return f"the time was over in exact round {number + 1:,}"
            total, gains = total - gained, [*gains[1:], gained]
            if number + 1 >= PATIENCE and sum(gains) * SETTLED <= total:
                return f"settled after {number + 1:,} exact rounds"
        return f"{limits.rounds:,} rounds"

    def _round(self, number: int, out_of_time: Callable[[], bool], progress: Progress) -> int:
        gained = super()._round(number, out_of_time, progress)
        if not self._by_boxes:
            self._seen.append((self._rows, self._starts))
        return gained

    def _exact_round(self, number: int, progress: Progress) -> int:
        """Make a round of search and one of exact solutions; return the gain."""
        gained = self._round(number, self._out_of_time, progress)
        self._rearrange()
        average = int(self._starts[-1]) / (len(self._starts) - 1)
        classes = CLASSES_UNDER_FREQUENCY if self._columns else CLASSES
        size = min(int(classes * average), MOST_RECORDS) if self._by_boxes else SEEN_RECORDS
        return gained + self._in_neighbourhoods(
            max(size, int(FEWEST * average)), self._solved, self._out_of_time, progress
        )

    def _out_of_time(self) -> bool:
        return self._until is not None and time.monotonic() > self._until

    def _solved(self, begin: int, end: int, owner: NDArray[np.int64], state: NDArray[np.uint64]) -> int:
        """Solve a neighbourhood; change ``owner`` and return the gain if its classes meet the requirements."""
        part, tests = self._part(begin, end)
        here = NeighbourhoodTypes.of(part, owner)
        seconds = None if self._until is None else max(self._until - time.monotonic(), 0.0)
        if self._by_boxes:
            limits = tuple(
                FrequencyLimit(here.values_of(attribute, int(self._tests.distinct[attribute])), int(l))
                for kind, attribute, l in zip(self._tests.kind, self._tests.attribute, self._tests.whole, strict=True)
                if kind == FREQUENCY
            )
            classes = here.solved_by_boxes(self._records, self._rules.least, limits, seconds)
        else:
            classes = here.solved_by_classes(self._seen_in(begin, end, here.type_of_row), self._records, seconds)
        changed = here.owners(classes)
        if changed is None or not _hold(part, changed, self._rules.least, tests):
            return 0
        gained = _cost(part, owner, self._records.costs) - _cost(part, changed, self._records.costs)
        if gained <= 0:
            return 0
        owner[:] = changed
        return gained

    def _seen_in(self, begin: int, end: int, type_of_row: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the classes of earlier rounds all of whose rows are in a neighbourhood, by type: int64[c, t]."""
        place = np.full(int(self._rows.max()) + 1, -1)
        place[self._rows[begin:end]] = type_of_row
        found = [np.empty((0, int(type_of_row.max()) + 1), np.int64)]
        for rows, starts in self._seen:
            types = place[rows]
            whole = np.minimum.reduceat(types, starts[:-1]) >= 0
            number = np.repeat(np.cumsum(whole) - 1, np.diff(starts))[np.repeat(whole, np.diff(starts))]
            counts = np.zeros((int(whole.sum()), found[0].shape[1]), np.int64)
            np.add.at(counts, (number, types[np.repeat(whole, np.diff(starts))]), 1)
            found.append(counts)
        return np.concatenate(found)


@dataclass(frozen=True)
class NeighbourhoodTypes:
    """The records of some classes, equal ones counted: types.

    type_of_row: int64[n]. codes: int64[t, d] and values: int64[t, a], of the types; weights: int64[t]. present:
    int64[c, t], how many records of each type the present classes have.
    """

    type_of_row: NDArray[np.int64]
    codes: NDArray[np.int64]
    values: NDArray[np.int64]
    weights: NDArray[np.int64]
    present: NDArray[np.int64]

    @classmethod
    def of(cls, part: SearchPart, owner: NDArray[np.int64]) -> NeighbourhoodTypes:
        both = np.concatenate([part.codes, part.values.astype(np.int64)], axis=1)
        types, type_of_row = np.unique(both, axis=0, return_inverse=True)
        type_of_row, d = type_of_row.ravel(), part.codes.shape[1]
        present = np.zeros((int(owner.max()) + 1, len(types)), np.int64)
        np.add.at(present, (owner, type_of_row), 1)
        return cls(type_of_row, types[:, :d], types[:, d:], present.sum(axis=0), present)

    def values_of(self, attribute: int, distinct: int) -> NDArray[np.int64]:
        """Return the value of each type, -1 for null."""
        values = self.values[:, attribute]
        return np.where(values < distinct, values, -1)

    def solved_by_boxes(
        self, records: Records, least: int, limits: tuple[FrequencyLimit, ...], seconds: float | None
    ) -> NDArray[np.int64]:
        """Return the best classes found in the boxes of the present ones and in those that prices generate."""
        unit, every = (
            self._unit(records.costs),
            self._every_box(least, ALL_PLACES_UNDER_FREQUENCY if limits else ALL_PLACES),
        )
        boxes = np.unique(self._boxes(self.present), axis=0) if every is None else every
        programme = self._programme(boxes, least, limits, records.costs, unit)
        for _ in range(GENERATIONS if every is None else 0):
            found = self._tight_boxes(programme.prices() * unit, least, records)
            more = np.unique(np.concatenate([boxes, found]), axis=0)
            if len(more) == len(boxes):
                break
            boxes, programme = more, self._programme(more, least, limits, records.costs, unit)
        if int(programme.inside.sum()) > MOST_PLACES:
            boxes = self._promising(boxes, programme, least)
            programme = self._programme(boxes, least, limits, records.costs, unit)
        box_of = {box: number for number, box in enumerate(map(tuple, boxes.tolist()))}
        start = np.zeros((len(boxes), len(self.weights)), np.int64)
        for box, counts in zip(map(tuple, self._boxes(self.present).tolist()), self.present, strict=True):
            start[box_of[box]] += counts
        counts, _ = programme.solve((start, np.empty(0, np.int64)), NODES, seconds)
        return counts[counts.any(axis=1)]

    def _promising(self, boxes: NDArray[np.int64], programme: PartitionProgramme, least: int) -> NDArray[np.int64]:
        """Return the boxes of the present classes, and those with the least reduced costs up to MOST_PLACES."""
        prices, reduced = programme.prices(), np.empty(len(boxes))
        for box, (inside, cost) in enumerate(zip(programme.inside, programme.cost, strict=True)):
            dearest = np.sort(np.repeat(prices[inside], np.minimum(self.weights[inside], least)))[-least:]
            reduced[box] = least * cost - dearest.sum()
        order = np.argsort(reduced, kind="stable")
        chosen = order[np.cumsum(programme.inside[order].sum(axis=1)) <= MOST_PLACES]
        return np.unique(np.concatenate([boxes[chosen], self._boxes(self.present)]), axis=0)

    def solved_by_classes(self, seen: NDArray[np.int64], records: Records, seconds: float | None) -> NDArray[np.int64]:
        """Return the best classes found among the present ones and those seen before."""
        others = np.unique(seen, axis=0)
        taken = np.concatenate([self.present, others])
        programme = PartitionProgramme(
            self.weights, 1, np.zeros((0, len(self.weights)), np.bool_), np.empty(0), taken,
            self._costs(self._boxes(taken), records.costs) * taken.sum(axis=1) / self._unit(records.costs),
        )  # fmt: skip
        start = np.repeat([1, 0], [len(self.present), len(others)])
        _, times = programme.solve((np.zeros((0, len(self.weights)), np.int64), start), NODES, seconds)
        return np.repeat(taken, times, axis=0)

    def owners(self, classes: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the class of each row, or None if the classes do not hold every record once. classes: int64[c, t]."""
        if classes.min(initial=0) < 0 or not np.array_equal(classes.sum(axis=0), self.weights):
            return None
        owner = np.empty(len(self.type_of_row), np.int64)
        in_order = np.tile(np.arange(len(classes)), len(self.weights))
        owner[np.argsort(self.type_of_row, kind="stable")] = np.repeat(in_order, classes.T.ravel())
        return owner

    def _boxes(self, classes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the box of each class, its lowest codes and then its highest: int64[c, 2 d]."""
        has = classes[:, :, None] > 0
        low = np.where(has, self.codes, np.iinfo(np.int64).max).min(axis=1)
        return np.concatenate([low, np.where(has, self.codes, -1).max(axis=1)], axis=1)

    def _every_box(self, least: int, most: int) -> NDArray[np.int64] | None:
        """Return all boxes that hold at least ``least`` records, or None where they have more than ``most`` places."""
        d, known = self.codes.shape[1], np.empty((0, 2 * self.codes.shape[1]), np.int64)
        added = np.concatenate([self.codes, self.codes], axis=1)
        while len(added):
            known = np.concatenate([known, added])
            if len(known) > most // 4:  # boxes have more than a few places each
                return None
            low = np.minimum(added[:, None, :d], self.codes).reshape(-1, d)
            high = np.maximum(added[:, None, d:], self.codes).reshape(-1, d)
            both = np.unique(np.concatenate([known, np.concatenate([low, high], axis=1)]), axis=0, return_index=True)
            added = both[0][both[1] >= len(known)]
        inside = self._inside(known)
        enough = inside @ self.weights >= least
        return np.unique(known[enough], axis=0) if int(inside[enough].sum()) <= most else None

    def _inside(self, boxes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each box holds each type: bool[b, t]."""
        d = self.codes.shape[1]
        outside: NDArray[np.bool_] = (self.codes < boxes[:, None, :d]) | (self.codes > boxes[:, None, d:])
        held: NDArray[np.bool_] = np.logical_not(np.logical_or.reduce(outside, axis=2))
        return held

    def _costs(self, boxes: NDArray[np.int64], costs: Costs) -> NDArray[np.int64]:
        d = self.codes.shape[1]
        low, high = np.ascontiguousarray(boxes[:, :d]), np.ascontiguousarray(boxes[:, d:])
        result: NDArray[np.int64] = box_costs(low, high, costs.layout, costs.units)
        return result

    def _unit(self, costs: Costs) -> float:
        """Return the mean cost of a record, by which costs are divided for the solver."""
        total = self._costs(self._boxes(self.present), costs) * self.present.sum(axis=1)
        return max(float(total.sum()) / int(self.weights.sum()), 1.0)

    def _programme(
        self, boxes: NDArray[np.int64], least: int, limits: tuple[FrequencyLimit, ...], costs: Costs, unit: float
    ) -> PartitionProgramme:
        inside = self._inside(boxes)
        no_classes = np.empty((0, len(self.weights)), np.int64)
        cost = self._costs(boxes, costs) / unit
        return PartitionProgramme(self.weights, least, inside, cost, no_classes, np.empty(0), limits)

    def _tight_boxes(self, prices: NDArray[np.float64], least: int, records: Records) -> NDArray[np.int64]:
        """Return a box for every record whose price is too high: prices are of use only where no box undercuts them.

        Types that differ in sensitive values alone have the price of the dearest of them: it decides which boxes are
        found, and not what they cost.
        """
        codes, at = np.unique(self.codes, axis=0, return_inverse=True)
        at = at.ravel()
        dearest, weights = np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
        np.maximum.at(dearest, at, np.rint(prices).astype(np.int64))
        np.add.at(weights, at, self.weights)
        tree = build_kd_tree(codes.astype(records.codes.dtype), weights, records.costs)
        in_tree = dearest[tree.order]
        order = np.argsort(in_tree, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        targets = order[in_tree[order] > 0]
        goals = np.minimum(tree.weights[targets], least) * in_tree[targets]
        shape = (len(targets), codes.shape[1])
        low: Codes = np.empty(shape, records.codes.dtype)
        high: Codes = np.empty(shape, records.codes.dtype)
        slack, box_slack = np.empty(len(targets), np.int64), np.empty(len(targets), np.int64)
        nearby, dearest_by_node = np.zeros_like(in_tree), dearest_of_nodes(tree, in_tree, rank, len(order))
        least_slacks(
            tree, targets, in_tree, 0, rank, nearby, dearest_by_node, least, goals, MAX_PARTS, no_limits(len(codes)),
            records.costs.layout, records.costs.units, (slack, box_slack, low, high),
        )  # fmt: skip
        tight = box_slack < goals - (goals * TIGHT).astype(np.int64)
        return np.concatenate([low, high], axis=1)[tight].astype(np.int64)


def _cost(part: SearchPart, owner: NDArray[np.int64], costs: Costs) -> int:
    """Return the cost of all records. owner: int64[n], the class of each row."""
    order = np.argsort(owner, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(owner)))
    low = np.minimum.reduceat(part.codes[order], starts[:-1], axis=0)
    high = np.maximum.reduceat(part.codes[order], starts[:-1], axis=0)
    return total_cost(starts, low, high, costs.layout, costs.units)


def _hold(part: SearchPart, owner: NDArray[np.int64], least: int, tests: ShortfallTests) -> bool:
    """Return whether every class meets the requirements."""
    begin = int(tests.space[ROWS])
    for class_id in range(int(owner.max()) + 1):
        rows = np.flatnonzero(owner == class_id)
        tests.space[begin : begin + len(rows)] = rows
        if not len(rows) or lack_of_counted(part.values, len(rows), least, tests) > 0:
            return False
    return True
