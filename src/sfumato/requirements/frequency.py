"""Frequency l-diversity (Ghinita 2007, definition 3): no sensitive value has more than 1/l of a class.

Whoever knows that a person is in a class guesses their value with a probability of at most 1/l. Null is a record but
never a value: it neither protects nor has to be protected, so shares are of the records that have a value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.requirements.requirement import (
    KNOWN,
    LARGEST,
    TIMES_AT_MOST,
    ClassCounts,
    Verdict,
    counter_of,
)

LARGEST_SIZE = 1 << 62


@dataclass(frozen=True)
class FrequencyDiversity:
    """At most one in ``l`` of the values of ``attribute`` in a class are the same."""

    attribute: str
    l: int  # noqa: E741 - the name that the field knows it by
    kind = "frequency"
    closed_under_union = True
    closed_under_addition = False

    def thresholds(self, attribute: int) -> NDArray[np.int64]:
        times = min(self.l, LARGEST_SIZE)
        line = [TIMES_AT_MOST, counter_of(attribute, LARGEST), times, counter_of(attribute, KNOWN)]
        return np.array([line], np.int64)

    def check_feasible(self, table: ClassCounts) -> None:
        counts = table.histograms[self.attribute].count
        known, largest = int(counts.sum()), int(counts.max(initial=0))
        if largest * self.l > known:
            feasible = known // largest
            raise InfeasibleError(
                f"frequency l-diversity of {self.attribute!r} with l = {self.l:,} allows the most frequent value "
                f"{1 / self.l:.1%} of the records, but it has {largest / known:.1%}. "
                f"Choose an l of at most {feasible:,}."
            )

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the l that is reached: the least, over classes, of records to the most frequent value."""
        histogram = classes.histograms[self.attribute]
        known = np.zeros(len(classes.sizes), np.int64)
        largest = np.zeros(len(classes.sizes), np.int64)
        np.add.at(known, histogram.owner, histogram.count)
        np.maximum.at(largest, histogram.owner, histogram.count)
        some = largest > 0
        # As a division: a product with a very large l would not fit into 64 bits.
        holds = bool(np.all(largest <= known // min(self.l, LARGEST_SIZE)))
        reached = float(np.min(known[some] / largest[some])) if some.any() else float(self.l)
        return Verdict(f"frequency l-diversity of {self.attribute!r}, l = {self.l}", holds, reached)
