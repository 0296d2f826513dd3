"""Figures 16 to 19: l-diversity by l, records, quasi-identifiers and sensitive values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

import pyarrow as pa

from benchmarks.diversity import merged_values
from reproduce.figure import Claim, Figure, Judgement, Result, Row, Size
from reproduce.ghinita.census import (
    ELIGIBLE_TREE,
    HILBERT,
    IDISTANCE,
    KEY,
    MONDRIAN,
    NAMES,
    ORDERED,
    PUBLISHED,
    RUNS,
    census_result,
    diverse_rows,
    first_columns,
    many_dimensions,
    paper_records,
    readings,
    varied_records,
)
from reproduce.ghinita.claims import close, draw_by, falls, grows_at_most, lower_loss, quicker
from reproduce.judging import in_every_case, number
from reproduce.lines import lines, means
from sfumato import Policy

METHODS = (HILBERT, IDISTANCE, PUBLISHED, ORDERED, MONDRIAN, ELIGIBLE_TREE)
L = 5


def figure_16(size: Size) -> Result:
    many_l = size.of(tenth=(2, 5), quick=(2, 4, 6, 8, 10, 13), full=range(2, 14))
    return census_result(
        size,
        paper_records(size),
        lambda data, policy: diverse_rows(data, policy, METHODS, many_l),
        {"l": list(many_l)},
    )


def figure_17(size: Size) -> Result:
    return census_result(
        size, varied_records(size), lambda data, policy: diverse_rows(data, policy, METHODS, [L]), {"l": L}
    )


def figure_18(size: Size) -> Result:
    return census_result(size, paper_records(size), partial(_by_dimensions, many_dimensions(size)), {"l": L})


def figure_19(size: Size) -> Result:
    many_m = size.of(tenth=(25, 50), quick=(10, 20, 30, 40, 50), full=(10, 15, 20, 25, 30, 35, 40, 45, 50))
    return census_result(size, paper_records(size), partial(_by_values, many_m), {"l": L})


def _by_dimensions(many_d: Sequence[int], data: pa.Table, policy: Policy) -> Iterator[Row]:
    for d in many_d:
        for row in diverse_rows(data, first_columns(policy, d), METHODS, [L]):
            yield {"d": d, **row}


def _by_values(many_m: Sequence[int], data: pa.Table, policy: Policy) -> Iterator[Row]:
    for m in many_m:
        for row in diverse_rows(merged_values(data, m), policy, METHODS, [L]):
            yield {"m": m, **row}


def _worse_with_attributes(method: str) -> Callable[[Result], Judgement]:
    """Judge that the factor from one attribute more is larger for Mondrian than for Hilb."""

    def judge(result: Result) -> Judgement:
        found = means(lines(result.tables[RUNS], "d", "gcp"))
        rises = {name: found[name][max(found[name])] - found[name][min(found[name])] for name in (method, HILBERT)}
        text = "; ".join(f"{NAMES[name]} rises by {number(rise)}" for name, rise in rises.items())
        return in_every_case({"d": rises[method] > 2 * rises[HILBERT]}, text)

    return judge


def _not_monotonic(method: str, x: str) -> Callable[[Result], Judgement]:
    """Judge that the loss of Mondrian does not rise steadily with l, or fall steadily with the records."""

    def judge(result: Result) -> Judgement:
        line = means(lines(result.tables[RUNS], x, "gcp"))[method]
        values = [line[at] for at in sorted(line)]
        steps = [after - before for before, after in pairwise(values)]
        turns = sum(first * second < 0 for first, second in pairwise(steps))
        return in_every_case({x: turns > 0}, f"the line of {NAMES[method]} turns {turns} times")

    return judge


def _below_mondrian(methods: Sequence[str], x: str, where: str) -> Iterator[Claim]:
    """Yield the claim that a method loses less than l-diverse Mondrian, for every form of it."""
    for method in methods:
        for form in (PUBLISHED, ORDERED, MONDRIAN):
            yield lower_loss((method,), (form,), x, f"{NAMES[method]} loses less than l-diverse Mondrian {where}")


def _as_fast(x: str) -> Claim:
    return close(
        HILBERT,
        PUBLISHED,
        x,
        "cpu seconds",
        2.0,
        "Hilb takes about the time of Mondrian (read as: within a factor of 2)",
        readings(PUBLISHED),
    )


FIGURE_16 = Figure(
    paper=KEY,
    number="16",
    title="census with l-diversity, by l",
    published="200,000 records of a census, 7 quasi-identifiers, Occupation with 50 values; l from 2 to 13.",
    run=figure_16,
    draw=draw_by("16", "l", "l", "l"),
    claims=(
        *_below_mondrian((HILBERT, IDISTANCE), "l", "at every l"),
        lower_loss((HILBERT,), (IDISTANCE,), "l", "Hilb loses least, followed closely by iDist"),
        lower_loss((ELIGIBLE_TREE,), (HILBERT,), "l", "not in the paper: our `eligible-tree` loses less than Hilb"),
        _as_fast("l"),
        quicker((HILBERT,), (IDISTANCE,), "l", "iDist is slower than Hilb, due to its mapping"),
    ),
)
FIGURE_17 = Figure(
    paper=KEY,
    number="17",
    title="census with l-diversity, by the number of records",
    published="50,000 to 400,000 records of a census, 7 quasi-identifiers; l = 5.",
    run=figure_17,
    draw=draw_by("17", "records", "the number of records", "records"),
    claims=(
        Claim("Hilb and iDist lose less when there are more records", "none", falls((HILBERT, IDISTANCE), "records")),
        *_below_mondrian((HILBERT,), "records", "at every size (the paper: far less)"),
        _as_fast("records"),
        Claim(
            "The loss of Mondrian may rise and fall with the records",
            readings(PUBLISHED),
            _not_monotonic(PUBLISHED, "records"),
        ),
    ),
)
FIGURE_18 = Figure(
    paper=KEY,
    number="18",
    title="census with l-diversity, by the number of quasi-identifiers",
    published="200,000 records of a census, the first 1 to 7 quasi-identifiers; l = 5.",
    run=figure_18,
    draw=draw_by("18", "d", "quasi-identifiers", "quasi-identifiers (d)"),
    claims=(
        *_below_mondrian((HILBERT, IDISTANCE), "d", "at every d (the paper: clearly less)"),
        Claim(
            "Mondrian deteriorates sharply with more attributes (read as: it rises twice as much as Hilb)",
            readings(PUBLISHED),
            _worse_with_attributes(PUBLISHED),
        ),
        Claim(
            "Attributes hardly affect the time (read as: at most twice from 1 to 7)",
            "none",
            grows_at_most((HILBERT, IDISTANCE), "d", 2.0),
        ),
    ),
    remarks=("Equal records are one record with a weight here, so few attributes leave little to do.",),
)
FIGURE_19 = Figure(
    paper=KEY,
    number="19",
    title="census with l-diversity, by the number of sensitive values",
    published="200,000 records of a census, 7 quasi-identifiers; successive values of Occupation merged into m; l = 5.",
    run=figure_19,
    draw=draw_by("19", "m", "sensitive values", "sensitive values (m)"),
    claims=(
        Claim(
            "All methods lose less when there are more sensitive values",
            readings(PUBLISHED, ORDERED),
            falls((HILBERT, IDISTANCE, PUBLISHED, ORDERED), "m"),
        ),
        Claim(
            "The number of values does not affect the time (read as: at most 1.5 times)",
            "none",
            grows_at_most((HILBERT, IDISTANCE), "m", 1.5),
        ),
    ),
)
FIGURES: Sequence[Figure] = (FIGURE_16, FIGURE_17, FIGURE_18, FIGURE_19)
