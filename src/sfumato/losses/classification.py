"""CM, the classification metric (Iyengar 2002): the share of records that are not of their class's majority."""

from __future__ import annotations

from sfumato.losses.loss import ClassTable


class ClassificationMetric:
    name = "cm"
    summary = "share of records outside the majority of their class, in a column that --target names"

    def value(self, classes: ClassTable) -> float | None:
        if classes.majority is None:
            return None
        return (classes.records - int(classes.majority.sum())) / classes.records
