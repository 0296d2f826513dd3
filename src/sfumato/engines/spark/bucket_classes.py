"""The classes of one bucket: formed by a method of the memory engine, tested, and recoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.counted_columns import coded_workload
from sfumato.engines.spark.buckets import BUCKET
from sfumato.engines.spark.column_profiles import CountedColumn
from sfumato.engines.spark.line_keys import CODES, TIE, LineEncoder, from_binary, tie_hashes
from sfumato.engines.spark.row_chunks import CHUNK, CHUNK_ROWS, packed, plain, unpacked
from sfumato.engines.spark.session import Session, in_our_words, shared
from sfumato.engines.spark.spark_tables import one_array
from sfumato.engines.spark.stored_chunks import StoredChunks, stored_chunks
from sfumato.losses.exact_costs import exact_costs
from sfumato.methods import method_named
from sfumato.methods.auto import improvement_of, limits_of
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice.lattice_method import LevelRecoding
from sfumato.methods.level_parts import divided
from sfumato.methods.method import FAST, ClassBatch, Effort, Records
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.local_recoding import RecodedColumn, Recoder
from sfumato.requirements import Requirements
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.domains import Codes, Domain, NumericDomain
from sfumato.tables.coding.sorting import collapse

FILE_RECORDS = 1 << 20  # records of a file of the release
SAMPLE_A_FILE = 200  # sampled records for each file of the release
SHOWN, SAMPLE, ENDS, SIZE = "shown", "sample", "ends", "size"


@dataclass(frozen=True)
class BucketTask:
    """What an executor has to know to form the classes of a bucket.

    carried: the passthrough columns in chunks, by name. sensitive, targets: the counted columns, by name. search:
    whether classes are improved by search afterwards, as far as the effort allows. levels: what records show, if the
    method chose a level for every column.
    """

    method: str
    policy: Policy
    requirements: Requirements
    line_encoder: LineEncoder
    carried: Mapping[str, str]
    sensitive: Mapping[str, CountedColumn] = field(default_factory=dict)
    targets: Mapping[str, CountedColumn] = field(default_factory=dict)
    search: bool = False
    file_records: int = FILE_RECORDS
    levels: LevelRecoding | None = None

    @property
    def domains(self) -> Sequence[Domain]:
        return self.line_encoder.domains

    @property
    def effort(self) -> Effort:
        return Effort.asked(self.policy.method) if self.search else FAST

    def records(self, codes: Codes, columns: Mapping[str, pa.Array]) -> Records:
        """Return records in the form that methods take. They are numbered by their position in ``codes``.

        columns: the counted columns, by name.
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
        """The names of the counted columns."""
        return [*self.sensitive, *(name for name in self.targets if name not in self.sensitive)]


def classes_of(task: BucketTask, records: Records) -> ClassBatch:
    """Form the classes of a bucket, and test every class, as the memory engine does."""
    return ClassBatch.joined([_classes_of_part(task, part) for part in divided(records, task.requirements)])


def _classes_of_part(task: BucketTask, records: Records) -> ClassBatch:
    method, progress = method_named(task.method), Progress()
    batch = ClassBatch.joined(list(method.classes(records, task.requirements, progress)))
    if task.search:
        improvement = improvement_of(batch, records, task.requirements)
        improvement.improve(limits_of(records.effort, task.requirements, records.count, len(records.domains)), progress)
        batch = improvement.batch
    holds = task.requirements.holds(Counting(records, task.requirements).runs(batch.rows, batch.starts))
    if not holds.all() or len(batch.rows) != records.count:
        raise AssertionError(f"{method.name} made a class that does not meet the requirements, or lost a record")
    return batch


def write_classes(
    session: Session, coded: StoredChunks, task: BucketTask, number: NDArray[np.int64], path: str
) -> StoredChunks:
    """Bring the records of every bucket together, form its classes, and write what they show.

    number: int64[buckets], the number of each bucket after joining.
    """
    from pyspark.sql.types import BinaryType, StructField, StructType

    schema = StructType([StructField(name, BinaryType()) for name in (SHOWN, CHUNK, SAMPLE, ENDS)])
    known = shared(session, task)

    def classed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = known.value
        held = [batch for batch in batches if batch.num_rows]  # a partition is a bucket, a batch is a part of it
        if not held:
            return
        chunks = pa.Table.from_batches(held)
        if len(chunks.column(BUCKET).unique()) > 1:
            raise AssertionError("a partition has more than one bucket")
        table = unpacked(chunks.column(CHUNK)).combine_chunks()
        # Methods break ties by the number of a record, so records are numbered as in the memory engine.
        codes = task.line_encoder.codes(from_binary(one_array(table.column(CODES))))
        ties = tie_hashes(to_numpy(one_array(table.column(TIE))))
        sizes = [domain.size for domain in task.domains]
        _, line = collapse(codes, sizes, ties, shuffled=bool(task.sensitive))
        carried = _taken(table.select(list(task.carried.values())), from_numpy(line.rows))
        counted = {name: one_array(carried.column(task.carried[name])) for name in task.counted}
        records = task.records(np.take(codes, line.rows, axis=0), counted)
        batch = classes_of(task, records) if task.levels is None else task.levels.classes(records)
        if len(batch.rows):
            yield from _released(task, batch, records.count, carried)

    with in_our_words("form the classes"):
        return stored_chunks(session, coded.together(BUCKET, number, [BUCKET, CHUNK]), classed, schema, path)


def _released(task: BucketTask, batch: ClassBatch, records: int, carried: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the classes of a bucket of so many records in canonical order, in pieces.

    A piece has what each class shows, the number of its records in the piece, and their passthrough columns; also what
    its first and its last class show. The first piece also has a sample of what records show.
    """
    domains = task.domains if task.levels is None else task.levels.domains
    recoder = Recoder(domains, records, numbered=task.policy.numbered)
    recoder.add(batch)
    recoded = recoder.finish()
    shown = pa.table({name: array for column in recoded.columns for name, array in _shown(task, column)})
    rows = from_numpy(np.argsort(recoded.class_of_row, kind="stable")[: len(batch.rows)])  # without those left out
    # Spark reads files by their sizes, and released dictionaries follow that order: so texts are not codes here.
    carried = plain(_taken(carried, rows))
    ends = np.cumsum(recoded.sizes)
    step = max(task.file_records // SAMPLE_A_FILE, 1)
    sampled = np.searchsorted(ends, np.arange(step // 2, ends[-1], step), side="right")
    sample: bytes | None = packed(shown.take(from_numpy(sampled)))
    for first in range(0, len(rows), CHUNK_ROWS):
        last = min(first + CHUNK_ROWS, len(rows))
        begin, end = np.searchsorted(ends, [first, last - 1], side="right").tolist()
        sizes = np.diff(np.clip(ends[begin : end + 1], first, last), prepend=first)
        piece = shown.slice(begin, end + 1 - begin).append_column(SIZE, from_numpy(sizes))
        ends_of_piece = packed(piece.take(from_numpy(np.array([0, piece.num_rows - 1]))))
        values = {
            SHOWN: packed(piece),
            CHUNK: packed(carried.slice(first, last - first)),
            SAMPLE: sample,
            ENDS: ends_of_piece,
        }
        yield pa.RecordBatch.from_pydict({name: pa.array([value], pa.binary()) for name, value in values.items()})
        sample = None


def _taken(table: pa.Table, rows: pa.Array) -> pa.Table:
    return table.take(rows) if table.num_columns else table


def _shown(task: BucketTask, column: RecodedColumn) -> list[tuple[str, pa.Array]]:
    """Return what the classes show for a quasi-identifier: the label, and its bounds if they are released."""
    name = f"q{[domain.name for domain in task.domains].index(column.domain.name)}"
    entry = from_numpy(column.entry)
    columns = [(name, column.labels.take(entry))]
    if column.domain.name in task.policy.numbered and column.domain.kind != "categorical":
        columns += [(f"{name}_min", column.low.take(entry)), (f"{name}_max", column.high.take(entry))]
    return columns


def shown_fields(task: BucketTask) -> list[Any]:
    """Return the Spark fields of the columns that a release shows instead of quasi-identifiers."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import (
        DateType,
        DoubleType,
        LongType,
        StringType,
        StructField,
        TimestampNTZType,
        TimestampType,
    )

    fields = []
    for q, domain in enumerate(task.domains):
        fields.append(StructField(f"q{q}", StringType()))
        if domain.name in task.policy.numbered and domain.kind != "categorical":
            assert isinstance(domain, NumericDomain)
            kind: Any = {"date": DateType(), "moment": TimestampNTZType()}.get(domain.kind, DoubleType())
            if domain.bound_type is not None:
                kind = TimestampType() if domain.kind == "moment" else from_arrow_type(domain.bound_type)
            elif domain.kind == "numeric" and domain.is_whole:
                kind = LongType()
            fields += [StructField(f"q{q}_min", kind), StructField(f"q{q}_max", kind)]
    return fields
