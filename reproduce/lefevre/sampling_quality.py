"""Fig. 22 and 23: what is lost in quality when the first splits are found on a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from reproduce.figure import Claim, Figure, Judgement, Result, Row, Size
from reproduce.judging import in_every_case, number
from reproduce.lefevre.lessons import CENSUS_RECORDS, census, spread
from reproduce.lefevre.paired import judge_pairs
from reproduce.lefevre.rothko_runs import (
    GAIN_SPLITS,
    REGRESSION_SPLITS,
    Coded,
    RothkoRun,
    by_counts,
    by_sample,
    coded,
    drawn,
    policy_for,
)
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.pictures.curves import curves
from sfumato.pictures.picture import Picture
from sfumato.policy import Policy, merge_flags

RECORDS, TABLES = 100_000, 10  # those of the paper
MANY_K = (10, 100, 1_000)
SAMPLES = (500, 1_000, 2_500, 5_000, 10_000, 25_000)
CENSUS = "census"
Drawn = Callable[[int], tuple[pa.Table, Policy, str]]
"""The table of a number, a policy for it, and its target."""


def figure_22(size: Size) -> Result:
    return _result(size, ("C2", "C7"), "salary-class", GAIN_SPLITS)


def figure_23(size: Size) -> Result:
    return _result(size, ("R7", "R10"), "salary", REGRESSION_SPLITS)


def _result(size: Size, functions: Sequence[str], census_target: str, method: MondrianMethod) -> Result:
    records = size.of(tenth=1_000, quick=10_000, full=RECORDS)
    census_records = size.of(tenth=1_000, quick=10_000, full=CENSUS_RECORDS)
    tables = size.of(tenth=2, quick=TABLES, full=TABLES)
    functions = size.of(tenth=functions[:1], quick=functions, full=functions)
    many_k = size.of(tenth=MANY_K[:2], quick=(10, 50, 250), full=MANY_K)
    samples = size.of(tenth=(250, 500), quick=(250, 500, 1_000, 2_500), full=SAMPLES)

    def generated(function: str) -> Drawn:
        def draw_table(seed: int) -> tuple[pa.Table, Policy, str]:
            data = drawn(records, seed, function=function)
            target = "target" if "target" in data.column_names else "class"
            return data, policy_for(data, target=target, method=method.name), target

        return draw_table

    lesson = census(size, census_records, census_target)  # type: ignore[arg-type]

    def same_census(seed: int) -> tuple[pa.Table, Policy, str]:
        return lesson.data, merge_flags(lesson.policy, least_gain=0.01, method=method.name, seed=seed), census_target

    shown = {name: generated(name) for name in functions} | {CENSUS: same_census}
    rows = [row for name, draw in shown.items() for row in _rows(name, draw, method, many_k, samples, tables)]
    return Result(
        sizes=f"{tables} tables of {records:,} records; {TABLES} of {RECORDS:,} in the paper",
        tables={"quality": rows},
        settings={"k": many_k, "seeds": f"0 to {tables - 1}", "census records": census_records, "least gain": 0.01},
    )


def _rows(
    name: str, draw: Drawn, method: MondrianMethod, many_k: Sequence[int], samples: Sequence[int], tables: int
) -> list[Row]:
    """Return what classes leave unexplained, by k and n; the last n is the whole table, and then nothing is sampled."""
    found: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for seed in range(tables):
        data, policy, target = draw(seed)
        for k in many_k:
            with coded(data, merge_flags(policy, k=k)) as packed:
                runs = {n: by_sample(packed, n, n, method) for n in samples}
                if name != CENSUS or seed == 0:  # the census is the same table for every seed
                    runs[data.num_rows] = by_counts(packed, data.num_rows, method=method)
                for n, run in runs.items():
                    found.setdefault((k, n), []).append((_left(packed, target, run), run.counters.nonminimal))
    return [
        {
            "table": name,
            "k": k,
            "n": n,
            "not minimal": sum(count > 0 for _, count in runs),
            **spread([left for left, _ in runs]),
        }
        for (k, n), runs in found.items()
    ]


def _left(packed: Coded, target: str, run: RothkoRun) -> float:
    """Return the entropy of the target within classes in bits, or the mean squared error of the class means."""
    owner = np.repeat(np.arange(run.classes.sizes.count), run.classes.sizes.read())
    values = packed.table.targets[target].of(run.classes.rows.read())
    sizes = np.bincount(owner)
    if target in ("target", "salary"):
        numbers = values.numbers[values.codes]
        means = np.bincount(owner, weights=numbers) / sizes
        return float(np.mean((numbers - means[owner]) ** 2))
    both = np.bincount(owner * values.distinct + values.codes)
    both = both[both > 0]
    return float((sizes @ np.log2(sizes) - both @ np.log2(both)) / sizes.sum())


def _draw(y_title: str) -> Callable[[Result], Mapping[str, Picture]]:
    def draw(result: Result) -> Mapping[str, Picture]:
        rows = result.tables["quality"]
        names = dict.fromkeys(row["table"] for row in rows)
        rings = "; a ring: may not be minimal" if any(row["not minimal"] for row in rows) else ""
        return {
            panel: curves(
                [{**row, "series": f"k = {row['k']:,}"} for row in rows if row["table"] == name],
                x="n",
                y="value",
                series="series",
                title=f"{name.capitalize()}: {y_title}",
                subtitle=f"{result.sizes}{rings}",
                x_title="records in the sample; the last is the whole table",
                y_title=y_title,
                x_scale="log",
                circled=[(row["n"], row["value"]) for row in rows if row["table"] == name and row["not minimal"]],
            )
            for panel, name in zip("abc", names, strict=False)
        }

    return draw


def _cells(result: Result) -> dict[str, dict[tuple[int, int], Row]]:
    found: dict[str, dict[tuple[int, int], Row]] = {}
    for row in result.tables["quality"]:
        found.setdefault(row["table"], {})[row["k"], row["n"]] = row
    return found


def _larger_is_better(result: Result) -> Judgement:
    pairs = {}
    for name, cells in _cells(result).items():
        samples = sorted({n for _, n in cells})[:-1]
        for k in sorted({k for k, _ in cells}):
            pairs[f"{name}, k = {k:,}"] = (cells[k, samples[0]]["trials"], cells[k, samples[-1]]["trials"])
    return judge_pairs(pairs, "unexplained less with the largest sample than with the smallest:")


def _small_difference(result: Result) -> Judgement:
    """The largest sample does nearly as well as the whole table: read as within five percent of it."""
    sampled, whole = {}, {}
    for name, cells in _cells(result).items():
        *samples, everything = sorted({n for _, n in cells})
        for k in sorted({k for k, _ in cells}):
            case = f"{name}, k = {k:,}"
            sampled[case], whole[case] = cells[k, samples[-1]]["value"], cells[k, everything]["value"]
    more = [100 * (sampled[case] / whole[case] - 1) for case in whole if whole[case] > 0]
    found = f"{number(min(more))}% to {number(max(more))}% more than without a sample"
    return in_every_case({case: sampled[case] <= 1.05 * whole[case] for case in whole}, found)


def _less_than_k(result: Result) -> Judgement:
    """Compare the largest change by n, under any k, with the smallest change by k, for any n."""
    cases, texts = {}, []
    for name, cells in _cells(result).items():
        samples, many_k = sorted({n for _, n in cells}), sorted({k for k, _ in cells})
        by_n = max(_range([cells[k, n]["value"] for n in samples]) for k in many_k)
        by_k = min(_range([cells[k, n]["value"] for k in many_k]) for n in samples)
        cases[name] = by_n < by_k
        texts.append(f"{name}: at most {number(by_n)} by n, at least {number(by_k)} by k")
    return in_every_case(cases, "; ".join(texts))


def _range(values: Sequence[float]) -> float:
    return max(values) - min(values)


CLAIMS = (
    Claim("A larger sample improves quality a little", "the smallest sample", _larger_is_better),
    Claim("For large samples the difference is very small (read as: within 5%)", "the whole table", _small_difference),
    Claim("The size of the sample matters much less than k", "the change by k, at every n", _less_than_k),
)
REMARK = (
    "The memory holds as many records as the sample. The census is one table; its sample is drawn anew each time. As "
    "in the paper, a part that no sample can divide becomes one class."
)
FIGURE_22 = Figure(
    paper="lefevre",
    number="22",
    title="conditional entropy by the size of the sample",
    published=f"{TABLES} synthetic tables of {RECORDS:,} records, and the census; information gain.",
    run=figure_22,
    draw=_draw("entropy (bits)"),
    claims=CLAIMS,
    remarks=(REMARK,),
)
FIGURE_23 = Figure(
    paper="lefevre",
    number="23",
    title="squared error by the size of the sample",
    published=f"{TABLES} synthetic tables of {RECORDS:,} records, and the census; regression splits.",
    run=figure_23,
    draw=_draw("WMSE"),
    claims=CLAIMS,
    remarks=(REMARK,),
)
