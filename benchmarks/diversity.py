"""What does frequency l-diversity cost, and how well does it answer queries in comparison with Anatomy?

The first curves are those of Ghinita 2007, Fig. 19: loss, time and fall-back steps by l, and by the number m of
sensitive values. Merging successive values varies m. The second curves are those of Fig. 20: the divergence of the
datacube by l, level, quasi-identifiers and records, for l-diverse Hilbert and for Anatomy.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato
from benchmarks.markdown import show
from benchmarks.tables import GENERATOR, Options
from sfumato import Policy
from sfumato.methods.line.frontier import frontier_classes
from sfumato.methods.line.optimal_cut import POSITION_BITS
from sfumato.orderings import Hilbert
from sfumato.pipeline.prepare import prepare
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.tables.coding.sorting import sort_rows

SENSITIVE = "occupation"
RECORDS = 200_000
MANY_L = (2, 4, 6, 8, 10)
MANY_VALUES = (10, 20, 30, 40, 50)
QUERY_RECORDS = 100_000
MANY_RECORDS = (50_000, 100_000, 200_000, 400_000)
MANY_LEVELS = (1, 2, 3)
LEVEL, L = 2, 4
SEED = 0  # of Anatomy


def run(options: Options) -> dict[str, list[dict[str, Any]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        return {**_loss(options), **_queries(options)}


def _loss(options: Options) -> dict[str, list[dict[str, Any]]]:
    table, policy = _table(options, RECORDS)
    base = f"Generator {GENERATOR}, {RECORDS:,} records, 7 quasi-identifiers, sensitive {SENSITIVE}, method hilbert."
    sfumato.anonymize(table, merge_flags(policy, l=MANY_L[0]))  # so that no point pays for compilation
    by_l = [_point(table, policy, l, 50) for l in range(MANY_L[0], MANY_L[-1] + 1)]
    show("Frequency l-diversity by l", by_l, [f"{base} m = 50 values."])
    by_m = [_point(_merged(table, m), policy, l, m) for m in MANY_VALUES for l in MANY_L]
    show(
        "Frequency l-diversity by m", by_m, [f"{base} Values merged with those that follow them; blank: not eligible."]
    )
    return {"frequency by l": by_l, "frequency by m": by_m}


def _point(table: pa.Table, policy: Policy, l: int, m: int) -> dict[str, Any]:
    diverse_policy = merge_flags(policy, l=l)
    result: dict[str, Any] = {"m": m, "l": l, "GCP": None, "classes": None, "fall-backs": None, "seconds": None}
    try:
        begin = time.perf_counter()
        release = sfumato.anonymize(table, diverse_policy, method="hilbert")
    except sfumato.InfeasibleError:
        return result
    seconds = time.perf_counter() - begin
    result |= {"GCP": float(release.losses.gcp), "classes": release.audit.classes}
    return result | {"fall-backs": _fallbacks(table, diverse_policy, l), "seconds": seconds}


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


def _queries(options: Options) -> dict[str, list[dict[str, Any]]]:
    base = f"Generator {GENERATOR}. KL over the datacube, the mean of its group-bys; 0 is the original."
    table, policy = _table(options, QUERY_RECORDS)
    of = f"{QUERY_RECORDS:,} records"
    curves = {
        "KL by l": [{"l": l, **_divergence(table, policy, l, LEVEL)} for l in MANY_L],
        "KL by level": [{"level": level, **_divergence(table, policy, L, level)} for level in MANY_LEVELS],
        "KL by quasi-identifiers": [
            {"quasi-identifiers": d, **_divergence(table, _fewer(policy, d), L, LEVEL)} for d in range(3, 8)
        ],
        "KL by records": [
            {"records": count, **_divergence(*_table(options, count), L, LEVEL)} for count in MANY_RECORDS
        ],
    }
    show("Divergence by l", curves["KL by l"], [f"{base} {of}, 7 quasi-identifiers, level {LEVEL}."])
    show("Divergence by level", curves["KL by level"], [f"{base} {of}, 7 quasi-identifiers, l = {L}."])
    show(
        "Divergence by quasi-identifiers", curves["KL by quasi-identifiers"], [f"{base} {of}, level {LEVEL}, l = {L}."]
    )
    show("Divergence by records", curves["KL by records"], [f"{base} 7 quasi-identifiers, level {LEVEL}, l = {L}."])
    return curves


def _divergence(table: pa.Table, policy: Policy, l: int, level: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for method in ("hilbert", "anatomy"):
        diverse_policy = merge_flags(policy, l=l, method=method, seed=SEED)
        release = sfumato.anonymize(table, diverse_policy)
        released = release.data if release.sensitive is None else (release.data, release.sensitive)
        (accuracy,) = sfumato.measure(table, released, diverse_policy, queries=level).queries
        result[method] = accuracy.kl
    return result | {"hilbert to anatomy": result["hilbert"] / result["anatomy"]}


def _table(options: Options, records: int) -> tuple[pa.Table, Policy]:
    """Return the census-like table without passthrough columns, and its policy without k."""
    generated = options.census(records)
    whole = Policy.load(generated.policy_path)
    contents = whole.to_dict() | {"other": "drop", "privacy": {}}
    contents["columns"] = {
        name: column
        for name, column in contents["columns"].items()
        if column["role"] in ("quasi-identifier", "sensitive")
    }
    return pq.read_table(generated.path), Policy.from_dict(contents, whole.base)


def _merged(table: pa.Table, m: int) -> pa.Table:
    """Return the table with its sensitive values merged into m groups of successive values."""
    values = table.column(SENSITIVE).combine_chunks().dictionary_encode()
    order = {name: position for position, name in enumerate(sorted(values.dictionary.to_pylist()))}
    code = np.array([order[name] for name in values.dictionary.to_pylist()])
    merged = (code * m // len(code))[values.indices.to_numpy(zero_copy_only=False)]
    names = pa.array([f"group {number:02}" for number in range(m)])
    return table.set_column(table.column_names.index(SENSITIVE), SENSITIVE, names.take(pa.array(merged)))


def _fewer(policy: Policy, count: int) -> Policy:
    contents = policy.to_dict()
    for name in policy.quasi_identifiers[count:]:
        del contents["columns"][name]
    return Policy.from_dict(contents, policy.base)
