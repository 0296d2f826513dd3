"""The coded table: the records of the input, packed into a file and put in order. All later passes read it.

The input is read twice. The first reading collects the values of every column, the second packs the records. They are
then sorted by their codes and their hashes, as in the memory engine, so that no later pass depends on the order of the
input. Any part of the table can be turned into ``Records``, as the memory engine makes them from the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.counted_columns import coded_target, coded_values, coded_workload
from sfumato.engines.disk.passthrough_columns import PackedPassthrough, PassthroughProfiler
from sfumato.engines.disk.profiling_watch import ProfilingWatch
from sfumato.engines.disk.record_order import OrderedWords
from sfumato.engines.engine import Job
from sfumato.kernels.threads import ahead, in_threads, in_threads_ahead, slices
from sfumato.losses.exact_costs import Costs, exact_costs
from sfumato.methods.coded_workload import CodedWorkload
from sfumato.methods.method import Effort, Records, SensitiveValues
from sfumato.policy import Policy
from sfumato.requirements import ClassCounts, Histogram
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.outside_taxonomy import or_problem, without_problems
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.profile import Collector, Encoder, add_column, profiler_of
from sfumato.tables.coding.row_hash import hashed_columns, row_hashes
from sfumato.tables.coding.sorting import WORD, Field, SortedRows, bits_for, collapse
from sfumato.tables.external.external_sort import sorted_ranges
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.memory_limit import MemoryLimit
from sfumato.tables.external.packed_records import CODES, ROW, PackedFile, Rows, packed_file
from sfumato.tables.external.record_words import WORDS, Words, sorted_words, words_of
from sfumato.tables.external.scratch import Scratch

SAMPLE = 1 << 16  # records of the sample
BATCH = 1 << 18  # records that a thread takes at once

# The values of passthrough columns, by the key of the column: packed records, or columns that are not packed yet.
Carried = Rows | Mapping[str, NDArray[np.unsignedinteger]]


@dataclass(frozen=True)
class PackedCountedColumn:
    """A packed column that is counted. values: the code of each value, in the order of ``PackedPassthrough.values``."""

    column: PackedPassthrough
    values: SensitiveValues

    def of(self, rows: Carried) -> SensitiveValues:
        """Return the codes of the column for some records."""
        return replace(self.values, codes=self.values.codes[self.column.positions(rows[self.column.key])])

    def counts(self, rows: Carried) -> NDArray[np.int64]:
        """Count how often each value occurs in some records, without null: int64[distinct]."""
        return np.bincount(self.of(rows).codes, minlength=self.values.distinct + 1)[: self.values.distinct]


@dataclass(frozen=True)
class RecordCounts:
    """A number of records, and how often each value of the counted attributes occurs in them."""

    count: int
    values: Mapping[str, NDArray[np.int64]]

    def minus(self, other: RecordCounts) -> RecordCounts:
        """Return the counts without those of ``other``, which is a part of these records."""
        return RecordCounts(
            self.count - other.count, {name: self.values[name] - other.values[name] for name in self.values}
        )

    def plus(self, other: RecordCounts) -> RecordCounts:
        """Return the counts of these records and of others together."""
        return RecordCounts(
            self.count + other.count, {name: self.values[name] + other.values[name] for name in self.values}
        )

    def as_one_class(self, table: CodedTable) -> ClassCounts:
        """Return the records as a single class, in the form that requirements take."""
        histograms = {}
        for name, counts in self.values.items():
            known = table.sensitive[name].values
            totals = known.totals
            assert totals is not None
            occurring = np.flatnonzero(counts)
            histograms[name] = Histogram(
                np.zeros(len(occurring), np.int64),
                counts[occurring],
                occurring,
                totals / max(int(totals.sum()), 1),
                known.numbers,
                None,
                known.hierarchy,
            )
        return ClassCounts(np.array([self.count]), histograms)


@dataclass(frozen=True)
class CodedTable:
    """A table in codes in a file, ordered by its codes and then by the hashes of its rows.

    used: how often each code of each domain occurs. sensitive: with the totals of the whole table. sample: records at
    regular distances, in the order of the table.
    """

    job: Job
    file: PackedFile
    encoders: list[Encoder]
    carried: list[PackedPassthrough]
    costs: Costs
    used: list[NDArray[np.int64]]
    sensitive: Mapping[str, PackedCountedColumn]
    sample: Rows
    effort: Effort
    part: RecordCounts | None = None  # of the records, if these are a part of the table

    @property
    def policy(self) -> Policy:
        return self.job.policy

    @cached_property
    def domains(self) -> list[Domain]:
        return [encoder.domain for encoder in self.encoders]

    @property
    def count(self) -> int:
        return self.file.count

    @cached_property
    def whole(self) -> RecordCounts:
        """The counts of all records."""
        if self.part is not None:
            return self.part
        totals = {name: counted.values.totals for name, counted in self.sensitive.items()}
        return RecordCounts(self.count, {name: counts for name, counts in totals.items() if counts is not None})

    def counts(self, rows: Rows) -> RecordCounts:
        """Count packed records and their sensitive values."""
        return RecordCounts(len(rows), {name: counted.counts(rows) for name, counted in self.sensitive.items()})

    def codes_of(self, rows: Rows) -> Codes:
        """Return the quasi-identifiers of packed records: uint[n, d], C order."""
        return np.ascontiguousarray(rows[CODES])

    def codes_of_input(self) -> Iterator[Codes]:
        """Read the quasi-identifiers once more, and yield their codes in the order of the input."""
        for batch in self.job.source.batches(self.policy.quasi_identifiers):
            columns = [encoder.encode(batch.column(number)) for number, encoder in enumerate(self.encoders)]
            yield np.stack(columns, axis=1).astype(self.file.kind[CODES].base)

    def records(self, rows: Rows, *, shuffled: bool = False) -> Records:
        """Return packed records in the form that methods take. They are numbered by their position in ``rows``.

        shuffled: records of equal codes are taken in another order, as ``collapse`` explains.
        """
        codes, sizes = self.codes_of(rows), [domain.size for domain in self.domains]
        distinct, line = (None if shuffled else _collapsed(codes, sizes)) or collapse(codes, sizes, shuffled=shuffled)
        sensitive = {name: counted.of(rows) for name, counted in self.sensitive.items()}
        return Records(
            distinct,
            line.starts,
            line.rows,
            self.domains,
            self.costs,
            sensitive,
            seed=self.policy.release.seed,
            effort=self.effort,
            workload=self.workload(rows),
        )

    def workload(self, rows: Rows) -> CodedWorkload | None:
        """Return the workload of packed records, scaled by these records alone."""
        if not self.policy.workload:
            return None
        targets = self.targets
        return coded_workload(self.policy, self.domains, lambda name: targets[name].of(rows))

    @cached_property
    def targets(self) -> dict[str, PackedCountedColumn]:
        """The columns that the workload uses, by name."""
        names = {*self.policy.workload.predicted, *self.policy.workload.features}
        return {
            column.name: PackedCountedColumn(column, coded_target(distinct_column(column), self.policy))
            for column in self.carried
            if column.name in names
        }


@dataclass(frozen=True)
class ProfiledInput:
    """The result of the first reading: encoders of quasi-identifiers, packed passthrough columns, and the count."""

    encoders: list[Encoder]
    carried: list[PackedPassthrough]
    count: int


def counted_columns(job: Job) -> set[str]:
    """Return the columns whose values are counted: those of requirements and of the workload."""
    workload = job.policy.workload
    return {*job.requirements.columns, *workload.predicted, *workload.features}


def profile_input(job: Job, limit: MemoryLimit | None = None) -> ProfiledInput:
    """Read the kept columns once, and find the values of each, as far as the limit allows."""
    source, policy = job.source, job.policy
    counted = counted_columns(job)
    quasi = {
        name: profiler_of(source, name, policy.columns[name], policy.input_options, job.taxonomies.get(name))
        for name in policy.quasi_identifiers
    }
    others = {
        name: PassthroughProfiler(name, f"c{number}", source.types[name], counted=name in counted)
        for number, name in enumerate(name for name in job.kept if name not in quasi)
    }
    profilers: dict[str, Collector] = {**quasi, **others}
    watch = ProfilingWatch(job, limit, profilers, others)
    count = 0
    with job.progress.phase("profile", source.rows):
        for batch in ahead(source.batches(job.kept)):
            in_threads(partial(add_column, batch, profilers), list(profilers))
            count += batch.num_rows
            watch.after(batch)
            job.progress.advance(batch.num_rows)

        def again(name: str) -> Iterator[pa.Array]:
            for batch in source.batches([name]):
                yield batch.column(0)

        watch.at_the_end()
        encoders = without_problems(
            or_problem(partial(profiler.finish, partial(again, name))) for name, profiler in quasi.items()
        )
        return ProfiledInput(encoders, [profiler.finish() for profiler in others.values()], count)


def encode_input(job: Job, profile: ProfiledInput, budget: MemoryBudget, scratch: Scratch) -> CodedTable:
    """Read the kept columns a second time, pack the records into a file, and put them in order."""
    policy, encoders, carried = job.policy, profile.encoders, profile.carried
    domains = [encoder.domain for encoder in encoders]
    largest = max(domain.size for domain in domains)
    kind = np.dtype(
        [
            (CODES, np.min_scalar_type(largest - 1), (len(domains),)),
            *((column.key, column.stored) for column in carried),
            *([(ROW, np.min_scalar_type(profile.count))] if policy.release.keep_order else []),
        ]
    )
    columns = {column.name: column for column in carried}
    hashed = [columns[name] for name in hashed_columns(columns, policy.sensitive)]
    in_words = None if policy.release.keep_order else OrderedWords.of(kind, domains, carried, hashed)
    file = packed_file(scratch, "coded", kind if in_words is None else WORDS)
    used = [np.zeros(domain.size, np.int64) for domain in domains]
    keep_null = policy.privacy.null_sensitive == "value"
    sensitive = {}
    for column in carried:
        if column.name in job.requirements.columns:
            values = coded_values(
                distinct_column(column),
                policy.input.nulls,
                keep_null=keep_null,
                taxonomy=job.taxonomies.get(column.name),
            )
            sensitive[column.name] = PackedCountedColumn(
                column, replace(values, totals=np.zeros(values.distinct, np.int64))
            )

    def packed(batch: pa.RecordBatch) -> tuple[NDArray[Any], list[NDArray[np.int64]], list[NDArray[np.int64]]]:
        """Return records, how often each code occurs in them, and how often each value of sensitive columns does."""
        codes = [encoder.encode(batch.column(encoder.domain.name)) for encoder in encoders]
        others = {column.key: column.encode(batch.column(column.name)) for column in carried}
        rows: NDArray[Any] = _packed(codes, others, kind) if in_words is None else in_words.words(codes, others)
        occurring = [np.bincount(column, minlength=len(counts)) for column, counts in zip(codes, used, strict=True)]
        return rows, occurring, [counted.counts(others) for counted in sensitive.values()]

    with job.progress.phase("encode", profile.count):
        for rows, occurring, values_counted in in_threads_ahead(packed, job.source.batches(job.kept)):
            if policy.release.keep_order:
                rows[ROW] = np.arange(file.count, file.count + len(rows))
            for known, counts in zip(used, occurring, strict=True):
                np.add(known, counts, out=known)
            for counted, counts in zip(sensitive.values(), values_counted, strict=True):
                totals = counted.values.totals
                assert totals is not None
                totals += counts
            file.append(rows)
            job.progress.advance(len(rows))
    ordered, samples = packed_file(scratch, "ordered", kind), []
    step = -(-file.count // SAMPLE)
    with job.progress.phase("order", profile.count):
        if in_words is None:
            parts = _in_order(file, domains, hashed, budget, scratch)
        else:
            words = sorted_words(file, in_words.layout, budget.words(kind.itemsize), scratch)
            parts = in_threads_ahead(in_words.rows, _batches(ahead(words)))
        for rows in parts:
            samples.append(rows[-ordered.count % step :: step])
            ordered.append(rows)
            job.progress.advance(len(rows))
    return CodedTable(
        job,
        ordered,
        encoders,
        carried,
        exact_costs(domains, policy.weights(domains), profile.count),
        used,
        sensitive,
        np.concatenate(samples),
        Effort.asked(policy.method),
    )


def _packed(
    codes: Sequence[NDArray[np.unsignedinteger]],
    others: Mapping[str, NDArray[np.unsignedinteger]],
    kind: np.dtype[Any],
) -> Rows:
    rows = np.empty(len(codes[0]), kind)
    for q, column in enumerate(codes):
        rows[CODES][:, q] = column
    for key, values in others.items():
        rows[key] = values
    return rows


def _batches(parts: Iterator[Words]) -> Iterator[Words]:
    for part in parts:
        for begin, end in slices(len(part), BATCH):
            yield part[begin:end]


def _in_order(
    file: PackedFile,
    domains: Sequence[Domain],
    hashed: Sequence[PackedPassthrough],
    budget: MemoryBudget,
    scratch: Scratch,
) -> Iterator[Rows]:
    """Yield the records by their codes, then by their hashes. The file is removed. hashed: columns, in this order."""
    sizes = [domain.size for domain in domains]

    def ties_of(rows: Rows) -> NDArray[np.uint64]:
        return row_hashes([column.hashes(rows) for column in hashed], len(rows))

    def key(rows: Rows) -> list[Field]:
        codes = [Field(rows[CODES][:, q], bits_for(size)) for q, size in enumerate(sizes)]
        return [*codes, Field(ties_of(rows), WORD)]

    for rows in sorted_ranges(file, key, budget.rows(file.kind.itemsize), scratch):
        _, line = collapse(np.ascontiguousarray(rows[CODES]), sizes, ties_of(rows))
        yield np.take(rows, line.rows)


def run_starts(codes: Codes) -> NDArray[np.int64]:
    """Return where runs of equal records begin, with the number of records as the last entry. codes: uint[n, d]."""
    width = codes.shape[1] * codes.itemsize
    padded = np.zeros((len(codes), -(-width // 8) * 8), np.uint8)
    padded[:, :width] = codes.view(np.uint8)
    words = padded.view(np.uint64)
    begins = np.ones(len(codes) + 1, np.bool_)
    np.not_equal(words[1:, 0], words[:-1, 0], out=begins[1:-1])
    for word in range(1, words.shape[1]):
        begins[1:-1] |= words[1:, word] != words[:-1, word]
    return np.flatnonzero(begins)


def _collapsed(codes: Codes, sizes: Sequence[int]) -> tuple[Codes, SortedRows] | None:
    """Return what ``collapse`` does for records that are in order already; None for others."""
    bits = [bits_for(size) for size in sizes]
    if sum(bits) > WORD or not len(codes):
        return None
    starts = run_starts(codes)
    distinct = np.take(codes, starts[:-1], axis=0)
    keys = words_of([Field(*pair) for pair in zip(distinct.T, bits, strict=True)])
    if not (keys[1:] > keys[:-1]).all():
        return None
    return distinct, SortedRows(np.arange(len(codes), dtype=np.uint32), starts)


def distinct_column(column: PackedPassthrough) -> PassthroughColumn:
    """Return the distinct values of a column as a passthrough column."""
    if column.dictionary is not None:  # in order already, and too many to be put in order again
        codes = np.arange(len(column.dictionary) + column.has_null, dtype=np.min_scalar_type(len(column.dictionary)))
        return PassthroughColumn(column.name, column.dictionary, codes)
    return PassthroughColumn.of(column.name, pa.chunked_array([column.values]))
