"""How does Spark on one machine compare with the disk engine, and what do its jobs move?

Every figure covers a whole command, including the start of Spark. What tasks read, shuffle and write comes from Spark's
event log. Memory and CPU seconds are those of all processes, Java and Python.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.process_tree import TreeUsage, run_tree
from benchmarks.process_usage import ROOT
from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, GeneratedTable, Options

RECORDS = 10_000_000
K, METHOD, MASTER = 10, "hilbert", "local[2]"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.executorEnv.PYTHONPATH": str(ROOT / "src"),
}


def run(options: Options) -> Mapping[str, Table]:
    target = options.work / "disk-release.parquet"
    few = options.census(10_000)
    _disk(few, target)  # kernels
    _spark(options, few)
    rows, phases = [], []
    for records in options.sizes(RECORDS):
        table = options.census(records)
        disk = _disk(table, target)
        spark, moved, summary = _spark(options, table)
        rows.append(
            {
                "records": records,
                "disk s": disk.seconds,
                "spark s": spark.seconds,
                "ratio": spark.seconds / disk.seconds,
                "disk CPU s": disk.cpu,
                "spark CPU s": spark.cpu,
                "all processes GB": spark.peak_bytes / 1e9,
                **moved,
            }
        )
        phases.append({"records": records, **summary["seconds"], "together": spark.seconds})
    note = f"Generator {GENERATOR}, 7 quasi-identifiers, k = {K}, {METHOD}; fresh processes, kernels compiled before."
    return {
        "ratios": Table(f"Spark on {MASTER} beside the disk engine", rows, [note], worst="ratio"),
        "phases": Table("Spark: phases in seconds", phases, worst="together"),
    }


def _disk(table: GeneratedTable, target: Path) -> TreeUsage:
    usage = run_tree([*_command(table, target), "--engine", "disk"])
    target.unlink()
    return usage


def _command(table: GeneratedTable, target: Path) -> list[Any]:
    arguments = ["-o", target, "--policy", table.policy_path, "-k", K, "--method", METHOD, "--json"]
    return [sys.executable, "-m", "sfumato", "anonymize", table.path, *arguments]


def _spark(options: Options, table: GeneratedTable) -> tuple[TreeUsage, dict[str, float], dict[str, Any]]:
    target, configured = options.work / "spark-release.parquet", options.work / "spark"
    shutil.rmtree(configured, ignore_errors=True)
    (configured / "events").mkdir(parents=True)
    settings = {**SETTINGS, "spark.eventLog.dir": (configured / "events").as_uri()}
    (configured / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    command = [*_command(table, target), "--engine", "spark", "--spark-master", MASTER]
    usage = run_tree(command, {"SPARK_CONF_DIR": str(configured)})
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


SECTION = Section(run, timed=True, parameters={"records": RECORDS, "k": K, "method": METHOD, "master": MASTER})
