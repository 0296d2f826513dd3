"""Groups of persons that all tables share, so that joining the tables tells nothing beyond the group.

The table with one record per person is divided into classes by its own policy, separately for persons who are in the
same tables: a person who alone has laboratory results among the k of a group would stand out in a join. Every other
table then shows one class for all records of a group. A group that misses a requirement in some table is joined with a
neighbour, as everywhere, and in all tables at once. Persons who are in a combination of tables that fewer than k share
are left out, as far as the policies allow it.

All persons of a group are in the same class of every table, however the classes of a table that show the same are
taken together. So whatever joins the records of persons, at least k persons are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.memory.classes import FormedClasses, assign, method_for
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.errors import InfeasibleError, UsageError
from sfumato.methods import method_named
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.methods.merge_failing import join_neighbours
from sfumato.methods.method import ClassBatch
from sfumato.policy import Policy, merge_flags
from sfumato.releases.local_recoding import shown_classes

NO_GROUP = -1


@dataclass(frozen=True)
class TableOfPersons:
    """A table, and whose its records are. persons: int64, by row of the encoded table, alike in all tables."""

    name: str
    table: TableInMemory
    persons: NDArray[np.int64]


def check_groupable(name: str, policy: Policy) -> None:
    """Refuse what classes that come from groups of persons cannot show."""
    asked = {
        'boxes = "regions"': policy.release.boxes == "regions",
        "coarsest": any(column.coarsest is not None for column in policy.columns.values()),
        f"the method {policy.method.name}": isinstance(method_named(policy.method.name), LatticeMethod),
    }
    for setting, wanted in asked.items():
        if wanted:
            raise UsageError(f"{setting} in the policy of {name!r} does not go with together. Remove one of the two.")


def group_persons(tables: Sequence[TableOfPersons]) -> NDArray[np.int64]:
    """Return the group of every person: int64[persons], NO_GROUP for persons who are left out."""
    count = 1 + max(int(table.persons.max(initial=-1)) for table in tables)
    base = _one_record_per_person(tables)
    k = max(table.table.job.policy.k for table in tables)
    groups, patterns = np.full(count, NO_GROUP, np.int64), _patterns(tables, count)
    boxes: list[_Boxes] = []
    for pattern in np.unique(patterns[base.persons]).tolist():
        members = patterns[base.persons] == pattern
        if np.count_nonzero(members) >= k:
            boxes.append(_grouped(base, members, k, groups, first=sum(len(each.low) for each in boxes)))
    _check_left_out(tables, groups, k)
    while (failing := _failing(tables, groups)).any():
        boxes = _joined(base, boxes, failing, groups)
    return groups


def classes_of_groups(table: TableOfPersons, groups: NDArray[np.int64]) -> FormedClasses:
    """Return the classes of a table: the records of each group."""
    batch = _batch(table, groups)
    return FormedClasses(method_for(table.table), iter([batch]), table.table.encoded.domains)


@dataclass(frozen=True)
class _Boxes:
    """The groups of persons who are in the same tables, in the order in which near ones follow each other.

    first: the number of the first group. low, high: their boxes in the table with one record per person. starts: where
    the persons of each group begin, if the groups stood in a line.
    """

    first: int
    starts: NDArray[np.int64]
    low: NDArray[np.integer]
    high: NDArray[np.integer]


def _one_record_per_person(tables: Sequence[TableOfPersons]) -> TableOfPersons:
    for table in tables:
        if len(np.unique(table.persons)) == len(table.persons):
            return table
    raise UsageError(
        "together groups the persons of a table with one record per person, and every table has a person with several. "
        "Add a table of persons, or leave out together."
    )


def _patterns(tables: Sequence[TableOfPersons], count: int) -> NDArray[np.int64]:
    """Return for every person a number that says which tables the person is in."""
    patterns = np.zeros(count, np.int64)
    for number, table in enumerate(tables):
        patterns[np.unique(table.persons)] += 1 << number
    return patterns


def _grouped(
    base: TableOfPersons, members: NDArray[np.bool_], k: int, groups: NDArray[np.int64], first: int
) -> _Boxes:
    """Group some persons by the method of the base table, and note their groups. members: by row of the table."""
    table, policy = base.table, base.table.job.policy
    records = table.records.without(np.flatnonzero(~members).astype(np.uint32))
    batch = ClassBatch.joined(
        list(
            assign(
                records,
                method_for(table),
                merge_flags(policy, k=k).requirements(),
                table.job.progress,
                numbered=policy.numbered,
            )
        )
    )
    sizes = np.diff(batch.starts)
    groups[base.persons[batch.rows]] = first + np.repeat(np.arange(len(sizes)), sizes)
    return _Boxes(first, batch.starts, batch.low, batch.high)


def _check_left_out(tables: Sequence[TableOfPersons], groups: NDArray[np.int64], k: int) -> None:
    for table in tables:
        left_out = int(np.count_nonzero(groups[table.persons] == NO_GROUP))
        most = table.table.job.policy.most_suppressed(table.table.count)
        if left_out > most:
            raise InfeasibleError(
                f"{left_out:,} records of {table.name!r} are of persons who are not in the table of persons, or in a "
                f"combination of tables that fewer than k = {k:,} persons share; its policy allows {most:,} to be left "
                "out. Remove these persons, allow more with max_suppressed_fraction, or leave out together."
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
    base: TableOfPersons, boxes: Sequence[_Boxes], failing: NDArray[np.bool_], groups: NDArray[np.int64]
) -> list[_Boxes]:
    """Join failing groups with their neighbours, and note the new groups."""
    if not any(failing[part.first :][: len(part.low)].any() and len(part.low) > 1 for part in boxes):
        raise InfeasibleError(
            "a requirement on sensitive columns does not hold for the persons who are in the same tables, even if all "
            "of them are one group. Ask for less, or leave out together."
        )
    costs, new_number = base.table.records.costs, np.empty(len(failing), np.int64)
    joined: list[_Boxes] = []
    for part in boxes:
        missing = failing[part.first :][: len(part.low)]
        begins = np.ones(len(part.low), np.bool_)
        if len(part.low) > 1:
            begins = join_neighbours(missing, part.starts, part.low, part.high, costs.layout, costs.units)
        first, places = sum(len(each.low) for each in joined), np.flatnonzero(begins)
        new_number[part.first :][: len(part.low)] = first + np.cumsum(begins) - 1
        low, high = np.minimum.reduceat(part.low, places, axis=0), np.maximum.reduceat(part.high, places, axis=0)
        joined.append(replace(part, first=first, starts=np.append(part.starts[places], part.starts[-1]), low=low, high=high))
    grouped = groups != NO_GROUP
    groups[grouped] = new_number[groups[grouped]]
    return joined


def _batch(table: TableOfPersons, groups: NDArray[np.int64]) -> ClassBatch:
    """Return the records of each group as a class. Records of persons without a group are in none."""
    codes, of_row = table.table.encoded.codes, groups[table.persons]
    rows = np.argsort(of_row, kind="stable")[np.count_nonzero(of_row == NO_GROUP) :].astype(np.uint32)
    begins = np.flatnonzero(np.append(True, np.diff(of_row[rows]) != 0)) if len(rows) else np.empty(0, np.int64)
    if not len(rows):
        return ClassBatch(rows, np.zeros(1, np.int64), codes[:0], codes[:0])
    low, high = (extreme.reduceat(codes[rows], begins, axis=0) for extreme in (np.minimum, np.maximum))
    return ClassBatch(rows, np.append(begins, len(rows)), low, high)
