"""Mondrian (LeFevre et al. 2006; LeFevre 2008, section 2; Ghinita 2007, section 6.1): regions divided recursively.

The domain is divided on one attribute, and so is every part, as long as there is an allowable split: one whose parts
all meet every requirement, k and any others. Where a region is divided is the business of a split rule
(``split_median``); the regions are a tree (``tree``). Time O(N d log N), or O(N d log(N)^2) where values are many; N
counts distinct records with k alone and strict splits, else rows.

- ``mondrian``: records of one value stay together, so that the regions tile the domain.
- ``mondrian-relaxed``: records of the median value go to either side. With k alone, and but for equal records, every
  class then has fewer than 2k records.

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

from sfumato.methods.counting import Counting
from sfumato.methods.dividing import ORIGIN, VALUES, WEIGHT, Units, ground_of
from sfumato.methods.line import expand
from sfumato.methods.method import ClassBatch, Records
from sfumato.methods.optimal_1d import BATCH_CLASSES
from sfumato.methods.split_median import RELAXED_MEDIAN, STRICT_MEDIAN
from sfumato.methods.tree import RegionTree, grow_tree
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.requirements.conjunction import DISTINCT, Conjunction
from sfumato.tables.sorting import Field, bits_for, sort_rows

SPLIT_RULES = {"strict": STRICT_MEDIAN, "relaxed": RELAXED_MEDIAN}


@dataclass(frozen=True, kw_only=True)
class Mondrian:
    """Divide the widest attribute at its median, and then the parts."""

    splits: Literal["strict", "relaxed"]
    paper = "LeFevre, DeWitt, Ramakrishnan: Mondrian multidimensional k-anonymity, ICDE 2006"
    separates = False

    @property
    def name(self) -> str:
        return "mondrian" if self.splits == "strict" else "mondrian-relaxed"

    @property
    def summary(self) -> str:
        sides = "equal values together" if self.splits == "strict" else "equal values on either side"
        return f"the widest attribute divided at its median, then its parts, {sides}; time O(N d log N)"

    @property
    def use(self) -> str:
        if self.splits == "strict":
            return "for large tables, and where classes should not overlap"
        return "when classes should be of nearly equal size"

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
        tests, columns = _tests(records, requirements)
        together = self.splits == "strict" and not columns
        units = _distinct_records(records) if together else _single_rows(records, columns)
        ground = ground_of(records.domains, records.costs, requirements.least_class)
        sizes = [domain.size for domain in records.domains]
        tree = grow_tree(SPLIT_RULES[self.splits], units, ground, tests, sizes, progress)
        origin = np.ascontiguousarray(units.data[:, ORIGIN])
        if not together:
            return tree, origin
        rows = np.empty_like(records.rows)
        expand(records.rows, records.starts, origin, rows)
        return tree, rows


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


def _distinct_records(records: Records) -> Units:
    data = np.empty((len(records.codes), VALUES), np.uint32)
    data[:, WEIGHT], data[:, ORIGIN] = np.diff(records.starts), np.arange(len(data))
    return Units(records.codes.copy(), data)


def _single_rows(records: Records, columns: list[NDArray[np.uint32]]) -> Units:
    """Rows by their record, then by their sensitive values: where records are told apart, the input's order is not."""
    at = np.repeat(np.arange(len(records.codes), dtype=np.uint32), np.diff(records.starts))
    rows = records.rows
    if columns:
        fields = [Field(codes, bits_for(int(codes.max()) + 1)) for codes in (at, *(codes[rows] for codes in columns))]
        rows = rows[sort_rows(fields, len(rows)).rows]
    data = np.empty((len(rows), VALUES + len(columns)), np.uint32)
    data[:, WEIGHT], data[:, ORIGIN] = 1, rows
    for place, codes in enumerate(columns):
        data[:, VALUES + place] = codes[rows]
    return Units(np.take(records.codes, at, axis=0), data)
