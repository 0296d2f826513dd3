"""What a method is: given coded records and requirements, it says which records share a class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.costs import Costs
from sfumato.progress import Progress
from sfumato.requirements.requirement import Requirements
from sfumato.tables.domains import Codes, Domain


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

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        """Every record in exactly one class, every class within the requirements, in batches."""
        ...
