"""The classes of a table on Spark: the table divided into buckets, and a method on each bucket."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfumato.engines.engine import Outcome, outcome_of
from sfumato.engines.spark.bucket_classes import FILE_RECORDS, BucketTask, write_classes
from sfumato.engines.spark.bucket_counts import BucketCounts, counted_buckets
from sfumato.engines.spark.bucket_regions import BucketRegions, grown_regions
from sfumato.engines.spark.buckets import (
    BUCKET_RECORDS,
    NO_SPLITTERS,
    Splitters,
    divided_anew,
    joined,
    refined,
    splitters_of,
)
from sfumato.engines.spark.coarsest_parts import CoarsestParts
from sfumato.engines.spark.coded_table import TableOnSpark, write_coded
from sfumato.engines.spark.file_systems import Workspace
from sfumato.engines.spark.level_search import choose_levels
from sfumato.engines.spark.line_keys import LineEncoder
from sfumato.engines.spark.session import Session
from sfumato.engines.spark.stored_chunks import StoredChunks
from sfumato.methods import AUTO, Effort, Method, chosen_name, method_named
from sfumato.methods.auto import CURVES, Auto, best_curve
from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.methods.level_parts import limited_columns
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.orderings import Hilbert
from sfumato.progress import Progress
from sfumato.requirements import KAnonymity, Requirements

TRIED_RECORDS = 1 << 16  # records that methods are tried on
TREE_RECORDS = 1 << 20  # the most records that a tree is grown on


@dataclass(frozen=True)
class SparkOptions:
    """Options of a run beside the policy.

    master: the master of a new session. bucket_records: the records of a bucket. It decides where classes may end, so
    other sizes give other classes. file_records: the records of a file of the release.
    """

    master: str | None = None
    bucket_records: int = BUCKET_RECORDS
    file_records: int = FILE_RECORDS


@dataclass(frozen=True)
class ClassesOnSpark:
    """The classes of every bucket with their records, in chunks of files."""

    chunks: StoredChunks
    task: BucketTask
    buckets: int
    outcome: Outcome


def form_classes(table: TableOnSpark, session: Session, scratch: Workspace, options: SparkOptions) -> ClassesOnSpark:
    """Encode the records into buckets, and form the classes of each bucket."""
    job = table.job
    with job.progress.phase("encode"):
        method, outcome = _method_on_spark(table, options)
        task = _task(table, method, options)
        parts = _parts(table, method, task, options)
        coded = write_coded(
            session,
            table.scan.input,
            table.scan.columns,
            table.profile.encoders,
            task.line_encoder,
            parts.of,
            scratch.path("coded"),
        )
        scratch.remove("input")
    with job.progress.phase("partition"):
        counts = _counted(table, session, coded, parts)
        if isinstance(parts, Splitters):
            finer = refined(session, coded, task.line_encoder, parts, counts.sizes, options.bucket_records)
            if finer is not parts:
                coded = divided_anew(session, coded, task.line_encoder, parts, finer, scratch.path("divided"))
                counts = _counted(table, session, coded, finer)
        if isinstance(method, LatticeMethod):
            number = np.arange(len(counts.sizes))
            task = replace(task, levels=choose_levels(table, session, coded, task, method))
            outcome = outcome_of(method.name, job.progress)
        elif isinstance(parts, Splitters):
            number = joined(counts.holds, counts.sizes)
        else:
            number = parts.joined(counts)
        chunks = write_classes(session, coded, task, number, scratch.path("classes"))
        scratch.remove("coded")
        scratch.remove("divided")
    return ClassesOnSpark(chunks, task, int(number.max()) + 1, outcome)


def _task(table: TableOnSpark, method: Method, options: SparkOptions) -> BucketTask:
    """Return what executors have to know. Methods without a line of their own take records along the Hilbert curve."""
    settings = table.job.policy.method
    return BucketTask(
        method.name,
        table.job.policy,
        table.job.requirements,
        LineEncoder(method.ordering if isinstance(method, OptimalOneDimensional) else Hilbert(), table.domains),
        table.carried,
        table.sensitive,
        table.targets,
        settings.name == AUTO and Effort.asked(settings).is_thorough,
        options.file_records,
    )


Parts = Splitters | BucketRegions | CoarsestParts


def _parts(table: TableOnSpark, method: Method, task: BucketTask, options: SparkOptions) -> Parts:
    """Divide the table into buckets: by the coarsest levels, at splitters of a line, or into the regions of a tree."""
    on_levels = isinstance(method, LatticeMethod)
    if limited_columns(table.domains) and not on_levels:
        return CoarsestParts(task.line_encoder, options.bucket_records)
    buckets = -(-table.count // options.bucket_records)
    if buckets < 2:
        return NO_SPLITTERS
    if isinstance(method, OptimalOneDimensional) or on_levels:
        return splitters_of(table.sample.placed(task.line_encoder), buckets)
    dividing = MondrianMethod(rule=method.rule) if isinstance(method, MondrianMethod) else MondrianMethod()
    records = task.records(*table.sample.few(TREE_RECORDS))
    return grown_regions(
        records, table.job.requirements, dividing, table.count, options.bucket_records, task.line_encoder
    )


def _method_on_spark(table: TableOnSpark, options: SparkOptions) -> tuple[Method, Outcome]:
    """Return the method of the policy; ``auto`` is what the workload needs, or the better of two lines on a sample."""
    method = method_named(table.job.policy.method.name)
    if not isinstance(method, Auto):
        return method, Outcome(method.name)
    codes, counted = table.sample.few(TRIED_RECORDS)
    records = _task(table, CURVES[0], options).records(codes, counted)
    if records.workload is not None:
        method = method_named(chosen_name(AUTO, records.workload))
        return method, Outcome(method.name)
    # Which line is shorter hardly depends on the other requirements.
    k = min(table.job.requirements.least_class, len(codes))
    curve, choice = best_curve(records, Requirements((KAnonymity(k),)), Progress())
    return curve, Outcome(curve.name, choice)


def _counted(table: TableOnSpark, session: Session, coded: StoredChunks, parts: Parts) -> BucketCounts:
    sensitive = {name: (table.carried[name], column) for name, column in table.sensitive.items()}
    return counted_buckets(session, coded, parts.buckets, sensitive, table.job.requirements)
