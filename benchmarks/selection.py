"""Selections (LeFevre 2008, section 4.7), and models that use fewer attributes than were released (4.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning import FOLDS
from benchmarks.learning_trials import (
    INFORMATION_GAIN,
    MEDIAN,
    ORIGINAL,
    REAL,
    SELECTION,
    TDS,
    RealTable,
    agrawal,
    claim,
    real_tables,
    recoded_features,
)
from benchmarks.section import Section, Table
from benchmarks.tables import Options
from sfumato.evaluation.learning.features import Features, regions
from sfumato.evaluation.learning.learning_study import Study
from sfumato.evaluation.learning.results import IMPRECISION
from sfumato.evaluation.learning.significance import estimate
from sfumato.losses.prediction import conditional_entropy
from sfumato.pipeline.prepare import read_table
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.studies.cross_validation import CrossValidation
from sfumato.synthetic.agrawal import RULES

RECORDS, TRIALS = 1_000, 12
MANY_K = (5, 25, 100)
GROUPS, GROUP_K = (1, 5, 20, 50), 50
PROJECTION_K = 100
MODEL = "tree"
RESTRICTED = "mondrian on age and salary alone"


def run(options: Options) -> Mapping[str, Table]:
    imprecision, claims = _imprecision(options)
    (adult,) = real_tables(options, {"adult": REAL["adult"]})
    return {
        "imprecision": Table(
            "Imprecision of function C2 as three selections",
            imprecision,
            [f"{TRIALS} trials of {RECORDS:,} records; records that the three selections return but should not."],
        ),
        "claims": Table("Claims about selections (the imprecision of mondrian is first)", claims),
        "groups": Table(
            "Random groups, each anonymized separately, on adult",
            _groups(options, adult),
            [f"k = {GROUP_K}, {MODEL}, {FOLDS} folds; accuracy."],
        ),
        "projection": Table(
            "Models without the most predictive attributes, on adult",
            _projection(adult),
            [f"k = {PROJECTION_K}, {MODEL}, {FOLDS} folds; accuracy."],
        ),
    }


def _selections() -> list[str]:
    """C2 with the published constants: three boxes."""
    rule = RULES["C2"]
    ages = (f"age < {rule.middle_age}", f"age >= {rule.middle_age} and age < {rule.old_age}", f"age >= {rule.old_age}")
    return [
        f"{age} and salary between {one.interval.low} and {one.interval.high}"
        for age, one in zip(ages, (rule.young, rule.middle, rule.old), strict=True)
    ]


def _imprecision(options: Options) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    names = (MEDIAN, RESTRICTED, SELECTION)
    imprecision: dict[tuple[int, str], list[float]] = {(k, name): [] for k in MANY_K for name in names}
    for seed in range(options.times(TRIALS)):
        table, policy = agrawal(["C2"], RECORDS, seed, options.work)
        policy = merge_flags(policy, select=_selections(), other="drop")
        few = merge_flags(
            quasi_identifiers=["age", "salary"], type={"age": "numeric", "salary": "numeric"}, other="drop"
        )
        few = merge_flags(few, select=_selections())
        for k in MANY_K:
            for name in names:
                restricted_policy, data = (
                    (few, table.select(["age", "salary"])) if name == RESTRICTED else (policy, table)
                )
                restricted_policy = merge_flags(restricted_policy, method=MEDIAN if name == RESTRICTED else name, k=k)
                imprecision[k, name].append(_missed(data, restricted_policy))
    rows = [{"k": k} | {name: estimate(imprecision[k, name]).value for name in names} for k in MANY_K]
    return rows, [
        claim(f"k = {k}: {SELECTION} below {MEDIAN}", imprecision[k, MEDIAN], imprecision[k, SELECTION]) for k in MANY_K
    ]


def _missed(table: object, policy: Policy) -> float:
    """Return the imprecision of all selections on the records that the regions were learnt from."""
    lesson = _lesson(table, policy)
    everyone = np.ones(len(lesson.fold), np.bool_)
    recoding = lesson.recoding(everyone)
    region = recoding.regions.regions_of(lesson.table.encoded.codes, lesson.table.encoded.domains)
    return sum(value for what, value in lesson.measures(recoding, region, everyone).items() if what[2] == IMPRECISION)


def _lesson(table: object, policy: Policy) -> CrossValidation:
    study = Study(policy=policy, models=MODEL, folds=FOLDS)
    return CrossValidation.of(read_table(table, study.for_reading, Progress()), study).under(policy)


def _groups(options: Options, table: RealTable) -> list[dict[str, Any]]:
    """Put training records into random groups and learn the regions of each group separately."""
    names = (INFORMATION_GAIN, MEDIAN)
    rows = []
    for groups in options.some(GROUPS):
        row: dict[str, Any] = {"groups": groups}
        for name in names:
            policy = merge_flags(table.policy, method=name, k=GROUP_K)
            lesson = _lesson(table.path, policy)
            scores = [_score_of_groups(lesson, groups, fold) for fold in range(FOLDS)]
            accuracy = estimate(scores, 1 / (FOLDS - 1))
            row |= {name: accuracy.value, f"{name}, 95% interval": f"{accuracy.low:.4f} to {accuracy.high:.4f}"}
        rows.append(row)
    return rows


def _score_of_groups(lesson: CrossValidation, groups: int, fold: int) -> float:
    group = np.random.default_rng(fold).integers(0, groups, len(lesson.fold))
    codes, domains = lesson.table.encoded.codes, lesson.table.encoded.domains
    numbers = np.empty((len(codes), 2 * len(domains)))
    for one in range(groups):
        recoding = lesson.recoding((lesson.fold != fold) & (group == one))
        low, high = recoding.regions.region_low, recoding.regions.region_high
        shown = regions(low, high, recoding.domains, alike=False).numbers
        numbers[group == one] = shown[recoding.regions.regions_of(codes, domains)[group == one]]
    features = Features(numbers, np.zeros(numbers.shape[1], np.bool_))
    return next(iter(lesson.scores(features, fold).values()))


def _projection(table: RealTable) -> list[dict[str, Any]]:
    """Return the accuracy without the first few attributes, the most informative ones first."""
    policies = {
        name: merge_flags(table.policy, method=name, k=PROJECTION_K) for name in (INFORMATION_GAIN, MEDIAN, TDS)
    }
    lesson = _lesson(table.path, policies[MEDIAN])
    order = _by_gain(lesson)
    domains = lesson.table.encoded.domains
    scores: dict[tuple[int, str], list[float]] = {}
    for fold in range(FOLDS):
        shown = {ORIGINAL: lesson.original} | {
            name: recoded_features(lesson, one, fold)[0] for name, one in policies.items()
        }
        for dropped in range(len(order)):
            for name, features in shown.items():
                rest = features.without(order[:dropped], features.numbers.shape[1] // len(domains))
                scores.setdefault((dropped, name), []).append(next(iter(lesson.scores(rest, fold).values())))
    return [
        {"without": ", ".join(domains[q].name for q in order[:dropped]) or "nothing left out"}
        | {name: estimate(scores[dropped, name]).value for name in (ORIGINAL, *policies)}
        for dropped in range(len(order))
    ]


def _by_gain(lesson: CrossValidation) -> list[int]:
    """Order the attributes greedily by what each adds to predicting the class in the original."""
    target = lesson.workload.classification[0]
    codes = lesson.table.encoded.codes
    owner, order = np.zeros(len(codes), np.int64), list[int]()
    rest = list(range(codes.shape[1]))
    while rest:
        joined = {q: owner * (int(codes[:, q].max()) + 1) + codes[:, q] for q in rest}
        best = min(rest, key=lambda q: _entropy(joined[q], target.codes, target.distinct))
        owner = np.unique(joined[best], return_inverse=True)[1]
        order.append(best)
        rest.remove(best)
    return order


def _entropy(owner: NDArray[np.int64], classes: NDArray[np.uint32], distinct: int) -> float:
    pairs, count = np.unique(np.unique(owner, return_inverse=True)[1] * distinct + classes, return_counts=True)
    return conditional_entropy(pairs // distinct, count)


SECTION = Section(
    run,
    timed=False,
    parameters={"trials": TRIALS, "records": RECORDS, "k": MANY_K, "k of groups": GROUP_K, "folds": FOLDS},
    tables=("adult",),
)
