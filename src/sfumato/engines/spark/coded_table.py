"""The coded table: every record with its place on the line, in chunks of one bucket each. All later jobs read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.engine import Job
from sfumato.engines.spark.buckets import AssignBucket, LineSample, coded_schema, in_buckets
from sfumato.engines.spark.column_profiles import (
    ColumnCounts,
    CountedColumn,
    counts_of,
    encoder_of,
    most_values,
    sensitive_of,
    target_of,
)
from sfumato.engines.spark.input_scan import InputChunks, row_source, store_input
from sfumato.engines.spark.line_keys import CODES, ROW, TIE, LineEncoder, to_binary
from sfumato.engines.spark.row_chunks import CHUNK, CHUNK_ROWS, HELD_ROWS, joined, opened
from sfumato.engines.spark.session import Session, in_our_words, shared
from sfumato.engines.spark.spark_tables import columns, one_array
from sfumato.engines.spark.stored_chunks import StoredChunks, stored_chunks
from sfumato.engines.spark.tally import TableTally, tally_of
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.outside_taxonomy import or_problem, without_problems
from sfumato.tables.coding.profile import Encoder
from sfumato.tables.coding.row_hash import hashed_columns


@dataclass(frozen=True)
class RunColumns:
    """The columns of a run, numbered: first the quasi-identifiers, then the passthrough columns."""

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
    """A sample of the table. codes: uint[s, d]. ties: int64[s], ascending.

    weight: the number of records that each one stands for. columns: the counted columns, by name.
    """

    codes: Codes
    ties: NDArray[np.int64]
    weight: float
    columns: Mapping[str, pa.Array]

    def placed(self, line_encoder: LineEncoder) -> LineSample:
        """Return the sample in the order of the line."""
        places = line_encoder.places(self.codes)
        columns: list[NDArray[Any]] = [places[:, byte] for byte in range(places.shape[1] - 1, -1, -1)]
        order = np.lexsort([self.ties, *columns])
        places, ties = np.ascontiguousarray(places[order]), self.ties[order]
        first = np.ones(len(ties), np.bool_)
        first[1:] = (places[1:] != places[:-1]).any(axis=1) | (np.diff(ties) != 0)
        counts = np.diff(np.append(np.flatnonzero(first), len(ties)))
        return LineSample(np.ascontiguousarray(places[first]), ties[first], (counts * self.weight).astype(np.float64))

    def few(self, most: int) -> tuple[Codes, dict[str, pa.Array]]:
        """Return at most ``most`` of the records, evenly by their ties, with the counted columns."""
        chosen = np.arange(0, len(self.ties), max(-(-len(self.ties) // most), 1))
        taken = {name: column.take(from_numpy(chosen)) for name, column in self.columns.items()}
        return np.take(self.codes, chosen, axis=0), taken


def sample_of(
    stored: InputChunks, encoders: Sequence[Encoder], bits: int, counted: Mapping[str, str]
) -> SampledRecords:
    """Take the sample of a run. counted: the counted columns, by name."""
    table = stored.sample(bits)
    codes = np.zeros(
        (table.num_rows, len(encoders)), np.min_scalar_type(max(encoder.domain.size for encoder in encoders) - 1)
    )
    for q, encoder in enumerate(encoders):
        codes[:, q] = encoder.encode(one_array(table.column(q)))
    ties = to_numpy(one_array(table.column(TIE))).astype(np.int64)
    order = np.lexsort([*codes.T, ties])  # Spark returns rows in any order
    taken = {name: one_array(table.column(column)).take(from_numpy(order)) for name, column in counted.items()}
    return SampledRecords(codes[order], ties[order], float(1 << bits), taken)


def write_coded(
    session: Session,
    stored: InputChunks,
    columns: RunColumns,
    encoders: Sequence[Encoder],
    line_encoder: LineEncoder,
    assign: AssignBucket,
    path: str,
) -> StoredChunks:
    """Encode every record into its place, and write the records of every bucket in chunks."""
    carried = columns.carried_columns
    known = shared(session, (list(encoders), line_encoder, assign))

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encoders, line_encoder, assign = known.value
        chunks = (chunk for batch in batches for chunk in batch.column(CHUNK))
        while held := list(islice(chunks, HELD_ROWS // CHUNK_ROWS)):
            tables = [opened(chunk) for chunk in held]
            codes = np.concatenate([encoded(table, encoders, line_encoder.dtype) for table in tables])
            places = line_encoder.places(codes)
            others = joined([table.select([TIE, ROW, *carried]) for table in tables])
            coded = others.append_column(CODES, to_binary(line_encoder.packed_codes(places))).combine_chunks()
            bucket = assign(places, *(to_numpy(one_array(coded.column(name))) for name in (TIE, ROW)))
            yield from in_buckets(coded, bucket)

    with in_our_words("encode the table"):
        return stored_chunks(session, stored.chunks.tasks([CHUNK]), encode, coded_schema(), path)


def encoded(table: pa.Table, encoders: Sequence[Encoder], dtype: np.dtype[np.unsignedinteger]) -> Codes:
    """Return the codes of a chunk of the input. The values of a dictionary are encoded once."""
    codes = np.empty((table.num_rows, len(encoders)), dtype)
    for q, encoder in enumerate(encoders):
        column = one_array(table.column(q))
        if pa.types.is_dictionary(column.type):
            code_of_value = encoder.encode(pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)]))
            codes[:, q] = code_of_value[to_numpy(column.indices, len(column.dictionary))]
        else:
            codes[:, q] = encoder.encode(column)
    return codes


@dataclass(frozen=True)
class ScanOnSpark:
    """The table read once, in chunks, with the counts that were taken on the way.

    numbers: the number of each kept column. linkable: those of the columns that could undo the release.
    """

    job: Job
    columns: RunColumns
    input: InputChunks
    numbers: Mapping[str, int]
    linkable: Mapping[str, int]

    @property
    def counted(self) -> dict[str, int]:
        """The numbers of the columns whose values are counted."""
        wanted = _counted_names(self.job)
        return {name: self.numbers[name] for name in self.columns.names if name in wanted}


@dataclass(frozen=True)
class ProfileOnSpark:
    """The values of the counted columns, and the encoders of quasi-identifiers."""

    tally: TableTally
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
        return self.profile.counts[self.scan.columns.quasi[0]].records

    @property
    def domains(self) -> list[Domain]:
        return [encoder.domain for encoder in self.profile.encoders]

    @property
    def carried(self) -> dict[str, str]:
        """The columns of files by the names that users know."""
        return dict(zip(self.scan.columns.carried, self.scan.columns.carried_columns, strict=True))

    @cached_property
    def sample(self) -> SampledRecords:
        """The sample of the run."""
        counted = {name: f"c{self.scan.numbers[name]}" for name in {**self.sensitive, **self.targets}}
        return sample_of(self.scan.input, self.profile.encoders, self.sample_bits, counted)


def scan_with_spark(job: Job, session: Session, path: str) -> ScanOnSpark:
    """Read the kept columns once."""
    job.source.check(job.kept)
    quasi = list(job.policy.quasi_identifiers)
    run_columns = RunColumns(quasi, [name for name in job.kept if name not in quasi])
    numbers = {name: number for number, name in enumerate(run_columns.names)}
    accepted = {*job.policy.accept_linkable, *job.policy.sensitive}
    linkable = {name: numbers[name] for name in run_columns.carried if name not in accepted}
    counted = {numbers[name] for name in _counted_names(job) if name in numbers}
    with job.progress.phase("read"):
        alone = sorted({*counted, *linkable.values()})
        pairs = [(numbers[name], other) for other in linkable.values() for name in quasi]
        rows = row_source(session, job.source, run_columns.names)
        hashed = [numbers[name] for name in hashed_columns(run_columns.carried, job.policy.sensitive)]
        stored = store_input(session, rows, hashed, alone, pairs, path)
    return ScanOnSpark(job, run_columns, stored, numbers, linkable)


def _counted_names(job: Job) -> set[str]:
    """The columns whose values are counted: quasi-identifiers, sensitive columns, and those of the workload."""
    policy = job.policy
    return {
        *policy.quasi_identifiers,
        *job.requirements.columns,
        *policy.workload.predicted,
        *policy.workload.features,
    }


def profile_with_spark(scan: ScanOnSpark) -> ProfileOnSpark:
    """Find the values of the counted columns, and the domain of every quasi-identifier."""
    job = scan.job
    with job.progress.phase("profile"):
        most = most_values(job.source, scan.counted)
        limits = {number: most[name] for name, number in scan.counted.items()}
        tally = tally_of(scan.input.chunks, limits, scan.linkable.values())
        counts = counts_of(tally, scan.counted, most)
        options = job.policy.input_options

        def encoder(name: str) -> Encoder:
            return encoder_of(job.source, name, counts[name], job.policy, options, job.taxonomies.get(name))

        encoders = without_problems(or_problem(partial(encoder, name)) for name in scan.columns.quasi)
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
        targets = {name: target_of(name, counts[name], policy) for name in scan.columns.carried if name in workload}
    return TableOnSpark(scan, profile, sensitive, targets, sample_bits)
