"""The contract of a method: given coded records and requirements, it decides which records share a class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.exact_costs import Costs
from sfumato.methods.coded_workload import CodedWorkload
from sfumato.methods.line.line import Line
from sfumato.policy.run_settings import USUAL_EFFORT, EffortName, MethodSettings
from sfumato.progress import Progress
from sfumato.requirements import Hierarchy, Requirements
from sfumato.tables.coding.domains import Codes, Domain

if TYPE_CHECKING:
    from sfumato.methods.trees.region_tree import RegionTree

BATCH_CLASSES = 1 << 16  # classes that a method yields at once


@dataclass(frozen=True)
class SensitiveValues:
    """A sensitive attribute in codes, row by row: uint32[n], in the order of the values, ``distinct`` for null.

    numbers: float64[distinct], each value as a number, NaN for values that are not numbers.
    totals: int64[distinct], how often each value occurs in the whole table, where the records are a part of it.
    """

    codes: NDArray[np.uint32]
    distinct: int
    numbers: NDArray[np.float64]
    hierarchy: Hierarchy | None = None
    totals: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Effort:
    """How long an open-ended search may go on: up to a level of effort, or for a number of seconds."""

    level: EffortName
    seconds: float | None = None
    peels_dear: bool = False  # only the dearest classes are formed anew, see lattice.dear_classes

    @classmethod
    def asked(cls, settings: MethodSettings) -> Effort:
        """Return the effort that a policy asks for, or the usual one."""
        return cls(settings.effort or USUAL_EFFORT, settings.seconds)

    @property
    def is_thorough(self) -> bool:
        """Return whether a table of any size is searched."""
        return self.seconds is not None or self.level in ("balanced", "best", "exact")

    @property
    def is_exact(self) -> bool:
        """Return whether neighbourhoods are solved exactly, which needs the extra ``exact``."""
        return self.level == "exact"

    @property
    def is_annealed(self) -> bool:
        """Return whether the search anneals classes: it then takes as long as the user has patience."""
        return self.seconds is not None or self.level in ("best", "exact")

    @property
    def is_unlimited(self) -> bool:
        """Return whether the search goes on until it gains nothing."""
        return self.seconds is None and self.level in ("best", "exact")

    @property
    def is_quick(self) -> bool:
        """Return whether nothing is searched."""
        return self.seconds is None and self.level == "fast"

    def __str__(self) -> str:
        return self.level if self.seconds is None else f"{self.seconds:g} seconds"

    def within_patience(self, records: int) -> Effort:
        """Return the effort for a table in memory: ``normal`` is ``fast`` where a search would take long.

        The dearest classes are formed anew then.
        """
        if self.is_thorough or self.is_quick or records <= LARGE:
            return self
        return replace(FAST, peels_dear=True)


FAST = Effort("fast")
LARGE = 1_000_000  # records that a search with effort ``normal`` takes at most


@dataclass(frozen=True)
class Records:
    """A coded table in which equal records are stored once.

    codes: uint[m, d], C-order, the distinct records in ascending order of their codes.
    starts: int64[m + 1]; rows: uint32[n]. The rows of distinct record i are rows[starts[i]:starts[i + 1]].
    sensitive, persons: by row, including rows that are not among these records; persons: uint32, None unless counted.
    workload: the purpose of the release, by row too.
    lines: the lines of these records by ordering, where several runs share them; None for a single run.
    """

    codes: Codes
    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    domains: Sequence[Domain]
    costs: Costs
    sensitive: Mapping[str, SensitiveValues] = field(default_factory=dict)
    persons: NDArray[np.uint32] | None = None
    seed: int | None = None  # for methods that draw at random; None where the user gave none
    effort: Effort = FAST
    lines: dict[str, Line] | None = None
    workload: CodedWorkload | None = None

    @property
    def count(self) -> int:
        return len(self.rows)

    def without(self, left_out: NDArray[np.uint32]) -> Records:
        """Return the records without the rows ``left_out``."""
        if not len(left_out):
            return self
        stays = np.isin(self.rows, left_out, invert=True)
        weights = np.add.reduceat(stays.astype(np.int64), self.starts[:-1])
        occupied = weights > 0
        return replace(
            self,
            codes=np.compress(occupied, self.codes, axis=0),
            starts=np.append(0, np.cumsum(weights[occupied])),
            rows=self.rows[stays],
            lines=None,
        )


@dataclass(frozen=True)
class ClassBatch:
    """A batch of classes: class i has rows[starts[i]:starts[i + 1]] and the box low[i]..high[i]."""

    rows: NDArray[np.uint32]
    starts: NDArray[np.int64]
    low: Codes
    high: Codes

    @classmethod
    def joined(cls, batches: Sequence[ClassBatch]) -> ClassBatch:
        """Join several batches into one."""
        sizes = np.concatenate([np.diff(batch.starts) for batch in batches])
        return cls(
            np.concatenate([batch.rows for batch in batches]),
            np.append(0, np.cumsum(sizes)),
            np.concatenate([batch.low for batch in batches]),
            np.concatenate([batch.high for batch in batches]),
        )


class Method(Protocol):
    """A method. Each published algorithm has one file."""

    @property
    def name(self) -> str: ...

    @property
    def paper(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def use(self) -> str:
        """Return when to use the method, in words for users."""
        ...

    @property
    def separates(self) -> bool:
        """Return whether sensitive values get a table of their own and quasi-identifiers are released unchanged."""
        ...

    def check(self, requirements: Requirements) -> None:
        """Raise UsageError, before any work is done, for requirements that this method cannot meet."""
        ...

    def meets(self, requirements: Requirements) -> bool:
        """Return whether every class meets the requirements; if not, neighbouring classes are merged until they do."""
        ...

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        """Yield classes in batches, with every record in exactly one class; near classes follow each other."""
        ...


@runtime_checkable
class Foreseeing(Protocol):
    """A method that saves work if it knows in advance which values of k will follow."""

    def foresee(self, records: Records, many_k: Sequence[int], progress: Progress) -> None:
        """Compute in advance what ``classes`` of these records needs for each k, where k is the only requirement."""
        ...


@runtime_checkable
class ForNumbers(Protocol):
    """A method that needs columns that have means."""

    def check_domains(self, domains: Sequence[Domain]) -> None:
        """Raise UsageError, before any work is done, for a column without a mean."""
        ...


@runtime_checkable
class Regional(Method, Protocol):
    """A method whose classes are the leaves of a tree of regions over the domain."""

    @property
    def tiles(self) -> bool:
        """Return whether every value is in exactly one region, so that the regions can recode new records."""
        ...

    def tree(
        self, records: Records, requirements: Requirements, progress: Progress
    ) -> tuple[RegionTree, NDArray[np.uint32]]:
        """Return the regions, and the rows in the order of the leaves."""
        ...
