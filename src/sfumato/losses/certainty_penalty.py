"""GCP, the global certainty penalty (Ghinita 2007, section 2.1): the mean penalty of a record, 0 to 1.

A suppressed record counts 1. The *cost* is the same mean with suppressed records counted as the policy says; it is what
the search for records to leave out lowers.
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

    def value(self, total: NDArray[np.float64], release: Extent) -> float:
        return float(by_column(total, release) @ release.weights)


class SuppressionWeightedPenalty(GlobalCertaintyPenalty):
    name = "cost"
    summary = "the global certainty penalty, with a record that was left out counted by suppression_cost instead of 1"

    def value(self, total: NDArray[np.float64], release: Extent) -> float:
        return float(total @ release.weights + release.suppression_cost * release.suppressed) / release.records


def by_column(total: NDArray[np.float64], release: Extent) -> NDArray[np.float64]:
    """Return the mean penalty of a record on each quasi-identifier, from the total of all records."""
    return (total + release.suppressed) / release.records
