"""What a method is: given coded records and requirements, it says which records share a class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.costs import Costs
from sfumato.progress import Progress
from sfumato.requirements.requirement import Requirements
from sfumato.tables.domains import Codes, Domain


@dataclass(frozen=True)
class SensitiveValues:
    """A sensitive attribute in codes, row by row: uint32[n], in the order of the values, ``distinct`` for null.

    numbers: float64[distinct], what each value is as a number, NaN for what is none.
    """

    codes: NDArray[np.uint32]
    distinct: int
    numbers: NDArray[np.float64]

    def reference(self) -> NDArray[np.float64]:
        """The share of each value."""
        counts = self.counts()
        return counts / max(int(counts.sum()), 1)

    def counts(self) -> NDArray[np.int64]:
        """How often each value occurs."""
        return np.bincount(self.codes, minlength=self.distinct + 1)[: self.distinct]


@dataclass(frozen=True)
class Records:
    """A coded table with equal records made one.

    codes: uint[m, d], C-order, the distinct records in ascending order of their codes.
    starts: int64[m + 1]; rows: uint32[n]. The rows of distinct record i are rows[starts[i]:starts[i + 1]], ascending.
    """

    codes: Codes
    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    domains: Sequence[Domain]
    costs: Costs
    sensitive: Mapping[str, SensitiveValues] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class ClassBatch:
    """Some classes: class i has rows[starts[i]:starts[i + 1]] and the box low[i]..high[i]."""

    rows: NDArray[np.uint32]
    starts: NDArray[np.int64]
    low: Codes
    high: Codes


class Method(Protocol):
    """One published algorithm a file."""

    @property
    def name(self) -> str: ...

    @property
    def paper(self) -> str: ...

    @property
    def summary(self) -> str: ...

    def check(self, requirements: Requirements) -> None:
        """Raise UsageError, before any work is done, for requirements that this method cannot meet."""
        ...

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        """Every record in exactly one class, every class within the requirements, in batches."""
        ...
