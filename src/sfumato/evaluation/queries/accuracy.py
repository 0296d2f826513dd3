"""What is found: the divergence of group-bys and the error of range queries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sfumato.evaluation.measurement import Losses


@dataclass(frozen=True)
class GroupBy:
    """One group-by of the datacube and its divergence; infinite where the release rules out what the original has."""

    columns: tuple[str, ...]
    kl: float


@dataclass(frozen=True)
class RangeAccuracy:
    """The relative error of random range-count queries.

    Errors are relative to the answer, or to ``floor`` records where the answer is less. ``reached`` is the mean share
    of the records in the answers: dependencies between columns move it away from the ``selectivity`` asked for.
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
    """How well queries with one sensitive column are answered."""

    sensitive: str
    level: int | None
    group_bys: tuple[GroupBy, ...]
    ranges: RangeAccuracy | None

    @property
    def kl(self) -> float | None:
        """The mean divergence over the group-bys."""
        return math.fsum(one.kl for one in self.group_bys) / len(self.group_bys) if self.group_bys else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: it is null there."""
        found: dict[str, Any] = {"sensitive": self.sensitive}
        if self.level is not None:
            found["level"] = self.level
            found["kl"] = _finite(self.kl)
            found["group_bys"] = [{"columns": list(one.columns), "kl": _finite(one.kl)} for one in self.group_bys]
        if self.ranges is not None:
            found["ranges"] = dict(vars(self.ranges))
        return found


@dataclass(frozen=True)
class Measured(Losses):
    """The losses, and how well queries are answered: one entry for every sensitive column that was asked for."""

    queries: tuple[QueryAccuracy, ...] = ()


def _finite(number: float | None) -> float | None:
    return None if number is None or math.isinf(number) else number
