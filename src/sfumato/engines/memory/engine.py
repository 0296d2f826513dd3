"""The memory engine: the whole table as codes in memory.

Codes are the smallest unsigned integers that hold every domain, row by row; text that rides along is codes too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.counted_columns import coded_target, coded_values, coded_workload
from sfumato.errors import InputError
from sfumato.kernels.threads import in_threads
from sfumato.losses.exact_costs import exact_costs, total_cost
from sfumato.methods.class_counting import Counting
from sfumato.methods.coded_workload import CodedWorkload
from sfumato.methods.merge_failing import join_failing
from sfumato.methods.method import ClassBatch, Effort, Method, Records, SensitiveValues
from sfumato.methods.suppression import surplus_rows, trimmed
from sfumato.policy import InputOptions, Policy
from sfumato.progress import Progress
from sfumato.releases.anatomy_tables import separated
from sfumato.releases.local_recoding import LEFT_OUT, Recoded, Recoder, Spread, released_columns, shown_classes
from sfumato.releases.statistics import SUFFIX as MEAN
from sfumato.releases.statistics import class_means
from sfumato.requirements import ClassCounts, Requirements
from sfumato.tables.coding.arrow_arrays import from_numpy
from sfumato.tables.coding.domains import Codes, Domain, NumericDomain
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.profile import Encoder, profile_column
from sfumato.tables.coding.sorting import Field, bits_for, collapse, sort_rows
from sfumato.tables.coding.value_order import is_missing
from sfumato.tables.released_classes import ReleasedClasses, find_classes
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.target import Target
from sfumato.taxonomies.taxonomy import Taxonomy


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
    carried: list[PassthroughColumn]

    @property
    def records(self) -> int:
        return len(self.codes)

    def used(self) -> list[NDArray[np.int64]]:
        """How often each code of each domain occurs."""

        def counted(q: int) -> NDArray[np.int64]:
            return np.bincount(self.codes[:, q], minlength=self.domains[q].size)

        return in_threads(counted, range(len(self.domains)))


@dataclass(frozen=True)
class Released:
    """The released table; ``sensitive`` is the second one where sensitive values are released apart.

    persons: the person of each row where persons are counted; they are never written.
    """

    table: pa.Table
    persons: NDArray[np.uint32] | None = None
    sensitive: pa.Table | None = None


class MemoryEngine:
    """Everything in memory."""

    name = "memory"
    limit = None

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

        def encoder(name: str) -> Encoder:
            column = scanned.table.column(name)
            return profile_column(scanned.source, name, column, policy.columns[name], options, taxonomies.get(name))

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
            columns = in_threads(lambda name: PassthroughColumn.of(name, scanned.table.column(name)), carried)
        return Encoded(codes, domains, columns)

    def sensitive(
        self, encoded: Encoded, names: Sequence[str], policy: Policy, taxonomies: Mapping[str, Taxonomy]
    ) -> dict[str, SensitiveValues]:
        """The sensitive attributes that are counted, in codes."""
        columns = {column.name: column for column in encoded.carried}
        keep_null = policy.privacy.null_sensitive == "value"
        return {
            name: coded_values(columns[name], policy.input.nulls, keep_null=keep_null, taxonomy=taxonomies.get(name))
            for name in names
        }

    def workload(self, encoded: Encoded, policy: Policy) -> CodedWorkload:
        """What the policy says the release is for, in codes."""
        columns = {column.name: column for column in encoded.carried}
        with self._progress.phase("encode"):
            return coded_workload(policy, encoded.domains, lambda name: coded_target(columns[name], policy))

    def persons(self, scanned: Scanned, policy: Policy) -> NDArray[np.uint32] | None:
        """A number for the person of each record, where the policy names a person key."""
        name = policy.privacy.person
        if name is None:
            return None
        codes, values = PassthroughColumn.of(name, scanned.table.column(name)).numbered
        missing = np.array([*(is_missing(value, policy.input.nulls) for value in values), True])
        unknown = int(np.count_nonzero(missing[codes]))
        if unknown:
            raise InputError(
                f"the person key {name!r} is empty in {unknown:,} records, so nobody can say whose they are. "
                "Fill it in, or leave these records out."
            )
        return codes.astype(np.uint32)

    def order(
        self,
        encoded: Encoded,
        weights: Sequence[float],
        sensitive: Mapping[str, SensitiveValues],
        *,
        persons: NDArray[np.uint32] | None = None,
        seed: int | None = None,
    ) -> Records:
        """Equal records made one, in the order of their codes; what every method starts from."""
        with self._progress.phase("collapse"):
            distinct, line = collapse(encoded.codes, [domain.size for domain in encoded.domains])
            costs = exact_costs(encoded.domains, weights, encoded.records)
        return Records(distinct, line.starts, line.rows, encoded.domains, costs, sensitive, persons, seed)

    def check_feasible(self, records: Records, requirements: Requirements, most_suppressed: int) -> None:
        """Raise InfeasibleError when no release can meet the requirements with so few records left out."""
        surplus_rows(records, requirements, most_suppressed)

    def assign(
        self, records: Records, method: Method, requirements: Requirements, *, bounds: bool, most_suppressed: int = 0
    ) -> Iterator[ClassBatch]:
        """The classes, each tested against the requirements as it comes. Rows in none of them are left out."""
        with self._progress.phase("partition", records.count):
            left_out = surplus_rows(records, requirements, most_suppressed)
            records, most = records.without(left_out), most_suppressed - len(left_out)
            # Classes that show the same become one, so what unions do not keep is tested on what is shown.
            kept = requirements.closed_under_union and method.meets(requirements)
            if kept and (most == 0 or method.separates):
                counting = Counting(records, requirements)
                for batch in method.classes(records, requirements, self._progress):
                    if not requirements.holds(counting.runs(batch.rows, batch.starts)).all():
                        raise AssertionError(f"{method.name} made a class that does not meet the requirements")
                    yield batch
                return

            def shown(low: Codes, high: Codes) -> NDArray[np.integer]:
                return shown_classes(records.domains, low, high, bounds=bounds)

            def classes_of(some: Records) -> ClassBatch:
                batch = ClassBatch.joined(list(method.classes(some, requirements, self._progress)))
                return join_failing(batch, some, requirements, shown)

            if most == 0 or records.effort == Effort():
                yield trimmed(records, requirements, most, classes_of)
                return
            # Outliers are looked for again and again; a long search is made once, without them.
            quick = trimmed(replace(records, effort=Effort()), requirements, most, classes_of)
            told = dict(self._progress.told)
            searched = classes_of(records.without(np.setdiff1d(records.rows, quick.rows)))
            layout, units = records.costs.layout, records.costs.units
            costs = [total_cost(one.starts, one.low, one.high, layout, units) for one in (quick, searched)]
            if costs[0] < costs[1]:
                self._progress.told.update(told)
                searched = quick
            yield searched

    def recode(self, encoded: Encoded, classes: Iterator[ClassBatch], *, bounds: bool) -> Recoded:
        """What each class shows."""
        recoder = Recoder(encoded.domains, encoded.records, bounds=bounds)
        for batch in classes:
            recoder.add(batch)
        with self._progress.phase("recode"):
            return recoder.finish()

    def shown(self, records: Records, recoded: Recoded, requirements: Requirements) -> ReleasedClasses | None:
        """The classes as a release would show them, without its rows; none where one does not meet the requirements.

        Counted anew after classes that show the same became one, which not every requirement survives.
        """
        with self._progress.phase("count"):
            released = records.without(np.flatnonzero(recoded.class_of_row == LEFT_OUT).astype(np.uint32))
            counting = Counting(released, requirements)
            if requirements.attributes or records.persons is not None:
                owner = recoded.class_of_row[released.rows]
                counts = counting.classes(released.rows, owner, len(recoded.sizes))
            else:
                counts = ClassCounts(recoded.sizes)
            if not requirements.holds(counts).all():
                return None
            values: dict[str, list[object]] = {
                column.domain.name: column.labels.to_pylist() for column in recoded.columns
            }
            entries = {column.domain.name: column.entry.astype(np.int64) for column in recoded.columns}
        return ReleasedClasses(recoded.sizes, values, entries, None)

    def release(
        self,
        encoded: Encoded,
        recoded: Recoded,
        names: Sequence[str],
        *,
        bounds: bool,
        keep_order: bool,
        means: Mapping[str, Fraction] | None = None,
        persons: NDArray[np.uint32] | None = None,
    ) -> Released:
        """The released table, in canonical order: by the released quasi-identifiers, then by the other columns.

        That order is a function of the released rows alone, so it tells nothing of the order of the input.
        """
        with self._progress.phase("arrange"):
            here = np.flatnonzero(recoded.class_of_row != LEFT_OUT).astype(np.uint32)
            whole = len(here) == encoded.records
            if keep_order:
                rows = None if whole else here
                spread: Spread = lambda values: values[recoded.class_of_row[here]]  # noqa: E731
            else:
                rows = _canonical(recoded, encoded.carried, here)
                spread = lambda values: np.repeat(values, recoded.sizes)  # noqa: E731
            recoded_by_name = {column.domain.name: column for column in recoded.columns}
            carried_by_name = {column.name: column for column in encoded.carried}
            places = {domain.name: q for q, domain in enumerate(encoded.domains)}

            def released(name: str) -> list[tuple[str, pa.Array]]:
                if name in recoded_by_name:
                    column = recoded_by_name[name]
                    shown = released_columns(column, spread, bounds)
                    if means and name in means:
                        codes, domain = encoded.codes[:, places[name]], encoded.domains[places[name]]
                        assert isinstance(domain, NumericDomain)
                        by_class = class_means(codes, domain, recoded, column, means[name])
                        at: NDArray[np.int64] = spread(np.arange(len(by_class)))
                        shown.append((name + MEAN, by_class.take(from_numpy(at))))
                    return shown
                return [(name, carried_by_name[name].take(rows))]

            columns = [pair for pairs in in_threads(released, names) for pair in pairs]
        table = pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns])
        return Released(table, None if persons is None else persons if rows is None else persons[rows])

    def separate(self, encoded: Encoded, records: Records, classes: Iterator[ClassBatch], sensitive: str) -> Released:
        """Two tables: every record with its group, and the sensitive values of each group."""
        group = np.full(encoded.records, -1, np.int64)
        count = 0
        for batch in classes:
            group[batch.rows] = np.repeat(np.arange(count, count + len(batch.low)), np.diff(batch.starts))
            count += len(batch.low)
        with self._progress.phase("arrange"):
            recoder = Recoder(encoded.domains, encoded.records, bounds=False)
            recoder.add(ClassBatch(records.rows, records.starts, records.codes, records.codes))
            rows = np.flatnonzero(group >= 0).astype(np.uint32)
            column = next(column for column in encoded.carried if column.name == sensitive)
            first, second = separated(recoder.finish(), column, rows, group[rows])
        return Released(first, None, second)

    def write(self, released: Released, target: Target) -> Source:
        with self._progress.phase("write", released.table.num_rows):
            return target.write(released.table.schema, released.table.to_batches)

    def write_sensitive(self, released: Released, target: Target) -> Source:
        assert released.sensitive is not None
        with self._progress.phase("write"):
            return target.write(released.sensitive.schema, released.sensitive.to_batches)

    def readable(self, released: Released) -> pa.Table:
        return released.table

    def table(self, released: Released) -> pa.Table:
        return released.table

    def sensitive_table(self, released: Released) -> pa.Table | None:
        return released.sensitive

    def persons_of(self, released: Released) -> NDArray[np.uint32] | None:
        return released.persons

    def group_count(self, source: Source, key: Sequence[str], *, by_row: bool) -> ReleasedClasses:
        return find_classes(source, key, by_row=by_row)


def _canonical(recoded: Recoded, carried: Sequence[PassthroughColumn], here: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The rows that are released in canonical order: by class, then by the columns that ride along."""
    fields = [Field(recoded.class_of_row, bits_for(len(recoded.sizes)))]
    for column in carried:
        fields += column.fields()
    if len(here) == len(recoded.class_of_row):
        return sort_rows(fields, len(here)).rows
    fields = [Field(field.values[here], field.bits) for field in fields]
    return here[sort_rows(fields, len(here)).rows]
