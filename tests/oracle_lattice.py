"""Full-domain generalization by trying every node of the lattice of levels. Imports nothing of Sfumato."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import oracle


@dataclass(frozen=True)
class NumberLevels:
    """Whole numbers in intervals: the widths of the levels between the value and ``*``."""

    values: Sequence[int | None]
    widths: Sequence[int]

    @property
    def levels(self) -> int:
        return len(self.widths) + 2

    def label(self, value: int | None, level: int) -> str | None:
        if level == self.levels - 1:
            return self.whole()
        if value is None:
            return None
        if level == 0:
            return str(value)
        width = self.widths[level - 1]
        first = value // width * width
        return f"[{first}..{first + width - 1}]"

    def whole(self) -> str | None:
        """What a column on the most general level shows: the only value there is, if there is one."""
        known = set(self.values)
        if len(known) > 1:
            return oracle.WHOLE
        only = known.pop()
        return None if only is None else str(only)

    def penalty(self, label: str | None) -> Fraction:
        if label == self.whole() and label != oracle.WHOLE:
            return Fraction(0)
        return oracle.NumberColumn(self.values).penalty(label)


@dataclass(frozen=True)
class CategoryLevels:
    """Categories under a taxonomy: one row for each leaf, the leaf first, without the root, all of the same length."""

    rows: Sequence[Sequence[str]]

    @property
    def levels(self) -> int:
        return len(self.rows[0]) + 1

    def label(self, value: str | None, level: int) -> str | None:
        if level == self.levels - 1:
            return oracle.WHOLE
        if value is None:
            return None
        return next(row for row in self.rows if row[0] == value)[level]

    def penalty(self, label: str | None) -> Fraction:
        return oracle.CategoryColumn(self.rows).penalty(label)


ColumnLevels = NumberLevels | CategoryLevels
Released = list[tuple[int, tuple[str | None, ...]]]


@dataclass(frozen=True)
class Problem:
    """A table, the levels of its quasi-identifiers, and what is asked of every class."""

    rows: Sequence[oracle.Row]
    columns: dict[str, ColumnLevels]
    asked: Sequence[oracle.Asked]
    counting: oracle.Counting
    k: int
    most: int
    cost: Fraction = Fraction(1)

    def failing(self, shown: Released) -> set[int]:
        """The rows in classes that do not hold, of a release that shows these labels."""
        key = ["label"]
        rows = [{**self.rows[row], "label": str(labels), "number": row} for row, labels in shown]
        found: set[int] = set()
        for members in oracle.classes(rows, key).values():
            fails = self.counting.members(members) < self.k
            for asked in self.asked:
                everything = self.counting.counts(rows, asked.attribute)
                for part in self.counting.parts(members, key, asked.attribute):
                    fails |= not asked.holds(self.counting.counts(part, asked.attribute), everything)
            if fails:
                found |= {row["number"] for row in members}
        return found

    def _plain(self, node: Sequence[int]) -> Released:
        """What a node shows of every record."""
        levels = list(zip(self.columns.items(), node, strict=True))
        return [
            (number, tuple(column.label(row[name], level) for (name, column), level in levels))
            for number, row in enumerate(self.rows)
        ]

    def released(self, node: Sequence[int]) -> Released:
        """What a node shows, after failing classes were left out again and again until none was left."""
        shown = self._plain(node)
        while failing := self.failing(shown):
            shown = [(row, labels) for row, labels in shown if row not in failing]
        return shown

    def released_with_cells(self, node: Sequence[int], weights: Sequence[int]) -> Released:
        """What a node shows if cells of failing classes become ``*``, the column of least weight first.

        Of equal weights, the column with the most groups comes first.
        """
        labels = {row: list(shown) for row, shown in self._plain(node)}
        groups = [self._groups(column, level) for column, level in zip(self.columns.values(), node, strict=True)]
        order = sorted((q for q in range(len(node)) if groups[q] > 1), key=lambda q: (weights[q], -groups[q], q))
        done = dict.fromkeys(labels, 0)
        while failing := self.failing([(row, tuple(shown)) for row, shown in labels.items()]):
            for row in failing:
                if done[row] == len(order):
                    del labels[row]
                    continue
                labels[row][order[done[row]]] = oracle.WHOLE
                done[row] += 1
        return [(row, tuple(shown)) for row, shown in labels.items()]

    def _groups(self, column: ColumnLevels, level: int) -> int:
        """The number of groups of a level: those of a taxonomy even if no record has them, and null."""
        if level == column.levels - 1:
            return 1
        if isinstance(column, NumberLevels):
            return len({column.label(value, level) for value in column.values})
        return len({row[level] for row in column.rows})

    def loss(self, shown: Released, weights: Sequence[int] | None = None) -> Fraction:
        """The mean penalty; a record that is left out counts what the problem says."""
        weights = weights or [1] * len(self.columns)
        penalties = [
            sum(
                (
                    weight * column.penalty(label)
                    for weight, column, label in zip(weights, self.columns.values(), labels, strict=True)
                ),
                Fraction(0),
            )
            / sum(weights)
            for _, labels in shown
        ]
        return (sum(penalties, Fraction(0)) + self.cost * (len(self.rows) - len(shown))) / len(self.rows)

    def nodes(self) -> list[tuple[int, ...]]:
        return list(product(*(range(column.levels) for column in self.columns.values())))

    def is_feasible(self, shown: Released) -> bool:
        return bool(shown) and len(self.rows) - len(shown) <= self.most

    def least_loss(self) -> Fraction | None:
        """The least loss over all nodes; None if no node leaves out few enough."""
        losses = [self.loss(shown) for _, shown in self.solutions()]
        return min(losses, default=None)

    def solutions(self) -> list[tuple[tuple[int, ...], Released]]:
        """The nodes that leave out few enough, each with what it shows."""
        releases = [(node, self.released(node)) for node in self.nodes()]
        return [(node, shown) for node, shown in releases if self.is_feasible(shown)]
