"""The memory engine: the whole table as codes in memory.

Codes are the smallest unsigned integers that hold every domain, row by row; text that rides along is codes too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.kernels import in_threads
from sfumato.losses.costs import exact_costs
from sfumato.methods.method import ClassBatch, Method, Records, SensitiveValues
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.recode import Recoded, Recoder, released_columns
from sfumato.requirements import (
    KNOWN,
    PER_ATTRIBUTE,
    SIZE,
    MeasuredRequirement,
    Requirements,
    all_hold,
    count_values,
    counter_of,
)
from sfumato.tables.ascending import ascending, is_missing
from sfumato.tables.columns import CarriedColumn
from sfumato.tables.domains import Codes, Domain
from sfumato.tables.grouping import ReleasedClasses, find_classes
from sfumato.tables.profile import Encoder, Profiler
from sfumato.tables.sorting import Field, bits_for, sort_rows
from sfumato.tables.source import InputOptions, Source
from sfumato.tables.write import write_table
from sfumato.taxonomies.tree import Taxonomy


@dataclass(frozen=True)
class Scanned:
    """The columns of the source that the run needs, read once."""

    source: Source
    table: pa.Table

    @property
    def records(self) -> int:
        return int(self.table.num_rows)


@dataclass(frozen=True)
class Encoded:
    """The quasi-identifiers in codes, and the columns that ride along."""

    codes: Codes
    domains: list[Domain]
    carried: list[CarriedColumn]

    @property
    def records(self) -> int:
        return len(self.codes)


class MemoryEngine:
    """Everything in memory."""

    name = "memory"

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def scan(self, source: Source, names: Sequence[str]) -> Scanned:
        """Read the named columns."""
        with self._progress.phase("read", source.rows):
            batches = []
            for batch in source.batches(names):
                batches.append(batch)
                self._progress.advance(batch.num_rows)
        return Scanned(source, pa.Table.from_batches(batches))

    def profile(
        self, scanned: Scanned, policy: Policy, options: InputOptions, taxonomies: Mapping[str, Taxonomy]
    ) -> list[Encoder]:
        """The domain of every quasi-identifier."""
        source = scanned.source
        tokens = frozenset(options.nulls) if source.text or source.kind == "excel" else frozenset()

        def encoder(name: str) -> Encoder:
            column = scanned.table.column(name)
            profiler = Profiler(
                name,
                source.types[name],
                policy.columns[name],
                options,
                text=source.text,
                null_tokens=tokens,
                taxonomy=taxonomies.get(name),
            )
            for chunk in column.chunks:
                profiler.add(chunk)
            return profiler.finish(lambda: column.chunks)

        with self._progress.phase("profile"):
            return in_threads(encoder, policy.quasi_identifiers)

    def encode(self, scanned: Scanned, encoders: Sequence[Encoder]) -> Encoded:
        """The table in codes."""
        domains = [encoder.domain for encoder in encoders]
        largest = max(domain.size for domain in domains)
        codes = np.empty((scanned.records, len(domains)), np.min_scalar_type(largest - 1))

        def fill(attribute: int) -> None:
            start = 0
            for chunk in scanned.table.column(domains[attribute].name).chunks:
                codes[start : start + len(chunk), attribute] = encoders[attribute].encode(chunk)
                start += len(chunk)

        coded = {domain.name for domain in domains}
        carried = [name for name in scanned.table.column_names if name not in coded]
        with self._progress.phase("encode"):
            in_threads(fill, range(len(domains)))
            columns = in_threads(lambda name: CarriedColumn.of(name, scanned.table.column(name)), carried)
        return Encoded(codes, domains, columns)

    def sensitive(self, encoded: Encoded, names: Sequence[str], tokens: Collection[str]) -> dict[str, SensitiveValues]:
        """The sensitive attributes that are counted, in codes. What ``tokens`` say is null is null."""
        columns = {column.name: column for column in encoded.carried}
        return {name: _sensitive_values(columns[name], tokens) for name in names}

    def order(self, encoded: Encoded, weights: Sequence[float], sensitive: Mapping[str, SensitiveValues]) -> Records:
        """Equal records made one, in the order of their codes; what every method starts from."""
        with self._progress.phase("collapse"):
            fields = [Field(encoded.codes[:, q], bits_for(domain.size)) for q, domain in enumerate(encoded.domains)]
            line = sort_rows(fields, encoded.records)
            distinct = np.ascontiguousarray(encoded.codes[line.rows[line.starts[:-1]]])
            costs = exact_costs(encoded.domains, weights, encoded.records)
        return Records(distinct, line.starts, line.rows, encoded.domains, costs, sensitive)

    def assign(self, records: Records, method: Method, requirements: Requirements) -> Iterator[ClassBatch]:
        """The classes, each tested against the requirements as it comes."""
        with self._progress.phase("partition", records.count):
            for batch in method.classes(records, requirements, self._progress):
                attributes = requirements.attributes
                counters = np.zeros((len(batch.low), 1 + PER_ATTRIBUTE * len(attributes)), np.int64)
                counters[:, SIZE] = np.diff(batch.starts)
                for place, name in enumerate(attributes):
                    values = records.sensitive[name]
                    first = counter_of(place, KNOWN)
                    count_values(values.codes[batch.rows], batch.starts, values.distinct, counters, first)
                if requirements.unmet(counters).size or not _distributions_hold(batch, records, requirements):
                    raise AssertionError(f"{method.name} made a class that does not meet the requirements")
                yield batch

    def recode(self, encoded: Encoded, classes: Iterator[ClassBatch], *, bounds: bool) -> Recoded:
        """What each class shows."""
        recoder = Recoder(encoded.domains, encoded.records, bounds=bounds)
        for batch in classes:
            recoder.add(batch)
        with self._progress.phase("recode"):
            return recoder.finish()

    def release(
        self, encoded: Encoded, recoded: Recoded, names: Sequence[str], *, bounds: bool, keep_order: bool
    ) -> pa.Table:
        """The released table, in canonical order: by the released quasi-identifiers, then by the other columns.

        That order is a function of the released rows alone, so it tells nothing of the order of the input.
        """
        with self._progress.phase("arrange"):
            rows, spread = None, lambda values: values[recoded.class_of_row]
            if not keep_order:
                rows, spread = _canonical(recoded, encoded.carried), lambda values: np.repeat(values, recoded.sizes)
            recoded_by_name = {column.domain.name: column for column in recoded.columns}
            carried_by_name = {column.name: column for column in encoded.carried}

            def released(name: str) -> list[tuple[str, pa.Array]]:
                if name in recoded_by_name:
                    return released_columns(recoded_by_name[name], spread, bounds)
                return [(name, carried_by_name[name].take(rows))]

            columns = [pair for pairs in in_threads(released, names) for pair in pairs]
        return pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns])

    def write(self, released: pa.Table, path: Path, *, separator: str) -> None:
        with self._progress.phase("write", released.num_rows):
            write_table(released, path, separator=separator)

    def table(self, released: pa.Table) -> pa.Table:
        return released

    def group_count(self, source: Source, key: Sequence[str], *, by_row: bool) -> ReleasedClasses:
        return find_classes(source, key, by_row=by_row)


def kept_columns(policy: Policy, names: Sequence[str]) -> list[str]:
    """The columns of the table that are released, in the table's order."""
    dropped = set(policy.identifiers)
    undeclared = policy.other == "keep"
    return [name for name in names if name not in dropped and (name in policy.columns or undeclared)]


def _distributions_hold(batch: ClassBatch, records: Records, requirements: Requirements) -> bool:
    for part in requirements.parts:
        if isinstance(part, MeasuredRequirement):
            values, test = records.sensitive[part.attribute or ""], part.test()
            codes = values.codes[batch.rows]
            if not all_hold(codes, batch.starts, values.reference(), values.numbers, test.kind, test.bound, test.rank):
                return False
    return True


def _sensitive_values(column: CarriedColumn, tokens: Collection[str]) -> SensitiveValues:
    codes, values = column.numbered
    known = [code for code, value in enumerate(values) if not is_missing(value, tokens)]
    places, numbers = ascending([values[code] for code in known])
    table = np.full(len(values) + 1, len(known), np.uint32)
    table[np.array(known, np.int64)[places]] = np.arange(len(known))
    return SensitiveValues(table[codes], len(known), numbers[places])


def _canonical(recoded: Recoded, carried: Sequence[CarriedColumn]) -> NDArray[np.uint32]:
    """The rows in canonical order: by class, then by the columns that ride along."""
    fields = [Field(recoded.class_of_row, bits_for(len(recoded.sizes)))]
    for column in carried:
        fields += column.fields()
    return sort_rows(fields, len(recoded.class_of_row)).rows
