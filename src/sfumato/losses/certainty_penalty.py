"""GCP, the global certainty penalty (Ghinita 2007, section 2.1): the mean penalty of a record, 0 to 1.

A suppressed record counts 1. ``gcp_released`` is the mean of the released records alone. ``cost`` is the mean of all
records, in which suppressed ones count as the policy says: what the search for records to leave out lowers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.loss import ClassTable, Extent, Sum


class GlobalCertaintyPenalty(Sum):
    name = "gcp"
    summary = "global certainty penalty: 0 for the original table, 1 for a release that tells nothing"

    def total(self, classes: ClassTable) -> NDArray[np.float64]:
        """Sum the penalties of all records, by quasi-identifier: float64[d]."""
        result: NDArray[np.float64] = classes.sizes @ classes.penalties
        return result

    def value(self, total: NDArray[np.float64], release: Extent) -> float | None:
        return float(by_column(total, release) @ release.weights)


class ReleasedPenalty(GlobalCertaintyPenalty):
    name = "gcp_released"
    summary = "the global certainty penalty of the released records alone, whatever was left out"

    def value(self, total: NDArray[np.float64], release: Extent) -> float | None:
        return float(total @ release.weights) / release.released if release.released else None


class SuppressionWeightedPenalty(GlobalCertaintyPenalty):
    name = "cost"
    summary = "the global certainty penalty, with a record that was left out counted by suppression_cost instead of 1"

    def value(self, total: NDArray[np.float64], release: Extent) -> float:
        return float(total @ release.weights + release.suppression_cost * release.suppressed) / release.records


def by_column(total: NDArray[np.float64], release: Extent) -> NDArray[np.float64]:
    """Return the mean penalty of a record on each quasi-identifier, from the total of all records."""
    return (total + release.suppressed) / release.records
