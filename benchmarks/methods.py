"""Which method suits which table? All methods side by side, and how near nng comes to its bounds.

The tables are that of ``--data`` (or a census-like one) and two generated ones whose quasi-identifiers are all numbers.
The figures are those of ``sfumato compare``.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import sfumato
from benchmarks.markdown import show
from benchmarks.tables import Options, SmallTable
from sfumato import Policy, generate
from sfumato.policy import InputOptions, merge_flags
from sfumato.synthetic import Agrawal, Normal
from sfumato.tables.sources.source import open_source

MANY_K = (5, 10, 25, 50)
SHOWN_K = 10
GENERATED_RECORDS = 30_000
BOUND_K = (5, 10, 25)
MOST_NUMERIC = 5
MISSING = "?"


def run(options: Options) -> dict[str, list[dict[str, Any]]]:
    table = options.small_table()
    tables: dict[str, tuple[object, Policy]] = {
        table.name: (table.path, table.policy),
        f"{Normal.name} {Normal.version} ({GENERATED_RECORDS:,} records)": _generated(options, Normal.name),
        f"{Agrawal.name} {Agrawal.version} ({GENERATED_RECORDS:,} records, its numbers alone)": _generated(
            options, Agrawal.name
        ),
    }
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        for name, (data, policy) in tables.items():
            results[name] = _methods(data, policy)
            note = f"{len(policy.quasi_identifiers)} quasi-identifiers: {', '.join(policy.quasi_identifiers)}."
            show(f"Methods on {name}", results[name], [note, "Seconds are those of forming the classes."])
        bounds = _bounds(table)
    if bounds:
        results["bounds"] = bounds
        show(
            f"nng and its bounds on the numbers of {table.name}",
            bounds,
            ["Records with a missing value are left out. The smallest box is the bound that Du et al. 2007 report."],
        )
    return results


def _methods(data: object, policy: Policy) -> list[dict[str, Any]]:
    """Return one row per method. Sensitive columns have no requirement, so that only k is compared."""
    rows = sfumato.compare(data, merge_flags(policy, other="drop"), k=MANY_K).rows
    by_method: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        by_method.setdefault(row["method"], {})[row["k"]] = row
    return [
        {
            "method": method,
            **{f"GCP, k = {k}": at[k]["gcp"] for k in MANY_K},
            f"C_DM, k = {SHOWN_K}": at[SHOWN_K]["c_dm"],
            f"C_DM, k = {MANY_K[-1]}": at[MANY_K[-1]]["c_dm"],
            f"classes, k = {SHOWN_K}": at[SHOWN_K]["classes"],
            f"MAXSIZE, k = {SHOWN_K}": at[SHOWN_K]["max_size"],
            f"seconds, k = {SHOWN_K}": at[SHOWN_K]["partition_seconds"],
        }
        for method, at in by_method.items()
    ]


def _bounds(table: SmallTable) -> list[dict[str, Any]]:
    """Run nng on the first 2 to 5 numeric columns of any role, as Du et al. 2007 do."""
    names = list(table.numeric_columns)[:MOST_NUMERIC]
    numbers = _complete(table.path, names)
    results = []
    for count in range(2, len(names) + 1):
        columns = names[:count]
        comparison = sfumato.compare(
            numbers.select(columns),
            quasi_identifiers=columns,
            methods="nng",
            k=BOUND_K,
            type=dict.fromkeys(columns, "numeric"),
        )
        results += [
            {
                "numbers": ", ".join(columns),
                "k": row["k"],
                "MAXSIZE": row["max_size"],
                "least MAXSIZE": row["max_size_bound"],
                "ratio": row["max_size_ratio"],
                "smallest box, from": row["smallest_box_least"],
                "to": row["smallest_box_most"],
                "seconds": row["partition_seconds"],
            }
            for row in comparison.rows
        ]
    return results


def _complete(path: Path, names: list[str]) -> pa.Table:
    """Return the columns as numbers, without the records that lack a value in any column."""
    source = open_source(path, InputOptions())
    table = pa.Table.from_batches(list(source.batches(source.names)))
    for name in table.column_names:
        column = table.column(name).cast(pa.string())
        table = table.filter(pc.not_equal(column, MISSING)) if MISSING in column.unique().to_pylist() else table
    return table.select(names).cast(pa.schema([(name, pa.float64()) for name in names]))


def _generated(options: Options, name: str) -> tuple[Path, Policy]:
    """Return a generated table, and its policy with only the numeric quasi-identifiers."""
    path = options.work / f"{name}-{GENERATED_RECORDS}" / f"{name}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        generate(name, GENERATED_RECORDS, path)
    whole = Policy.load(path.with_name(f"{name}.policy.toml"))
    numeric = [one for one in whole.quasi_identifiers if whole.columns[one].type == "numeric"]
    return path, merge_flags(None, quasi_identifiers=numeric, type=dict.fromkeys(numeric, "numeric"), other="drop")
