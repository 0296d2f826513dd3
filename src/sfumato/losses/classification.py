"""CM, the classification metric (Iyengar 2002): the share of records outside the majority of their class."""

from __future__ import annotations

from sfumato.losses.loss import ClassTable, Extent, Sum


class ClassificationMetric(Sum):
    name = "cm"
    summary = "share of records outside the majority of their class, in the column given by --target"

    def total(self, classes: ClassTable) -> int | None:
        return None if classes.majority is None else int(classes.majority.sum())

    def value(self, total: int, release: Extent) -> float:
        return (release.records - total) / release.records
