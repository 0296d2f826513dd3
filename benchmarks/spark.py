"""How does Spark on one machine compare with the disk engine, what do its jobs move, and what does an executor need?

Every figure covers a whole command, including the start of Spark. What tasks read, shuffle and write comes from Spark's
event log. Memory and CPU seconds are those of all processes, Java and Python.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import sfumato
from benchmarks.markdown import show
from benchmarks.process_tree import TreeUsage, run_tree
from benchmarks.process_usage import ROOT
from benchmarks.tables import GENERATOR, Options

K, METHOD = 10, "hilbert"
LOCAL, CLUSTER = "local[2]", "local-cluster[2,1,4096]"
EXECUTOR = "CoarseGrainedExecutorBackend"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.executor.memory": "2g",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.executorEnv.PYTHONPATH": str(ROOT / "src"),
}
# GCP on Adult, 8 quasi-identifiers, k = 10: Mondrian on Spark by De Capitani di Vimercati et al.
PUBLIC_MONDRIAN = 0.112


def run(options: Options) -> dict[str, Any]:
    if importlib.util.find_spec("pyspark") is None:
        print("\nSpark is not installed: nothing was measured of it.")
        return {}
    sizes = [_beside_disk(options, records) for records in options.records]
    clusters = [_on_executors(options, records) for records in options.records]
    notes = [
        f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}, {METHOD}; fresh processes, kernels compiled before."
    ]
    show(f"Spark on {LOCAL} beside the disk engine", [_without_phases(one) for one in sizes], notes)
    show(f"Spark on {CLUSTER}: separate executors", [_without_phases(one) for one in clusters], notes)
    phases = [{"records": one["records"], "master": one["master"], **one["phases"]} for one in (*sizes, *clusters)]
    show("Spark: phases in seconds", phases)
    losses = _losses(options)
    return {"sizes": sizes, "clusters": clusters, "losses": losses}


def _without_phases(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("phases", "master")}


def _beside_disk(options: Options, records: int) -> dict[str, Any]:
    target = options.work / "disk-release.parquet"
    _disk(options, 10_000, target)  # kernels
    _spark(options, 10_000, LOCAL)
    disk = _disk(options, records, target)
    target.unlink()
    spark, moved, summary = _spark(options, records, LOCAL)
    return {
        "records": records,
        "master": LOCAL,
        "disk s": disk.seconds,
        "spark s": spark.seconds,
        "ratio": spark.seconds / disk.seconds,
        "disk CPU s": disk.cpu,
        "spark CPU s": spark.cpu,
        "all processes GB": spark.peak_bytes / 1e9,
        **moved,
        "phases": summary["seconds"],
    }


def _on_executors(options: Options, records: int) -> dict[str, Any]:
    spark, moved, summary = _spark(options, records, CLUSTER)
    return {
        "records": records,
        "master": CLUSTER,
        "spark s": spark.seconds,
        "spark CPU s": spark.cpu,
        "largest executor GB": spark.largest_part / 1e9,
        **moved,
        "phases": summary["seconds"],
    }


def _disk(options: Options, records: int, target: Path) -> TreeUsage:
    return run_tree([*_command(options, records, target), "--engine", "disk"])


def _command(options: Options, records: int, target: Path) -> list[Any]:
    table = options.census(records)
    arguments = ["-o", target, "--policy", table.policy_path, "-k", K, "--method", METHOD, "--json"]
    return [sys.executable, "-m", "sfumato", "anonymize", table.path, *arguments]


def _spark(options: Options, records: int, master: str) -> tuple[TreeUsage, dict[str, float], dict[str, Any]]:
    target, configured = options.work / "spark-release.parquet", options.work / "spark"
    shutil.rmtree(configured, ignore_errors=True)
    (configured / "events").mkdir(parents=True)
    settings = {**SETTINGS, "spark.eventLog.dir": (configured / "events").as_uri()}
    (configured / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    command = [*_command(options, records, target), "--engine", "spark", "--spark-master", master]
    usage = run_tree(command, {"SPARK_CONF_DIR": str(configured)}, EXECUTOR)
    shutil.rmtree(target)
    (events,) = (configured / "events").iterdir()
    return usage, _moved(events), json.loads(usage.output)


def _moved(events: Path) -> dict[str, float]:
    """Return what the tasks of a run read, shuffled and wrote, in GB."""
    total: Counter[str] = Counter()
    with events.open() as lines:
        for line in lines:
            event = json.loads(line)
            if event["Event"] != "SparkListenerTaskEnd" or not (metrics := event.get("Task Metrics")):
                continue
            total["read GB"] += metrics["Input Metrics"]["Bytes Read"]
            total["shuffled GB"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            total["written GB"] += metrics["Output Metrics"]["Bytes Written"]
            total["spilled GB"] += metrics["Disk Bytes Spilled"]
    return {name: total[name] / 1e9 for name in ("read GB", "shuffled GB", "written GB", "spilled GB")}


def _losses(options: Options) -> list[dict[str, Any]]:
    """Return the losses on a small table, whose single bucket is searched as in memory."""
    table, results = options.small_table(), []
    for effort in ("fast", "balanced"):
        release = sfumato.anonymize(table.path, table.policy, k=K, effort=effort, engine="spark")
        gcp = float(release.losses.gcp)
        result: dict[str, Any] = {"effort": effort, "k": K, "GCP": gcp, "smallest class": release.audit.smallest_class}
        if table.is_adult:
            result |= {"public Spark Mondrian": PUBLIC_MONDRIAN, "ratio": gcp / PUBLIC_MONDRIAN}
        results.append(result)
    show(f"Spark: loss of auto on {table.name}", results)
    return results
