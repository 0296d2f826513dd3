"""What a ready-made taxonomy can do, and those whose leaves are the same for every table.

A table may write the leaves in several ways: Germany, DE, DEU or 276. The values decide which it is, and a column has
to keep to one. The tree has all leaves, whether the column has them or not, so it says nothing about the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from sfumato.taxonomies.taxonomy import ROOT, Taxonomy
from sfumato.taxonomies.taxonomy_rows import TaxonomyRows


@dataclass(frozen=True)
class ReadyRows:
    """The rows of a ready-made taxonomy for the values of a column, and the values that it does not have.

    reading: how the column is read, in words that follow "read as". remark: why values are outside, if that is known.
    """

    rows: TaxonomyRows
    outside: tuple[str, ...] = field(repr=False)
    reading: str
    remark: str = ""

    @property
    def explanation(self) -> str:
        """How the column was read, and why values are outside."""
        return "; ".join(filter(None, [f"the column was read as {self.reading}", self.remark]))


class ReadyTaxonomy(Protocol):
    """A taxonomy that is there without a file."""

    @property
    def source(self) -> str:
        """Where the facts come from."""

    def rows(self, values: Sequence[str]) -> ReadyRows:
        """Return the rows for the distinct values of a column."""

    def levels_of(self, label: str) -> tuple[int, int] | None:
        """Return the least and the greatest level that show a label: 0 for the values; None for an unknown label."""


@dataclass(frozen=True)
class Writing:
    """One way to write the leaves. plain: what two spellings of one leaf have in common."""

    title: str
    usual: tuple[str, ...]
    leaf_of: Mapping[str, int]
    plain: Callable[[str], str]

    @classmethod
    def of(cls, title: str, names: Sequence[Sequence[str]], plain: Callable[[str], str]) -> Writing:
        """Return the writing in which each leaf has some names, the usual one first."""
        leaf_of = {plain(name): leaf for leaf, spellings in enumerate(names) for name in spellings}
        return cls(title, tuple(spellings[0] for spellings in names), leaf_of, plain)

    def leaf(self, value: str) -> int | None:
        return self.leaf_of.get(self.plain(value))


@dataclass(frozen=True)
class FixedTaxonomy:
    """A ready-made taxonomy with the same leaves for every table. levels: the groups of each leaf, from fine to coarse.

    A leaf that is in no group has an empty text there.
    """

    source: str
    writings: tuple[Writing, ...]
    levels: tuple[tuple[str, ...], ...]

    @cached_property
    def _groups(self) -> dict[str, int]:
        """The level of each group."""
        return {name: number for number, level in enumerate(self.levels, 1) for name in level if name}

    def levels_of(self, label: str) -> tuple[int, int] | None:
        if label in self._groups:
            return self._groups[label], self._groups[label]
        leaf = next((leaf for writing in self.writings if (leaf := writing.leaf(label)) is not None), None)
        if leaf is None:
            return None
        return 0, next((number for number, level in enumerate(self.levels) if level[leaf]), len(self.levels))

    def rows(self, values: Sequence[str]) -> ReadyRows:
        """Read the values by the writing that knows most of them. One leaf cannot be written in two ways."""
        # The first of several spellings in this order is the one that the tree has, whatever the order of the rows.
        ordered = sorted(values)
        known = [[writing.leaf(value) for value in ordered] for writing in self.writings]
        best = max(range(len(self.writings)), key=lambda number: (_count(known[number]), -number))
        writing, leaves = self.writings[best], list(self.writings[best].usual)
        written: set[int] = set()
        outside, twice = [], 0
        for value, leaf in zip(ordered, known[best], strict=True):
            if leaf is not None and leaf not in written:
                leaves[leaf] = value
                written.add(leaf)
            else:
                outside.append(value)
                twice += leaf is not None
        return ReadyRows(self._with(leaves), tuple(outside), writing.title, self._remark(best, outside, twice))

    def of_release(self, labels: Iterable[str], column: str) -> Taxonomy:
        """Return the tree with the leaves as a release writes them. labels: what it shows, groups included."""
        leaves = [label for label in set(labels) - {ROOT} if label not in self._groups]
        return self.rows(leaves).rows.taxonomy(column)

    def _with(self, leaves: Sequence[str]) -> TaxonomyRows:
        named = [[name or leaf for name, leaf in zip(level, leaves, strict=True)] for level in self.levels]
        return TaxonomyRows(tuple(leaves), tuple(map(tuple, named)))

    def _remark(self, best: int, outside: Sequence[str], twice: int) -> str:
        others = [
            (sum(writing.leaf(value) is not None for value in outside), writing.title)
            for number, writing in enumerate(self.writings)
            if number != best
        ]
        count, title = max(others, key=lambda other: other[0])
        remarks = []
        if count:
            remarks.append(f"among them are {title} ({count:,}), and a column has to keep to one way of writing")
        if twice:
            remarks.append(f"among them are second spellings ({twice:,}) of what the column has too")
        return "; ".join(remarks)


def _count(leaves: Iterable[int | None]) -> int:
    return sum(leaf is not None for leaf in leaves)
