"""Figures 12 to 15: k-anonymity by k, records and quasi-identifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from benchmarks.tables import complete_records
from reproduce.figure import Claim, Figure, Judgement, Result, Row, Size, beside_paper
from reproduce.ghinita.census import (
    HILBERT,
    HILBERT_FAST,
    IDISTANCE,
    IDISTANCE_FAST,
    KEY,
    LOWER_NCP,
    MONDRIAN,
    NAMES,
    ORDERED,
    PUBLISHED,
    RUNS,
    TOPDOWN,
    anonymous_rows,
    census_result,
    first_columns,
    many_dimensions,
    paper_records,
    readings,
    seeds,
    varied_records,
)
from reproduce.ghinita.claims import close, draw_by, falls, grows_at_most, lower_loss, quicker
from reproduce.judging import in_every_case, number, ranges
from reproduce.lines import lines, mean_curves, means
from sfumato import Policy
from sfumato.pictures.picture import Picture
from sfumato.policy import merge_flags

METHODS = (
    HILBERT, IDISTANCE, HILBERT_FAST, IDISTANCE_FAST, PUBLISHED, ORDERED, LOWER_NCP, MONDRIAN, TOPDOWN,
)  # fmt: skip
K = 50
ADULT = ("age", "education-num", "workclass", "marital-status", "relationship", "race", "sex", "native-country")
DM = "c_dm_groups"  # the paper counts groups


def figure_12(size: Size) -> Result:
    table = size.tables.real("adult-raw")
    data = complete_records(table.path).select(ADULT)
    whole = table.policy.to_dict()
    columns = {name: column for name, column in whole["columns"].items() if name in ADULT}
    policy = merge_flags({**whole, "columns": columns, "other": "drop"})
    records = size.of(tenth=2_000, quick=len(data), full=len(data))
    many_k = size.of(tenth=(5, 10), quick=(5, 10, 25, 50), full=(5, 10, 15, 20, 25, 30, 35, 40, 45, 50))
    rows = [
        {"seed": seed, **row}
        for seed in seeds(size)
        for row in anonymous_rows(data.slice(0, records), merge_flags(policy, seed=seed), METHODS, many_k)
    ]
    sizes_said = f"Adult, {beside_paper(records, len(data))}; means of {len(seeds(size))} seeds"
    return Result(sizes_said, {RUNS: rows}, {"columns": ADULT, "k": many_k, "seeds": list(seeds(size))})


def figure_13(size: Size) -> Result:
    many_k = size.of(tenth=(10, 50), quick=(10, 25, 50, 100), full=(10, 20, 30, 40, 50, 60, 70, 80, 90, 100))
    return census_result(
        size,
        paper_records(size),
        lambda data, policy: anonymous_rows(data, policy, METHODS, many_k),
        {"k": many_k},
    )


def figure_14(size: Size) -> Result:
    return census_result(
        size, varied_records(size), lambda data, policy: anonymous_rows(data, policy, METHODS, [K]), {"k": K}
    )


def figure_15(size: Size) -> Result:
    return census_result(size, paper_records(size), partial(_by_dimensions, many_dimensions(size)), {"k": K})


def _by_dimensions(many_d: Sequence[int], data: pa.Table, policy: Policy) -> Iterator[Row]:
    for d in many_d:
        for row in anonymous_rows(data, first_columns(policy, d), METHODS, [K]):
            yield {"d": d, **row}


def draw_12(result: Result) -> Mapping[str, Picture]:
    rows = result.tables[RUNS]
    return {
        "a": mean_curves(
            result, rows, x="k", y="gcp", y_title="GCP", title="Fig. 12 (a): information loss on Adult", names=NAMES
        ),
        "b": mean_curves(
            result,
            rows,
            x="k",
            y=DM,
            y_title="discernibility (DM)",
            y_scale="log",
            title="Fig. 12 (b): discernibility on Adult",
            names=NAMES,
        ),
    }


FORMS = {"Mondrian": (PUBLISHED, ORDERED, MONDRIAN), "TopDown": (LOWER_NCP, TOPDOWN)}
"""The baselines, each as it is read, and our own form last."""


def _below_baselines(methods: Sequence[str], x: str, where: str) -> Iterator[Claim]:
    """Yield the claim that a method loses less than a baseline, for every form of the baseline."""
    for method in methods:
        for name, forms in FORMS.items():
            for form in forms:
                yield lower_loss((method,), (form,), x, f"{NAMES[method]} loses less than {name} {where}")


def _order_of_magnitude(method: str) -> Claim:
    def judge(result: Result) -> Judgement:
        found = means(lines(result.tables[RUNS], "k", DM))
        ratios = {k: found[method][k] / found[HILBERT][k] for k in found[HILBERT]}
        cases = {f"k = {k}": ratio >= 5 for k, ratio in ratios.items()}
        return in_every_case(cases, f"DM of Mondrian is {ranges({'': ratios}, ['']).strip()} times that of Hilb")

    return Claim(
        "DM of Mondrian is an order of magnitude worse (read as: at least 5 times that of Hilb)",
        readings(method),
        judge,
    )


def _more_ahead(other: str) -> Callable[[Result], Judgement]:
    """Judge that the factor between Hilb and another method is larger at the largest d than at the smallest above 1."""

    def judge(result: Result) -> Judgement:
        found = means(lines(result.tables[RUNS], "d", "gcp"))
        factors = {d: found[other][d] / found[HILBERT][d] for d in found[HILBERT] if d > 1 and found[HILBERT][d] > 0}
        first, last = factors[min(factors)], factors[max(factors)]
        text = f"{number(first)} times Hilb at d = {min(factors)}, {number(last)} times at d = {max(factors)}"
        return in_every_case({"d": last > max(first, 1.0)}, text)

    return judge


def _near_zero(result: Result) -> Judgement:
    found = means(lines(result.tables[RUNS], "d", "gcp"))
    cases = {NAMES[method]: found[method][1] <= 0.01 for method in (HILBERT, IDISTANCE)}
    return in_every_case(cases, "; ".join(f"{NAMES[one]} {number(found[one][1])}" for one in (HILBERT, IDISTANCE)))


FIGURE_12 = Figure(
    paper=KEY,
    number="12",
    title="Adult, by k",
    published="Adult, 30,162 records, 8 quasi-identifiers, of which 2 are numbers; k from 5 to 50.",
    run=figure_12,
    draw=draw_12,
    claims=(
        *_below_baselines((HILBERT, IDISTANCE), "k", "on Adult"),
        _order_of_magnitude(PUBLISHED),
        _order_of_magnitude(ORDERED),
        _order_of_magnitude(MONDRIAN),
        close(
            HILBERT,
            IDISTANCE,
            "k",
            DM,
            1.25,
            "Hilb and iDist behave alike by DM (read as: within a quarter)",
            "none",
        ),
        close(
            HILBERT,
            LOWER_NCP,
            "k",
            DM,
            1.25,
            "Hilb and TopDown behave alike by DM (read as: within a quarter)",
            readings(LOWER_NCP),
        ),
    ),
    remarks=("The paper does not name its eight attributes. With two numbers, these fit: " + ", ".join(ADULT) + ".",),
)
FIGURE_13 = Figure(
    paper=KEY,
    number="13",
    title="census, by k",
    published="200,000 records of a census, 7 quasi-identifiers; k from 10 to 100.",
    run=figure_13,
    draw=draw_by("13", "k", "k", "k"),
    claims=(
        *_below_baselines((HILBERT, IDISTANCE), "k", "at every k"),
        *_below_baselines((HILBERT_FAST,), "k", "at every k"),
        lower_loss((HILBERT,), (HILBERT_FAST,), "k", "HilbFast loses more than Hilb"),
        close(
            IDISTANCE_FAST,
            LOWER_NCP,
            "k",
            "gcp",
            1.15,
            "iDistFast loses about as much as TopDown (read as: within 15%)",
            readings(LOWER_NCP),
        ),
        quicker((PUBLISHED,), (HILBERT, IDISTANCE), "k", "Mondrian is faster than Hilb and iDist"),
        quicker((HILBERT,), (IDISTANCE,), "k", "iDist is slower than Hilb, due to its reference points"),
        close(
            HILBERT_FAST,
            PUBLISHED,
            "k",
            "cpu seconds",
            2.0,
            "HilbFast takes the same time as Mondrian (read as: within a factor of 2)",
            readings(PUBLISHED),
        ),
        quicker(
            (HILBERT,),
            (LOWER_NCP,),
            "k",
            "TopDown takes far longer than Hilb: two hours (read as: more than 10 times as long)",
            0.1,
        ),
        quicker(
            (HILBERT,),
            (TOPDOWN,),
            "k",
            "TopDown takes far longer than Hilb: two hours (read as: more than 10 times as long)",
            0.1,
        ),
    ),
)
FIGURE_14 = Figure(
    paper=KEY,
    number="14",
    title="census, by the number of records",
    published="50,000 to 400,000 records of a census, 7 quasi-identifiers; k = 50.",
    run=figure_14,
    draw=draw_by("14", "records", "the number of records", "records"),
    claims=(
        Claim("All methods lose less when there are more records", "all", falls(METHODS, "records")),
        *_below_baselines((HILBERT, IDISTANCE), "records", "at every size"),
        Claim(
            "Time grows about linearly with the records (read as: at most 12 times for 8 times the records)",
            "none",
            grows_at_most((HILBERT, HILBERT_FAST, IDISTANCE, IDISTANCE_FAST), "records", 12.0),
        ),
    ),
)
FIGURE_15 = Figure(
    paper=KEY,
    number="15",
    title="census, by the number of quasi-identifiers",
    published="200,000 records of a census, the first 1 to 7 quasi-identifiers; k = 50.",
    run=figure_15,
    draw=draw_by("15", "d", "quasi-identifiers", "quasi-identifiers (d)"),
    claims=(
        Claim(
            "With one attribute, Hilb and iDist lose about nothing (read as: a GCP of at most 1%)", "none", _near_zero
        ),
        *_below_baselines((HILBERT, IDISTANCE), "d", "at every d"),
        Claim(
            "The more attributes, the larger the factor by which Hilb is ahead of Mondrian",
            readings(PUBLISHED),
            _more_ahead(PUBLISHED),
        ),
        Claim(
            "The more attributes, the larger the factor by which Hilb is ahead of TopDown",
            readings(LOWER_NCP),
            _more_ahead(LOWER_NCP),
        ),
        Claim(
            "Attributes affect the time only slightly (read as: at most 3 times from 1 to 7)",
            "none",
            grows_at_most((HILBERT, IDISTANCE), "d", 3.0),
        ),
    ),
    remarks=("Equal records are one record with a weight here, so few attributes leave little to do.",),
)
FIGURES: Sequence[Figure] = (FIGURE_12, FIGURE_13, FIGURE_14, FIGURE_15)
