"""The split of a region, chosen from its frequency sets instead of its records (LeFevre 2008, section 5.1).

A frequency set says how many records of the region have each code of one attribute together with each combination of
what is beside it: sensitive values, targets, and the cell of the features. As units with a weight they are given to the
same kernels that choose among records, so that the choice is the same.

Differs from the paper: numbers to predict are decided too. What a split gains there depends on the sum of the numbers
and not on each, and a sum is kept by two numbers that are next to each other.
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
from sfumato.methods.trees.split_tests import Secrets, SplitBuffers, SplitData, Units, room_for, secrets_for
from sfumato.requirements.conjunction import Conjunction

FrequencySets = Callable[[int], Units]
"""The frequency set of an attribute: codes: uint[u, 1], ascending; data: see Units."""


@dataclass(frozen=True)
class Split:
    """Where a region is divided.

    first, last: int64[parts], the codes of each part, which may reach beyond the region. low, high: int64[parts], the
    codes between which its records are. sizes: int64[parts], how many they are. rule: what the parts are divided by.
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
    """The split of the region whose smallest box is low..high, none where no split is allowable.

    start: of any records of the table; what it says of all of them is used.
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
    sets: FrequencySets
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    ground: SplitData
    tests: Conjunction
    tasks: SplitTargets | None

    def by_targets(self) -> tuple[Split | None, bool]:
        """The split that gains most, and whether there is nothing to gain in any part. See ``split_by_targets``."""
        best, best_at, best_gain, settled = NONE, NONE, 0.0, False
        for attribute in np.flatnonzero(self.low < self.high).tolist():
            if settled:
                break
            units, room, secrets, low, high = self._on(attribute)
            count = len(units.data)
            counters = counters_for(count, high - low + 1, self.tasks)
            at, gain, settled = gain_of(
                units, attribute, 0, count, low, high, best_gain, self.ground, room, secrets, self.tasks, counters
            )
            if at != NONE:
                best, best_at, best_gain = attribute, at, gain
        if best == NONE:
            return None, settled
        units, room, secrets, low, high = self._on(best)
        parts = take_split(units, best, best_at, 0, len(units.data), low, high, self.ground, room, secrets)
        return self._split(best, parts, units, room, BY_TARGETS), False

    def by_median(self, rule: int) -> Split | None:
        """The split of the widest attribute that has one. See ``split_by_median``."""
        tried = self.low == self.high
        while True:
            attribute = int(widest(tried, self.low, self.high, self.ground))
            if attribute == NONE:
                return None
            tried[attribute] = True
            units, room, secrets, low, high = self._on(attribute)
            parts, _ = median_of(
                STRICT_MEDIAN, units, attribute, 0, len(units.data), low, high, self.ground, room, secrets
            )
            if parts:
                return self._split(attribute, parts, units, room, rule)

    def _on(self, attribute: int) -> tuple[Units, SplitBuffers, Secrets | None, int, int]:
        codes, data = self.sets(attribute)
        low, high, count = int(self.low[attribute]), int(self.high[attribute]), len(data)
        # Kernels look at the codes of one attribute alone; here all look the same.
        units = Units(np.broadcast_to(codes, (count, len(self.low))), data)
        secrets = secrets_for(count, self.tests) if self.tests.attributes else None
        return units, room_for(count, high - low + 1), secrets, low, high

    def _split(self, attribute: int, parts: int, units: Units, room: SplitBuffers, rule: int) -> Split:
        last, ends, codes = room.last[:parts].copy(), room.ends[:parts], units.codes[:, 0].astype(np.int64)
        places = np.searchsorted(codes, last, side="right")
        return Split(
            attribute,
            room.first[:parts].copy(),
            last,
            codes[np.append(0, places[:-1])],
            codes[places - 1],
            np.diff(ends, prepend=0),
            rule,
        )
