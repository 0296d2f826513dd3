"""Cross-validation of models on releases: the protocol of LeFevre 2008, section 4.1.

The records are divided into folds. For each fold a method learns its regions from the records of all other folds, and
both parts are recoded with these regions. A model is trained on the other folds and tested on this one. The domain of a
column, from which regions are cut, is that of the whole table: like a taxonomy, it is known before the records are.
Nothing else is learnt from the fold that is tested on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.memory.classes import learn_recoding
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.evaluation.comparison_points import Point
from sfumato.evaluation.learning.features import Features, points, regions, same_intervals_everywhere
from sfumato.evaluation.learning.folds import folds_of
from sfumato.evaluation.learning.learning_study import Study
from sfumato.evaluation.learning.models import Model, load_learners
from sfumato.evaluation.learning.results import (
    ACCURACY,
    CLASS_SIZE,
    ENTROPY,
    ERROR,
    IMPRECISION,
    ORIGINAL,
    SQUARED_ERROR,
    Result,
)
from sfumato.evaluation.learning.significance import estimate
from sfumato.kernels.threads import in_threads
from sfumato.losses.imprecision import returned_records
from sfumato.losses.prediction import conditional_entropy, weighted_squared_error
from sfumato.methods.coded_workload import ClassTarget, CodedWorkload, NumberTarget
from sfumato.methods.suppression import surplus_rows
from sfumato.pipeline.prepare import table_for
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.recoding import Recoding
from sfumato.releases.regions import codes_of_values
from sfumato.tables.coding.domains import Domain, NumericDomain
from sfumato.tables.coding.value_order import ascending

FigureKey = tuple[str | None, str | None, str]
"""The key of a figure: target or selection, model, and metric."""


@dataclass(frozen=True)
class CrossValidation:
    """A table, its workload, the models, and the fold of each record. extra: features beside the quasi-identifiers."""

    table: TableInMemory
    workload: CodedWorkload
    models: list[Model]
    fold: NDArray[np.int64]
    folds: int
    seed: int
    extra: Features | None

    @classmethod
    def of(cls, table: TableInMemory, study: Study) -> CrossValidation:
        workload = table.records.workload
        assert workload is not None
        if workload.targets:
            load_learners()
        classes = workload.classification[0].codes if workload.classification else None
        fold = folds_of(table.count, study.folds, study.seed, classes=classes, persons=table.records.persons)
        extra = _carried_features(table, study.policy.workload.features)
        return cls(table, workload, study.models_for(workload), fold, study.folds, study.seed, extra)

    def under(self, policy: Policy) -> CrossValidation:
        """Return the cross-validation under another policy, once it is clear that the policy can be met."""
        return replace(self, table=table_for(self.table, policy))

    @cached_property
    def original(self) -> Features:
        """The features of the original table."""
        return points(self.table.encoded.codes, self.table.encoded.domains).beside(self.extra)

    def scores(self, features: Features, fold: int) -> dict[FigureKey, float]:
        """Train every model on the other folds, and return its score on this one."""
        tasks = [
            (model, target) for model in self.models for target in self.workload.targets if target.kind == model.kind
        ]
        scores = in_threads(lambda task: self._score(*task, features, fold), tasks)
        return {
            (target.name, model.name, ACCURACY if model.kind == "classification" else ERROR): score
            for (model, target), score in zip(tasks, scores, strict=True)
        }

    def _score(self, model: Model, target: ClassTarget | NumberTarget, features: Features, fold: int) -> float:
        truth, known = _truth(target)
        training, test = known & (self.fold != fold), known & (self.fold == fold)
        if not training.any() or not test.any():
            return float("nan")
        predicted = model.learn(features.of(training), truth[training], features.of(test), self.seed)
        if model.kind == "classification":
            return float(np.mean(predicted == truth[test]))
        return float(np.mean(np.abs(predicted - truth[test])))

    def recoding(self, training: NDArray[np.bool_]) -> Recoding:
        """Learn a recoding from the training records under the policy of the table."""
        records = self.table.records.without(np.flatnonzero(~training).astype(np.uint32))
        surplus_rows(records, self.table.job.requirements, 0)  # raises InfeasibleError if they do not suffice
        encoded = self.table.encoded
        return learn_recoding(replace(self.table, records=records)).for_table(encoded.codes, encoded.domains)

    def features(self, recoding: Recoding, region: NDArray[np.int64]) -> Features:
        """Return the features of the table as a recoding shows it."""
        low, high = recoding.regions.region_low, recoding.regions.region_high
        shown = regions(low, high, recoding.domains, alike=same_intervals_everywhere(low, high))
        return Features(shown.numbers[region], shown.nominal).beside(self.extra)

    def measures(
        self, recoding: Recoding, region: NDArray[np.int64], training: NDArray[np.bool_]
    ) -> dict[FigureKey, float]:
        """Measure the regions on the training records themselves."""
        owner = region[training]
        figures: dict[FigureKey, float] = {(None, None, CLASS_SIZE): len(owner) / len(np.unique(owner))}
        for target in self.workload.targets:
            truth, known = _truth(target)
            region_of_known, known_truth = owner[known[training]], truth[training & known]
            if isinstance(target, ClassTarget):
                pairs, count = np.unique(region_of_known * target.distinct + known_truth, return_counts=True)
                figures[target.name, None, ENTROPY] = conditional_entropy(pairs // target.distinct, count)
            else:
                weights = np.ones_like(region_of_known)
                error = weighted_squared_error(region_of_known, known_truth.astype(np.float64), weights)
                figures[target.name, None, SQUARED_ERROR] = error
        boxes = self.workload.selections
        if boxes is not None:
            first, last = spans_of(recoding, self.table.encoded.domains)
            sizes, codes = np.bincount(owner, minlength=len(recoding)), self.table.encoded.codes[training]
            for box, selection in enumerate(recoding.policy.workload.selection):
                returned = returned_records(first, last, sizes, boxes.low[box], boxes.high[box])
                selected = np.count_nonzero(boxes.holds(box, codes))
                figures[selection.where, None, IMPRECISION] = float(returned - selected)
        return figures

    def from_original(self, progress: Progress) -> list[Result]:
        """Return the results of every model on the original table."""
        by_fold = []
        with progress.phase("learn", self.folds):
            for fold in range(self.folds):
                by_fold.append(self.scores(self.original, fold))
                progress.advance(1)
        return list(_results(by_fold, ORIGINAL, None, None))

    def from_release(self, point: Point, progress: Progress) -> list[Result]:
        """Return the results of every model on the regions of a method, and the measures of these regions."""
        validation = self.under(point.policy)
        by_fold: list[dict[FigureKey, float]] = []
        codes, domains = validation.table.encoded.codes, validation.table.encoded.domains
        for fold in range(validation.folds):
            training = validation.fold != fold
            recoding = validation.recoding(training)
            region = recoding.regions.regions_of(codes, domains)
            with progress.phase("learn"):
                scores = validation.scores(validation.features(recoding, region), fold)
            by_fold.append(scores | validation.measures(recoding, region, training))
        return list(_results(by_fold, point.method, point.k, point.l))


def spans_of(recoding: Recoding, domains: Sequence[Domain]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last code that each region holds, in these domains: two int64[regions, d]."""
    low, high = (ends.astype(np.int64) for ends in (recoding.regions.region_low, recoding.regions.region_high))
    for attribute, (own, domain) in enumerate(zip(recoding.domains, domains, strict=True)):
        if recoding.levels:
            group = codes_of_values(domain, own)  # ascending, since groups follow the order of their values
            first = np.searchsorted(group, np.arange(own.size))
            last = np.searchsorted(group, np.arange(own.size), "right") - 1
            low[:, attribute], high[:, attribute] = first[low[:, attribute]], last[high[:, attribute]]
        elif isinstance(own, NumericDomain) and isinstance(domain, NumericDomain):
            null = len(domain.values)
            first = np.append(np.searchsorted(domain.values, own.values), null)
            last = np.append(np.searchsorted(domain.values, own.values, "right") - 1, null)
            low[:, attribute], high[:, attribute] = first[low[:, attribute]], last[high[:, attribute]]
    return low, high


def _results(
    by_fold: list[dict[FigureKey, float]],
    method: str,
    k: int | None,
    l: int | None,
) -> Iterator[Result]:
    """Yield every figure of a method, from all folds together."""
    overlap = 1 / (len(by_fold) - 1)
    for target, model, metric in by_fold[0]:
        values = tuple(figures[target, model, metric] for figures in by_fold)
        values = tuple(value for value in values if not np.isnan(value))
        if not values:
            continue
        estimated = estimate(values, overlap)
        yield Result(
            method=method,
            k=k,
            l=l,
            target=target,
            model=model,
            metric=metric,
            value=estimated.value,
            low=estimated.low,
            high=estimated.high,
            folds=values,
        )


def _truth(target: ClassTarget | NumberTarget) -> tuple[NDArray[np.integer] | NDArray[np.float64], NDArray[np.bool_]]:
    """Return the target of each record, and whether the record has one."""
    if isinstance(target, ClassTarget):
        return target.codes.astype(np.int64), target.codes < target.distinct
    return target.values, ~np.isnan(target.values)


def _carried_features(table: TableInMemory, names: tuple[str, ...]) -> Features | None:
    """Return the passthrough columns that are features too. They are released as they are."""
    columns = {column.name: column for column in table.encoded.carried}
    numbers, nominal = [], []
    for name in names:
        codes, values = columns[name].numbered
        _, scale = ascending(values)
        categorical = not np.isfinite(scale).all()
        scale = np.arange(len(values), dtype=np.float64) if categorical else scale
        numbers.append(np.append(scale, scale.max(initial=0.0) + 1)[codes])
        nominal.append(categorical)
    return Features(np.stack(numbers, axis=1), np.array(nominal)) if numbers else None
