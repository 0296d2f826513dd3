"""Fig. 17: what the method needs in memory, and what it needs on disk within a limit, by the size of the table."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from benchmarks.process_tree import run_tree
from reproduce.figure import Claim, Figure, Judgement, Result, Row, Size
from reproduce.judging import in_every_case, number, span
from reproduce.lines import lines, means
from sfumato.pictures.curves import Limit, curves
from sfumato.pictures.picture import Picture
from sfumato.synthetic.agrawal import Agrawal

MEMORY, DISK = "in memory", "on disk"
LARGEST, K = 10_000_000, 1_000  # those of the paper
PAPER_MB = 512
SEED = 0
SECONDS_BETWEEN_SAMPLES = 0.02
AMOUNTS = ("salary", "commission", "hvalue", "loan")


def run(size: Size) -> Result:
    many_records = size.of(
        tenth=(10_000,),
        quick=(200_000, 400_000, 800_000, 1_600_000),
        full=(1_000_000, 2_000_000, 5_000_000, LARGEST),
    )
    limit = size.of(tenth=300, quick=300, full=PAPER_MB)
    _rows(size.tables.work, many_records[0], limit)  # uncounted, so that no compilation is in the times
    rows = [row for records in many_records for row in _rows(size.tables.work, records, limit)]
    return Result(
        sizes=f"up to {many_records[-1]:,} records, {limit} MB; {LARGEST:,} and {PAPER_MB} MB in the paper",
        tables={"runs": rows},
        settings={"k": K, "limit MB": limit, "seed": SEED},
    )


def _rows(work: Path, records: int, limit: int) -> list[Row]:
    source, release = work / "memory-need.parquet", work / "memory-need-release.parquet"
    data = _table(records)
    parquet.write_table(data, source)
    command = [sys.executable, "-m", "sfumato", "anonymize", source, "-o", release, "--other", "drop", "--json"]
    command += ["--quasi-identifiers", ",".join(data.column_names), "--method", "mondrian", "-k", K]
    rows = []
    for name, engine in ((MEMORY, ["memory"]), (DISK, ["disk", "--memory", f"{limit}MB"])):
        usage = run_tree([*command, "--engine", *engine], {"SFUMATO_THREADS": "1"}, interval=SECONDS_BETWEEN_SAMPLES)
        scratch: Mapping[str, Any] = json.loads(usage.output).get("scratch") or {}
        rows.append(
            {
                "method": name,
                "records": records,
                "peak MB": usage.peak_bytes / 1e6,
                "cpu seconds": usage.cpu,
                "scratch MB": sum(scratch.values()) / 1e6,
            }
        )
        for path in (release, release.with_name(f"{release.name}.sfumato.json")):
            path.unlink()
    return rows


def _table(records: int) -> pa.Table:
    """Generate the quasi-identifiers, with amounts of money in thousands: the disk engine holds all distinct values."""
    table = pa.Table.from_batches(list(Agrawal().batches(records, SEED))).drop_columns("class")
    for position, name in enumerate(table.column_names):
        if name in AMOUNTS:
            table = table.set_column(position, name, pa.array(table[name].to_numpy() // 1000 * 1000))
    return table


def draw(result: Result) -> Mapping[str, Picture]:
    limit = Limit(result.settings["limit MB"], f"{result.settings['limit MB']} MB")
    panels = {
        "a": ("peak MB", "Memory", "MB at the peak", limit),
        "b": ("scratch MB", "Temporary files", "MB read and written", None),
        "c": ("cpu seconds", "Time", "CPU seconds", None),
    }
    return {
        panel: curves(
            result.tables["runs"],
            x="records",
            y=column,
            title=title,
            subtitle=result.sizes,
            y_title=y_title,
            limit=line,
        )
        for panel, (column, title, y_title, line) in panels.items()
    }


def _outgrows(result: Result) -> Judgement:
    peaks = means(lines(result.tables["runs"], "records", "peak MB"))[MEMORY]
    largest = max(peaks)
    found = f"{number(peaks[largest])} MB for {largest:,} records, limit {result.settings['limit MB']} MB"
    return in_every_case({f"{largest:,} records": peaks[largest] > result.settings["limit MB"]}, found)


def _keeps(result: Result) -> Judgement:
    peaks = means(lines(result.tables["runs"], "records", "peak MB"))[DISK]
    cases = {f"{records:,} records": peak <= result.settings["limit MB"] for records, peak in peaks.items()}
    return in_every_case(cases, f"{span(peaks.values())} MB, limit {result.settings['limit MB']} MB")


FIGURE_17 = Figure(
    paper="lefevre",
    number="17",
    title="the need for a scalable algorithm",
    published=f"Up to {LARGEST:,} synthetic records on a machine of {PAPER_MB} MB, median splits, k = {K:,}.",
    run=run,
    draw=draw,
    claims=(
        Claim("Large tables outgrow the memory of an in-memory implementation", "the memory engine", _outgrows),
        Claim("An algorithm that manages memory itself does not outgrow it", "the disk engine", _keeps),
    ),
    remarks=(
        "The paper lets the system thrash and counts its I/O. Here no machine thrashes: the picture shows the memory "
        "that each engine holds, start and libraries included, and the limit beyond which such a machine would thrash.",
    ),
)
