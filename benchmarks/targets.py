"""Several targets (LeFevre 2008, section 4.5) and a class that is sensitive itself (4.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sfumato
from benchmarks.learning import FOLDS
from benchmarks.learning_trials import (
    INFORMATION_GAIN,
    REAL,
    TEST,
    TRAINING,
    agrawal,
    claim,
    real_tables,
    recoded_features,
    two_halves,
)
from benchmarks.section import Section, Table
from benchmarks.tables import Options
from sfumato.evaluation.learning.models import models
from sfumato.policy import Policy, merge_flags

CLASSES = ("C2", "C3", "C4", "C5", "C6", "C7", "C9")
TRIALS = 12
MODEL = "tree"
MANY_L = (1, 2, 4, 6, 8)


def run(options: Options) -> Mapping[str, Table]:
    accuracy, claims = _several(options)
    return {
        "accuracy": Table(
            "Accuracy by the number of targets that regions are made for",
            accuracy,
            [f"{TRIALS} trials with the functions in random order, models A to G; {MODEL}."],
        ),
        "claims": Table("Claims about several targets", claims),
        "diversity": Table(
            "Entropy l-diversity of the class itself, on adult: what can be learnt about the occupation",
            _diverse(options),
            [f"k = 1, {INFORMATION_GAIN}, {MODEL}, {FOLDS} folds."],
        ),
    }


def _several(options: Options) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return accuracy[trial, targets - 1, model] of the models when regions are made for the first few targets."""
    count = len(CLASSES)
    trials = options.times(TRIALS)
    accuracy = np.empty((trials, count, count))
    for seed in range(trials):
        order = [str(one) for one in np.random.default_rng(seed).permutation(CLASSES)]
        table, policy = agrawal(CLASSES, TRAINING + TEST, seed, options.work)
        for made_for in range(1, count + 1):
            lesson = two_halves(table, merge_flags(policy, target=order[:made_for]), MODEL)
            features, _ = recoded_features(lesson, _for(policy, order[:made_for]))
            training = lesson.fold == 0
            for model, function in enumerate(order):
                truth = np.asarray(table.column(function).to_pylist())[lesson.table.encoded.input_rows]
                predicted = models()[MODEL].learn(features.of(training), truth[training], features.of(~training), 0)
                accuracy[seed, made_for - 1, model] = np.mean(predicted == truth[~training])
    rows = [
        {"targets": made_for + 1}
        | {name: float(accuracy[:, made_for, model].mean()) for model, name in enumerate("ABCDEFG"[:count])}
        for made_for in range(count)
    ]
    # Of each model but A and G: the mean over anonymizations that include it, and over those that do not.
    included = [np.mean([accuracy[t, p:, p].mean() for p in range(1, count)]) for t in range(trials)]
    left_out = [np.mean([accuracy[t, :p, p].mean() for p in range(1, count)]) for t in range(trials)]
    alone, among_all = accuracy[:, 0, 0].tolist(), accuracy[:, -1, 0].tolist()
    return rows, [
        claim("a model that regions are made for learns more than one that they are not", included, left_out),
        claim("a model alone learns more than the same among all targets", alone, among_all),
    ]


def _for(policy: Policy, targets: list[str]) -> Policy:
    return merge_flags(policy, target=targets, method=INFORMATION_GAIN)


def _diverse(options: Options) -> list[dict[str, Any]]:
    rows = []
    for table in real_tables(options, {"adult": ("occupation", REAL["adult"][1])}):
        policy = merge_flags(table.policy, sensitive="occupation", target="occupation", k=1)
        for l in options.some(MANY_L):
            diverse_policy = merge_flags(policy, require=[f"entropy(occupation, l={l})"])
            evaluation = sfumato.evaluate(
                table.path, diverse_policy, methods=INFORMATION_GAIN, models=MODEL, folds=FOLDS
            )
            by_metric = {row.metric: row for row in evaluation.rows if row.method == INFORMATION_GAIN}
            accuracy, entropy = by_metric["accuracy"], by_metric["conditional-entropy"]
            rows.append(
                {
                    "l": l,
                    "accuracy": accuracy.value,
                    "from": accuracy.low,
                    "to": accuracy.high,
                    "conditional entropy, bits": entropy.value,
                    "class size": by_metric["average-class-size"].value,
                }
            )
    return rows


SECTION = Section(run, timed=False, parameters={"trials": TRIALS, "folds": FOLDS, "l": MANY_L}, tables=("adult",))
