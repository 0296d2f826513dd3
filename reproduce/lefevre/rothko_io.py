"""Fig. 18: how much Rothko-T and Rothko-S read and write, beside the analysis of section 5.3."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from reproduce.figure import Claim, Figure, Judgement, Result, Row, Size
from reproduce.judging import in_every_case, number, ranges, span
from reproduce.lefevre.rothko_runs import Coded, RothkoRun, by_counts, by_sample, coded, drawn, policy_for
from reproduce.lines import lines, means
from sfumato.engines.disk.rothko_io_cost import ExpectedIo, expected_sample_io, expected_tree_io
from sfumato.pictures.curves import curves
from sfumato.pictures.picture import Picture

RECORDS, FITS, K = 50_000_000, 2_000_000, 1_000  # those of the paper
CACHES = (1, 2, 4, 8, 16, 32)
SCALE_CACHE = 8
TREE, SAMPLE = "Rothko-T", "Rothko-S"
SEED = 0


def run(size: Size) -> Result:
    records, fits, k = size.of(tenth=(10_000, 1_000, 10), quick=(500_000, 20_000, 10), full=(RECORDS, FITS, K))
    caches = size.of(tenth=CACHES[::2], quick=CACHES, full=CACHES)
    samples = [fits // share for share in size.of(tenth=(2, 1), quick=(16, 8, 4, 2, 1), full=(16, 8, 4, 2, 1))]
    shares = size.of(tenth=(2, 1), quick=(8, 4, 2, 1), full=(10, 5, 2, 1))
    data = drawn(records, SEED)
    with coded(data, policy_for(data, k=k)) as packed:
        by_cache = [_row(packed, by_counts(packed, fits, cache), cache=cache, method=TREE) for cache in caches]
        of_samples = [_row(packed, by_sample(packed, fits, n), n=n, method=SAMPLE) for n in samples]
    by_cache += [_expected(packed, expected_tree_io(records, fits, cache), cache=cache) for cache in caches]
    of_samples += [_expected(packed, expected_sample_io(records, fits, k, n), n=n) for n in samples]
    by_records = []
    for share in shares:
        part = data.slice(0, records // share)
        with coded(part, policy_for(part, k=k)) as packed:
            for name, done in (
                (TREE, by_counts(packed, fits, SCALE_CACHE)),
                (SAMPLE, by_sample(packed, fits)),
            ):
                by_records.append(_row(packed, done, records=part.num_rows, method=name))
    return Result(
        sizes=f"{records:,} records, {fits:,} in memory, k = {k:,}; {RECORDS:,}, {FITS:,}, {K:,} in the paper",
        tables={"F_CACHE": by_cache, "sample": of_samples, "records": by_records},
        settings={"F_CACHE by records": SCALE_CACHE, "seed": SEED},
    )


def _row(packed: Coded, done: RothkoRun, **about: object) -> Row:
    return {
        **about,
        "reads": done.reads,
        "writes": done.writes,
        "repartitions": done.counters.repartitions,
        "times read": done.reads / packed.blocks,
        "times written": done.writes / packed.blocks,
        "pruned": done.counters.pruned,
    }


def _expected(packed: Coded, expected: ExpectedIo, **about: object) -> Row:
    return {
        **about,
        "method": "expected",
        "reads": expected.reads * packed.blocks,
        "writes": expected.writes * packed.blocks,
        "repartitions": None,
        "times read": expected.reads,
        "times written": expected.writes,
        "pruned": None,
    }


def draw(result: Result) -> Mapping[str, Picture]:
    panels = {
        "a": ("F_CACHE", "cache", "Rothko-T by F_CACHE", "F_CACHE"),
        "b": ("sample", "n", "Rothko-S by the size of the sample", "records in the sample"),
        "c": ("records", "records", "Both by the size of the table", "records"),
    }
    return {
        panel: curves(
            [
                {x: row[x], "series": f"{row['method']}, {what}", "blocks": row[what]}
                for row in result.tables[table]
                for what in ("reads", "writes")
            ],
            x=x,
            y="blocks",
            series="series",
            title=title,
            subtitle=result.sizes,
            x_title=x_title,
            y_title="blocks of 512 bytes",
            x_scale="log" if table != "records" else "linear",
        )
        for panel, (table, x, title, x_title) in panels.items()
    }


def _total(row: Row) -> float:
    return float(row["reads"] + row["writes"])


def _measured(result: Result, table: str) -> list[Row]:
    return [row for row in result.tables[table] if row["method"] != "expected"]


def _cache_saves(result: Result) -> Judgement:
    rows = _measured(result, "F_CACHE")
    cases = {f"F_CACHE = {row['cache']}": _total(row) <= _total(before) for before, row in itertools.pairwise(rows)}
    return in_every_case(cases, f"{number(_total(rows[0]))} to {number(_total(rows[-1]))} blocks")


def _saves_less_and_less(result: Result) -> Judgement:
    """Compare what each frequency group saves on the way from one F_CACHE to the next."""
    rows = _measured(result, "F_CACHE")
    saved = [
        (_total(before) - _total(row)) / (row["cache"] - before["cache"]) for before, row in itertools.pairwise(rows)
    ]
    cases = {
        f"F_CACHE = {row['cache']}": later <= earlier
        for row, earlier, later in zip(rows[2:], saved, saved[1:], strict=False)
    }
    return in_every_case(cases, f"blocks saved by each group {', '.join(number(one) for one in saved)}")


def _as_expected(table: str, x: str) -> Claim:
    def judge(result: Result) -> Judgement:
        measured = {row[x]: row for row in _measured(result, table)}
        expected = {row[x]: row for row in result.tables[table] if row["method"] == "expected"}
        away = {
            f"{x} = {at:,}, {what}": row[f"times {what}"] - expected[at][f"times {what}"]
            for at, row in measured.items()
            for what in ("read", "written")
        }
        found = f"passes over the table, measured less expected: {min(away.values()):+.2f} to {max(away.values()):+.2f}"
        return in_every_case({case: abs(one) <= 1.05 for case, one in away.items()}, found)

    name = {"F_CACHE": TREE, "sample": SAMPLE}[table]
    return Claim(
        f"The analysis of 5.3 predicts the I/O of {name} (read as: within one pass)", "equations of 5.3", judge
    )


def _one_division(result: Result) -> Judgement:
    rows = _measured(result, "sample")
    cases = {f"n = {row['n']:,}": row["times written"] < 1.05 for row in rows}
    written, read = (span(row[column] for row in rows) for column in ("times written", "times read"))
    return in_every_case(cases, f"written {written} times, read {read} times")


def _sample_reads_less(result: Result) -> Judgement:
    least_tree = min(_total(row) for row in _measured(result, "F_CACHE"))
    cases = {f"n = {row['n']:,}": _total(row) < least_tree for row in _measured(result, "sample")}
    rows = [{**row, "total": _total(row)} for row in result.tables["records"]]
    found = means(lines(rows, "records", "total"))
    cases |= {f"{at:,} records": found[SAMPLE][at] < found[TREE][at] for at in found[SAMPLE]}
    return in_every_case(cases, f"blocks by records: {ranges(found, [SAMPLE, TREE])}")


FIGURE_18 = Figure(
    paper="lefevre",
    number="18",
    title="I/O requests of Rothko",
    published=f"{RECORDS:,} synthetic records of which {FITS:,} fit into memory, k = {K:,}, median splits.",
    run=run,
    draw=draw,
    claims=(
        Claim("A larger F_CACHE needs fewer I/O requests", "the next smaller F_CACHE", _cache_saves),
        Claim("Each additional frequency group saves less", "the next smaller F_CACHE", _saves_less_and_less),
        _as_expected("F_CACHE", "cache"),
        _as_expected("sample", "n"),
        Claim("Rothko-S divides the table once, whatever the size of the sample", "the whole table", _one_division),
        Claim("Rothko-S needs fewer I/O requests than Rothko-T", "Rothko-T, at its best F_CACHE", _sample_reads_less),
    ),
    remarks=(
        "Requests are counted by the program, in records that it reads and writes; the paper counts those that reach "
        "the disk. A small sample is drawn while the table is coded, which saves Rothko-S one reading.",
    ),
)
