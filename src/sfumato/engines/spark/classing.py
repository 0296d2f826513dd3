"""One bucket at a time: its records as a method of the memory engine takes them, its classes, and what they show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.engines.counted import coded_workload
from sfumato.engines.spark.division import BUCKET, Assign, slots, with_bucket
from sfumato.engines.spark.places import PLACE, ROW, TIE, Placing, from_binary
from sfumato.engines.spark.profiling import CountedColumn
from sfumato.engines.spark.reading import one_array, written
from sfumato.engines.spark.session import Frame, Session, as_a_task, in_our_words, shared
from sfumato.losses.costs import exact_costs
from sfumato.methods import method_named
from sfumato.methods.auto import limits_of
from sfumato.methods.counting import Counting
from sfumato.methods.improving import Improvement
from sfumato.methods.method import ClassBatch, Effort, Records
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.arrays import from_numpy
from sfumato.tables.domains import Codes, Domain
from sfumato.tables.sorting import collapse

BATCH = 1 << 16


@dataclass(frozen=True)
class Work:
    """What an executor has to know to form the classes of a bucket.

    sensitive, targets: by name; carried: the columns that ride along, by name.
    """

    method: str
    policy: Policy
    requirements: Requirements
    placing: Placing
    carried: Mapping[str, str]
    sensitive: Mapping[str, CountedColumn] = field(default_factory=dict)
    targets: Mapping[str, CountedColumn] = field(default_factory=dict)
    search: bool = False  # classes are made better afterwards, as far as the effort allows

    @property
    def domains(self) -> Sequence[Domain]:
        return self.placing.domains

    @property
    def effort(self) -> Effort:
        return Effort(self.policy.method.effort) if self.search else Effort()

    def records(self, codes: Codes, columns: Mapping[str, pa.Array]) -> Records:
        """Some records, in the order of the line; they are numbered by their place among these.

        columns: those that are counted, by name.
        """
        distinct, line = collapse(codes, [domain.size for domain in self.domains])
        weights = [self.policy.columns[domain.name].weight for domain in self.domains]
        workload = None
        if self.policy.workload:
            workload = coded_workload(self.policy, self.domains, lambda name: self.targets[name].of(columns[name]))
        return Records(
            distinct,
            line.starts,
            line.rows,
            self.domains,
            exact_costs(self.domains, weights, len(codes)),
            {name: counted.of(columns[name]) for name, counted in self.sensitive.items()},
            seed=self.policy.release.seed,
            effort=self.effort,
            workload=workload,
        )

    @property
    def counted(self) -> list[str]:
        """The columns that have to be in codes."""
        return [*self.sensitive, *(name for name in self.targets if name not in self.sensitive)]


def classes_of(work: Work, records: Records) -> ClassBatch:
    """The classes of a bucket. Every one is tested, as the memory engine tests its own."""
    method, progress = method_named(work.method), Progress()
    batch = ClassBatch.joined(list(method.classes(records, work.requirements, progress)))
    if work.search:
        improvement = Improvement(batch, records, work.requirements)
        improvement.improve(limits_of(records.effort, work.requirements, records.count), progress)
        batch = improvement.batch
    holds = work.requirements.holds(Counting(records, work.requirements).runs(batch.rows, batch.starts))
    if not holds.all() or len(batch.rows) != records.count:
        raise AssertionError(f"{method.name} made a class that does not meet the requirements, or lost a record")
    return batch


def write_classes(session: Session, coded: Frame, work: Work, assign: Assign, buckets: int, path: str) -> Frame:
    """Bring the records of every bucket together, form its classes, and write what they show."""
    from pyspark.sql.types import StructField, StructType

    carried = list(work.carried.values())
    fields = {one.name: one.dataType for one in coded.schema.fields}
    schema = StructType([*_shown_fields(work), *(StructField(name, fields[name]) for name in carried)])
    known = shared(session, work)

    def classed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        work = known.value
        held = [batch for batch in batches if batch.num_rows]  # batches are not buckets: the partition is one
        if not held:
            return
        table = pa.Table.from_batches(held).combine_chunks()
        if len(table.column(BUCKET).unique()) > 1:
            raise AssertionError("a partition has more than one bucket")
        codes = work.placing.codes(from_binary(one_array(table.column(PLACE))))
        counted = {name: one_array(table.column(work.carried[name])) for name in work.counted}
        batch = classes_of(work, work.records(codes, counted))
        yield from _released(work, batch, table)

    numbers = slots(buckets)
    with in_our_words("form the classes"):
        together = with_bucket(session, coded, assign, [PLACE, TIE, ROW, *carried], numbers)
        together = together.repartition(buckets, BUCKET).sortWithinPartitions(PLACE, TIE, ROW)
        return written(session, together.mapInArrow(classed, schema), path)


def _released(work: Work, batch: ClassBatch, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The records of the classes: what each shows, and what rides along. Their order is of no account yet."""
    class_of = np.repeat(np.arange(len(batch.low)), np.diff(batch.starts))
    shown = [column for q in range(len(work.domains)) for column in _shown(work, batch, q)]
    names = [one.name for one in _shown_fields(work)] + list(work.carried.values())
    for first in range(0, len(class_of), BATCH):
        owner = from_numpy(class_of[first : first + BATCH])
        rows = from_numpy(batch.rows[first : first + BATCH])
        carried = [one_array(table.column(name)).take(rows) for name in work.carried.values()]
        yield pa.RecordBatch.from_arrays([*(column.take(owner) for column in shown), *carried], names)


def _shown(work: Work, batch: ClassBatch, q: int) -> list[pa.Array]:
    """What the classes show for one quasi-identifier: the label, and its bounds where they are released."""
    domain = work.domains[q]
    shown = domain.release(batch.low[:, q], batch.high[:, q])
    entry: pa.Array = from_numpy(np.asarray(shown.index, np.int64))
    columns = [shown.labels.take(entry)]
    if work.policy.release.bounds and domain.kind != "categorical":
        columns += [shown.low.take(entry), shown.high.take(entry)]
    return columns


def _shown_fields(work: Work) -> list[Any]:
    from pyspark.sql.types import DateType, DoubleType, LongType, StringType, StructField, TimestampNTZType

    fields = []
    for q, domain in enumerate(work.domains):
        fields.append(StructField(f"q{q}", StringType()))
        if work.policy.release.bounds and domain.kind != "categorical":
            whole = domain.values.dtype.kind == "i"  # type: ignore[attr-defined]
            numbers = LongType() if whole else DoubleType()
            kind = {"date": DateType(), "moment": TimestampNTZType()}.get(domain.kind, numbers)
            fields += [StructField(f"q{q}_min", kind), StructField(f"q{q}_max", kind)]
    return fields
