"""The registry of losses, and the measurement of all of them at once.

To add a loss, write one file and an entry point in the group ``sfumato.losses`` whose object is a ``Loss``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.certainty_penalty import (
    GlobalCertaintyPenalty,
    ReleasedPenalty,
    SuppressionWeightedPenalty,
    by_column,
)
from sfumato.losses.classification import ClassificationMetric
from sfumato.losses.discernibility import AverageClassSize, Discernibility, ModifiedDiscernibility
from sfumato.losses.largest_perimeter import LargestPerimeter
from sfumato.losses.loss import ClassTable, Extent, Loss
from sfumato.losses.squared_errors import InformationLoss


@cache
def losses() -> dict[str, Loss]:
    """Return every loss by name: the built-in ones first, then those of installed packages."""
    built_in: list[Loss] = [
        GlobalCertaintyPenalty(),
        ReleasedPenalty(),
        SuppressionWeightedPenalty(),
        Discernibility(),
        AverageClassSize(),
        ModifiedDiscernibility(),
        LargestPerimeter(),
        ClassificationMetric(),
        InformationLoss(),
    ]
    by_name = {loss.name: loss for loss in built_in}
    for entry in entry_points(group="sfumato.losses"):
        by_name.setdefault(entry.name, entry.load())
    return by_name


@dataclass(frozen=True)
class Measurement:
    """The totals of every loss that can be computed from some or all classes of a release."""

    totals: dict[str, Any]
    extent: Extent

    @classmethod
    def of(cls, classes: ClassTable) -> Measurement:
        totals = {name: loss.total(classes) for name, loss in losses().items()}
        return cls({name: total for name, total in totals.items() if total is not None}, classes.extent)

    def join(self, other: Measurement) -> Measurement:
        """Add the totals of further classes of the same release."""
        totals = dict(self.totals)
        for name, total in other.totals.items():
            totals[name] = losses()[name].join(totals[name], total) if name in totals else total
        return Measurement(totals, self.extent.join(other.extent))

    def values(self) -> dict[str, float | int]:
        """Return every loss by name. All classes of the release must have been joined."""
        values = {name: losses()[name].value(total, self.extent) for name, total in self.totals.items()}
        return {name: value for name, value in values.items() if value is not None}

    def by_column(self) -> NDArray[np.float64]:
        """Return the mean penalty of a record on each quasi-identifier: float64[d]."""
        return by_column(self.totals[GlobalCertaintyPenalty.name], self.extent)
