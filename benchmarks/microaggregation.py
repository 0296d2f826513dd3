"""How much of the variance do classes of numbers lose, beside MDAV and beside the least possible?

The tables are Tarragona and Census of the CASC project, which papers on microaggregation compare on. They are in
microaggregation/ below ``--data``.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import Options, data_file

TABLES = ("microaggregation/tarragona", "microaggregation/census")
MANY_K = (3, 5, 10)
EFFORTS: Final = ("fast", "normal", "balanced")


def run(options: Options) -> Mapping[str, Table]:
    rows: list[dict[str, Any]] = []
    for name in TABLES:
        path = data_file(options.directory(name))
        assert path is not None
        table = csv.read_csv(path)
        asked: dict[str, Any] = {"quasi_identifiers": table.column_names}
        _compile(table, asked)
        for k in options.some(MANY_K):
            row: dict[str, Any] = {"table": f"{path.stem} ({len(table):,} records)", "k": k}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sfumato.SfumatoWarning)
                row["mdav"] = sfumato.anonymize(table, method="mdav", k=k, **asked).losses.il
                for effort in EFFORTS:
                    began = time.process_time()
                    release = sfumato.anonymize(table, loss="sse", k=k, effort=effort, **asked)
                    row[f"auto, {effort}"] = release.losses.il
                    row[f"{effort}, CPU s"] = time.process_time() - began
            bound = sfumato.bound(table, loss="sse", k=k, **asked)
            least = float(row[f"auto, {EFFORTS[-1]}"])
            # A bound is rounded down and a ratio up, so that what is shown is proven too.
            row["bound"] = math.floor(bound.il * 100) / 100
            row["at most times the best"] = math.ceil(least / bound.il * 1e3) / 1e3
            rows.append(row)
    note = (
        "IL = 100 SSE / SST on standardised columns; all 13 columns are quasi-identifiers. CPU seconds of a whole run."
    )
    return {"il": Table("IL of classes by sums of squares", rows, [note], worst=f"{EFFORTS[-1]}, CPU s")}


def _compile(table: pa.Table, asked: Mapping[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        sfumato.anonymize(table, loss="sse", k=MANY_K[0], effort="fast", **asked)


SECTION = Section(run, timed=True, parameters={"k": MANY_K, "efforts": EFFORTS}, tables=TABLES)
