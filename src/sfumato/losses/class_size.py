"""Losses that see the sizes of classes only (Bayardo and Agrawal 2005; LeFevre 2006; Wang 2011, eq. 12-14).

Where sensitive values are released apart, the groups by which they are told are the classes.
"""

from __future__ import annotations

import numpy as np

from sfumato.losses.loss import ClassTable


class Discernibility:
    name = "c_dm"
    summary = "discernibility: each record counts the size of its class, a suppressed one the whole table"

    def value(self, classes: ClassTable) -> int:
        return int(np.square(classes.alike).sum()) + classes.records * classes.suppressed


class AverageClassSize:
    name = "c_avg"
    summary = "average class size over k"

    def value(self, classes: ClassTable) -> float | None:
        return classes.released / len(classes.alike) / classes.k if len(classes.alike) else None


class ModifiedDiscernibility:
    name = "c_mdm"
    summary = "squared excess of each class over k, summed"

    def value(self, classes: ClassTable) -> int:
        return int(np.square(classes.alike - classes.k).sum())
