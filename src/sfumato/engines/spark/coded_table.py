"""The coded table: every record with its place on the line, in chunks of a bucket each, which all later jobs read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.engine import Job
from sfumato.engines.spark.buckets import Assign, Sample, coded_schema, in_buckets
from sfumato.engines.spark.column_profiles import (
    ColumnCounts,
    CountedColumn,
    counts_of,
    encoder_of,
    sensitive_of,
    target_of,
)
from sfumato.engines.spark.input_scan import Intake, rows_of, take_in
from sfumato.engines.spark.line_keys import CODES, ROW, TIE, Placing, to_binary
from sfumato.engines.spark.row_chunks import CHUNK, CHUNK_ROWS, HELD_ROWS, opened, plain, written_chunks
from sfumato.engines.spark.session import Frame, Session, as_a_task, in_our_words, shared
from sfumato.engines.spark.spark_tables import columns, one_array
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.profile import Encoder
from sfumato.tables.sources.source_batches import NoRecordsError


@dataclass(frozen=True)
class Kept:
    """The columns of a run: quasi-identifiers come first, those that ride along after them, each under its place."""

    quasi: Sequence[str]
    carried: Sequence[str]

    @property
    def names(self) -> list[str]:
        return [*self.quasi, *self.carried]

    @property
    def carried_columns(self) -> list[str]:
        return columns(len(self.names))[len(self.quasi) :]


@dataclass(frozen=True)
class SampledRecords:
    """Some records of the table. codes: uint[s, d]; ties: int64[s], ascending.

    weight: how many records of the table each one stands for. columns: those that are counted, by name.
    """

    codes: Codes
    ties: NDArray[np.int64]
    weight: float
    columns: Mapping[str, pa.Array]

    def placed(self, placing: Placing) -> Sample:
        """The records in their order on the line."""
        places = placing.places(self.codes)
        columns: list[NDArray[Any]] = [places[:, byte] for byte in range(places.shape[1] - 1, -1, -1)]
        order = np.lexsort([self.ties, *columns])
        places, ties = np.ascontiguousarray(places[order]), self.ties[order]
        first = np.ones(len(ties), np.bool_)
        first[1:] = (places[1:] != places[:-1]).any(axis=1) | (np.diff(ties) != 0)
        counts = np.diff(np.append(np.flatnonzero(first), len(ties)))
        return Sample(np.ascontiguousarray(places[first]), ties[first], (counts * self.weight).astype(np.float64))

    def few(self, most: int) -> tuple[Codes, dict[str, pa.Array]]:
        """At most so many of the records, evenly by the order of their ties, with the columns that are counted."""
        chosen = np.arange(0, len(self.ties), max(-(-len(self.ties) // most), 1))
        taken = {name: column.take(from_numpy(chosen)) for name, column in self.columns.items()}
        return np.take(self.codes, chosen, axis=0), taken


def sample_of(intake: Intake, encoders: Sequence[Encoder], bits: int, counted: Mapping[str, str]) -> SampledRecords:
    """The one sample of a run. counted: columns of the frame that come with it, by name."""
    table = intake.sample(bits)
    codes = np.zeros((table.num_rows, len(encoders)), np.min_scalar_type(max(one.domain.size for one in encoders) - 1))
    for q, encoder in enumerate(encoders):
        codes[:, q] = encoder.encode(one_array(table.column(q)))
    ties = to_numpy(one_array(table.column(TIE))).astype(np.int64)
    order = np.lexsort([*codes.T, ties])  # rows of Spark come in any
    taken = {name: one_array(table.column(column)).take(from_numpy(order)) for name, column in counted.items()}
    return SampledRecords(codes[order], ties[order], float(1 << bits), taken)


def write_coded(
    session: Session,
    intake: Intake,
    kept: Kept,
    encoders: Sequence[Encoder],
    placing: Placing,
    assign: Assign,
    path: str,
) -> Frame:
    """Put every record at its place, and write the records of every bucket in chunks."""
    carried = kept.carried_columns
    known = shared(session, (list(encoders), placing, assign))

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        encoders, placing, assign = known.value
        chunks = (chunk for batch in batches for chunk in batch.column(CHUNK))
        while some := list(islice(chunks, HELD_ROWS // CHUNK_ROWS)):
            tables = [opened(chunk) for chunk in some]
            codes = np.concatenate([_encoded(table, encoders, placing) for table in tables])
            places = placing.places(codes)
            others = pa.concat_tables([plain(table.select([TIE, ROW, *carried])) for table in tables])
            coded = others.append_column(CODES, to_binary(placing.packed_codes(places))).combine_chunks()
            bucket = assign(places, *(to_numpy(one_array(coded.column(name))) for name in (TIE, ROW)))
            yield from in_buckets(coded, bucket)

    with in_our_words("encode the table"):
        return written_chunks(session, intake.chunks.select(CHUNK).mapInArrow(encode, coded_schema()), path)


def _encoded(table: pa.Table, encoders: Sequence[Encoder], placing: Placing) -> Codes:
    codes = np.empty((table.num_rows, len(encoders)), placing.dtype)
    for q, encoder in enumerate(encoders):
        column = one_array(table.column(q))
        if pa.types.is_dictionary(column.type):
            of_value = encoder.encode(pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)]))
            codes[:, q] = of_value[to_numpy(column.indices, len(column.dictionary))]
        else:
            codes[:, q] = encoder.encode(column)
    return codes


@dataclass(frozen=True)
class ScanOnSpark:
    """The table read once, in chunks, with the counts that were taken on the way.

    numbers: the number of each kept column. linkable: those of the columns that could undo the release.
    """

    job: Job
    kept: Kept
    intake: Intake
    numbers: Mapping[str, int]
    linkable: Mapping[str, int]

    @property
    def counted(self) -> dict[str, int]:
        """The numbers of the columns whose values are counted."""
        wanted = _counted_names(self.job)
        return {name: self.numbers[name] for name in self.kept.names if name in wanted}


@dataclass(frozen=True)
class ProfileOnSpark:
    """The values of the counted columns, and the encoders of quasi-identifiers. tally: all counts, as a frame."""

    tally: Frame
    counts: Mapping[str, ColumnCounts]
    encoders: list[Encoder]


@dataclass(frozen=True)
class TableOnSpark:
    """A table that was read and understood. Its records are encoded when their buckets are known."""

    scan: ScanOnSpark
    profile: ProfileOnSpark
    sensitive: Mapping[str, CountedColumn]
    targets: Mapping[str, CountedColumn]
    sample_bits: int

    @property
    def job(self) -> Job:
        return self.scan.job

    @property
    def count(self) -> int:
        return self.profile.counts[self.scan.kept.quasi[0]].records

    @property
    def domains(self) -> list[Domain]:
        return [encoder.domain for encoder in self.profile.encoders]

    @property
    def carried(self) -> dict[str, str]:
        """The columns of files by the names that users know."""
        return dict(zip(self.scan.kept.carried, self.scan.kept.carried_columns, strict=True))

    @cached_property
    def sample(self) -> SampledRecords:
        """The one sample of the run."""
        counted = {name: f"c{self.scan.numbers[name]}" for name in {**self.sensitive, **self.targets}}
        return sample_of(self.scan.intake, self.profile.encoders, self.sample_bits, counted)


def scan_with_spark(job: Job, session: Session, secret: int, path: str) -> ScanOnSpark:
    """Read the kept columns once. secret: the key of the hash that orders equal records."""
    job.source.check(job.kept)
    quasi = list(job.policy.quasi_identifiers)
    kept = Kept(quasi, [name for name in job.kept if name not in quasi])
    numbers = {name: number for number, name in enumerate(kept.names)}
    accepted = {*job.policy.accept_linkable, *job.policy.sensitive}
    linkable = {name: numbers[name] for name in kept.carried if name not in accepted}
    counted = {numbers[name] for name in _counted_names(job) if name in numbers}
    with job.progress.phase("read"):
        alone = sorted({*counted, *linkable.values()})
        pairs = [(numbers[name], other) for other in linkable.values() for name in quasi]
        rows = rows_of(session, job.source, kept.names)
        intake = take_in(session, rows, secret, alone, pairs, path)
    return ScanOnSpark(job, kept, intake, numbers, linkable)


def _counted_names(job: Job) -> set[str]:
    """The columns whose values are counted: quasi-identifiers, sensitive columns, and those of the workload."""
    policy = job.policy
    return {
        *policy.quasi_identifiers,
        *job.requirements.columns,
        *policy.workload.predicted,
        *policy.workload.features,
    }


def profile_with_spark(scan: ScanOnSpark, session: Session, path: str) -> ProfileOnSpark:
    """Find the values of the counted columns, and the domain of every quasi-identifier."""
    job = scan.job
    with job.progress.phase("profile"):
        tally = scan.intake.tally(session, path)
        counts = counts_of(tally, scan.counted, job.source)
        if not counts[scan.kept.quasi[0]].records:
            raise NoRecordsError("the Spark table has no records. Give a table with at least one.")
        options = job.policy.input_options
        encoders = [
            encoder_of(job.source, name, counts[name], job.policy, options, job.taxonomies.get(name))
            for name in scan.kept.quasi
        ]
        return ProfileOnSpark(tally, counts, encoders)


def encode_with_spark(scan: ScanOnSpark, profile: ProfileOnSpark, sample_bits: int) -> TableOnSpark:
    """Put the columns that requirements and the workload count into codes."""
    job, counts = scan.job, profile.counts
    policy = job.policy
    workload = {*policy.workload.predicted, *policy.workload.features}
    with job.progress.phase("check"):
        sensitive = {
            name: sensitive_of(name, counts[name], policy, job.taxonomies.get(name))
            for name in job.requirements.columns
        }
        targets = {name: target_of(name, counts[name], policy) for name in scan.kept.carried if name in workload}
    return TableOnSpark(scan, profile, sensitive, targets, sample_bits)
