"""Measure how well a release serves the workload of the policy: the predictions and selections it names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.evaluation.release_losses import TaskLoss
from sfumato.losses.imprecision import returned_records
from sfumato.losses.prediction import conditional_entropy, weighted_squared_error
from sfumato.methods.coded_workload import TARGETS_OF_RULE, CodedWorkload, Kind, kind_of
from sfumato.policy import Policy
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.selections import SelectionBoxes
from sfumato.tables.released_classes import ReleasedClasses, distribution, majorities
from sfumato.tables.sources.source import Source


@dataclass(frozen=True)
class Prediction:
    """A column to predict. ``inferred``: the data, not the policy, decided between classification and regression."""

    kind: Kind
    target: str
    inferred: bool


@dataclass(frozen=True)
class WorkloadTasks:
    """The workload of one table. ``selected``: how many records each selection selects, in the policy's order."""

    predictions: tuple[Prediction, ...]
    where: tuple[str, ...]
    boxes: SelectionBoxes | None
    selected: tuple[int, ...]

    @classmethod
    def of(cls, policy: Policy, workload: CodedWorkload, codes: Codes, counts: Any = None) -> WorkloadTasks:
        """Prepare the tasks. ``codes`` are the quasi-identifiers of all rows, or distinct rows with ``counts``."""
        boxes = workload.selections
        weights = np.ones(len(codes), np.int64) if counts is None else counts
        return cls(
            tuple(
                Prediction(target.kind, target.name, target.name in policy.workload.targets)
                for target in workload.targets
            ),
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
    predicted: Sequence[TaskLoss] = (),
) -> tuple[TaskLoss, ...]:
    """Measure every task on a release. ``classes`` know the class of each row; ``records``: size of the original.

    ``predicted`` are predictions of this release that were measured before.
    """
    from sfumato.evaluation.queries.box_estimates import shown_spans

    measured = {(loss.task, loss.about): loss for loss in predicted}
    losses = [
        measured.get((each.kind, each.target)) or _predicted(each, source, classes, records=records, nulls=nulls)
        for each in tasks.predictions
    ]
    if tasks.boxes is not None:
        spans, shown = shown_spans(domains, classes)
        bounds = np.stack([spans[q][shown[:, q]] for q in range(len(domains))], axis=1)
        left_out = records - classes.records
        for s, (where, selected) in enumerate(zip(tasks.where, tasks.selected, strict=True)):
            low, high = tasks.boxes.low[s], tasks.boxes.high[s]
            returned = returned_records(bounds[:, :, 0], bounds[:, :, 1] - 1, classes.sizes, low, high)
            returned += left_out if (low <= high).all() else 0
            values: dict[str, float | int] = {
                "selected": selected,
                "returned": returned,
                "imprecision": returned - selected,
            }
            losses.append(TaskLoss("selection", where, values))
    return tuple(losses)


def predictions_of_release(
    policy: Policy, source: Source, classes: ReleasedClasses, *, left_out: int
) -> tuple[TaskLoss, ...]:
    """Measure the predictions of a workload by the released values alone: they also decide what a target is.

    Selections are not among them: which codes a selection selects depends on the values of the original.
    """
    workload, nulls = policy.workload, policy.input.nulls
    predictions = [Prediction("classification", task.target, False) for task in workload.classification]
    predictions += [Prediction("regression", task.target, False) for task in workload.regression]
    for name in workload.targets:
        values = distribution(source, classes, name, nulls, "the workload")
        kind = TARGETS_OF_RULE.get(policy.method.name) or kind_of(len(values.values), values.numbers)
        predictions.append(Prediction(kind, name, True))
    predictions.sort(key=lambda prediction: prediction.kind)  # classification first, as in every list of tasks
    records = classes.records + left_out
    return tuple(_predicted(each, source, classes, records=records, nulls=nulls) for each in predictions)


def _predicted(
    prediction: Prediction, source: Source, classes: ReleasedClasses, *, records: int, nulls: Collection[str]
) -> TaskLoss:
    """Measure how well the classes of a release predict a column."""
    spread = distribution(source, classes, prediction.target, nulls, "the workload")
    values: dict[str, float | int]
    if prediction.kind == "classification":
        total = np.bincount(spread.value, weights=spread.count).astype(np.int64)
        total = total[total > 0]
        values = {
            "entropy": conditional_entropy(spread.owner, spread.count),
            "entropy_of_table": conditional_entropy(np.zeros(len(total), np.int64), total),
            "cm": (records - int(majorities(source, classes, prediction.target).sum())) / records,
        }
    else:
        numbers = spread.numbers[spread.value]
        values = {
            "wmse": weighted_squared_error(spread.owner, numbers, spread.count),
            "variance_of_table": weighted_squared_error(np.zeros_like(spread.owner), numbers, spread.count),
        }
    return TaskLoss(prediction.kind, prediction.target, values, prediction.inferred)
