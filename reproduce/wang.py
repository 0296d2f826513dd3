"""Wang, Xu, Sun 2011: partitions by mapping and divide-and-conquer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato
from benchmarks.tables import without_columns
from reproduce.figure import Claim, Figure, Judgement, Paper, Result, Row, Size, beside_paper
from reproduce.judging import Case, below, in_every_case, is_less, larger, number
from reproduce.lines import lines, mean, mean_curves
from reproduce.runs import Bench, quiet
from sfumato import Policy
from sfumato.pictures.picture import Picture, side_by_side
from sfumato.policy import InputOptions, merge_flags
from sfumato.synthetic import Normal
from sfumato.tables.sources.source import open_source

KEY = "wang"
MEDIAN, CLOSE_K, SINGLE, MONDRIAN = "mapping-median", "close-k", "single-dimensional", "mondrian:ordered"
MIDDLE_VALUE = "mapping-median:values"
METHODS = (MEDIAN, CLOSE_K, SINGLE, MONDRIAN)
BOTH_READINGS = (*METHODS, MIDDLE_VALUE)
NAMES: Mapping[str, str] = {
    MEDIAN: "median",
    CLOSE_K: "close-k",
    SINGLE: "single-dimensional",
    MONDRIAN: "Mondrian",
    MIDDLE_VALUE: "median of the values",
}
POINTS, LATTICE, POINTS_K = 100, 20, 3
WHOLE_AXIS = f"[0..{LATTICE - 1}]"
PRINTED = {MEDIAN: (27, 390), CLOSE_K: (30, 340), SINGLE: (24, 434), MONDRIAN: (25, 430)}
"""The classes and C_DM that the paper prints."""
NORMAL_RECORDS, NORMAL_D, NORMAL_K = 10_000, 6, 10
ADULT = ("age", "sex", "education", "native-country", "salary-class", "occupation")
MEASURES = {"c_dm": "C_DM", "c_avg": "C_AVG", "c_mdm": "C_MDM"}
BY_K, BY_D = "by k", "by d"
MONDRIAN_READ = "`mondrian:ordered`"


def figure_4_7(size: Size) -> Result:
    trials = size.of(tenth=3, quick=50, full=500)
    runs: list[Row] = []
    released: list[Row] = []
    for seed in range(trials):
        points = _points(seed)
        for method in METHODS:
            with quiet():
                release = sfumato.anonymize(
                    points, quasi_identifiers=["x", "y"], k=POINTS_K, method=method, other="drop"
                )
            summary = release.summary()
            runs.append({"seed": seed, "method": method, "classes": summary["groups"], "c_dm": summary["c_dm_groups"]})
            if seed == 0:
                released += [{"method": method, **row} for row in release.data.to_pylist()]
    return Result(
        f"{POINTS} points, as in the paper; {trials} random tables instead of one",
        {"runs": runs, "released": released},
        {"k": POINTS_K, "lattice": LATTICE, "drawn seed": 0},
    )


def _points(seed: int) -> pa.Table:
    """Return points that lie on different places of a lattice."""
    places = np.random.default_rng(seed).choice(LATTICE * LATTICE, POINTS, replace=False)
    return pa.table({"x": places % LATTICE, "y": places // LATTICE})


def draw_4_7(result: Result) -> Mapping[str, Picture]:
    panels = []
    for figure, method in enumerate(METHODS, 4):
        rows = [row for row in result.tables["released"] if row["method"] == method]
        # The paper draws a class over the whole axis as a rectangle of that size.
        release = pa.table({name: [row[name].replace("*", WHOLE_AXIS) for row in rows] for name in ("x", "y")})
        panels.append(sfumato.plot(release, x="x", y="y", title=f"Fig. {figure}: {NAMES[method]}"))
    printed = "; ".join(f"{picture.title}" for picture in panels)
    return {"": side_by_side(panels, title=result.sizes, description=printed, columns=2)}


def figure_8(size: Size) -> Result:
    records = size.of(tenth=1_000, quick=NORMAL_RECORDS, full=NORMAL_RECORDS)
    seeds = range(size.of(tenth=1, quick=5, full=10))
    many_k = size.of(tenth=(5, 10), quick=(5, 10, 20, 30, 40, 50), full=tuple(range(5, 101, 5)))
    many_d = size.of(tenth=(2, 6), quick=range(2, 9), full=range(2, 13))
    by_k, by_d = [], []
    for seed in seeds:
        bench = _normal(size, records, NORMAL_D, seed)
        by_k += [{"seed": seed, **bench.row(method, k=k)} for method in BOTH_READINGS for k in many_k]
        for d in many_d:
            bench = _normal(size, records, d, seed)
            by_d += [{"seed": seed, "d": d, **bench.row(method, k=NORMAL_K)} for method in BOTH_READINGS]
    return Result(
        f"{beside_paper(records, NORMAL_RECORDS)}; {len(seeds)} table{'s' if len(seeds) > 1 else ''}",
        {BY_K: _measures(by_k), BY_D: _measures(by_d)},
        {"k": NORMAL_K, "d": NORMAL_D, "mean": Normal.mean, "deviation": Normal.deviation},
    )


def _normal(size: Size, records: int, d: int, seed: int) -> Bench:
    path, policy = size.tables.generated(Normal.name, Normal.version, records, seed=seed, dimensions=d)
    return Bench(pq.read_table(path), merge_flags(Policy.load(policy), k=1))


def figure_9(size: Size) -> Result:
    table = size.tables.real("adult")
    source = open_source(table.path, InputOptions())
    data = pa.Table.from_batches(list(source.batches(source.names))).select(ADULT)
    records = size.of(tenth=1_000, quick=len(data), full=len(data))
    many_k = size.of(tenth=(5, 10), quick=(5, 10, 25, 50, 100), full=(2, 5, 10, 15, 20, 25, 30, 40, 50, 75, 100))
    bench = Bench(data.slice(0, records), merge_flags(_adult_policy(table.policy), k=1))
    rows = [bench.row(method, k=k) for method in BOTH_READINGS for k in many_k]
    sizes = f"Adult, {beside_paper(records, len(data))}"
    return Result(sizes, {BY_K: _measures(rows)}, {"columns": ADULT})


def _adult_policy(policy: Policy) -> Policy:
    """Return the policy with the paper's six attributes as quasi-identifiers. Occupation is one of them here."""
    contents = without_columns(policy, set(policy.columns) - set(ADULT)).to_dict()
    contents["columns"]["occupation"]["role"] = "quasi-identifier"
    return Policy.from_dict(contents, policy.base)


def _measures(rows: Sequence[Row]) -> list[Row]:
    """Return the measures of the paper (eq. 12 to 14), which count the groups that a method forms."""
    found = []
    for row in rows:
        records, k, groups, squares = row["records"], row["k"], row["groups"], row["c_dm_groups"]
        measures = {
            "c_dm": squares,
            "c_avg": records / groups / k,
            "c_mdm": squares - 2 * k * records + k * k * groups,  # the sum of (size - k) squared
        }
        kept = {name: row[name] for name in ("seed", "method", "k", "d", "groups", "classes") if name in row}
        found.append(kept | measures)
    return found


def _draw(figure: str, result: Result, tables: Sequence[tuple[str, str]]) -> Mapping[str, Picture]:
    panels = [(measure, table, x) for measure in MEASURES for table, x in tables]
    return {
        panel: mean_curves(
            result,
            result.tables[table],
            x=x,
            y=measure,
            y_title=MEASURES[measure],
            title=f"Fig. {figure} ({panel}): {MEASURES[measure]} {table}",
            x_title="attributes (d)" if x == "d" else x,
            y_scale="log",
            names=NAMES,
        )
        for panel, (measure, table, x) in zip("abcdef", panels, strict=False)
    }


def draw_8(result: Result) -> Mapping[str, Picture]:
    return _draw("8", result, ((BY_K, "k"), (BY_D, "d")))


def draw_9(result: Result) -> Mapping[str, Picture]:
    return _draw("9", result, ((BY_K, "k"),))


def _pair(first: str, second: str, measure: str) -> Claim:
    """Claim the order of two methods that the printed figures have, over all tables."""
    index = ("classes", "c_dm").index(measure)
    printed = [PRINTED[method][index] for method in (first, second)]

    def judge(result: Result) -> Judgement:
        trials = [
            [row[measure] for row in result.tables["runs"] if row["method"] == method] for method in (first, second)
        ]
        return larger(trials[0], trials[1], (NAMES[first], NAMES[second]))

    words = {"classes": "classes", "c_dm": "C_DM"}[measure]
    text = f"{words}: {NAMES[first]} has more than {NAMES[second]} ({printed[0]} and {printed[1]})"
    return Claim(text, MONDRIAN_READ if MONDRIAN in (first, second) else "none", judge)


def _lowest(table: str, x: str, measure: str, ours: Sequence[str], others: Sequence[str], text: str) -> Claim:
    def judge(result: Result) -> Judgement:
        return below(result.tables[table], ours, others, x=x, y=measure, names=NAMES)

    return Claim(text, MONDRIAN_READ if MONDRIAN in others else "`single-dimensional`", judge)


def _from_first_to_last(table: str, x: str, measures: Sequence[str], *, rising: bool) -> Callable[[Result], Judgement]:
    """Judge that the measures of all methods rise, or fall, from the smallest x to the largest."""

    def judge(result: Result) -> Judgement:
        cases: dict[str, Case] = {}
        texts = []
        for measure in measures:
            found = lines(result.tables[table], x, measure)
            for method, line in ((method, found[method]) for method in METHODS):
                first, last = line[min(line)], line[max(line)]
                cases[f"{MEASURES[measure]} of {NAMES[method]}"] = is_less(
                    *((first, last) if rising else (last, first))
                )
                texts.append(f"{MEASURES[measure]} of {NAMES[method]} {number(mean(last) / mean(first))}")
        return in_every_case(cases, f"last to first: {'; '.join(texts)}")

    return judge


def _falls_faster(result: Result) -> Judgement:
    found = lines(result.tables[BY_D], "d", "c_dm")
    shares = {
        method: mean(found[method][max(found[method])]) / mean(found[method][min(found[method])]) for method in METHODS
    }
    cases: dict[str, Case] = {NAMES[method]: shares[method] < shares[SINGLE] for method in (MEDIAN, CLOSE_K)}
    text = "; ".join(f"{NAMES[method]} to {number(share)} of the first" for method, share in shares.items())
    return in_every_case(cases, text)


FIGURE_4_7 = Figure(
    paper=KEY,
    number="4-7",
    title="partitions of 100 points",
    published="100 evenly spread points in two dimensions, which are not given; k = 3.",
    run=figure_4_7,
    draw=draw_4_7,
    claims=(
        _pair(CLOSE_K, MEDIAN, "classes"),
        _pair(MEDIAN, MONDRIAN, "classes"),
        _pair(MONDRIAN, SINGLE, "classes"),
        _pair(MEDIAN, CLOSE_K, "c_dm"),
        _pair(MONDRIAN, MEDIAN, "c_dm"),
        _pair(SINGLE, MONDRIAN, "c_dm"),
    ),
    remarks=(
        f"The points lie on different places of a lattice of {LATTICE} by {LATTICE}, chosen at random by seed. The "
        "pictures show the first table; boxes are the smallest around the records of a class.",
    ),
)
FIGURE_8 = Figure(
    paper=KEY,
    number="8",
    title="discretely normal records, by k and by attributes",
    published="10,000 records; 6 attributes where k varies, k = 10 where attributes vary. Neither range is stated.",
    run=figure_8,
    draw=draw_8,
    claims=(
        Claim(
            "8 (a), (e): C_DM and C_MDM grow with k",
            MONDRIAN_READ,
            _from_first_to_last(BY_K, "k", ("c_dm", "c_mdm"), rising=True),
        ),
        _lowest(BY_K, "k", "c_dm", (CLOSE_K,), (MEDIAN, SINGLE, MONDRIAN), "8 (a): close-k has the smallest C_DM"),
        Claim(
            "8 (b), (f): C_DM and C_MDM fall with more attributes",
            MONDRIAN_READ,
            _from_first_to_last(BY_D, "d", ("c_dm", "c_mdm"), rising=False),
        ),
        Claim(
            "8 (b): with more attributes, C_DM of the mapping falls faster than that of the single-dimensional method",
            "`single-dimensional`",
            _falls_faster,
        ),
        _lowest(BY_K, "k", "c_avg", (CLOSE_K,), (MEDIAN, SINGLE, MONDRIAN), "8 (c): C_AVG of close-k is nearest to 1"),
        _lowest(BY_D, "d", "c_avg", (CLOSE_K,), (MEDIAN, SINGLE, MONDRIAN), "8 (d): C_AVG of close-k is nearest to 1"),
    ),
)
FIGURE_9 = Figure(
    paper=KEY,
    number="9",
    title="Adult, by k",
    published=f"Adult, 30,162 records, 6 attributes as points: {', '.join(ADULT)}.",
    run=figure_9,
    draw=draw_9,
    claims=(
        _lowest(BY_K, "k", "c_dm", (MEDIAN, CLOSE_K), (SINGLE,), "The mapping is better than the single-dimensional"),
        _lowest(BY_K, "k", "c_dm", (MEDIAN, CLOSE_K), (MONDRIAN,), "The mapping is as good as Mondrian or better"),
        _lowest(BY_K, "k", "c_dm", (CLOSE_K,), (MEDIAN,), "close-k has a smaller C_DM than median"),
    ),
)
PAPER = Paper(
    KEY,
    "Wang, Xu, Sun 2011: Multi-dimensional K-anonymity based on Mapping for Protecting Privacy",
    (FIGURE_4_7, FIGURE_8, FIGURE_9),
    remarks=(
        "All measures count the groups that a method forms, as the paper does; groups that show the same are one class "
        "of a release. The median of eq. 7 can be read as that of the records or as that of the values that occur: the "
        "claims speak of the first, and figures 8 and 9 show the second too.",
    ),
)
