"""Which small sets of columns single people out.

Somebody who knows the columns of a set knows the class of a person by them; a class of one is that person. Every set up
to a size is looked at while the work stays bounded, and what is not looked at is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb

import numpy as np

from sfumato.kernels.threads import in_threads
from sfumato.policy.error_text import listed
from sfumato.tables.released_classes import Merged, ReleasedClasses, merge_classes

THRESHOLDS = (3, 5, 10)
LARGEST_SET = 3
MOST_SETS = 2000
HARDLY_MORE = 0.95
MOST_VISITS = 200_000_000  # classes that are looked at, over all sets


@dataclass(frozen=True)
class Exposure:
    """How far a set of columns tells the records of a table apart.

    unique: records that are alone in their class; below: records in classes smaller than each of ``THRESHOLDS``.
    """

    columns: tuple[str, ...]
    records: int
    classes: int
    unique: int
    below: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[str], merged: Merged) -> Exposure:
        smaller = [int(merged.records[merged.sizes < bound].sum()) for bound in (2, *THRESHOLDS)]
        return cls(tuple(columns), int(merged.records.sum()), len(merged.sizes), smaller[0], tuple(smaller[1:]))

    @property
    def unique_share(self) -> float:
        return self.unique / self.records

    def as_dict(self) -> dict[str, object]:
        return {"columns": list(self.columns), "classes": self.classes, **self.counts()}

    def counts(self) -> dict[str, int]:
        """How many records are in small classes, as JSON holds it."""
        return {
            "unique": self.unique,
            **{f"below_{bound}": count for bound, count in zip(THRESHOLDS, self.below, strict=True)},
        }


@dataclass(frozen=True)
class Exposures:
    """Sets of columns, the most dangerous first, and in words which sets were not looked at."""

    sets: tuple[Exposure, ...]
    left_out: tuple[str, ...] = ()


def exposures(
    classes: ReleasedClasses,
    columns: Sequence[str],
    *,
    largest: int = LARGEST_SET,
    person: str | None = None,
    preferred: Collection[str] = (),
) -> Exposures:
    """Every set of up to ``largest`` of the columns.

    Where those are too many, of the columns that are ``preferred`` and of those that tell most apart; a column that
    alone tells nearly all apart comes last, since nothing is left to add to it.
    """
    found = _of_sets(classes, [(name,) for name in columns], person)

    def rank(one: Exposure) -> tuple[object, ...]:
        return one.unique_share >= HARDLY_MORE, one.columns[0] not in preferred, -one.unique, -one.classes

    ranked = [one.columns[0] for one in sorted(found, key=rank)]
    left_out = []
    room = min(MOST_SETS, MOST_VISITS // max(len(classes.sizes), 1)) - len(found)
    for size in range(2, min(largest, len(columns)) + 1):
        known = len(ranked)
        while known >= size and comb(known, size) > room:
            known -= 1
        if known < len(ranked):
            without = listed(name for name in columns if name not in ranked[:known])
            left_out.append(
                f"no set of {size} columns was looked at: there are too many records"
                if known < size
                else f"sets of {size} columns were looked at among {known} of {len(ranked)}, without {without}"
            )
        if known < size:
            break
        chosen = [name for name in columns if name in ranked[:known]]
        found += _of_sets(classes, list(combinations(chosen, size)), person)
        room -= comb(known, size)
    return Exposures(most_dangerous_first(found, columns), tuple(left_out))


def most_dangerous_first(found: Iterable[Exposure], columns: Sequence[str]) -> tuple[Exposure, ...]:
    """Sets of some columns in their order."""
    place = {name: at for at, name in enumerate(columns)}
    return tuple(sorted(found, key=partial(_order, place)))


def first_of_each_size(sets: Iterable[Exposure], most: int) -> list[Exposure]:
    """The first few sets of each size, in their order."""
    kept: Counter[int] = Counter()
    shown = []
    for one in sets:
        kept[len(one.columns)] += 1
        if kept[len(one.columns)] <= most:
            shown.append(one)
    return shown


def telling_more(sets: Iterable[Exposure]) -> list[Exposure]:
    """The sets that leave clearly more records in small classes than every smaller set in them does."""
    found = list(sets)
    counts = {frozenset(one.columns): one.unique + sum(one.below) for one in found}
    return [
        one
        for one in found
        if all(
            counts.get(frozenset(part), 0) < HARDLY_MORE * counts[frozenset(one.columns)]
            for size in range(1, len(one.columns))
            for part in combinations(one.columns, size)
        )
    ]


def _of_sets(classes: ReleasedClasses, sets: Sequence[tuple[str, ...]], person: str | None) -> list[Exposure]:
    def exposure(columns: tuple[str, ...]) -> Exposure:
        return Exposure.of(columns, merge_classes(classes, columns, person))

    return in_threads(exposure, sets)


def _order(place: dict[str, int], one: Exposure) -> tuple[object, ...]:
    """The most dangerous first; of equally dangerous sets the smaller one."""
    return -one.unique, *np.negative(one.below).tolist(), len(one.columns), [place[name] for name in one.columns]
