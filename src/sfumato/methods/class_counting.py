"""What requirements count in classes that a method forms.

The audit counts anew, from the finished release and with other code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.method import Records
from sfumato.requirements import ClassCounts, Histogram, Refinement, Requirements
from sfumato.requirements.conjunction import Conjunction, conjunction


@dataclass(frozen=True)
class Counting:
    """Counts the classes of some records; the reference distribution is that of the whole table."""

    records: Records
    requirements: Requirements

    def classes(self, rows: NDArray[np.uint32], owner: NDArray[np.integer], count: int) -> ClassCounts:
        """The classes 0..count-1; ``owner`` is the class of each of the ``rows``."""
        refined = {}
        for name in self.requirements.attributes if self.requirements.joint else ():
            others = [self.records.sensitive[other].codes[rows] for other in self.requirements.joint if other != name]
            first, part = _numbered([owner, *others])
            refined[name] = Refinement(self._counts(rows, part, len(first), [name]), owner[first].astype(np.int64))
        counts = self._counts(rows, owner, count, self.requirements.attributes)
        counted = "records" if self.records.persons is None else "persons"
        return ClassCounts(counts.sizes, counts.histograms, refined, counted)

    def runs(self, rows: NDArray[np.uint32], starts: NDArray[np.int64]) -> ClassCounts:
        """The classes whose rows follow each other: class i has rows[starts[i]:starts[i + 1]]."""
        sizes = np.diff(starts)
        if not self.requirements.attributes and self.records.persons is None:
            return ClassCounts(sizes)
        return self.classes(rows, np.repeat(np.arange(len(sizes)), sizes), len(sizes))

    @cached_property
    def whole(self) -> ClassCounts:
        """All records as one class: what it does not meet, no joining of classes can bring about."""
        return self.runs(self.records.rows, np.array([0, self.records.count]))

    @cached_property
    def references(self) -> dict[str, NDArray[np.float64]]:
        """The share of each value of the counted attributes."""
        found = {}
        for name in self.requirements.attributes:
            values = self.records.sensitive[name]
            if values.totals is not None:
                found[name] = values.totals / max(int(values.totals.sum()), 1)
                continue
            rows = self.records.rows
            pairs = self._once([values.codes[rows]], rows)
            counts = np.bincount(values.codes[rows][pairs], minlength=values.distinct + 1)[: values.distinct]
            found[name] = counts / max(int(counts.sum()), 1)
        return found

    def conjunction(self) -> Conjunction:
        """The requirements as the kernel takes them; it counts records."""
        names = self.requirements.attributes
        values = [self.records.sensitive[name] for name in names]
        return conjunction(self.requirements, values, [self.references[name] for name in names])

    def _counts(
        self, rows: NDArray[np.uint32], owner: NDArray[np.integer], count: int, names: Sequence[str]
    ) -> ClassCounts:
        sizes = np.bincount(owner[self._once([owner], rows)], minlength=count)
        return ClassCounts(sizes, {name: self._histogram(name, rows, owner, count) for name in names})

    def _histogram(self, name: str, rows: NDArray[np.uint32], owner: NDArray[np.integer], count: int) -> Histogram:
        values = self.records.sensitive[name]
        here = values.codes[rows] < values.distinct
        rows, owner = rows[here], owner[here]
        codes = values.codes[rows]
        pairs = self._once([owner, codes], rows)
        first, number = _numbered([owner[pairs], codes[pairs]])
        at = pairs[first]
        known = None
        if self.records.persons is not None:
            known = np.bincount(owner[self._once([owner], rows)], minlength=count)
        return Histogram(
            owner[at].astype(np.int64),
            np.bincount(number, minlength=len(first)),
            codes[at].astype(np.int64),
            self.references[name],
            values.numbers,
            known,
            values.hierarchy,
        )

    def _once(self, columns: Sequence[NDArray[Any]], rows: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The places to count: all; with persons, one for each person in each combination of the columns."""
        if self.records.persons is None:
            return np.arange(len(rows))
        return _numbered([*columns, self.records.persons[rows]])[0]


def _numbered(columns: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first place of each distinct row of the columns, in their order, and the number of the row at each place."""
    line = np.lexsort(list(columns)[::-1])
    new = np.ones(len(line), np.bool_)
    new[1:] = False
    for column in columns:
        in_line = column[line]
        new[1:] |= in_line[1:] != in_line[:-1]
    number = np.empty(len(line), np.int64)
    number[line] = np.cumsum(new) - 1
    return line[new], number
