"""What a release at a node of the lattice would be: which classes hold, what is suppressed, and what it costs.

Classes that do not meet the requirements are left out whole. With cells, their records first lose cells: one column
after the other becomes ``*`` in all of them, until they are in a class that holds. The columns come in the order of
their weights, the least important first; of equal weights, the one with the most groups first, since that brings most
records together, then in the order of the policy. A column whose policy forbids ``*`` keeps its cells.

Some requirements compare a class with the whole release, so suppression may change whether another class holds. All
classes are then tested again, until nothing more is suppressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.exact_costs import Costs
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice.level_counts import CountedColumns, CountedNodes, LevelCounts, collapsed
from sfumato.methods.lattice.level_lattice import LevelLattice, Node
from sfumato.methods.method import SensitiveValues
from sfumato.policy import Policy
from sfumato.requirements import ClassCounts, Requirement, Requirements
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.sorting import Field, bits_for, sort_rows

LEFT_OUT = -1  # the number of suppressed cells of a record that is left out


@dataclass(frozen=True)
class SuppressionLimits:
    """What may be suppressed: at most ``most`` records, each at a cost; with ``cells``, single cells before records."""

    most: int
    cost: int
    cells: bool = False

    @classmethod
    def of(cls, policy: Policy, most: int, costs: Costs) -> SuppressionLimits:
        """Return what a policy allows. most: the records that may still be left out."""
        return cls(most, round(policy.release.suppression_cost * costs.full), policy.method.cells)


@dataclass(frozen=True)
class NodeResult:
    """What a release at a node would be.

    left_out: the records that would be left out. cost: of all records, those included; None if more would be left out
    than are allowed. covers: whether every more specific node would leave out more than that too.
    """

    node: Node
    left_out: int
    cost: int | None
    covers: bool

    @property
    def feasible(self) -> bool:
        return self.cost is not None

    @property
    def rank(self) -> tuple[int, Node]:
        """The order of preference of feasible nodes: by cost, then by the levels, in the order of the columns."""
        assert self.cost is not None
        return self.cost, self.node


@dataclass(frozen=True)
class _WeightedRows:
    """The entries of some counts as rows of which classes are made."""

    rows: NDArray[np.uint32]
    sensitive: dict[str, SensitiveValues]
    persons: NDArray[np.uint32] | None


@dataclass(frozen=True)
class ShownGroups:
    """The classes at a node, and how many cells of their records are suppressed.

    groups: uint[c, d]; suppressed: int64[c], the number of ``columns`` that show ``*``, the first ones first, or
    LEFT_OUT.
    """

    node: Node
    groups: Codes
    suppressed: NDArray[np.int64]
    columns: tuple[int, ...]


class NodeResults:
    """The results of nodes, each found once."""

    def __init__(
        self,
        lattice: LevelLattice,
        base: LevelCounts,
        counted: CountedColumns,
        requirements: Requirements,
        limits: SuppressionLimits,
    ) -> None:
        self.lattice, self.requirements, self.limits = lattice, requirements, limits
        self.base = base
        self._counted = counted
        self._nodes = CountedNodes(lattice, base, counted)
        self._results: dict[Node, NodeResult] = {}
        # What the kernel does not know may compare as well.
        self._compares = any("reference" in part.counters or part.condition() is None for part in requirements.parts)
        self._growing = tuple(part for part in requirements.parts if part.closed_under_addition)

    @property
    def tested(self) -> int:
        """The number of nodes that were tested."""
        return len(self._results)

    @property
    def fewest_left_out(self) -> int:
        """The fewest records that a tested node would leave out."""
        return min((result.left_out for result in self._results.values()), default=self.records)

    @property
    def work(self) -> int:
        """The entries that were gone through so far."""
        return self._nodes.work

    @cached_property
    def records(self) -> int:
        return int(self.base.weights.sum())

    @cached_property
    def totals(self) -> tuple[tuple[int, ...], ...]:
        """What all records cost in each column on each of its levels, if none is left out."""
        totals = []
        for q, levels in enumerate(self.lattice.columns):
            # Sums of floats are exact up to 2 ** 53 records.
            used = np.bincount(self.base.codes[:, q], self.base.weights, levels[0].groups).astype(np.int64)
            groups = [self.lattice.translation(q, 0, number) for number in range(len(levels))]
            totals.append(
                tuple(int(np.sum(used * level.cost[group])) for level, group in zip(levels, groups, strict=True))
            )
        return tuple(totals)

    def total(self, node: Node) -> int:
        """Return what all records cost at a node, if none is left out."""
        return sum(totals[level] for totals, level in zip(self.totals, node, strict=True))

    def least(self, node: Node) -> int:
        """Return a cost that no release at a node is below.

        It is less than the total only if leaving out a record may cost less than releasing it.
        """
        saving = self.limits.most * max(sum(self.lattice.full) - self.limits.cost, 0)
        return max(self.total(node) - saving, 0)

    def of_columns(self, columns: Sequence[int]) -> NodeResults:
        """Return the results for the lattice of some columns."""
        lattice = self.lattice
        part = LevelLattice(
            tuple(lattice.domains[q] for q in columns),
            tuple(lattice.columns[q] for q in columns),
            tuple(lattice.full[q] for q in columns),
        )
        d = len(lattice.columns)
        codes = self.base.codes[:, [*columns, *range(d, self.base.codes.shape[1])]]
        sizes = [levels[0].groups for levels in part.columns]
        base = collapsed(part.bottom, codes, self.base.weights, [*sizes, *self._counted.sizes])
        return NodeResults(part, base, self._counted, self.requirements, self.limits)

    def result(self, node: Node) -> NodeResult:
        """Test a node."""
        known = self._results.get(node)
        if known is None:
            known = self._results[node] = self._tested(node)
        return known

    def shown(self, node: Node) -> ShownGroups:
        """Return the classes of a node and what is suppressed in them."""
        counts = self._nodes.counts(node)
        columns = self._suppressible(node)
        suppressed, _ = self._settled(counts, columns)
        return ShownGroups(node, counts.groups, suppressed, columns)

    def classes(self, node: Node) -> LevelCounts:
        """Return the counts of a node."""
        return self._nodes.counts(node)

    def _tested(self, node: Node) -> NodeResult:
        counts, limits = self._nodes.counts(node), self.limits
        columns = self._suppressible(node)
        suppressed, failing = self._settled(counts, columns)
        left = suppressed == LEFT_OUT
        left_out = int(counts.sizes[left].sum())
        if left_out > limits.most or left_out == self.records:
            return NodeResult(node, left_out, None, self._covers(counts, failing))
        costs = self.lattice.costs_of(node, counts.groups, suppressed, columns)
        return NodeResult(node, left_out, int(np.sum(counts.sizes * np.where(left, limits.cost, costs))), False)

    def _suppressible(self, node: Node) -> tuple[int, ...]:
        """Return the columns whose cells may become ``*``, in the order in which they do."""
        if not self.limits.cells:
            return ()
        groups = [level.groups for level in self.lattice.levels_of(node)]
        columns = [q for q, domain in enumerate(self.lattice.domains) if groups[q] > 1 and domain.coarsest is None]
        return tuple(sorted(columns, key=lambda q: (self.lattice.full[q], -groups[q], q)))

    def _settled(self, counts: LevelCounts, columns: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return how many of the columns are suppressed in each class, or LEFT_OUT; and which classes failed at first.

        Every round suppresses one more column in the classes that fail, or leaves them out.
        """
        suppressed = np.zeros(len(counts.sizes), np.int64)
        open_classes = np.ones(len(counts.sizes), np.bool_)
        first_failing: NDArray[np.bool_] | None = None
        while open_classes.any():
            failing = self._failing(counts, suppressed, columns, open_classes)
            if first_failing is None:
                first_failing = failing
            last = suppressed == len(columns)
            suppressed[failing & last] = LEFT_OUT
            suppressed[failing & ~last] += 1
            if not failing.any():
                break
            open_classes = suppressed != LEFT_OUT if self._compares else failing & ~last
        assert first_failing is not None
        return suppressed, first_failing

    def _failing(
        self,
        counts: LevelCounts,
        suppressed: NDArray[np.int64],
        columns: Sequence[int],
        open_classes: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Return which of the open classes are in a class, as a release would show it, that fails."""
        failing = np.zeros(len(open_classes), np.bool_)
        if not columns or not suppressed[open_classes].any():
            failing[open_classes] = ~self.requirements.holds(self._class_counts(self._part(counts, open_classes)))
            return failing
        owner = np.repeat(np.arange(len(open_classes)), np.diff(counts.starts))
        entries = open_classes[owner]
        d = len(counts.node)
        # A suppressed cell is shown as one more group. So classes with other suppressed cells stay apart.
        wide = counts.codes[entries].astype(np.uint32)
        for done, q in enumerate(columns):
            wide[suppressed[owner[entries]] > done, q] = self.lattice.levels_of(counts.node)[q].groups
        sizes = [level.groups + 1 for level in self.lattice.levels_of(counts.node)]
        joined = collapsed(counts.node, wide, counts.weights[entries], [*sizes, *self._counted.sizes])
        holds = self.requirements.holds(self._class_counts(joined))
        failing_groups = joined.groups[~holds]
        class_groups = wide[np.searchsorted(owner[entries], np.flatnonzero(open_classes)), :d]
        failing[open_classes] = are_among(class_groups, failing_groups, sizes)
        return failing

    def _part(self, counts: LevelCounts, classes: NDArray[np.bool_]) -> LevelCounts:
        if classes.all():
            return counts
        entries = np.repeat(classes, np.diff(counts.starts))
        return replace(counts, codes=counts.codes[entries], weights=counts.weights[entries])

    def _class_counts(self, counts: LevelCounts) -> ClassCounts:
        """Return the classes in the form that requirements take."""
        if not self._counted.sizes:
            return ClassCounts(counts.sizes)
        d = len(counts.node)
        columns = [np.ascontiguousarray(column, np.uint32) for column in counts.codes[:, d:].T]
        sensitive = {
            name: replace(values, codes=codes)
            for (name, values), codes in zip(self._counted.values.items(), columns, strict=False)
        }
        rows = _WeightedRows(
            np.arange(len(counts.weights), dtype=np.uint32),
            sensitive,
            columns[-1] if self._counted.has_persons else None,
        )
        return Counting(rows, self.requirements, counts.weights).runs(rows.rows, counts.starts)

    @property
    def may_cover(self) -> bool:
        """Whether there are nodes of which it is known that every more specific node fails too."""
        closed = self.limits.most == 0 and self.requirements.closed_under_union
        return not self.limits.cells and (closed or bool(self._growing))

    def _covers(self, counts: LevelCounts, failing: NDArray[np.bool_]) -> bool:
        """Return whether every more specific node fails too, given the classes that fail at this node.

        With nothing left out, a class is a union of classes of a more specific node. In general, a class that lacks
        records for a requirement that more records cannot break consists of classes that lack them too.
        """
        limits = self.limits
        if limits.cells:
            return False
        if limits.most == 0 and self.requirements.closed_under_union:
            return True
        if len(self._growing) == len(self.requirements.parts):
            return True
        return self._lacking(counts, failing, self._growing) > limits.most

    def _lacking(self, counts: LevelCounts, failing: NDArray[np.bool_], parts: Sequence[Requirement]) -> int:
        """Return how many records are in failing classes that fail one of these requirements."""
        if not parts or not failing.any():
            return 0
        part = self._part(counts, failing)
        classes = self._class_counts(part)
        holds = np.logical_and.reduce([each.holds(classes) for each in parts])
        return int(part.sizes[~holds].sum())


def are_among(groups: Codes, some: Codes, sizes: Sequence[int]) -> NDArray[np.bool_]:
    """Return which rows are equal to one of ``some``: bool[n]. groups: uint[n, d]; some: uint[m, d]."""
    if not len(some) or not len(groups):
        return np.zeros(len(groups), np.bool_)
    return numbers_among(groups, some, sizes) >= 0


def numbers_among(groups: Codes, some: Codes, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return which of ``some``, whose rows are distinct, each row is equal to: int64[n], -1 for none."""
    every = np.concatenate([some, groups])
    ordered = sort_rows([Field(every[:, q], bits_for(size)) for q, size in enumerate(sizes)], len(every))
    # Rows of equal groups are ordered by number, so the one of ``some`` comes first.
    first = ordered.rows[ordered.starts[:-1]].astype(np.int64)
    found = np.empty(len(every), np.int64)
    found[ordered.rows] = np.repeat(np.where(first < len(some), first, -1), np.diff(ordered.starts))
    return found[len(some) :]
