"""Fig. 24: how many splits of Rothko-S are undone, with hypothesis tests and without, by the size of the sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from reproduce.figure import Claim, Figure, Judgement, Result, Row, Size
from reproduce.judging import in_every_case
from reproduce.lefevre.rothko_runs import by_sample, coded, drawn, policy_for
from sfumato.pictures.number_table import TableCell, number_table
from sfumato.pictures.picture import Picture

RECORDS = 100_000
HEIGHT = 8  # of a tree, before the data are divided
SAMPLES = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000)
SEED = 0
TITLES = {
    "k": "k-anonymity",
    "l": "Recursive l-diversity of the zipcode, c = 1",
    "v": "Variance diversity of a uniform salary",
    "v, normal": "Variance diversity of a normal salary",
}
VALUES: Mapping[str, Sequence[float]] = {
    "k": (10, 100, 1_000, 10_000),
    "l": (2, 4, 6, 8),
    "v": (1.1e9, 1.2e9, 1.3e9),
    "v, normal": (7e7, 8e7, 9e7),
}
PUBLISHED: Mapping[str, Mapping[int, Sequence[str]]] = {
    "k": {
        100: ("68 (1384)", "x (x)", "x (x)", "x (x)"),
        250: ("30 (1110)", "7 (97)", "x (x)", "x (x)"),
        500: ("11 (419)", "12 (55)", "x (x)", "x (x)"),
        1_000: ("0 (0)", "5 (6)", "x (x)", "x (x)"),
        2_500: ("0 (0)", "2 (1)", "1 (3)", "x (x)"),
        5_000: ("0 (0)", "0 (0)", "1 (4)", "x (x)"),
        10_000: ("0 (0)", "0 (0)", "0 (0)", "x (x)"),
        25_000: ("0 (0)", "0 (0)", "0 (0)", "0 (0)"),
    },
    "l": {
        100: ("97 (631)", "x (x)", "x (x)", "x (x)"),
        250: ("65 (87)", "x (x)", "8 (67)", "x (x)"),
        500: ("2 (763)", "x (111)", "2 (32)", "x (x)"),
        1_000: ("112 (91)", "1 (170)", "1 (33)", "x (16)"),
        2_500: ("0 (0)", "0 (2)", "1 (0)", "0 (2)"),
        5_000: ("0 (0)", "0 (2)", "0 (0)", "0 (9)"),
        10_000: ("0 (0)", "0 (1)", "0 (0)", "0 (0)"),
        25_000: ("0 (0)", "0 (1)", "0 (0)", "0 (0)"),
    },
    "v": {
        100: ("x (x)", "x (x)", "x (x)"),
        250: ("x (510)", "x (x)", "x (x)"),
        500: ("x (443)", "x (434)", "x (x)"),
        1_000: ("0 (456)", "x (372)", "x (x)"),
        2_500: ("0 (0)", "0 (87)", "x (146)"),
        5_000: ("0 (0)", "0 (0)", "0 (47)"),
        10_000: ("0 (0)", "0 (0)", "0 (5)"),
        25_000: ("0 (0)", "0 (2)", "0 (7)"),
    },
    "v, normal": {
        100: ("x (x)", "x (x)", "x (x)"),
        250: ("x (396)", "x (x)", "x (x)"),
        500: ("x (599)", "x (457)", "x (x)"),
        1_000: ("0 (402)", "0 (405)", "x (278)"),
        2_500: ("0 (18)", "0 (66)", "x (169)"),
        5_000: ("0 (0)", "0 (0)", "0 (6)"),
        10_000: ("0 (0)", "0 (0)", "0 (13)"),
        25_000: ("0 (0)", "0 (0)", "0 (17)"),
    },
}


def run(size: Size) -> Result:
    records = size.of(tenth=1_000, quick=20_000, full=RECORDS)
    samples = size.of(tenth=SAMPLES[1:3], quick=SAMPLES, full=SAMPLES)
    uniform, normal = drawn(records, SEED), drawn(records, SEED, salary="normal")
    tables = {}
    for name, values in VALUES.items():
        data = normal if name == "v, normal" else uniform
        shown = size.of(tenth=values[:1], quick=values, full=values)
        tables[name] = [row for value in shown for row in _rows(data, name, value, samples)]
    return Result(
        sizes=f"{records:,} of the paper's {RECORDS:,} records",
        tables=tables,
        settings={"height": HEIGHT, "seed": SEED},
    )


def _rows(data: pa.Table, name: str, value: float, samples: Sequence[int]) -> list[Row]:
    rows = []
    with coded(data, policy_for(data, **_asked(name, value))) as packed:
        for n in samples:
            row: Row = {"value": value, "n": n}
            for column, tests in (("tests", True), ("naive", False)):
                # Everything that is larger than the sample is divided on a sample, to the paper's height.
                done = by_sample(packed, n, n, tests=tests, enough=0, height=HEIGHT)
                row |= {f"{column}, pruned": done.counters.pruned, f"{column}, not minimal": done.counters.nonminimal}
            rows.append(row)
    return rows


def _asked(name: str, value: float) -> dict[str, Any]:
    if name == "k":
        return {"k": int(value)}
    if name == "l":
        return {"sensitive": "zipcode", "k": 1, "require": [f"recursive(zipcode, c=1, l={int(value)})"]}
    return {"sensitive": "salary", "k": 1, "require": [f"variance(salary, v={value})"]}


def _cell(row: Row) -> str:
    texts = ("x" if row[f"{name}, not minimal"] else str(row[f"{name}, pruned"]) for name in ("tests", "naive"))
    return "{} ({})".format(*texts)


def draw(result: Result) -> Mapping[str, Picture]:
    pictures = {}
    for panel, (name, rows) in zip("abcd", result.tables.items(), strict=True):
        values = list(dict.fromkeys(row["value"] for row in rows))
        cells = {(row["n"], row["value"]): row for row in rows}
        published = {
            (n, value): text
            for n, texts in PUBLISHED[name].items()
            for value, text in zip(VALUES[name], texts, strict=True)
        }
        headings = [f"{name[0]} = {value:,g}" if value < 1e6 else f"{name[0]} = {value:.2g}" for value in values]
        pictures[panel] = number_table(
            "n",
            [*headings, *(f"paper: {heading}" for heading in headings)],
            [
                (
                    f"{n:,}",
                    [
                        *(
                            TableCell(_cell(cells[n, value]), bool(cells[n, value]["tests, not minimal"]))
                            for value in values
                        ),
                        *(TableCell(published[n, value], published[n, value].startswith("x")) for value in values),
                    ],
                )
                for n in dict.fromkeys(row["n"] for row in rows)
            ],
            title=f"{TITLES[name]}: nodes pruned",
            subtitle=[result.sizes, "in parentheses without tests; x: may not be minimal"],
            key="may not be minimal with tests",
        )
    return pictures


def _decided(result: Result) -> list[tuple[str, Row]]:
    """Return the cells in which both ways are minimal, each with its name."""
    return [
        (f"{name[0]} = {row['value']:g}, n = {row['n']:,}", row)
        for name, rows in result.tables.items()
        for row in rows
        if not (row["tests, not minimal"] or row["naive, not minimal"])
    ]


def _tests_prune_less(result: Result) -> Judgement:
    cells = _decided(result)
    together = [sum(row[f"{name}, pruned"] for _, row in cells) for name in ("tests", "naive")]
    cases = {case: row["tests, pruned"] <= row["naive, pruned"] for case, row in cells}
    found = f"{together[0]:,} nodes with tests and {together[1]:,} without, in {len(cells)} cells, minimal both ways"
    return in_every_case(cases, found)


def _little_pruning(result: Result) -> Judgement:
    """Tests do not lead to much pruning, even for small samples: read as fewer nodes than the paper's most, 112."""
    pruned = {
        f"{name[0]} = {row['value']:g}, n = {row['n']:,}": row["tests, pruned"]
        for name, rows in result.tables.items()
        for row in rows
        if not row["tests, not minimal"]
    }
    return in_every_case(
        {case: count <= 112 for case, count in pruned.items()}, f"at most {max(pruned.values()):,} nodes"
    )


def _vanishes(result: Result) -> Judgement:
    """With the larger half of the samples less is pruned, and less is not minimal, than with the smaller half."""
    cases, texts = {}, []
    for name, rows in result.tables.items():
        samples = sorted({row["n"] for row in rows})
        halves = samples[: len(samples) // 2], samples[len(samples) // 2 :]
        pruned, open_ = (
            [
                sum(row[column] if column.endswith("pruned") else row[column] > 0 for row in rows if row["n"] in half)
                for half in halves
            ]
            for column in ("tests, pruned", "tests, not minimal")
        )
        cases[TITLES[name]] = pruned[1] <= pruned[0] and open_[1] <= open_[0]
        texts.append(
            f"{name}: {pruned[0]:,} and {pruned[1]:,} nodes pruned, {open_[0]} and {open_[1]} cells not minimal"
        )
    return in_every_case(cases, "smaller and larger samples: " + "; ".join(texts))


FIGURE_24 = Figure(
    paper="lefevre",
    number="24",
    title="nodes pruned by Rothko-S",
    published=f"{RECORDS:,} synthetic records, median splits, trees of height {HEIGHT}; in parentheses without tests.",
    run=run,
    draw=draw,
    claims=(
        Claim(
            "Hypothesis tests lead to less pruning than none",
            "splits that the sample allows, without a test",
            _tests_prune_less,
        ),
        Claim(
            "Tests do not lead to much pruning (read as: at most 112 nodes, the paper's most)",
            "the paper's table",
            _little_pruning,
        ),
        Claim(
            "Pruning and nonminimality decrease with the size of the sample",
            "the smaller half of the samples",
            _vanishes,
        ),
    ),
    remarks=("The cells of the paper stand beside ours.",),
)
