"""What do the split rules for a workload cost in comparison with the median, and what do they gain?

The bar: information gain on 1 million records, 9 attributes and k = 100 takes at most five times as long as the median,
in one run. The table is Agrawal's with nine quasi-identifiers; the rules predict its class and its number. What they
gain on a real table is measured on Adult.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import sfumato
from benchmarks.section import Section, Table
from benchmarks.tables import Options, without_columns
from benchmarks.timing import best_alternating
from sfumato import Policy
from sfumato.pipeline.prepare import read_table, table_for
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.studies.trial import trial_draft, trial_release
from sfumato.synthetic import Agrawal

RECORDS = 1_000_000
K = 100
# What is to be predicted, by the function that decides it; what is to be selected is the first group of class C2.
FUNCTIONS = {"C2": "class", "R7": "target"}
WHERE = "age < 40 and salary >= 50000 and salary <= 100000"
ADULT_TARGET, ADULT_WHERE, ADULT_K = "salary-class", "age >= 50 and sex = 'Female'", 25
ADULT_METHODS = ("hilbert", "mondrian", "mondrian:information-gain", "mondrian:selection")


def run(options: Options) -> Mapping[str, Table]:
    rows: list[dict[str, Any]] = []
    for function, target in FUNCTIONS.items():
        rule = "mondrian:information-gain" if target == "class" else "mondrian:regression"
        rows += _measured(options, function, target, ("mondrian", rule, "mondrian:selection"))
    return {
        "rules": Table(
            f"Split rules for a workload, {Agrawal.name} {Agrawal.version}, {options.size(RECORDS):,} records, k = {K}",
            rows,
            [
                "Seconds are those of forming the classes, after one uncounted run; the ratio is to the median of the "
                "same table. Entropy in bits; squared error as a share of the variance; imprecision in records, of one "
                "selection."
            ],
            worst="ratio",
        ),
        "adult": Table(f"A workload on Adult, k = {ADULT_K}", _adult(options)),
    }


def _adult(options: Options) -> list[dict[str, Any]]:
    table = options.real("adult")
    policy = without_columns(table.policy, [ADULT_TARGET])
    policy = merge_flags(policy, k=ADULT_K, target=ADULT_TARGET, select=ADULT_WHERE)
    rows = []
    for method in ADULT_METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sfumato.SfumatoWarning)
            losses = sfumato.anonymize(table.path, policy, method=method).losses
        tasks = {task.task: task.values for task in losses.tasks}
        rows.append(
            {
                "method": method,
                "GCP": float(losses.gcp),
                "entropy": tasks["classification"]["entropy"],
                "CM": tasks["classification"]["cm"],
                "imprecision": int(tasks["selection"]["imprecision"]),
            }
        )
    return rows


def _measured(options: Options, function: str, target: str, methods: tuple[str, ...]) -> list[dict[str, Any]]:
    path, policy = _table(options, function)
    workload_policy = merge_flags(policy, k=K, target=target, select=WHERE)
    table = read_table(path, workload_policy, Progress())
    policies = {method: merge_flags(workload_policy, method=method) for method in methods}

    def partition(one: Policy) -> Callable[[], dict[str, float]]:
        def work() -> dict[str, float]:
            progress = Progress()
            trial_draft(table_for(replace(table, job=replace(table.job, progress=progress)), one))
            return progress.seconds

        return work

    runs = best_alternating(*map(partition, policies.values()), rounds=1)
    median = runs[0].phases["partition"]
    rows = []
    for (method, one), timed in zip(policies.items(), runs, strict=True):
        release = trial_release(table_for(table, one))
        tasks = {task.task: task.values for task in release.losses.tasks}
        numbers = tasks.get("regression", {})
        rows.append(
            {
                "function": function,
                "method": method,
                "seconds": timed.phases["partition"],
                "ratio": timed.phases["partition"] / median,
                "classes": release.audit.classes,
                "GCP": release.losses.gcp,
                "entropy": tasks.get("classification", {}).get("entropy"),
                "squared error": numbers["wmse"] / numbers["variance_of_table"] if numbers else None,
                "imprecision": tasks["selection"]["imprecision"],
            }
        )
    return rows


def _table(options: Options, function: str) -> tuple[Path, Policy]:
    path, policy = options.generated(Agrawal.name, Agrawal.version, options.size(RECORDS), function=function)
    return path, Policy.load(policy)


SECTION = Section(
    run,
    timed=True,
    parameters={
        "records": RECORDS,
        "k": K,
        "select": WHERE,
        "adult": {"k": ADULT_K, "target": ADULT_TARGET, "select": ADULT_WHERE},
    },
    tables=("adult",),
)
