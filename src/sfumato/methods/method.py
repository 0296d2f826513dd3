"""What a method is: given coded records and requirements, it says which records share a class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.exact_costs import Costs
from sfumato.methods.coded_workload import CodedWorkload
from sfumato.methods.line.line import Line
from sfumato.progress import Progress
from sfumato.requirements import Hierarchy, Requirements
from sfumato.tables.coding.domains import Codes, Domain

if TYPE_CHECKING:
    from sfumato.methods.trees.region_tree import RegionTree


@dataclass(frozen=True)
class SensitiveValues:
    """A sensitive attribute in codes, row by row: uint32[n], in the order of the values, ``distinct`` for null.

    numbers: float64[distinct], what each value is as a number, NaN for what is none.
    totals: int64[distinct], how often each value occurs in the whole table, where the records are a part of it.
    """

    codes: NDArray[np.uint32]
    distinct: int
    numbers: NDArray[np.float64]
    hierarchy: Hierarchy | None = None
    totals: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Effort:
    """How much work a method may do that could go on for ever: so much, or for so long."""

    level: Literal["fast", "balanced", "best"] = "fast"
    seconds: float | None = None


@dataclass(frozen=True)
class Records:
    """A coded table with equal records made one.

    codes: uint[m, d], C-order, the distinct records in ascending order of their codes.
    starts: int64[m + 1]; rows: uint32[n]. The rows of distinct record i are rows[starts[i]:starts[i + 1]], ascending.
    sensitive, persons: by row, also of rows that are not among these records; persons: uint32, where they are counted.
    workload: what the release is for, by row too.
    lines: those that were made of these records, by ordering, where several runs share them; one run keeps none.
    """

    codes: Codes
    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    domains: Sequence[Domain]
    costs: Costs
    sensitive: Mapping[str, SensitiveValues] = field(default_factory=dict)
    persons: NDArray[np.uint32] | None = None
    seed: int | None = None  # for methods that draw at random; none was given
    effort: Effort = Effort()
    lines: dict[str, Line] | None = None
    workload: CodedWorkload | None = None

    @property
    def count(self) -> int:
        return len(self.rows)

    def without(self, left_out: NDArray[np.uint32]) -> Records:
        """The same without some rows."""
        if not len(left_out):
            return self
        stays = np.isin(self.rows, left_out, invert=True)
        weights = np.add.reduceat(stays.astype(np.int64), self.starts[:-1])
        some = weights > 0
        return replace(
            self,
            codes=np.compress(some, self.codes, axis=0),
            starts=np.append(0, np.cumsum(weights[some])),
            rows=self.rows[stays],
            lines=None,
        )


@dataclass(frozen=True)
class ClassBatch:
    """Some classes: class i has rows[starts[i]:starts[i + 1]] and the box low[i]..high[i]."""

    rows: NDArray[np.uint32]
    starts: NDArray[np.int64]
    low: Codes
    high: Codes

    @classmethod
    def joined(cls, batches: Sequence[ClassBatch]) -> ClassBatch:
        """Several batches as one."""
        sizes = np.concatenate([np.diff(batch.starts) for batch in batches])
        return cls(
            np.concatenate([batch.rows for batch in batches]),
            np.append(0, np.cumsum(sizes)),
            np.concatenate([batch.low for batch in batches]),
            np.concatenate([batch.high for batch in batches]),
        )


class Method(Protocol):
    """One published algorithm a file."""

    @property
    def name(self) -> str: ...

    @property
    def paper(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def use(self) -> str:
        """When to use it, for people."""
        ...

    @property
    def separates(self) -> bool:
        """Are the sensitive values released in a table of their own, and the quasi-identifiers as they are?"""
        ...

    def check(self, requirements: Requirements) -> None:
        """Raise UsageError, before any work is done, for requirements that this method cannot meet."""
        ...

    def meets(self, requirements: Requirements) -> bool:
        """Does every class of this method meet the requirements? Else neighbouring classes are joined until they do."""
        ...

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        """Every record in exactly one class, in batches; classes that follow each other lie near each other."""
        ...


@runtime_checkable
class Foreseeing(Protocol):
    """A method that has less work if it knows beforehand which k will be asked for."""

    def foresee(self, records: Records, many_k: Sequence[int], progress: Progress) -> None:
        """Do what ``classes`` of these records will need for each k, where k is all that is asked for."""
        ...


@runtime_checkable
class Regional(Method, Protocol):
    """A method whose classes are the leaves of a tree of regions over the domain."""

    @property
    def tiles(self) -> bool:
        """Is every value in one region alone, so that the regions recode further records too?"""
        ...

    def tree(
        self, records: Records, requirements: Requirements, progress: Progress
    ) -> tuple[RegionTree, NDArray[np.uint32]]:
        """The regions, and the rows in the order of the leaves."""
        ...
