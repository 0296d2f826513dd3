"""Find the small sets of columns that single people out.

Somebody who knows a person's values in these columns knows the person's class; a class of one is that person. Every set
up to a given size is examined as long as the work stays bounded. The result lists what was not examined.
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
from sfumato.tables.released_classes import MergedClasses, ReleasedClasses, merge_classes

THRESHOLDS = (3, 5, 10)
LARGEST_SET = 3
MOST_SETS = 2000
HARDLY_MORE = 0.95
MOST_VISITS = 200_000_000  # classes that are visited, over all sets


@dataclass(frozen=True)
class Exposure:
    """How well a set of columns distinguishes the records of a table.

    ``unique``: records that are alone in their class; ``below``: records in classes smaller than each of
    ``THRESHOLDS``.
    """

    columns: tuple[str, ...]
    records: int
    classes: int
    unique: int
    below: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[str], merged: MergedClasses) -> Exposure:
        smaller = [int(merged.records[merged.sizes < bound].sum()) for bound in (2, *THRESHOLDS)]
        return cls(tuple(columns), int(merged.records.sum()), len(merged.sizes), smaller[0], tuple(smaller[1:]))

    @property
    def unique_share(self) -> float:
        return self.unique / self.records

    def as_dict(self) -> dict[str, object]:
        return {"columns": list(self.columns), "classes": self.classes, **self.counts()}

    def counts(self) -> dict[str, int]:
        """How many records are in small classes, as JSON values."""
        return {
            "unique": self.unique,
            **{f"below_{bound}": count for bound, count in zip(THRESHOLDS, self.below, strict=True)},
        }


@dataclass(frozen=True)
class Exposures:
    """Sets of columns, the most dangerous first, and sentences on the sets that were not examined."""

    sets: tuple[Exposure, ...]
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Exposures: {len(self.sets):,} sets of columns>"


def exposures(
    classes: ReleasedClasses,
    columns: Sequence[str],
    *,
    largest: int = LARGEST_SET,
    person: str | None = None,
    preferred: Collection[str] = (),
) -> Exposures:
    """Compute the exposure of every set of up to ``largest`` columns.

    If there are too many sets, use the ``preferred`` columns and those that distinguish most records. A column that
    alone distinguishes nearly all records comes last, since further columns add nothing to it.
    """
    examined = _of_sets(classes, [(name,) for name in columns], person)

    def rank(single: Exposure) -> tuple[object, ...]:
        return single.unique_share >= HARDLY_MORE, single.columns[0] not in preferred, -single.unique, -single.classes

    ranked = [single.columns[0] for single in sorted(examined, key=rank)]
    left_out = []
    room = min(MOST_SETS, MOST_VISITS // max(len(classes.sizes), 1)) - len(examined)
    for size in range(2, min(largest, len(columns)) + 1):
        used = len(ranked)
        while used >= size and comb(used, size) > room:
            used -= 1
        if used < len(ranked):
            without = listed(name for name in columns if name not in ranked[:used])
            left_out.append(
                f"no set of {size} columns was looked at: there are too many records"
                if used < size
                else f"sets of {size} columns were looked at among {used} of {len(ranked)}, without {without}"
            )
        if used < size:
            break
        chosen = [name for name in columns if name in ranked[:used]]
        examined += _of_sets(classes, list(combinations(chosen, size)), person)
        room -= comb(used, size)
    return Exposures(most_dangerous_first(examined, columns), tuple(left_out))


def most_dangerous_first(sets: Iterable[Exposure], columns: Sequence[str]) -> tuple[Exposure, ...]:
    """Sort sets of ``columns``, the most dangerous first."""
    position = {name: index for index, name in enumerate(columns)}
    return tuple(sorted(sets, key=partial(_order, position)))


def first_of_each_size(sets: Iterable[Exposure], most: int) -> list[Exposure]:
    """The first ``most`` sets of each size, in their order."""
    kept: Counter[int] = Counter()
    shown = []
    for exposure in sets:
        kept[len(exposure.columns)] += 1
        if kept[len(exposure.columns)] <= most:
            shown.append(exposure)
    return shown


def more_revealing_sets(sets: Iterable[Exposure]) -> list[Exposure]:
    """The sets that leave clearly more records in small classes than every one of their proper subsets does."""
    exposed = list(sets)
    counts = {frozenset(exposure.columns): exposure.unique + sum(exposure.below) for exposure in exposed}
    return [
        exposure
        for exposure in exposed
        if all(
            counts.get(frozenset(subset), 0) < HARDLY_MORE * counts[frozenset(exposure.columns)]
            for size in range(1, len(exposure.columns))
            for subset in combinations(exposure.columns, size)
        )
    ]


def _of_sets(classes: ReleasedClasses, sets: Sequence[tuple[str, ...]], person: str | None) -> list[Exposure]:
    def exposure(columns: tuple[str, ...]) -> Exposure:
        return Exposure.of(columns, merge_classes(classes, columns, person))

    return in_threads(exposure, sets)


def _order(position: dict[str, int], exposure: Exposure) -> tuple[object, ...]:
    """A sort key: the most dangerous set first; of equally dangerous sets the smaller one."""
    columns = exposure.columns
    return -exposure.unique, *np.negative(exposure.below).tolist(), len(columns), [position[name] for name in columns]
