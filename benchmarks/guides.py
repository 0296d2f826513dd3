"""The figures of the guides: what their examples give on generated tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import Options, without_columns
from sfumato import Policy

COMPARED_RECORDS, COMPARED_K, COMPARED = 20_000, (5, 10, 25, 50), ("hilbert", "hilbert-fast", "idistance")
QUERY_RECORDS, QUERY_K, QUERIES, SELECTIVITY, SEED = 100_000, 10, 1_000, 0.05, 1
FREQUENT = "country"
"""The column of the census-like table in which one value has most of the records."""


def run(options: Options) -> Mapping[str, Table]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        return {
            "comparison": Table("GCP of three methods", _comparison(options)),
            "range queries": Table(f"Errors of {QUERIES:,} range queries", _range_queries(options)),
        }


def _comparison(options: Options) -> list[dict[str, Any]]:
    table = options.census(options.size(COMPARED_RECORDS))
    rows = sfumato.compare(table.path, Policy.load(table.policy_path), methods=COMPARED, k=COMPARED_K).rows
    return [
        {"method": method, **{f"k = {row['k']}": row["gcp"] for row in rows if row["method"] == method}}
        for method in COMPARED
    ]


def _range_queries(options: Options) -> list[dict[str, Any]]:
    table = options.census(options.size(QUERY_RECORDS))
    whole = Policy.load(table.policy_path)
    rows = []
    for name, policy in (("all", whole), (f"without `{FREQUENT}`", without_columns(whole, [FREQUENT]))):
        release = sfumato.anonymize(table.path, policy, k=QUERY_K)
        measured = sfumato.measure(
            table.path, release.data, policy, k=QUERY_K, range_queries=QUERIES, selectivity=SELECTIVITY, seed=SEED
        )
        (accuracy,) = measured.queries
        found = accuracy.ranges
        assert found is not None
        rows.append(
            {
                "quasi-identifiers": name,
                "share of the records in an answer": found.reached,
                "mean error": found.mean,
                "median error": found.median,
            }
        )
    return rows


SECTION = Section(
    run,
    timed=False,
    parameters={
        "records": {"comparison": COMPARED_RECORDS, "range queries": QUERY_RECORDS},
        "k of range queries": QUERY_K,
        "selectivity": SELECTIVITY,
        "seed": SEED,
    },
)
