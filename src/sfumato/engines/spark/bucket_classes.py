"""One bucket at a time: its records as a method of the memory engine takes them, its classes, and what they show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.counted_columns import coded_workload
from sfumato.engines.spark.buckets import BUCKET, slots
from sfumato.engines.spark.column_profiles import CountedColumn
from sfumato.engines.spark.line_keys import CODES, ROW, TIE, Placing, from_binary
from sfumato.engines.spark.row_chunks import CHUNK, CHUNK_ROWS, packed, unpacked, written_chunks
from sfumato.engines.spark.session import Frame, Session, as_a_task, in_our_words, shared
from sfumato.engines.spark.spark_tables import one_array
from sfumato.losses.exact_costs import exact_costs
from sfumato.methods import method_named
from sfumato.methods.auto import limits_of
from sfumato.methods.class_counting import Counting
from sfumato.methods.method import ClassBatch, Effort, Records
from sfumato.methods.search.improvement import Improvement
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.local_recoding import RecodedColumn, Recoder
from sfumato.requirements import Requirements
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.sorting import collapse

FILE_RECORDS = 1 << 20  # of a file of the release
SAMPLE_A_FILE = 200
SHOWN, SAMPLE, SIZE = "shown", "sample", "size"


@dataclass(frozen=True)
class BucketTask:
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
    file_records: int = FILE_RECORDS

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
        weights = self.policy.weights(self.domains)
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


def classes_of(work: BucketTask, records: Records) -> ClassBatch:
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


def write_classes(session: Session, coded: Frame, work: BucketTask, number: NDArray[np.int64], path: str) -> Frame:
    """Bring the records of every bucket together, form its classes, and write what they show.

    number: int64[buckets], that of the bucket which each is a part of.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import BinaryType, StructField, StructType

    schema = StructType([StructField(name, BinaryType()) for name in (SHOWN, CHUNK, SAMPLE)])
    known = shared(session, work)

    def classed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        work = known.value
        held = [batch for batch in batches if batch.num_rows]  # batches are not buckets: the partition is one
        if not held:
            return
        chunks = pa.Table.from_batches(held)
        if len(chunks.column(BUCKET).unique()) > 1:
            raise AssertionError("a partition has more than one bucket")
        table = unpacked(chunks.column(CHUNK)).combine_chunks()
        # Methods tell records of equal codes apart by their order, so it must be the same in every run.
        order = from_numpy(ordered(*(to_numpy(one_array(table.column(name))) for name in (TIE, ROW))))
        codes = work.placing.codes(from_binary(one_array(table.column(CODES)).take(order)))
        carried = _taken(table.select(list(work.carried.values())), order)
        counted = {name: one_array(carried.column(work.carried[name])) for name in work.counted}
        batch = classes_of(work, work.records(codes, counted))
        yield from _released(work, batch, carried)

    count = int(number.max()) + 1
    slot = sql.lit(np.array(slots(count))[number].tolist())
    with in_our_words("form the classes"):
        placed = coded.select(sql.element_at(slot, sql.col(BUCKET) + 1).alias(BUCKET), CHUNK)
        return written_chunks(session, placed.repartition(count, BUCKET).mapInArrow(classed, schema), path)


def ordered(ties: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """By ties, then by rows. Few ties are equal, so a plain sort does nearly all of it."""
    order = np.argsort(ties)
    sorted_ties = ties[order]
    equal = np.flatnonzero(sorted_ties[1:] == sorted_ties[:-1])
    if len(equal):
        places = np.union1d(equal, equal + 1)
        tied = order[places]
        order[places] = tied[np.lexsort([rows[tied], ties[tied]])]
    return order


def _released(work: BucketTask, batch: ClassBatch, carried: pa.Table) -> Iterator[pa.RecordBatch]:
    """The classes of a bucket in canonical order, in pieces: what each shows, how many records it has there, and what
    rides along with these. The first piece has a sample of what records show."""
    recoder = Recoder(work.domains, len(batch.rows), bounds=work.policy.release.bounds)
    recoder.add(batch)
    recoded = recoder.finish()
    shown = pa.table({name: array for column in recoded.columns for name, array in _shown(work, column)})
    rows = from_numpy(np.argsort(recoded.class_of_row, kind="stable"))
    carried = _taken(carried, rows)
    ends = np.cumsum(recoded.sizes)
    step = max(work.file_records // SAMPLE_A_FILE, 1)
    sampled = np.searchsorted(ends, np.arange(step // 2, ends[-1], step), side="right")
    sample: bytes | None = packed(shown.take(from_numpy(sampled)))
    for first in range(0, len(rows), CHUNK_ROWS):
        last = min(first + CHUNK_ROWS, len(rows))
        begin, end = np.searchsorted(ends, [first, last - 1], side="right").tolist()
        sizes = np.diff(np.clip(ends[begin : end + 1], first, last), prepend=first)
        piece = shown.slice(begin, end + 1 - begin).append_column(SIZE, from_numpy(sizes))
        values = (packed(piece), packed(carried.slice(first, last - first)), sample)
        yield pa.RecordBatch.from_arrays([pa.array([value], pa.binary()) for value in values], [SHOWN, CHUNK, SAMPLE])
        sample = None


def _taken(table: pa.Table, rows: pa.Array) -> pa.Table:
    return table.take(rows) if table.num_columns else table


def _shown(work: BucketTask, column: RecodedColumn) -> list[tuple[str, pa.Array]]:
    """What the classes show for one quasi-identifier: the label, and its bounds where they are released."""
    name = f"q{[domain.name for domain in work.domains].index(column.domain.name)}"
    entry = from_numpy(column.entry)
    columns = [(name, column.labels.take(entry))]
    if work.policy.release.bounds and column.domain.kind != "categorical":
        columns += [(f"{name}_min", column.low.take(entry)), (f"{name}_max", column.high.take(entry))]
    return columns


def shown_fields(work: BucketTask) -> list[Any]:
    """The columns that a release shows in place of quasi-identifiers, as Spark has them."""
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
