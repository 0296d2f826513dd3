"""Fig. 7 to 9: what models learn from releases of real tables, and what simpler measures say about it, by k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduce.figure import Claim, Figure, Judgement, Result, Row, Size
from reproduce.judging import in_every_case, number
from reproduce.lefevre.lessons import (
    CENSUS_RECORDS,
    CENSUS_SEED,
    FOLDS,
    INFORMATION_GAIN,
    MEDIAN,
    ORIGINAL,
    OUR_MEDIAN,
    PAPER_NAMES,
    READINGS,
    REGRESSION,
    TDS,
    census,
    contraceptives,
    sweep,
)
from reproduce.lefevre.paired import judge_folds, swapped, trials_of
from sfumato.evaluation.learning.results import ACCURACY, CLASS_SIZE, ENTROPY
from sfumato.pictures.curves import curves
from sfumato.pictures.picture import Picture

METHODS = (INFORMATION_GAIN, TDS, MEDIAN, OUR_MEDIAN)
MODELS = {"tree": "decision tree", "bayes": "naive Bayes", "forest": "random forest"}
REGRESSORS = {"regression-tree": "regression tree", "linear": "linear regression"}
MANY_K = (2, 5, 10, 25, 50, 100, 250, 500, 1_000)
CONTRACEPTIVE_K = (2, 5, 10, 25, 50, 100, 250)


@dataclass(frozen=True)
class CensusSweep:
    """How many census records a run takes, into how many folds it divides them, and under which k."""

    records: int
    folds: int
    many_k: Sequence[int]

    @classmethod
    def of(cls, size: Size) -> CensusSweep:
        return size.of(
            tenth=cls(200, 3, (5,)), quick=cls(6_000, FOLDS, MANY_K[:-1]), full=cls(CENSUS_RECORDS, FOLDS, MANY_K)
        )

    @property
    def sizes(self) -> str:
        return f"{self.records:,} census records in {self.folds} folds; {CENSUS_RECORDS:,} in the paper"

    @property
    def settings(self) -> dict[str, Any]:
        return {"records": self.records, "folds": self.folds, "k": self.many_k, "seed of the sample": CENSUS_SEED}


def figure_7(size: Size) -> Result:
    asked = CensusSweep.of(size)
    few_k = size.of(tenth=(10,), quick=CONTRACEPTIVE_K, full=CONTRACEPTIVE_K)
    on_census = sweep(census(size, asked.records), METHODS, asked.many_k, list(MODELS), asked.folds)
    on_contraceptives = sweep(contraceptives(size), METHODS, few_k, ["tree"], asked.folds)
    return Result(
        asked.sizes,
        {
            "census": [row for row in on_census if row["metric"] == ACCURACY],
            "contraceptives": [row for row in on_contraceptives if row["metric"] == ACCURACY],
        },
        {**asked.settings, "k of contraceptives": few_k},
    )


def figure_8(size: Size) -> Result:
    asked = CensusSweep.of(size)
    rows = sweep(census(size, asked.records), METHODS, asked.many_k, ["tree"], asked.folds)
    return Result(asked.sizes, {"census": [row for row in rows if row["method"] != ORIGINAL]}, asked.settings)


def figure_9(size: Size) -> Result:
    asked = CensusSweep.of(size)
    rows = sweep(
        census(size, asked.records, "salary"),
        (REGRESSION, MEDIAN, OUR_MEDIAN),
        asked.many_k,
        list(REGRESSORS),
        asked.folds,
    )
    return Result(asked.sizes, {"census": [row for row in rows if row["model"]]}, asked.settings)


def draw_7(result: Result) -> Mapping[str, Picture]:
    panels = {}
    for panel, model in zip("abc", MODELS, strict=True):
        rows = [row for row in result.tables["census"] if row["model"] == model]
        panels[panel] = _by_k(rows, f"Census: {MODELS[model]}", "test set accuracy", result.sizes)
    panels["d"] = _by_k(
        result.tables["contraceptives"], "Contraceptives: decision tree", "test set accuracy", result.sizes
    )
    return panels


def draw_8(result: Result) -> Mapping[str, Picture]:
    titles = {ENTROPY: "Conditional entropy of the class", CLASS_SIZE: "Average class size"}
    units = {ENTROPY: "conditional entropy (bits)", CLASS_SIZE: "records"}
    return {
        panel: _by_k(
            [row for row in result.tables["census"] if row["metric"] == metric], title, units[metric], result.sizes
        )
        for panel, (metric, title) in zip("ab", titles.items(), strict=True)
    }


def draw_9(result: Result) -> Mapping[str, Picture]:
    return {
        panel: _by_k(
            [row for row in result.tables["census"] if row["model"] == model],
            f"Census: {title}",
            "mean absolute error (dollars)",
            result.sizes,
        )
        for panel, (model, title) in zip("ab", REGRESSORS.items(), strict=True)
    }


def _by_k(rows: Sequence[Row], title: str, y_title: str, sizes: str) -> Picture:
    """Draw figures against k. The original has no k: its line is level."""
    ends = sorted({row["k"] for row in rows if row["k"] is not None})
    points = [
        {"k": k, "method": row["method"], "value": row["value"]}
        for row in rows
        for k in ([row["k"]] if row["k"] is not None else [ends[0], ends[-1]])
    ]
    return curves(
        points, x="k", y="value", title=title, subtitle=sizes, y_title=y_title, x_scale="log", from_zero=False
    )


def _above(table: str, other: str) -> Claim:
    def judge(result: Result) -> Judgement:
        pairs = trials_of(result.tables[table], "method", INFORMATION_GAIN, other, ("model", "k"))
        return judge_folds(pairs, "accuracy gained")

    text = f"{table.capitalize()}: InfoGain Mondrian leads to higher accuracy than {PAPER_NAMES[other]}"
    return Claim(text, READINGS[other], judge)


def _overfits(result: Result) -> Judgement:
    rows = [row for row in result.tables["census"] if row["model"] == "forest"]
    (original,) = (row["trials"] for row in rows if row["method"] == ORIGINAL)
    pairs = {f"k = {row['k']:,}": (row["trials"], original) for row in rows if row["method"] == INFORMATION_GAIN}
    return judge_folds(pairs, "accuracy above that of the original")


def _comparable_sizes(result: Result) -> Judgement:
    """Class sizes of InfoGain and Median are comparable: read as within a quarter of each other."""
    sizes = _values(result, CLASS_SIZE)
    ratios = {k: sizes[INFORMATION_GAIN][k] / sizes[MEDIAN][k] for k in sizes[INFORMATION_GAIN]}
    cases = {f"k = {k:,}": 0.8 <= ratio <= 1.25 for k, ratio in ratios.items()}
    return in_every_case(cases, f"ratio {number(min(ratios.values()))} to {number(max(ratios.values()))}")


def _entropy_tells(result: Result) -> Judgement:
    """Over all releases, accuracy falls with entropy more closely than with class size."""
    tables = {metric: _values(result, metric) for metric in (ENTROPY, CLASS_SIZE, ACCURACY)}
    cases = [(method, k) for method in METHODS for k in tables[ACCURACY][method]]
    accuracy = [tables[ACCURACY][method][k] for method, k in cases]
    related = {
        metric: _rank_correlation([tables[metric][method][k] for method, k in cases], accuracy)
        for metric in (ENTROPY, CLASS_SIZE)
    }
    found = (
        f"rank correlation with accuracy {related[ENTROPY]:.2f} for entropy, {related[CLASS_SIZE]:.2f} for class size"
    )
    return in_every_case({"all releases": related[ENTROPY] < min(related[CLASS_SIZE], 0.0)}, found)


def _values(result: Result, metric: str) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for row in result.tables["census"]:
        if row["metric"] == metric:
            found.setdefault(row["method"], {})[row["k"]] = row["value"]
    return found


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    one, other = (np.argsort(np.argsort(values)) for values in (first, second))
    return float(np.corrcoef(one, other)[0, 1])


def _smaller_error(other: str) -> Claim:
    def judge(result: Result) -> Judgement:
        pairs = trials_of(result.tables["census"], "method", REGRESSION, other, ("model", "k"))
        return judge_folds(swapped(pairs), "error saved (dollars)")

    text = f"Regression Mondrian generally leads to smaller errors than {PAPER_NAMES[other]}"
    return Claim(text, READINGS[other], judge)


REMARK = (
    "The census is a later year of the paper's source, the American Community Survey of 2018, with seven "
    "quasi-identifiers (Table III)."
)
FIGURE_7 = Figure(
    paper="lefevre",
    number="7",
    title="what models learn from real tables",
    published=f"Census with {CENSUS_RECORDS:,} records and contraceptives with 1,473 records, {FOLDS} folds, by k.",
    run=figure_7,
    draw=draw_7,
    claims=(
        _above("census", TDS),
        _above("census", MEDIAN),
        _above("census", OUR_MEDIAN),
        _above("contraceptives", TDS),
        _above("contraceptives", MEDIAN),
        _above("contraceptives", OUR_MEDIAN),
        Claim(
            "A random forest learns more from releases than from the original, which it overfits", ORIGINAL, _overfits
        ),
    ),
    remarks=(REMARK,),
)
FIGURE_8 = Figure(
    paper="lefevre",
    number="8",
    title="general-purpose measures on the census",
    published=f"Census with {CENSUS_RECORDS:,} records, {FOLDS} folds, by k.",
    run=figure_8,
    draw=draw_8,
    claims=(
        Claim(
            "InfoGain and Median Mondrian have classes of comparable size (read as: within a quarter)",
            MEDIAN,
            _comparable_sizes,
        ),
        Claim(
            "Conditional entropy indicates accuracy better than class size does (read as: by rank correlation)",
            "accuracy of a decision tree over all methods and k",
            _entropy_tells,
        ),
    ),
)
FIGURE_9 = Figure(
    paper="lefevre",
    number="9",
    title="errors of regression on the census",
    published=f"Census with {CENSUS_RECORDS:,} records, {FOLDS} folds, by k; the salary is a number.",
    run=figure_9,
    draw=draw_9,
    claims=(_smaller_error(MEDIAN), _smaller_error(OUR_MEDIAN)),
    remarks=("The table has wages in classes of 2,500 dollars; the salary is the middle of its class.",),
)
