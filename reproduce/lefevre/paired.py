"""Claims about chance: two figures over the same trials, in one or more cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reproduce.figure import Judgement, Row, Verdict
from reproduce.judging import number
from reproduce.lefevre.lessons import overlap_of_folds
from sfumato.evaluation.learning.significance import difference

Trials = Sequence[float]
Pairs = Mapping[str, tuple[Trials, Trials]]
MOST_NAMED = 4
"""How many cases a judgement names; it counts all of them."""


def judge_folds(pairs: Pairs, what: str) -> Judgement:
    """Judge trials that are the folds of one table."""
    return judge_pairs(pairs, what, overlap_of_folds(next(iter(pairs.values()))[0]) if pairs else 0.0)


def judge_pairs(pairs: Pairs, what: str, overlap: float = 0.0) -> Judgement:
    """Judge in every case that the first figure is larger, by the 95% interval of the difference.

    ``what`` names the difference, such as "accuracy gained". ``overlap`` is that of folds; other trials have none.
    """
    if not pairs:
        raise ValueError("a claim is judged by at least one case")
    cases: dict[Verdict, list[str]] = {"holds": [], "fails": [], "depends": []}
    means = []
    for case, (first, second) in pairs.items():
        found = difference(first, second, overlap)
        if found.low is None or found.high is None:
            raise ValueError("an interval needs at least two trials")
        verdict: Verdict = "holds" if found.low > 0 else "fails" if found.high < 0 else "depends"
        means.append(found.value)
        cases[verdict].append(f"{case} ({number(found.value)}, {number(found.low)} to {number(found.high)})")
    if len(pairs) == 1:
        (case,) = (text for texts in cases.values() for text in texts)
        return Judgement(next(verdict for verdict, texts in cases.items() if texts), f"{what}, 95% interval: {case}")
    verdicts: tuple[Verdict, ...] = ("holds", "fails")
    decided = (verdict for verdict in verdicts if len(cases[verdict]) == len(pairs))
    text = f"{what} {number(min(means))} to {number(max(means))}; in {len(cases['holds'])} of {len(pairs)} cases"
    for reading, texts in (("the opposite", cases["fails"]), ("not decided", cases["depends"])):
        if texts:
            text += f"; {reading} in {len(texts)}: {_some(texts)}"
    return Judgement(next(decided, "depends"), text)


def trials_of(rows: Sequence[Row], series: str, first: str, second: str, by: Sequence[str]) -> Pairs:
    """Return the trials of two series in every case that has both; ``by`` names the columns that make a case."""
    found: dict[str, dict[str, Trials]] = {}
    for row in rows:
        if row[series] in (first, second):
            found.setdefault(", ".join(_value(column, row) for column in by), {})[row[series]] = row["trials"]
    return {case: (both[first], both[second]) for case, both in found.items() if first in both and second in both}


def _value(column: str, row: Row) -> str:
    return str(row[column]) if isinstance(row[column], str) else f"{column} = {row[column]:,}"


def swapped(pairs: Pairs) -> Pairs:
    """Return the pairs for a claim that the first figure is smaller."""
    return {case: (second, first) for case, (first, second) in pairs.items()}


def _some(texts: Sequence[str]) -> str:
    return ", ".join(texts[:MOST_NAMED]) + (", and others" if len(texts) > MOST_NAMED else "")
