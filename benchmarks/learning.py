"""The claims of LeFevre 2008, section 4 about learning from releases, each with its figures and interval.

The tables are Agrawal's functions with random constants, with 1,000 records to learn from and 1,000 to test on, and the
real tables beside ``--data``, in 10 folds. ``first`` and ``second`` are the two figures that a claim compares.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sfumato
from benchmarks.learning_trials import (
    INFORMATION_GAIN,
    MEDIAN,
    ORIGINAL,
    REAL,
    REAL_NUMBERS,
    REGRESSION,
    TDS,
    TEST,
    TRAINING,
    TRIALS,
    K,
    RealTable,
    Scores,
    agrawal,
    claim,
    methods,
    real_tables,
    trial,
    two_halves,
)
from benchmarks.markdown import show
from benchmarks.tables import Options
from sfumato.evaluation.learning.features import Features, regions
from sfumato.evaluation.learning.learning_study import Study
from sfumato.pipeline.prepare import read_table
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.studies.cross_validation import CrossValidation

CLASSES = ("C2", "C3", "C4", "C5", "C6", "C7", "C9")
NUMBERS = ("R7", "R10")
CLASSIFIERS, REGRESSORS = ("tree", "bayes", "forest", "svm"), ("linear", "regression-tree")
FOLDS = 10
REAL_K = {"adult": (10, 25, 100), "cmc": (5, 10, 25), "census-income": (25,), "adult-raw": (10, 25, 100)}
Rows = list[dict[str, Any]]


def run(options: Options) -> dict[str, Rows]:
    results: dict[str, Rows] = {}
    results["classes"], results["class claims"] = _generated(
        options, CLASSES, CLASSIFIERS, (INFORMATION_GAIN, MEDIAN, TDS)
    )
    note = f"{TRIALS} trials of {TRAINING:,} records to learn from and {TEST:,} to test on, k = {K}; mean accuracy."
    show("Classes of Agrawal's functions with random constants", results["classes"], [note])
    show("Claims about them", results["class claims"])
    results["numbers"], results["number claims"] = _generated(options, NUMBERS, REGRESSORS, (REGRESSION, MEDIAN))
    show("Numbers of Agrawal's functions", results["numbers"], ["Mean absolute error in the same trials."])
    show("Claims about them (the error of median is first)", results["number claims"])
    for table in real_tables(options, REAL):
        results[table.name] = _real(table, (INFORMATION_GAIN, MEDIAN, TDS))
        show(f"Claims on {table.name}", results[table.name], [f"{FOLDS} folds, corrected for their overlap."])
        name = f"{table.name}, both as two numbers an attribute"
        results[name] = _alike(table)
        show(f"Claims on {name}", results[name], [f"k = {K}, {FOLDS} folds; models that weigh attributes."])
    for table in real_tables(options, REAL_NUMBERS):
        name = f"{table.name}, {table.policy.workload.predicted[0]}"
        results[name] = _real(table, (REGRESSION, MEDIAN))
        show(f"Claims on {name} (the error of median is first)", results[name])
    results["time"] = _time(options)
    if results["time"]:
        show("Six models, ten folds, five methods on Adult", results["time"])
    return results


def _generated(
    options: Options, functions: Sequence[str], models: Sequence[str], names: Sequence[str]
) -> tuple[Rows, Rows]:
    """Return the mean of every method and model on each function, and the claims about the first method."""
    rows, claims = [], []
    for function in functions:
        trials: list[Scores] = []
        for seed in range(TRIALS):
            table, policy = agrawal([function], TRAINING + TEST, seed, options.work)
            target_policy = merge_flags(policy, target=function)
            lesson = two_halves(table, target_policy, ",".join(models))
            trials.append(trial(lesson, methods(target_policy, *names)))
        for model in models:
            scores = {name: [one[name, model] for one in trials] for name in (ORIGINAL, *names)}
            rows.append({"function": function, "model": model} | {name: _mean(one) for name, one in scores.items()})
            for other in names[1:]:
                claims.append(_claim(f"{function}, {model}", names[0], other, scores[names[0]], scores[other]))
    return rows, claims


def _real(table: RealTable, names: Sequence[str]) -> Rows:
    evaluation = sfumato.evaluate(table.path, table.policy, methods=names, k=REAL_K[table.name], folds=FOLDS)
    by_k: dict[tuple[int, str], dict[str, tuple[float, ...]]] = defaultdict(dict)
    for row in evaluation.rows:
        if row.model is not None and row.k is not None:
            by_k[row.k, row.model][row.method] = row.folds
    return [
        _claim(f"k = {k}, {model}", names[0], other, scores[names[0]], scores[other], 1 / (FOLDS - 1))
        for (k, model), scores in by_k.items()
        for other in names[1:]
    ]


def _alike(table: RealTable) -> Rows:
    """Learn from the regions of tds as 2d numbers, as from those of a tree; elsewhere tds gives d numbers."""
    names, models = (INFORMATION_GAIN, TDS), ("bayes", "svm")
    study = Study(policy=merge_flags(table.policy, k=K), models=models, folds=FOLDS)
    lesson = CrossValidation.of(read_table(table.path, study.for_reading, Progress()), study)
    scores: dict[tuple[str, str], list[float]] = {}
    for name in names:
        policy = merge_flags(study.policy, method=name)
        here = lesson.under(policy)
        codes, domains = here.table.encoded.codes, here.table.encoded.domains
        for fold in range(FOLDS):
            recoding = here.recoding(here.fold != fold)
            low, high = recoding.regions.region_low, recoding.regions.region_high
            shown = regions(low, high, recoding.domains, alike=False)
            features = Features(shown.numbers[recoding.regions.regions_of(codes, domains)], shown.nominal)
            for what, score in here.scores(features, fold).items():
                scores.setdefault((name, str(what[1])), []).append(score)
    first, second = names
    return [
        _claim(f"k = {K}, {model}", first, second, scores[first, model], scores[second, model], 1 / (FOLDS - 1))
        for model in models
    ]


def _claim(
    where: str, name: str, other: str, first: Sequence[float], second: Sequence[float], overlap: float = 0.0
) -> dict[str, Any]:
    """Return the claim that the first accuracy is above the second, or the first error below the second."""
    if name == REGRESSION:
        return claim(f"{where}: {name} below {other}", second, first, overlap)
    return claim(f"{where}: {name} above {other}", first, second, overlap)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _time(options: Options) -> Rows:
    """Time one run with targets of both kinds, so that all six models learn."""
    tables = real_tables(options, {"adult-raw": ("salary-class", ("occupation",))})
    if not tables:
        return []
    policy = merge_flags(tables[0].policy, target=["salary-class", "fnlwgt"], accept_linkable=["fnlwgt"])
    started = time.perf_counter()
    evaluation = sfumato.evaluate(tables[0].path, policy, k=K, folds=FOLDS)
    seconds = time.perf_counter() - started
    models = {row.model for row in evaluation.rows if row.model is not None}
    ran = {row.method for row in evaluation.rows}
    return [
        {"models": len(models), "methods": len(ran), "folds": FOLDS, "records": evaluation.records, "seconds": seconds}
    ]
