"""The claims of LeFevre 2008, section 4 about learning from releases, each with its figures and interval.

The tables are Agrawal's functions with random constants, with 1,000 records to learn from and 1,000 to test on, and
real tables, in 10 folds. ``first`` and ``second`` are the two figures that a claim compares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
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
from benchmarks.section import Section, Table
from benchmarks.tables import Options
from sfumato.evaluation.learning.features import Features, regions
from sfumato.evaluation.learning.learning_study import Study
from sfumato.pipeline.prepare import read_table
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.studies.cross_validation import CrossValidation

CLASSES = ("C2", "C4", "C7", "C9")
NUMBERS = ("R7", "R10")
CLASSIFIERS, REGRESSORS = ("tree", "bayes", "forest", "svm"), ("linear", "regression-tree")
FOLDS = 10
REAL_K = {"adult": (25, 100), "cmc": (25,), "adult-raw": (25, 100)}
Rows = list[dict[str, Any]]


def run(options: Options) -> Mapping[str, Table]:
    classes, class_claims = _generated(options, CLASSES, CLASSIFIERS, (INFORMATION_GAIN, MEDIAN, TDS))
    numbers, number_claims = _generated(options, NUMBERS, REGRESSORS, (REGRESSION, MEDIAN))
    trials = f"{TRIALS} trials of {TRAINING:,} records to learn from and {TEST:,} to test on, k = {K}"
    tables = {
        "classes": Table(
            "Classes of Agrawal's functions with random constants", classes, [f"{trials}; mean accuracy."]
        ),
        "class claims": Table("Claims about them", class_claims),
        "numbers": Table("Numbers of Agrawal's functions", numbers, ["Mean absolute error in the same trials."]),
        "number claims": Table("Claims about them (the error of median is first)", number_claims),
    }
    folds = f"{FOLDS} folds, corrected for their overlap."
    for real in options.some(real_tables(options, REAL)):
        claims = _real(options, real, (INFORMATION_GAIN, MEDIAN, TDS))
        tables[real.name] = Table(f"Claims on {real.name}", claims, [folds])
        tables[f"{real.name} alike"] = Table(
            f"Claims on {real.name}, both as two numbers an attribute",
            _alike(real),
            [f"k = {K}, {folds} Models that weigh attributes."],
        )
    for real in real_tables(options, REAL_NUMBERS):
        title = f"Claims on {real.name}, {real.policy.workload.predicted[0]} (the error of median is first)"
        tables[real.name] = Table(title, _real(options, real, (REGRESSION, MEDIAN)), [folds])
    return tables


def _generated(
    options: Options, functions: Sequence[str], models: Sequence[str], names: Sequence[str]
) -> tuple[Rows, Rows]:
    """Return the mean of every method and model on each function, and the claims about the first method."""
    rows, claims = [], []
    for function in options.some(functions):
        trials: list[Scores] = []
        for seed in range(options.times(TRIALS)):
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


def _real(options: Options, table: RealTable, names: Sequence[str]) -> Rows:
    many_k = REAL_K[table.name][:1] if options.trial else REAL_K[table.name]
    evaluation = sfumato.evaluate(table.path, table.policy, methods=names, k=many_k, folds=FOLDS)
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


SECTION = Section(
    run,
    timed=False,
    parameters={"k": K, "trials": TRIALS, "records": TRAINING, "tested": TEST, "folds": FOLDS, "real k": REAL_K},
    tables=(*REAL, *REAL_NUMBERS),
)
