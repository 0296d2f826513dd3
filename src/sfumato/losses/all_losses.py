"""Every loss there is, and all of them measured at once.

A further loss is one file and an entry point in the group ``sfumato.losses`` whose object is a ``Loss``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.certainty_penalty import GlobalCertaintyPenalty, by_column
from sfumato.losses.classification import ClassificationMetric
from sfumato.losses.discernibility import AverageClassSize, Discernibility, ModifiedDiscernibility
from sfumato.losses.largest_perimeter import LargestPerimeter
from sfumato.losses.loss import ClassTable, Extent, Loss


@cache
def losses() -> dict[str, Loss]:
    """Every loss, by name."""
    own: list[Loss] = [
        GlobalCertaintyPenalty(),
        Discernibility(),
        AverageClassSize(),
        ModifiedDiscernibility(),
        LargestPerimeter(),
        ClassificationMetric(),
    ]
    found = {loss.name: loss for loss in own}
    for entry in entry_points(group="sfumato.losses"):
        found.setdefault(entry.name, entry.load())
    return found


@dataclass(frozen=True)
class Measurement:
    """What some classes of a release lose, or all of them, by every loss that can be computed from them."""

    totals: dict[str, Any]
    extent: Extent

    @classmethod
    def of(cls, classes: ClassTable) -> Measurement:
        totals = {name: loss.total(classes) for name, loss in losses().items()}
        return cls({name: total for name, total in totals.items() if total is not None}, classes.extent)

    def join(self, other: Measurement) -> Measurement:
        """With further classes of the same release."""
        totals = dict(self.totals)
        for name, total in other.totals.items():
            totals[name] = losses()[name].join(totals[name], total) if name in totals else total
        return Measurement(totals, self.extent.join(other.extent))

    def values(self) -> dict[str, float | int]:
        """Every loss, once all classes are in it."""
        values = {name: losses()[name].value(total, self.extent) for name, total in self.totals.items()}
        return {name: value for name, value in values.items() if value is not None}

    def by_column(self) -> NDArray[np.float64]:
        """The mean penalty of a record on each quasi-identifier."""
        return by_column(self.totals[GlobalCertaintyPenalty.name], self.extent)
