"""Groups of persons that all tables share, so that joining the tables tells nothing beyond the group.

A person is described by the record in the table with one record per person, and by the smallest and largest value of
each quasi-identifier in the other tables. The method of the first table divides persons so described, separately for
those who are in the same tables: a person who alone has laboratory results among the k of a group would stand out in a
join. Where pseudonyms show how many records a person has, those with the same number are divided by themselves too.
Every table then shows one class for all records of a group. A group that misses a requirement in some table is joined
with a neighbour, as everywhere, and in all tables at once. Persons who share all this with fewer than k are left out,
as far as the policies allow it.

All persons of a group are in the same class of every table, even where classes of a table show the same and are one. So
whatever joins the records of persons, at least k persons are left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.memory.classes import FormedClasses, assign, method_for
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.errors import InfeasibleError, UsageError
from sfumato.losses.exact_costs import Costs, exact_costs
from sfumato.methods import method_named
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.methods.merge_failing import join_neighbours
from sfumato.methods.method import ClassBatch, Records
from sfumato.policy import Policy, merge_flags
from sfumato.releases.local_recoding import shown_classes
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.row_hash import ColumnHashes, hashed_columns, hashes_of_column, row_hashes
from sfumato.tables.coding.sorting import collapse

NO_GROUP = -1


@dataclass(frozen=True)
class TableOfPersons:
    """A table, and whose its records are.

    persons: int64, by row of the encoded table, numbered alike in all tables. counted: whether others may see how many
    records a person has.
    """

    name: str
    table: TableInMemory
    persons: NDArray[np.int64]
    counted: bool = False


def check_groupable(name: str, policy: Policy) -> None:
    """Refuse what classes that come from groups of persons cannot show."""
    asked = {
        'boxes = "regions"': policy.release.boxes == "regions",
        "coarsest": any(column.coarsest is not None for column in policy.columns.values()),
        f"the method {policy.method.name}": isinstance(method_named(policy.method.name), LatticeMethod),
        "a workload": bool(policy.workload),
    }
    for setting, wanted in asked.items():
        if wanted:
            raise UsageError(f"{setting} in the policy of {name!r} does not go with together. Remove one of the two.")


def group_persons(tables: Sequence[TableOfPersons]) -> NDArray[np.int64]:
    """Return the group of every person: int64[persons], NO_GROUP for persons who are left out."""
    count = 1 + max(int(table.persons.max(initial=-1)) for table in tables)
    base = _one_record_per_person(tables)
    k = max(table.table.job.policy.k for table in tables)
    counts = np.stack([np.bincount(table.persons, minlength=count) for table in tables], axis=1)
    alike = np.stack([counts[:, n] if table.counted else counts[:, n] > 0 for n, table in enumerate(tables)], axis=1)
    kinds, kind_of_person = np.unique(alike, axis=0, return_inverse=True)
    groups, ties = np.full(count, NO_GROUP, np.int64), _ties(tables, count)
    parts: list[_GroupsOfKind] = []
    for kind in range(len(kinds)):
        rows = np.flatnonzero(kind_of_person[base.persons] == kind)
        if len(rows) >= k:
            others = [table for n, table in enumerate(tables) if kinds[kind, n] and table is not base]
            records = _described(base, rows, others, ties)
            parts.append(_grouped(base, records, k, groups, first=sum(len(part.low) for part in parts)))
    _check_left_out(tables, groups, k)
    while (failing := _failing(tables, groups)).any():
        parts = _joined(parts, failing, groups)
    return groups


def classes_of_groups(table: TableOfPersons, groups: NDArray[np.int64]) -> tuple[FormedClasses, str]:
    """Return the classes of a table, which are the records of each group, and a digest of what they show."""
    batch = _batch(table, groups)
    boxes = np.concatenate([batch.low, batch.high, np.diff(batch.starts)[:, np.newaxis]], axis=1).astype(np.int64)
    digest = hashlib.sha256(boxes[np.lexsort(boxes.T)].tobytes()).hexdigest()
    return FormedClasses(method_for(table.table), iter([batch]), table.table.encoded.domains), digest


@dataclass(frozen=True)
class _GroupsOfKind:
    """The groups of persons who are in the same tables, in the order in which near ones follow each other.

    first: the number of the first group. starts: where the persons of each group begin, if they stood in a line. low,
    high: the boxes of the groups, which cost what ``costs`` says.
    """

    first: int
    starts: NDArray[np.int64]
    low: Codes
    high: Codes
    costs: Costs

    def of(self, by_group: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return those entries of an array over all groups that are about these."""
        return by_group[self.first : self.first + len(self.low)]


def _one_record_per_person(tables: Sequence[TableOfPersons]) -> TableOfPersons:
    for table in tables:
        if len(np.unique(table.persons)) == len(table.persons):
            return table
    raise UsageError(
        "together groups the persons of a table with one record per person, and every table has a person with several. "
        "Add a table of persons, or leave out together."
    )


def _ties(tables: Sequence[TableOfPersons], count: int) -> NDArray[np.uint64]:
    """Return a hash of all that the tables hold about each person. It orders persons who are described alike.

    In the order of the input, releases of the same tables in different orders could be intersected.
    """
    ties = np.zeros(count, np.uint64)
    for table in tables:
        encoded, carried = table.table.encoded, {column.name: column for column in table.table.encoded.carried}
        names = hashed_columns(carried, table.table.job.policy.sensitive)
        columns = [hashes_of_column(carried[name]) for name in names]
        columns += [_code_hashes(encoded.codes[:, attribute]) for attribute in range(len(encoded.domains))]
        np.add.at(ties, table.persons, row_hashes(columns, encoded.count))
    return ties


def _code_hashes(codes: NDArray[np.unsignedinteger]) -> ColumnHashes:
    return lambda part: codes[part].astype(np.uint64)


def _grouped(base: TableOfPersons, records: Records, k: int, groups: NDArray[np.int64], first: int) -> _GroupsOfKind:
    """Group persons of the base table who are in the same tables, and note their groups. records: see _described."""
    table, policy = base.table, base.table.job.policy
    requirements = merge_flags(policy, k=k).requirements()
    batches = assign(records, method_for(table), requirements, table.job.progress, numbered=policy.numbered)
    batch = ClassBatch.joined(list(batches))
    sizes = np.diff(batch.starts)
    groups[base.persons[batch.rows]] = first + np.repeat(np.arange(len(sizes)), sizes)
    return _GroupsOfKind(first, batch.starts, batch.low, batch.high, records.costs)


def _described(
    base: TableOfPersons, rows: NDArray[np.int64], others: Sequence[TableOfPersons], ties: NDArray[np.uint64]
) -> Records:
    """Return persons as records for a method: the record of each, and the extremes of those in the other tables.

    rows: of the base table, whose persons are all in the other tables too.
    """
    encoded, persons = base.table.encoded, base.persons[rows]
    codes, domains = [encoded.codes[rows]], list(encoded.domains)
    weights = base.table.job.policy.weights(encoded.domains)
    for other in others:
        added = other.table.encoded
        for extreme, start in ((np.minimum, np.iinfo(added.codes.dtype).max), (np.maximum, 0)):
            of_person = np.full((int(other.persons.max()) + 1, added.codes.shape[1]), start, added.codes.dtype)
            extreme.at(of_person, other.persons, added.codes)
            codes.append(of_person[persons])
            domains += added.domains
            weights = [*weights, *(weight / 2 for weight in other.table.job.policy.weights(added.domains))]
    described = np.ascontiguousarray(np.concatenate(codes, axis=1))
    shuffled = bool(base.table.job.requirements.attributes)
    distinct, line = collapse(described, [domain.size for domain in domains], ties[persons], shuffled=shuffled)
    return replace(
        base.table.records,
        codes=distinct,
        starts=line.starts,
        rows=rows[line.rows].astype(np.uint32),
        domains=domains,
        costs=exact_costs(domains, weights, len(rows)),
    )


def _check_left_out(tables: Sequence[TableOfPersons], groups: NDArray[np.int64], k: int) -> None:
    for table in tables:
        left_out = int(np.count_nonzero(groups[table.persons] == NO_GROUP))
        most = table.table.job.policy.most_suppressed(table.table.count)
        if left_out > most:
            number = ", or with a number of records in them," if any(each.counted for each in tables) else ""
            raise InfeasibleError(
                f"{left_out:,} records of {table.name!r} are of persons who are not in the table of persons, or in a "
                f"combination of tables{number} that fewer than k = {k:,} persons share. Its policy allows {most:,} "
                "records to be left out. Remove these persons, allow more with max_suppressed_fraction, or leave out "
                "together."
            )


def _failing(tables: Sequence[TableOfPersons], groups: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which groups miss a requirement in some table, where classes that show the same are one: bool[groups]."""
    failing = np.zeros(int(groups.max(initial=NO_GROUP)) + 1, np.bool_)
    for table in tables:
        job, encoded = table.table.job, table.table.encoded
        batch = _batch(table, groups)
        if not len(batch.rows):
            continue
        seen = np.asarray(shown_classes(encoded.domains, batch.low, batch.high, numbered=job.policy.numbered), np.int64)
        owner = np.repeat(seen, np.diff(batch.starts))
        counts = Counting(table.table.records, job.requirements).classes(batch.rows, owner, int(seen.max()) + 1)
        of_group = groups[table.persons[batch.rows[batch.starts[:-1]]]]
        failing[of_group] |= ~job.requirements.holds(counts)[seen]
    return failing


def _joined(
    parts: Sequence[_GroupsOfKind], failing: NDArray[np.bool_], groups: NDArray[np.int64]
) -> list[_GroupsOfKind]:
    """Join failing groups with their neighbours, and note the new groups."""
    if not any(part.of(failing).any() and len(part.low) > 1 for part in parts):
        raise InfeasibleError(
            "a requirement does not hold for the persons who are in the same tables, even if all of them are one "
            "group. Ask for less, or leave out together."
        )
    number_of_group = np.empty(len(failing), np.int64)
    joined: list[_GroupsOfKind] = []
    for part in parts:
        begins = np.ones(len(part.low), np.bool_)
        if len(part.low) > 1:
            layout, units = part.costs.layout, part.costs.units
            begins = join_neighbours(part.of(failing), part.starts, part.low, part.high, layout, units)
        first, heads = sum(len(each.low) for each in joined), np.flatnonzero(begins)
        number_of_group[part.first : part.first + len(part.low)] = first + np.cumsum(begins) - 1
        joined.append(
            replace(
                part,
                first=first,
                starts=np.append(part.starts[heads], part.starts[-1]),
                low=np.minimum.reduceat(part.low, heads, axis=0),
                high=np.maximum.reduceat(part.high, heads, axis=0),
            )
        )
    grouped = groups != NO_GROUP
    groups[grouped] = number_of_group[groups[grouped]]
    return joined


def _batch(table: TableOfPersons, groups: NDArray[np.int64]) -> ClassBatch:
    """Return the records of each group as a class. Records of persons without a group are in none."""
    codes, of_row = table.table.encoded.codes, groups[table.persons]
    rows = np.argsort(of_row, kind="stable")[np.count_nonzero(of_row == NO_GROUP) :].astype(np.uint32)
    if not len(rows):
        return ClassBatch(rows, np.zeros(1, np.int64), codes[:0], codes[:0])
    begins = np.flatnonzero(np.append(True, np.diff(of_row[rows]) != 0))
    low, high = (extreme.reduceat(codes[rows], begins, axis=0) for extreme in (np.minimum, np.maximum))
    return ClassBatch(rows, np.append(begins, len(rows)), low, high)
