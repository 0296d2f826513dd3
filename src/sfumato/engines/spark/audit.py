"""The audit and the losses of a release as a Spark job: every partition has whole classes and is judged as in memory.

Spark counts equal rows first, so that a class of millions is a few rows. The audit shares only the session and the
reading of files with the code that made the release.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import pyarrow as pa

from sfumato.engines.spark.mounted_parquet import parts_of
from sfumato.engines.spark.session import Frame, Session, as_a_task, in_our_words, shared
from sfumato.errors import AuditError
from sfumato.evaluation.audit.audit import ClassVerdicts, class_key, verdicts_of_classes
from sfumato.evaluation.public_figures import Examination, PublicTotals
from sfumato.evaluation.release_losses import losses_of, measure_classes
from sfumato.losses.all_losses import Measurement
from sfumato.policy import Policy
from sfumato.requirements import Requirements
from sfumato.tables.coding.arrow_arrays import to_numpy
from sfumato.tables.coding.domains import Domain
from sfumato.tables.released_classes import ColumnTotals, find_classes
from sfumato.tables.sources.in_memory_source import CollectedSource
from sfumato.taxonomies.taxonomy import Taxonomy

PART_ROWS = 1 << 18  # distinct rows of a task, if as many are expected


def audit_and_measure_by_spark(
    session: Session,
    release: Frame,
    policy: Policy,
    requirements: Requirements,
    taxonomies: Mapping[str, Taxonomy],
    domains: Sequence[Domain],
    *,
    records: int,
) -> Examination:
    """Judge and measure a finished release. records: the number of records of the original."""
    from pyspark import TaskContext
    from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

    names = list(release.columns)
    key = class_key(policy, names)
    others = [name for name in requirements.columns if name not in key]
    numbered = {name: f"c{number}" for number, name in enumerate(names)}
    plain = release.toDF(*numbered.values()).select(*(numbered[name] for name in (*key, *others)))
    totals = {name: _totals(plain, numbered[name], policy) for name in requirements.attributes}
    grouped = _counted(session, release, plain, {name: numbered[name] for name in (*key, *others)})
    weights = policy.weights(domains)
    known = shared(session, (policy, requirements, dict(taxonomies), list(domains), totals, weights))
    schema = StructType([StructField("part", IntegerType()), StructField("examined", BinaryType())])

    def examine(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        policy, requirements, taxonomies, domains, totals, weights = known.value
        table = pa.Table.from_batches(held).rename_columns([*key, *others, ""])
        counts = to_numpy(table.column("").combine_chunks())
        table = table.drop_columns("")
        source = CollectedSource.of_table(table, kind="pyarrow", where="the release")
        classes = find_classes(source, key, by_row=bool(requirements.columns), counts=counts)
        findings = verdicts_of_classes(source, classes, policy, requirements, taxonomies, totals=totals)
        cost = policy.release.suppression_cost
        measured = measure_classes(classes, domains, weights, records=records, k=policy.k, suppression_cost=cost)
        totals_of_part = PublicTotals.of(classes, policy, taxonomies)
        context = TaskContext.get()
        part = pa.array([-1 if context is None else context.partitionId()], pa.int32())
        yield pa.RecordBatch.from_arrays(
            [part, pa.array([pickle.dumps((findings, measured, totals_of_part))], pa.binary())], schema.names
        )

    # What a class shows is one row, but for its sensitive values. Were there smaller classes, parts would be larger.
    counted = records if others else records // policy.k
    parts = max(-(-counted // PART_ROWS), 1)
    keyed = [numbered[name] for name in key]
    with in_our_words("audit the release"):
        together = grouped.repartition(parts, *keyed).sortWithinPartitions(*grouped.columns)
        rows = together.mapInArrow(examine, schema).collect()
    # In the order of parts, so that sums of fractions are the same in every run.
    examined: list[tuple[ClassVerdicts, Measurement, PublicTotals]] = [
        pickle.loads(row["examined"])  # noqa: S301 - our own executors wrote it
        for row in sorted(rows, key=lambda row: row["part"])
    ]
    if not examined:
        raise AuditError("the release has no records; it was withheld. This is a fault in Sfumato: please report it.")
    verdicts, measurements, public = zip(*examined, strict=True)
    findings: ClassVerdicts = reduce(lambda first, second: first.joined(second, requirements), verdicts)
    losses = losses_of(reduce(Measurement.join, measurements), domains)
    return Examination(findings.report(policy, names), losses, reduce(PublicTotals.join, public))


def _counted(session: Session, release: Frame, plain: Frame, names: Mapping[str, str]) -> Frame:
    """Return every distinct row with its count. Equal rows of different files may come once for each file.

    plain: the counted columns, under their new names.
    """
    from pyspark.sql.types import LongType, StructField, StructType

    parts = parts_of(session, release, names)
    if parts is None:
        return plain.groupBy(*plain.columns).count()
    listed, read = parts
    columns = list(names.values())

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        for table in read(batches):
            counted = table.group_by(columns, use_threads=False).aggregate([([], "count_all")])
            for number, kind in enumerate(counted.schema.types):
                if pa.types.is_dictionary(kind):
                    decoded = counted.column(number).cast(kind.value_type)
                    counted = counted.set_column(number, columns[number], decoded)
            yield from counted.combine_chunks().to_batches()

    return listed.mapInArrow(count, StructType([*plain.schema.fields, StructField("count_all", LongType())]))


def _totals(plain: Frame, column: str, policy: Policy) -> ColumnTotals:
    """Count the values of a sensitive column in the whole release."""
    with in_our_words("count sensitive values"):
        counted = plain.groupBy(column).count().toArrow()
    totals: Counter[object] = Counter()
    for value, count in zip(counted.column(0).to_pylist(), counted.column(1).to_pylist(), strict=True):
        totals[None if value != value else value] += count  # noqa: PLR0124 - NaN is null
    return ColumnTotals.of(totals, policy.input.nulls, keep_null=policy.privacy.null_sensitive == "value")
