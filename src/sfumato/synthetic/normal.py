"""Records with independent, discretely normal attributes: normal numbers rounded to whole numbers.

Wang et al. 2011, sec. IV.B, measure partitions on 10,000 such records with 6 attributes. They state neither mean nor
deviation; with the defaults here, an attribute has about eighty values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from sfumato.errors import UsageError
from sfumato.synthetic.generator import BATCH_RECORDS, GeneratedColumn, check_whole, draw_batches, policy_of

LARGEST = 2**53
"""Beyond this, floating-point numbers skip whole numbers, so the draws would not be discretely normal."""


@dataclass(frozen=True, kw_only=True)
class Normal:
    """``dimensions`` numeric quasi-identifiers x1, x2, ... with the same mean and standard deviation."""

    name: ClassVar[str] = "normal"
    version: ClassVar[str] = "1"

    dimensions: int = 6
    mean: float = 50.0
    deviation: float = 10.0

    def __post_init__(self) -> None:
        check_whole("dimensions", self.dimensions, 1)
        for option, value in (("mean", self.mean), ("deviation", self.deviation)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise UsageError(f"{option} must be a finite number, not {value!r}.")
        if self.deviation <= 0:
            raise UsageError(f"deviation must be above 0, not {self.deviation!r}.")
        if abs(self.mean) + 100 * self.deviation > LARGEST:
            raise UsageError("mean and deviation are too large for whole numbers. Keep them below about 10**13.")

    def batches(self, records: int, seed: int) -> Iterator[pa.RecordBatch]:
        return draw_batches(records, seed, self._draw)

    def taxonomies(self) -> dict[str, list[tuple[str, ...]]]:
        return {}

    def policy(self) -> dict[str, Any]:
        return policy_of(
            [GeneratedColumn(name=name, role="quasi-identifier", type="numeric") for name in self._names()]
        )

    def _names(self) -> list[str]:
        return [f"x{number}" for number in range(1, self.dimensions + 1)]

    def _draw(self, numbers: np.random.Generator) -> pa.RecordBatch:
        columns = (numbers.normal(self.mean, self.deviation, BATCH_RECORDS) for _ in range(self.dimensions))
        return pa.record_batch([pa.array(np.rint(column).astype(np.int64)) for column in columns], names=self._names())
