"""MAXSIZE (Du 2007, definition 3): the largest perimeter of a class's box, attributes scaled to [0, 1].

Differs from the paper: a category's side is the share of leaves under what is shown, so that the loss can be measured
from a released file.
"""

from __future__ import annotations

from sfumato.losses.loss import ClassTable, Extent


class LargestPerimeter:
    name = "max_size"
    summary = "largest perimeter of a class: twice the sum of its sides, each scaled to [0, 1]"

    def total(self, classes: ClassTable) -> float | None:
        return 2 * float(classes.penalties.sum(axis=1).max()) if len(classes.sizes) else None

    def join(self, one: float, other: float) -> float:
        return max(one, other)

    def value(self, total: float, release: Extent) -> float:
        return total
