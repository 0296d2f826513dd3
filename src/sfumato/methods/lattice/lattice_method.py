"""Full-domain generalization: what the methods on the lattice of levels have in common.

Every column is released on one level everywhere. Records whose groups are equal form a class. A method chooses the
node of the lattice; what is suppressed there follows from the node (see ``node_results``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError, UsageError
from sfumato.methods.lattice.least_cost_node import SearchOutcome
from sfumato.methods.lattice.level_counts import counted_columns, counts_of_records
from sfumato.methods.lattice.level_lattice import LevelLattice
from sfumato.methods.lattice.node_results import (
    LEFT_OUT,
    NodeResults,
    ShownGroups,
    SuppressionLimits,
    numbers_among,
)
from sfumato.methods.line.line import expand
from sfumato.methods.line.optimal_cut import boxes_of
from sfumato.methods.method import ClassBatch, Effort, Records
from sfumato.progress import Progress
from sfumato.requirements import KAnonymity, Requirements
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.sorting import SortedRows, collapse


class LatticeMethod(ABC):
    """A method that releases every column on one level. It implements ``Method``."""

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    use: ClassVar[str]
    separates: ClassVar[bool] = False
    suppresses_cells: ClassVar[bool] = False
    """Whether it can suppress single cells."""
    ends_early: ClassVar[bool] = False
    """Whether its search can be stopped and then gives the best node so far."""

    @abstractmethod
    def check(self, requirements: Requirements) -> None:
        """Refuse requirements that the method does not take."""

    def meets(self, requirements: Requirements) -> bool:
        """Every class meets the requirements: others are left out."""
        return True

    @abstractmethod
    def search(self, results: NodeResults, effort: Effort, progress: Progress) -> SearchOutcome:
        """Choose a node."""

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        """Yield the classes of the chosen node if no record may be left out, each in the smallest box around it."""
        recoding = chosen_in_memory(self, records, requirements, SuppressionLimits(0, records.costs.full), progress)
        rows, starts, line = recoding.released(records)
        low, high = boxes_of(records.codes, line.rows, line.starts)
        yield ClassBatch(rows, starts, low, high)


def check_only_k(method: LatticeMethod, requirements: Requirements) -> None:
    """Refuse requirements beside k-anonymity, for methods that are published for nothing else."""
    others = [part.kind for part in requirements.parts if not isinstance(part, KAnonymity)]
    if others:
        raise UsageError(
            f"{method.name} is published for k-anonymity alone, and the policy also asks for {others[0]}. Choose "
            "global, which takes every requirement."
        )


@dataclass(frozen=True)
class LevelRecoding:
    """A chosen node, and what is suppressed there. It recodes any record of the table, wherever the record is.

    exceptions: uint[e, d], the groups in which something is suppressed; suppressed: int64[e], see ``ShownGroups``.
    """

    lattice: LevelLattice
    shown: ShownGroups
    exceptions: Codes
    suppressed: NDArray[np.int64]

    @classmethod
    def of(cls, lattice: LevelLattice, shown: ShownGroups) -> LevelRecoding:
        exceptional = shown.suppressed != 0
        return cls(lattice, shown, shown.groups[exceptional], shown.suppressed[exceptional])

    @property
    def domains(self) -> list[Domain]:
        """The domains whose boxes are shown."""
        return [level.domain for level in self.lattice.levels_of(self.shown.node)]

    @property
    def numbers(self) -> dict[str, int]:
        """The level of each column, by its name."""
        return self.lattice.numbers_of(self.shown.node)

    def groups_shown(self, codes: Codes) -> Codes:
        """Return the released groups of released records: uint32[n, d]. A suppressed cell is one more group.

        Records that are left out show a suppressed cell in every column and one more than that in the first.
        """
        node = self.shown.node
        groups = self.lattice.groups_of(node, codes).astype(np.uint32)
        if not len(self.exceptions):
            return groups
        levels = self.lattice.levels_of(node)
        number = numbers_among(groups, self.exceptions.astype(np.uint32), [level.groups for level in levels])
        suppressed = np.where(number < 0, 0, self.suppressed[number])
        for done, q in enumerate(self.shown.columns):
            groups[suppressed > done, q] = levels[q].groups
        left_out = suppressed == LEFT_OUT
        for q, level in enumerate(levels):
            groups[left_out, q] = level.groups
        groups[left_out, 0] += 1
        return groups

    def is_left_out(self, groups: Codes) -> NDArray[np.bool_]:
        """Return which of the records whose groups ``groups_shown`` returned are left out."""
        return np.asarray(groups[:, 0] > self.lattice.levels_of(self.shown.node)[0].groups)

    def boxes(self, groups: Codes) -> tuple[Codes, Codes]:
        """Return the boxes that released groups are shown as: two uint32[n, d], codes of ``domains``."""
        low, high = np.empty_like(groups), np.empty_like(groups)
        for q, level in enumerate(self.lattice.levels_of(self.shown.node)):
            low[:, q] = np.append(level.low, 0)[groups[:, q]]
            high[:, q] = np.append(level.high, level.domain.size - 1)[groups[:, q]]
        return low, high

    def released(self, records: Records) -> tuple[NDArray[np.uint32], NDArray[np.int64], SortedRows]:
        """Return the released rows class by class, where each class starts, and the distinct records of each class."""
        groups = self.groups_shown(records.codes)
        sizes = [level.groups + 2 for level in self.lattice.levels_of(self.shown.node)]
        here = np.flatnonzero(~self.is_left_out(groups)).astype(np.uint32)
        _, line = collapse(groups[here], sizes)
        line = SortedRows(here[line.rows], line.starts)
        weights = np.diff(records.starts)[line.rows]
        rows = np.empty(int(weights.sum()), np.uint32)
        expand(records.rows, records.starts, line.rows, rows)
        return rows, np.append(0, np.cumsum(weights))[line.starts], line

    def classes(self, records: Records) -> ClassBatch:
        """Return the classes of the released records. Their boxes are over ``domains``."""
        rows, starts, line = self.released(records)
        low, high = self.boxes(self.groups_shown(records.codes[line.rows[line.starts[:-1]]]))
        return ClassBatch(rows, starts, low, high)


def chosen_in_memory(
    method: LatticeMethod,
    records: Records,
    requirements: Requirements,
    limits: SuppressionLimits,
    progress: Progress,
) -> LevelRecoding:
    """Choose a node for records in memory."""
    lattice = LevelLattice.of(records.domains, records.costs)
    counted = counted_columns(records.sensitive, records.persons, requirements)
    results = NodeResults(lattice, counts_of_records(records, lattice, counted), counted, requirements, limits)
    return chosen_recoding(method, results, records.effort, progress)


def chosen_recoding(method: LatticeMethod, results: NodeResults, effort: Effort, progress: Progress) -> LevelRecoding:
    """Choose a node for counted records. Raises InfeasibleError if no node is within the limits."""
    with progress.phase("improve" if method.ends_early else "search"):
        outcome = method.search(results, effort, progress)
    if outcome.best is None:
        raise _infeasible(results, outcome)
    recoding = LevelRecoding.of(results.lattice, results.shown(outcome.best.node))
    progress.decisions["levels"] = recoding.numbers
    progress.decisions["lattice"] = {**_facts(results, outcome), "without_levels": _without_levels(recoding)}
    return recoding


def _without_levels(recoding: LevelRecoding) -> list[str]:
    """Return the numbers and dates that show ``*`` because they have no other level than their values."""
    domains = recoding.lattice.domains
    return [
        domain.name
        for domain in domains
        if domain.kind != "categorical" and domain.top_level == 1 and recoding.numbers[domain.name] == 1
    ]


def _facts(results: NodeResults, outcome: SearchOutcome) -> dict[str, Any]:
    facts = {"nodes": results.lattice.size, "tested": results.tested, "complete": outcome.complete}
    if outcome.bound is None:
        return facts
    return {**facts, "least_possible": round(outcome.bound / (results.records * sum(results.lattice.full)), 6)}


def _infeasible(results: NodeResults, outcome: SearchOutcome) -> InfeasibleError:
    records, most = results.records, results.limits.most
    fewest = results.fewest_left_out
    found = "no levels" if outcome.complete else "the search ended early, and none of the levels that it tried"
    advice = "Ask for less, or give the columns more general levels"
    if fewest < records:
        share = int(np.ceil(10_000 * fewest / records)) / 10_000
        advice = (
            f"The best of them would leave out {fewest:,} ({fewest / records:.2%}). Allow that with "
            f"max_suppressed_fraction = {share:.4f}, ask for less, or give the columns more general levels"
        )
    return InfeasibleError(
        f"{found} of the quasi-identifiers meet the policy with at most {most:,} of the {records:,} records left out. "
        f"{advice}."
    )
