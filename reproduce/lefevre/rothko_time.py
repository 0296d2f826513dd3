"""Fig. 19 to 21: the running time of Rothko-T and Rothko-S, by the size of the table and by k."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reproduce.figure import Claim, Figure, Judgement, Result, Row, Size
from reproduce.judging import in_every_case, number
from reproduce.lefevre.lessons import spread
from reproduce.lefevre.paired import judge_pairs, trials_of
from reproduce.lefevre.rothko_runs import (
    GAIN_SPLITS,
    MEDIAN_SPLITS,
    Coded,
    RothkoRun,
    by_counts,
    by_sample,
    coded,
    drawn,
    policy_for,
)
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.pictures.grouped_bars import Stack, stacked_bars
from sfumato.pictures.picture import Picture
from sfumato.policy import Policy

FITS, K = 2_000_000, 1_000  # those of the paper
LARGEST = 50_000_000
SAMPLE = "Rothko-S"
PARTS = ("user", "system", "wait")
Algorithm = Callable[[Coded, int], RothkoRun]


def _algorithms(caches: Sequence[int], method: MondrianMethod) -> dict[str, Algorithm]:
    def tree(cache: int) -> Algorithm:
        return lambda packed, fits: by_counts(packed, fits, cache, method)

    return {f"Rothko-T, F_CACHE = {cache}": tree(cache) for cache in caches} | {
        SAMPLE: lambda packed, fits: by_sample(packed, fits, method=method)
    }


def _many_records(size: Size) -> tuple[Sequence[int], int, int]:
    """Return the sizes of tables, the records in memory, and the number of tables of each size."""
    return size.of(
        tenth=((4_000,), 1_000, 2),
        quick=((50_000, 100_000, 200_000, 400_000), 20_000, 3),
        full=((5_000_000, 10_000_000, 25_000_000, LARGEST), FITS, 3),
    )


def figure_19(size: Size) -> Result:
    many_records, fits, tables = _many_records(size)
    k = size.of(tenth=10, quick=10, full=K)
    algorithms = _algorithms((1, 8), MEDIAN_SPLITS)
    rows = [row for records in many_records for row in _rows(algorithms, records, (k,), fits, tables)]
    return Result(_sizes(many_records, fits, k), {"seconds": rows}, _settings(fits, tables))


def figure_20(size: Size) -> Result:
    many_records, fits, tables = _many_records(size)
    records = size.of(tenth=many_records[-1], quick=200_000, full=10_000_000)
    many_k = size.of(tenth=(10, 100), quick=(10, 50, 100, 500, 1_000), full=(50, 100, 500, 1_000, 5_000, 10_000))
    rows = _rows(_algorithms((1, 8), MEDIAN_SPLITS), records, many_k, fits, tables)
    return Result(
        f"{records:,} records, {fits:,} in memory; {FITS:,} in the paper", {"seconds": rows}, _settings(fits, tables)
    )


def figure_21(size: Size) -> Result:
    many_records, fits, tables = _many_records(size)
    k = size.of(tenth=10, quick=10, full=K)
    by_gain, by_median = _algorithms((1, 4), GAIN_SPLITS), _algorithms((1, 4), MEDIAN_SPLITS)
    return Result(
        _sizes(many_records, fits, k),
        {
            "seconds": [row for records in many_records for row in _rows(by_gain, records, (k,), fits, tables)],
            "median": _rows(by_median, many_records[-1], (k,), fits, tables),
        },
        _settings(fits, tables) | {"function": "C2", "least gain": 0.01},
    )


def _sizes(many_records: Sequence[int], fits: int, k: int) -> str:
    return f"up to {many_records[-1]:,} records, {fits:,} in memory, k = {k:,}; {FITS:,} and {K:,} in the paper"


def _settings(fits: int, tables: int) -> dict[str, object]:
    return {"records in memory": fits, "tables of each size": tables, "seeds": f"0 to {tables - 1}"}


def _rows(
    algorithms: Mapping[str, Algorithm], records: int, many_k: Sequence[int], fits: int, tables: int
) -> list[Row]:
    found: dict[tuple[str, int], list[RothkoRun]] = {}
    for seed in range(tables):
        data = drawn(records, seed)
        for k in many_k:
            with coded(data, _policy(data, k)) as packed:
                if not found:  # once uncounted: kernels are compiled for codes as wide as those of this table
                    for run in algorithms.values():
                        run(packed, fits)
                for name, run in algorithms.items():
                    found.setdefault((name, k), []).append(run(packed, fits))
    return [
        {
            "method": name,
            "records": records,
            "k": k,
            **{part: _mean([getattr(run.seconds, part) for run in runs]) for part in PARTS},
            "reads": _mean([run.reads for run in runs]),
            "writes": _mean([run.writes for run in runs]),
            **spread([run.seconds.cpu for run in runs]),
            "total": [run.seconds.total for run in runs],
        }
        for (name, k), runs in found.items()
    ]


def _policy(data: object, k: int) -> Policy:
    return policy_for(data, k=k, target="class", method="mondrian:information-gain")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _draw(x: str, x_title: str) -> Callable[[Result], Mapping[str, Picture]]:
    def draw(result: Result) -> Mapping[str, Picture]:
        rows = result.tables["seconds"]
        top = max(sum(row[part] for part in PARTS) for row in rows)
        return {
            panel: stacked_bars(
                [Stack(f"{row[x]:,}", {part: row[part] for part in PARTS}) for row in rows if row["method"] == name],
                title=name,
                subtitle=[result.sizes],
                x_title=x_title,
                y_title="seconds",
                top=top,
            )
            for panel, name in zip("abc", dict.fromkeys(row["method"] for row in rows), strict=True)
        }

    return draw


def _faster(by: str) -> list[Claim]:
    """Rothko-S is faster than each form of Rothko-T: by CPU seconds, and with waiting."""

    def claim(what: str, column: str) -> Claim:
        def judge(result: Result) -> Judgement:
            rows = [{**row, "trials": row[column]} for row in result.tables["seconds"]]
            names = dict.fromkeys(row["method"] for row in rows if row["method"] != SAMPLE)
            pairs = {
                f"{name}, {case}": pair
                for name in names
                for case, pair in trials_of(rows, "method", name, SAMPLE, (by,)).items()
            }
            return judge_pairs(pairs, "seconds saved")

        return Claim(f"Rothko-S takes less {what} than Rothko-T", "Rothko-T with either F_CACHE", judge)

    return [claim("CPU time", "trials"), claim("time in all", "total")]


def _more_for_small_k(result: Result) -> Judgement:
    rows = result.tables["seconds"]
    least, most = min(row["k"] for row in rows), max(row["k"] for row in rows)
    cells = {(row["method"], row["k"]): row["trials"] for row in rows}
    pairs = {name: (cells[name, least], cells[name, most]) for name, k in cells if k == least}
    return judge_pairs(pairs, f"CPU seconds more with k = {least:,} than with k = {most:,}:")


def _same_io(result: Result) -> Judgement:
    """The I/O does not depend on k: read as a difference of less than five percent."""
    blocks: dict[str, list[float]] = {}
    for row in result.tables["seconds"]:
        blocks.setdefault(row["method"], []).append(row["reads"] + row["writes"])
    change = {name: max(values) / min(values) - 1 for name, values in blocks.items()}
    found = "; ".join(f"{name}: {number(100 * one)}% between the k" for name, one in change.items())
    return in_every_case({name: one < 0.05 for name, one in change.items()}, found)


def _gain_costs_more(result: Result) -> Judgement:
    median = {row["method"]: row for row in result.tables["median"]}
    largest = max(row["records"] for row in result.tables["seconds"])
    pairs = {
        row["method"]: (row["trials"], median[row["method"]]["trials"])
        for row in result.tables["seconds"]
        if row["records"] == largest
    }
    return judge_pairs(pairs, "CPU seconds more with information gain:")


WAITING = (
    "Seconds of waiting are those in which the program neither ran nor stood in the queue for a core. The input is the "
    "coded table in a file, as in the paper. The files may be in the cache of the system."
)
FIGURE_19 = Figure(
    paper="lefevre",
    number="19",
    title="running time by the size of the table, median splits",
    published=f"Synthetic records of which {FITS:,} fit into memory, k = {K:,}.",
    run=figure_19,
    draw=_draw("records", "records"),
    claims=_faster("records"),
    remarks=(WAITING,),
)
FIGURE_20 = Figure(
    paper="lefevre",
    number="20",
    title="running time by k",
    published=f"Synthetic records of which {FITS:,} fit into memory, median splits.",
    run=figure_20,
    draw=_draw("k", "k"),
    claims=(
        Claim("A smaller k needs more computation", "the largest k", _more_for_small_k),
        Claim("The additional cost of a smaller k is no I/O (read as: within 5%)", "the other k", _same_io),
        *_faster("k"),
    ),
)
FIGURE_21 = Figure(
    paper="lefevre",
    number="21",
    title="running time by the size of the table, information gain",
    published=f"Synthetic records of which {FITS:,} fit into memory, k = {K:,}, C2; the median below a gain of 0.01.",
    run=figure_21,
    draw=_draw("records", "records"),
    claims=(
        Claim(
            "Information gain takes more CPU time than the median",
            "median splits on the largest table",
            _gain_costs_more,
        ),
        *_faster("records"),
    ),
)
