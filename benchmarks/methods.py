"""Which method suits which table? All published methods side by side, and how near nng comes to its bounds.

The tables are real ones with taxonomies, and two generated ones whose quasi-identifiers are all numbers. The figures
are those of ``sfumato compare``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import Options, SmallTable, complete_records
from sfumato import Policy
from sfumato.policy import merge_flags
from sfumato.synthetic import Agrawal, Normal

TABLES = ("adult", "acs-census", "fars")
METHODS = (
    "hilbert", "hilbert-fast", "idistance", "idistance-fast", "mapping-median", "mapping-median:values", "close-k",
    "mondrian:published", "mondrian:ordered", "mondrian", "mondrian-relaxed", "topdown:lower-ncp", "topdown",
    "single-dimensional", "nng", "k-member",
)  # fmt: skip
QUADRATIC, LARGE_TABLES = ("k-member",), ("acs-census", "fars")
"""Methods that compare every record with all others, and the tables that are too large for them."""
MANY_K = (5, 10, 25, 50)
SHOWN_K = 10
GENERATED_RECORDS = 30_000
DIVERSE_TABLES, MANY_L = ("adult", "acs-census"), (2, 4, 6)
DIVERSE_METHODS = ("hilbert", "eligible-tree", "mondrian:published", "mondrian:ordered", "mondrian")
BOUND_TABLE, BOUND_K = "adult-raw", (5, 10, 25)
MOST_NUMERIC = 5


def run(options: Options) -> Mapping[str, Table]:
    real = {name: options.real(name) for name in options.some(TABLES)}
    tables = {name: (table.name, table.path, table.policy) for name, table in real.items()}
    for generator in (Normal, Agrawal):
        path, policy = _generated(options, generator)
        title = f"{generator.name} {generator.version} ({options.size(GENERATED_RECORDS):,} records, its numbers)"
        tables[generator.name] = (title, path, policy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        compared = {
            name: Table(
                f"Methods on {title}", _methods(_names(options, name), path, policy), [_quasi_identifiers(policy)]
            )
            for name, (title, path, policy) in tables.items()
        }
        diverse = [
            _diverse(real[name], method, options.some(MANY_L)) for name in DIVERSE_TABLES for method in DIVERSE_METHODS
        ]
        bounds = _bounds(options.real(BOUND_TABLE), options.some(BOUND_K))
    return {
        **compared,
        "diverse": Table("GCP with frequency l-diversity, without k", diverse),
        "nng": Table(
            f"nng and its bounds on the numbers of {BOUND_TABLE}",
            bounds,
            [
                "Records with a missing value are left out. The smallest box is the bound that Du et al. 2007 report; "
                "the largest object box is that bound read for each record."
            ],
        ),
    }


def _quasi_identifiers(policy: Policy) -> str:
    return f"{len(policy.quasi_identifiers)} quasi-identifiers: {', '.join(policy.quasi_identifiers)}."


def _names(options: Options, table: str) -> list[str]:
    """Return the methods that a table is measured with."""
    return [name for name in options.some(METHODS) if table not in LARGE_TABLES or name not in QUADRATIC]


def _methods(names: Sequence[str], data: object, policy: Policy) -> list[dict[str, Any]]:
    """Return one row per method. Sensitive columns have no requirement, so that only k is compared."""
    rows = sfumato.compare(data, merge_flags(policy, other="drop"), methods=names, k=MANY_K).rows
    by_method: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        by_method.setdefault(row["method"], {})[row["k"]] = row
    return [
        {
            "method": method,
            **{f"GCP, k = {k}": at[k]["gcp"] for k in MANY_K},
            f"C_DM, k = {SHOWN_K}": at[SHOWN_K]["c_dm"],
            f"C_DM, k = {MANY_K[-1]}": at[MANY_K[-1]]["c_dm"],
            f"C_DM by groups, k = {MANY_K[-1]}": at[MANY_K[-1]]["c_dm_groups"],
            f"classes, k = {SHOWN_K}": at[SHOWN_K]["classes"],
            f"MAXSIZE, k = {SHOWN_K}": at[SHOWN_K]["max_size"],
        }
        for method, at in by_method.items()
    ]


def _diverse(table: SmallTable, method: str, many_l: Sequence[int]) -> dict[str, Any]:
    policies = {l: merge_flags(table.policy, k=1, require=[f"frequency(occupation, l={l})"]) for l in many_l}
    releases = {l: sfumato.anonymize(table.path, policy, method=method) for l, policy in policies.items()}
    return {
        "table": table.name,
        "method": method,
        **{f"l = {l}": float(release.losses.gcp) for l, release in releases.items()},
    }


def _bounds(table: SmallTable, many_k: Sequence[int]) -> list[dict[str, Any]]:
    """Run nng on the first 2 to 5 numeric columns of any role, as Du et al. 2007 do."""
    names = list(table.numeric_columns)[:MOST_NUMERIC]
    numbers = complete_records(table.path).select(names).cast(pa.schema([(name, pa.float64()) for name in names]))
    results = []
    for count in range(2, len(names) + 1):
        columns = names[:count]
        comparison = sfumato.compare(
            numbers.select(columns),
            quasi_identifiers=columns,
            methods="nng",
            k=many_k,
            type=dict.fromkeys(columns, "numeric"),
        )
        results += [
            {
                "numbers": ", ".join(columns),
                "k": row["k"],
                "MAXSIZE": row["max_size"],
                "least MAXSIZE": row["max_size_bound"],
                "ratio": row["max_size_ratio"],
                "largest object box": row["object_box_bound"],
                "its ratio": row["object_box_ratio"],
                "smallest box, from": row["smallest_box_least"],
                "to": row["smallest_box_most"],
            }
            for row in comparison.rows
        ]
    return results


def _generated(options: Options, generator: type[Normal | Agrawal]) -> tuple[Path, Policy]:
    """Return a generated table, and its policy with only the numeric quasi-identifiers."""
    records = options.size(GENERATED_RECORDS)
    path, policy_path = options.generated(generator.name, generator.version, records)
    whole = Policy.load(policy_path)
    numeric = [one for one in whole.quasi_identifiers if whole.columns[one].type == "numeric"]
    return path, merge_flags(None, quasi_identifiers=numeric, type=dict.fromkeys(numeric, "numeric"), other="drop")


SECTION = Section(
    run,
    timed=False,
    parameters={"k": MANY_K, "l": MANY_L, "records of generated tables": GENERATED_RECORDS},
    tables=(*TABLES, BOUND_TABLE),
)
