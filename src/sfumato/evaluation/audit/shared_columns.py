"""How many persons a record can still belong to once the columns that two releases keep are compared.

A *cell* is what a person is known to be in: a class, or the part of it that pseudonyms tell apart. Somebody who looks
for a person in a cell knows the cells of that person in the other release, and keeps the records whose shared values
occur there. Somebody who looks at a record keeps the persons of its cell in whose cells elsewhere its values occur.

Sets of Python are used rather than arrays: cells are small or few, and what is known of a person elsewhere is a union
of sets that many persons share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.coding.value_order import text_of
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source

Values = tuple[str | None, ...]
Key = tuple[int, ...]
"""The number of a record's shared values, for each of the other releases."""
Joins = tuple[int, ...]
"""The other releases by which a record is joined, by their position."""
NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True)
class SharedColumns:
    """Another release, seen through the columns that it shares with one.

    numbers: int64[rows of the one], equal where the shared values are. own: the numbers that each person has in the
    other release. cells: the cells of each person there. seen: the numbers that occur in each of these cells.
    """

    numbers: NDArray[np.int64]
    own: Mapping[int, set[int]]
    cells: Mapping[int, frozenset[int]]
    seen: Mapping[int, set[int]]
    _known: dict[frozenset[int], frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, one: Source, other: Source, columns: Sequence[str], *, persons: NDArray[np.int64], cells: NDArray[np.int64]
    ) -> SharedColumns:
        """Compare two releases in some columns. persons, cells: by row of the other release."""
        numbering: dict[Values, int] = {}
        numbers, others = (_numbered(source, columns, numbering) for source in (one, other))
        own, of_person, seen = (defaultdict[int, set[int]](set) for _ in range(3))
        for person, cell, number in zip(persons.tolist(), cells.tolist(), others.tolist(), strict=True):
            own[person].add(number)
            of_person[person].add(cell)
            seen[cell].add(number)
        return cls(numbers, own, {person: frozenset(found) for person, found in of_person.items()}, seen)

    def agrees(self, person: int, number: int) -> bool:
        """Whether the person has this value in the other release too, so that a join by it finds the person."""
        return number in self.own.get(person, NOTHING)

    def possible(self, person: int) -> frozenset[int]:
        """Return the values that may be the person's, for all that the other release shows."""
        cells = self.cells.get(person, NOTHING)
        if cells not in self._known:
            self._known[cells] = frozenset[int]().union(*(self.seen[cell] for cell in cells))
        return self._known[cells]


def fewest_candidates(
    persons: NDArray[np.int64], cells: NDArray[np.int64], others: Sequence[SharedColumns], k: int
) -> int | None:
    """Return the fewest candidates that are left for a record, or for a person, of a release.

    persons, cells: by row. A cell with fewer than k persons counts only if the join leaves fewer than it has: what it
    lacks by itself is not due to other releases. None if no cell counts.
    """
    rows = defaultdict[int, dict[Key, set[int]]](lambda: defaultdict(set))
    keys = zip(*(other.numbers.tolist() for other in others), strict=True)
    for person, cell, key in zip(persons.tolist(), cells.tolist(), keys, strict=True):
        rows[cell][key].add(person)
    fewest: int | None = None
    for by_key in rows.values():
        everybody = set[int]().union(*by_key.values())
        limit = len(everybody) if fewest is None or len(everybody) < k else min(fewest, len(everybody))
        left = _fewest_in_cell(by_key, everybody, others, limit)
        if len(everybody) >= k or left < len(everybody):
            fewest = left if fewest is None else min(fewest, left)
    return fewest


def narrowed_parts(
    persons: NDArray[np.int64], cells: NDArray[np.int64], others: Sequence[SharedColumns]
) -> Iterator[list[int]]:
    """Yield the rows of a cell that can be a person's, once for all persons of whom that is the same.

    Cells of which everything can be are left out. persons, cells: by row.
    """
    if not others:
        return
    rows = defaultdict[int, dict[Key, list[int]]](lambda: defaultdict(list))
    keys = zip(*(other.numbers.tolist() for other in others), strict=True)
    for row, (cell, key) in enumerate(zip(cells.tolist(), keys, strict=True)):
        rows[cell][key].append(row)
    for by_key in rows.values():
        seen: set[object] = set()
        for key, of_key in by_key.items():
            for person in {int(persons[row]) for row in of_key}:
                joins = tuple(place for place, other in enumerate(others) if other.agrees(person, key[place]))
                possible = tuple(others[place].possible(person) for place in joins)
                if not joins or (joins, possible) in seen:
                    continue
                seen.add((joins, possible))
                left = frozenset(each for each in by_key if _fits(each, joins, possible))
                if len(left) < len(by_key) and left not in seen:
                    seen.add(left)
                    yield [row for each in left for row in by_key[each]]


def _fewest_in_cell(
    by_key: Mapping[Key, set[int]], everybody: set[int], others: Sequence[SharedColumns], fewest: int
) -> int:
    """Return the fewest candidates in a cell if they are less than ``fewest``, and ``fewest`` otherwise."""
    seen: set[tuple[Joins, Key | tuple[frozenset[int], ...]]] = set()  # questions that were answered
    for key, owners in by_key.items():
        for person in owners:
            joins = tuple(place for place, other in enumerate(others) if other.agrees(person, key[place]))
            if not joins:
                continue
            if (joins, key) not in seen:
                seen.add((joins, key))
                fewest = min(fewest, _persons_behind(key, joins, everybody, others, fewest))
            possible = tuple(others[place].possible(person) for place in joins)
            if (joins, possible) not in seen:
                seen.add((joins, possible))
                fewest = min(fewest, _persons_beside(possible, joins, by_key, fewest))
    return fewest


def _persons_beside(
    possible: Sequence[frozenset[int]], joins: Joins, by_key: Mapping[Key, set[int]], enough: int
) -> int:
    """Count the persons with a record in the cell that can be a person's with these possible values elsewhere.

    The count ends once it is enough.
    """
    candidates: set[int] = set()
    for key, owners in by_key.items():
        if _fits(key, joins, possible):
            candidates |= owners
            if len(candidates) >= enough:
                break
    return len(candidates)


def _persons_behind(key: Key, joins: Joins, everybody: set[int], others: Sequence[SharedColumns], enough: int) -> int:
    """Count the persons of the cell whose record can have these values. The count ends once it is enough."""
    count = 0
    for person in everybody:
        count += all(key[place] in others[place].possible(person) for place in joins)
        if count >= enough:
            break
    return count


def _fits(key: Key, joins: Joins, possible: Sequence[frozenset[int]]) -> bool:
    """Whether a record can be a person's. possible: the person's possible values in each of the joined releases."""
    return all(key[place] in values for place, values in zip(joins, possible, strict=True))


def _numbered(source: Source, columns: Sequence[str], numbering: dict[Values, int]) -> NDArray[np.int64]:
    """Number what each row shows in some columns. Values are equal if their texts are, whatever the kind of file."""
    found = find_classes(source, columns, by_row=True)
    assert found.class_of_row is not None
    texts = {name: [None if value is None else text_of(value) for value in found.values[name]] for name in columns}
    shown = [[texts[name][index] for index in found.shown[name].tolist()] for name in columns]
    numbers = [numbering.setdefault(values, len(numbering)) for values in zip(*shown, strict=True)]
    return np.array(numbers or [0], np.int64)[found.class_of_row]
