"""How well a release serves the workload that the policy names: what can be predicted and selected from it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.evaluation.measurement import TaskLoss
from sfumato.evaluation.queries.box_estimates import shown_spans
from sfumato.losses.imprecision import returned_records
from sfumato.losses.prediction import conditional_entropy, weighted_squared_error
from sfumato.methods.coded_workload import CodedWorkload, Kind
from sfumato.policy import Policy
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.selections import SelectionBoxes
from sfumato.tables.released_classes import ReleasedClasses, distribution, majorities
from sfumato.tables.sources.source import Source


@dataclass(frozen=True)
class Prediction:
    """A column to predict. ``inferred``: the data said whether it is classes or numbers, not the policy."""

    kind: Kind
    target: str
    inferred: bool


@dataclass(frozen=True)
class WorkloadTasks:
    """The workload of one table. selected: how many of its records each selection selects, in the policy's order."""

    predictions: tuple[Prediction, ...]
    where: tuple[str, ...]
    boxes: SelectionBoxes | None
    selected: tuple[int, ...]

    @classmethod
    def of(cls, policy: Policy, workload: CodedWorkload, codes: Codes, counts: Any = None) -> WorkloadTasks:
        """``codes`` are the table's quasi-identifiers; with ``counts``, distinct ones, and how often each occurs."""
        boxes = workload.selections
        weights = np.ones(len(codes), np.int64) if counts is None else counts
        return cls(
            tuple(Prediction(one.kind, one.name, one.name in policy.workload.targets) for one in workload.targets),
            tuple(selection.where for selection in policy.workload.selection),
            boxes,
            () if boxes is None else tuple(int(weights[boxes.holds(s, codes)].sum()) for s in range(len(boxes.low))),
        )


def measure_tasks(
    tasks: WorkloadTasks,
    source: Source,
    classes: ReleasedClasses,
    domains: Sequence[Domain],
    *,
    records: int,
    nulls: Collection[str] = (),
) -> tuple[TaskLoss, ...]:
    """Every task on a release. ``classes`` know the class of each row; ``records`` is the size of the original."""
    found = []
    for one in tasks.predictions:
        spread = distribution(source, classes, one.target, nulls, "the workload")
        values: dict[str, float | int]
        if one.kind == "classification":
            total = np.bincount(spread.value, weights=spread.count).astype(np.int64)
            total = total[total > 0]
            values = {
                "entropy": conditional_entropy(spread.owner, spread.count),
                "entropy_of_table": conditional_entropy(np.zeros(len(total), np.int64), total),
                "cm": (records - int(majorities(source, classes, one.target).sum())) / records,
            }
        else:
            numbers = spread.numbers[spread.value]
            values = {
                "wmse": weighted_squared_error(spread.owner, numbers, spread.count),
                "variance_of_table": weighted_squared_error(np.zeros_like(spread.owner), numbers, spread.count),
            }
        found.append(TaskLoss(one.kind, one.target, values, one.inferred))
    if tasks.boxes is not None:
        spans, shown = shown_spans(domains, classes)
        bounds = np.stack([spans[q][shown[:, q]] for q in range(len(domains))], axis=1)
        left_out = records - classes.records
        for box, (where, selected) in enumerate(zip(tasks.where, tasks.selected, strict=True)):
            low, high = tasks.boxes.low[box], tasks.boxes.high[box]
            returned = returned_records(bounds[:, :, 0], bounds[:, :, 1] - 1, classes.sizes, low, high)
            returned += left_out if (low <= high).all() else 0
            values = {"selected": selected, "returned": returned, "imprecision": returned - selected}
            found.append(TaskLoss("selection", where, values))
    return tuple(found)
