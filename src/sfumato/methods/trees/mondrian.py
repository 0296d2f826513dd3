"""Mondrian (LeFevre et al. 2006; LeFevre 2008, section 2; Ghinita 2007, section 6.1): regions divided recursively.

The domain is divided on one attribute, and so is every part, as long as there is an allowable split: one whose parts
all meet every requirement, k and any others. Where a region is divided is the business of a split rule
(``split_median`` and others); the regions are a tree (``tree``). Time O(N d log N), or O(N d log(N)^2) where values are
many; N counts distinct records, with their sensitive values and targets if there are any; with relaxed splits, rows.

- ``mondrian``: records of one value stay together, so that the regions tile the domain.
- ``mondrian-relaxed``: records of the median value go to either side. With k alone, and but for equal records, every
  class then has fewer than 2k records.
- ``mondrian:information-gain``, ``mondrian:regression``: equal values together, and a region is divided where that
  tells most of what is to be predicted (``split_targets``); then at the median.
- ``mondrian:selection``: a region is first divided where selections begin and end (``split_selection``), then by the
  targets where there are any, then at the median.

Differs from the paper: a class shows the smallest box around its records instead of its region. What the split rule
does differently is said there. k persons are counted here; requirements that ``conjunction`` does not know, that hold
jointly or that count the sensitive values of persons are left to joining. What is known of them is heeded before, as
far as the whole table meets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.methods.class_counting import Counting
from sfumato.methods.coded_workload import CodedWorkload, Kinds
from sfumato.methods.line.line import rows_along
from sfumato.methods.line.optimal_cut import BATCH_CLASSES
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.trees.region_tree import BY_SELECTION, BY_TARGETS, RegionTree, grow_tree
from sfumato.methods.trees.sampled_tests import SampledTests
from sfumato.methods.trees.split_median import RELAXED_MEDIAN, STRICT_MEDIAN
from sfumato.methods.trees.split_targets import Selected, SplitTargets, tasks_of
from sfumato.methods.trees.split_tests import ORIGIN, VALUES, WEIGHT, SplitData, Units, ground_of
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.requirements.conjunction import DISTINCT, Conjunction
from sfumato.tables.coding.sorting import Field, bits_for, sort_rows

FIRST_RULES = {
    "median": STRICT_MEDIAN,
    "information-gain": BY_TARGETS,
    "regression": BY_TARGETS,
    "selection": BY_SELECTION,
}
SUMMARIES = {
    "information-gain": "divided where the parts tell most of the class to predict, then at the median",
    "regression": "divided where the parts tell most of the number to predict, then at the median",
    "selection": "divided where selections begin and end, then by what is to be predicted, then at the median",
}
USES = {
    "information-gain": "when a classifier will be learnt from the release; needs a target",
    "regression": "when a number will be predicted from the release; needs a target",
    "selection": "when known groups of records will be selected from the release; needs selections",
}
NEEDS = {
    "information-gain": ("a column of classes to predict", "--target COLUMN", "[[workload.classification]]", "target"),
    "regression": ("a column of numbers to predict", "--target COLUMN", "[[workload.regression]]", "target"),
    "selection": ("records to select", '--select "age > 40"', "[[workload.selection]]", "where"),
}


@dataclass(frozen=True, kw_only=True)
class MondrianMethod:
    """Divide the widest attribute at its median, or where it serves the workload, and then the parts."""

    splits: Literal["strict", "relaxed"] = "strict"
    rule: Literal["median", "information-gain", "regression", "selection"] = "median"
    separates = False

    @property
    def name(self) -> str:
        if self.rule != "median":
            return f"mondrian:{self.rule}"
        return "mondrian" if self.splits == "strict" else "mondrian-relaxed"

    @property
    def tiles(self) -> bool:
        return self.splits == "strict"

    @property
    def paper(self) -> str:
        if self.rule != "median":
            return "LeFevre, DeWitt, Ramakrishnan: Workload-aware anonymization, TODS 2008"
        return "LeFevre, DeWitt, Ramakrishnan: Mondrian multidimensional k-anonymity, ICDE 2006"

    @property
    def summary(self) -> str:
        if self.rule != "median":
            return SUMMARIES[self.rule]
        sides = "equal values together" if self.splits == "strict" else "equal values on either side"
        return f"the widest attribute divided at its median, then its parts, {sides}; time O(N d log N)"

    @property
    def use(self) -> str:
        if self.rule != "median":
            return USES[self.rule]
        if self.splits == "strict":
            return "for large tables, and where classes should not overlap"
        return "when classes should be of nearly equal size"

    def check_workload(self, kinds: Kinds) -> None:
        there = {
            "information-gain": kinds.classification,
            "regression": kinds.regression,
            "selection": kinds.selection,
        }
        if not there.get(self.rule, True):
            needed, flag, header, key = NEEDS[self.rule]
            raise UsageError(
                f"{self.name} needs {needed}, and the workload has none. Add {flag}, or {header} with "
                f"its key {key} to the policy."
            )

    def check(self, requirements: Requirements) -> None:
        """Any requirement can be met: a region is divided only if its parts meet it, or classes are joined."""

    def meets(self, requirements: Requirements) -> bool:
        known = all(part.condition() is not None for part in requirements.parts)
        records_or_k_persons = requirements.person is None or not requirements.attributes
        return known and not requirements.joint and records_or_k_persons

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        tree, rows = self.tree(records, requirements, progress)
        leaves = tree.classes()
        for first in range(0, len(leaves), BATCH_CLASSES):
            these = leaves[first : first + BATCH_CLASSES]
            starts = np.append(tree.begin[these], tree.end[these[-1]])
            yield ClassBatch(
                rows[starts[0] : starts[-1]], starts - starts[0], tree.box_low[these], tree.box_high[these]
            )

    def tree(
        self, records: Records, requirements: Requirements, progress: Progress
    ) -> tuple[RegionTree, NDArray[np.uint32]]:
        """The regions, and the rows in the order of the leaves."""
        start = self.start(records, requirements)
        tree = start.grown(progress)
        origin = np.ascontiguousarray(start.units.data[:, ORIGIN])
        return tree, rows_along(start.rows, start.starts, origin)

    def start(self, records: Records, requirements: Requirements) -> Start:
        """All that a tree of these records is grown from."""
        tests, columns = _tests(records, requirements)
        tasks, selected, told = self._workload(records, len(columns))
        rows, starts, units = _units(records, [*columns, *told], single=self.splits == "relaxed")
        return Start(
            rule=RELAXED_MEDIAN if self.splits == "relaxed" else FIRST_RULES[self.rule],
            rows=rows,
            starts=starts,
            units=units,
            ground=ground_of(records.domains, records.costs, requirements.least_class),
            tests=tests,
            sizes=[domain.size for domain in records.domains],
            tasks=tasks,
            selected=selected,
        )

    def _workload(
        self, records: Records, placed: int
    ) -> tuple[SplitTargets | None, Selected | None, list[NDArray[np.uint32]]]:
        """The workload as the rule takes it, and the columns that it is about, by row."""
        if self.rule == "median":
            return None, None, []
        workload = records.workload or CodedWorkload()
        self.check_workload(workload.kinds)
        tasks, columns = tasks_of(workload, records.rows, placed) if workload.targets else (None, [])
        boxes = workload.selections if self.rule == "selection" else None
        selected = None if boxes is None else Selected(np.stack([boxes.low, boxes.high]), boxes.weights)
        return tasks, selected, columns


def _tests(records: Records, requirements: Requirements) -> tuple[Conjunction, list[NDArray[np.uint32]]]:
    """What every part of a split has to meet, and the columns that it is about, by row."""
    if records.persons is None:
        columns = [records.sensitive[name].codes for name in requirements.attributes]
        return Counting(records, requirements).conjunction(), columns
    # The kernel counts records. Counted so, the table may not meet what it meets in persons, and neither would a part.
    counted = replace(records, persons=None)
    whole = Counting(counted, requirements).whole
    met = tuple(part for part in requirements.parts if part.condition() is None or part.holds(whole).all())
    heeded = replace(requirements, parts=met)
    tests = Counting(counted, heeded).conjunction()
    columns = [records.sensitive[name].codes for name in heeded.attributes]
    tests = tests._replace(  # k persons: as many different values of one more column
        kind=np.append(tests.kind, DISTINCT),
        attribute=np.append(tests.attribute, len(columns)),
        whole=np.append(tests.whole, requirements.least_class),
        bound=np.append(tests.bound, 0.0),
        distinct=np.append(tests.distinct, int(records.persons.max(initial=0)) + 1),
    )
    return tests, [*columns, records.persons]


@dataclass(frozen=True)
class Start:
    """What a tree is grown from. Unit i has rows[starts[i]:starts[i + 1]]; see ``tree.grow_tree`` for the rest."""

    rule: int
    rows: NDArray[np.uint32]
    starts: NDArray[np.int64]
    units: Units
    ground: SplitData
    tests: Conjunction | SampledTests
    sizes: list[int]
    tasks: SplitTargets | None
    selected: Selected | None

    def grown(
        self, progress: Progress, within: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None
    ) -> RegionTree:
        """The tree; the units are put in the order of its leaves. within: see ``grow_tree``."""
        return grow_tree(
            self.rule, self.units, self.ground, self.tests, self.sizes, progress, self.tasks, self.selected, within
        )


def _units(
    records: Records, columns: list[NDArray[np.uint32]], *, single: bool
) -> tuple[NDArray[np.uint32], NDArray[np.int64], Units]:
    """What is divided: rows that are equal in codes and ``columns`` as one unit, or with ``single`` each apart.

    The rows in the order of the units, and where those of each unit begin. They are in the order of their codes, then
    of the columns, so the order of the input leaves no trace.
    """
    rows, starts, at = records.rows, records.starts, None
    if columns:
        at = np.repeat(np.arange(len(records.codes), dtype=np.uint32), np.diff(records.starts))
        fields = [Field(codes, bits_for(int(codes.max()) + 1)) for codes in (at, *(codes[rows] for codes in columns))]
        line = sort_rows(fields, len(rows))
        rows, at = rows[line.rows], at[line.rows]
        starts = line.starts
    if single:
        if at is None:
            at = np.repeat(np.arange(len(records.codes), dtype=np.uint32), np.diff(records.starts))
        starts = np.arange(len(rows) + 1)
    first = starts[:-1]
    data = np.empty((len(first), VALUES + len(columns)), np.uint32)
    data[:, WEIGHT] = np.diff(starts)
    data[:, ORIGIN] = np.arange(len(first))
    for place, codes in enumerate(columns):
        data[:, VALUES + place] = codes[rows[first]]
    codes_of = records.codes.copy() if at is None else np.take(records.codes, at[first], axis=0)
    return rows, starts, Units(codes_of, data)
