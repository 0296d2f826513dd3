"""Losses that depend on class sizes only (Bayardo and Agrawal 2005; LeFevre 2006; Wang 2011, eq. 12-14).

Where sensitive values are released in a table of their own, its groups count as the classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.loss import ClassTable, Extent, Sum


class Discernibility(Sum):
    name = "c_dm"
    summary = "discernibility: each record adds the size of its class, a suppressed record the size of the table"

    def total(self, classes: ClassTable) -> int:
        return int(np.square(classes.indistinguishable).sum())

    def value(self, total: int, release: Extent) -> int:
        return total + release.records * release.suppressed


@dataclass(frozen=True)
class GroupDiscernibility:
    """C_DM as the papers count it, over the groups that a method formed.

    Groups that show the same are one class of the release, so its own C_DM is larger. A release does not say which of
    its records were one group, so these figures are private.
    """

    groups: int
    c_dm: int

    @classmethod
    def of(cls, sizes: Iterable[NDArray[np.integer]], records: int) -> GroupDiscernibility:
        """Count groups whose sizes come in parts, of a table of so many records."""
        groups, released, squares = 0, 0, 0
        for part in sizes:
            groups += len(part)
            released += int(part.sum(dtype=np.int64))
            squares += int(np.square(part, dtype=np.int64).sum())
        return cls(groups, squares + records * (records - released))

    def facts(self) -> dict[str, int]:
        """The figures as entries of a summary."""
        return {"groups": self.groups, "c_dm_groups": self.c_dm}


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
