"""Losses that depend on class sizes only (Bayardo and Agrawal 2005; LeFevre 2006; Wang 2011, eq. 12-14).

Where sensitive values are released in a table of their own, its groups count as the classes.
"""

from __future__ import annotations

import numpy as np

from sfumato.losses.loss import ClassTable, Extent, Sum


class Discernibility(Sum):
    name = "c_dm"
    summary = "discernibility: each record adds the size of its class, a suppressed record the size of the table"

    def total(self, classes: ClassTable) -> int:
        return int(np.square(classes.indistinguishable).sum())

    def value(self, total: int, release: Extent) -> int:
        return total + release.records * release.suppressed


class AverageClassSize(Sum):
    name = "c_avg"
    summary = "average class size divided by k"

    def total(self, classes: ClassTable) -> int:
        return len(classes.indistinguishable)

    def value(self, total: int, release: Extent) -> float | None:
        return release.released / total / release.k if total else None


class ModifiedDiscernibility(Sum):
    name = "c_mdm"
    summary = "sum of the squared differences between class size and k"

    def total(self, classes: ClassTable) -> int:
        return int(np.square(classes.indistinguishable - classes.k).sum())

    def value(self, total: int, release: Extent) -> int:
        return total
