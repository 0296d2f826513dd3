"""Judges of claims. A claim holds if it does in every measured case, fails if in none, and otherwise depends.

With several trials a case is decided by the 95% interval of the paired difference. With one trial the figures decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from reproduce.figure import Judgement, Row, Verdict
from reproduce.lines import lines, means
from sfumato.evaluation.learning.significance import difference, estimate

Case = bool | None
"""Whether a claim holds in a case; None if the trials do not decide it."""


def in_every_case(cases: Mapping[str, Case], found: str) -> Judgement:
    """Judge by cases, each with its name. Where the claim depends, the text says in which cases it does not hold."""
    verdict = _verdict(list(cases.values()))
    if verdict != "depends":
        return Judgement(verdict, found)
    against = [name for name, holds in cases.items() if holds is False]
    open_cases = [name for name, holds in cases.items() if holds is None]
    remarks = [
        f"{words} {', '.join(names)}" for words, names in (("Not at", against), ("Undecided at", open_cases)) if names
    ]
    return Judgement(verdict, ". ".join([found, *remarks]))


def below(
    rows: Sequence[Row],
    ours: Sequence[str],
    others: Sequence[str],
    *,
    x: str,
    y: str,
    factor: float = 1.0,
    series: str = "method",
    names: Mapping[str, str] | None = None,
) -> Judgement:
    """Judge that each of ``ours`` is below ``factor`` times each of ``others``, wherever both were measured.

    Where neither loses anything there is nothing to judge.
    """
    shown = names or {}
    found = lines(rows, x, y, series)
    cases: dict[tuple[str, str], dict[float, Case]] = {
        (mine, other): {
            at: is_less(found[mine][at], [factor * value for value in found[other][at]])
            for at in found[mine]
            if at in found.get(other, {}) and any((*found[mine][at], *found[other][at]))
        }
        for mine in ours
        for other in others
    }
    verdict = _verdict([case for pair in cases.values() for case in pair.values()])
    text = ranges(means(found), [*ours, *others], shown)
    if verdict == "depends":
        for words, wanted in (("Not", False), ("Undecided", None)):
            exceptions = {pair: [at for at, case in judged.items() if case is wanted] for pair, judged in cases.items()}
            text += "".join(
                f". {words}{_pair(pair, shown) if len(cases) > 1 else ''} at {x} = {_listed(against)}"
                for pair, against in exceptions.items()
                if against
            )
    return Judgement(verdict, text)


def _pair(pair: tuple[str, str], names: Mapping[str, str]) -> str:
    return " for {} and {}".format(*(names.get(name, name) for name in pair))


def is_less(first: Sequence[float], second: Sequence[float]) -> Case:
    """Say whether the first is less over the same trials, or None if they do not decide it."""
    estimated = difference(second, first)
    if estimated.low is None or estimated.high is None:
        return estimated.value > 0
    return True if estimated.low > 0 else False if estimated.high <= 0 else None


def larger(first: Sequence[float], second: Sequence[float], names: tuple[str, str], overlap: float = 0.0) -> Judgement:
    """Judge by paired trials that the first figure is larger: by the 95% interval of the difference.

    ``overlap``: for folds of one table, the ratio of test records to training records.
    """
    estimated = difference(first, second, overlap)
    if estimated.low is None or estimated.high is None:
        raise ValueError("an interval needs at least two trials")
    verdict: Verdict = "holds" if estimated.low > 0 else "fails" if estimated.high < 0 else "depends"
    values = [number(estimate(trials, overlap).value) for trials in (first, second)]
    interval = f"{number(estimated.low)} to {number(estimated.high)}"
    figures = f"{names[0]} {values[0]}, {names[1]} {values[1]}"
    return Judgement(verdict, f"{figures}; difference {number(estimated.value)}, 95% interval {interval}")


def ranges(
    found: Mapping[str, Mapping[float, float]], series: Sequence[str], names: Mapping[str, str] | None = None
) -> str:
    """Return the smallest and largest figure of each series, in words."""
    shown = names or {}
    return "; ".join(f"{shown.get(name, name)} {span(found[name].values())}" for name in series if name in found)


def span(values: Iterable[float]) -> str:
    """Return the smallest and the largest of the values, in words."""
    many = sorted(values)
    least, most = number(many[0]), number(many[-1])
    return least if least == most else f"{least} to {most}"


def number(value: float) -> str:
    """Return a number with the digits that a reader can use."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}" if digits < 7 else f"{value:.2e}"


def _verdict(cases: Sequence[Case]) -> Verdict:
    if not cases:
        raise ValueError("a claim is judged by at least one case")
    return "holds" if all(cases) else "fails" if all(case is False for case in cases) else "depends"


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:,}" for value in values)
