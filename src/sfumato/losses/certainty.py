"""GCP, the global certainty penalty (Ghinita 2007, section 2.1): the mean penalty of a record, 0 to 1.

A suppressed record counts 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.loss import ClassTable


class GlobalCertaintyPenalty:
    name = "gcp"
    summary = "global certainty penalty: 0 is the original, 1 says nothing"

    def value(self, classes: ClassTable) -> float:
        return float(by_column(classes) @ classes.weights)


def by_column(classes: ClassTable) -> NDArray[np.float64]:
    """The mean penalty of a record on each quasi-identifier."""
    total: NDArray[np.float64] = classes.sizes @ classes.penalties + classes.suppressed
    return total / classes.records
