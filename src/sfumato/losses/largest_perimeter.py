"""MAXSIZE (Du 2007, definition 3): the largest perimeter of the box of a class, with attributes scaled to [0, 1].

Differs from the paper: the side of a category is the share of leaves under the released node, so that the loss can be
measured from a released file.
"""

from __future__ import annotations

from sfumato.losses.loss import ClassTable, Extent


class LargestPerimeter:
    name = "max_size"
    summary = "largest perimeter of the box of a class: twice the sum of its sides, each scaled to [0, 1]"

    def total(self, classes: ClassTable) -> float | None:
        return 2 * float(classes.penalties.sum(axis=1).max()) if len(classes.sizes) else None

    def join(self, one: float, other: float) -> float:
        return max(one, other)

    def value(self, total: float, release: Extent) -> float:
        return total
