"""What do the split rules for a workload cost in comparison with the median, and what do they gain?

The bar: information gain on 1 million records, 9 attributes and k = 100 takes at most five times as long as the median,
in one run. The table is Agrawal's with nine quasi-identifiers; the rules predict its class and its number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.markdown import show
from benchmarks.tables import Options
from benchmarks.timing import best_alternating
from sfumato import Policy, generate
from sfumato.pipeline.prepare import read_table, table_for
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.studies.trial import trial_draft, trial_release
from sfumato.synthetic import Agrawal

K = 100
BAR = 5.0
# What is to be predicted, by the function that decides it; what is to be selected is the first group of class C2.
FUNCTIONS = {"C2": "class", "R7": "target"}
WHERE = "age < 40 and salary >= 50000 and salary <= 100000"


def run(options: Options) -> list[dict[str, Any]]:
    rows = []
    for function, target in FUNCTIONS.items():
        rule = "mondrian:information-gain" if target == "class" else "mondrian:regression"
        rows += _measured(options, function, target, ("mondrian", rule, "mondrian:selection"))
    show(
        f"Split rules for a workload, {Agrawal.name} {Agrawal.version}, {options.records[0]:,} records, k = {K}",
        rows,
        [
            "Seconds are those of forming the classes, the best of three runs taken in turns; the ratio is to the "
            f"median of the same table, and is to be at most {BAR:g} for information gain. Entropy in bits; squared "
            "error as a share of the variance; imprecision in records, of one selection.",
        ],
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

    runs = best_alternating(*map(partition, policies.values()))
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
    records = options.records[0]
    path = options.work / f"{Agrawal.name}-{Agrawal.version}-{function}-{records}" / "table.parquet"
    policy = path.with_name("table.policy.toml")
    if not (path.exists() and policy.exists()):
        path.parent.mkdir(parents=True, exist_ok=True)
        generate(Agrawal.name, records, path, function=function)
    return path, Policy.load(policy)
