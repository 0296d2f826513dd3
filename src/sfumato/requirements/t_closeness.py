"""t-closeness (Li et al. 2007): the sensitive values of a class are distributed nearly as in the whole release.

The distance of two distributions is the earth mover's distance. The distance of two values is 1 (``equal``), the
number of steps between them over the number of values less one (``ordered``), or the height of their lowest common
ancestor over the height of the taxonomy (``hierarchical``). All three distances of distributions are sums over spans of
values: a weight times the difference of the shares in the span. The spans are the single values, the values up to each
one, or the values under each node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.parameters import Parameter, one_of, share
from sfumato.requirements.conjunction import CLOSENESS_EQUAL, CLOSENESS_HIERARCHICAL, CLOSENESS_ORDERED, EXACT
from sfumato.requirements.requirement import ClassCounts, Condition, Counter, Histogram, Requirement, Verdict

CELLS = 1 << 22
Distance = Literal["equal", "ordered", "hierarchical"]
_CONDITIONS = {"equal": CLOSENESS_EQUAL, "ordered": CLOSENESS_ORDERED, "hierarchical": CLOSENESS_HIERARCHICAL}


@dataclass(frozen=True)
class TCloseness(Requirement):
    """At most the distance ``t`` between the distribution of ``attribute`` in a class and in the release."""

    attribute: str
    t: float
    distance: Distance = "equal"
    kind = "t-closeness"
    parameters: ClassVar = {
        "t": Parameter(share, nothing=1),
        "distance": Parameter(one_of(*_CONDITIONS), required=False),
    }
    example: ClassVar = {"t": 0.2}
    larger_is_worse = True
    closed_under_union = True
    closed_under_addition = False

    @property
    def counters(self) -> frozenset[Counter]:
        if self.distance == "hierarchical":
            return frozenset({"values", "reference", "hierarchy"})
        return frozenset({"values", "reference"})

    def condition(self) -> Condition:
        return Condition(_CONDITIONS[self.distance], bound=self.t)

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self._distance(classes) <= self.t + EXACT

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the largest distance of a class."""
        distance = self._distance(classes)
        worst = float(distance.max()) if distance.size else 0.0
        text = f"t-closeness of {self.attribute!r} ({self.distance}), t = {self.t:g}"
        return Verdict(text, worst <= self.t + EXACT, worst)

    def _distance(self, classes: ClassCounts) -> NDArray[np.float64]:
        histogram = classes.histograms[self.attribute]
        if self.distance == "equal":
            total = np.maximum(classes.sums(self.attribute, histogram.count), 1)
            more = histogram.count / total[histogram.owner] - histogram.reference[histogram.value]
            # Half the sum of all differences is the sum of the positive ones, which are at values of the class.
            return classes.sums(self.attribute, np.maximum(more, 0.0))
        return _moved(len(classes.sizes), histogram, hierarchical=self.distance == "hierarchical")


def _moved(classes: int, histogram: Histogram, *, hierarchical: bool) -> NDArray[np.float64]:
    """Return the earth mover's distance of each class by the order of the values, or by their hierarchy."""
    values = len(histogram.reference)
    tree = histogram.hierarchy if hierarchical else None
    present = histogram.reference > 0  # values that were left out of the release have no rank
    result = np.zeros(classes)
    step = max(CELLS // max(values, 1), 1)
    for first in range(0, classes, step):
        last = min(first + step, classes)
        begin, end = np.searchsorted(histogram.owner, [first, last])
        counts = np.zeros((last - first, values))
        counts[histogram.owner[begin:end] - first, histogram.value[begin:end]] = histogram.count[begin:end]
        total = counts.sum(axis=1, keepdims=True)
        more = np.where(total > 0, counts / np.maximum(total, 1), histogram.reference) - histogram.reference
        if tree is None:
            moved = np.abs(np.cumsum(more, axis=1)[:, present]).sum(axis=1)
            result[first:last] = moved / max(int(np.count_nonzero(present)) - 1, 1)
        else:
            up_to = np.cumsum(np.pad(more[:, tree.order], [(0, 0), (1, 0)]), axis=1)
            result[first:last] = np.abs(up_to[:, tree.last] - up_to[:, tree.first]) @ tree.weight
    return result
