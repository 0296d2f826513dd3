"""The table in codes, in memory.

Codes are the smallest unsigned integers that hold every domain, row by row. Text in passthrough columns is codes too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.counted_columns import coded_target, coded_values, coded_workload
from sfumato.engines.engine import Job
from sfumato.errors import InputError
from sfumato.kernels.threads import in_threads, in_threads_ahead
from sfumato.losses.exact_costs import exact_costs
from sfumato.methods.coded_workload import CodedWorkload
from sfumato.methods.method import Effort, Records, SensitiveValues
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.compact_arrays import compact, one_type
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.outside_taxonomy import OutsideTaxonomyError, or_problem, without_problems
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.profile import Encoder, profile_column
from sfumato.tables.coding.row_hash import hashed_columns, hashes_of_column, row_hashes
from sfumato.tables.coding.sorting import SortedRows, collapse, repeated
from sfumato.tables.coding.value_order import is_missing
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy


@dataclass(frozen=True)
class Scanned:
    """Some columns of a source, read once."""

    source: Source
    table: pa.Table

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    def only(self, names: Sequence[str]) -> Scanned:
        """The named columns alone."""
        return replace(self, table=self.table.select(names))


@dataclass(frozen=True)
class ScannedInput:
    """The columns that a run needs, and the person key if the policy names one."""

    job: Job
    columns: Scanned
    person: PassthroughColumn | None


@dataclass(frozen=True)
class Encoded:
    """The quasi-identifiers in codes, and the passthrough columns.

    input_rows: uint32[n], the number of each row in the input; None while the rows are in the order of the input.
    """

    codes: Codes
    domains: list[Domain]
    carried: list[PassthroughColumn]
    input_rows: NDArray[np.uint32] | None = None

    @property
    def count(self) -> int:
        return len(self.codes)

    def in_order(self, distinct: Codes, line: SortedRows) -> Encoded:
        """Return the table with its rows in the order of ``collapse``, which returned the arguments."""
        codes = repeated(distinct, line.starts)
        carried = [column.in_order(line.rows) for column in self.carried]
        return replace(self, codes=codes, carried=carried, input_rows=line.rows)


@dataclass(frozen=True)
class TableInMemory:
    """A table that was read and understood, before any class is formed.

    encoded: its rows, ordered by their codes and then by their hashes, whatever the order of the input. Methods break
    ties by row number, so classes depend on the set of rows alone. records: as methods take them, equal ones collapsed.
    """

    job: Job
    encoded: Encoded
    records: Records

    @property
    def count(self) -> int:
        return self.encoded.count

    @property
    def domains(self) -> list[Domain]:
        return self.encoded.domains

    def used(self) -> list[NDArray[np.int64]]:
        """Count how often each code of each domain occurs."""
        codes, counts = self.records.codes, np.diff(self.records.starts)

        def counted(attribute: int) -> NDArray[np.int64]:
            used = np.bincount(codes[:, attribute], counts, minlength=self.domains[attribute].size)
            return used.astype(np.int64)  # exact: tables have less than 2 ** 53 records

        return in_threads(counted, range(len(self.domains)))

    def shared(self) -> TableInMemory:
        """The table for several runs, which share what does not depend on k or l."""
        return replace(self, records=replace(self.records, lines={}))


def scan(source: Source, names: Sequence[str], progress: Progress, coded: Collection[str] = ()) -> Scanned:
    """Read the named columns. coded: those whose numbers will be codes, so that their type does not matter."""
    chunks: dict[str, list[pa.Array]] = {name: [] for name in names}

    def compacted(batch: pa.RecordBatch) -> list[pa.Array]:
        return [compact(batch.column(name), numbers=name in coded) for name in names]

    with progress.phase("read", source.rows):
        for arrays in in_threads_ahead(compacted, source.batches(names)):
            for name, array in zip(names, arrays, strict=True):
                chunks[name].append(array)
            progress.advance(len(arrays[0]))
    return Scanned(source, pa.table({name: one_type(arrays) for name, arrays in chunks.items()}))


def profile(scanned: Scanned, policy: Policy, taxonomies: Mapping[str, Taxonomy], progress: Progress) -> list[Encoder]:
    """Find the domain of every quasi-identifier."""
    options = policy.input_options

    def encoder(name: str) -> Encoder | OutsideTaxonomyError:
        values, settings, taxonomy = scanned.table.column(name), policy.columns[name], taxonomies.get(name)
        return or_problem(lambda: profile_column(scanned.source, name, values, settings, options, taxonomy))

    with progress.phase("profile"):
        return without_problems(in_threads(encoder, policy.quasi_identifiers))


def encode(scanned: Scanned, encoders: Sequence[Encoder], progress: Progress) -> Encoded:
    """Put the table into codes."""
    domains = [encoder.domain for encoder in encoders]
    largest = max(domain.size for domain in domains)
    codes = np.empty((scanned.count, len(domains)), np.min_scalar_type(largest - 1))

    def fill(chunk: int) -> None:
        start = int(ends[chunk - 1]) if chunk else 0
        for attribute, encoder in enumerate(encoders):
            column = scanned.table.column(encoder.domain.name).chunk(chunk)
            codes[start : start + len(column), attribute] = encoder.encode(column)

    coded = {domain.name for domain in domains}
    others = [name for name in scanned.table.column_names if name not in coded]
    with progress.phase("encode"):
        ends = np.cumsum([len(chunk) for chunk in scanned.table.column(domains[0].name).chunks])
        in_threads(fill, range(len(ends)))
        columns = in_threads(lambda name: PassthroughColumn.of(name, scanned.table.column(name)), others)
    return Encoded(codes, domains, columns)


def person_column(scanned: Scanned, policy: Policy) -> PassthroughColumn | None:
    """Return the person key, or None if the policy names none. Every record must have a person."""
    name = policy.privacy.person
    if name is None:
        return None
    column = PassthroughColumn.of(name, scanned.table.column(name))
    codes, values = column.numbered
    missing = np.array([*(is_missing(value, policy.input.nulls) for value in values), True])
    unknown = int(np.count_nonzero(missing[codes]))
    if unknown:
        raise InputError(
            f"the person key {name!r} is empty in {unknown:,} records, so nobody can say whose they are. "
            "Fill it in, or leave these records out."
        )
    return column


def workload_of(encoded: Encoded, policy: Policy, progress: Progress) -> CodedWorkload:
    """Return what the policy says the release is for, in codes."""
    columns = {column.name: column for column in encoded.carried}
    with progress.phase("encode"):
        return coded_workload(policy, encoded.domains, lambda name: coded_target(columns[name], policy))


def table_in_memory(scanned: ScannedInput, encoders: Sequence[Encoder]) -> TableInMemory:
    """Encode a table, put its rows in order, and collapse its records for the methods."""
    job = scanned.job
    policy, progress = job.policy, job.progress
    encoded = encode(scanned.columns, encoders, progress)
    with progress.phase("order"):
        sizes = [domain.size for domain in encoded.domains]
        distinct, line = collapse(
            encoded.codes,
            sizes,
            _ties(encoded, scanned.person, policy),
            shuffled=bool(job.requirements.attributes),
        )
        encoded = encoded.in_order(distinct, line)
        persons = None if scanned.person is None else _person_numbers(scanned.person.in_order(line.rows))
        costs = exact_costs(encoded.domains, policy.weights(encoded.domains), encoded.count)
    with progress.phase("encode"):
        sensitive = _sensitive(encoded, job.requirements.columns, policy, job.taxonomies)
    rows = np.arange(encoded.count, dtype=np.uint32)
    records = Records(distinct, line.starts, rows, encoded.domains, costs, sensitive, persons, policy.release.seed)
    workload = workload_of(encoded, policy, progress) if policy.workload else None
    effort = Effort.asked(policy.method).within_patience(records.count)
    return TableInMemory(job, encoded, replace(records, effort=effort, workload=workload))


def _ties(encoded: Encoded, person: PassthroughColumn | None, policy: Policy) -> NDArray[np.uint64] | None:
    """Return the hash that orders rows of equal codes; None if such rows are equal in everything."""
    columns = {column.name: column for column in encoded.carried}
    hashed = [columns[name] for name in hashed_columns(columns, policy.sensitive)]
    if person is not None:
        hashed.append(person)
    return row_hashes([hashes_of_column(column) for column in hashed], encoded.count) if hashed else None


def _person_numbers(person: PassthroughColumn) -> NDArray[np.uint32]:
    """Return a number for the person of each row. Persons are numbered as they come, so in the order of the rows."""
    codes, _ = person.distinct
    return to_numpy(from_numpy(codes).dictionary_encode().indices).astype(np.uint32)


def _sensitive(
    encoded: Encoded, names: Sequence[str], policy: Policy, taxonomies: Mapping[str, Taxonomy]
) -> dict[str, SensitiveValues]:
    """Return the sensitive attributes that requirements count, in codes."""
    columns = {column.name: column for column in encoded.carried}
    keep_null = policy.privacy.null_sensitive == "value"
    return {
        name: coded_values(columns[name], policy.input.nulls, keep_null=keep_null, taxonomy=taxonomies.get(name))
        for name in names
    }
