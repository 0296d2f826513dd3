"""The counts that requirements need of the classes that a method forms.

The audit counts independently, from the finished release and with other code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.method import SensitiveValues
from sfumato.requirements import ClassCounts, Histogram, Refinement, Requirements
from sfumato.requirements.conjunction import Conjunction, conjunction


class CountedRows(Protocol):
    """Rows of which classes are made, such as ``Records``. sensitive, persons: by row number."""

    @property
    def rows(self) -> NDArray[np.uint32]: ...

    @property
    def sensitive(self) -> Mapping[str, SensitiveValues]: ...

    @property
    def persons(self) -> NDArray[np.uint32] | None: ...


@dataclass(frozen=True)
class Counting:
    """Counts classes of the given records; the reference distribution is that of the whole table.

    weights: int64, by row number, how many equal records each row stands for; None if every row is one record.
    """

    records: CountedRows
    requirements: Requirements
    weights: NDArray[np.int64] | None = None

    def classes(self, rows: NDArray[np.uint32], owner: NDArray[np.integer], count: int) -> ClassCounts:
        """Count the classes 0..count-1; ``owner`` is the class of each of the ``rows``."""
        refined = {}
        for name in self.requirements.attributes if self.requirements.joint else ():
            others = [self.records.sensitive[other].codes[rows] for other in self.requirements.joint if other != name]
            first, part = _numbered([owner, *others])
            refined[name] = Refinement(self._counts(rows, part, len(first), [name]), owner[first].astype(np.int64))
        counts = self._counts(rows, owner, count, self.requirements.attributes)
        counted = "records" if self.records.persons is None else "persons"
        return ClassCounts(counts.sizes, counts.histograms, refined, counted)

    def runs(self, rows: NDArray[np.uint32], starts: NDArray[np.int64]) -> ClassCounts:
        """Count classes of consecutive rows: class i has rows[starts[i]:starts[i + 1]]."""
        sizes = np.diff(starts)
        if not self.requirements.attributes and self.records.persons is None and self.weights is None:
            return ClassCounts(sizes)
        return self.classes(rows, np.repeat(np.arange(len(sizes)), sizes), len(sizes))

    @cached_property
    def whole(self) -> ClassCounts:
        """Count all records as one class: requirements that it fails cannot be met by merging classes."""
        return self.runs(self.records.rows, np.array([0, len(self.records.rows)]))

    @cached_property
    def totals(self) -> dict[str, NDArray[np.int64]]:
        """Return how often each value of the counted attributes occurs in the whole table."""
        totals = {}
        for name in self.requirements.attributes:
            values, rows = self.records.sensitive[name], self.records.rows
            counts = values.totals
            if counts is None:
                pairs = self._once([values.codes[rows]], rows)
                counts = self._sums(values.codes[rows], rows, pairs, values.distinct + 1)[: values.distinct]
            totals[name] = counts
        return totals

    @cached_property
    def references(self) -> dict[str, NDArray[np.float64]]:
        """Return the share of each value of the counted attributes."""
        return {name: counts / max(int(counts.sum()), 1) for name, counts in self.totals.items()}

    def conjunction(self) -> Conjunction:
        """Return the requirements in the form that the kernel takes; it counts records."""
        names = self.requirements.attributes
        values = [self.records.sensitive[name] for name in names]
        return conjunction(self.requirements, values, [self.references[name] for name in names])

    def _counts(
        self, rows: NDArray[np.uint32], owner: NDArray[np.integer], count: int, names: Sequence[str]
    ) -> ClassCounts:
        sizes = self._sums(owner, rows, self._once([owner], rows), count)
        return ClassCounts(sizes, {name: self._histogram(name, rows, owner, count) for name in names})

    def _histogram(self, name: str, rows: NDArray[np.uint32], owner: NDArray[np.integer], count: int) -> Histogram:
        values = self.records.sensitive[name]
        known_rows = values.codes[rows] < values.distinct
        rows, owner = rows[known_rows], owner[known_rows]
        codes = values.codes[rows]
        pairs = self._once([owner, codes], rows)
        first, number = _numbered([owner[pairs], codes[pairs]])
        first_of_pair = pairs[first]
        known = None
        if self.records.persons is not None:
            known = np.bincount(owner[self._once([owner], rows)], minlength=count)
        return Histogram(
            owner[first_of_pair].astype(np.int64),
            self._sums(number, rows[pairs], np.arange(len(number)), len(first)),
            codes[first_of_pair].astype(np.int64),
            self.references[name],
            values.numbers,
            known,
            values.hierarchy,
        )

    def _sums(
        self, owner: NDArray[np.integer], rows: NDArray[np.uint32], counted: NDArray[np.int64], count: int
    ) -> NDArray[np.int64]:
        """Return how many records, or persons, of the ``counted`` indices each owner has: int64[count]."""
        if self.weights is None or self.records.persons is not None:
            return np.bincount(owner[counted], minlength=count)
        # Sums of floats are exact up to 2 ** 53 records.
        return np.bincount(owner[counted], self.weights[rows[counted]], minlength=count).astype(np.int64)

    def _once(self, columns: Sequence[NDArray[Any]], rows: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the indices to count: all; with persons, one for each person in each combination of the columns."""
        if self.records.persons is None:
            return np.arange(len(rows))
        return _numbered([*columns, self.records.persons[rows]])[0]


def _numbered(columns: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first index of each distinct row of the columns, in order, and the number of the row at each index."""
    order = np.lexsort(list(columns)[::-1])
    new = np.ones(len(order), np.bool_)
    new[1:] = False
    for column in columns:
        in_line = column[order]
        new[1:] |= in_line[1:] != in_line[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number
