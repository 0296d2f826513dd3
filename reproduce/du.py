"""Du, Xia, Tao, Zhang, Zhu 2007: nearest-neighbour groups beside lower bounds on MAXSIZE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from benchmarks.tables import complete_records
from reproduce.figure import OURS, Claim, Figure, Judgement, Paper, Result, Row, Size, beside_paper
from reproduce.judging import in_every_case, number
from reproduce.runs import Bench
from sfumato.bounds.object_boxes import object_box_bound
from sfumato.methods.clustering.nearest_neighbour_groups import perimeter_bounds
from sfumato.pictures.curves import curves
from sfumato.pictures.picture import Picture
from sfumato.policy import merge_flags

KEY = "du"
COLUMNS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss")
K, D = 10, 5
SEED = 0
NNG, OBJECT, REACH, BOX = "nng", "rectangle of each record", "farthest neighbour", "smallest rectangle"
PANELS = {
    "a": ("cardinality", "records", "records"),
    "b": ("anonymity", "k", "k"),
    "c": ("dimensionality", "d", "numeric attributes"),
}


def figure_1(size: Size) -> Result:
    table = size.tables.real("adult-raw")
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS])
    data = complete_records(table.path).select(COLUMNS).cast(schema)
    shuffled = data.take(np.random.default_rng(SEED).permutation(len(data)))
    many_records = size.of(
        tenth=(1_000, 2_000),
        quick=(5_000, 10_000, 20_000, 30_162),
        full=(5_000, 10_000, 15_000, 20_000, 25_000, 30_162),
    )
    many_k = size.of(tenth=(5, 10), quick=(5, 10, 25, 50), full=(5, 10, 25, 50, 100))
    many_d = size.of(tenth=(2, 3), quick=(2, 3, 4, 5), full=(2, 3, 4, 5))
    most = many_records[-1]
    return Result(
        sizes=f"Adult, up to {beside_paper(most, len(data))}",
        tables={
            "cardinality": [_row(shuffled.slice(0, records), K, D) for records in many_records],
            "anonymity": _rows_of_k(shuffled.slice(0, most), many_k),
            "dimensionality": [_row(shuffled.slice(0, most), K, d) for d in many_d],
        },
        settings={"columns": COLUMNS, "k": K, "d": D, "seed of the samples": SEED},
    )


def _row(data: pa.Table, k: int, d: int) -> Row:
    return _measured(_bench(data, d), k, d)


def _rows_of_k(data: pa.Table, many_k: Sequence[int]) -> list[Row]:
    bench = _bench(data, D)
    return [_measured(bench, k, D) for k in many_k]


def _bench(data: pa.Table, d: int) -> Bench:
    columns = COLUMNS[:d]
    types = dict.fromkeys(columns, "numeric")
    return Bench(data.select(columns), merge_flags(quasi_identifiers=columns, type=types, other="drop", k=1))


def _measured(bench: Bench, k: int, d: int) -> Row:
    measured = bench.row(NNG, k=k)
    bounds = perimeter_bounds(bench.table.records, k)
    return {
        "records": bench.records,
        "k": k,
        "d": d,
        "classes": measured["classes"],
        "cpu seconds": measured["cpu seconds"],
        NNG: measured["max_size"],
        OBJECT: object_box_bound(bench.table.records, k),
        REACH: bounds.reach,
        # The smallest rectangle of k records lies between two figures; this is the one that was found.
        BOX: bounds.smallest_box[1],
    }


def draw_1(result: Result) -> Mapping[str, Picture]:
    return {
        panel: curves(
            [
                {x: row[x], "series": series, "MAXSIZE": row[series]}
                for series in (NNG, OBJECT, REACH, BOX)
                for row in result.tables[table]
            ],
            x=x,
            y="MAXSIZE",
            series="series",
            title=f"Fig. 1 ({panel}): MAXSIZE by {table}",
            subtitle=result.sizes,
            x_title=title,
        )
        for panel, (table, x, title) in PANELS.items()
    }


def _ratios(result: Result, bound: str) -> Mapping[str, float]:
    return {
        f"{x} = {row[x]:,}": row[NNG] / row[bound] if row[bound] > 0 else float("inf")
        for table, x, _ in PANELS.values()
        for row in result.tables[table]
    }


def _about_one_and_a_half(bound: str) -> Claim:
    def judge(result: Result) -> Judgement:
        ratios = _ratios(result, bound)
        found = f"ratio {number(min(ratios.values()))} to {number(max(ratios.values()))}"
        return in_every_case({case: 1.0 <= ratio <= 2.0 for case, ratio in ratios.items()}, found)

    readings = {
        OBJECT: "the paper's bound for each record: the largest of the smallest rectangles of k records around one",
        REACH: f"{OURS}bound: the farthest (k - 1)th neighbour of any record",
        BOX: "the paper's bound for the whole table: the smallest rectangle of k records",
    }
    return Claim("MAXSIZE of NNG is about 1.5 times the lower bound (read as: less than twice)", readings[bound], judge)


def _guaranteed(result: Result) -> Judgement:
    cases = {
        f"{x} = {row[x]:,}": row[NNG] <= 6 * row["d"] * row[OBJECT]
        for table, x, _ in PANELS.values()
        for row in result.tables[table]
    }
    return in_every_case(cases, f"at most {number(max(_ratios(result, OBJECT).values()))} times the bound")


FIGURE_1 = Figure(
    paper=KEY,
    number="1",
    title="quality of NNG",
    published="Adult, 30,162 records, up to 5 numeric attributes scaled to [0, 1]; k is not stated.",
    run=figure_1,
    draw=draw_1,
    claims=(
        _about_one_and_a_half(OBJECT),
        _about_one_and_a_half(REACH),
        _about_one_and_a_half(BOX),
        Claim("MAXSIZE is at most 6d times the least possible (theorem 3)", "the bound for each record", _guaranteed),
    ),
    remarks=(f"Where a parameter is not varied, k = {K} and d = {D}. Smaller cardinalities are random samples.",),
)
PAPER = Paper(
    KEY,
    "Du, Xia, Tao, Zhang, Zhu 2007: On Multidimensional k-Anonymity with Local Recoding Generalization",
    (FIGURE_1,),
)
