"""Drawings and claims that several figures share: loss and seconds against one parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reproduce.figure import Claim, Judgement, Result
from reproduce.ghinita.census import NAMES, RUNS, readings
from reproduce.judging import Case, below, in_every_case, is_less, number, ranges
from reproduce.lines import lines, mean, mean_curves, means
from sfumato.pictures.picture import Picture


def draw_by(figure: str, x: str, words: str, x_title: str) -> Callable[[Result], Mapping[str, Picture]]:
    """Return the drawing of a figure: loss and seconds against one parameter."""

    def draw(result: Result) -> Mapping[str, Picture]:
        rows = result.tables[RUNS]
        loss = mean_curves(
            result,
            rows,
            x=x,
            y="gcp",
            y_title="GCP",
            x_title=x_title,
            title=f"Fig. {figure} (a): information loss by {words}",
            names=NAMES,
        )
        seconds = mean_curves(
            result,
            rows,
            x=x,
            y="cpu seconds",
            y_title="CPU seconds",
            x_title=x_title,
            y_scale="log",
            title=f"Fig. {figure} (b): time by {words}",
            names=NAMES,
        )
        return {"a": loss, "b": seconds}

    return draw


def lower_loss(ours: Sequence[str], others: Sequence[str], x: str, text: str) -> Claim:
    def judge(result: Result) -> Judgement:
        return below(result.tables[RUNS], ours, others, x=x, y="gcp", names=NAMES)

    return Claim(text, readings(*others), judge)


def quicker(ours: Sequence[str], others: Sequence[str], x: str, text: str, factor: float = 1.0) -> Claim:
    def judge(result: Result) -> Judgement:
        return below(result.tables[RUNS], ours, others, x=x, y="cpu seconds", factor=factor, names=NAMES)

    return Claim(text, readings(*ours, *others), judge)


def close(first: str, second: str, x: str, y: str, within: float, text: str, baseline: str) -> Claim:
    """Claim that two lines differ by at most the factor ``within`` at every point."""

    def judge(result: Result) -> Judgement:
        found = means(lines(result.tables[RUNS], x, y))
        ratios = {at: found[first][at] / found[second][at] for at in found[first] if at in found[second]}
        cases = {f"{x} = {at:,}": 1 / within <= ratio <= within for at, ratio in ratios.items()}
        return in_every_case(cases, ranges({"ratio": ratios}, ["ratio"]))

    return Claim(text, baseline, judge)


def falls(methods: Sequence[str], x: str, y: str = "gcp", table: str = RUNS) -> Callable[[Result], Judgement]:
    """Judge that a figure is less at the largest x than at the smallest."""

    def judge(result: Result) -> Judgement:
        found = lines(result.tables[table], x, y)
        cases, texts = {}, []
        for method in methods:
            line = found[method]
            first, last = line[min(line)], line[max(line)]
            cases[NAMES[method]] = is_less(last, first)
            texts.append(f"{NAMES[method]} {number(mean(first))} to {number(mean(last))}")
        return in_every_case(cases, "; ".join(texts))

    return judge


def grows_at_most(methods: Sequence[str], x: str, factor: float) -> Callable[[Result], Judgement]:
    """Judge that the time at the largest x is at most ``factor`` times that at the smallest."""

    def judge(result: Result) -> Judgement:
        found = means(lines(result.tables[RUNS], x, "cpu seconds"))
        ratios = {method: found[method][max(found[method])] / found[method][min(found[method])] for method in methods}
        cases: dict[str, Case] = {NAMES[method]: ratio <= factor for method, ratio in ratios.items()}
        texts = (f"{NAMES[method]} {number(ratio)} times" for method, ratio in ratios.items())
        return in_every_case(cases, "; ".join(texts))

    return judge
