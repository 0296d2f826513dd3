"""The released rows of a table in memory: what every record shows, in canonical order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.engine import Outcome, outcome_of
from sfumato.engines.memory.classes import FormedClasses
from sfumato.engines.memory.coded_table import Encoded, TableInMemory
from sfumato.evaluation.workload_tasks import WorkloadTasks
from sfumato.kernels.threads import in_threads
from sfumato.losses.discernibility import GroupDiscernibility
from sfumato.losses.squared_errors import class_errors
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.methods.method import ClassBatch, Records
from sfumato.policy import Policy
from sfumato.policy.column_forms import SUMMARIES
from sfumato.progress import Progress
from sfumato.releases.local_recoding import LEFT_OUT, Recoded, Recoder, Spread, released_columns
from sfumato.releases.statistics import class_statistic, grid_of, has_statistics, stated
from sfumato.requirements import ClassCounts, Requirements
from sfumato.tables.coding.arrow_arrays import from_numpy
from sfumato.tables.coding.domains import Domain, NumericDomain
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.sorting import Field, bits_for, gathered, repeated, row_order
from sfumato.tables.released_classes import ReleasedClasses


@dataclass(frozen=True)
class RowsInMemory:
    """The released table.

    sensitive: the second table, if sensitive values are released separately. persons: the person of each row if persons
    are counted. input_rows: the number of each row in the input; None if there are two tables. Neither is ever written.
    tasks: the workload, to be measured on the release. errors: see ``ClassTable``; None if records were left out.
    """

    table: pa.Table
    outcome: Outcome
    persons: NDArray[np.uint32] | None = None
    sensitive: pa.Table | None = None
    tasks: WorkloadTasks | None = None
    input_rows: NDArray[np.uint32] | None = None
    errors: NDArray[np.float64] | None = None


def rows_in_memory(table: TableInMemory, classes: FormedClasses) -> RowsInMemory:
    """Recode the classes, and arrange the rows of the release."""
    job, encoded = table.job, table.encoded
    policy, facts = job.policy, dict[str, Any]()
    if classes.method.separates:
        first, second = _two_tables(table, classes.batches, job.requirements.attributes[0])
        return RowsInMemory(first, outcome_of(classes.method.name, job.progress), sensitive=second)
    recoded = recode(encoded.count, classes.batches, classes.domains, job.progress, numbered=policy.numbered)
    if not isinstance(classes.method, LatticeMethod):  # whose classes are what levels show
        facts |= GroupDiscernibility.of([recoded.formed], encoded.count).facts()
    grids = _grids(policy, recoded)
    released, rows = arrange(encoded, recoded, job.kept, policy, job.progress, grids=grids)
    persons = table.records.persons
    if grids:
        domains = {domain.name: domain for domain in encoded.domains}
        facts["statistics"] = {name: stated(domains[name], grid) for name, grid in grids.items()}
    if (other_costs := job.progress.decisions.pop("other_costs", None)) is not None:
        facts["other_costs"] = other_costs
    outcome = outcome_of(classes.method.name, job.progress)
    outcome = replace(outcome, facts={**outcome.facts, **facts})
    return RowsInMemory(
        released,
        outcome,
        None if persons is None else persons[rows],
        tasks=_tasks(table),
        input_rows=None if encoded.input_rows is None else gathered(encoded.input_rows, rows),
        errors=errors_of(encoded, recoded),
    )


def recode(
    records: int,
    batches: Iterator[ClassBatch],
    domains: Sequence[Domain],
    progress: Progress,
    *,
    numbered: Collection[str],
) -> Recoded:
    """Find what each class of a table with this number of records shows. numbered: see Recoder."""
    recoder = Recoder(domains, records, numbered=numbered)
    for batch in batches:
        recoder.add(batch)
    with progress.phase("recode"):
        return recoder.finish()


def shown_classes_of(
    records: Records, recoded: Recoded, requirements: Requirements, progress: Progress
) -> ReleasedClasses | None:
    """Return the classes as a release would show them, without its rows; None if one does not meet the requirements.

    They are counted again after classes that show the same have become one, which not every requirement survives.
    """
    with progress.phase("count"):
        released = records.without(np.flatnonzero(recoded.class_of_row == LEFT_OUT).astype(np.uint32))
        counting = Counting(released, requirements)
        if requirements.attributes or records.persons is not None:
            owner = recoded.class_of_row[released.rows]
            counts = counting.classes(released.rows, owner, len(recoded.sizes))
        else:
            counts = ClassCounts(recoded.sizes)
        if not requirements.holds(counts).all():
            return None
        values: dict[str, list[object]] = {column.domain.name: column.labels.to_pylist() for column in recoded.columns}
        entries = {column.domain.name: column.entry.astype(np.int64) for column in recoded.columns}
    return ReleasedClasses(recoded.sizes, values, entries, None)


def arrange(
    encoded: Encoded,
    recoded: Recoded,
    names: Sequence[str],
    policy: Policy,
    progress: Progress,
    *,
    grids: Mapping[str, Fraction] | None = None,
) -> tuple[pa.Table, NDArray[np.uint32]]:
    """Return the released table in canonical order, and the row of ``encoded`` that each of its rows was.

    The order is by the released quasi-identifiers, then by the other columns. It is a function of the released rows
    alone, so it tells nothing about the order of the input. grids: what means and medians are rounded to.
    """
    with progress.phase("arrange"):
        if policy.release.keep_order:
            assert encoded.input_rows is not None
            rows = recoded.rows[np.argsort(encoded.input_rows[recoded.rows])]
            classes = recoded.class_of_row[rows]
        else:
            classes = repeated(np.arange(len(recoded.sizes), dtype=np.uint32), recoded.starts)
            rows = _canonical(recoded, classes, encoded.carried)
        spread: Spread = partial(gathered, rows=classes)
        recoded_by_name = {column.domain.name: column for column in recoded.columns}
        carried_by_name = {column.name: column for column in encoded.carried}
        attributes = {domain.name: attribute for attribute, domain in enumerate(encoded.domains)}

        def released(name: str) -> list[tuple[str, pa.Array]]:
            if name not in recoded_by_name:
                return [(name, carried_by_name[name].take(rows))]
            column, added = recoded_by_name[name], policy.added(name)
            shown = released_columns(column, spread, bounds="min" in added)
            for kind in SUMMARIES:
                if grids and name in grids and kind in added:
                    codes, domain = encoded.codes[:, attributes[name]], encoded.domains[attributes[name]]
                    assert isinstance(domain, NumericDomain)
                    by_class = class_statistic(kind, codes, domain, recoded, column, grids[name])
                    shown.append((f"{name}_{kind}", by_class.take(from_numpy(classes))))
            return shown

        columns = [pair for pairs in in_threads(released, names) for pair in pairs]
    table = pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns])
    return table, rows


def _two_tables(table: TableInMemory, batches: Iterator[ClassBatch], sensitive: str) -> tuple[pa.Table, pa.Table]:
    """Return every record with its group, and the sensitive values of each group."""
    from sfumato.releases.anatomy_tables import separated

    encoded, records = table.encoded, table.records
    group = np.full(encoded.count, -1, np.int64)
    count = 0
    for batch in batches:
        group[batch.rows] = np.repeat(np.arange(count, count + len(batch.low)), np.diff(batch.starts))
        count += len(batch.low)
    with table.job.progress.phase("arrange"):
        recoder = Recoder(encoded.domains, encoded.count, numbered=())
        recoder.add(ClassBatch(records.rows, records.starts, records.codes, records.codes))
        rows = np.flatnonzero(group >= 0).astype(np.uint32)
        column = next(column for column in encoded.carried if column.name == sensitive)
        return separated(recoder.finish(), column, rows, group[rows])


def _canonical(
    recoded: Recoded, classes: NDArray[np.uint32], carried: Sequence[PassthroughColumn]
) -> NDArray[np.uint32]:
    """Return the released rows in canonical order: by class, then by the passthrough columns.

    classes: of the rows as ``recoded`` has them.
    """
    fields = [Field(classes, bits_for(len(recoded.sizes)))]
    for column in carried:
        fields += [Field(gathered(field.values, recoded.rows), field.bits) for field in column.fields()]
    return gathered(recoded.rows, row_order(fields, len(recoded.rows)))


def _grids(policy: Policy, recoded: Recoded) -> dict[str, Fraction]:
    """Return what the means or medians of each column are rounded to, if it has any."""
    return {
        name: grid_of(column, policy.columns[name], policy.added(name))
        for name, column in ((column.domain.name, column) for column in recoded.columns)
        if has_statistics(column.domain) and not set(SUMMARIES).isdisjoint(policy.added(name))
    }


def errors_of(encoded: Encoded, recoded: Recoded) -> NDArray[np.float64] | None:
    """Return the sums of squares of the classes; a release does not always show which record is in which."""
    if len(recoded.rows) < encoded.count:
        return None
    return class_errors(encoded.codes, recoded.class_of_row, encoded.domains)


def _tasks(table: TableInMemory) -> WorkloadTasks | None:
    records = table.records
    if records.workload is None:
        return None
    return WorkloadTasks.of(table.job.policy, records.workload, records.codes, np.diff(records.starts))
