"""Judges of claims. A claim holds if it does in every measured case, fails if in none, and otherwise depends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from reproduce.figure import Judgement, Row, Verdict
from sfumato.evaluation.learning.significance import difference, estimate


def in_every_case(cases: Mapping[str, bool], found: str) -> Judgement:
    """Judge by cases, each with its name. Where the claim depends, the text says in which cases it does not hold."""
    if not cases:
        raise ValueError("a claim is judged by at least one case")
    against = [name for name, holds in cases.items() if not holds]
    if not against:
        return Judgement("holds", found)
    if len(against) == len(cases):
        return Judgement("fails", found)
    return Judgement("depends", f"{found}. Not at {', '.join(against)}")


def lines(rows: Iterable[Row], x: str, y: str, series: str = "method") -> dict[str, dict[float, float]]:
    """Return y by x for every series, without the points that have no number."""
    found: dict[str, dict[float, float]] = {}
    for row in rows:
        if row[y] is not None:
            found.setdefault(str(row[series]), {})[row[x]] = row[y]
    return found


def below(
    rows: Sequence[Row],
    ours: Sequence[str],
    others: Sequence[str],
    *,
    x: str,
    y: str,
    factor: float = 1.0,
    series: str = "method",
) -> Judgement:
    """Judge that each of ``ours`` is below ``factor`` times each of ``others``, wherever both were measured."""
    found = lines(rows, x, y, series)
    cases = {
        f"{x} = {at:,} ({mine} and {other})": found[mine][at] < factor * found[other][at]
        for mine in ours
        for other in others
        for at in found[mine]
        if at in found.get(other, {})
    }
    return in_every_case(cases, ranges(found, [*ours, *others]))


def ranges(found: Mapping[str, Mapping[float, float]], names: Sequence[str]) -> str:
    """Return the smallest and largest figure of each series, in words."""
    return "; ".join(f"{name} {_range(found[name].values())}" for name in names if name in found)


def larger(first: Sequence[float], second: Sequence[float], names: tuple[str, str], overlap: float = 0.0) -> Judgement:
    """Judge by paired trials that the first figure is larger: by the 95% interval of the difference."""
    estimated = difference(first, second, overlap)
    if estimated.low is None or estimated.high is None:
        raise ValueError("an interval needs at least two trials")
    verdict: Verdict = "holds" if estimated.low > 0 else "fails" if estimated.high < 0 else "depends"
    values = [number(estimate(trials, overlap).value) for trials in (first, second)]
    interval = f"{number(estimated.low)} to {number(estimated.high)}"
    figures = f"{names[0]} {values[0]}, {names[1]} {values[1]}"
    return Judgement(verdict, f"{figures}; difference {number(estimated.value)}, 95% interval {interval}")


def number(value: float) -> str:
    """Return a number with the digits that a reader can use."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}" if digits < 7 else f"{value:.2e}"


def _range(values: Iterable[float]) -> str:
    many = sorted(values)
    least, most = number(many[0]), number(many[-1])
    return least if least == most else f"{least} to {most}"
