"""The choice of the engine: the one that the policy names, or the one that fits the size of the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.engines.disk.engine import DiskEngine
from sfumato.engines.engine import Engine, Input, LearningEngine
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.spark.session import is_spark_frame
from sfumato.engines.target_output import check_kept_columns, check_target_location
from sfumato.errors import UsageError
from sfumato.methods import AUTO, method_named
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.pipeline.capabilities import (
    DISK,
    MEMORY,
    SPARK,
    check_method_of,
    refuse_unsupported,
    refuse_unsupported_learning,
)
from sfumato.pipeline.plan import Plan
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.tables.sources.source import Source, is_text_file, kind_of_file, open_source

BASE = 300 * 10**6  # what a run takes before it reads a record
RECORD, COLUMN = 40, 10  # bytes that a record takes in memory, by itself and for every column; measured
SHARE = 0.7  # of the memory that is free
LINE = 1 << 18  # bytes of text from which the length of a line is estimated
COMPRESSED = 6  # times as much text as the file has bytes, approximately


@dataclass(frozen=True)
class Chosen:
    """An engine, the open table, and what the user should know about the choice."""

    engine: Engine
    source: Input
    warnings: Sequence[str] = ()


def choose_engine(
    data: object,
    policy: Policy,
    progress: Progress,
    *,
    target: str | Path | None = None,
    spark: Any = None,
) -> Chosen:
    """Choose the engine for a release and open the table, once it is clear that the engine can make the release.

    spark: the SparkOptions of the run, if there are any.
    """
    policy.check_complete()
    if wants_spark(data, policy):
        from sfumato.engines.spark.classes import SparkOptions
        from sfumato.engines.spark.engine import SparkEngine
        from sfumato.engines.spark.session import session_of
        from sfumato.engines.spark.spark_tables import open_table

        check_method_of(policy)
        refuse_unsupported(SPARK, policy)
        options = spark or SparkOptions()
        session = session_of(data, options.master)
        engine = SparkEngine(session, options, target)
        if target is not None:
            engine.check_target(data, target, tables=1)
        return Chosen(engine, open_table(session, data, policy.input_options))
    if target is not None:
        check_target_location(data, target, tables=2 if method_named(policy.method.name).separates else 1)
    plan, source = plan_run(data, policy)
    if target is not None:
        check_kept_columns(policy, source, target)
    progress.decisions["engine"] = plan.as_dict()
    if plan.engine == DISK:
        return Chosen(DiskEngine(plan.memory, progress), source)
    return Chosen(MemoryEngine(), source, plan.warnings)


def choose_learning_engine(data: object, policy: Policy, progress: Progress) -> tuple[LearningEngine, Input]:
    """Choose the engine that learns rules, and open the table."""
    plan, source = plan_run(data, policy, refuse_unsupported_learning)
    progress.decisions["engine"] = {"engine": plan.engine, "reason": plan.reason}
    if plan.engine == DISK:
        return DiskEngine(plan.memory, progress), source
    return MemoryEngine(), source


def wants_spark(data: object, policy: Policy) -> bool:
    """Whether a run is for the Spark engine: the policy names it, or the table is a frame of Spark."""
    if not is_spark_frame(data):
        return policy.engine.name == SPARK
    if policy.engine.name not in (AUTO, SPARK):
        raise UsageError(
            f"the {policy.engine.name} engine cannot read a DataFrame of Spark. Leave the engine out, or turn the "
            "frame into another kind, such as with toArrow()."
        )
    return True


def plan_run(
    data: object, policy: Policy, refuse: Callable[[str, Policy], None] = refuse_unsupported
) -> tuple[Plan, Source]:
    """Plan a run on this machine, and open its table. refuse: raises UsageError for what an engine cannot do."""
    wanted, limit = policy.engine.name, policy.engine.memory
    check_method_of(policy)
    if wanted in (DISK, SPARK):
        refuse(wanted, policy)
    source = open_source(data, policy.input_options)
    policy.check_columns(source.names)
    columns = len(policy.kept_columns(source.names))
    records, size = _size(data, source)
    needed = None if records is None else BASE + records * (RECORD + COLUMN * columns)
    memory = limit or int(SHARE * free_memory())

    def planned(engine: str, reason: str) -> tuple[Plan, Source]:
        return Plan(engine, reason, memory, records, needed, size, columns, policy.k, _way(policy)), source

    if wanted != AUTO:
        return planned(wanted, "asked for")
    if size is None:
        return planned(MEMORY, "the table is in memory already")
    if needed is None or needed <= memory:
        return planned(MEMORY, "the table fits into memory")
    try:
        refuse(DISK, policy)
    except UsageError as error:
        return planned(MEMORY, f"the table may not fit into memory, but {error}")
    return planned(DISK, "the table does not fit into memory")


def _way(policy: Policy) -> str:
    if not policy.method.name.startswith(MondrianMethod().name) and not (
        policy.workload and policy.method.name == AUTO
    ):
        return "line"
    return "samples" if policy.engine.sampled or policy.workload.selection else "counts"


def free_memory() -> int:
    """Return the memory that this process can still get: of the machine, or of its control group."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")] if hasattr(os, "sysconf") else [4 * 10**9]
    for path, key in (("/proc/meminfo", "MemAvailable:"), ("/sys/fs/cgroup/memory.max", "")):
        try:
            lines = Path(path).read_text("ascii").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        for line in lines:
            words = line.removeprefix(key).split()
            if line.startswith(key) and words and words[0].isdecimal():
                found.append(int(words[0]) * (1024 if len(words) > 1 else 1))
                break
    return min(found)


def _size(data: object, source: Source) -> tuple[int | None, int | None]:
    """Estimate the records of a table, and return the size of its file. A frame has no bytes to be read."""
    if not isinstance(data, str | Path):
        return source.rows, None
    path = Path(data)
    try:
        if path.is_dir():
            return source.rows, sum(file.stat().st_size for file in path.rglob("*.parquet"))
        size = path.stat().st_size
        if source.rows is not None or not is_text_file(path):
            return source.rows, size
        with path.open("rb") as file:
            text = file.read(LINE)
    except OSError:
        return source.rows, 0  # no file of its own, such as a table of a database
    if kind_of_file(path)[1] is not None:
        return size * COMPRESSED // 64, size
    return size * (text.count(b"\n") or 1) // max(len(text), 1), size
