"""The choice of the engine: the one that the policy names, or the one that fits the size of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from sfumato.engines.engine import Engine, Input, LearningEngine
from sfumato.engines.spark.session import is_spark_frame
from sfumato.engines.target_output import check_kept_columns, check_target_location
from sfumato.errors import UsageError
from sfumato.methods import AUTO, method_named
from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.pipeline.capabilities import (
    DISK,
    MEMORY,
    SPARK,
    STATISTICAL_FILES,
    check_method_of,
    refuse_unsupported,
    refuse_unsupported_learning,
)
from sfumato.pipeline.plan import Plan
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.tables.external.free_memory import free_memory
from sfumato.tables.locations import codebook_path
from sfumato.tables.sources.input_table import open_input
from sfumato.tables.sources.source import Source, is_statistical_file, kind_of_file
from sfumato.tables.sources.text_stream import beginning_of_text

if TYPE_CHECKING:
    from sfumato.engines.disk.engine import DiskEngine
    from sfumato.engines.memory.engine import MemoryEngine

BASE = 300 * 10**6  # what a run takes before it reads a record
RECORD, COLUMN = 40, 10  # bytes that a record takes in memory, by itself and for every column; measured
SHARE = 0.7  # of the memory that is free
COMPRESSED = 8  # times as many bytes of text as a file other than text has, at most, approximately
TEXT_COPIES = 6  # bytes that a byte of text takes in memory while its values are collected and sorted; measured


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
    force: bool = False,
    trial: bool = False,
    spark: Any = None,
) -> Chosen:
    """Choose the engine for a release and open the table, once it is clear that the engine can make the release.

    force: whether the target may be something that is no release. trial: whether the release is a trial. spark: the
    SparkOptions of the run, if there are any.
    """
    policy.check_complete()
    if wants_spark(data, policy):
        from sfumato.engines.spark.classes import SparkOptions
        from sfumato.engines.spark.engine import SparkEngine
        from sfumato.engines.spark.session import session_of
        from sfumato.engines.spark.spark_tables import open_table

        check_method_of(policy)
        refuse_unsupported(SPARK, policy)
        if is_statistical_file(data):
            STATISTICAL_FILES.refuse_on(SPARK)
        options = spark or SparkOptions()
        session = session_of(data, options.master, target)
        engine = SparkEngine(session, options, target)
        if target is not None:
            engine.check_target(data, target, tables=1, force=force, trial=trial)
        return Chosen(engine, open_table(session, data, policy.input_options))
    if target is not None:
        check_target_location(data, target, tables=tables_of(policy), force=force, trial=trial)
        if policy.release.codebook:
            from sfumato.report.codebook import check_codebook

            check_codebook(codebook_path(target), force=force)
    plan, source = plan_run(data, policy)
    if target is not None:
        check_kept_columns(policy, source, target)
    progress.decisions["engine"] = plan.as_dict()
    return Chosen(_engine(plan, progress), source, () if plan.engine == DISK else plan.warnings)


def tables_of(policy: Policy) -> int:
    """Return how many tables a release has: two if the method releases sensitive values separately."""
    return 2 if method_named(policy.method.name).separates else 1


def choose_learning_engine(data: object, policy: Policy, progress: Progress) -> tuple[LearningEngine, Input]:
    """Choose the engine that learns rules, and open the table."""
    plan, source = plan_run(data, policy, refuse_unsupported_learning)
    progress.decisions["engine"] = {"engine": plan.engine, "reason": plan.reason}
    return _engine(plan, progress), source


def _engine(plan: Plan, progress: Progress) -> DiskEngine | MemoryEngine:
    if plan.engine != DISK:
        from sfumato.engines.memory.engine import MemoryEngine

        return MemoryEngine()
    from sfumato.engines.disk.engine import DiskEngine

    return DiskEngine(plan.memory, progress)


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
    source = open_input(data, policy)
    policy.check_columns(source.names)
    columns = policy.kept_columns(source.names)
    size = _size(data, source)
    records = size.records
    needed = None if records is None else BASE + records * (RECORD + COLUMN * len(columns))
    memory = limit or int(SHARE * free_memory())
    if wanted == AUTO and records and needed is not None and needed <= memory < needed + TEXT_COPIES * size.text:
        needed += records * TEXT_COPIES * _text_of_a_record(source, columns)

    def planned(engine: str, reason: str) -> tuple[Plan, Source]:
        return Plan(engine, reason, memory, records, needed, size.stored, len(columns), policy.k, _way(policy)), source

    if wanted != AUTO:
        return planned(wanted, "asked for")
    if size.stored is None:
        return planned(MEMORY, "the table is in memory already")
    if needed is None or needed <= memory:
        return planned(MEMORY, "the table fits into memory")
    try:
        refuse(DISK, policy)
    except UsageError as error:
        return planned(MEMORY, f"the table may not fit into memory, but {error}")
    return planned(DISK, "the table does not fit into memory")


def _way(policy: Policy) -> str:
    if isinstance(method_named(policy.method.name), LatticeMethod):
        return "levels"
    if not policy.method.name.startswith("mondrian") and not (policy.workload and policy.method.name == AUTO):
        return "line"
    return "samples" if policy.engine.sampled or policy.workload.selection else "counts"


class _TableSize(NamedTuple):
    """What is known of a table before it is read. Unknown sizes are None; a frame has no bytes to be read.

    records: estimated for text. stored: bytes in files. text: bytes that its values may be, at most, approximately.
    """

    records: int | None
    stored: int | None
    text: int


def _size(data: object, source: Source) -> _TableSize:
    if not isinstance(data, str | Path):
        return _TableSize(source.rows, None, 0)
    path = Path(data)
    try:
        if path.is_dir():
            stored = sum(file.stat().st_size for file in path.rglob("*.parquet"))
            return _TableSize(source.rows, stored, stored * COMPRESSED)
        stored = path.stat().st_size
        if source.rows is not None or not source.text:
            return _TableSize(source.rows, stored, stored * COMPRESSED)
        beginning, text = beginning_of_text(path, kind_of_file(path)[1])
    except OSError:
        return _TableSize(source.rows, 0, 0)  # no file of its own, such as a table of a database
    records = text * (beginning.count(b"\n") or 1) // max(len(beginning), 1)
    return _TableSize(records, stored, text)


def _text_of_a_record(source: Source, columns: Sequence[str]) -> int:
    """Return the bytes of text that a record adds to what is in memory, by the first batch of the table.

    Text is in memory once for all records that have it, so only values that are new count.
    """
    batch = next(iter(source.batches(columns)))
    texts = [column.dictionary for column in batch.columns if pa.types.is_dictionary(column.type)]
    return int(sum(values.nbytes for values in texts) // batch.num_rows)
