"""A release on separate worker processes, one of which is killed in every stage: a program of its own.

A process has one Spark, and that of the other tests has no executors to kill. Prints the phase of every kill.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from spark import SETTINGS

from sfumato.engines.spark import stored_chunks
from sfumato.engines.spark.classes import SparkOptions
from sfumato.pipeline.run import draft_release, published
from sfumato.policy import merge_flags
from sfumato.progress import Progress

EXECUTOR = "CoarseGrainedExecutorBackend"
POLICY = merge_flags(None, quasi_identifiers=["age", "city"], sensitive="ill", other="keep", k=5, l=2, method="hilbert")
OPTIONS = SparkOptions(bucket_records=700, file_records=1000)
PHASES = ("read", "profile", "check", "encode", "partition", "arrange", "audit")


def people(count: int = 3000) -> pa.Table:
    draw = np.random.default_rng(1)
    cities, illnesses = ["Roma", "Pisa", "Lucca"], ["flu", "cold", "none"]
    return pa.table(
        {
            "age": draw.integers(0, 60, count),
            "city": draw.choice(cities, count),
            "ill": draw.choice(illnesses, count),
            "ward": draw.choice(["a", "b", "c"], count),  # a kept column, so that the check has a job too
        }
    )


def executors() -> list[int]:
    """The executors of this program: those below it, wherever Spark put them in between."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if EXECUTOR.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))

    def ours(process: int) -> bool:
        while process > 1:
            if process == os.getpid():
                return True
            process = parents.get(process, 0)
        return False

    return sorted(process for process in found if ours(process))


class Killing(Progress):
    """Kills an executor in every stage, as soon as one of its tasks runs."""

    def __init__(self, context: Any) -> None:
        super().__init__()
        self._tracker = context.statusTracker()
        self._phase = ""
        self._stages: set[int] = set()
        self._over = threading.Event()
        self.killed: list[str] = []  # the phase of each
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def began(self, name: str, total: int | None) -> None:
        self._phase = name

    def end(self) -> None:
        self._over.set()
        self._watching.join()

    def _watch(self) -> None:
        while not self._over.wait(0.002):
            for stage in self._tracker.getActiveStageIds():
                told = self._tracker.getStageInfo(stage)
                if stage in self._stages or told is None or not told.numActiveTasks:
                    continue
                there = executors()
                if there:
                    self._stages.add(stage)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(there[len(self.killed) % len(there)], signal.SIGKILL)
                        self.killed.append(self._phase)


def main(target: Path) -> None:
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    stored_chunks.FEW_BYTES, stored_chunks.TASK_BYTES = 0, 1 << 12  # no phase is without a job, no job without tasks
    builder = SparkSession.builder.master("local-cluster[2,1,2048]").appName("sfumato kills")
    further = {"spark.deploy.maxExecutorRetries": "-1", "spark.task.maxFailures": "20", "spark.executor.memory": "1g"}
    for key, value in {**SETTINGS, **further}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    killing = Killing(session.sparkContext)
    frame = session.createDataFrame(people()).repartition(3)
    release = published(draft_release(frame, POLICY, killing, target=target, spark=OPTIONS), target)
    killing.end()
    print(json.dumps({"phases": killing.killed, "buckets": release.summary()["buckets"]}))
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
