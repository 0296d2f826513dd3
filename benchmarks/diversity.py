"""What does frequency l-diversity cost, and how well does it answer queries in comparison with Anatomy?

The first curves are those of Ghinita 2007, Fig. 19: loss and fall-back steps by l, and by the number m of sensitive
values. Merging successive values varies m. The second curves are those of Fig. 20: the divergence of the datacube by l,
level, quasi-identifiers and records, for l-diverse Hilbert and for Anatomy. On Adult all kinds of requirements are
compared, and what a search gains.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, Options, method_in_words, without_columns
from sfumato import Policy
from sfumato.methods.line.frontier import frontier_classes
from sfumato.methods.line.optimal_cut import POSITION_BITS
from sfumato.orderings import Hilbert
from sfumato.pipeline.prepare import prepare
from sfumato.policy import merge_flags
from sfumato.policy.run_settings import EffortName
from sfumato.progress import Progress
from sfumato.tables.coding.sorting import sort_rows

SENSITIVE = "occupation"
RECORDS = 200_000
MANY_L = (2, 4, 6, 8, 10)
MANY_VALUES = (10, 20, 30, 40, 50)
QUERY_RECORDS = 100_000
MANY_RECORDS = (50_000, 100_000, 200_000, 400_000)
QUASI_IDENTIFIERS = (3, 5, 6, 7)
MANY_LEVELS = (1, 2, 3)
LEVEL, L = 2, 4
SEED = 0  # of Anatomy


ADULT_METHODS: tuple[tuple[str, EffortName], ...] = (
    ("hilbert", "fast"),
    ("auto", "fast"),
    ("auto", "normal"),
    ("auto", "balanced"),
)
REQUIREMENTS = (
    *(f"distinct(occupation, l={l})" for l in (2, 3, 5)),
    *(f"entropy(occupation, l={l})" for l in (2, 3, 5)),
    *(f"frequency(occupation, l={l})" for l in (2, 3, 5)),
)
REQUIREMENTS_WITH_K = (
    "recursive(occupation, c=2, l=3)",
    "alpha-k(occupation, alpha=0.5)",
    "t-closeness(occupation, t=0.4)",
    "t-closeness(occupation, t=0.2, distance=ordered)",
)
WITH_K = 5


def run(options: Options) -> Mapping[str, Table]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        return {**_loss(options), **_queries(options), **_adult(options)}


def _loss(options: Options) -> dict[str, Table]:
    records = options.size(RECORDS)
    table, policy = options.census_data(records)
    base = f"Generator {GENERATOR}, {records:,} records, 7 quasi-identifiers, sensitive {SENSITIVE}, method hilbert."
    by_l = [{"l": l, **_point(table, policy, l)} for l in options.some(range(MANY_L[0], MANY_L[-1] + 1))]
    by_m = []
    for m in options.some(MANY_VALUES):
        merged = merged_values(table, m)
        points = {l: _point(merged, policy, l) for l in options.some(MANY_L)}
        by_m.append({"m": m, **{f"l = {l}": _in_words(point) for l, point in points.items()}})
    return {
        "by l": Table("Frequency l-diversity by l", by_l, [f"{base} m = 50 values."]),
        "by m": Table(
            "Frequency l-diversity by m: GCP and, in parentheses, fall-backs",
            by_m,
            [f"{base} Values are merged with those that follow them."],
        ),
    }


def _point(table: pa.Table, policy: Policy, l: int) -> dict[str, Any]:
    diverse_policy = merge_flags(policy, l=l)
    try:
        release = sfumato.anonymize(table, diverse_policy, method="hilbert")
    except sfumato.InfeasibleError:
        return dict.fromkeys(("GCP", "classes", "fall-backs"))
    fallbacks = _fallbacks(table, diverse_policy, l)
    return {"GCP": float(release.losses.gcp), "classes": release.audit.classes, "fall-backs": fallbacks}


def _in_words(point: dict[str, Any]) -> str:
    return "not eligible" if point["GCP"] is None else f"{point['GCP']:.4f} ({point['fall-backs']:,})"


def _adult(options: Options) -> dict[str, Table]:
    adult = options.real("adult")
    rows: list[dict[str, Any]] = []
    for requirements, k in ((REQUIREMENTS, 1), (REQUIREMENTS_WITH_K, WITH_K)):
        for requirement in options.some(requirements):
            policy = merge_flags(adult.policy, k=k, require=[requirement])
            row: dict[str, Any] = {"requirement": requirement, "k": k}
            for method, effort in ADULT_METHODS if k == 1 else ADULT_METHODS[:1]:
                release = sfumato.anonymize(adult.path, policy, method=method, effort=effort)
                row[method_in_words(method, effort)] = float(release.losses.gcp)
            rows.append({**dict.fromkeys(rows[0] if rows else row), **row})
    return {"adult": Table(f"GCP of requirements on {adult.name}", rows)}


def _fallbacks(table: pa.Table, policy: Policy, l: int) -> int:
    """Count the classes that took the fall-back step, which a release does not show."""
    records = prepare(table, policy, Progress()).records
    weights = np.diff(records.starts)
    keys = Hilbert().fitted(records.codes, weights, records.domains, 0)(records.codes)
    line = sort_rows(keys.fields(), len(records.codes)).rows
    rows = np.concatenate([records.rows[records.starts[one] : records.starts[one + 1]] for one in line])
    values = records.sensitive[SENSITIVE]
    position = keys.leading(POSITION_BITS)[np.repeat(line, weights[line])]
    return frontier_classes(position, values.codes[rows], values.distinct, l)[2]


def _queries(options: Options) -> dict[str, Table]:
    records = options.size(QUERY_RECORDS)
    base = f"Generator {GENERATOR}. KL over the datacube, the mean of its group-bys; 0 is the original."
    all_records, all_columns = f"{records:,} records", "7 quasi-identifiers"
    table, policy = options.census_data(records)
    return {
        "KL by l": Table(
            "Divergence by l",
            [{"l": l, **_divergence(table, policy, l, LEVEL)} for l in options.some(MANY_L)],
            [f"{base} {all_records}, {all_columns}, level {LEVEL}."],
        ),
        "KL by level": Table(
            "Divergence by level",
            [{"level": level, **_divergence(table, policy, L, level)} for level in options.some(MANY_LEVELS)],
            [f"{base} {all_records}, {all_columns}, l = {L}."],
        ),
        "KL by quasi-identifiers": Table(
            "Divergence by quasi-identifiers",
            [
                {
                    "quasi-identifiers": d,
                    **_divergence(table, without_columns(policy, policy.quasi_identifiers[d:]), L, LEVEL),
                }
                for d in options.some(QUASI_IDENTIFIERS)
            ],
            [f"{base} {all_records}, level {LEVEL}, l = {L}."],
        ),
        "KL by records": Table(
            "Divergence by records",
            [
                {"records": count, **_divergence(*options.census_data(count), L, LEVEL)}
                for count in options.sizes(*MANY_RECORDS)
            ],
            [f"{base} {all_columns}, level {LEVEL}, l = {L}."],
        ),
    }


def _divergence(table: pa.Table, policy: Policy, l: int, level: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for method in ("hilbert", "anatomy"):
        diverse_policy = merge_flags(policy, l=l, method=method, seed=SEED)
        release = sfumato.anonymize(table, diverse_policy)
        released = release.data if release.sensitive is None else (release.data, release.sensitive)
        (accuracy,) = sfumato.measure(table, released, diverse_policy, queries=level).queries
        result[method] = accuracy.kl
    return result | {"hilbert to anatomy": result["hilbert"] / result["anatomy"]}


def merged_values(table: pa.Table, m: int) -> pa.Table:
    """Return the table with its sensitive values merged into m groups of successive values."""
    values = table.column(SENSITIVE).combine_chunks().dictionary_encode()
    order = {name: position for position, name in enumerate(sorted(values.dictionary.to_pylist()))}
    code = np.array([order[name] for name in values.dictionary.to_pylist()])
    merged = (code * m // len(code))[values.indices.to_numpy(zero_copy_only=False)]
    names = pa.array([f"group {number:02}" for number in range(m)])
    return table.set_column(table.column_names.index(SENSITIVE), SENSITIVE, names.take(pa.array(merged)))


SECTION = Section(
    run,
    timed=False,
    parameters={
        "records": RECORDS,
        "records of queries": QUERY_RECORDS,
        "seed of Anatomy": SEED,
        "level": LEVEL,
        "l of queries": L,
    },
    tables=("adult",),
)
