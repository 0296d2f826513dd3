"""Losses that see the sizes of classes only (Bayardo and Agrawal 2005; LeFevre 2006; Wang 2011, eq. 12-14).

Where sensitive values are released apart, the groups by which they are told are the classes.
"""

from __future__ import annotations

import numpy as np

from sfumato.losses.loss import ClassTable, Extent, Sum


class Discernibility(Sum):
    name = "c_dm"
    summary = "discernibility: each record counts the size of its class, a suppressed one the whole table"

    def total(self, classes: ClassTable) -> int:
        return int(np.square(classes.alike).sum())

    def value(self, total: int, release: Extent) -> int:
        return total + release.records * release.suppressed


class AverageClassSize(Sum):
    name = "c_avg"
    summary = "average class size over k"

    def total(self, classes: ClassTable) -> int:
        return len(classes.alike)

    def value(self, total: int, release: Extent) -> float | None:
        return release.released / total / release.k if total else None


class ModifiedDiscernibility(Sum):
    name = "c_mdm"
    summary = "squared excess of each class over k, summed"

    def total(self, classes: ClassTable) -> int:
        return int(np.square(classes.alike - classes.k).sum())

    def value(self, total: int, release: Extent) -> int:
        return total
