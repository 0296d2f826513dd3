"""Mondrian (LeFevre et al. 2006; LeFevre 2008, section 2; Ghinita 2007, section 6.1): regions divided recursively.

The domain is divided on one attribute, and so is every part, as long as there is an allowable split: one whose parts
all meet every requirement, k and any others. A split rule decides where a region is divided (``split_median`` and
others); the regions form a tree (``region_tree``). Time O(N d log N), or O(N d log(N)^2) where values are many; N
counts distinct records, including their sensitive values and targets if any; with relaxed splits, rows.

- ``mondrian``: records of one value stay together, so that the regions tile the domain.
- ``mondrian-relaxed``: records of the median value go to either side. With k alone, and except for equal records, every
  class then has fewer than 2k records.
- ``mondrian:information-gain``, ``mondrian:regression``: equal values stay together, and a region is divided where the
  parts are most informative about the targets (``split_prediction``); then at the median.
- ``mondrian:published``: the median as printed, without what ``split_median`` adds. A taxonomy node is divided into its
  children or not at all, and of the thresholds only those beside the median value are tried, also with l-diversity.
- ``mondrian:ordered``: the same with categories as labels in the order of the leaves, which are cut like numbers.
- ``mondrian:selection``: a region is first divided where selections begin and end (``split_selection``), then by the
  targets if any, then at the median.

Differs from the paper: a class shows the smallest box around its records instead of its region. Each split rule lists
its own differences. k persons are counted here; requirements that ``conjunction`` does not know, joint ones, and those
that count the sensitive values of persons are met by merging classes afterwards. Conditions that the kernel can test
are enforced before, as far as the whole table meets them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.methods.class_counting import Counting
from sfumato.methods.coded_workload import CodedWorkload, Kinds
from sfumato.methods.line.line import rows_along
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.trees.region_tree import BY_SELECTION, BY_TARGETS, RegionTree, grow_tree, regions_meet
from sfumato.methods.trees.sampled_tests import SampledTests
from sfumato.methods.trees.split_median import PUBLISHED_MEDIAN, RELAXED_MEDIAN, STRICT_MEDIAN
from sfumato.methods.trees.split_targets import Selected, SplitTargets, tasks_of
from sfumato.methods.trees.split_tests import ORIGIN, VALUES, WEIGHT, SplitData, Units, ground_of
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.requirements.conjunction import DISTINCT, Conjunction
from sfumato.tables.coding.domains import Codes, Domain, NumericDomain
from sfumato.tables.coding.sorting import Field, bits_for, sort_rows

AT_MEDIAN = ("median", "published", "ordered")  # the rules that need no workload
FIRST_RULES = {
    "median": STRICT_MEDIAN,
    "published": PUBLISHED_MEDIAN,
    "ordered": PUBLISHED_MEDIAN,
    "information-gain": BY_TARGETS,
    "regression": BY_TARGETS,
    "selection": BY_SELECTION,
}
SUMMARIES = {
    "published": "the widest attribute divided at its median or into the children of its node, exactly as published",
    "ordered": "as published, with categories as labels in the order of the leaves, divided at their median",
    "information-gain": "divided where the parts best predict a class, then at the median",
    "regression": "divided where the parts best predict a number, then at the median",
    "selection": "divided where selections begin and end, then by the targets, then at the median",
}
USES = {
    "published": "to compare with published results; `mondrian` loses much less where there are taxonomies",
    "ordered": "to compare with published results whose categories were ordered labels",
    "information-gain": "when a classifier will be trained on the release; needs a target",
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
    """Divide the widest attribute at its median, or where that serves the workload; then divide the parts."""

    splits: Literal["strict", "relaxed"] = "strict"
    rule: Literal["median", "published", "ordered", "information-gain", "regression", "selection"] = "median"
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
    def baseline(self) -> bool:
        """Whether it is here to compare with what was published; engines beyond memory leave it out."""
        return self.rule in ("published", "ordered")

    @property
    def paper(self) -> str:
        if self.rule not in ("median", "ordered"):
            return "LeFevre, DeWitt, Ramakrishnan: Workload-aware anonymization, TODS 2008"
        return "LeFevre, DeWitt, Ramakrishnan: Mondrian multidimensional k-anonymity, ICDE 2006"

    @property
    def summary(self) -> str:
        if self.rule != "median":
            return SUMMARIES[self.rule]
        sides = "equal values stay together" if self.splits == "strict" else "equal values may be separated"
        return f"the widest attribute divided at its median, then its parts; {sides}; time O(N d log N)"

    @property
    def use(self) -> str:
        if self.rule != "median":
            return USES[self.rule]
        if self.splits == "strict":
            return "for large tables, and where classes should not overlap"
        return "when classes should be of nearly equal size"

    def check_workload(self, kinds: Kinds) -> None:
        present = {
            "information-gain": kinds.classification,
            "regression": kinds.regression,
            "selection": kinds.selection,
        }
        if not present.get(self.rule, True):
            needed, flag, header, key = NEEDS[self.rule]
            raise UsageError(
                f"{self.name} needs {needed}, but the workload has none. Add {flag}, or {header} with "
                f"its key {key} to the policy."
            )

    def check(self, requirements: Requirements) -> None:
        """Accept any requirement: a region is divided only if its parts meet it, or classes are merged."""

    def meets(self, requirements: Requirements) -> bool:
        return regions_meet(requirements)

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        tree, rows = self.tree(records, requirements, progress)
        yield from tree.class_batches(rows)

    def tree(
        self, records: Records, requirements: Requirements, progress: Progress
    ) -> tuple[RegionTree, NDArray[np.uint32]]:
        """Return the regions, and the rows in the order of the leaves."""
        start = self.start(records, requirements)
        tree = start.grown(progress)
        origin = np.ascontiguousarray(start.units.data[:, ORIGIN])
        return tree, rows_along(start.rows, start.starts, origin)

    def start(self, records: Records, requirements: Requirements) -> Start:
        """Return the start that the tree of these records is grown from."""
        tests, columns = _tests(records, requirements)
        tasks, selected, target_columns = self._workload(records, len(columns))
        rows, starts, units = _units(records, [*columns, *target_columns], single=self.splits == "relaxed")
        return Start(
            rule=RELAXED_MEDIAN if self.splits == "relaxed" else FIRST_RULES[self.rule],
            rows=rows,
            starts=starts,
            units=units,
            ground=ground_of(self._domains(records), records.costs.shares, requirements.least_class),
            tests=tests,
            sizes=[domain.size for domain in records.domains],
            tasks=tasks,
            selected=selected,
        )

    def _domains(self, records: Records) -> Sequence[Domain]:
        """Return the domains as the rule divides them; the codes are the same."""
        if self.rule != "ordered":
            return records.domains
        return [_as_labels(domain, records.codes[:, q]) for q, domain in enumerate(records.domains)]

    def _workload(
        self, records: Records, placed: int
    ) -> tuple[SplitTargets | None, Selected | None, list[NDArray[np.uint32]]]:
        """Return the workload as the rule takes it, and its columns by row, which follow ``placed`` others."""
        if self.rule in AT_MEDIAN:
            return None, None, []
        workload = records.workload or CodedWorkload()
        self.check_workload(workload.kinds)
        tasks, columns = tasks_of(workload, records.rows, placed) if workload.targets else (None, [])
        boxes = workload.selections if self.rule == "selection" else None
        selected = None if boxes is None else Selected(np.stack([boxes.low, boxes.high]), boxes.weights)
        return tasks, selected, columns


def _as_labels(domain: Domain, codes: Codes) -> Domain:
    """Return the domain as numbers, without a taxonomy: its codes, or its values where it has numbers."""
    if domain.tree is None:
        return domain
    if isinstance(domain, NumericDomain):
        return replace(domain, snap=None, finest=0, coarsest=None, extent=domain.ends)
    labels = np.arange(domain.size - domain.has_null)
    known = codes[codes < len(labels)]
    extent = np.array([known.min(), known.max()], np.int64) if len(known) else labels[:0]
    return NumericDomain(domain.name, labels, domain.has_null, extent=extent)


def _tests(records: Records, requirements: Requirements) -> tuple[Conjunction, list[NDArray[np.uint32]]]:
    """Return the tests that every part of a split must meet, and the columns that they concern, by row."""
    if records.persons is None:
        columns = [records.sensitive[name].codes for name in requirements.attributes]
        return Counting(records, requirements).conjunction(), columns
    # The kernel counts records. By records, the table and its parts may fail what they meet by persons.
    by_records = replace(records, persons=None)
    whole = Counting(by_records, requirements).whole
    met_parts = tuple(part for part in requirements.parts if part.condition() is None or part.holds(whole).all())
    enforced = replace(requirements, parts=met_parts)
    tests = Counting(by_records, enforced).conjunction()
    columns = [records.sensitive[name].codes for name in enforced.attributes]
    tests = tests._replace(  # k persons: at least k different values in one more column
        kind=np.append(tests.kind, DISTINCT),
        attribute=np.append(tests.attribute, len(columns)),
        whole=np.append(tests.whole, requirements.least_class),
        bound=np.append(tests.bound, 0.0),
        distinct=np.append(tests.distinct, int(records.persons.max(initial=0)) + 1),
    )
    return tests, [*columns, records.persons]


@dataclass(frozen=True)
class Start:
    """The data that a tree is grown from. Unit i has rows[starts[i]:starts[i + 1]]; for the rest see ``grow_tree``."""

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
        """Grow the tree and put the units in the order of its leaves. within: see ``grow_tree``."""
        return grow_tree(
            self.rule, self.units, self.ground, self.tests, self.sizes, progress, self.tasks, self.selected, within
        )


def _units(
    records: Records, columns: list[NDArray[np.uint32]], *, single: bool
) -> tuple[NDArray[np.uint32], NDArray[np.int64], Units]:
    """Return the rows in the order of the units, where those of each unit begin, and the units.

    A unit has the rows that are equal in codes and ``columns``, or with ``single`` one row. Units are in the order of
    their codes, then of the columns, so the order of the input leaves no trace.
    """
    rows, starts, record_of = records.rows, records.starts, None
    if columns:
        record_of = np.repeat(np.arange(len(records.codes), dtype=np.uint32), np.diff(records.starts))
        fields = [
            Field(codes, bits_for(int(codes.max()) + 1)) for codes in (record_of, *(codes[rows] for codes in columns))
        ]
        line = sort_rows(fields, len(rows))
        rows, record_of = rows[line.rows], record_of[line.rows]
        starts = line.starts
    if single:
        if record_of is None:
            record_of = np.repeat(np.arange(len(records.codes), dtype=np.uint32), np.diff(records.starts))
        starts = np.arange(len(rows) + 1)
    first = starts[:-1]
    data = np.empty((len(first), VALUES + len(columns)), np.uint32)
    data[:, WEIGHT] = np.diff(starts)
    data[:, ORIGIN] = np.arange(len(first))
    for i, codes in enumerate(columns):
        data[:, VALUES + i] = codes[rows[first]]
    codes_of = records.codes.copy() if record_of is None else np.take(records.codes, record_of[first], axis=0)
    return rows, starts, Units(codes_of, data)
