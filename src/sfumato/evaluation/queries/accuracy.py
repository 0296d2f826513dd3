"""The measured accuracy of queries: the divergence of group-bys and the error of range queries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sfumato.evaluation.release_losses import Losses


@dataclass(frozen=True)
class GroupBy:
    """One group-by of the datacube and its divergence, infinite if the release excludes a record of the original."""

    columns: tuple[str, ...]
    kl: float


@dataclass(frozen=True)
class RangeAccuracy:
    """The relative error of random range-count queries.

    Errors are relative to the answer, or to ``floor`` records if the answer is smaller. ``reached`` is the mean share
    of records in the answers: dependencies between columns move it away from the requested ``selectivity``.
    """

    count: int
    selectivity: float
    attributes: int
    seed: int
    floor: float
    reached: float
    mean: float
    median: float


@dataclass(frozen=True)
class QueryAccuracy:
    """How well the release answers queries with one sensitive column."""

    sensitive: str
    level: int | None
    group_bys: tuple[GroupBy, ...]
    ranges: RangeAccuracy | None

    @property
    def kl(self) -> float | None:
        """The mean divergence over the group-bys."""
        return math.fsum(group_by.kl for group_by in self.group_bys) / len(self.group_bys) if self.group_bys else None

    def __repr__(self) -> str:
        figures = []
        if self.kl is not None:
            figures.append(f"kl {self.kl:.4g} over {len(self.group_bys):,} group-bys of level {self.level}")
        if self.ranges is not None:
            figures.append(f"mean error {self.ranges.mean:.4g} over {self.ranges.count:,} range queries")
        return f"<QueryAccuracy of {self.sensitive!r}: {', '.join(figures)}>"

    def as_dict(self) -> dict[str, Any]:
        """The accuracy as JSON values. JSON has no infinity, so an infinite divergence is null."""
        content: dict[str, Any] = {"sensitive": self.sensitive}
        if self.level is not None:
            content["level"] = self.level
            content["kl"] = _finite(self.kl)
            content["group_bys"] = [
                {"columns": list(group_by.columns), "kl": _finite(group_by.kl)} for group_by in self.group_bys
            ]
        if self.ranges is not None:
            content["ranges"] = dict(vars(self.ranges))
        return content


@dataclass(frozen=True)
class Measured(Losses):
    """The losses, and the accuracy of queries with each of the sensitive columns that were queried."""

    queries: tuple[QueryAccuracy, ...] = ()

    def __repr__(self) -> str:
        return f"<Measured: {self._figures()}, queries with {len(self.queries):,} sensitive columns>"


def _finite(number: float | None) -> float | None:
    return None if number is None or math.isinf(number) else number
