"""What came of learning from a release: a figure with its interval, from all folds together."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any

from sfumato.evaluation.learning.significance import Difference, difference

ORIGINAL = "original"
ACCURACY, ERROR = "accuracy", "mean-absolute-error"
ENTROPY, SQUARED_ERROR = "conditional-entropy", "weighted-mean-squared-error"
CLASS_SIZE, IMPRECISION = "average-class-size", "imprecision"
MORE_IS_BETTER = frozenset({ACCURACY})


@dataclass(frozen=True, kw_only=True)
class Result:
    """One figure of one method, or why there is none.

    ``target`` is what was learnt, or the selection that was made; ``model`` is none for figures of the release itself.
    k and l are none for the original, which does not depend on them. ``folds`` has the figure of each fold.
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
        """What is asked for."""
        if self.k is None:
            return ""
        return f"k = {self.k:,}" if self.l is None else f"k = {self.k:,}, l = {self.l:,}"

    @property
    def asked(self) -> tuple[int | None, int | None]:
        return self.k, self.l

    @property
    def what(self) -> tuple[str | None, str | None, str | None]:
        """What is measured; results of the same can be compared."""
        return self.target, self.model, self.metric

    def as_dict(self) -> dict[str, Any]:
        """As Python users and JSON have it."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"folds": list(self.folds)}


@dataclass(frozen=True, kw_only=True)
class ModelComparison:
    """Two methods in the same folds: by how much the first has more, and how likely that is by chance (p)."""

    first: Result
    second: Result
    difference: Difference

    def as_dict(self) -> dict[str, Any]:
        found = self.difference
        return {
            "k": self.second.k if self.first.k is None else self.first.k,
            "l": self.second.l if self.first.k is None else self.first.l,
            "target": self.first.target,
            "model": self.first.model,
            "metric": self.first.metric,
            "first": self.first.method,
            "second": self.second.method,
            "difference": found.value,
            "low": found.low,
            "high": found.high,
            "p": found.p,
        }


def by_asked(results: Iterable[Result]) -> dict[tuple[int | None, int | None], list[Result]]:
    """The results under each k and l, with those of the original, which holds for all, before them."""
    every = list(results)
    asked = dict.fromkeys(one.asked for one in every if one.method != ORIGINAL)
    original = [one for one in every if one.method == ORIGINAL]
    return {key: [*original, *(one for one in every if one.asked == key and one.method != ORIGINAL)] for key in asked}


def comparisons(results: Sequence[Result], folds: int) -> list[ModelComparison]:
    """Every two methods that were measured alike."""
    found = []
    overlap = 1 / (folds - 1)
    for here in by_asked(results).values():
        alike: dict[tuple[str | None, str | None, str | None], list[Result]] = {}
        for one in here:
            if one.model is not None and one.folds:
                alike.setdefault(one.what, []).append(one)
        for same in alike.values():
            for first, second in combinations(same, 2):
                found.append(
                    ModelComparison(
                        first=first, second=second, difference=difference(first.folds, second.folds, overlap)
                    )
                )
    return found


def is_better(first: Result, second: Result) -> bool:
    """Has the first the better figure?"""
    if first.value is None or second.value is None:
        return second.value is None and first.value is not None
    return (first.value > second.value) == (first.metric in MORE_IS_BETTER) and first.value != second.value


def best_of(results: Sequence[Result]) -> Result | None:
    """The best of the releases; the original is none."""
    best: Result | None = None
    for one in results:
        if one.method != ORIGINAL and one.value is not None and (best is None or is_better(one, best)):
            best = one
    return best


def table_text(results: Sequence[Result]) -> str:
    """The results as CSV."""
    names = [field.name for field in fields(Result) if field.name not in ("folds", "code")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([getattr(one, name) for name in names] for one in results)
    return text.getvalue()


def told(value: float | None, metric: str | None) -> str:
    """A figure as people read it."""
    if value is None:
        return ""
    if metric == ACCURACY:
        return f"{value:.1%}"
    if metric == ENTROPY:
        return f"{value:.3f}"
    if metric in (CLASS_SIZE, IMPRECISION):
        return f"{value:,.1f}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def with_reach(one: Result) -> str:
    """A figure and how far it may be off."""
    if one.low is None or one.high is None or one.value is None:
        return told(one.value, one.metric)
    reach = (one.high - one.low) / 2
    return f"{told(one.value, one.metric)} \N{PLUS-MINUS SIGN}{told(reach, one.metric).removesuffix('%')}"


METRICS: Mapping[str, str] = {
    ACCURACY: "the share of test records whose class is told right.",
    ERROR: "how far predictions of test records are off on average.",
    ENTROPY: "of the target in bits, within the classes of the release of the training records: 0 where every class "
    "has one value alone (LeFevre 2008, eq. 1).",
    SQUARED_ERROR: "of the target about its mean within the classes of the release of the training records (eq. 2).",
    CLASS_SIZE: "records in a class of the release of the training records, on average.",
    IMPRECISION: "how many records more than those that were meant a selection from the release gives, since their "
    "class overlaps with it.",
}
