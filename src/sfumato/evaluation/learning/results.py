"""The results of learning from releases: figures over all folds, with their confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any

from sfumato.evaluation.comparison_points import csv_text
from sfumato.evaluation.learning.significance import Difference, difference

ORIGINAL = "original"
ACCURACY, ERROR = "accuracy", "mean-absolute-error"
ENTROPY, SQUARED_ERROR = "conditional-entropy", "weighted-mean-squared-error"
CLASS_SIZE, IMPRECISION = "average-class-size", "imprecision"
MORE_IS_BETTER = frozenset({ACCURACY})


@dataclass(frozen=True, kw_only=True)
class Result:
    """One figure of one method, or the error that prevented it.

    ``target`` is the predicted column, or the condition of a selection. ``model`` is None for figures of the release
    itself. k and l are None for the original, which does not depend on them. ``folds`` has the figure of each fold.
    """

    method: str
    k: int | None
    l: int | None
    target: str | None = None
    model: str | None = None
    metric: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    folds: tuple[float, ...] = ()
    error: str | None = None
    code: int = 0

    @property
    def label(self) -> str:
        """The requested k and l, in words."""
        if self.k is None:
            return ""
        return f"k = {self.k:,}" if self.l is None else f"k = {self.k:,}, l = {self.l:,}"

    @property
    def asked(self) -> tuple[int | None, int | None]:
        return self.k, self.l

    @property
    def what(self) -> tuple[str | None, str | None, str | None]:
        """The measured quantity: target, model and metric. Results with the same quantity can be compared."""
        return self.target, self.model, self.metric

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"folds": list(self.folds)}


@dataclass(frozen=True, kw_only=True)
class ModelComparison:
    """Two methods in the same folds: how much larger the figure of the first is, and its significance (p)."""

    first: Result
    second: Result
    difference: Difference

    def as_dict(self) -> dict[str, Any]:
        return {
            "k": self.second.k if self.first.k is None else self.first.k,
            "l": self.second.l if self.first.k is None else self.first.l,
            "target": self.first.target,
            "model": self.first.model,
            "metric": self.first.metric,
            "first": self.first.method,
            "second": self.second.method,
            "difference": self.difference.value,
            "low": self.difference.low,
            "high": self.difference.high,
            "p": self.difference.p,
        }


def by_k_and_l(results: Iterable[Result]) -> dict[tuple[int | None, int | None], list[Result]]:
    """Group the results by k and l. Each group starts with the results of the original, which hold for all."""
    original: list[Result] = []
    released: dict[tuple[int | None, int | None], list[Result]] = {}
    for result in results:
        if result.method == ORIGINAL:
            original.append(result)
        else:
            released.setdefault(result.asked, []).append(result)
    return {key: [*original, *group] for key, group in released.items()}


def comparisons(results: Sequence[Result], folds: int) -> list[ModelComparison]:
    """Compare every two methods that have a figure of the same quantity in the same folds."""
    pairs = []
    overlap = 1 / (folds - 1)
    for group in by_k_and_l(results).values():
        by_quantity: dict[tuple[str | None, str | None, str | None], list[Result]] = {}
        for result in group:
            if result.model is not None and result.folds:
                by_quantity.setdefault(result.what, []).append(result)
        for comparable in by_quantity.values():
            for first, second in combinations(comparable, 2):
                between = difference(first.folds, second.folds, overlap)
                pairs.append(ModelComparison(first=first, second=second, difference=between))
    return pairs


def is_better(first: Result, second: Result) -> bool:
    """Whether the first result has the better figure."""
    if first.value is None or second.value is None:
        return second.value is None and first.value is not None
    return (first.value > second.value) == (first.metric in MORE_IS_BETTER) and first.value != second.value


def best_of(results: Sequence[Result]) -> Result | None:
    """The best result of a release. Results of the original do not count."""
    best: Result | None = None
    for result in results:
        if result.method != ORIGINAL and result.value is not None and (best is None or is_better(result, best)):
            best = result
    return best


def table_text(results: Sequence[Result]) -> str:
    """The results as CSV."""
    names = [field.name for field in fields(Result) if field.name not in ("folds", "code")]
    return csv_text(names, ([getattr(result, name) for name in names] for result in results))


def figure_text(value: float | None, metric: str | None) -> str:
    """Format a figure for people."""
    if value is None:
        return ""
    if metric == ACCURACY:
        return f"{value:.1%}"
    if metric == ENTROPY:
        return f"{value:.3f}"
    if metric in (CLASS_SIZE, IMPRECISION):
        return f"{value:,.1f}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def with_reach(result: Result) -> str:
    """Format a figure with half the width of its confidence interval."""
    text = figure_text(result.value, result.metric)
    if result.low is None or result.high is None or result.value is None:
        return text
    reach = figure_text((result.high - result.low) / 2, result.metric).removesuffix("%")
    return f"{text} \N{PLUS-MINUS SIGN}{reach}"


METRICS: Mapping[str, str] = {
    ACCURACY: "the share of test records whose class is predicted correctly.",
    ERROR: "the mean absolute error of the predictions for test records.",
    ENTROPY: "the entropy of the target in bits, within the classes of the released training records; 0 if every class "
    "has a single value (LeFevre 2008, eq. 1).",
    SQUARED_ERROR: "the squared deviation of the target from the mean of its class, averaged over the released "
    "training records (LeFevre 2008, eq. 2).",
    CLASS_SIZE: "the mean number of records in a class of the released training records.",
    IMPRECISION: "the number of records that a selection from the release returns beyond those it selects in the "
    "original, because their class overlaps with the selection.",
}
