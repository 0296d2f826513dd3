"""Fig. 11: the class to predict is sensitive itself, so that diversity bounds what can be learnt."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from reproduce.figure import Claim, Figure, Judgement, Result, Size
from reproduce.judging import in_every_case, ranges
from reproduce.lefevre.lessons import (
    CENSUS_RECORDS,
    CENSUS_SEED,
    FOLDS,
    INFORMATION_GAIN,
    census,
    cross_validation,
    fold_figures,
    overlap_of_folds,
    spread,
)
from reproduce.lefevre.paired import judge_folds
from reproduce.lines import lines, means
from sfumato.evaluation.learning.results import ACCURACY, ENTROPY
from sfumato.pictures.curves import curves
from sfumato.pictures.picture import Picture
from sfumato.policy import merge_flags

TARGET = "salary-class"
MANY_L = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9)


def run(size: Size) -> Result:
    records = size.of(tenth=200, quick=6_000, full=CENSUS_RECORDS)
    folds = size.of(tenth=3, quick=FOLDS, full=FOLDS)
    many_l = size.of(tenth=MANY_L[::4], quick=MANY_L, full=MANY_L)
    lesson = census(size, records)
    policy = merge_flags(lesson.policy, sensitive=TARGET, other="drop", method=INFORMATION_GAIN, k=1)
    rows = []
    for l in many_l:
        diverse = merge_flags(policy, require=[f"entropy({TARGET}, l={l})"])
        by_fold = list(fold_figures(cross_validation(lesson.under(diverse), ["tree"], folds), diverse))
        for target, model, metric in by_fold[0]:
            values = [figures[target, model, metric] for figures in by_fold]
            rows.append({"l": l, "model": model, "metric": metric, **spread(values, overlap_of_folds(values))})
    return Result(
        sizes=f"{records:,} census records in {folds} folds; {CENSUS_RECORDS:,} in the paper",
        tables={"census": rows},
        settings={"k": 1, "l": many_l, "records": records, "folds": folds, "seed of the sample": CENSUS_SEED},
    )


def draw(result: Result) -> Mapping[str, Picture]:
    titles = {ENTROPY: ("Conditional entropy of the class", "bits"), ACCURACY: ("Decision tree", "test set accuracy")}
    return {
        panel: curves(
            [{**row, "method": INFORMATION_GAIN} for row in result.tables["census"] if row["metric"] == metric],
            x="l",
            y="value",
            title=title,
            subtitle=result.sizes,
            x_title="entropy l",
            y_title=y_title,
            from_zero=False,
        )
        for panel, (metric, (title, y_title)) in zip("ab", titles.items(), strict=True)
    }


def _entropy_rises(result: Result) -> Judgement:
    rows = [row for row in result.tables["census"] if row["metric"] == ENTROPY]
    cases = {f"l = {row['l']}": row["value"] > before["value"] for before, row in itertools.pairwise(rows)}
    return in_every_case(cases, f"{ranges(means(lines(rows, 'l', 'value', 'metric')), [ENTROPY])} bits")


def _accuracy_falls(result: Result) -> Judgement:
    rows = [row for row in result.tables["census"] if row["metric"] == ACCURACY]
    case = f"l = {rows[0]['l']} against l = {rows[-1]['l']}"
    return judge_folds({case: (rows[0]["trials"], rows[-1]["trials"])}, "accuracy lost")


FIGURE_11 = Figure(
    paper="lefevre",
    number="11",
    title="entropy l-diversity of the class itself",
    published=f"Census with {CENSUS_RECORDS:,} records, {FOLDS} folds, k = 1; the class to predict is sensitive.",
    run=run,
    draw=draw,
    claims=(
        Claim("Conditional entropy rises with l", "the next smaller l", _entropy_rises),
        Claim("Accuracy deteriorates with l", "the smallest l", _accuracy_falls),
    ),
    remarks=("The class has two values, so l is a real number below 2.",),
)
