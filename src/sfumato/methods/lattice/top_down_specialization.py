"""Top-down specialization (Fung, Wang and Yu 2005), the single-dimensional baseline of LeFevre 2008, section 4.4.

Every attribute starts as its most general value. Repeatedly one value of one attribute is specialised, for all records
that show it: a category into the children of its node, a range of numbers into two at the threshold with the largest
information gain. The next value is the one with the best score: the information gain about the class divided by the
loss of anonymity, which is how much the smallest class would shrink; the gain itself where nothing is lost. This
continues as long as every class meets the requirements. The regions are a grid (``region_grid``).

A gain depends only on the records that show the value, so it is computed once, from counts by code and class. The loss
depends on all cuts and is counted again after each. Time O(S d N) for S specialisations of N distinct records.

Differs from the paper: any requirement is possible, not k alone. Several targets count with the weighted sum of their
gains. The first specialisation separates null from the values. Of equal scores the first attribute and the lowest value
win. A class shows the smallest box around its records instead of its cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.losses.prediction import bits
from sfumato.methods.class_counting import Counting
from sfumato.methods.coded_workload import Kinds
from sfumato.methods.lattice.region_grid import RegionGrid
from sfumato.methods.line.line import rows_along
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.trees.region_tree import RegionTree
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Domain

ROOT = 0  # of every taxonomy
DIGITS = 9  # gains are rounded to this many digits, so that the order of summation does not break ties


@dataclass(frozen=True, kw_only=True)
class TopDownSpecialization:
    """Specialise the most informative value about a class, in the same way in every record."""

    name = "tds"
    paper = "Fung, Wang, Yu: Top-down specialization for information and privacy preservation, ICDE 2005"
    summary = "the value that is most informative about a class is specialised in all records, then the next; O(S d N)"
    use = "as a baseline, or to learn a class when a value must be generalised in the same way in every record"
    separates = False
    tiles = True

    def check_workload(self, kinds: Kinds) -> None:
        if not kinds.classification:
            raise UsageError(
                "tds needs a column of classes to predict, but the workload has none. Add --target COLUMN, or "
                "[[workload.classification]] with its key target to the policy."
            )

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: a value is specialised only if all classes meet it, or classes are merged."""

    def meets(self, requirements: Requirements) -> bool:
        """Return whether unions keep the requirements: classes that show the same are tested one by one."""
        return requirements.closed_under_union

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        tree, rows = self.tree(records, requirements, progress)
        yield from tree.class_batches(rows)

    def tree(
        self, records: Records, requirements: Requirements, progress: Progress
    ) -> tuple[RegionTree, NDArray[np.uint32]]:
        """Return the regions, and the rows in the order of the leaves."""
        grid = self.grid(records, requirements)
        line = grid.line(records.codes)
        tree = grid.tree(records.codes, line, np.diff(records.starts))
        progress.advance(records.count)
        return tree, rows_along(records.rows, records.starts, line)

    def grid(self, records: Records, requirements: Requirements) -> RegionGrid:
        """Return the intervals of every attribute."""
        if not requirements.holds(Counting(records, requirements).whole).all():
            # Some records will be suppressed later; until then only k can be enforced.
            sizes = tuple(part for part in requirements.parts if part.attribute is None)
            requirements = replace(requirements, parts=sizes, joint=())
        search = _Search(records, requirements)
        while search.specialise():
            continue
        starts = tuple(np.array(sorted(value), np.int64) for value in search.starts)
        return RegionGrid(starts, tuple(domain.size for domain in records.domains))


@dataclass(frozen=True, eq=False)
class _Value:
    """A value that can be specialised.

    low, high: its codes. starts: int64, the first code of each part. nodes: the taxonomy node of each part. gain: the
    information gain of the parts about the classes. members: uint32, the distinct records that show the value; part:
    uint, the part that each of them would be in.
    """

    attribute: int
    low: int
    high: int
    starts: NDArray[np.int64]
    nodes: tuple[int, ...]
    gain: float
    members: NDArray[np.uint32]
    part: NDArray[np.unsignedinteger]


class _Search:
    """The specialisations so far: the values shown, and the cells that they form."""

    def __init__(self, records: Records, requirements: Requirements) -> None:
        self._records, self._requirements = records, requirements
        self._weights = np.diff(records.starts)
        self._counting = Counting(records, requirements)
        self._k_alone = requirements.decided_by_kernel and not requirements.attributes
        # If the cells that a specialisation will make all hold, so do the unions of them that it would make now.
        self._refusals_stay = all(part.closed_under_union for part in requirements.parts)
        self._cell = np.zeros(len(records.codes), np.int64)
        self._cells, self._smallest = 1, records.count
        self._importance, self._counts = _counts(records)
        self.starts: list[set[int]] = [{0} for _ in records.domains]
        self._open: list[_Value] = []
        everyone = np.arange(len(records.codes), dtype=np.uint32)
        for attribute, domain in enumerate(records.domains):
            self._add(attribute, 0, domain.size - 1, ROOT, everyone)

    def specialise(self) -> bool:
        """Specialise the best value that is allowed; return whether there was one."""
        scored = [(value, *self._score(value)) for value in self._open]
        scored.sort(key=lambda entry: (-entry[1], entry[0].attribute, entry[0].low))
        for value, _, smallest in scored:
            if smallest < self._requirements.least_class:  # cells only become smaller
                self._open.remove(value)
                continue
            cell, count = self._divided(value)
            if not self._k_alone and not self._holds(cell, count):
                if self._refusals_stay:
                    self._open.remove(value)
                continue
            self._open.remove(value)
            self._cell, self._cells, self._smallest = cell, count, smallest
            self.starts[value.attribute].update(value.starts.tolist())
            ends = np.append(value.starts[1:] - 1, value.high).tolist()
            for part, (start, end) in enumerate(zip(value.starts.tolist(), ends, strict=True)):
                self._add(value.attribute, start, end, value.nodes[part], value.members[value.part == part])
            return True
        return False

    def _score(self, value: _Value) -> tuple[float, int]:
        """Return the gain divided by the loss of anonymity, and the size of the smallest class afterwards."""
        parts = len(value.starts)
        new_cells = self._cell[value.members] * parts + value.part
        counts = np.bincount(new_cells, self._weights[value.members], minlength=self._cells * parts)
        smallest = min(self._smallest, int(counts[counts > 0].min()))
        lost = self._smallest - smallest
        return (value.gain / lost if lost else value.gain), smallest

    def _divided(self, value: _Value) -> tuple[NDArray[np.int64], int]:
        """Return the cells after a specialisation, and their number."""
        cell = self._cell.copy()
        cell[value.members] = self._cells + cell[value.members] * len(value.starts) + value.part
        numbers, cell = np.unique(cell, return_inverse=True)
        return cell.astype(np.int64), len(numbers)

    def _holds(self, cell: NDArray[np.int64], count: int) -> bool:
        owner = np.repeat(cell, self._weights)
        return bool(self._requirements.holds(self._counting.classes(self._records.rows, owner, count)).all())

    def _add(self, attribute: int, low: int, high: int, node: int, members: NDArray[np.uint32]) -> None:
        """Add a value to the open ones, if it can be specialised with a gain."""
        tables = [table[low : high + 1] for table in self._counts[attribute]]
        mixed = any(np.count_nonzero(table.sum(axis=0)) > 1 for table in tables)
        if low == high or not len(members) or not mixed:
            return
        domain = self._records.domains[attribute]
        nodes, starts = parts_of(domain, low, high, node)
        if not starts:
            threshold = best_threshold(tables, self._importance)
            if threshold is None:
                return
            nodes, starts = (ROOT, ROOT), (low, low + threshold)
        first = np.array(starts, np.int64)
        gain = round(float(gains(tables, self._importance, first[None, 1:] - low)[0]), DIGITS)
        codes = self._records.codes[members, attribute].astype(np.int64)
        part = (np.searchsorted(first, codes, side="right") - 1).astype(np.min_scalar_type(len(first)))
        self._open.append(_Value(attribute, low, high, first, nodes, gain, members, part))


def parts_of(domain: Domain, low: int, high: int, node: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the taxonomy nodes that a value is specialised into, and their first codes; none for a number range."""
    codes = domain.size - domain.has_null
    if low < codes <= high:  # separate null from the values
        return (ROOT, ROOT), (low, codes)
    if domain.tree is None:
        return (), ()
    children = np.flatnonzero(domain.tree.parent == node)
    children = children[np.argsort(domain.tree.first[children])]
    return tuple(children.tolist()), tuple(domain.tree.first[children].tolist())


def gains(
    tables: Sequence[NDArray[np.int64]], importance: Sequence[float], cuts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the information gain, in bits, of dividing a range of codes before each of the codes in a row of ``cuts``.

    tables: for each target int64[codes, classes], how many records have each code and class.
    """
    total = np.zeros(len(cuts))
    for table, weight in zip(tables, importance, strict=True):
        cumulative = np.zeros((len(table) + 1, table.shape[1]), np.int64)
        np.cumsum(table, axis=0, out=cumulative[1:])
        edges = np.concatenate([np.zeros((len(cuts), 1), np.int64), cuts, np.full((len(cuts), 1), len(table))], axis=1)
        parts = np.diff(cumulative[edges], axis=1)  # [cuts, parts, classes]
        before = bits(cumulative[-1])
        total += weight * (before - bits(parts).sum(axis=1)) / max(int(cumulative[-1].sum()), 1)
    return total


def best_threshold(tables: Sequence[NDArray[np.int64]], importance: Sequence[float]) -> int | None:
    """Return how many codes of a range are below the threshold with the largest gain, the lowest among equals.

    The last code below a threshold occurs in the table, and so does a code above it. None if there is no threshold.
    """
    occurs = np.flatnonzero(np.sum([table.sum(axis=1) for table in tables], axis=0))
    if len(occurs) < 2:
        return None
    thresholds = occurs[:-1] + 1
    rounded = np.round(gains(tables, importance, thresholds[:, None]), DIGITS)
    return int(thresholds[np.argmax(rounded)])


def _counts(records: Records) -> tuple[list[float], list[list[NDArray[np.int64]]]]:
    """Return the weight of each target, and by attribute and target how many records have each code and class."""
    assert records.workload is not None  # see check_workload
    targets = records.workload.classification
    record = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
    by_attribute = []
    for attribute, domain in enumerate(records.domains):
        codes = records.codes[record, attribute].astype(np.int64)
        tables = []
        for target in targets:
            classes = target.codes[records.rows].astype(np.int64)
            table = np.bincount(codes * (target.distinct + 1) + classes, minlength=domain.size * (target.distinct + 1))
            # Records without a class do not count.
            tables.append(table.reshape(domain.size, target.distinct + 1)[:, : target.distinct])
        by_attribute.append(tables)
    return [target.weight for target in targets], by_attribute
