"""Buckets of whole parts, where the coarsest levels of columns divide the table: no class reaches beyond its part.

``methods/level_parts.py`` says what a part is. A part goes to one task, which forms its classes by itself; small parts
share a task. A part is not divided further, however large it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.spark.bucket_counts import BucketCounts
from sfumato.engines.spark.line_keys import Bytes, LineEncoder
from sfumato.errors import InfeasibleError, UsageError
from sfumato.methods.level_parts import coarse_groups, limited_columns

MOST_PARTS = 1 << 20


@dataclass(frozen=True)
class CoarsestParts:
    """The parts, numbered by the groups of their columns. task_records: the records that a task should have."""

    line_encoder: LineEncoder
    task_records: int

    def __post_init__(self) -> None:
        if self.buckets > MOST_PARTS:
            raise UsageError(
                f"the coarsest levels of {self._columns} divide the table into up to {self.buckets:,} parts, more than "
                f"the {MOST_PARTS:,} that the Spark engine takes. Set coarser levels."
            )

    @property
    def buckets(self) -> int:
        return int(np.prod([int(groups.max()) + 1 for _, groups in self._groups], dtype=object))

    def of(self, places: Bytes, ties: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the part of each record. Its codes are in its place."""
        codes = self.line_encoder.codes(places)
        part = np.zeros(len(codes), np.int64)
        for q, groups in self._groups:
            part = part * (int(groups.max()) + 1) + groups[codes[:, q]]
        return part

    def joined(self, counted: BucketCounts) -> NDArray[np.int64]:
        """Return the task of each part. Raises InfeasibleError if a part cannot meet the requirements by itself."""
        present = counted.sizes > 0
        failing = present & ~counted.holds(np.arange(len(present)), len(present))
        if failing.any():
            raise InfeasibleError(
                f"the coarsest levels of {self._columns} divide the table into {int(present.sum()):,} parts, and "
                f"{int(failing.sum()):,} of these, with {int(counted.sizes[failing].sum()):,} records, cannot meet the "
                "requirements by themselves. Set coarser levels, or a smaller k or l. The memory engine can leave such "
                "records out."
            )
        before = np.cumsum(counted.sizes) - counted.sizes
        return np.unique(np.where(present, before // self.task_records, 0), return_inverse=True)[1].ravel()

    @property
    def _groups(self) -> list[tuple[int, NDArray[np.uint32]]]:
        domains = self.line_encoder.domains
        return [(q, coarse_groups(domains[q])) for q in limited_columns(domains)]

    @property
    def _columns(self) -> str:
        domains = self.line_encoder.domains
        return ", ".join(repr(domains[q].name) for q in limited_columns(domains))
