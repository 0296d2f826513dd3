"""What somebody gains who has several releases about the same persons, by its definition. Imports nothing of Sfumato.

A release is a list of rows. Each row says whose it is, the class that it is in, and what it shows in other columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ReleasedRow:
    """A released row. person is known to the judge alone."""

    person: Hashable
    group: Hashable
    kept: Mapping[str, Hashable]


Rows = Sequence[ReleasedRow]


def persons_of(*releases: Rows) -> set[Hashable]:
    return {row.person for rows in releases for row in rows}


def signature(person: Hashable, releases: Sequence[Rows], *, counted: bool) -> Hashable:
    """The classes that a person is in, release by release; with ``counted``, as often as the person is there."""
    groups = [Counter(row.group for row in rows if row.person == person) for rows in releases]
    return tuple(frozenset(each.items() if counted else each) for each in groups)


def fewest_alike(releases: Sequence[Rows], *, counted: bool) -> int:
    """The fewest persons with the same classes in all releases."""
    everybody = persons_of(*releases)
    return min(Counter(signature(person, releases, counted=counted) for person in everybody).values())


def shared(one: Rows, other: Rows) -> list[str]:
    return [name for name in one[0].kept if name in other[0].kept]


def shown(row: ReleasedRow, columns: Sequence[str]) -> Hashable:
    return tuple(row.kept[name] for name in columns)


def believed(person: Hashable, other: Rows, columns: Sequence[str]) -> set[Hashable]:
    """The values that may be a person's for somebody who knows the person's classes in the other release."""
    groups = {row.group for row in other if row.person == person}
    return {shown(row, columns) for row in other if row.group in groups}


def true_values(person: Hashable, other: Rows, columns: Sequence[str]) -> set[Hashable]:
    return {shown(row, columns) for row in other if row.person == person}


def left_over(row: ReleasedRow, one: Rows, others: Sequence[Rows]) -> tuple[list[ReleasedRow], set[Hashable]]:
    """What is left for a row: the rows of its class that can be this person's, and the persons whom it can be."""
    joined = []
    for other in others:
        columns = shared(one, other)
        if columns and shown(row, columns) in true_values(row.person, other, columns):
            joined.append((other, columns))
    group = [each for each in one if each.group == row.group]
    rows = [
        each
        for each in group
        if all(shown(each, columns) in believed(row.person, other, columns) for other, columns in joined)
    ]
    persons = {
        person
        for person in persons_of(group)
        if all(shown(row, columns) in believed(person, other, columns) for other, columns in joined)
    }
    return rows, persons


def fewest_left(one: Rows, others: Sequence[Rows], k: int) -> int | None:
    """The fewest persons that are left for a row or for a person of a release, after a join with the others.

    A class with fewer than k persons counts only if the join leaves fewer than it has.
    """
    found = []
    for row in one:
        rows, persons = left_over(row, one, others)
        size = len(persons_of([each for each in one if each.group == row.group]))
        found += [count for count in (len(persons_of(rows)), len(persons)) if size >= k or count < size]
    return min(found, default=None)


def fewest_different(one: Rows, others: Sequence[Rows], column: str) -> int:
    """The fewest different values of a column among the rows that are left for a person."""
    return min(len({row.kept[column] for row in left_over(each, one, others)[0]}) for each in one)
