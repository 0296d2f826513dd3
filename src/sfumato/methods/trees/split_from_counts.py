"""The split of a region, chosen from its frequency sets instead of its records (LeFevre 2008, section 5.1).

A frequency set gives the number of records of the region with each code of one attribute together with each combination
of sensitive values, targets, and cell of the features. These combinations are passed as weighted units to the same
kernels that choose among records, so that the choice is the same.

Differs from the paper: numbers to predict are supported too. There the gain of a split depends on the sum of the
numbers and not on each, and two adjacent numbers can represent a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import NONE
from sfumato.methods.trees.mondrian import Start
from sfumato.methods.trees.region_tree import BY_TARGETS
from sfumato.methods.trees.split_median import STRICT_MEDIAN, median_of, widest
from sfumato.methods.trees.split_prediction import gain_of, take_split
from sfumato.methods.trees.split_targets import SplitTargets, counters_for
from sfumato.methods.trees.split_tests import (
    SensitiveCounts,
    SplitBuffers,
    SplitData,
    Units,
    sensitive_counts,
    split_buffers,
)
from sfumato.requirements.conjunction import Conjunction

FrequencySets = Callable[[int], Units]
"""Returns the frequency set of an attribute: codes: uint[u, 1], ascending; data: see Units."""


@dataclass(frozen=True)
class Split:
    """Where a region is divided.

    first, last: int64[parts], the codes of each part, which may reach beyond the region. low, high: int64[parts], the
    least and largest code of its records. sizes: int64[parts], their number. rule: the split rule of the parts.
    """

    attribute: int
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    sizes: NDArray[np.int64]
    rule: int


def choose_split(
    rule: int, sets: FrequencySets, low: NDArray[np.int64], high: NDArray[np.int64], start: Start
) -> Split | None:
    """Return the split of the region whose smallest box is low..high, None where no split is allowable.

    start: of any records of the table; only the data common to all records are used.
    """
    chooser = _Chooser(sets, low, high, start.ground, start.tests, start.tasks)  # type: ignore[arg-type]
    if rule == BY_TARGETS and start.tasks is not None:
        split, settled = chooser.by_targets()
        if split is not None:
            return split
        rule = STRICT_MEDIAN if settled else BY_TARGETS
    return chooser.by_median(rule)


@dataclass(frozen=True)
class _Chooser:
    """The choice of a split of one region, whose smallest box is low..high."""

    sets: FrequencySets
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    ground: SplitData
    tests: Conjunction
    tasks: SplitTargets | None

    def by_targets(self) -> tuple[Split | None, bool]:
        """Return the split with the largest gain, and whether nothing can be gained. See ``split_by_targets``."""
        best, best_at, best_gain, settled = NONE, NONE, 0.0, False
        for attribute in np.flatnonzero(self.low < self.high).tolist():
            if settled:
                break
            units, buffers, sensitive, low, high = self._on(attribute)
            count = len(units.data)
            counters = counters_for(count, high - low + 1, self.tasks)
            at, gain, settled = gain_of(
                units, attribute, 0, count, low, high, best_gain, self.ground, buffers, sensitive, self.tasks, counters
            )
            if at != NONE:
                best, best_at, best_gain = attribute, at, gain
        if best == NONE:
            return None, settled
        units, buffers, sensitive, low, high = self._on(best)
        parts = take_split(units, best, best_at, 0, len(units.data), low, high, self.ground, buffers, sensitive)
        return self._split(best, parts, units, buffers, BY_TARGETS), False

    def by_median(self, rule: int) -> Split | None:
        """Return the split of the widest attribute that has one. See ``split_by_median``."""
        tried = self.low == self.high
        while True:
            attribute = int(widest(STRICT_MEDIAN, tried, self.low, self.high, self.ground))
            if attribute == NONE:
                return None
            tried[attribute] = True
            units, buffers, sensitive, low, high = self._on(attribute)
            parts, _ = median_of(
                STRICT_MEDIAN, units, attribute, 0, len(units.data), low, high, self.ground, buffers, sensitive
            )
            if parts:
                return self._split(attribute, parts, units, buffers, rule)

    def _on(self, attribute: int) -> tuple[Units, SplitBuffers, SensitiveCounts | None, int, int]:
        codes, data = self.sets(attribute)
        low, high, count = int(self.low[attribute]), int(self.high[attribute]), len(data)
        # Kernels read the codes of one attribute only; here all attributes have the same codes.
        units = Units(np.broadcast_to(codes, (count, len(self.low))), data)
        sensitive = sensitive_counts(count, self.tests) if self.tests.attributes else None
        return units, split_buffers(count, high - low + 1), sensitive, low, high

    def _split(self, attribute: int, parts: int, units: Units, buffers: SplitBuffers, rule: int) -> Split:
        last, ends, codes = buffers.last[:parts].copy(), buffers.ends[:parts], units.codes[:, 0].astype(np.int64)
        positions = np.searchsorted(codes, last, side="right")
        return Split(
            attribute,
            buffers.first[:parts].copy(),
            last,
            codes[np.append(0, positions[:-1])],
            codes[positions - 1],
            np.diff(ends, prepend=0),
            rule,
        )
